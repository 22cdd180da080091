//! The engine `splice`: data goes through a pipe. A read is splice(2) from the file and readv(2)
//! from the pipe, a write is vmsplice(2) into the pipe and splice(2) to the file, as by fio's
//! engine of that name.
//!
//! For measuring the cost of splicing. A pipe takes 16 pages by default, so that a longer request
//! takes several rounds. Durable writes, syncs and discards are the calls of `sync`: splice(2) has
//! none of them.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use ugeom_machine::buffer::Segment;

use crate::calls;
use crate::inline::{InlineCalls, InlineEngine};
use crate::op::Errno;
use crate::progress::{Call, SEGMENTS_MAX, Step};

/// Transfers through a pipe.
#[derive(Default)]
pub struct Spliced;

/// splice(2), in the calling thread.
pub type SpliceEngine<M> = InlineEngine<M, Spliced>;

/// How the data of a file is transferred.
pub enum Transfer {
    /// By no pipe: the file is a directory.
    Refused,
    /// Through this pipe.
    Through(Pipe),
    /// No longer: the pipe was given up after an error, and there is no new one, for this reason.
    Lost(Errno),
}

/// The pipe of a file; it is empty between two calls that succeed.
pub struct Pipe {
    from: OwnedFd,
    into: OwnedFd,
}

impl Pipe {
    fn new() -> Result<Pipe, Errno> {
        // The next round puts in the rest.
        let (from, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Pipe { from, into })
    }

    /// # Safety
    /// The pieces are writable memory of `step.length` bytes, accessed by no other code.
    unsafe fn read(
        &self,
        file: BorrowedFd<'_>,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno> {
        let mut offset = step.offset;
        let flags = SpliceFlags::empty();
        let (length, into) = (step.length as usize, Some(&mut offset));
        let moved = splice(file, into, &self.into, None, length, flags)? as u64;
        let pipe = self.from.as_raw_fd();
        let mut done = match moved {
            0 => 0,
            // SAFETY: the caller's promise.
            _ => unsafe { calls::transfer_at_position(pipe, Call::Read, pieces) }?,
        };
        while done < moved {
            let rest = behind(pieces, done as usize, moved as usize);
            // SAFETY: these are parts of the pieces (the caller's promise).
            match unsafe { calls::transfer_at_position(pipe, Call::Read, &rest) }? {
                0 => return Err(Errno::IO),
                bytes => done += bytes,
            }
        }
        Ok(done)
    }

    /// # Safety
    /// The pieces are readable memory of `step.length` bytes, written by no other code.
    unsafe fn write(
        &self,
        file: BorrowedFd<'_>,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno> {
        let number = pieces.len().min(SEGMENTS_MAX);
        let vectors = pieces.as_ptr().cast();
        // SAFETY: the pieces are memory of ours (the caller's promise), which the pipe refers to
        // until it is empty: below.
        let moved =
            calls::count(unsafe { libc::vmsplice(self.into.as_raw_fd(), vectors, number, 0) })?;
        let mut offset = step.offset;
        let mut left = moved;
        while left > 0 {
            let flags = SpliceFlags::empty();
            match splice(
                &self.from,
                None,
                file,
                Some(&mut offset),
                left as usize,
                flags,
            )? {
                0 => return Err(Errno::IO),
                bytes => left -= bytes as u64,
            }
        }
        Ok(moved)
    }
}

/// The parts of pieces from byte `done` to `end`.
fn behind(pieces: &[Segment], done: usize, end: usize) -> Vec<Segment> {
    let mut parts = Vec::with_capacity(pieces.len());
    let mut at = 0;
    for piece in pieces {
        let begin = done.clamp(at, at + piece.len);
        let stop = end.clamp(at, at + piece.len);
        if begin < stop {
            parts.push(Segment {
                base: piece.base.wrapping_add(begin - at),
                len: stop - begin,
            });
        }
        at += piece.len;
    }
    parts
}

impl InlineCalls for Spliced {
    type State = Transfer;

    const NAME: &'static str = "splice";

    fn prepare(&self, file: &Arc<File>) -> Result<Transfer, Errno> {
        let about = file.metadata();
        // splice(2) refuses directories with EINVAL, which would not name the reason.
        match about.is_ok_and(|about| about.is_dir()) {
            true => Ok(Transfer::Refused),
            false => Pipe::new().map(Transfer::Through),
        }
    }

    unsafe fn perform(
        transfer: &mut Transfer,
        file: BorrowedFd<'_>,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno> {
        let result = match (&*transfer, step.call) {
            (Transfer::Lost(errno), Call::Read | Call::Write { durable: false }) => {
                return Err(*errno);
            }
            // SAFETY: the caller's promise.
            (Transfer::Through(pipe), Call::Read) => unsafe { pipe.read(file, step, pieces) },
            (Transfer::Through(pipe), Call::Write { durable: false }) => {
                // SAFETY: the caller's promise.
                unsafe { pipe.write(file, step, pieces) }
            }
            // SAFETY: the caller's promise.
            _ => return unsafe { calls::perform(file.as_raw_fd(), step, pieces) },
        };
        if result.is_err() {
            // The rest of its data belongs to no other request.
            *transfer = Pipe::new().map_or_else(Transfer::Lost, Transfer::Through);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    fn read(transfer: &mut Transfer, file: &File) -> Result<u64, Errno> {
        let mut memory = [0u8; 4096];
        let piece = Segment {
            base: memory.as_mut_ptr(),
            len: memory.len(),
        };
        let step = Step {
            call: Call::Read,
            offset: 0,
            length: memory.len() as u64,
        };
        // SAFETY: the piece is `memory`, which nothing else accesses until the call is over.
        unsafe { Spliced::perform(transfer, file.as_fd(), &step, &[piece]) }
    }

    #[test]
    fn without_a_new_pipe_transfers_fail_and_are_not_made_in_another_way() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[7; 4096]).expect("writing");
        let file = Arc::new(file);
        let mut transfer = Spliced.prepare(&file).expect("a pipe");
        assert_eq!(read(&mut transfer, &file), Ok(4096));
        transfer = Transfer::Lost(Errno::MFILE);
        assert_eq!(read(&mut transfer, &file), Err(Errno::MFILE));
        assert_eq!(read(&mut transfer, &file), Err(Errno::MFILE));
    }
}
