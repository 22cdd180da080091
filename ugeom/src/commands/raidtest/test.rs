//! `ugeom raidtest test`: sends the requests of a file to a device, from processes or threads.
//!
//! On the path of a file or device each worker is a process of its own, with a descriptor and a
//! stack of its own, as in the original. On a stack of layers workers are threads: what they share
//! there is the question.

use super::{FileArgs, OnlyArgs, totals_text};
use crate::opening::{self, SetArgs};
use crate::{output, safety};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use ugeom_classes::{Target, TargetOptions, TargetText};
use ugeom_format::raidtest::{self, RECORD_BYTES, REQUESTS_MAX, RaidtestKind, Request, Totals};
use ugeom_load::start::Cores;
use ugeom_load::{Load, LoadJob, Pattern};
use ugeom_machine::clock;
use ugeom_stack::StackKnobs;

const LONG_ABOUT: &str = "\
Sends the requests of a file to a device and prints the requests per second. Each worker sends a \
consecutive share of them, one after the other. On the path of a file or device workers are \
processes and I/O is direct (O_DIRECT, as in the original); on a stack of layers they are threads \
that share the stack.

A test with writes refuses a mounted device and, without --destroy, one that carries a partition \
table or a file system. It writes zeroes, or the data that it read last.";

const EXAMPLES: &str = "\
Examples:
  ugeom raidtest test -r -d /dev/sdb -n 16            # read with 16 processes
  ugeom raidtest test -d zero:clear=0 -n 4            # GEOM's limits
  ugeom raidtest test -r -d 'md:1g' --set registry=locked -n 2";

/// Send the requests of a file to a device
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Test {
    /// A path, `md:64m`, layers joined by `|` (see ugeom --help)
    #[arg(short = 'd', long, value_name = "TARGET", value_hint = clap::ValueHint::FilePath,
          value_parser = crate::opening::word())]
    device: String,

    /// Number of workers
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    processes: u32,

    #[command(flatten)]
    only: OnlyArgs,

    #[command(flatten)]
    set: SetArgs,

    /// Write to a target with a partition table or a file system
    #[arg(long)]
    destroy: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    /// Be one of the processes: wait for a line, run this share, say when
    #[arg(long, value_name = "INDEX", hide = true)]
    share: Option<u32>,

    #[command(flatten)]
    file: FileArgs,
}

/// The message of a process to its parent.
#[derive(Serialize, Deserialize)]
struct Span {
    start_ns: u64,
    end_ns: u64,
}

#[derive(Serialize)]
struct Done {
    file: String,
    requests: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
    workers: u32,
    are_processes: bool,
    wall_ns: u64,
    bytes_per_second: f64,
    requests_per_second: f64,
}

impl Test {
    pub fn run(&self) -> Result<()> {
        let requests = self.requests()?;
        if let Some(index) = self.share {
            return self.run_share(&requests, index as usize);
        }
        let totals = Totals::of(&requests);
        let target = self.open(&totals)?;
        let provider = opening::top(&target)?;
        raidtest::check(
            &requests,
            provider.mediasize_bytes,
            provider.sectorsize_bytes,
        )
        .with_context(|| format!("{} on {}", self.name(), provider.name))?;
        if totals.writes > 0 && !self.destroy {
            safety::refuse_content(&target)?;
        }
        if !self.json {
            self.print_head(requests.len(), &totals)?;
        }
        let are_processes = is_path(&self.device);
        let wall_ns = match are_processes {
            // The target stays open, and so locked, in this process for all of them.
            true => self.run_processes()?,
            false => self.run_threads(&target, requests.iter().copied())?,
        };
        self.print_result(requests.len(), &totals, are_processes, wall_ns)
    }

    fn name(&self) -> String {
        self.file.file.display().to_string()
    }

    /// The requests of the file, as `-r` or `-w` would have them.
    fn requests(&self) -> Result<Vec<Request>> {
        let bytes = read_file(&self.file.file).with_context(|| self.name())?;
        let mut requests = raidtest::decode(&bytes).with_context(|| self.name())?;
        if let Some(kind) = self.only.kind() {
            for request in &mut requests {
                request.kind = kind;
            }
        }
        Ok(requests)
    }

    fn open(&self, totals: &Totals) -> Result<Target> {
        let options = TargetOptions {
            writable: totals.writes > 0,
            direct: is_path(&self.device),
            unlocked: self.share.is_some(),
            set: self.set.settings(),
            knobs: StackKnobs {
                // Partitions that carry something are not written to.
                taste: totals.writes > 0 && !self.destroy,
                ..StackKnobs::default()
            },
            ..TargetOptions::default()
        };
        opening::open(&self.device, &options)
    }

    fn job(&self, requests: impl Iterator<Item = Request>, workers: usize) -> LoadJob {
        let list: Arc<[_]> = requests.collect();
        LoadJob {
            workers,
            cores: Cores::OneEach,
            ..LoadJob::new("raidtest", Pattern::List(list))
        }
    }

    fn run_threads(&self, target: &Target, requests: impl Iterator<Item = Request>) -> Result<u64> {
        let job = self.job(requests, self.processes as usize);
        let mut load = Load::new(&target.stack, target.top, &job)?;
        let wall_ns = load.run_lists()?.wall_ns;
        drop(load);
        opening::ended(&target.stack, Ok(()))?;
        Ok(wall_ns)
    }

    /// Starts the processes, lets them begin together, and waits for all. Returns the time from
    /// the first start to the last end, ns.
    fn run_processes(&self) -> Result<u64> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut workers = Workers(Vec::new());
        for index in 0..self.processes {
            let started = self.command(&program, index).spawn();
            workers.0.push(started.context("starting a process")?);
        }
        let mut spans = Vec::new();
        workers.wait_until_ready()?;
        for child in &mut workers.0 {
            let mut stdin = child.stdin.take().context("a process without a pipe")?;
            stdin.write_all(b"\n").context("a process ended early")?;
        }
        for child in &mut workers.0 {
            let text = last_line(child)?;
            let span: Span = serde_json::from_str(&text)
                .with_context(|| format!("a process printed {:?}", output::printable(&text)))?;
            spans.push(span);
        }
        workers.join()?;
        let first_ns = spans.iter().map(|span| span.start_ns).min().unwrap_or(0);
        let last_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        Ok(last_ns.saturating_sub(first_ns))
    }

    fn command(&self, program: &Path, index: u32) -> Command {
        let mut command = Command::new(program);
        command.args(["raidtest", "test", "--share", &index.to_string()]);
        command.args(["-n", &self.processes.to_string(), "-d", &self.device]);
        match self.only.kind() {
            Some(RaidtestKind::Read) => command.arg("-r"),
            Some(RaidtestKind::Write) => command.arg("-w"),
            None => &mut command,
        };
        if self.destroy {
            command.arg("--destroy");
        }
        for text in self.set.texts() {
            command.args(["--set", text]);
        }
        command.arg("--").arg(&self.file.file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// The work of one process.
    fn run_share(&self, requests: &[Request], index: usize) -> Result<()> {
        let share = raidtest::share(requests, self.processes as usize, index);
        let target = self.open(&Totals::of(requests))?;
        let job = self.job(share.iter().copied(), 1);
        let load = match share {
            [] => None,
            _ => Some(Load::new(&target.stack, target.top, &job)?),
        };
        output::print("ready\n")?;
        let mut line = String::new();
        io::stdin()
            .lock()
            .read_line(&mut line)
            .context("waiting for the others")?;
        if line.is_empty() {
            bail!("the process that started this one has ended");
        }
        let start_ns = clock::now_ns();
        if let Some(mut load) = load {
            load.run_lists()?;
        }
        let end_ns = clock::now_ns();
        opening::ended(&target.stack, Ok(()))?;
        let span = serde_json::to_string(&Span { start_ns, end_ns })?;
        output::print(&format!("{span}\n"))
    }

    fn print_head(&self, requests: usize, totals: &Totals) -> Result<()> {
        let name = output::printable(&self.name());
        let totals = totals_text(totals);
        let processes = self.processes;
        output::print(&format!(
            "Read {requests} requests from {name}.\n{totals}Number of processes: {processes}.\n"
        ))
    }

    fn print_result(
        &self,
        requests: usize,
        totals: &Totals,
        are_processes: bool,
        wall_ns: u64,
    ) -> Result<()> {
        let per_second = |count: u64| count as f64 * 1e9 / wall_ns.max(1) as f64;
        let done = Done {
            file: self.name(),
            requests: requests as u64,
            reads: totals.reads,
            writes: totals.writes,
            bytes: totals.bytes,
            workers: self.processes,
            are_processes,
            wall_ns,
            bytes_per_second: per_second(totals.bytes),
            requests_per_second: per_second(requests as u64),
        };
        if self.json {
            return output::print_json(&done);
        }
        output::print(&format!(
            "Bytes per second: {:.0}\nRequests per second: {:.0}\n",
            done.bytes_per_second.floor(),
            done.requests_per_second.floor()
        ))
    }
}

/// Whether a target is nothing but the path of a file or device.
fn is_path(text: &str) -> bool {
    TargetText::parse(text).is_ok_and(|target| target.single_path().is_some())
}

/// Reads at most one request more than is accepted, which is enough to refuse it.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = (REQUESTS_MAX + 1) * RECORD_BYTES as u64;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The processes; those that are left when something fails are ended.
struct Workers(Vec<Child>);

impl Workers {
    /// Waits until each has said that it is ready.
    fn wait_until_ready(&mut self) -> Result<()> {
        for child in &mut self.0 {
            let line = next_line(child)?;
            if line != "ready\n" {
                bail!("a process could not start; its error is above");
            }
        }
        Ok(())
    }

    fn join(mut self) -> Result<()> {
        for mut child in self.0.drain(..) {
            let status = child.wait().context("waiting for a process")?;
            if !status.success() {
                bail!("a process failed: {status}");
            }
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already cannot be ended again, which is no error.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A line of a process's output, byte by byte: nothing behind it may be lost in a buffer.
fn next_line(child: &mut Child) -> Result<String> {
    let stdout = child.stdout.as_mut().context("a process without a pipe")?;
    let mut line = String::new();
    BufReader::with_capacity(1, stdout)
        .read_line(&mut line)
        .context("listening to a process")?;
    Ok(line)
}

fn last_line(child: &mut Child) -> Result<String> {
    let line = next_line(child)?;
    if line.is_empty() {
        bail!("a process failed; its error is above");
    }
    Ok(line)
}
