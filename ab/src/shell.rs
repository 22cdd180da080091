//! How commands are started: by a shell, or directly. And the commands around them: what is done
//! before and after runs.

use super::Candidate;
use super::printed::shortened;
use super::words::words;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ugeom_harness::{Case, HarnessError};
use ugeom_machine::clock;

/// How much of a command's output is read, from the end.
const OUTPUT_BYTES_MAX: u64 = 65_536;

/// How long a Ctrl-C may take to reach this process when it has ended the command already.
const SIGNAL_TIME: Duration = Duration::from_millis(200);

const SIGINT: i32 = 2;

/// How a command is started (`--shell`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    /// Nothing: a command is a program and its arguments.
    None,
    /// A shell, with `-c`.
    Named(String),
}

impl Default for Shell {
    fn default() -> Self {
        Self::Named("/bin/sh".to_owned())
    }
}

impl Shell {
    /// `none`, or a shell with its arguments, such as `bash --norc`.
    ///
    /// # Errors
    /// The defect of the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "default" => Ok(Self::default()),
            text => words(text).map(|_| Self::Named(text.to_owned())),
        }
    }

    /// The process that runs a command.
    ///
    /// # Errors
    /// A command that cannot be divided into words.
    fn command(&self, text: &str) -> Result<Command, String> {
        let (line, last) = match self {
            Self::None => (words(text)?, None),
            Self::Named(shell) => (words(shell)?, Some(["-c", text])),
        };
        let mut command = Command::new(&line[0]);
        let words = line[1..]
            .iter()
            .map(String::as_str)
            .chain(last.into_iter().flatten());
        // A word may name a file that is not UTF-8.
        command.args(words.map(ugeom_classes::path_of));
        Ok(command)
    }

    /// The longest text that this shell runs and that does nothing.
    pub(super) fn nothing(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Named(_) => Some(""),
        }
    }
}

/// The result of one run of a command.
pub(super) struct Done {
    pub took_ns: u64,
    /// None when the user stopped it.
    pub output: Option<String>,
    /// Whether it failed, and that is ignored.
    pub failed: bool,
}

#[derive(Clone)]
pub(super) struct Runner<'a> {
    pub shell: Shell,
    /// Whether an exit code other than 0 is no failure.
    pub ignores_failure: bool,
    pub cancelled: &'a AtomicBool,
}

/// What becomes of a command's output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Kept,
    Dropped,
}

impl Runner<'_> {
    /// Runs a command once.
    pub fn once(&self, text: &str, output: Output) -> Result<Done, HarnessError> {
        let failed = |error: std::io::Error| failure(text, error.to_string());
        let mut files: Option<(File, File)> = None;
        let mut command = self.shell.command(text).map_err(|why| failure(text, why))?;
        command.stdin(Stdio::null());
        if output == Output::Kept {
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
                return Ok(Done {
                    took_ns,
                    output: None,
                    failed: false,
                });
            }
            if !self.ignores_failure {
                let words = said.take().map(|(_, err)| shortened(&err));
                let words = words.filter(|words| !words.is_empty());
                let words = words.map_or(String::new(), |words| format!(": {words}"));
                return Err(failure(text, format!("{}{words}", ended(status))));
            }
        }
        Ok(Done {
            took_ns,
            output: Some(said.map(|(out, _)| out).unwrap_or_default()),
            failed: !status.success(),
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
}

/// `exit code 3`, `killed by signal 9`.
fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// That a command failed.
pub(super) fn failure(text: &str, problem: String) -> HarnessError {
    HarnessError::Command {
        command: text.to_owned(),
        problem,
    }
}

/// The end of a file, as text.
fn end_of(mut file: File) -> String {
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let from = length.saturating_sub(OUTPUT_BYTES_MAX);
    // Output that cannot be read counts as empty.
    if file.seek(SeekFrom::Start(from)).is_ok() {
        let _ = file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The commands around runs. The command after a run is executed when the next run is prepared, or
/// at the end, outside of the measured time.
pub(super) struct Around<'a> {
    runner: Runner<'a>,
    pending: RefCell<Option<String>>,
    /// Names of candidates, a name for each run that failed and was ignored.
    failures: RefCell<Vec<String>>,
}

impl<'a> Around<'a> {
    pub fn new(shell: &Shell, cancelled: &'a AtomicBool) -> Self {
        // A command that has to be divided into words would be no shell's `echo 3 > file`.
        let shell = match shell {
            Shell::None => Shell::default(),
            named => named.clone(),
        };
        Self {
            runner: Runner {
                shell,
                ignores_failure: false,
                cancelled,
            },
            pending: RefCell::new(None),
            failures: RefCell::new(Vec::new()),
        }
    }

    /// Notes that a run of a candidate failed, and that this is ignored.
    pub fn note_failure(&self, name: &str) {
        self.failures.borrow_mut().push(name.to_owned());
    }

    /// How many runs of a candidate failed so.
    pub fn failures(&self, name: &str) -> u64 {
        let failures = self.failures.borrow();
        failures.iter().filter(|one| *one == name).count() as u64
    }

    /// Runs such a command; `option` is its name in an error.
    ///
    /// # Errors
    /// [`HarnessError::Command`] when it fails.
    pub fn run(&self, option: &str, text: &Option<String>) -> Result<(), HarnessError> {
        let Some(text) = text else { return Ok(()) };
        let done = self.runner.once(text, Output::Kept).map(drop);
        done.map_err(|error| match error {
            HarnessError::Command { command, problem } => HarnessError::Command {
                command: format!("{option} {command}"),
                problem,
            },
            other => other,
        })
    }

    /// Runs the cleanup command of each candidate whose measurement began; an error of one does not
    /// stop the others. The first failure with its candidate.
    pub fn clean_up(&self, candidates: &[Candidate]) -> Option<(String, HarnessError)> {
        let run = |one: &Candidate| {
            let failed = self.run("--cleanup", &one.cleanup).err()?;
            Some((one.name.clone(), failed))
        };
        let failures: Vec<_> = candidates.iter().filter_map(run).collect();
        failures.into_iter().next()
    }

    /// Runs the command before a run.
    ///
    /// # Errors
    /// As [`Around::run`].
    pub fn prepare(
        &self,
        prepare: &Option<String>,
        conclude: &Option<String>,
    ) -> Result<(), HarnessError> {
        self.conclude()?;
        self.run("--prepare", prepare)?;
        self.pending.borrow_mut().clone_from(conclude);
        Ok(())
    }

    /// Runs the command after the last run.
    ///
    /// # Errors
    /// As [`Around::run`].
    pub fn conclude(&self) -> Result<(), HarnessError> {
        let pending = self.pending.borrow_mut().take();
        self.run("--conclude", &pending)
    }

    /// The case with its candidate's commands around each counted run.
    pub fn attach<'b>(&'b self, case: Case<'b>, candidate: &Candidate) -> Case<'b> {
        let (prepare, conclude) = (candidate.prepare.clone(), candidate.conclude.clone());
        if prepare.is_none() && conclude.is_none() {
            return case;
        }
        case.preparing(move || self.prepare(&prepare, &conclude))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_named_with_their_arguments_or_left_out() {
        let cancelled = AtomicBool::new(false);
        let said = |shell: &str, text: &str| {
            let runner = Runner {
                shell: Shell::parse(shell).unwrap(),
                ignores_failure: false,
                cancelled: &cancelled,
            };
            runner
                .once(text, Output::Kept)
                .map(|done| done.output.unwrap())
        };
        assert_eq!(said("default", "echo $((1+1))").unwrap(), "2\n");
        assert_eq!(said("/bin/sh -u", "echo a  b").unwrap(), "a b\n");
        assert_eq!(said("none", "echo 'a  b' $HOME").unwrap(), "a  b $HOME\n");
        assert!(said("none", "echo 'a").is_err());
        assert!(Shell::parse("").is_err());
    }

    #[test]
    fn failures_count_unless_they_are_ignored() {
        let cancelled = AtomicBool::new(false);
        let mut runner = Runner {
            shell: Shell::default(),
            ignores_failure: false,
            cancelled: &cancelled,
        };
        let error = runner
            .once("echo no >&2; exit 3", Output::Kept)
            .err()
            .unwrap();
        assert!(error.to_string().contains("exit code 3: no"), "{error}");
        runner.ignores_failure = true;
        assert!(
            runner
                .once("exit 3", Output::Dropped)
                .is_ok_and(|done| done.failed)
        );
        assert!(
            runner
                .once("exit 0", Output::Dropped)
                .is_ok_and(|done| !done.failed)
        );
        runner.ignores_failure = false;
        assert!(runner.once("exit 130", Output::Dropped).is_err());
        cancelled.store(true, Ordering::Relaxed);
        let stopped = runner.once("exit 130", Output::Dropped);
        assert!(stopped.is_ok_and(|done| done.output.is_none()));
    }

    #[test]
    fn what_concludes_a_run_comes_before_the_next_one_is_prepared() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let note = |word: &str| Some(format!("echo {word} >> {}", log.display()));
        let cancelled = AtomicBool::new(false);
        let around = Around::new(&Shell::None, &cancelled);
        around.prepare(&note("p1"), &note("c1")).unwrap();
        around.prepare(&note("p2"), &note("c2")).unwrap();
        around.conclude().unwrap();
        around.conclude().unwrap();
        let said = std::fs::read_to_string(log).unwrap();
        assert_eq!(said, "p1\nc1\np2\nc2\n");
        let failed = around.run("--setup", &Some("exit 1".to_owned()));
        assert!(failed.unwrap_err().to_string().contains("`--setup exit 1`"));
    }
}
