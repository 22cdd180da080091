//! Runs of layers that only move a request to another offset, in one step.
//!
//! Most layers of a stack do nothing with a request but add a number to its offset and pass it on:
//! slices, partitions, a window. A geom that says so ([`crate::Geom::shift`]) need not be asked
//! about each request: the sum, and whether all checks on the way hold whenever the first one
//! does, are known when the snapshot is built. Nor need each layer be counted or recorded: what
//! passed one of a run has passed all. So a run is two edges more in the snapshot, however long it
//! is, and both are edges like any other to all code that meets them in a path:
//!
//! ```text
//!   edges    0: a, of bsd     1: s1, of mbr     2: md0              of the attached consumers
//!            3: md0, counted for 0, 1 and 2    4: md0, counted for 1 and 2
//!            5: passed, not counted
//!   run      of edge 0: +40 KiB, asks 3     of edge 1: +32 KiB, asks 4
//!   path     (5, offset) (3, offset + 40 KiB)      of a request that enters edge 0
//! ```

use crate::bio::slot::{Body, MAX_DEPTH};
use crate::snapshot::{Edge, EdgeInfo, HIGHEST, NO_RUN, Snapshot};

/// Where the edge `passed` counts: nowhere.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// A run of layers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The sum that they add to the offset, bytes.
    pub add: u64,
    /// The edge behind them, as a copy that counts for the whole run.
    pub asked: u32,
    /// The edge that stands for them in a path.
    pub passed: u32,
    /// Where the whole run is counted.
    pub stat: u32,
    /// Where its consumers, the last one included, are counted when requests come otherwise.
    pub members: Box<[u32]>,
}

/// Finds the runs of all edges, and adds the edges that they need. `place` tells where requests
/// are counted that pass all of these.
pub(crate) fn find(
    edges: &mut Vec<Edge>,
    info: &mut Vec<EdgeInfo>,
    mut place: impl FnMut(&[u32]) -> u32,
) -> Box<[Run]> {
    let mut found = Vec::new();
    for index in 0..edges.len() {
        let (last, add, members) = follow(edges, index);
        if members.len() > 1 {
            edges[index].run = found.len() as u32;
            found.push((last, add, members));
        }
    }
    let passed = (edges.len() + found.len()) as u32;
    let mut runs = Vec::with_capacity(found.len());
    for (last, add, members) in found {
        let (stat, asked) = (place(&members), edges.len() as u32);
        let edge = &edges[last];
        let copy = Edge {
            stat,
            run: NO_RUN,
            geom: edge.geom.clone(),
            ..*edge
        };
        edges.push(copy);
        info.push(info[last].clone());
        runs.push(Run {
            add,
            asked,
            passed,
            stat,
            members: members.into(),
        });
    }
    if let Some(run) = runs.first() {
        // It is never entered: the path has it only for the offset that comes back.
        let asked = run.asked as usize;
        let edge = &edges[asked];
        let copy = Edge {
            stat: NO_PLACE,
            hooked: false,
            geom: edge.geom.clone(),
            ..*edge
        };
        edges.push(copy);
        info.push(info[asked].clone());
    }
    runs.into()
}

/// Follows the layers from an edge on, as long as all that it admits is admitted there, too: the
/// last edge, the sum of the steps to it, and where each on the way is counted.
fn follow(edges: &[Edge], first: usize) -> (usize, u64, Vec<u32>) {
    let (mut last, mut add) = (first, 0_u64);
    let mut members = Vec::new();
    for _ in 0..MAX_DEPTH {
        let here = &edges[last];
        members.push(here.stat);
        let shift = here.geom.shift(here.port);
        let (Some(shift), false, 1) = (shift, here.hooked, here.below_count) else { break };
        let (Some(sum), Some(below)) = (add.checked_add(shift), edges.get(here.below as usize))
        else {
            break;
        };
        if !admits_all(below, &edges[first], sum) {
            break;
        }
        (last, add) = (here.below as usize, sum);
    }
    (last, add, members)
}

/// True when whatever `first` admits passes the checks of `edge`, too, when it is moved by `add`.
fn admits_all(edge: &Edge, first: &Edge, add: u64) -> bool {
    let sectors = (edge.forbidden & !first.forbidden) | (edge.forbidden & add);
    let mut sides = first.ends.iter().zip(&edge.ends);
    let inside = sides.all(|(&end, &room)| {
        // Nothing is admitted by an end of 0.
        end == 0 || end.checked_add(add).is_some_and(|end| end <= room)
    });
    sectors & !HIGHEST == 0 && inside
}

/// Passes the layers of an edge's run: writes the one hop that stands for them into the path at
/// `place`, and tells the edge to ask and the offset there.
#[inline(always)]
pub(crate) fn pass(
    snapshot: &Snapshot,
    body: &mut Body,
    (run, offset, place): (u32, u64, usize),
) -> Option<(u32, u64)> {
    let run = snapshot.runs.get(run as usize)?;
    // Attaching refuses stacks that are deeper than a path, so this never wraps.
    let hop = &mut body.hops[place % MAX_DEPTH];
    hop.edge = run.passed;
    hop.offset = offset;
    Some((run.asked, offset.wrapping_add(run.add)))
}
