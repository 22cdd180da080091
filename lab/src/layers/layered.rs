//! Stacks of N equal layers: the measured numbers, and their names in figures and tables.

use super::names;
use super::stacks::TIME;
use ugeom_stack::Statistics;

/// Equal layers over the memory disk, at one level of statistics.
pub(super) struct Layered {
    /// `slicers` (called), `fused` (slicers that a request passes in one step), `nops`, or `hooks`
    /// (nops with a completion hook).
    pub kind: &'static str,
    pub statistics: Statistics,
    /// Whether they are measured without `--full`, too.
    pub always: bool,
    /// Their row in the table of stacks.
    pub row: &'static str,
    /// The figure of one more of them, in words.
    pub one_more: &'static str,
    /// The project's target for one more, ns.
    pub target_ns: Option<f64>,
}

impl Layered {
    fn level(&self) -> &'static str {
        match self.statistics {
            Statistics::Off => "off",
            Statistics::Counts => "counts",
            Statistics::Time { .. } => "time",
        }
    }

    /// The case of so many layers.
    pub fn case(&self, layers: usize) -> String {
        names::layered(self.kind, self.level(), layers)
    }

    /// The figure of one more layer.
    pub fn figure(&self) -> String {
        format!("slope.{}.{}", self.kind, self.level())
    }
}

const fn of(
    kind: &'static str,
    (statistics, always): (Statistics, bool),
    target_ns: Option<f64>,
    [row, one_more]: [&'static str; 2],
) -> Layered {
    Layered {
        kind,
        statistics,
        always,
        row,
        one_more,
        target_ns,
    }
}

const OFF: Statistics = Statistics::Off;
const COUNTS: Statistics = Statistics::Counts;

/// All of them, in the order of tables.
#[rustfmt::skip]
pub(super) const LAYERED: [Layered; 10] = [
    of("slicers", (OFF, true), Some(2.0),
        ["slicers, statistics off", "one more slicer, direct, statistics off"]),
    of("slicers", (COUNTS, true), Some(4.0),
        ["slicers, counts", "one more slicer, counts on"]),
    of("slicers", (TIME, false), None,
        ["slicers, counts and times", "one more slicer, counts and sampled times"]),
    of("fused", (OFF, false), None,
        ["fused slicers, statistics off", "one more fused slicer, statistics off"]),
    of("fused", (COUNTS, true), None,
        ["fused slicers, counts", "one more fused slicer, counts on"]),
    of("nops", (OFF, true), None,
        ["nops, statistics off", "one more nop, statistics off"]),
    of("nops", (COUNTS, false), None,
        ["nops, counts", "one more nop, counts on"]),
    of("nops", (TIME, false), None,
        ["nops, counts and times", "one more nop, counts and sampled times"]),
    of("hooks", (OFF, true), Some(6.0),
        ["hooks, statistics off", "one more layer with a completion hook"]),
    of("hooks", (COUNTS, false), None,
        ["hooks, counts", "one more layer with a completion hook, counts on"]),
];
