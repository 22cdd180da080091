//! Where bytes of a provider go: stdout. In a regular file that has nothing there yet, zeroes
//! become holes.

use crate::output;
use anyhow::Result;
use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fstat, ftruncate, seek};
use rustix::io::Errno;
use std::io::{self, Stdout};
use std::os::fd::AsFd;

/// The least run of zeroes that becomes a hole, bytes: a block of common file systems.
const HOLE_BYTES: usize = 4096;

static ZEROES: [u8; 16 << 10] = [0; 16 << 10];

/// Stdout, written in order, with holes where it is a file. Writes are those of the caller: a
/// buffer would divide them at places that are no multiples of a page.
pub struct Sink {
    out: Stdout,
    /// Whether zeroes become holes of the file.
    holes: bool,
    /// Bytes of a hole behind what was written.
    hole_bytes: u64,
}

impl Sink {
    pub fn new() -> Self {
        Self {
            out: io::stdout(),
            holes: can_have_holes(),
            hole_bytes: 0,
        }
    }

    /// Appends bytes; runs of zeroes among them become holes.
    pub fn data(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.holes {
            return self.write(bytes).map_err(output::stdout_error);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let zeroes = run(rest, true);
            self.hole_bytes += zeroes as u64;
            rest = &rest[zeroes..];
            let full = run(rest, false);
            self.write(&rest[..full]).map_err(output::stdout_error)?;
            rest = &rest[full..];
        }
        Ok(())
    }

    /// Appends zeroes, as a hole where stdout is a file that can have one.
    pub fn hole(&mut self, length: u64) -> Result<()> {
        if self.holes {
            self.hole_bytes += length;
            return Ok(());
        }
        self.zeroes(length).map_err(output::stdout_error)
    }

    fn zeroes(&mut self, mut length: u64) -> io::Result<()> {
        while length > 0 {
            let now = length.min(ZEROES.len() as u64);
            self.write(&ZEROES[..now as usize])?;
            length -= now;
        }
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() && self.hole_bytes > 0 {
            self.pass_hole()?;
        }
        while !bytes.is_empty() {
            match rustix::io::write(self.out.as_fd(), bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Moves behind the hole; where that is.
    fn pass_hole(&mut self) -> io::Result<u64> {
        let by = i64::try_from(self.hole_bytes).map_err(io::Error::other)?;
        let at = seek(self.out.as_fd(), SeekFrom::Current(by))?;
        self.hole_bytes = 0;
        Ok(at)
    }

    /// Ends the file behind what was appended, also when an error ends the copy.
    pub fn finish(&mut self) -> Result<()> {
        self.end().map_err(output::stdout_error)
    }

    fn end(&mut self) -> io::Result<()> {
        if self.hole_bytes > 0 {
            let size = self.pass_hole()?;
            ftruncate(self.out.as_fd(), size)?;
        }
        Ok(())
    }
}

/// How many bytes from the start on are zeroes, or are not, in whole pieces of [`HOLE_BYTES`].
fn run(bytes: &[u8], zeroes: bool) -> usize {
    let pieces = bytes.chunks(HOLE_BYTES);
    pieces
        .take_while(|piece| is_zero(piece) == zeroes)
        .map(<[u8]>::len)
        .sum()
}

/// Whether all bytes are zeroes: words of a line at a time, so that the compiler uses vectors.
fn is_zero(piece: &[u8]) -> bool {
    piece
        .chunks(64)
        .all(|line| line.iter().fold(0, |all, byte| all | byte) == 0)
}

/// A regular file, written from its end on, and not by appending, where the kernel ignores seeks.
fn can_have_holes() -> bool {
    let stdout = io::stdout();
    let fd = stdout.as_fd();
    let Ok(stat) = fstat(fd) else { return false };
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let appends = fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    let at = seek(fd, SeekFrom::Current(0)).unwrap_or(0);
    regular && !appends && u64::try_from(stat.st_size).is_ok_and(|size| size <= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_whole_pieces() {
        let mut bytes = vec![0; 3 * HOLE_BYTES + 5];
        assert_eq!(run(&bytes, true), bytes.len());
        assert_eq!(run(&bytes, false), 0);
        bytes[HOLE_BYTES + 7] = 1;
        assert_eq!(run(&bytes, true), HOLE_BYTES);
        assert_eq!(run(&bytes[HOLE_BYTES..], false), HOLE_BYTES);
    }
}
