//! `ugeom trace`: where the time of requests to the kernel's devices goes.

use super::files::{self, NewFile, Output, Written};
use super::show::kernel;
use crate::control::ask_servers;
use crate::failure::{Reported, Usage};
use crate::opening::{time_above_0, word};
use crate::output;
use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ugeom_classes::{path_of, result_file};
use ugeom_machine::interrupt;
use ugeom_measure::units;
use ugeom_report::Page;
use ugeom_trace::event::{Event, EventKind};
use ugeom_trace::figures::{About, Sums, Traced};
use ugeom_trace::link::{Linker, Tree};
use ugeom_trace::record::{Iolog, Reader, Writer};
use ugeom_trace::session::{Scope, Session};
use ugeom_trace::source::Choice;
use ugeom_trace::{draw, load, overhead, page};

const LONG_ABOUT: &str = "\
Follows each request to a block device through the kernel's layers (partitions, loop devices with \
their workers, mapped devices, RAID, FUSE servers, disks) and prints where its time goes: for each \
layer the inclusive and the exclusive time, by phases, with percentiles. Exclusive times add up to \
the whole.

The events come from BPF programs on raw tracepoints, which need root, or CAP_BPF and CAP_PERFMON; \
else from an instance of tracefs, else from perf_event_open. The counts of events are compared \
with /proc/diskstats in each run; where a source misses more than 2 %, the trace starts \
again with the next one. Lost events, and requests without a recorded end, are reported and never \
shown as in flight.

A DEVICE is a block device, a partition, a mount point or a file on a disk. The trace lasts as \
long as COMMAND runs, else for --for, else until Ctrl-C. docs/trace.md explains the phases.";

const EXAMPLES: &str = "\
Examples:
  ugeom trace /dev/vda --for 10s              # where do requests spend time?
  ugeom trace loop0 -- fio job.fio            # below loop0, while fio runs
  ugeom trace vda --json > trace.json         # for `ugeom report trace.json`
  ugeom trace vda --output t.trace            # for `ugeom trace show t.trace`
  ugeom trace vda --source tracefs            # without BPF
  ugeom trace vda --sample 1%                 # at most 1 % of a processor
  ugeom trace zram0 --overhead                # what does an event cost?
  ugeom trace loop0 --overhead -- fio job.fio  # by how much is fio slower?
  ugeom trace vda --flame f.svg --heat h.svg  # a flame graph and a heat map";

/// How often events are read.
const POLL: Duration = Duration::from_millis(10);

/// How a result is shown.
#[derive(Args, Clone)]
struct Form {
    /// Print JSON
    #[arg(long, group = "form")]
    json: bool,

    /// Print the numbers of the tables and plots as one CSV table: experiment, case, metric,
    /// round, value, unit, process
    #[arg(long, group = "form")]
    csv: bool,

    /// Write a flame graph of the time of all layers and phases
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    flame: Option<PathBuf>,

    /// Write a heat map of latencies over time
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    heat: Option<PathBuf>,

    /// Overwrite files that ugeom did not write
    #[arg(long)]
    force: bool,
}

#[derive(Subcommand)]
enum Sub {
    /// Show a recording
    Show(Show),
}

const EXAMPLES_OF_SHOW: &str = "\
Examples:
  ugeom trace show t.trace
  ugeom trace show t.trace --flame f.svg
  ugeom trace show t.trace --iolog vda.log
  ugeom run --name=r --read_iolog=vda.log     # replays the recording";

/// A recording and how it is shown.
#[derive(Args)]
#[command(after_help = EXAMPLES_OF_SHOW)]
struct Show {
    /// A file that --output wrote
    #[arg(value_hint = ValueHint::FilePath)]
    recording: PathBuf,

    /// Write the requests as a file that `ugeom run --read_iolog` and fio replay
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    iolog: Option<PathBuf>,

    #[command(flatten)]
    form: Form,
}

/// Show where the time of requests to the kernel's devices goes
#[derive(Args)]
#[command(
    long_about = LONG_ABOUT,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Trace {
    /// Devices, partitions, mount points or files
    #[arg(value_name = "DEVICE", required = true, value_hint = ValueHint::AnyPath,
          value_parser = word())]
    devices: Vec<String>,

    #[command(subcommand)]
    sub: Option<Sub>,

    /// Duration of the trace [default: while COMMAND runs, else until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time_above_0)]
    length: Option<Duration>,

    /// Take events from this source only [default: the first of bpf, tracefs, perf that
    /// works]
    #[arg(long, value_name = "NAME")]
    source: Option<Choice>,

    /// Sample requests, so that recording uses at most this share of one processor [default: all
    /// requests]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    sample: Option<f64>,

    /// Also record all events in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Measure the cost of a trace instead: reads of DEVICE, or runs of COMMAND, alternately with
    /// and without one. COMMAND runs 13 times, without stdout
    #[arg(long, conflicts_with_all = ["length", "output", "sample", "flame", "heat"])]
    overhead: bool,

    #[command(flatten)]
    form: Form,

    /// A program with its arguments, which runs during the trace
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Trace {
    pub fn run(&self) -> Result<()> {
        if let Some(Sub::Show(show)) = &self.sub {
            return show.run();
        }
        let recording = Output::new("--output", self.output.as_ref(), Written::Recording);
        self.form.check(recording)?;
        let scope = scope(&self.devices)?;
        let stop = interrupt::catch().context("listening for Ctrl-C")?;
        let choices = self.source.map_or(Choice::ALL.to_vec(), |one| vec![one]);
        if self.overhead {
            return self.measure_overhead(&scope, &choices, stop);
        }
        let mut run = self.attach(&scope, &choices)?;
        let mut child = self.start()?;
        let started = Instant::now();
        let mut failed = None;
        while !stop.load(Ordering::Relaxed) {
            if !run.session.is_behind() {
                std::thread::sleep(POLL);
            }
            run.poll()?;
            if let (Some((why, others)), None) = (run.session.successors(), self.source) {
                let name = run.session.source();
                output::warn(&format!(
                    "{name}: {why}; starting again with another source"
                ));
                match self.attach(&scope, &others) {
                    Ok(other) => run = other,
                    // This one tells of its gaps at the end.
                    Err(why) => output::warn(&format!("{why:#}")),
                }
            }
            if let Some(child) = &mut child
                && let Some(status) = child.try_wait().context("waiting for COMMAND")?
            {
                failed = (!status.success()).then_some(status);
                break;
            }
            if self
                .length
                .is_some_and(|length| started.elapsed() >= length)
            {
                break;
            }
        }
        let (traced, recorded) = run.finish(&self.devices)?;
        self.form.show(&traced)?;
        if let Some(mut child) = child {
            // Ctrl-C reached it as well; --for does not end it.
            let _ = child.wait();
        }
        recorded?;
        match failed {
            Some(status) => {
                output::complain(&format!("{}: {status}", self.command[0].display()));
                Err(Reported.into())
            }
            None => Ok(()),
        }
    }

    fn measure_overhead(&self, scope: &Scope, choices: &[Choice], stop: &AtomicBool) -> Result<()> {
        if !self.command.is_empty() {
            let (of, rounds) = ((scope, choices), load::ROUNDS);
            let found = load::measure(&self.command, &self.devices, of, rounds, stop)?;
            return self.form.print(&found, &found.page());
        }
        let [device] = self.devices.as_slice() else {
            return Err(Usage("--overhead takes one DEVICE".to_owned()).into());
        };
        let (tree, at) = kernel::read(Some(device))?;
        let node = at.map(|at| &tree.nodes[at]);
        let node = node.ok_or_else(|| Usage(format!("{device}: no block device")))?;
        let path = Path::new("/dev").join(&node.name);
        let path = if path.exists() { path } else { path_of(device) };
        let found = overhead::measure(
            &path,
            node.size_bytes,
            (scope, choices),
            overhead::ROUNDS,
            stop,
        )?;
        self.form.print(&found, &found.page())
    }

    fn attach(&self, scope: &Scope, choices: &[Choice]) -> Result<Run> {
        let mut session = Session::start(scope.clone(), choices).map_err(|why| anyhow!("{why}"))?;
        if let Some(share) = self.sample {
            session.sample(share);
        }
        ask_servers(&mut session);
        let recording = Recording::start(self.output.as_deref(), session.scope())?;
        Ok(Run {
            session,
            recording,
            sums: Sums::new(scope),
            started: Instant::now(),
        })
    }

    fn start(&self) -> Result<Option<Child>> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        let child = Command::new(program).args(arguments).spawn();
        Ok(Some(child.with_context(|| {
            format!("{}: starting it", program.display())
        })?))
    }
}

/// A trace that runs.
struct Run {
    session: Session,
    recording: Recording,
    sums: Sums,
    started: Instant,
}

impl Run {
    fn poll(&mut self) -> Result<()> {
        let trees = self.session.poll(&mut |event| {
            self.recording.event(event);
            self.sums.event(event);
        });
        self.sums.requests(&trees.context("reading events")?);
        self.sums.learn_names();
        Ok(())
    }

    /// The figures, and why events could not be recorded.
    fn finish(mut self, devices: &[String]) -> Result<(Traced, Result<()>)> {
        let seconds = self.started.elapsed().as_secs_f64();
        let (source, scope) = (self.session.source(), self.session.scope().clone());
        let ended = self.session.finish(&mut |event| {
            self.recording.event(event);
            self.sums.event(event);
        });
        let ended = ended.context("reading events")?;
        let recorded = self.recording.finish(ended.lost);
        self.sums.requests(&ended.trees);
        self.sums.learn_names();
        let about = About {
            targets: without_repeats(devices),
            source,
            seconds,
            scope: &scope,
        };
        let found = (ended.lost, ended.quality, ended.checks);
        let traced = self.sums.figures(&about, found).of_sample(ended.sample);
        Ok((traced, recorded))
    }
}

impl Form {
    /// Refuses files of others, and one file for two results: the pictures and one more.
    fn check(&self, more: Output<'_>) -> Result<()> {
        if let Some(path) = more.path {
            refuse_carrying(path)?;
        }
        let [flame, heat] = self.pictures();
        for path in [flame, heat].iter().filter_map(|one| one.path) {
            refuse_carrying(path)?;
        }
        files::check_all(&[flame, heat, more], self.force)
    }

    fn pictures(&self) -> [Output<'_>; 2] {
        let flags = [("--flame", &self.flame), ("--heat", &self.heat)];
        flags.map(|(flag, path)| Output::new(flag, path.as_ref(), Written::Picture))
    }

    fn show(&self, traced: &Traced) -> Result<()> {
        let [flame, heat] = self.pictures();
        files::deliver(
            || self.text(traced, &page::page(traced)),
            &[
                (flame, &|| Ok(draw::flame(traced))),
                (heat, &|| Ok(draw::heat(traced))),
            ],
        )
    }

    fn print(&self, found: &impl Serialize, page: &Page) -> Result<()> {
        output::print(&self.text(found, page)?)
    }

    fn text(&self, found: &impl Serialize, page: &Page) -> Result<String> {
        Ok(match (self.json, self.csv) {
            (true, _) => output::json(found)?,
            (_, true) => page.observations().to_csv(),
            _ => output::page(page),
        })
    }
}

/// An image that is overwritten on purpose is overwritten by another program.
fn refuse_carrying(path: &Path) -> Result<()> {
    result_file::refuse_carrying(path, |_| false).with_context(|| path.display().to_string())
}

/// The file that events are recorded in, if there is one. The first error is kept until the end: a
/// trace goes on without its recording.
struct Recording {
    path: PathBuf,
    writer: Option<Writer<BufWriter<File>>>,
    error: Option<io::Error>,
}

impl Recording {
    fn start(path: Option<&Path>, scope: &Scope) -> Result<Self> {
        // In place: what was recorded until a trace is killed can be shown.
        let open = |path: &Path| Writer::new(BufWriter::new(File::create(path)?), scope);
        let writer = path.map(open).transpose();
        let path = path.unwrap_or(Path::new("")).to_owned();
        let writer = writer.with_context(|| format!("{}: recording", path.display()))?;
        Ok(Self {
            path,
            writer,
            error: None,
        })
    }

    fn event(&mut self, event: &Event) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.event(event)
        {
            output::warn(&format!(
                "{}: {error}; the trace continues without a recording",
                self.path.display()
            ));
            self.error = Some(error);
            self.writer = None;
        }
    }

    fn finish(self, lost: u64) -> Result<()> {
        let kept = match (self.error, self.writer) {
            (Some(error), _) => Err(error),
            (_, None) => Ok(()),
            (_, Some(mut writer)) => writer.lost(lost).and_then(|()| writer.flush()),
        };
        kept.with_context(|| format!("{}: recording", self.path.display()))
    }
}

impl Show {
    fn run(&self) -> Result<()> {
        let wanted = Output::new("--iolog", self.iolog.as_ref(), Written::Iolog);
        self.form.check(wanted)?;
        let name = || self.recording.display().to_string();
        let file = File::open(&self.recording).with_context(name)?;
        let (mut reader, scope) = Reader::new(BufReader::new(file)).with_context(name)?;
        let mut linker = Linker::new(scope.topology.clone());
        let top = scope
            .tops
            .first()
            .map_or_else(String::new, |dev| scope.name(*dev));
        let mut iolog = match &self.iolog {
            Some(path) => Some(iolog(path, &format!("/dev/{top}"))?),
            None => None,
        };
        let (mut first, mut last, mut lost) = (None, 0, 0);
        let mut sums = Sums::new(&scope);
        let mut add = |trees: &[Tree], sums: &mut Sums| -> io::Result<()> {
            sums.requests(trees);
            let Some((log, _)) = &mut iolog else { return Ok(()) };
            let roots = trees.iter().filter_map(|tree| tree.spans.first());
            for root in roots.filter(|root| scope.tops.contains(&root.dev)) {
                log.request(root.start_ns, root.op, root.sector, root.sectors)?;
            }
            Ok(())
        };
        while let Some(events) = reader.events().with_context(name)? {
            for event in &events {
                if event.kind == EventKind::Lost {
                    lost = event.extra;
                    continue;
                }
                first.get_or_insert(event.time_ns);
                last = event.time_ns;
                linker.event(event);
                sums.event(event);
            }
            add(&linker.take(), &mut sums).context("writing the iolog")?;
        }
        let (rest, quality) = linker.finish();
        add(&rest, &mut sums).context("writing the iolog")?;
        if let Some((log, new)) = iolog {
            let written = log.finish().and_then(|()| new.keep());
            written.context("writing the iolog")?;
        }
        if reader.truncated {
            output::warn(&format!("{}: its last block was not written whole", name()));
        }
        let about = About {
            targets: scope.tops.iter().map(|dev| scope.name(*dev)).collect(),
            source: "recording",
            seconds: last.saturating_sub(first.unwrap_or(last)) as f64 / 1e9,
            scope: &scope,
        };
        self.form
            .show(&sums.figures(&about, (lost, quality, Vec::new())))
    }
}

fn iolog(path: &Path, device: &str) -> Result<(Iolog<BufWriter<File>>, NewFile)> {
    let open = || {
        let new = NewFile::create(path)?;
        let out = BufWriter::new(new.file.try_clone()?);
        io::Result::Ok((Iolog::new(out, device)?, new))
    };
    open().with_context(|| format!("{}: writing the iolog", path.display()))
}

/// A share of the time of a processor: 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let percent = units::percent(text).map_err(|error| error.with_help())?;
    let allowed = percent > 0.0 && percent <= 100.0;
    let share = allowed.then_some(percent / 100.0);
    share.ok_or_else(|| "a share is above 0 and at most 100 %, such as 1%".to_owned())
}

/// The devices as they were named, each once: `loop0` and `/dev/loop0` are the same.
fn without_repeats(devices: &[String]) -> Vec<String> {
    let name = |device: &String| device.trim_start_matches("/dev/").to_owned();
    let mut seen = Vec::new();
    let mut once = devices.to_vec();
    once.retain(|device| {
        let is_new = !seen.contains(&name(device));
        seen.push(name(device));
        is_new
    });
    once
}

/// The chains of these devices.
pub fn scope(devices: &[String]) -> Result<Scope> {
    let (tree, nodes) = kernel::read_all(devices)?;
    let scope = Scope::of(&tree, &nodes);
    if scope.tops.is_empty() {
        let why = format!(
            "{}: no block device and no FUSE server below it",
            devices.join(", ")
        );
        return Err(Usage(why).into());
    }
    Ok(scope)
}
