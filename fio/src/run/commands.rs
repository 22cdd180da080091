//! `exec_prerun` and `exec_postrun`: commands of the shell before and after a job.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use ugeom_classes::result_file::refuse_carrying;
use ugeom_machine::mutex::Mutex;

use ugeom_job::Job;
use ugeom_job::error::JobError;

/// Runs the command of `exec_prerun`, if there is one.
///
/// # Errors
/// It could not be started, or failed: the job does not run then, as in fio.
pub(super) fn before(job: &Job, notes: &Mutex<Vec<String>>) -> Result<(), JobError> {
    match &job.exec_prerun {
        None => Ok(()),
        Some(command) if run(job, command, "prerun", notes)? => Ok(()),
        Some(command) => {
            let message = format!("exec_prerun failed: {command}");
            Err(JobError::target(&job.name, message))
        }
    }
}

/// Runs `exec_postrun`, whose exit code does not matter, as in fio.
pub(super) fn after(job: &Job, notes: &Mutex<Vec<String>>) -> Result<(), JobError> {
    match &job.exec_postrun {
        None => Ok(()),
        Some(command) => run(job, command, "postrun", notes).map(drop),
    }
}

/// Runs a command by the shell, with its output in a file that is named as fio does; whether it
/// succeeded.
fn run(job: &Job, command: &str, when: &str, notes: &Mutex<Vec<String>>) -> Result<bool, JobError> {
    let path = format!("{}.{when}.txt", job.name.replace('/', "_"));
    let note = format!("{}: the output of exec_{when} is in {path}", job.name);
    notes.lock().push(note);
    let created = refuse_carrying(Path::new(&path), |_| false).and_then(|()| File::create(&path));
    let ended = created.and_then(|output| {
        let errors = output.try_clone()?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::null());
        shell.stdout(output).stderr(errors).status()
    });
    let failed = |error| JobError::caused(&job.name, format!("exec_{when}: {command}"), error);
    ended.map(|status| status.success()).map_err(failed)
}
