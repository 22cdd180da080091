//! From a tree of spans to parts of time that add up to the whole.
//!
//! At each moment between the start and the end of a root, its time belongs to the spans that are
//! open and have no open span below. Where several are (the copies of a RAID, the parts of a split
//! request), each gets an equal share. So the parts of a root add up to its length exactly, and the
//! exclusive time of a span is its inclusive time minus the union of those below, as
//! `docs/trace.md` defines it.

use super::{Phase, Tree};

/// A share of a root's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPart {
    /// The span, by its position in [`Tree::spans`].
    pub span: usize,
    /// Its phase.
    pub phase: Phase,
    /// Time of the part, nanoseconds.
    pub ns: u64,
}

/// Divides the time of the root. Parts of one span and phase are added up; the order is that of
/// spans and phases. The sum is the length of the root.
pub fn divide(tree: &Tree) -> Vec<RequestPart> {
    let Some(root) = tree.spans.first() else { return Vec::new() };
    let clipped = clip(tree);
    let mut times: Vec<u64> = clipped
        .iter()
        .flat_map(|(start, end)| [*start, *end])
        .collect();
    for (span, (start, end)) in tree.spans.iter().zip(&clipped) {
        let inside = span.phases.iter().map(|(at, _)| *at);
        times.extend(inside.filter(|at| (*start..*end).contains(at)));
    }
    times.sort_unstable();
    times.dedup();
    let mut sums = vec![[0_u64; Phase::ALL.len()]; tree.spans.len()];
    let mut leaves = Vec::new();
    for pair in times.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if from < root.start_ns || to > root.end_ns {
            continue;
        }
        leaves.clear();
        find_leaves(tree, &clipped, from, &mut leaves);
        let (length, count) = (to - from, leaves.len().max(1) as u64);
        // The remainder of the division goes to the first.
        let mut rest = length % count;
        for at in &leaves {
            let phase = phase_at(&tree.spans[*at].phases, from);
            sums[*at][phase as usize] += length / count + std::mem::take(&mut rest);
        }
    }
    let mut parts = Vec::new();
    for (span, sums) in sums.iter().enumerate() {
        let some = Phase::ALL.iter().zip(sums).filter(|(_, ns)| **ns > 0);
        parts.extend(some.map(|(phase, ns)| RequestPart {
            span,
            phase: *phase,
            ns: *ns,
        }));
    }
    parts
}

/// The interval of each span within those above it.
fn clip(tree: &Tree) -> Vec<(u64, u64)> {
    let mut clipped: Vec<(u64, u64)> = Vec::with_capacity(tree.spans.len());
    for span in &tree.spans {
        let (low, high) = match span.parent.and_then(|parent| clipped.get(parent)) {
            Some(above) => *above,
            None => (span.start_ns, span.end_ns),
        };
        let start = span.start_ns.clamp(low, high);
        clipped.push((start, span.end_ns.clamp(start, high)));
    }
    clipped
}

/// The open spans without an open span below, at a moment.
fn find_leaves(tree: &Tree, clipped: &[(u64, u64)], at: u64, leaves: &mut Vec<usize>) {
    let open = |span: usize| {
        let (start, end) = clipped[span];
        (start..end).contains(&at)
    };
    let mut covered = vec![false; tree.spans.len()];
    // Children come after their parents, so from the end each span knows its open children.
    for span in (0..tree.spans.len()).rev() {
        if !open(span) {
            continue;
        }
        if !covered[span] {
            leaves.push(span);
        }
        if let Some(parent) = tree.spans[span].parent {
            covered[parent] = true;
        }
    }
    leaves.reverse();
}

fn phase_at(phases: &[(u64, Phase)], at: u64) -> Phase {
    let last = phases.iter().rev().find(|(from, _)| *from <= at);
    last.or_else(|| phases.first())
        .map_or(Phase::Block, |(_, phase)| *phase)
}
