//! The command of `ugeom serve --run`.

use super::{End, Servers};
use crate::failure::{CommandFailed, Interrupted};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use ugeom_machine::inherited::VARIABLES;

/// Starts the command of `--run`.
///
/// # Errors
/// The shell cannot be started.
pub fn start(command: &str, servers: &Servers) -> Result<Child> {
    let child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("uri", servers.uris().first().map_or("", String::as_str))
        .env_remove(VARIABLES[0])
        .env_remove(VARIABLES[1])
        .env_remove(VARIABLES[2])
        .env("mnt", servers.directory().unwrap_or_default())
        .spawn();
    child.with_context(|| format!("starting `{command}`"))
}

/// Waits for the end of the command, which is terminated when the server is to end before. Why the
/// server ends, and how the command has ended.
pub fn wait(
    mut child: Child,
    tell: &mpsc::Sender<End>,
    ends: &mpsc::Receiver<End>,
) -> Result<(End, ExitStatus)> {
    let pid = Pid::from_child(&child);
    let tell = tell.clone();
    let waiting = std::thread::Builder::new().spawn(move || {
        let status = child.wait();
        // The receiver is gone once all is over.
        let _ = tell.send(End::Command);
        status
    });
    let waiting = waiting.inspect_err(|_| terminate(pid));
    let waiting = waiting.context("starting a thread that waits for the command")?;
    let end = ends.recv().unwrap_or(End::Signal);
    if !matches!(end, End::Command) {
        terminate(pid);
    }
    // The thread does nothing that could panic.
    let status = waiting
        .join()
        .unwrap_or_else(|_| Err(std::io::Error::other("a panic")));
    Ok((end, status.context("waiting for the command")?))
}

/// A command that was terminated has not done its work: its caller must not go on as after success.
///
/// # Errors
/// It has failed, or was ended.
pub fn judge(command: &str, end: &End, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    if matches!(end, End::Signal) && status.signal().is_some() {
        let message = format!("a signal ended `{command}`");
        return Err(Interrupted(message).into());
    }
    let message = format!("`{command}` failed: {status}");
    // As shells have it for a signal.
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(CommandFailed { message, code }.into())
}

/// Tells a process and its descendants to end. They are no process group of their own: a shell on
/// the terminal would be stopped when it reads.
fn terminate(pid: Pid) {
    for pid in with_descendants(pid, &processes()) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// All processes, each with its parent.
fn processes() -> Vec<(Pid, Pid)> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = folders.filter_map(|folder| {
        let pid: i32 = folder.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(folder.path().join("stat")).ok()?;
        Some((Pid::from_raw(pid)?, parent(&stat)?))
    });
    stats.collect()
}

/// The parent in the text of `/proc/PID/stat` (proc_pid_stat(5)): the second field behind the name,
/// which is in parentheses and may hold any.
fn parent(stat: &[u8]) -> Option<Pid> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    Pid::from_raw(fields.split_whitespace().nth(1)?.parse().ok()?)
}

/// A process, its children, theirs and so on, parents first.
fn with_descendants(pid: Pid, processes: &[(Pid, Pid)]) -> Vec<Pid> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        for (child, of) in processes {
            if *of == parent && !found.contains(child) {
                found.push(*child);
            }
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_by_their_parents() {
        let pid = |number| Pid::from_raw(number).expect("a number above 0");
        let all = [(2, 1), (9, 4), (4, 2), (5, 4), (6, 1)];
        let all = all.map(|(child, parent)| (pid(child), pid(parent)));
        assert_eq!(with_descendants(pid(2), &all), [2, 4, 9, 5].map(pid));
        assert_eq!(with_descendants(pid(6), &all), [pid(6)]);
        assert_eq!(parent(b"7 (a) b (c)) S 42 7 7 0"), Some(pid(42)));
        assert_eq!(parent(b"1 (init) S 0 1 1 0"), None);
        assert_eq!(parent(b"7"), None);
    }
}
