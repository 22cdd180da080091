//! fio's null engine as a case: another program's cost of a request, in the same rounds as ours.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, Length, RunResult, Work};

/// Requests of one run: some 0.4 s, of which fio tells milliseconds.
const REQUESTS: u64 = 1_000_000;

/// The accounting of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// The latency of every request, as fio does when nothing else is said.
    Latency,
    /// As little as its option `gtod_reduce` leaves.
    Reduced,
}

/// The used part of fio's JSON.
#[derive(Deserialize)]
struct Output {
    jobs: Vec<JobOutput>,
}

#[derive(Deserialize)]
struct JobOutput {
    error: i64,
    read: ReadOutput,
}

#[derive(Deserialize)]
struct ReadOutput {
    iops: f64,
    total_ios: u64,
}

/// A case that reads 512 bytes in order through fio's null engine, one request at a time. An
/// iteration is a request; its time is that which fio tells, without its start.
pub fn null_engine(name: &str, program: &Path, account: Account) -> Case<'static> {
    let (program, case) = (PathBuf::from(program), name.to_owned());
    let run = move |iterations: u64| run(&case, &program, account, iterations);
    Case::new(name, run).with_length(Length::Exactly {
        warm_up: 0,
        iterations: REQUESTS,
    })
}

fn run(
    case: &str,
    program: &Path,
    account: Account,
    requests: u64,
) -> Result<RunResult, HarnessError> {
    if requests == 0 {
        return Ok(RunResult::taking(0));
    }
    let wrong = |problem: String| HarnessError::Load {
        job: case.to_owned(),
        problem,
    };
    let mut command = Command::new(program);
    command.args(["--name=null", "--ioengine=null", "--rw=read", "--bs=512"]);
    command.args([
        "--size=1t",
        "--iodepth=1",
        "--thread",
        "--output-format=json",
    ]);
    command.arg(format!("--number_ios={requests}"));
    if account == Account::Reduced {
        command.arg("--gtod_reduce=1");
    }
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(HarnessError::os(
        program.display().to_string(),
        "running it",
    ))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(wrong(format!(
            "fio ended with {}: {}",
            output.status,
            said.trim()
        )));
    }
    let (done, rate) = parse(&output.stdout).map_err(wrong)?;
    let ns_total = (done as f64 * 1e9 / rate) as u64;
    Ok(RunResult::taking(ns_total).doing(Work::of(done * 512, done)))
}

/// How many requests fio did, and how many in a second. It writes notes before the JSON.
fn parse(stdout: &[u8]) -> Result<(u64, f64), String> {
    let text = String::from_utf8_lossy(stdout);
    let json = text.find('{').map_or("", |at| &text[at..]);
    let output: Output =
        serde_json::from_str(json).map_err(|error| format!("fio's JSON: {error}"))?;
    match output.jobs.as_slice() {
        [job] if job.error == 0 && job.read.iops > 0.0 && job.read.total_ios > 0 => {
            Ok((job.read.total_ios, job.read.iops))
        }
        _ => Err("fio did nothing, or failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fio_says_is_understood() {
        let said = b"note: both iodepth >= 1 and synchronous I/O engine are selected\n\
            {\"jobs\":[{\"error\":0,\"read\":{\"iops\":2509410.288582,\"total_ios\":2000000}}]}";
        assert_eq!(parse(said), Ok((2_000_000, 2_509_410.288_582)));
        assert!(parse(b"fio: bad option").is_err());
        assert!(parse(b"{\"jobs\":[]}").is_err());
        let failed = b"{\"jobs\":[{\"error\":5,\"read\":{\"iops\":1.0,\"total_ios\":1}}]}";
        assert!(parse(failed).is_err());
    }

    #[test]
    fn a_program_that_is_not_fio_is_an_error() {
        let none = run("fio", Path::new("/nowhere/fio"), Account::Latency, 1);
        assert!(none.unwrap_err().to_string().contains("/nowhere/fio"));
        let other = run("fio", Path::new("/bin/true"), Account::Reduced, 1);
        assert!(other.is_err());
    }

    #[test]
    fn fio_does_as_many_requests_as_it_is_told() {
        let Some(fio) = ugeom_testkit::program("fio") else { return };
        for account in [Account::Latency, Account::Reduced] {
            let result = run("fio", &fio, account, 1000).unwrap();
            assert_eq!(result.work, Work::of(512_000, 1000));
            assert!(result.ns_total > 0);
        }
    }
}
