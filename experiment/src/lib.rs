//! The trait of an experiment: options, cases, figures and a page; and its measurement, in fresh
//! processes of this program. [`served`] has providers as other programs reach them, [`targets`]
//! what a target is before it is opened. `ugeom_lab::registry` lists all experiments.
//!
//! ```text
//!   Experiment::prepare    for all processes together: a temporary file
//!   Experiment::measure    one process: its cases in rounds
//!   Experiment::COMPUTE    figures from the samples of all processes
//!   Experiment::PAGE       question, answer, one table, warnings, everything else
//! ```
//!
//! The parent starts this program again, with `lab worker` as its arguments and a
//! [`WorkerRequest`] on its standard input, and reads a document from its standard output.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod served;
pub mod targets;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use served::ServerKind;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use ugeom_harness::document::Document;
use ugeom_harness::host::Host;
use ugeom_harness::processes::{self, BUDGET_NS, Protocol, Share};
use ugeom_harness::{Control, HarnessError, Meter, Phase, Progress, Settings};
use ugeom_report::{Page, Saved};

/// The options that all experiments share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Take the time that precision needs.
    pub full: bool,
    /// The seed of every random order; none for one of the clock.
    pub seed: Option<u64>,
    /// The time that it may take, ns; none for [`BUDGET_NS`]. Without meaning when `full`.
    pub budget_ns: Option<u64>,
    /// How many fresh processes; none for as many as the budget allows.
    pub processes: Option<u32>,
}

impl Common {
    /// The time that it may take; none for no limit.
    pub fn limit_ns(&self) -> Option<u64> {
        (!self.full).then(|| self.budget_ns.unwrap_or(BUDGET_NS))
    }
}

/// An experiment of `ugeom lab`.
pub trait Experiment {
    /// Its name in documents and on the command line.
    const NAME: &'static str;

    /// Rounds of each process.
    const ROUNDS: u64;

    /// Computes the figures from the samples.
    const COMPUTE: fn(&mut Document<Self::Subject>);

    /// Renders the document as a page; it measures nothing.
    const PAGE: fn(&Document<Self::Subject>) -> Page;

    /// The user's options.
    type Options: Clone + Serialize + DeserializeOwned;

    /// The description of the measurement in a document.
    type Subject: Serialize + DeserializeOwned;

    /// State shared by all processes during the experiment.
    type Prepared;

    /// The common part of the options.
    fn common(options: &mut Self::Options) -> &mut Common;

    /// Gives a process the servers that it can read through.
    fn set_servers(_options: &mut Self::Options, _servers: &[ServerKind]) {}

    /// Prepares the shared material of all processes, and names it in their options.
    ///
    /// # Errors
    /// Why it cannot be made.
    fn prepare(
        options: &mut Self::Options,
        seed: u64,
        cancelled: &AtomicBool,
    ) -> Result<Self::Prepared, HarnessError>;

    /// Changes how it is spread over processes where the options ask for that.
    fn protocol(_options: &Self::Options, protocol: Protocol) -> Protocol {
        protocol
    }

    /// Measures in this process.
    ///
    /// # Errors
    /// The error of opening, building or reading.
    fn measure(
        options: &Self::Options,
        process: Process<'_, '_>,
    ) -> Result<Document<Self::Subject>, HarnessError>;

    /// Puts what other processes counted beside their samples into the first one's subject.
    fn join(_whole: &mut Document<Self::Subject>, _others: &[Document<Self::Subject>]) {}
}

/// One of the processes that an experiment is spread over, with its part of the work.
pub struct Process<'a, 'c> {
    /// The number of the process, its rounds, its seed and its part of the budget.
    pub share: &'a Share,
    /// The clock and the counters.
    pub meter: &'a dyn Meter,
    /// Hears of progress, and stops the rounds.
    pub control: &'a mut Control<'c>,
    started_ns: u64,
}

impl<'a, 'c> Process<'a, 'c> {
    /// Begins now: later preparations are taken off the budget.
    pub fn new(share: &'a Share, meter: &'a dyn Meter, control: &'a mut Control<'c>) -> Self {
        let started_ns = meter.now_ns();
        Self {
            share,
            meter,
            control,
            started_ns,
        }
    }

    /// The machine, in the document of this process.
    pub fn host(&self) -> Host {
        Host::of_process(self.share.number)
    }

    /// Settings of the rounds, which may take what the preparation has left of the budget.
    pub fn settings(&self) -> Settings {
        let set_up_ns = self.meter.now_ns().saturating_sub(self.started_ns);
        self.share.settings(set_up_ns)
    }
}

/// The task of a process.
#[derive(Serialize, Deserialize)]
pub struct WorkerRequest<O> {
    /// The name of the experiment.
    pub experiment: String,
    /// The user's options.
    pub options: O,
    /// The part of this process.
    pub share: Share,
}

/// How the program starts itself.
pub type Launch<'a> = &'a dyn Fn() -> Command;

/// Measures in as many processes as were asked for, and computes the figures. One process is this
/// one. When `control` asks to stop, the measurements until then are the result.
///
/// # Errors
/// The error of [`Experiment::measure`]; [`HarnessError::Thread`] when a process cannot be
/// started.
pub fn run<E: Experiment>(
    options: &E::Options,
    servers: &[ServerKind],
    launch: Launch<'_>,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document<E::Subject>, HarnessError> {
    let started_ns = meter.now_ns();
    let mut options = options.clone();
    let common = E::common(&mut options).clone();
    let seed = common.seed.unwrap_or_else(|| Host::now().started_unix_s);
    let limit_ns = common.limit_ns();
    let _prepared = E::prepare(&mut options, seed, control.cancelled)?;
    let protocol = Protocol {
        processes: common
            .processes
            .unwrap_or_else(|| processes::processes_for(limit_ns)),
        rounds: E::ROUNDS,
        run_ns: Settings::default().run_ns,
        budget_ns: limit_ns.map(|ns| ns.saturating_sub(meter.now_ns() - started_ns)),
        seed,
    };
    let protocol = E::protocol(&options, protocol);
    let mut document = if protocol.processes == 1 {
        if !servers.is_empty() {
            E::set_servers(&mut options, servers);
        }
        let share = Share::alone(seed, protocol.budget_ns);
        E::measure(&options, Process::new(&share, meter, control))?
    } else {
        let text = |share: &Share| request::<E>(&options, share);
        let parts = processes::run(&protocol, meter, control, |share, control| {
            one::<E>(&text(share)?, launch(), share, control)
        })?;
        joined::<E>(parts)?
    };
    document.settings.budget_ns = limit_ns;
    document.took_ns = Some(meter.now_ns().saturating_sub(started_ns));
    (E::COMPUTE)(&mut document);
    Ok(document)
}

fn request<E: Experiment>(options: &E::Options, share: &Share) -> Result<String, HarnessError> {
    let request = WorkerRequest {
        experiment: E::NAME.to_owned(),
        options,
        share: share.clone(),
    };
    serde_json::to_string(&request).map_err(|error| HarnessError::Document(error.to_string()))
}

/// Runs one process to its end, showing its number meanwhile.
fn one<E: Experiment>(
    request: &str,
    command: Command,
    share: &Share,
    control: &mut Control<'_>,
) -> Result<Document<E::Subject>, HarnessError> {
    let (number, of) = (share.number, share.of);
    let mut waiting = || {
        (control.progress)(&Progress {
            phase: Phase::Measuring,
            case: "fresh processes",
            done: number.into(),
            total: of.into(),
        });
        control.is_cancelled()
    };
    let text = processes::child(command, request, number, &mut waiting)?;
    Document::from_json(&text, E::NAME)
}

/// All processes as one document.
fn joined<E: Experiment>(
    parts: Vec<Document<E::Subject>>,
) -> Result<Document<E::Subject>, HarnessError> {
    let mut parts = parts.into_iter();
    let nothing = || HarnessError::Thread {
        case: E::NAME.to_owned(),
        problem: "it was stopped before anything was measured".to_owned(),
    };
    let mut whole = parts.next().ok_or_else(nothing)?;
    let mut others: Vec<Document<E::Subject>> = parts.collect();
    E::join(&mut whole, &others);
    for other in &mut others {
        whole.processes.append(&mut other.processes);
    }
    Ok(whole)
}

/// Measures in this process alone, as `--processes 1` does.
///
/// # Errors
/// As [`Experiment::measure`].
pub fn run_here<E: Experiment>(
    options: &E::Options,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document<E::Subject>, HarnessError> {
    let mut options = options.clone();
    E::common(&mut options).processes = Some(1);
    // No process is started, so that the command is never made.
    run::<E>(&options, &[], &|| Command::new("false"), meter, control)
}

/// A document that was just measured, beside its page.
///
/// # Errors
/// [`HarnessError::Document`] when a figure is not a number that JSON can hold.
pub fn saved<E: Experiment>(document: &Document<E::Subject>) -> Result<Saved, HarnessError> {
    Saved::new(document.to_json()?, (E::PAGE)(document))
}
