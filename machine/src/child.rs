//! A program that this one starts for itself, and that ends with it.
//!
//! The child is sent SIGTERM when the thread that started it ends (`prctl(2)`, PR_SET_PDEATHSIG),
//! so a thread of its own starts it, waits for it, and lives as long as it does. When the whole
//! process is killed, that thread ends, too.

use crate::mutex::Mutex;
use crate::own_thread::OwnThread;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};

/// How much of the child's stderr is kept, bytes.
const KEPT_BYTES: u64 = 16 << 10;

/// A running child. Dropping it sends SIGTERM and waits for its end.
pub struct TiedChild {
    pid: i32,
    /// Means this process and no later one with its number.
    handle: OwnedFd,
    ended: Arc<Mutex<Option<Ended>>>,
    _thread: OwnThread,
}

/// How a child ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its output on stderr, at most 16 KiB.
    pub stderr: String,
    /// Its exit status, if the system told it.
    pub status: Option<ExitStatus>,
}

impl TiedChild {
    /// Starts a command; its stdin and stdout are closed.
    ///
    /// # Errors
    /// The error of starting it, such as `NotFound`.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let parent = std::process::id();
        // SAFETY: between fork and exec the closure makes two system calls and nothing else; both
        // are safe after a fork of a process with threads.
        unsafe {
            command.pre_exec(move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) == -1 {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have ended before the call above.
                if libc::getppid() as u32 != parent {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                Ok(())
            });
        }
        let ended = Arc::new(Mutex::new(None));
        let (tell, told) = mpsc::channel();
        let slot = Arc::clone(&ended);
        let thread = OwnThread::start("ugeom-child", move || look_after(command, &tell, &slot))?;
        let told = told.recv();
        let (pid, handle) = told.unwrap_or_else(|_| Err(io::Error::other("the thread ended")))?;
        Ok(Self {
            pid,
            handle,
            ended,
            _thread: thread,
        })
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        let ended = self.ended.lock();
        ended.clone()
    }

    /// The process id, to send signals to.
    pub fn pid(&self) -> i32 {
        self.pid
    }
}

fn look_after(
    mut command: Command,
    tell: &mpsc::Sender<io::Result<(i32, OwnedFd)>>,
    slot: &Mutex<Option<Ended>>,
) {
    let started = command.spawn().and_then(|mut child| {
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let handle = handle.inspect_err(|_| {
            // Without a handle it could not be ended later.
            let _ = child.kill().and_then(|()| child.wait());
        })?;
        Ok((child, handle))
    });
    let mut child = match started {
        Ok((child, handle)) => {
            // The other end waits for exactly this, and for the error below.
            let _ = tell.send(Ok((child.id() as i32, handle)));
            child
        }
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    let mut text = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        // Unreadable output is missing from an error message, no more.
        let _ = stderr.by_ref().take(KEPT_BYTES).read_to_end(&mut text);
        let _ = io::copy(&mut stderr, &mut io::sink());
    }
    let status = child.wait().ok();
    let stderr = String::from_utf8_lossy(&text).into_owned();
    *slot.lock() = Some(Ended { stderr, status });
}

impl Drop for TiedChild {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = pidfd_send_signal(&self.handle, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_child_ends_with_its_handle_and_what_it_printed_is_kept() -> io::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo what >&2; exec sleep 60"]);
        let child = TiedChild::start(command)?;
        assert!(child.ended().is_none());
        let pid = child.pid();
        let began = Instant::now();
        drop(child);
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo why >&2; exit 3"]);
        let child = TiedChild::start(command)?;
        while child.ended().is_none() {
            std::thread::yield_now();
        }
        let ended = child.ended().expect("it ended");
        assert_eq!(ended.stderr, "why\n");
        assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
        Ok(())
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_program_that_is_missing_is_an_error() {
        let error = TiedChild::start(Command::new("ugeom-no-such-program"));
        let error = error.err().expect("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
