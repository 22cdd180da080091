//! Standard input of a command that writes: how long it is when it is a file, and Ctrl-C while it
//! is read.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::Errno;
use std::io::{self, Read, StdinLock};
use std::os::fd::{AsFd, OwnedFd};
use ugeom_machine::interrupt;

/// Standard input until it ends or Ctrl-C asks for the end.
pub struct Input {
    stdin: StdinLock<'static>,
    /// Readable when a signal has asked for the end.
    signals: OwnedFd,
    interrupted: bool,
}

impl Input {
    /// Takes standard input and the signals.
    pub fn new() -> Result<Self> {
        Ok(Self {
            stdin: io::stdin().lock(),
            signals: interrupt::end_signals().context("listening for Ctrl-C")?,
            interrupted: false,
        })
    }

    /// How many bytes are left, if it is a regular file.
    pub fn bytes_left(&self) -> Option<u64> {
        let stat = fstat(self.stdin.as_fd()).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let at = seek(self.stdin.as_fd(), SeekFrom::Current(0)).ok()?;
        let size = u64::try_from(stat.st_size).ok()?;
        regular.then(|| size.saturating_sub(at))
    }

    /// How many bytes of a hole come next, if it is a file that has holes.
    pub fn hole(&self) -> u64 {
        self.hole_ahead().unwrap_or(0)
    }

    fn hole_ahead(&self) -> Option<u64> {
        let left = self.bytes_left()?;
        let fd = self.stdin.as_fd();
        let at = seek(fd, SeekFrom::Current(0)).ok()?;
        let hole = match seek(fd, SeekFrom::Data(at)) {
            Ok(data) => data.saturating_sub(at),
            // No data up to the end.
            Err(Errno::NXIO) => left,
            Err(_) => 0,
        };
        seek(fd, SeekFrom::Start(at)).ok()?;
        Some(hole.min(left))
    }

    /// Passes over bytes of a hole.
    pub fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let by = i64::try_from(bytes).map_err(io::Error::other)?;
        seek(self.stdin.as_fd(), SeekFrom::Current(by))?;
        Ok(())
    }

    /// A signal asked for the end: the data read until then is incomplete.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }
}

impl Read for Input {
    /// Ends, as at the end of the input, once a signal has asked for it.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut fds = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN),
        ];
        poll(&mut fds, None)?;
        if !fds[0].revents().is_empty() {
            self.interrupted = true;
            return Ok(0);
        }
        rustix::io::read(self.stdin.as_fd(), into).map_err(io::Error::from)
    }
}
