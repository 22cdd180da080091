//! Runs of equal length for both sides.
//!
//! A run that is interrupted by other work takes longer by a slice of time, and the longer a run,
//! the likelier that is. Were the runs of one side shorter than those of the other, because its
//! length was found while other work disturbed it, most of its runs would escape where most of the
//! other's do not, and the same thing would look faster than itself. So the cost of an iteration is
//! the least of several trials, which nothing disturbed, and sides that cost about the same run
//! exactly as many iterations: then nothing tells A from A.

use ugeom_harness::HarnessError;
use ugeom_harness::rounds::{TRIAL_SHARE, WARM_UP_SHARE};
use ugeom_harness::{Case, Control, Length};

/// Trials of each case, beside those that find how many iterations a trial needs.
const TRIALS: usize = 4;

/// Sides whose costs differ by less than this factor run as many iterations.
const ALIKE: f64 = 2.0;

/// No trial has more iterations, so that work that takes no time at all ends.
const ITERATIONS_MAX: u64 = 1 << 32;

/// Gives the cases whose length is open a fixed one.
pub(super) fn level(
    cases: &mut [Case<'_>],
    run_ns: u64,
    control: &Control<'_>,
) -> Result<(), HarnessError> {
    let mut open: Vec<&mut Case<'_>> = cases
        .iter_mut()
        .filter(|case| case.length == Length::Calibrated)
        .collect();
    let mut trials = Vec::new();
    for case in &mut open {
        trials.push(first_trials(case, run_ns / TRIAL_SHARE, control)?);
    }
    for _ in 0..TRIALS {
        for (case, trial) in open.iter_mut().zip(&mut trials) {
            if control.is_cancelled() {
                return Ok(());
            }
            let cost_ns = cost_ns(case, trial.iterations)?;
            trial.cost_ns = trial.cost_ns.min(cost_ns);
        }
    }
    let costs = || trials.iter().map(|trial| trial.cost_ns);
    let (least, most) = (
        costs().fold(f64::INFINITY, f64::min),
        costs().fold(0.0, f64::max),
    );
    for (case, trial) in open.into_iter().zip(&trials) {
        let cost_ns = if most < least * ALIKE {
            most
        } else {
            trial.cost_ns
        };
        let iterations = ((run_ns as f64 / cost_ns.max(1e-3)) as u64).max(1);
        case.length = Length::Exactly {
            warm_up: (iterations / WARM_UP_SHARE).max(1),
            iterations,
        };
    }
    Ok(())
}

/// The measured cost of a case.
struct Trial {
    /// Iterations that take long enough.
    iterations: u64,
    /// The least time that one took, ns.
    cost_ns: f64,
}

/// Trials that grow until one takes `enough_ns`.
fn first_trials(
    case: &mut Case<'_>,
    enough_ns: u64,
    control: &Control<'_>,
) -> Result<Trial, HarnessError> {
    let (mut iterations, mut least_ns) = (1, f64::INFINITY);
    loop {
        let cost_ns = cost_ns(case, iterations)?;
        least_ns = cost_ns.min(least_ns);
        // By the least, so that no interruption passes for a long run.
        let long = least_ns * iterations as f64 >= enough_ns as f64;
        if long || iterations >= ITERATIONS_MAX || control.is_cancelled() {
            return Ok(Trial {
                iterations,
                cost_ns: least_ns,
            });
        }
        let missing = enough_ns as f64 / (least_ns * iterations as f64).max(1.0);
        iterations = (iterations as f64 * (missing * 1.2).clamp(2.0, 20.0)) as u64;
    }
}

fn cost_ns(case: &mut Case<'_>, iterations: u64) -> Result<f64, HarnessError> {
    let took_ns = (case.run)(iterations)?.ns_total;
    Ok(took_ns as f64 / iterations as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_harness::RunResult;

    fn leveled(costs_ns: [u64; 3]) -> Vec<Length> {
        let mut random = fastrand::Rng::with_seed(6);
        let mut cases: Vec<Case<'_>> = costs_ns
            .into_iter()
            .map(|cost_ns| {
                let mut random = random.fork();
                // Two runs in three are interrupted for the length of many.
                Case::new("case", move |iterations| {
                    let stray = u64::from(random.u8(0..3) > 0) * 4_000_000;
                    Ok(RunResult::taking(iterations * cost_ns + stray))
                })
            })
            .collect();
        let control = Control::silent();
        level(&mut cases, 2_000_000, &control).unwrap();
        cases.iter().map(|case| case.length).collect()
    }

    #[test]
    fn sides_that_cost_about_the_same_run_as_many_iterations() {
        let lengths = leveled([100, 120, 100]);
        assert!(
            lengths.iter().all(|length| *length == lengths[0]),
            "{lengths:?}"
        );
        assert!(matches!(lengths[0], Length::Exactly { .. }));
    }

    #[test]
    fn sides_that_cost_something_else_run_as_long() {
        let lengths = leveled([100, 10_000, 100]);
        assert_eq!(lengths[0], lengths[2]);
        let iterations = |length: &Length| match length {
            Length::Exactly { iterations, .. } => *iterations,
            _ => 0,
        };
        assert!(
            iterations(&lengths[0]) > 20 * iterations(&lengths[1]),
            "{lengths:?}"
        );
    }
}
