//! A shell command, its surroundings, and how it ended.

use super::View;
use super::leftovers::MARK;
use super::mounted::Mounted;
use super::served::Served;
use crate::error::{CrashError, open, os};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How much of the output of a failed command is kept, bytes.
const OUTPUT_BYTES: u64 = 2000;
/// How often a running command is asked whether it is to end.
const LOOK: Duration = Duration::from_millis(200);

/// How a command ended.
pub(super) enum Ended {
    Well,
    /// In words, with the end of its output.
    Badly(String),
}

/// The surroundings of commands.
pub(super) struct Shell {
    variables: Vec<(&'static str, PathBuf)>,
    /// The variable that names descriptor 3.
    descriptor: Option<&'static str>,
    timeout: Duration,
    stop: Arc<AtomicBool>,
}

impl Shell {
    pub fn new(served: &Served, mounted: Option<&Mounted>, folder: &Path, view: &View) -> Self {
        let mut variables = vec![
            ("dev", served.device.clone()),
            ("uri", PathBuf::from(&served.uri)),
            (MARK, folder.to_owned()),
        ];
        if let Some(mounted) = mounted {
            variables.push(("mnt", mounted.directory().to_owned()));
        }
        Self {
            variables,
            descriptor: None,
            timeout: view.timeout,
            stop: Arc::clone(&view.stop),
        }
    }

    /// The same, with a file as descriptor 3, and its path in a variable.
    pub fn with_promises(&self, path: &Path, name: &'static str) -> Self {
        let mut variables = self.variables.clone();
        variables.push((name, path.to_owned()));
        Self {
            variables,
            descriptor: Some(name),
            timeout: self.timeout,
            stop: Arc::clone(&self.stop),
        }
    }

    /// Runs a command to its end.
    pub fn run(&self, command: &str) -> Result<Ended, CrashError> {
        let text = match self.descriptor {
            Some(name) => format!("exec 3>>\"${name}\"\n{command}"),
            None => command.to_owned(),
        };
        let output = tempfile::tempfile().map_err(os("making", Path::new("a file for output")))?;
        let clone = |file: &File| {
            let cloned = file.try_clone();
            cloned.map_err(open(Path::new("a file for output")))
        };
        let (out, err) = (clone(&output)?, clone(&output)?);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &text]).process_group(0);
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        shell.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = shell
            .spawn()
            .map_err(os("starting", Path::new("/bin/sh")))?;
        let how = self.wait(child)?;
        Ok(match how {
            None => Ended::Well,
            Some(how) => Ended::Badly(with_output(&how, output)),
        })
    }

    /// Waits for its end, or ends it: how it failed, if it did.
    fn wait(&self, mut child: Child) -> Result<Option<String>, CrashError> {
        let failed = os("waiting for it", Path::new("a command"));
        let pid = Pid::from_child(&child);
        let started = Instant::now();
        let handle = pidfd_open(pid, PidfdFlags::empty());
        let mut problem = None;
        if let Ok(handle) = handle {
            loop {
                let stop = self.stop.load(Ordering::Relaxed);
                let late = started.elapsed() >= self.timeout;
                if stop || late {
                    let after = self.timeout.as_secs_f64();
                    let late = format!("it did not end within {after} s");
                    problem = Some(if stop { "interrupted".to_owned() } else { late });
                    // It may have ended by itself meanwhile.
                    let _ = kill_process_group(pid, Signal::KILL);
                    break;
                }
                let left = self.timeout.saturating_sub(started.elapsed()).min(LOOK);
                let wait = Timespec::try_from(left).ok();
                let mut ends = [PollFd::new(&handle, PollFlags::IN)];
                if poll(&mut ends, wait.as_ref()).is_ok_and(|ready| ready > 0) {
                    break;
                }
            }
        }
        let status = child.wait().map_err(failed)?;
        Ok(problem.or_else(|| (!status.success()).then(|| status.to_string())))
    }
}

/// The failure, with the end of the output.
fn with_output(how: &str, mut output: File) -> String {
    let mut text = Vec::new();
    let length = output.metadata().map_or(0, |metadata| metadata.len());
    let start = SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES));
    // Without its output, the failure is still reported.
    let _ = output
        .seek(start)
        .and_then(|_| output.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    if text.is_empty() {
        how.to_owned()
    } else {
        format!("{how}: {text}")
    }
}
