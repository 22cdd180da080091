//! Runs the rounds.

use super::calibrate;
use super::case::{Purpose, Stopped, iterate, sample};
use super::{
    Case, Control, Ended, Failure, Measured, Meter, Phase, Progress, Reference, Round, RunLength,
    Sample, Settings, Shortened, Unfinished, stop,
};
use crate::HarnessError;

/// Measures the cases in rounds until they are precise, or a limit is reached.
///
/// # Errors
/// The error of the work of a case.
pub fn run(
    cases: &mut [Case<'_>],
    settings: &Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Measured, HarnessError> {
    match run_keeping(cases, settings, meter, control) {
        (_, Some(error)) => Err(error),
        (measured, None) => Ok(measured),
    }
}

/// Measures the cases, and keeps the measurements when one of them fails: the second value is
/// the error, [`Measured::failure`] says the same for a saved result.
pub fn run_keeping(
    cases: &mut [Case<'_>],
    settings: &Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> (Measured, Option<HarnessError>) {
    let mut running = Running {
        started_ns: meter.now_ns(),
        names: cases.iter().map(|case| case.name.clone()).collect(),
        rounds: Vec::new(),
        unfinished: None,
        run_ns: settings.run_ns,
        lengths: Vec::new(),
        repeats: Repeats::of(settings, cases.len()),
    };
    let outcome = running.go(cases, settings, meter, control);
    let (ended, stopped) = match outcome {
        Ok(ended) => (ended, None),
        Err(stopped) => (Ended::Failed, Some(*stopped)),
    };
    let precision = stop::worst(&running.rounds, &running.names, settings.confidence);
    let imprecise = precision
        .as_ref()
        .is_none_or(|worst| worst.relative > settings.precision);
    let measured = Measured {
        cases: running.names,
        lengths: running.lengths,
        repeated: running.repeats.done,
        rounds: running.rounds,
        ended,
        shortened: Shortened {
            run_ns_wanted: settings.run_ns,
            run_ns: running.run_ns,
            rounds: ended == Ended::Budget && imprecise,
        },
        precision,
        elapsed_ns: meter.now_ns().saturating_sub(running.started_ns),
        unfinished: running.unfinished,
        failure: stopped.as_ref().map(|stopped| Failure {
            case: stopped.case.clone(),
            error: stopped.error.to_string(),
        }),
    };
    (measured, stopped.map(|stopped| stopped.error))
}

/// A measurement that runs.
struct Running {
    started_ns: u64,
    names: Vec<String>,
    rounds: Vec<Round>,
    unfinished: Option<Unfinished>,
    run_ns: u64,
    lengths: Vec<RunLength>,
    repeats: Repeats,
}

/// The reference loop, and the runs that may be repeated because of it.
struct Repeats {
    reference: Reference,
    /// The fastest decile of earlier processes, ns.
    known_ns: Option<u64>,
    left: u64,
    done: u64,
}

/// A run is repeated so often at most.
const REPEATS_EACH: u32 = 2;

impl Repeats {
    fn of(settings: &Settings, cases: usize) -> Self {
        Self {
            reference: Reference::default(),
            known_ns: settings.reference_ns,
            // One more round's worth of runs: a machine that is always busy stays within its time.
            left: if settings.repeat_disturbed {
                cases as u64
            } else {
                0
            },
            done: 0,
        }
    }

    /// Whether a run of these readings is to be done again.
    fn again(&mut self, sample: &Sample, tries: u32) -> bool {
        self.reference.add(sample);
        if self.left == 0 || tries >= REPEATS_EACH {
            return false;
        }
        let again = !self
            .reference
            .judge()
            .knowing(self.known_ns)
            .is_valid(sample);
        self.left -= u64::from(again);
        self.done += u64::from(again);
        again
    }
}

impl Running {
    fn go(
        &mut self,
        cases: &mut [Case<'_>],
        settings: &Settings,
        meter: &dyn Meter,
        control: &mut Control<'_>,
    ) -> Result<Ended, Box<Stopped>> {
        let mut trials = Vec::new();
        let plan = match calibrate::plan(cases, settings, meter, control, &mut trials) {
            Ok(plan) => plan,
            Err(stopped) => {
                self.keep(true, trials);
                return Err(stopped);
            }
        };
        self.run_ns = plan.run_ns;
        self.lengths.clone_from(&plan.lengths);
        let mut random = fastrand::Rng::with_seed(settings.seed);
        let first_ns = meter.now_ns();
        loop {
            let elapsed_ns = meter.now_ns().saturating_sub(first_ns);
            let spent_ns = meter.now_ns().saturating_sub(self.started_ns);
            let next_ns = elapsed_ns / (self.rounds.len() as u64).max(1);
            if let Some(reason) = stop::reason(&self.rounds, settings, spent_ns, next_ns) {
                return Ok(reason);
            }
            let total = planned_rounds(settings, &self.rounds, spent_ns, next_ns);
            let mut order: Vec<usize> = (0..cases.len()).collect();
            random.shuffle(&mut order);
            let null_floor = meter.null_floor();
            let at = (self.rounds.len() as u64, total);
            let mut done = Vec::with_capacity(cases.len());
            let mut turn = Turn {
                lengths: &plan.lengths,
                at,
                random: &mut random,
                repeats: &mut self.repeats,
            };
            let whole = turn.run(cases, &order, meter, control, &mut done);
            if !matches!(whole, Ok(true)) {
                if self.rounds.is_empty() && done.is_empty() {
                    self.keep(true, trials);
                } else {
                    self.keep(false, done);
                }
                return whole.map(|_| Ended::Cancelled);
            }
            done.sort_by_key(|(index, _)| *index);
            let samples = done.into_iter().map(|(_, sample)| sample).collect();
            self.rounds.push(Round {
                order,
                samples,
                null_floor,
            });
        }
    }

    fn keep(&mut self, calibrating: bool, samples: Vec<(usize, Sample)>) {
        if !samples.is_empty() {
            self.unfinished = Some(Unfinished {
                calibrating,
                samples,
            });
        }
    }
}

/// How many rounds there will be if precision does not end it earlier.
fn planned_rounds(settings: &Settings, rounds: &[Round], spent_ns: u64, next_ns: u64) -> u64 {
    let fit = match settings.budget_ns {
        Some(budget_ns) if next_ns > 0 => {
            rounds.len() as u64 + budget_ns.saturating_sub(spent_ns) / next_ns
        }
        Some(_) => settings.rounds_min,
        None => settings.rounds_max,
    };
    fit.clamp(
        settings.rounds_min,
        settings.rounds_max.max(settings.rounds_min),
    )
}

struct Turn<'a> {
    lengths: &'a [RunLength],
    /// The number of this round and of all.
    at: (u64, u64),
    random: &'a mut fastrand::Rng,
    repeats: &'a mut Repeats,
}

impl Turn<'_> {
    /// Runs every case once; false when the user asked to stop meanwhile. The samples are in the
    /// order in which they ran.
    fn run(
        &mut self,
        cases: &mut [Case<'_>],
        order: &[usize],
        meter: &dyn Meter,
        control: &mut Control<'_>,
        done: &mut Vec<(usize, Sample)>,
    ) -> Result<bool, Box<Stopped>> {
        let count = cases.len() as u64;
        for (position, index) in order.iter().copied().enumerate() {
            if control.is_cancelled() {
                return Ok(false);
            }
            let case = &mut cases[index];
            (control.progress)(&Progress {
                phase: Phase::Measuring,
                case: &case.name,
                done: self.at.0 * count + position as u64,
                total: self.at.1 * count,
            });
            let sample = self.one(case, &self.lengths[index], meter)?;
            // A run that was interrupted is shorter than the others of its case.
            if control.is_cancelled() {
                return Ok(false);
            }
            done.push((index, sample));
        }
        Ok(true)
    }

    /// A run, with its buffer and its threads elsewhere than in the last; once more where a core
    /// was slow.
    fn one(
        &mut self,
        case: &mut Case<'_>,
        length: &RunLength,
        meter: &dyn Meter,
    ) -> Result<Sample, Box<Stopped>> {
        let mut tries = 0;
        loop {
            if let Some(placement) = &case.placement {
                placement.shuffle(self.random);
            }
            if let Some(seats) = &case.seats {
                seats.shuffle(self.random);
            }
            if length.warm_up > 0 {
                iterate(case, length.warm_up)?;
            }
            let sample = sample(case, length.iterations, meter, Purpose::Sample)?;
            if !self.repeats.again(&sample, tries) {
                return Ok(sample);
            }
            tries += 1;
        }
    }
}
