//! `--trigger-file`, `--trigger-timeout` and `--trigger`: a sign that ends all jobs, and a command
//! that runs when they have ended.

use crate::output;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use ugeom_classes::path_of;
use ugeom_job::Report;

/// The condition that ends the jobs, and the command that runs then.
pub struct Trigger {
    file: Option<PathBuf>,
    at: Option<Instant>,
    command: Option<String>,
    /// The jobs have been told to end.
    fired: bool,
}

impl Trigger {
    /// The time counts from now.
    pub fn new(report: &Report) -> Self {
        let after = report.trigger_after_ns.map(Duration::from_nanos);
        Self {
            file: report.trigger_file.as_deref().map(path_of),
            at: after.and_then(|after| Instant::now().checked_add(after)),
            command: report.trigger_command.clone(),
            fired: false,
        }
    }

    /// Whether the jobs are to end.
    pub fn has_fired(&self) -> bool {
        self.fired
    }

    /// Looks for the sign. The file is removed, as by fio, so that it counts once.
    pub fn look(&mut self) {
        if self.fired {
            return;
        }
        if let Some(file) = self.file.as_ref().filter(|file| file.exists()) {
            self.fired = true;
            if let Err(error) = std::fs::remove_file(file) {
                let name = file.display();
                output::warn(&format!("--trigger-file: removing {name}: {error}"));
            }
        }
        self.fired |= self.at.is_some_and(|at| Instant::now() >= at);
    }

    /// Runs the command, if the jobs have ended because of the sign. As in fio, its exit code
    /// does not count; a command that fails is told of.
    pub fn run(&self) {
        let Some(command) = self.command.as_ref().filter(|_| self.fired) else {
            return;
        };
        let said = match Command::new("/bin/sh").arg("-c").arg(command).status() {
            Ok(status) if status.success() => return,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        output::warn(&format!("--trigger: `{command}`: {said}"));
    }
}
