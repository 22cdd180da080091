//! Finds how many iterations fill a run, and makes runs shorter when ten rounds would not fit the
//! budget. The runs that it takes for that also warm the cases up; none of them is counted.

use super::case::{Purpose, Stopped, iterate, sample};
use super::{Case, Control, Length, Meter, Phase, Progress, RunLength, Sample, Settings};

/// The lengths of all cases' runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunPlan {
    /// In the order of the cases.
    pub lengths: Vec<RunLength>,
    /// The wall time that calibrated runs were made for, ns.
    pub run_ns: u64,
}

/// One iteration in so many more is a warm-up.
pub const WARM_UP_SHARE: u64 = 20;

/// A trial run is long enough to be believed when it takes this share of a run.
pub const TRIAL_SHARE: u64 = 10;

/// No trial has to be longer to be believed, ns.
const TRIAL_NS_MAX: u64 = 20_000_000;

/// A trial that is this many times as long as it has to be is not believed at once: it would make
/// all runs of its case too short.
const SURPRISING: u64 = 2;

/// It is repeated once, and again so often while that takes no longer than this, ns: on a busy
/// machine a thread may wait for a core some milliseconds several times in a row. The shortest
/// counts.
const DOUBTS: u32 = 3;
const DOUBT_NS: u64 = 40_000_000;

/// The trial of work that several threads share is repeated with so many times the iterations, so
/// often at most.
const PROBE: u64 = 4;
const PROBES_MAX: u32 = 8;

/// The same where trials are late: half as many runs reach as far.
const PROBE_LATE: u64 = PROBE * PROBE;
const PROBES_LATE_MAX: u32 = PROBES_MAX / 2;

/// A late trial that takes this long is believed, ns: a longer one would take too much of what is
/// left.
const PROBED_LATE_NS_MAX: u64 = 100_000_000;

/// No trial has more iterations, so that work that takes no time at all ends.
const ITERATIONS_MAX: u64 = 1 << 40;

/// Measures the cost of each case's iteration and plans the runs. The last trial of each case is
/// put into `trials`: it is all that there is of it if another case fails now.
pub(super) fn plan(
    cases: &mut [Case<'_>],
    settings: &Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
    trials: &mut Vec<(usize, Sample)>,
) -> Result<RunPlan, Box<Stopped>> {
    if settings.lengths.len() == cases.len() {
        let known = cases.iter().zip(&settings.lengths);
        let lengths: Vec<RunLength> = known.map(|(case, known)| fitted(case, *known)).collect();
        for (case, length) in cases.iter_mut().zip(&lengths) {
            // The first run of a process must not be the one that loads its code and its data.
            iterate(case, length.warm_up.max(case.step))?;
        }
        let run_ns = settings.run_ns;
        return Ok(RunPlan { lengths, run_ns });
    }
    let started_ns = meter.now_ns();
    let guess_ns = fitting_run_ns(settings, cases.len() as f64, 0.0, 0);
    let total = cases.len() as u64;
    let mut costs = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter_mut().enumerate() {
        if control.is_cancelled() {
            let unknown = Cost {
                iteration_ns: 1.0,
                around_ns: 0.0,
            };
            costs.resize(total as usize, unknown);
            break;
        }
        (control.progress)(&Progress {
            phase: Phase::Calibrating,
            case: &case.name,
            done: index as u64,
            total,
        });
        // On a busy machine trials take many times as long as they should. Then the rest get one
        // each; lengths that are too short are mended after the process.
        let spent_ns = meter.now_ns().saturating_sub(started_ns);
        let late = settings
            .budget_ns
            .is_some_and(|budget_ns| spent_ns > budget_ns / 2);
        let enough_ns = match late {
            true => 0,
            false => (guess_ns / TRIAL_SHARE).min(TRIAL_NS_MAX),
        };
        let (cost, trial) = cost(case, enough_ns, meter)?;
        costs.push(cost);
        trials.push((index, trial));
    }
    let spent_ns = meter.now_ns().saturating_sub(started_ns);
    let run_ns = run_ns(cases, &costs, settings, spent_ns);
    let lengths = cases
        .iter()
        .zip(&costs)
        .map(|(case, cost)| length(case, cost.iteration_ns, run_ns));
    Ok(RunPlan {
        lengths: lengths.collect(),
        run_ns,
    })
}

/// The length of the runs that are not fixed. Cases whose work ends earlier leave their time to the
/// others, so the length grows until no more of them end within it.
fn run_ns(cases: &[Case<'_>], costs: &[Cost], settings: &Settings, spent_ns: u64) -> u64 {
    let mut run_ns = 0;
    loop {
        let (mut calibrated, mut fixed_ns) = (0.0, 0.0);
        for (case, cost) in cases.iter().zip(costs) {
            // Once for the warm-up, once for the run.
            fixed_ns += 2.0 * cost.around_ns;
            let step_ns = cost.iteration_ns * case.step as f64;
            let whole_ns = |iterations: u64| cost.iteration_ns * iterations as f64;
            match case.length {
                Length::Exactly {
                    warm_up,
                    iterations,
                } => fixed_ns += whole_ns(warm_up + iterations),
                Length::AtMost(iterations) if whole_ns(iterations) <= run_ns as f64 => {
                    fixed_ns += whole_ns(iterations + iterations / WARM_UP_SHARE);
                }
                // A run cannot be shorter than one step.
                _ if step_ns > settings.run_ns as f64 => fixed_ns += 2.0 * step_ns,
                _ => calibrated += 1.0,
            }
        }
        let longer = fitting_run_ns(settings, calibrated, fixed_ns, spent_ns);
        if longer <= run_ns {
            return run_ns;
        }
        run_ns = longer;
    }
}

/// The length of runs with which the fewest rounds fit into the rest of the budget.
fn fitting_run_ns(settings: &Settings, calibrated: f64, fixed_ns: f64, spent_ns: u64) -> u64 {
    let Some(budget_ns) = settings.budget_ns else {
        return settings.run_ns;
    };
    let left_ns = budget_ns.saturating_sub(spent_ns) as f64;
    let per_round_ns = left_ns / settings.rounds_planned.max(1) as f64 - fixed_ns;
    // The warm-up of each run, and a little for what happens between runs.
    let share = 1.05 * (1.0 + 1.0 / WARM_UP_SHARE as f64);
    let run_ns = (per_round_ns / (calibrated.max(1.0) * share)).max(0.0) as u64;
    run_ns.clamp(settings.run_ns_min.min(settings.run_ns), settings.run_ns)
}

/// The cost of a case's runs.
#[derive(Clone, Copy)]
struct Cost {
    /// One iteration by the case's own clock, ns.
    iteration_ns: f64,
    /// The time of a run beside that (threads to start), ns.
    around_ns: f64,
}

/// Longer trials of work that several threads share. Threads that start apart on a busy machine
/// take long for nothing: several times the work then takes hardly longer, and the trial has to be
/// longer to be believed.
struct Probes {
    /// How many times the iterations of the trial before.
    factor: u64,
    /// So many more at most.
    left: u32,
}

impl Probes {
    /// Those of a case whose trials need `enough_ns`: fewer and longer ones where trials are late.
    fn of(enough_ns: u64) -> Self {
        let (factor, left) = match enough_ns {
            0 => (PROBE_LATE, PROBES_LATE_MAX),
            _ => (PROBE, PROBES_MAX),
        };
        Self { factor, left }
    }

    /// The wall time of a longer trial, ns. One that may be long by accident alone is repeated, and
    /// the shorter counts: the trial before was `doubted`, or this one is not as much longer as its
    /// work is.
    fn run_ns(
        &self,
        case: &mut Case<'_>,
        iterations: u64,
        before_ns: u64,
        doubted: bool,
        meter: &dyn Meter,
    ) -> Result<u64, Box<Stopped>> {
        let longer_ns = sample(case, iterations, meter, Purpose::Trial)?.wall_ns;
        let quarter_ns = self.factor * before_ns / 4;
        let as_expected = (3 * quarter_ns..=5 * quarter_ns).contains(&longer_ns);
        let believed = longer_ns >= self.factor / 2 * before_ns;
        if believed && (doubted || !as_expected) {
            let again_ns = sample(case, iterations, meter, Purpose::Trial)?.wall_ns;
            return Ok(longer_ns.min(again_ns));
        }
        Ok(longer_ns)
    }
}

/// Finds the cost in trials that grow until one takes `enough_ns` by the case's own clock.
fn cost(
    case: &mut Case<'_>,
    enough_ns: u64,
    meter: &dyn Meter,
) -> Result<(Cost, Sample), Box<Stopped>> {
    let most = match case.length {
        Length::AtMost(most) => most.min(ITERATIONS_MAX),
        // No trial needs to be longer than the run.
        Length::Exactly { iterations, .. } => iterations.clamp(1, ITERATIONS_MAX),
        Length::Calibrated => ITERATIONS_MAX,
    };
    // A trial has whole steps, so the longest is no longer than these.
    let most = in_steps(most, case.step);
    let mut iterations = case.step;
    let (mut shortest_ns, mut doubts, mut doubted_ns) = (u64::MAX, 0, 0);
    let mut probes = Probes::of(enough_ns);
    loop {
        let before_ns = meter.now_ns();
        let trial = sample(case, iterations, meter, Purpose::Trial)?;
        let around_ns = meter
            .now_ns()
            .saturating_sub(before_ns)
            .saturating_sub(trial.wall_ns);
        shortest_ns = shortest_ns.min(trial.wall_ns);
        // One that is much longer than expected may have been interrupted: once more, then.
        doubted_ns += trial.wall_ns;
        let may_doubt =
            enough_ns > 0 && (doubts == 0 || (doubts < DOUBTS && doubted_ns < DOUBT_NS));
        if shortest_ns / SURPRISING > enough_ns && may_doubt {
            doubts += 1;
            continue;
        }
        if shortest_ns >= enough_ns || iterations >= most {
            let per_iteration_ns = |ns: u64, iterations: u64| ns as f64 / iterations as f64;
            let mut iteration_ns = per_iteration_ns(shortest_ns, iterations);
            let probe = in_steps(iterations.saturating_mul(probes.factor), case.step);
            let affordable = enough_ns > 0 || shortest_ns < PROBED_LATE_NS_MAX;
            if case.step > 1 && probes.left > 0 && probe <= most && affordable {
                probes.left -= 1;
                let longer_ns = probes.run_ns(case, probe, shortest_ns, doubts > 0, meter)?;
                if longer_ns < probes.factor / 2 * shortest_ns {
                    iterations = probe;
                    (shortest_ns, doubts, doubted_ns) = (longer_ns, 1, 0);
                    continue;
                }
                iteration_ns = iteration_ns.min(per_iteration_ns(longer_ns, probe));
            }
            let cost = Cost {
                iteration_ns: iteration_ns.max(1e-3),
                around_ns: around_ns as f64,
            };
            return Ok((cost, trial));
        }
        let missing = enough_ns as f64 / shortest_ns.max(1) as f64;
        (shortest_ns, doubts, doubted_ns) = (u64::MAX, 0, 0);
        // The first trials are cold; so do not trust them for more than a factor of 20.
        let grown = iterations as f64 * (missing * 1.2).clamp(2.0, 20.0);
        iterations = in_steps(grown as u64, case.step).min(most);
    }
}

/// How long a run of a case is, or its limit.
enum Bound {
    Exactly(RunLength),
    AtMost(u64),
}

impl Bound {
    fn of(case: &Case<'_>) -> Self {
        match case.length {
            Length::Exactly {
                warm_up,
                iterations,
            } => Self::Exactly(RunLength {
                warm_up,
                iterations,
            }),
            Length::AtMost(most) => Self::AtMost(most),
            Length::Calibrated => Self::AtMost(u64::MAX),
        }
    }
}

fn length(case: &Case<'_>, cost_ns: f64, run_ns: u64) -> RunLength {
    match Bound::of(case) {
        Bound::Exactly(length) => length,
        Bound::AtMost(most) => {
            let iterations = in_steps((run_ns as f64 / cost_ns).min(most as f64) as u64, case.step);
            RunLength {
                warm_up: in_steps(iterations / WARM_UP_SHARE, case.step),
                iterations,
            }
        }
    }
}

/// A length that another process found, perhaps shortened since, as the case can have it.
fn fitted(case: &Case<'_>, known: RunLength) -> RunLength {
    match Bound::of(case) {
        Bound::Exactly(length) => length,
        Bound::AtMost(most) => RunLength {
            warm_up: in_steps(known.warm_up, case.step),
            iterations: in_steps(known.iterations.min(most), case.step),
        },
    }
}

/// The nearest multiple of `step` that is not above `iterations`, one step at least.
fn in_steps(iterations: u64, step: u64) -> u64 {
    (iterations / step).max(1) * step
}
