//! Runs a command of the shell, and takes the time that passes, or what it prints, for its result.

use super::printed::{PRINTED_ITERATIONS, Printed, shortened};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ugeom_harness::HarnessError;
use ugeom_harness::{Cell, Length, RunResult};
use ugeom_machine::clock;

/// How much of what a command says is read, from the end.
const OUTPUT_BYTES_MAX: u64 = 65_536;

/// How long a Ctrl-C may take to reach this process when it has ended the command already.
const SIGNAL_TIME: Duration = Duration::from_millis(200);

const SIGINT: i32 = 2;

/// A command that is to be measured.
pub(super) struct Program<'a> {
    text: String,
    printed: Option<Printed>,
    cancelled: &'a AtomicBool,
}

/// What a run of a command left.
struct Done {
    took_ns: u64,
    /// None when the user stopped it.
    output: Option<String>,
}

impl<'a> Program<'a> {
    pub(super) fn new(text: &str, printed: Option<Printed>, cancelled: &'a AtomicBool) -> Self {
        Self {
            text: text.to_owned(),
            printed,
            cancelled,
        }
    }

    /// The cell that runs it; an iteration is one run. A first run, which is not counted, finds
    /// what is wrong with it and how long it takes.
    ///
    /// # Errors
    /// [`HarnessError::Command`] when it fails or does not print what it should.
    pub(super) fn cell(self, name: &str, run_ns: u64) -> Result<Cell<'a>, HarnessError> {
        let first = self.once(true)?;
        if let Some(printed) = self.printed {
            if let Some(output) = &first.output {
                self.number(printed, output)?;
            }
            let length = Length::Exactly {
                warm_up: 0,
                iterations: PRINTED_ITERATIONS,
            };
            let run = move |iterations: u64| self.printed_run(printed, iterations);
            return Ok(Cell::new(name, run).with_length(length));
        }
        let is_long = first.took_ns > run_ns / 2;
        let run = move |iterations: u64| {
            let mut took_ns = 0;
            for _ in 0..iterations {
                took_ns += self.once(false)?.took_ns;
                if self.cancelled.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(RunResult::taking(took_ns))
        };
        let cell = Cell::new(name, run);
        if !is_long {
            return Ok(cell);
        }
        // It has its warm-up inside: a second run only to warm up would double the time.
        let (warm_up, iterations) = (0, 1);
        Ok(cell.with_length(Length::Exactly {
            warm_up,
            iterations,
        }))
    }

    fn printed_run(&self, printed: Printed, iterations: u64) -> Result<RunResult, HarnessError> {
        let Some(output) = self.once(true)?.output else {
            return Ok(RunResult::taking(1));
        };
        let ns = self.number(printed, &output)?;
        Ok(RunResult::taking((ns * iterations as f64).round() as u64))
    }

    /// The time that its output stands for, ns.
    fn number(&self, printed: Printed, output: &str) -> Result<f64, HarnessError> {
        let read = printed.read(output);
        read.map_err(|problem| self.failed(problem))
    }

    /// Runs it once; with `listening` what it says is kept.
    fn once(&self, listening: bool) -> Result<Done, HarnessError> {
        let failed = |error: std::io::Error| self.failed(error.to_string());
        let mut files: Option<(File, File)> = None;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &self.text]).stdin(Stdio::null());
        if listening {
            let pair = (
                tempfile::tempfile().map_err(failed)?,
                tempfile::tempfile().map_err(failed)?,
            );
            command.stdout(pair.0.try_clone().map_err(failed)?);
            command.stderr(pair.1.try_clone().map_err(failed)?);
            files = Some(pair);
        } else {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let start_ns = clock::now_ns();
        let status = command.status().map_err(failed)?;
        let took_ns = clock::now_ns() - start_ns;
        let mut said = files.map(|(out, err)| (end_of(out), end_of(err)));
        if !status.success() {
            if self.was_stopped(status) {
                let output = None;
                return Ok(Done { took_ns, output });
            }
            let words = said.take().map(|(_, err)| shortened(&err));
            let words = words.filter(|words| !words.is_empty());
            let words = words.map_or(String::new(), |words| format!(": {words}"));
            return Err(self.failed(format!("it ended with {status}{words}")));
        }
        Ok(Done {
            took_ns,
            output: Some(said.map(|(out, _)| out).unwrap_or_default()),
        })
    }

    /// Whether it ended because the user stopped everything: Ctrl-C goes to both.
    fn was_stopped(&self, status: ExitStatus) -> bool {
        let since = Instant::now();
        let interrupted = status.signal() == Some(SIGINT) || status.code() == Some(128 + SIGINT);
        while interrupted && since.elapsed() < SIGNAL_TIME {
            if self.cancelled.load(Ordering::Relaxed) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    fn failed(&self, problem: String) -> HarnessError {
        HarnessError::Command {
            command: self.text.clone(),
            problem,
        }
    }
}

/// The end of what was written to a file, as text.
fn end_of(mut file: File) -> String {
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let from = length.saturating_sub(OUTPUT_BYTES_MAX);
    // What cannot be read was not said.
    if file.seek(SeekFrom::Start(from)).is_ok() {
        let _ = file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_timed_or_believed() {
        let cancelled = AtomicBool::new(false);
        let mut slept = Program::new("sleep 0.03", None, &cancelled)
            .cell("A", 50_000_000)
            .unwrap();
        let (warm_up, iterations) = (0, 1);
        let once = Length::Exactly {
            warm_up,
            iterations,
        };
        assert_eq!(slept.length, once, "it takes most of a run");
        assert!((slept.run)(2).unwrap().ns_total >= 60_000_000);
        let printed = Some(Printed::PerSecond);
        let mut rate = Program::new("echo 'rate 2000000000'", printed, &cancelled)
            .cell("A", 50_000_000)
            .unwrap();
        let result = (rate.run)(PRINTED_ITERATIONS).unwrap();
        assert_eq!(result.ns_total, 500_000, "half a nanosecond each");
    }

    #[test]
    fn what_is_wrong_with_a_command_is_told_before_it_is_measured() {
        let cancelled = AtomicBool::new(false);
        let told = |text: &str, printed| {
            let cell = Program::new(text, printed, &cancelled).cell("A", 1000);
            cell.map(|_| ()).unwrap_err().to_string()
        };
        let failed = told("echo no such thing >&2; exit 3", None);
        assert_eq!(
            failed,
            "`echo no such thing >&2; exit 3`: it ended with exit status: 3: no such thing"
        );
        assert!(told("/no/such/program", None).contains("exit status: 127"));
        assert!(told("kill -9 $$", None).contains("signal: 9"));
        assert!(told("echo fast", Some(Printed::S)).contains("and prints `fast`"));
        assert!(told("true", Some(Printed::S)).contains("and prints nothing"));
        assert!(told("echo -1", Some(Printed::S)).contains("no time between"));
        assert!(told("echo 99999", Some(Printed::S)).contains("and an hour"));
    }

    #[test]
    fn a_command_that_ctrl_c_ended_is_no_failure() {
        let cancelled = AtomicBool::new(false);
        let program = Program::new("exit 130", None, &cancelled);
        assert!(program.once(false).is_err());
        cancelled.store(true, Ordering::Relaxed);
        assert!(program.once(false).is_ok_and(|done| done.output.is_none()));
    }
}
