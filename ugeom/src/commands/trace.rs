//! `ugeom trace`: where the time of requests to the kernel's devices goes.

use super::show::kernel;
use crate::failure::{Reported, Usage};
use crate::opening::time;
use crate::output;
use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use ugeom_machine::interrupt;
use ugeom_report::text::WIDTH;
use ugeom_trace::figures::{About, Traced};
use ugeom_trace::session::{Scope, Session};
use ugeom_trace::tally::Tally;
use ugeom_trace::{draw, page};

const LONG_ABOUT: &str = "\
Follows each request to a block device through the kernel's layers (partitions, loop devices with \
their workers, mapped devices, RAID, FUSE servers, disks) and prints where its time goes: for each \
layer the inclusive and the exclusive time, by phases, with percentiles. Exclusive times add up to \
the whole.

The events come from BPF programs on raw tracepoints; that needs root, or CAP_BPF and CAP_PERFMON. \
The counts of events are compared with /proc/diskstats in each run. Lost events and requests whose \
end was not seen are reported, never shown as in flight.

A DEVICE is a block device, a partition, a mount point or a file on a disk. The trace lasts as \
long as COMMAND runs, else for --for, else until Ctrl-C. docs/trace.md explains the phases.";

const EXAMPLES: &str = "\
Examples:
  ugeom trace /dev/vda --for 10s              what do requests to this disk wait for?
  ugeom trace loop0 -- fio job.fio            the layers below loop0 while fio runs
  ugeom trace vda --json > trace.json         saved; `ugeom report trace.json` draws it
  ugeom trace vda --flame f.svg --heat h.svg  pictures";

/// How often events are read.
const POLL: Duration = Duration::from_millis(10);

/// Show where the time of requests to the kernel's devices goes
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Trace {
    /// Devices, partitions, mount points or files
    #[arg(value_name = "DEVICE", required = true, value_hint = ValueHint::AnyPath)]
    devices: Vec<String>,

    /// How long [default: while COMMAND runs, else until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    length: Option<Duration>,

    /// Print JSON
    #[arg(long, group = "form")]
    json: bool,

    /// Print the tables as CSV
    #[arg(long, group = "form")]
    csv: bool,

    /// Write a flame graph of the time of all layers and phases
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    flame: Option<PathBuf>,

    /// Write a heat map of latencies over time
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    heat: Option<PathBuf>,

    /// A program with its arguments, which runs during the trace
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Trace {
    pub fn run(&self) -> Result<()> {
        let scope = scope(&self.devices)?;
        let stop = interrupt::catch().context("listening for Ctrl-C")?;
        let mut session = Session::start(scope.clone()).map_err(|why| anyhow!("{why}"))?;
        let mut tally = Tally::new(scope.tops.clone());
        let started = Instant::now();
        let mut child = self.start()?;
        let mut failed = None;
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(POLL);
            for tree in session.poll().context("reading events")? {
                tally.add(&tree);
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
        let about = About {
            targets: self.devices.clone(),
            source: session.source(),
            seconds: started.elapsed().as_secs_f64(),
            scope: &scope,
        };
        let ended = session.finish().context("reading events")?;
        for tree in &ended.trees {
            tally.add(tree);
        }
        let traced = Traced::new(&about, &tally, (ended.lost, ended.quality, ended.checks));
        self.show(&traced)?;
        if let Some(mut child) = child {
            // Ctrl-C reached it as well; --for does not end it.
            let _ = child.wait();
        }
        match failed {
            Some(status) => {
                output::complain(&format!("{}: {status}", self.command[0]));
                Err(Reported.into())
            }
            None => Ok(()),
        }
    }

    fn start(&self) -> Result<Option<Child>> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Ok(None);
        };
        let child = Command::new(program).args(arguments).spawn();
        Ok(Some(
            child.with_context(|| format!("{program}: starting it"))?,
        ))
    }

    fn show(&self, traced: &Traced) -> Result<()> {
        let pictures = [
            (&self.flame, draw::flame as fn(&Traced) -> String),
            (&self.heat, draw::heat),
        ];
        for (path, picture) in pictures {
            if let Some(path) = path {
                write(path, &picture(traced))?;
            }
        }
        if self.json {
            return output::print_json(traced);
        }
        let page = page::page(traced);
        output::print(&match self.csv {
            true => page.to_csv(),
            false => page.to_text(WIDTH),
        })
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("{}: writing the picture", path.display()))
}

/// The chains of these devices.
pub fn scope(devices: &[String]) -> Result<Scope> {
    let mut nodes = Vec::new();
    let mut tree = None;
    for device in devices {
        let (found, at) = kernel::read(Some(device))?;
        nodes.extend(at);
        tree = Some(found);
    }
    let scope = Scope::of(&tree.unwrap_or_default(), &nodes);
    if scope.tops.is_empty() {
        let why = format!(
            "{}: no block device and no FUSE server below it",
            devices.join(", ")
        );
        return Err(Usage(why).into());
    }
    Ok(scope)
}
