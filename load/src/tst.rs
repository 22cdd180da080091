//! `tst.c` of 2002: lseek and read of 512 bytes from offset 0, 100 times unmeasured and 100,000
//! times measured; the answer is the time of one loop in nanoseconds.
//!
//! Source: the program at the end of Poul-Henning Kamp's "GEOM benchmarks", 6 October 2002.

use crate::door::{Calls, Request};
use crate::drive::one_by_one;
use crate::recorder::Unwatched;
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::read;
use std::os::fd::OwnedFd;
use std::path::Path;
use ugeom_harness::HarnessError;
use ugeom_machine::clock;

/// Bytes of one read.
pub const READ_BYTES: usize = 512;
/// Loops that are not measured.
pub const WARM_UP_LOOPS: u64 = 100;
/// Loops that are measured after them.
pub const LOOPS: u64 = 100_000;

/// A file to read the seed's way.
pub struct Tst {
    file: OwnedFd,
    path: String,
    buffer: Vec<u8>,
}

impl Tst {
    /// Opens `path` for reading `read_bytes` at a time.
    ///
    /// # Errors
    /// [`HarnessError::Os`] when it cannot be opened.
    pub fn open(path: &Path, read_bytes: usize) -> Result<Self, HarnessError> {
        let name = path.display().to_string();
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| HarnessError::open(&name)(errno.into()))?;
        Ok(Self {
            file,
            path: name,
            buffer: vec![0; read_bytes],
        })
    }

    /// So many times lseek and read.
    ///
    /// # Errors
    /// [`HarnessError::Os`] when either fails, [`HarnessError::Short`] when a read gives less.
    #[inline(never)]
    pub fn loops(&mut self, count: u64) -> Result<(), HarnessError> {
        let file = &self.file;
        let read_bytes = self.buffer.len() as u32;
        let mut door = Calls::new(&mut self.buffer[..], |_: &Request, memory: &mut [u8]| {
            seek(file, SeekFrom::Start(0))?;
            read(file, memory).map(|got| got as u64)
        });
        let requests = (0..count).map(|_| Request::read(0, read_bytes));
        let done = one_by_one(&mut door, requests, &mut Unwatched);
        done.map(drop)
            .map_err(|failure| failure.in_case(&self.path))
    }

    /// So many loops, and how long they took, ns.
    ///
    /// # Errors
    /// As [`Tst::loops`].
    pub fn timed(&mut self, count: u64) -> Result<u64, HarnessError> {
        let start_ns = clock::now_ns();
        self.loops(count)?;
        Ok(clock::now_ns() - start_ns)
    }
}

/// The whole program: nanoseconds of one loop. Print it with [`line()`].
///
/// # Errors
/// [`HarnessError::Os`] when the file cannot be opened or read, [`HarnessError::Short`] when it has
/// fewer than 512 bytes (where the program of 2002 ended with status 2 and no word).
pub fn tst(path: &Path) -> Result<f64, HarnessError> {
    let mut tst = Tst::open(path, READ_BYTES)?;
    tst.loops(WARM_UP_LOOPS)?;
    Ok(tst.timed(LOOPS)? as f64 / LOOPS as f64)
}

/// The line that the program of 2002 prints: `printf("%.3f\n")`, without the end of the line.
pub fn line(ns_per_loop: f64) -> String {
    format!("{ns_per_loop:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_testkit::{begins, ends};

    #[test]
    fn the_line_is_that_of_2002() {
        assert_eq!(line(3_563.810_9), "3563.811");
        assert_eq!(line(235.0), "235.000");
    }

    #[test]
    fn dev_zero_is_read_to_the_end_of_the_loop() {
        let mut zero = Tst::open(Path::new("/dev/zero"), READ_BYTES).unwrap();
        assert!(zero.timed(1000).unwrap() > 0);
    }

    #[test]
    fn a_file_that_is_too_short_is_refused_with_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("511");
        std::fs::write(&path, [0; 511]).unwrap();
        let error = tst(&path).unwrap_err().to_string();
        ends(
            &error,
            "511: a read of 512 bytes at offset 0 ended after 511",
        );
        std::fs::write(&path, [0; 512]).unwrap();
        assert!(tst(&path).unwrap() > 0.0);
    }

    #[test]
    fn what_cannot_be_opened_or_read_is_named() {
        let error = tst(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        begins(&error, "/nowhere/at/all: No such file");
        let error = tst(Path::new("/")).unwrap_err().to_string();
        begins(&error, "/ at offset 0: reading: Is a directory");
    }
}
