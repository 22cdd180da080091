//! `ugeom diskinfo -c -t -i -wS`: measures the top provider of each target.

use super::layout::Layout;
use super::timing::{self as diskinfo, Around, Ended, Settings, Step, StepKind};
use super::{Attributes, Diskinfo, ProviderFacts};
use crate::commands::lab::duration_ns;
use crate::failure::{self, Interrupted, Reported, Usage};
use crate::{opening, output, safety};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use ugeom_classes::TargetOptions;
use ugeom_harness::host::TargetFacts;
use ugeom_machine::{clock, interrupt};
use ugeom_stack::{Delta, ProviderView};

#[derive(Args)]
pub struct MeasureArgs {
    /// Measure the overhead of a command: 10 MB in blocks against 20,480 reads of sector 0
    #[arg(short = 'c', conflicts_with_all = NOT_MEASURED)]
    overhead: bool,

    /// Measure seek times and transfer rates
    #[arg(short = 't', conflicts_with_all = NOT_MEASURED)]
    seeks: bool,

    /// Measure asynchronous random reads, queue depth 128
    #[arg(short = 'i', conflicts_with_all = NOT_MEASURED)]
    reads: bool,

    /// Measure synchronous random writes; the data of the target is lost (needs -w)
    #[arg(short = 'S', requires = "writable", conflicts_with_all = NOT_MEASURED)]
    writes: bool,

    /// Allow -S to write
    #[arg(short = 'w', requires = "writes")]
    writable: bool,

    /// Overwrite a target with a partition table or a file system
    #[arg(long, requires = "writable")]
    destroy: bool,

    /// Time of -i and -S for each block size [default: 3s for -i, 1s for -S]
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    time: Option<u64>,

    /// Seed of the random offsets [default: any]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// The other forms of printing, which have no place for measurements.
const NOT_MEASURED: [&str; 3] = ["classic", "physical_path", "ident"];

/// A provider, and its measurements.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    info: &'a ProviderFacts,
    complete: bool,
    no_device: Option<String>,
    command_overhead_ns: Option<f64>,
    overhead: Vec<Figures>,
    seeks: Vec<Figures>,
    transfers: Vec<Figures>,
    random_reads: Vec<Figures>,
    random_writes: Vec<Figures>,
}

/// A step for programs.
#[derive(Serialize)]
struct Figures {
    name: String,
    requests: u64,
    bytes_each: u64,
    taken_ns: u64,
    request_ns: f64,
    requests_per_s: f64,
    bytes_per_s: f64,
}

impl From<&Step> for Figures {
    fn from(step: &Step) -> Self {
        Self {
            name: step.name.clone(),
            requests: step.requests,
            bytes_each: step.bytes_each,
            taken_ns: step.taken_ns,
            request_ns: step.seconds_each() * 1e9,
            requests_per_s: step.per_second(),
            bytes_per_s: step.bytes_per_second(),
        }
    }
}

impl MeasureArgs {
    /// The requested measurements.
    pub fn settings(&self) -> Settings {
        Settings {
            overhead: self.overhead,
            seeks: self.seeks,
            reads: self.reads,
            writes: self.writes,
            each_ns: self.time,
            seed: self.seed,
        }
    }

    /// Refuses options of measurements where nothing is measured.
    pub fn refuse_alone(&self) -> Result<(), Usage> {
        let alone = [
            ("--time", self.time.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        match alone.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Usage(format!(
                "{flag} needs a measurement: -c, -t, -i or -wS"
            ))),
            None => Ok(()),
        }
    }
}

/// Measures all targets, one after the other.
pub fn run(diskinfo: &Diskinfo) -> Result<()> {
    let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
    if cfg!(debug_assertions) {
        output::warn(
            "this is a debug build, its figures are meaningless: use `cargo run --release`",
        );
    }
    let mut documents = Vec::new();
    let (mut failed, mut interrupted) = (false, false);
    for target in &diskinfo.targets {
        match one(diskinfo, target, cancelled) {
            Ok((document, ended)) => {
                documents.push(document);
                if ended == Ended::Early {
                    interrupted = true;
                    break;
                }
            }
            Err(error) if diskinfo.targets.len() > 1 && !error.is::<output::Closed>() => {
                output::complain(&failure::text(&error));
                failed = true;
            }
            Err(error) => return Err(error),
        }
    }
    if diskinfo.json {
        output::print_json(&documents)?;
    }
    if interrupted {
        let text = "interrupted: only completed measurements are printed";
        return Err(Interrupted(text.to_owned()).into());
    }
    if failed {
        return Err(Reported.into());
    }
    Ok(())
}

/// Why reads of a target reach no device; none when they may, or when it stands on no file.
fn no_device(text: &str) -> Option<String> {
    let file = ugeom_experiment::targets::bottom_file(text)?;
    TargetFacts::of(&file)?.no_device()
}

/// Measures one target, printing line by line unless it is for programs.
fn one(
    diskinfo: &Diskinfo,
    text: &str,
    cancelled: &AtomicBool,
) -> Result<(serde_json::Value, Ended)> {
    let args = &diskinfo.measure;
    let options = TargetOptions {
        writable: args.writes, // The system's cache would answer instead of the device.
        direct: true,
        ..diskinfo.opening.options()
    };
    let target = opening::open(text, &options)?;
    let settings = args.settings();
    let provider: ProviderView = opening::top(&target)?;
    settings.check(&provider)?;
    if args.writes && !args.destroy {
        safety::refuse_content(&target)?;
    }
    let delta = Delta::of_user(args.writes);
    let opened = Arc::new(target.open(delta)?);
    let info = ProviderFacts::new(
        &provider,
        Attributes::of(&target.stack, &provider, &opened)?,
        None,
    );
    let quiet = diskinfo.json;
    let mut printer = Printer::new(quiet);
    printer.print(&info.verbose());
    let no_device = no_device(text);
    if let Some(why) = &no_device {
        let why = output::printable(why);
        printer.print(&format!(
            "\tNo device: {why}; these figures permit no conclusion about a disk.\n"
        ));
    }
    let mut steps = Vec::new();
    let mut around = Around {
        now_ns: &mut clock::now_ns,
        cancelled,
        tell: &mut |step| {
            let going = printer.step(&step);
            steps.push(step);
            going
        },
    };
    let ended = diskinfo::measure(&settings, &target.stack, (&provider, &opened), &mut around);
    printer.end()?;
    let ended = ended?;
    let mut document = Document::new(&info, &steps, ended);
    document.no_device = no_device;
    let document = serde_json::to_value(document)?;
    Ok((document, ended))
}

impl<'a> Document<'a> {
    fn new(info: &'a ProviderFacts, steps: &[Step], ended: Ended) -> Self {
        let of = |kind: StepKind| -> Vec<Figures> {
            let steps = steps.iter().filter(|step| step.kind == kind);
            steps.map(Figures::from).collect()
        };
        let overhead = of(StepKind::Overhead);
        let command_overhead_ns = match overhead.as_slice() {
            [blocks, sectors] => {
                Some((sectors.taken_ns as f64 - blocks.taken_ns as f64) / sectors.requests as f64)
            }
            _ => None,
        };
        Self {
            info,
            complete: ended == Ended::Complete,
            no_device: None,
            command_overhead_ns,
            overhead,
            seeks: of(StepKind::Seek),
            transfers: of(StepKind::Transfer),
            random_reads: of(StepKind::Read),
            random_writes: of(StepKind::Write),
        }
    }
}

/// Prints while it is measured, until the reader has gone.
struct Printer {
    layout: Layout,
    quiet: bool,
    result: Result<()>,
}

impl Printer {
    fn new(quiet: bool) -> Self {
        Self {
            layout: Layout::default(),
            quiet,
            result: Ok(()),
        }
    }

    fn print(&mut self, text: &str) {
        if !self.quiet && self.result.is_ok() {
            self.result = output::print(text);
        }
    }

    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        let line = self.layout.line(step);
        self.print(&line);
        match self.result {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn end(mut self) -> Result<()> {
        self.print(self.layout.end());
        self.result
    }
}
