//! Runs of layers that only move a request to another offset, in one step.
//!
//! Most layers of a stack do nothing with a request but add a number to its offset and pass it on:
//! slices, partitions, a window. A geom that says so ([`crate::Geom::shift`]) need not be asked
//! about each request: the sums, and whether all checks on the way hold whenever the first one
//! does, are known when the snapshot is built. What such a layer costs is then the line in the
//! path and the counts.
//!
//! ```text
//!   edges   0: bsd's a ---> 1: mbr's s1 ---> 2: md0
//!   steps   of edge 0:  (0, +0) (1, +8 KiB) (2, +40 KiB)     all but the last are passed
//!           of edge 1:  (1, +0) (2, +32 KiB)
//! ```

use crate::bio::slot::{Body, MAX_DEPTH};
use crate::cx::Cx;
use crate::snapshot::{Edge, HIGHEST};
use crate::statistics::Level;

/// One edge of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub edge: u32,
    /// Where its statistics are counted.
    pub stat: u32,
    /// What the edges of the run before it add to the offset, bytes.
    pub add: u64,
}

/// Notes in each edge, as [`Edge::run`], which layers its requests pass at once; the steps of all.
pub(crate) fn find(edges: &mut [Edge]) -> Box<[Step]> {
    let mut steps = Vec::new();
    for index in 0..edges.len() {
        let first = steps.len();
        follow(edges, index as u32, &mut steps);
        let passed = steps.len() - first - 1;
        if passed == 0 {
            steps.truncate(first);
        } else {
            edges[index].run = (first as u32, passed as u8);
        }
    }
    steps.into()
}

/// Appends the edge, and those that follow as long as all that it admits is admitted there, too.
fn follow(edges: &[Edge], index: u32, steps: &mut Vec<Step>) {
    let (mut edge, mut add) = (index, 0_u64);
    for _ in 0..MAX_DEPTH {
        let here = &edges[edge as usize];
        let stat = here.stat;
        steps.push(Step { edge, stat, add });
        let next = here.below;
        let shift = here.geom.shift(here.port);
        let (Some(shift), false, 1) = (shift, here.hooked, here.below_count) else {
            return;
        };
        let (Some(sum), Some(below)) = (add.checked_add(shift), edges.get(next as usize)) else {
            return;
        };
        if !admits_all(below, &edges[index as usize], sum) {
            return;
        }
        (edge, add) = (next, sum);
    }
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

/// Writes the layers that a request passes at once into its path; where it is then: the edge, the
/// offset, and the place in the path.
#[inline(always)]
pub(crate) fn pass<L: Level>(
    steps: &[Step],
    cx: &mut Cx,
    body: &mut Body,
    offset: u64,
) -> Option<(u32, u64, usize)> {
    let (last, passed) = steps.split_last()?;
    let mut place = usize::from(body.depth);
    for step in passed {
        // Attaching refuses stacks that are deeper than a path, so this never wraps.
        let hop = &mut body.hops[place % MAX_DEPTH];
        hop.edge = step.edge;
        hop.offset = offset.wrapping_add(step.add);
        if L::COUNTS {
            cx.passed[place % MAX_DEPTH] = step.stat;
        }
        place += 1;
    }
    body.depth = place as u8;
    Some((last.edge, offset.wrapping_add(last.add), place))
}
