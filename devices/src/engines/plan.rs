//! How many requests a run has at each depth.
//!
//! Runs are limited by their size: never chopped when a time is over, since then the requests that
//! take longest would not count. Where the time is limited, runs are made smaller beforehand, and a
//! depth for which even the smallest runs take too long is left out.

use super::methods::Method;
use serde::{Deserialize, Serialize};
use ugeom_measure::units::duration_human;

/// A run of the fastest method lasts so long at least where there is time, ns.
pub(super) const RUN_NS: u64 = 2_000_000_000;

/// The share of what is left of a budget that goes to the job; the rest is for what engines cost by
/// themselves, for the ends of runs, and for a device that becomes slower.
const JOB_SHARE: f64 = 0.6;

/// A depth is left out when its smallest runs would take more than this share of the job's time,
/// and there are others.
const DEPTH_SHARE: f64 = 0.8;

/// A depth, and the time that a request takes there, ns, for each method that is measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Depth {
    pub depth: u32,
    pub request_ns: Vec<(Method, f64)>,
}

impl Depth {
    /// The time of a method; none where it is not measured.
    pub fn of(&self, method: Method) -> Option<f64> {
        let found = self.request_ns.iter().find(|(known, _)| *known == method);
        found.map(|(_, ns)| *ns)
    }

    fn times_ns(&self) -> impl Iterator<Item = f64> {
        self.request_ns.iter().map(|(_, ns)| *ns)
    }
}

/// The requests of a run at each depth that is measured, in the order of the depths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnginesPlan {
    /// A depth, and the requests of its runs.
    pub runs: Vec<(u32, u64)>,
    /// The cases left out, with reasons.
    pub left_out: Vec<String>,
}

/// Whole runs: as many requests as the size has blocks, more where that is over at once.
pub(super) fn whole(depths: &[Depth], blocks: u64) -> EnginesPlan {
    let run = |depth: &Depth| {
        let fastest = depth.times_ns().fold(f64::MAX, f64::min);
        let long = (RUN_NS as f64 / fastest.max(1.0)) as u64;
        (depth.depth, blocks.max(long).max(u64::from(depth.depth)))
    };
    EnginesPlan {
        runs: depths.iter().map(run).collect(),
        left_out: Vec::new(),
    }
}

/// Runs of which the fewest rounds fit into a budget. A depth has at least as many requests as it
/// has at a time; those for which that is little share the rest.
pub(super) fn within(depths: &[Depth], blocks: u64, budget_ns: u64, rounds: u64) -> EnginesPlan {
    let all_ns = budget_ns as f64 * JOB_SHARE / rounds.max(1) as f64;
    let mut deep_first: Vec<&Depth> = depths.iter().collect();
    deep_first.sort_by_key(|depth| std::cmp::Reverse(depth.depth));
    let (mut left_ns, mut others) = (all_ns, depths.len());
    let mut plan = EnginesPlan::default();
    for one in deep_first {
        let depth = one.depth;
        let each_ns = one.times_ns().sum::<f64>().max(1.0);
        let least_ns = each_ns * f64::from(depth);
        if others > 1 && least_ns > all_ns * DEPTH_SHARE {
            let rounds_ns = least_ns * rounds as f64;
            plan.left_out.push(format!(
                "queue depth {depth}: {rounds} rounds of its smallest runs take {} (--full \
                 measures them)",
                duration_human(rounds_ns)
            ));
            others -= 1;
            continue;
        }
        let fit = (left_ns / others as f64 / each_ns) as u64;
        let requests = fit.max(u64::from(depth));
        left_ns = (left_ns - requests as f64 * each_ns).max(0.0);
        others -= 1;
        plan.runs.push((depth, requests));
    }
    let order = |depth: u32| depths.iter().position(|one| one.depth == depth);
    plan.runs.sort_by_key(|(depth, _)| order(*depth));
    let short = plan.runs.iter().filter(|(_, requests)| *requests < blocks);
    let short: Vec<String> = short
        .map(|(depth, n)| format!("{n} at queue depth {depth}"))
        .collect();
    if !short.is_empty() {
        plan.left_out.push(format!(
            "runs of {blocks} requests: shortened to {} (--full keeps them)",
            short.join(", ")
        ));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_testkit::begins;

    fn depths(request_ns: f64) -> Vec<Depth> {
        let depth = |depth| Depth {
            depth,
            request_ns: Method::ALL[..4]
                .iter()
                .map(|method| (*method, request_ns))
                .collect(),
        };
        [100, 1000, 10_000].map(depth).to_vec()
    }

    #[test]
    fn whole_runs_have_the_whole_size_and_last_two_seconds() {
        let slow = whole(&depths(100_000.0), 65_536);
        assert_eq!(slow.runs, [(100, 65_536), (1000, 65_536), (10_000, 65_536)]);
        let fast = whole(&depths(10_000.0), 65_536);
        assert_eq!(fast.runs[0], (100, 200_000));
        assert!(fast.left_out.is_empty());
    }

    #[test]
    fn a_run_has_at_least_as_many_requests_as_there_are_at_a_time() {
        let fast = within(&depths(1000.0), 65_536, 10_000_000_000, 10);
        assert_eq!(fast.runs, [(100, 50_000), (1000, 50_000), (10_000, 50_000)]);
        assert!(
            fast.left_out[0]
                .contains("shortened to 50000 at queue depth 100, 50000 at queue depth 1000,")
        );
        // 4 methods at 10 us take 0.4 s for 10,000 requests, of 0.6 s for a round.
        let slow = within(&depths(9000.0), 65_536, 10_000_000_000, 10);
        assert_eq!(slow.runs, [(100, 3333), (1000, 3333), (10_000, 10_000)]);
        assert!(slow.left_out[0].contains("10000 at queue depth 10000"));
    }

    #[test]
    fn a_depth_that_does_not_fit_is_left_out_and_said() {
        let slow = within(&depths(20_000.0), 65_536, 10_000_000_000, 10);
        assert_eq!(slow.runs, [(100, 3750), (1000, 3750)]);
        begins(
            &slow.left_out[0],
            "queue depth 10000: 10 rounds of its smallest",
        );
        let alone = within(&depths(20_000.0)[2..], 65_536, 1, 10);
        assert_eq!(alone.runs, [(10_000, 10_000)]);
    }
}
