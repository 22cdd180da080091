//! One measurement in several fresh processes, one after the other. Memory is laid out anew in
//! each, so that their spread shows what one process cannot.
//!
//! The first process finds the lengths of the runs; the others take them over. Each has its share
//! of what is left of the budget. Where time runs short, rounds are left out first, down to four;
//! then runs are made shorter, to a quarter; then processes are left out, but never below
//! six; then runs are made as short as they can be, and the last rounds are left out.

use crate::document::Document;
use crate::rounds::{
    Control, Ended, Failure, Measured, Meter, Phase, Progress, RunLength, Sample, Settings,
    WARM_UP_SHARE,
};
use crate::{HarnessError, Reference};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use ugeom_measure::units::duration_human;

/// Fewer processes give no interval of 95 %.
const PROCESSES_MIN: u32 = ugeom_measure::center::OBSERVATIONS_MIN as u32;

/// Where there is little time: a family of up to six comparisons can be judged.
pub const PROCESSES_SHORT: u32 = 8;

/// Processes where the time is the usual one: the smallest number with an interval of 96 % that
/// leaves out two values on each side.
pub const PROCESSES: u32 = 12;

/// The most processes that `--processes` accepts.
pub const PROCESSES_MAX: u32 = 100;

/// The time that an experiment may take when nothing else is said, ns.
pub const BUDGET_NS: u64 = 15_000_000_000;

/// Longer budgets make more processes, one more for each of these, ns.
const PROCESS_NS: u64 = BUDGET_NS / PROCESSES as u64;

/// Budgets are for processes that take at least this, ns; below it there are fewer of them.
const PROCESS_NS_MIN: u64 = 900_000_000;

const PROCESSES_FULL: u32 = 20;

/// How a measurement is spread over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Processes that measure, one after the other.
    pub processes: u32,
    /// Measured rounds of each process.
    pub rounds: u64,
    /// The wall time of a run where there is time, ns.
    pub run_ns: u64,
    /// The time that everything may take, ns.
    pub budget_ns: Option<u64>,
    /// The seed of the first process; the others count on.
    pub seed: u64,
}

/// How many processes fit a budget; none for no limit.
pub fn processes_for(budget_ns: Option<u64>) -> u32 {
    let Some(budget_ns) = budget_ns else {
        return PROCESSES_FULL;
    };
    let each_ns = match budget_ns < BUDGET_NS {
        true => PROCESS_NS_MIN,
        false => PROCESS_NS,
    };
    let fit = u32::try_from(budget_ns / each_ns).unwrap_or(u32::MAX);
    let most = if budget_ns < BUDGET_NS {
        PROCESSES
    } else {
        5 * PROCESSES
    };
    fit.clamp(PROCESSES_SHORT, most)
}

/// The task of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// The seed of its order of cases.
    pub seed: u64,
    /// Rounds that it measures.
    pub rounds: u64,
    /// The wall time of a run where there is time, ns.
    pub run_ns: u64,
    /// The time that it may take, ns.
    pub budget_ns: Option<u64>,
    /// The lengths of runs that the first process found.
    pub lengths: Vec<RunLength>,
    /// The fastest decile of the reference loop in earlier processes, ns.
    pub reference_ns: Option<u64>,
}

/// Rounds of a process for which runs are shortened, where it is to do that many at all: three have
/// a middle one, and one is lost where the machine becomes busier.
const ROUNDS_MIN: u64 = 4;

/// The shortest run that a budget may force, ns: the clock is read twice a run.
pub const RUN_NS_MIN: u64 = 500_000;

impl Share {
    /// The only process of a measurement. Its rounds are the observations.
    pub fn alone(seed: u64, budget_ns: Option<u64>) -> Self {
        let settings = Settings::default();
        Self {
            number: 0,
            of: 1,
            seed,
            rounds: settings.rounds_min,
            run_ns: settings.run_ns,
            budget_ns,
            lengths: Vec::new(),
            reference_ns: None,
        }
    }

    /// How the process measures; what it took to set up counts against its time.
    pub fn settings(&self, set_up_ns: u64) -> Settings {
        Settings {
            seed: self.seed,
            run_ns: self.run_ns,
            run_ns_min: RUN_NS_MIN.min(self.run_ns),
            // Runs are as long as four rounds allow. A machine that became busy since leaves fewer.
            rounds_min: if self.of == 1 { self.rounds } else { 1 },
            rounds_max: self.rounds,
            rounds_planned: self.rounds,
            precision: 0.0,
            budget_ns: self.budget_ns.map(|ns| ns.saturating_sub(set_up_ns)),
            repeat_disturbed: true,
            lengths: self.lengths.clone(),
            reference_ns: self.reference_ns,
            ..Settings::default()
        }
    }
}

/// Measures in processes. `one` runs a process with its share to its end. When the user stops it,
/// or when a process fails after others, the measurements until then are the result. The last of
/// them then has the error of the process that failed.
///
/// # Errors
/// The error of `one` in the first process, unless it was stopped; [`HarnessError::Document`] when
/// two processes measured different cases.
pub fn run<S>(
    protocol: &Protocol,
    meter: &dyn Meter,
    control: &mut Control<'_>,
    mut one: impl FnMut(&Share, &mut Control<'_>) -> Result<Document<S>, HarnessError>,
) -> Result<Vec<Document<S>>, HarnessError> {
    let started_ns = meter.now_ns();
    let mut clock = Spent::default();
    let mut done: Vec<Document<S>> = Vec::new();
    let (mut lengths, mut run_ns, mut reference_ns) = (Vec::<RunLength>::new(), 0, None);
    for number in 0..protocol.processes {
        let before_ns = meter.now_ns();
        let left_ns = protocol
            .budget_ns
            .map(|budget_ns| budget_ns.saturating_sub(before_ns - started_ns));
        let of = clock.processes(left_ns, protocol);
        if control.is_cancelled() || number >= of {
            break;
        }
        let budget_ns = left_ns.map(|ns| clock.share(ns, of - number));
        let (scale, rounds) = clock.shortened(budget_ns, protocol.rounds);
        let share = Share {
            number,
            of: protocol.processes,
            seed: protocol.seed.wrapping_add(number.into()),
            rounds,
            run_ns: protocol.run_ns,
            budget_ns,
            lengths: lengths.iter().map(|known| scaled(*known, scale)).collect(),
            reference_ns,
        };
        (control.progress)(&Progress {
            phase: Phase::Measuring,
            case: "fresh processes",
            done: number.into(),
            total: protocol.processes.into(),
        });
        let document = match one(&share, control) {
            Ok(document) => document,
            Err(_) if control.is_cancelled() => break,
            Err(error) => {
                let before = done.last_mut().and_then(|one| one.processes.last_mut());
                let Some(before) = before else { return Err(error) };
                before.failure = Some(Failure {
                    case: format!("process {}", number + 1),
                    error: error.to_string(),
                });
                break;
            }
        };
        if let Some(first) = done.first() {
            same_cases(first, &document)?;
        }
        if let Some(measured) = document.processes.first() {
            let whole_ns = meter.now_ns().saturating_sub(before_ns);
            log::debug!("process {}: {}", number + 1, summary(measured, whole_ns));
            clock.add(whole_ns, measured, scale);
            if lengths.is_empty() {
                lengths.clone_from(&measured.lengths);
                run_ns = measured.shortened.run_ns;
            }
            lengthen(&mut lengths, measured, run_ns);
            let fast_ns = fast_ns(measured);
            reference_ns = reference_ns.into_iter().chain(fast_ns).min();
        }
        let failed = |one: &Measured| matches!(one.ended, Ended::Failed | Ended::Cancelled);
        let ends = document.processes.iter().any(failed);
        done.push(document);
        if ends {
            break;
        }
    }
    Ok(done)
}

/// The measurement of a process, with its time including the start: for `-v`.
fn summary(measured: &Measured, whole_ns: u64) -> String {
    let of_start = whole_ns.saturating_sub(measured.elapsed_ns);
    let [whole, of_start] = [whole_ns, of_start].map(|ns| duration_human(ns as f64));
    format!(
        "{whole}, {of_start} of it to start and prepare; cases: {}, rounds: {}, runs repeated \
         because the core was slow: {}",
        measured.cases.len(),
        measured.rounds.len(),
        measured.repeated
    )
}

/// Makes the runs longer whose fastest one took less than half of its time: where the trials of the
/// first process were interrupted each time, its lengths are too short, and they would be so in
/// every process.
fn lengthen(lengths: &mut [RunLength], measured: &Measured, run_ns: u64) {
    for (case, length) in lengths.iter_mut().enumerate() {
        let samples = measured
            .rounds
            .iter()
            .filter_map(|round| round.samples.get(case));
        let fastest_ns = samples.map(Sample::ns_per_iteration).min_by(f64::total_cmp);
        let Some(fastest_ns) = fastest_ns.filter(|ns| *ns > 0.0) else { continue };
        if fastest_ns * (length.iterations as f64) < run_ns as f64 / 2.0 {
            length.iterations = (run_ns as f64 / fastest_ns) as u64;
            length.warm_up = length.iterations / WARM_UP_SHARE;
        }
    }
}

fn fast_ns(measured: &Measured) -> Option<u64> {
    let samples = measured.rounds.iter().flat_map(|round| &round.samples);
    Reference::of(samples).fast_ns(1)
}

fn same_cases<S>(first: &Document<S>, other: &Document<S>) -> Result<(), HarnessError> {
    let cases = |document: &Document<S>| document.processes.first().map(|one| one.cases.clone());
    if cases(first) == cases(other) {
        return Ok(());
    }
    let problem = "two processes measured different cases".to_owned();
    Err(HarnessError::Document(problem))
}

/// The times of the processes so far.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    /// Beside measuring: starting, setting up, saving; the mean, ns.
    around_ns: u64,
    /// The last round with runs of full length, ns: the machine may be busier than it was before.
    round_ns: u64,
    processes: u64,
}

/// Before processes are left out, runs are made shorter, to this share of their length.
const SCALE_SHORT: f64 = 0.25;

/// Runs are never shorter than this share of the first process's.
const SCALE_MIN: f64 = 1.0 / 16.0;

/// The same length, shortened.
fn scaled(length: RunLength, scale: f64) -> RunLength {
    let short = |iterations: u64| (iterations as f64 * scale) as u64;
    RunLength {
        warm_up: short(length.warm_up),
        iterations: short(length.iterations).max(1),
    }
}

impl Spent {
    fn add(&mut self, whole_ns: u64, measured: &Measured, scale: f64) {
        let around_ns = whole_ns.saturating_sub(measured.elapsed_ns);
        self.around_ns = (self.around_ns * self.processes + around_ns) / (self.processes + 1);
        self.processes += 1;
        let rounds = measured.rounds.len().max(1) as f64;
        self.round_ns = (measured.elapsed_ns as f64 / rounds / scale) as u64;
    }

    /// How many processes there will be in all.
    fn processes(&self, left_ns: Option<u64>, protocol: &Protocol) -> u32 {
        let Some(left_ns) = left_ns.filter(|_| self.processes > 0) else {
            return protocol.processes;
        };
        let rounds = protocol.rounds.min(ROUNDS_MIN) as f64;
        let least_ns = self.around_ns as f64 + rounds * self.round_ns as f64 * SCALE_SHORT;
        let more = (left_ns as f64 / least_ns.max(1.0)) as u64;
        let all = u32::try_from(self.processes + more).unwrap_or(u32::MAX);
        all.max(PROCESSES_MIN).min(protocol.processes)
    }

    /// The time of the next of so many processes, ns.
    fn share(&self, left_ns: u64, processes: u32) -> u64 {
        (left_ns / u64::from(processes.max(1))).saturating_sub(self.around_ns)
    }

    /// By how much the runs of the next process are shortened, and its rounds.
    fn shortened(&self, budget_ns: Option<u64>, rounds: u64) -> (f64, u64) {
        let Some(budget_ns) = budget_ns.filter(|_| self.round_ns > 0) else {
            return (1.0, rounds);
        };
        let wanted_ns = self.round_ns as f64 * rounds.min(ROUNDS_MIN) as f64;
        let scale = budget_ns as f64 / wanted_ns;
        if scale >= SCALE_MIN {
            return (scale.min(1.0), rounds);
        }
        let fit = budget_ns as f64 / (self.round_ns as f64 * SCALE_MIN);
        (SCALE_MIN, (fit as u64).clamp(1, rounds))
    }
}

/// How often a waiting parent looks after its process.
const LOOK: Duration = Duration::from_millis(200);

/// Starts a process, writes `input` to it and returns its output. `waiting` is called a few
/// times a second meanwhile; when it returns true, the process is asked to end (SIGTERM), once.
///
/// # Errors
/// [`HarnessError::Thread`] when it cannot be started or fails, with its last words.
pub fn child(
    mut command: Command,
    input: &str,
    number: u32,
    waiting: &mut dyn FnMut() -> bool,
) -> Result<String, HarnessError> {
    let failed = |problem: String| HarnessError::Thread {
        case: format!("process {}", number + 1),
        problem,
    };
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(|error| failed(error.to_string()))?;
    let (sender, printed) = mpsc::channel();
    let mut asked = false;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A process that does not read its input says itself what is wrong.
            let _ = stdin.map(|mut stdin| stdin.write_all(input.as_bytes()));
        });
        let words = scope.spawn(move || read(stderr));
        scope.spawn(move || sender.send(read(stdout)));
        let text = loop {
            match printed.recv_timeout(LOOK) {
                Ok(text) => break text,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if waiting() && !std::mem::replace(&mut asked, true) {
                        end(&child);
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break String::new(),
            }
        };
        let status = child.wait().map_err(|error| failed(error.to_string()))?;
        let words = words.join().unwrap_or_default();
        if !status.success() {
            return Err(match words.trim().trim_start_matches("ugeom: ") {
                "" => failed(format!("it ended with {status}")),
                words => HarnessError::Worker(words.to_owned()),
            });
        }
        Ok(text)
    })
}

/// Asks a process to end. SIGINT may have reached it from the terminal already, and the second one
/// would end it at once.
fn end(child: &std::process::Child) {
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    // One that has ended meanwhile needs no signal.
    let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
}

fn read(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // A read error keeps the bytes read before it.
    let _ = from.map(|mut from| from.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::rounds::{Reading, Round};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Iterations of a run that the first process found.
    const LENGTH: u64 = 1000;

    /// A clock that processes move.
    #[derive(Default)]
    struct Simulated(Cell<u64>);

    impl Meter for Simulated {
        fn now_ns(&self) -> u64 {
            self.0.get()
        }

        fn read(&self) -> Reading {
            Reading::default()
        }
    }

    fn document(share: &Share, rounds: u64, elapsed_ns: u64) -> Document<()> {
        let round = Round {
            order: vec![0],
            samples: vec![Sample::default()],
            null_floor: None,
        };
        let measured = Measured {
            lengths: vec![RunLength {
                warm_up: 1,
                iterations: LENGTH,
            }],
            elapsed_ns,
            ..Measured::of(vec!["a".to_owned()], vec![round; rounds as usize])
        };
        Document::new("test", Host::now(), share.settings(0), (), measured)
    }

    /// Measures where a round takes `round_ns` and a process as much again around it; returns the
    /// shares and the time.
    fn measured(protocol: &Protocol, round_ns: u64) -> (Vec<Share>, u64) {
        measured_around(protocol, round_ns, |_| round_ns)
    }

    /// The same where the processes take this around their rounds. A round is as long as its runs.
    fn measured_around(
        protocol: &Protocol,
        round_ns: u64,
        around_ns: impl Fn(u32) -> u64,
    ) -> (Vec<Share>, u64) {
        let (clock, mut control) = (Simulated::default(), Control::silent());
        let mut shares = Vec::new();
        let done = run(protocol, &clock, &mut control, |share, _| {
            let settings = share.settings(0);
            let budget_ns = settings.budget_ns.unwrap_or(u64::MAX);
            let length = share.lengths.first().map_or(LENGTH, |one| one.iterations);
            let round_ns = round_ns * length / LENGTH;
            let fit = (budget_ns / round_ns).clamp(settings.rounds_min, settings.rounds_max);
            clock
                .0
                .set(clock.0.get() + fit * round_ns + around_ns(share.number));
            shares.push(share.clone());
            Ok(document(share, fit, fit * round_ns))
        });
        assert_eq!(done.unwrap().len(), shares.len());
        (shares, clock.0.get())
    }

    fn protocol() -> Protocol {
        Protocol {
            processes: 12,
            rounds: 5,
            run_ns: 3_000_000,
            budget_ns: Some(BUDGET_NS),
            seed: 7,
        }
    }

    #[test]
    fn the_first_process_finds_the_lengths_and_each_has_a_seed_of_its_own() {
        let (shares, spent_ns) = measured(&protocol(), 200_000_000);
        assert_eq!(shares.len(), 12);
        assert!(spent_ns <= BUDGET_NS, "{spent_ns}");
        assert!(shares[0].lengths.is_empty());
        assert!(
            shares[1..]
                .iter()
                .all(|share| share.lengths[0].iterations == LENGTH)
        );
        assert_eq!((shares[0].seed, shares[11].seed), (7, 18));
    }

    #[test]
    fn a_budget_is_kept_on_a_busy_machine_by_fewer_rounds_and_processes() {
        for round_ns in [250_000_000, 400_000_000, 520_000_000] {
            let (shares, spent_ns) = measured(&protocol(), round_ns);
            assert!((6..=12).contains(&shares.len()), "{}", shares.len());
            assert!(
                spent_ns as f64 <= 1.1 * BUDGET_NS as f64,
                "{round_ns}: {spent_ns}"
            );
        }
    }

    #[test]
    fn a_long_start_of_each_process_shortens_runs_before_processes_and_those_before_rounds() {
        let second = 1_000_000_000;
        // Eight processes, as `lab cached` has them, whose start takes most of the time.
        let eight = Protocol {
            processes: 8,
            ..protocol()
        };
        let (shares, spent_ns) = measured_around(&eight, second / 5, |_| 3 * second / 2);
        assert_eq!(shares.len(), 8);
        assert!(shares[7].lengths[0].iterations < LENGTH && shares[7].rounds == 5);
        assert!(spent_ns as f64 <= 1.1 * BUDGET_NS as f64, "{spent_ns}");
        // A machine that becomes busy after the first process.
        let busy = |number| if number == 0 { second } else { 2 * second };
        let (shares, spent_ns) = measured_around(&eight, second / 5, busy);
        assert!((6..8).contains(&shares.len()), "{}", shares.len());
        assert!(spent_ns as f64 <= 1.1 * BUDGET_NS as f64, "{spent_ns}");
        let (shares, _) = measured_around(&eight, second, |_| 12 * second / 5);
        assert_eq!((shares.len(), shares[5].rounds), (6, 1));
    }

    #[test]
    fn runs_that_trials_made_too_short_are_longer_in_the_next_process() {
        let sample = |wall_ns| Sample {
            iterations: 2,
            wall_ns,
            ..Sample::default()
        };
        let round = |walls: [u64; 3]| Round {
            order: vec![0, 1, 2],
            samples: walls.map(sample).to_vec(),
            null_floor: None,
        };
        let cases = ["a", "b", "c"].map(str::to_owned).to_vec();
        // The trial of the first was interrupted: two iterations are 2 us and not 8 ms. The second
        // is as long as it is to be, and the third was only interrupted once.
        let rounds = vec![
            round([8_000_000, 500_000, 900_000]),
            round([2_000, 510_000, 300_000]),
        ];
        let measured = Measured::of(cases, rounds);
        let known = RunLength {
            warm_up: 0,
            iterations: 2,
        };
        let mut lengths = vec![known; 3];
        lengthen(&mut lengths, &measured, 500_000);
        let iterations: Vec<u64> = lengths.iter().map(|one| one.iterations).collect();
        assert_eq!(iterations, [500, 2, 2]);
        assert_eq!(lengths[0].warm_up, 25);
    }

    #[test]
    fn longer_budgets_make_more_processes_and_none_makes_twenty() {
        let seconds = |s: u64| processes_for(Some(s * 1_000_000_000));
        assert_eq!((seconds(1), seconds(4), seconds(9)), (8, 8, 10));
        assert_eq!((seconds(15), seconds(60), seconds(600)), (12, 48, 60));
        assert_eq!(processes_for(None), 20);
    }

    #[test]
    fn what_was_measured_before_a_stop_is_kept() {
        let cancelled = AtomicBool::new(false);
        let mut control = Control {
            cancelled: &cancelled,
            ..Control::silent()
        };
        let done = run(
            &protocol(),
            &Simulated::default(),
            &mut control,
            |share, control| {
                if share.number == 2 {
                    control.cancelled.store(true, Ordering::Relaxed);
                    return Err(HarnessError::Worker("stopped".to_owned()));
                }
                Ok(document(share, 5, 1))
            },
        );
        assert_eq!(done.unwrap().len(), 2);
    }

    #[test]
    fn a_process_that_fails_keeps_those_before_it() {
        let fails_in = |failing| {
            let mut control = Control::silent();
            run(
                &protocol(),
                &Simulated::default(),
                &mut control,
                |share, _| match share.number == failing {
                    true => Err(HarnessError::Worker("case a: no such disk".to_owned())),
                    false => Ok(document(share, 5, 1)),
                },
            )
        };
        let done = fails_in(2).unwrap();
        let failures: Vec<_> = done.iter().map(|one| &one.processes[0].failure).collect();
        let failure = Failure {
            case: "process 3".to_owned(),
            error: "case a: no such disk".to_owned(),
        };
        assert_eq!(failures, [&None, &Some(failure)]);
        assert!(fails_in(0).is_err());
    }

    #[test]
    fn a_process_is_given_its_input_and_its_words_are_those_of_an_error() {
        let mut waiting = || false;
        let text = child(Command::new("cat"), "request", 0, &mut waiting).unwrap();
        assert_eq!(text, "request");
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo ugeom: x.img: no such disk >&2; exit 1"]);
        let error = child(failing, "", 3, &mut waiting).unwrap_err();
        assert_eq!(error.to_string(), "x.img: no such disk");
        let error = child(Command::new("false"), "", 3, &mut waiting).unwrap_err();
        assert_eq!(
            error.to_string(),
            "case process 4: it ended with exit status: 1"
        );
        // One that would go on for long ends when it is asked to.
        let mut sleep = Command::new("sleep");
        sleep.arg("60");
        let error = child(sleep, "", 0, &mut || true).unwrap_err().to_string();
        assert!(error.contains("signal: 15"), "{error}");
    }
}
