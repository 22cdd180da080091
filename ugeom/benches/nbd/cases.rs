//! The cases: a client at a server.

use crate::servers::{EXPORT_BYTES, Server, ServerKind};
use crate::shared::{Failure, program};
use serde::Deserialize;
use std::process::{Command, Stdio};
use std::time::Instant;
use ugeom_harness::HarnessError;
use ugeom_harness::figure::Unit;
use ugeom_harness::{Case, Length, RunResult, Work};
use ugeom_load::{self as load, Load, LoadJob, Pattern, Range};

/// Bytes of a request.
const BLOCK_BYTES: u32 = 4096;

/// Of so many bytes of an export, the first half lies in the processor's caches.
const NEAR_BYTES: u64 = 2 << 20;

/// Requests of a run of fio: about half of a second.
const FIO_REQUESTS: u64 = 50_000;

/// Requests of which the server's CPU time is taken.
const CPU_REQUESTS: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// The class `nbd`, random reads of 4 KiB, so many at a time.
    Run(usize),
    /// The same within what the processor's caches hold: canned replies always lie there.
    Near(usize),
    /// fio's nbd engine, the same, 32 at a time.
    Fio,
    /// nbdcopy of everything, as one transfer.
    Copy,
    /// As `Run(32)`, but what is taken is the server's CPU time.
    Cpu,
}

impl Client {
    pub fn words(self) -> String {
        match self {
            Self::Run(depth) => format!("the class nbd, depth {depth}"),
            Self::Near(depth) => format!("the class nbd, depth {depth}, within 1 MiB"),
            Self::Fio => "fio's nbd engine, depth 32".to_owned(),
            Self::Copy => "nbdcopy --no-extents of 1 GiB".to_owned(),
            Self::Cpu => "server CPU a request, depth 32".to_owned(),
        }
    }

    /// The program that it needs.
    pub fn program(self) -> Result<Option<std::path::PathBuf>, String> {
        let name = match self {
            Self::Run(_) | Self::Near(_) | Self::Cpu => return Ok(None),
            Self::Fio => "fio",
            Self::Copy => "nbdcopy",
        };
        let found = program(name).ok_or_else(|| format!("{name} is not installed"))?;
        Ok(Some(found))
    }

    /// The unit of its figure.
    pub fn unit(self) -> Unit {
        match self {
            Self::Run(_) | Self::Near(_) | Self::Fio | Self::Cpu => Unit::PerSecond,
            Self::Copy => Unit::BytesPerSecond,
        }
    }

    /// The count of the figure in an iteration of one nanosecond.
    pub fn of_a_nanosecond(self) -> f64 {
        match self {
            Self::Run(_) | Self::Near(_) | Self::Fio | Self::Cpu => 1e9,
            Self::Copy => 1e9 * EXPORT_BYTES as f64,
        }
    }
}

/// A client at a server, and how many times as fast this server is to be at least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub client: Client,
    pub kind: ServerKind,
    pub goal: Option<f64>,
}

const fn plan(client: Client, kind: ServerKind, goal: Option<f64>) -> Plan {
    Plan { client, kind, goal }
}

/// Everything that is measured.
pub(crate) const ALL: &[Plan] = &[
    plan(Client::Run(32), ServerKind::Ours, None),
    plan(Client::Run(32), ServerKind::Nbdkit, Some(4.0)),
    plan(Client::Run(32), ServerKind::Qemu, Some(4.0)),
    plan(Client::Run(32), ServerKind::Canned, Some(0.6)),
    plan(Client::Run(128), ServerKind::Ours, None),
    plan(Client::Run(128), ServerKind::Nbdkit, Some(4.0)),
    plan(Client::Run(128), ServerKind::Qemu, Some(4.0)),
    plan(Client::Run(128), ServerKind::Canned, Some(0.6)),
    plan(Client::Near(128), ServerKind::Ours, None),
    plan(Client::Near(128), ServerKind::Canned, None),
    plan(Client::Run(1), ServerKind::Ours, None),
    plan(Client::Run(1), ServerKind::Nbdkit, Some(2.0)),
    plan(Client::Run(1), ServerKind::Canned, Some(0.6)),
    plan(Client::Fio, ServerKind::Ours, None),
    plan(Client::Fio, ServerKind::Nbdkit, Some(1.3)),
    plan(Client::Fio, ServerKind::Canned, Some(0.6)),
    plan(Client::Copy, ServerKind::Ours, None),
    plan(Client::Copy, ServerKind::Nbdkit, Some(1.3)),
    plan(Client::Copy, ServerKind::Canned, Some(0.6)),
    plan(Client::Cpu, ServerKind::Ours, None),
    plan(Client::Cpu, ServerKind::Nbdkit, Some(2.0)),
];

/// A job of the load generator: random reads of the first half of an export of so many bytes.
pub(crate) fn job(name: &str, depth: usize, bytes: u64) -> LoadJob {
    let range = Range {
        start_bytes: 0,
        blocks: bytes / u64::from(BLOCK_BYTES) / 2,
        block_bytes: BLOCK_BYTES,
        write_percent: 0,
    };
    LoadJob {
        depth,
        ..LoadJob::new(name, Pattern::Random(range))
    }
}

impl Plan {
    pub fn name(&self) -> String {
        format!("{}, {}", self.client.words(), self.kind.word())
    }

    pub fn case(&self, server: &Server) -> Result<Case<'static>, Failure> {
        let name = self.name();
        let fixed = |warm_up, iterations| Length::Exactly {
            warm_up,
            iterations,
        };
        match self.client {
            Client::Run(depth) | Client::Near(depth) => {
                let target = server.target()?;
                let near = matches!(self.client, Client::Near(_));
                let bytes = if near { NEAR_BYTES } else { EXPORT_BYTES };
                let job = job(&name, depth, bytes);
                Ok(load::case(&target.stack, target.top, &job)?)
            }
            Client::Cpu => {
                let target = server.target()?;
                let mut load = Load::new(&target.stack, target.top, &job(&name, 32, EXPORT_BYTES))?;
                let id = server.id();
                let case = Case::new(name, move |requests| {
                    let before_ns = cpu_ns(id)?;
                    load.run(requests)?;
                    Ok(RunResult::taking(cpu_ns(id)?.saturating_sub(before_ns)))
                });
                Ok(case.with_length(fixed(CPU_REQUESTS / 10, CPU_REQUESTS)))
            }
            Client::Fio => {
                let (uri, case) = (server.uri(), name.clone());
                let run = move |requests| fio(&case, &uri, requests);
                Ok(Case::new(name, run).with_length(fixed(0, FIO_REQUESTS)))
            }
            Client::Copy => {
                let (uri, case) = (server.uri(), name.clone());
                let run = move |copies| copy(&case, &uri, copies);
                Ok(Case::new(name, run).with_length(fixed(0, 1)))
            }
        }
    }
}

/// CPU time of all threads of a process, ns (proc_pid_schedstat in the kernel's documentation).
fn cpu_ns(id: u32) -> Result<u64, HarnessError> {
    let path = format!("/proc/{id}/task");
    let os = |source| HarnessError::os(&path, "listing threads")(source);
    let mut sum = 0;
    for thread in std::fs::read_dir(&path).map_err(os)? {
        let thread = thread.map_err(os)?;
        // One that has ended meanwhile is no longer of interest.
        let text = std::fs::read_to_string(thread.path().join("schedstat"));
        let first = text.unwrap_or_default();
        let first = first.split(' ').next().and_then(|word| word.parse().ok());
        sum += first.unwrap_or(0_u64);
    }
    Ok(sum)
}

fn wrong(case: &str, problem: impl Into<String>) -> HarnessError {
    HarnessError::Load {
        job: case.to_owned(),
        problem: problem.into(),
    }
}

fn output(case: &str, command: &mut Command) -> Result<Vec<u8>, HarnessError> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(HarnessError::os(case, "running it"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(wrong(case, format!("{}: {}", output.status, said.trim())))
}

/// The used part of fio's JSON.
#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    error: i64,
    read: Reads,
}

#[derive(Deserialize)]
struct Reads {
    iops: f64,
    total_ios: u64,
}

fn fio(case: &str, uri: &str, requests: u64) -> Result<RunResult, HarnessError> {
    if requests == 0 {
        return Ok(RunResult::taking(0));
    }
    let mut command = Command::new("fio");
    command.args(["--name=n", "--ioengine=nbd", "--rw=randread", "--bs=4k"]);
    command.args(["--iodepth=32", "--size=512m", "--output-format=json"]);
    command.arg(format!("--uri={uri}"));
    command.arg(format!("--number_ios={requests}"));
    let text = output(case, &mut command)?;
    let text = String::from_utf8_lossy(&text);
    let json = text.find('{').map_or("", |at| &text[at..]);
    let found: Result<Jobs, _> = serde_json::from_str(json);
    let found = found.map_err(|error| wrong(case, format!("fio's JSON: {error}")))?;
    match found.jobs.as_slice() {
        [job] if job.error == 0 && job.read.iops > 0.0 => {
            let done = job.read.total_ios;
            let ns_total = (done as f64 * 1e9 / job.read.iops) as u64;
            let result = RunResult::taking(ns_total).counting(done);
            Ok(result.doing(Work::of(done * u64::from(BLOCK_BYTES), done)))
        }
        _ => Err(wrong(case, "fio did nothing, or failed")),
    }
}

fn copy(case: &str, uri: &str, copies: u64) -> Result<RunResult, HarnessError> {
    let began = Instant::now();
    for _ in 0..copies {
        let mut command = Command::new("nbdcopy");
        output(case, command.args(["--no-extents", uri, "null:"]))?;
    }
    let ns_total = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(RunResult::taking(ns_total).doing(Work::of(copies * EXPORT_BYTES, copies)))
}
