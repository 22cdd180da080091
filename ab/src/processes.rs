//! Measures candidates: commands in rounds, which are fresh processes themselves, and everything
//! else in fresh processes of this program, each of which does some rounds.

use super::judge::observations_needed;
use super::level::level;
use super::shell::{Around, Output, Runner};
use super::{AbOptions, Candidate, Document, EXPERIMENT, Jobs, SHELL, Side, Subject, job, judge};
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use ugeom_harness::host::Host;
use ugeom_harness::processes::{self, Protocol, RUN_NS_MIN, Share};
use ugeom_harness::{
    self as harness, Case, Control, Failure, HarnessError, Length, Measured, Meter, Phase,
    Progress, RunLength, RunResult, Settings,
};

/// Default for the maximum number of rounds of commands.
const ROUNDS_MAX: u64 = 1000;

/// Rounds of a process.
const ROUNDS: u64 = 5;

/// The share of a process's time that its runs have; the rest is for finding their length.
const RUNS_SHARE: f64 = 0.6;

/// The task of one process.
#[derive(Serialize, Deserialize)]
struct WorkerRequest {
    experiment: String,
    options: AbOptions,
    share: Share,
}

/// Measures all candidates. Ctrl-C and a failure of a candidate keep the earlier measurements.
/// `launch` starts a process of this program that calls [`worker`].
///
/// # Errors
/// A target that cannot be opened or is too small, a job or a command that fails, before there is
/// a measured run.
pub fn run(
    options: &AbOptions,
    jobs: &Jobs<'_>,
    launch: &dyn Fn() -> Command,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let started_ns = meter.now_ns();
    let subject = &options.subject;
    let around = Around::new(&subject.shell, control.cancelled);
    for (at, candidate) in subject.candidates.iter().enumerate() {
        if let Err(error) = around.run("--setup", &candidate.setup) {
            around.clean_up(&subject.candidates[..at]);
            return Err(error);
        }
    }
    let document = match subject.is_of_commands() {
        true => commands(options, &around, meter, control),
        false => fresh(options, jobs, &around, launch, meter, control),
    };
    let failed = around.clean_up(&subject.candidates);
    let mut document = document?;
    if let Some((name, error)) = failed {
        keep_failure(&mut document, &name, &error);
    }
    document.settings.budget_ns = options.rounds.is_none().then_some(options.budget_ns);
    document.took_ns = Some(meter.now_ns().saturating_sub(started_ns));
    judge::compute(&mut document);
    Ok(document)
}

/// Commands: each round runs every one once, and is an observation.
fn commands(
    options: &AbOptions,
    around: &Around<'_>,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let host = Host::now().with_wakeups();
    let (subject, cancelled) = (&options.subject, control.cancelled);
    let jobs = Jobs::none();
    let mut cases = Vec::new();
    for candidate in &subject.candidates {
        cases.push(candidate.case(&candidate.name, subject, &jobs, around, cancelled)?);
    }
    let nothing = subject.shell.nothing();
    if let Some(nothing) = nothing.filter(|_| subject.printed.is_none()) {
        let runner = runner(subject, cancelled);
        let run = move |_: u64| {
            let done = runner.once(nothing, Output::Dropped)?;
            Ok(RunResult::taking(done.took_ns.max(1)))
        };
        cases.push(Case::new(SHELL, run));
    }
    let rounds = options.rounds;
    let once = RunLength {
        warm_up: 0,
        iterations: 1,
    };
    let settings = Settings {
        seed: options.seed.unwrap_or(host.started_unix_s),
        run_ns: options.run_ns,
        confidence: subject.confidence,
        // The difference of two means that are known so well is known to half a tolerance.
        precision: rounds.map_or(subject.same_within / 4.0, |_| 0.0),
        rounds_min: rounds.unwrap_or(observations_needed(subject) as u64),
        rounds_max: rounds.unwrap_or(ROUNDS_MAX),
        budget_ns: rounds.is_none().then_some(options.budget_ns),
        lengths: vec![once; cases.len()],
        ..Settings::default()
    };
    let (measured, error) = harness::run_keeping(&mut cases, &settings, meter, control);
    drop(cases);
    let concluded = around.conclude();
    let subject = with_failures(subject, around);
    if let Some(error) = error
        && measured.rounds.is_empty()
        && measured.unfinished.is_none()
    {
        return Err(error);
    }
    let whole = measured.clone();
    let mut document = Document::new(EXPERIMENT, host, settings, subject, measured);
    document.processes = one_a_round(whole);
    if let Err(error) = concluded {
        keep_failure(&mut document, options.subject.base(), &error);
    }
    Ok(document)
}

/// The subject with what the runs of its commands left.
fn with_failures(subject: &Subject, around: &Around<'_>) -> Subject {
    let mut subject = subject.clone();
    for one in &mut subject.candidates {
        one.failed_runs = around.failures(&one.name);
    }
    subject
}

/// An error after the last run is reported with the result, unless an earlier error was.
fn keep_failure(document: &mut Document, name: &str, error: &HarnessError) {
    if let Some(last) = document.processes.last_mut() {
        last.failure.get_or_insert_with(|| Failure {
            case: name.to_owned(),
            error: error.to_string(),
        });
    }
}

/// Each round as a process of its own, for its commands were fresh processes. The reason for the
/// end, and an unfinished round, stay with the last.
fn one_a_round(measured: Measured) -> Vec<Measured> {
    let rounds = measured.rounds.len().max(1);
    let each_ns = measured.elapsed_ns / rounds as u64;
    let mut processes: Vec<Measured> = (0..rounds)
        .map(|at| Measured {
            rounds: measured.rounds.get(at).cloned().into_iter().collect(),
            elapsed_ns: each_ns,
            repeated: 0,
            lengths: Vec::new(),
            unfinished: None,
            failure: None,
            ..measured.clone()
        })
        .collect();
    if let Some(last) = processes.last_mut() {
        last.unfinished = measured.unfinished;
        last.failure = measured.failure;
    }
    processes
}

fn runner<'a>(subject: &Subject, cancelled: &'a AtomicBool) -> Runner<'a> {
    Runner {
        shell: subject.shell.clone(),
        ignores_failure: subject.ignore_failure,
        cancelled,
    }
}

impl Candidate {
    /// The case that measures it.
    fn case<'a>(
        &self,
        name: &str,
        subject: &Subject,
        jobs: &'a Jobs<'a>,
        around: &'a Around<'a>,
        cancelled: &'a AtomicBool,
    ) -> Result<Case<'a>, HarnessError> {
        let case = match &self.side {
            Side::Command(text) => {
                let program =
                    super::command::Program::new(text, subject.printed, runner(subject, cancelled));
                return Ok(program.case(name, subject, self, around));
            }
            Side::Target(text) => {
                let target = super::side::opened(text, &subject.settings(self)?)?;
                super::reading::case(name, &target, &subject.load)?
            }
            Side::Job(path) => job::case(name, path, jobs, cancelled)?,
        };
        Ok(around.attach(case, self))
    }
}

/// Targets and job files: in fresh processes.
fn fresh(
    options: &AbOptions,
    jobs: &Jobs<'_>,
    around: &Around<'_>,
    launch: &dyn Fn() -> Command,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let started_ns = meter.now_ns();
    let round_ns = first_look(&options.subject, jobs, around, meter, control.cancelled)?;
    let seed = options.seed.unwrap_or_else(|| Host::now().started_unix_s);
    let budget_ns = options.rounds.is_none().then_some(options.budget_ns);
    let count = options.processes.unwrap_or_else(|| {
        let fit = processes::processes_for(Some(options.budget_ns));
        fit.max(observations_needed(&options.subject) as u32)
    });
    let fitting = options.budget_ns / u64::from(count.max(1)) / round_ns.max(1);
    let protocol = Protocol {
        processes: count,
        // One round of a long job is an observation as well as the median of five.
        rounds: options.rounds.unwrap_or(fitting.clamp(1, ROUNDS)),
        run_ns: options.run_ns,
        budget_ns: budget_ns.map(|ns| ns.saturating_sub(meter.now_ns() - started_ns)),
        seed,
    };
    if count == 1 {
        let mut share = Share::alone(seed, protocol.budget_ns);
        share.rounds = options.rounds.unwrap_or(share.rounds);
        return one(options, &share, jobs, meter, control);
    }
    let parts = processes::run(&protocol, meter, control, |share, control| {
        child(options, share, launch(), control)
    })?;
    let mut parts = parts.into_iter();
    let nothing = || HarnessError::Thread {
        case: EXPERIMENT.to_owned(),
        problem: "it was stopped before anything was measured".to_owned(),
    };
    let mut whole = parts.next().ok_or_else(nothing)?;
    for mut other in parts {
        let candidates = whole.subject.candidates.iter_mut();
        for (one, more) in candidates.zip(&other.subject.candidates) {
            one.failed_runs += more.failed_runs;
        }
        whole.processes.append(&mut other.processes);
    }
    Ok(whole)
}

/// Finds what is wrong before processes are started, makes the files that jobs need, and returns
/// the time that a round of the jobs and commands takes, ns.
fn first_look(
    subject: &Subject,
    jobs: &Jobs<'_>,
    around: &Around<'_>,
    meter: &dyn Meter,
    cancelled: &AtomicBool,
) -> Result<u64, HarnessError> {
    let started_ns = meter.now_ns();
    let mut runs = 0;
    for candidate in &subject.candidates {
        if let Side::Target(_) = candidate.side {
            candidate.case(&candidate.name, subject, jobs, around, cancelled)?;
            continue;
        }
        around.prepare(&candidate.prepare, &candidate.conclude)?;
        match &candidate.side {
            Side::Job(path) => job::first(path, jobs, cancelled)?,
            Side::Command(text) => drop(runner(subject, cancelled).once(text, Output::Kept)?),
            Side::Target(_) => {}
        }
        around.conclude()?;
        runs += 1;
    }
    let each_ns = (meter.now_ns() - started_ns) / (runs as u64).max(1);
    Ok(if runs == 0 {
        1
    } else {
        each_ns * (subject.candidates.len() as u64 + 1)
    })
}

/// Runs one process to its end, showing its number meanwhile.
fn child(
    options: &AbOptions,
    share: &Share,
    command: Command,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let request = WorkerRequest {
        experiment: EXPERIMENT.to_owned(),
        options: options.clone(),
        share: share.clone(),
    };
    let text = serde_json::to_string(&request)
        .map_err(|error| HarnessError::Document(error.to_string()))?;
    let mut waiting = || {
        (control.progress)(&Progress {
            phase: Phase::Measuring,
            case: "fresh processes",
            done: share.number.into(),
            total: share.of.into(),
        });
        control.is_cancelled()
    };
    let text = processes::child(command, &text, share.number, &mut waiting)?;
    Document::from_json(&text, EXPERIMENT)
}

/// The request that a process was given, where it is one of this experiment.
///
/// # Errors
/// [`HarnessError::Document`] when it is no request at all.
fn request(text: &str) -> Result<Option<WorkerRequest>, HarnessError> {
    #[derive(Deserialize)]
    struct Head {
        experiment: String,
    }
    let refused = |error: serde_json::Error| HarnessError::Document(error.to_string());
    let head: Head = serde_json::from_str(text).map_err(refused)?;
    if head.experiment != EXPERIMENT {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(text).map_err(refused)?))
}

/// The work of a process that [`run`] started: measures, and returns the document as text. None for
/// the request of another experiment. `jobs` reads the job files of its subject.
///
/// # Errors
/// As [`run`].
pub fn worker<'a>(
    text: &str,
    jobs: &dyn Fn(&AbOptions) -> Result<Jobs<'a>, HarnessError>,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Option<String>, HarnessError> {
    let Some(request) = request(text)? else { return Ok(None) };
    let jobs = jobs(&request.options)?;
    let document = one(&request.options, &request.share, &jobs, meter, control)?;
    Ok(Some(document.to_json()?))
}

/// Measures in this process.
fn one(
    options: &AbOptions,
    share: &Share,
    jobs: &Jobs<'_>,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let started_ns = meter.now_ns();
    let host = Host::now();
    let host = if share.number == 0 {
        host.with_wakeups()
    } else {
        host
    };
    let (subject, cancelled) = (&options.subject, control.cancelled);
    let around = Around::new(&subject.shell, cancelled);
    let mut cases = Vec::new();
    for candidate in &subject.candidates {
        cases.push(candidate.case(&candidate.name, subject, jobs, &around, cancelled)?);
    }
    let first = &subject.candidates[0];
    if matches!(first.side, Side::Target(_)) {
        cases.push(first.case(&subject.again(), subject, jobs, &around, cancelled)?);
    }
    let mut settings = share.settings(meter.now_ns() - started_ns);
    settings.confidence = subject.confidence;
    settings.run_ns = run_ns(options, share, cases.len());
    if settings.lengths.is_empty() {
        level(&mut cases, settings.run_ns, control)?;
        // Found above; another trial would only cost time.
        settings.lengths = cases.iter().map(length).collect();
        let spent_ns = meter.now_ns() - started_ns;
        settings.budget_ns = share.budget_ns.map(|ns| ns.saturating_sub(spent_ns));
    }
    let (mut measured, error) = harness::run_keeping(&mut cases, &settings, meter, control);
    measured.lengths.clone_from(&settings.lengths);
    drop(cases);
    around.conclude()?;
    if let Some(error) = error
        && measured.rounds.is_empty()
        && measured
            .unfinished
            .as_ref()
            .is_none_or(|one| one.calibrating)
    {
        return Err(error);
    }
    Ok(Document::new(
        EXPERIMENT,
        host,
        settings,
        with_failures(subject, &around),
        measured,
    ))
}

fn length(case: &Case<'_>) -> RunLength {
    match case.length {
        Length::Exactly {
            warm_up,
            iterations,
        } => RunLength {
            warm_up,
            iterations,
        },
        // Where the user stopped it before a length was found.
        Length::Calibrated | Length::AtMost(_) => RunLength {
            warm_up: 0,
            iterations: 1,
        },
    }
}

/// The time of a run with which the rounds of a process fit its share of the budget, ns.
fn run_ns(options: &AbOptions, share: &Share, cases: usize) -> u64 {
    let Some(budget_ns) = share.budget_ns else {
        return options.run_ns;
    };
    let runs = share.rounds.max(1) * cases.max(1) as u64;
    let fitting = budget_ns as f64 * RUNS_SHARE / runs as f64;
    options.run_ns.min((fitting as u64).max(RUN_NS_MIN))
}
