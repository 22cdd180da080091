//! The way of one operation through as many system calls as it takes, the same for all engines:
//! splitting long operations, going on after short transfers, retrying, and falling back to writing
//! zeroes.

use std::sync::OnceLock;

use ugeom_machine::buffer::{Buffer, IoMemory, Segment};

use crate::files::Registered;
use crate::op::{Errno, Op, OpKind};

/// Most segments in one call: IOV_MAX of Linux (readv(2)).
pub(crate) const SEGMENTS_MAX: usize = 1024;

/// Most bytes in one call: MAX_RW_COUNT of Linux (read(2), NOTES).
pub(crate) const CALL_BYTES_MAX: u64 = 0x7fff_f000;

/// How often in a row a call may be interrupted or put off before the operation fails.
const ATTEMPTS_MAX: u32 = 1000;

/// How often dirty pages of a device are written back for an operation that they keep from
/// discarding or zeroing: other requests may dirty them again meanwhile.
const BUSY_MAX: u32 = 4;

/// The zeroes to write where zeroing is not supported: pieces of 64 KiB, at most 16 in one call.
const ZEROES_BYTES: usize = 65_536;
const ZEROES_MAX: u64 = 16;

/// One call to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub call: Call,
    pub offset: u64,
    pub length: u64,
}

/// The kind of call. Reads and writes use the pieces of [`Progress::pieces`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Read,
    Write {
        durable: bool,
    },
    DataSync,
    Sync,
    PunchHole,
    ZeroRange,
    /// The ioctl BLKDISCARD, for block devices.
    DiscardBlocks,
}

/// How far an operation has come.
#[derive(Default)]
pub(crate) struct Progress {
    done: u64,
    /// Where the next byte lies: the segment, and the offset in it.
    segment: usize,
    within: usize,
    asked: Option<Step>,
    attempts: u32,
    /// How often dirty pages were in the way.
    busy: u32,
    zero_by_writing: bool,
    pieces: Vec<Segment>,
}

/// Completes operations that need no call.
pub(crate) fn settled(op: &Op, memory: &impl IoMemory) -> Option<Result<u64, Errno>> {
    if matches!(op.kind, OpKind::Flush | OpKind::Sync) {
        return None;
    }
    let too_far = op
        .offset
        .checked_add(op.length)
        .is_none_or(|end| i64::try_from(end).is_err());
    let transfer = matches!(op.kind, OpKind::Read | OpKind::Write { .. });
    if too_far || (transfer && op.length > memory.total_bytes()) {
        return Some(Err(Errno::INVAL));
    }
    (op.length == 0).then_some(Ok(0))
}

impl Progress {
    /// Makes the state fit for another operation. Keeps the room for pieces.
    pub fn reset(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        *self = Progress {
            pieces,
            ..Progress::default()
        };
    }

    /// The memory of the call that `step` returned last. Valid for as long as the operation's
    /// memory is, and until the next `step`.
    pub fn pieces(&self) -> &[Segment] {
        &self.pieces
    }

    /// The call that `step` returned last and whose result has not been taken.
    pub fn asked(&self) -> Option<Step> {
        self.asked
    }

    /// The next call to make.
    pub fn step(&mut self, op: &Op, memory: &impl IoMemory, file: &Registered) -> Step {
        let (offset, length) = (op.offset + self.done, op.length - self.done);
        let call = match op.kind {
            OpKind::Read => Call::Read,
            OpKind::Write { durable } => Call::Write { durable },
            OpKind::Flush => Call::DataSync,
            OpKind::Sync => Call::Sync,
            OpKind::Discard if file.block_device => Call::DiscardBlocks,
            OpKind::Discard => Call::PunchHole,
            OpKind::Zero { allocated: false } if !self.zero_by_writing && file.punch_hole => {
                Call::PunchHole
            }
            OpKind::Zero { .. } if self.zero_by_writing || !file.zero_range => {
                self.zero_by_writing = true;
                Call::Write { durable: false }
            }
            OpKind::Zero { .. } => Call::ZeroRange,
        };
        let length = match call {
            Call::Read | Call::Write { .. } if self.zero_by_writing => self.gather_zeroes(length),
            Call::Read | Call::Write { .. } => self.gather(memory.segments(), length),
            _ => length,
        };
        let step = Step {
            call,
            offset,
            length,
        };
        self.asked = Some(step);
        step
    }

    /// Takes the result of the last step. `None`: there is another step to make.
    pub fn absorb(
        &mut self,
        op: &Op,
        memory: &impl IoMemory,
        file: &mut Registered,
        result: Result<u64, Errno>,
    ) -> Option<Result<u64, Errno>> {
        let step = self.asked.take()?;
        match (result, step.call) {
            (Err(Errno::INTR | Errno::AGAIN), _) if self.attempts < ATTEMPTS_MAX => {
                self.attempts += 1;
                None
            }
            (Err(Errno::BUSY), Call::PunchHole | Call::ZeroRange | Call::DiscardBlocks)
                if file.block_device =>
            {
                self.busy(op, file, step)
            }
            (Err(Errno::OPNOTSUPP | Errno::NODEV | Errno::NOSYS), Call::PunchHole)
                if op.kind != OpKind::Discard =>
            {
                file.punch_hole = false;
                None
            }
            (Err(Errno::OPNOTSUPP | Errno::NODEV | Errno::NOSYS), Call::ZeroRange) => {
                file.zero_range = false;
                self.zero_by_writing = true;
                None
            }
            (Err(error), _) => Some(Err(error)),
            (Ok(_), Call::DataSync | Call::Sync) => Some(Ok(0)),
            (Ok(count), Call::Read | Call::Write { .. }) => {
                self.transferred(op, memory, file, step, count)
            }
            (Ok(_), _) => Some(Ok(op.length)),
        }
    }

    /// A device that is open exclusively refuses to discard and to zero dirty pages (EBUSY,
    /// `truncate_bdev_range` of Linux). A discard is advice, so one that stays refused succeeds.
    fn busy(&mut self, op: &Op, file: &Registered, step: Step) -> Option<Result<u64, Errno>> {
        if self.busy < BUSY_MAX {
            self.busy += 1;
            file.write_back(step.offset, step.length);
            return None;
        }
        if op.kind == OpKind::Discard {
            return Some(Ok(op.length));
        }
        self.zero_by_writing = true;
        None
    }

    fn transferred(
        &mut self,
        op: &Op,
        memory: &impl IoMemory,
        file: &Registered,
        step: Step,
        count: u64,
    ) -> Option<Result<u64, Errno>> {
        let count = count.min(step.length);
        self.attempts = 0;
        self.done += count;
        if self.done == op.length {
            return Some(Ok(self.done));
        }
        let ended = match step.call {
            // The size is asked first: it is cheaper than another read, and after a short read
            // with O_DIRECT the position is not aligned, so that some file systems would fail that
            // read.
            Call::Read => {
                count == 0 || (count < step.length && file.ends_by(op.offset + self.done))
            }
            _ if count == 0 => return Some(Err(Errno::IO)),
            _ => false,
        };
        if ended {
            return Some(Ok(self.done));
        }
        if !self.zero_by_writing {
            self.advance(memory.segments(), count);
        }
        None
    }

    /// Moves on by `count` bytes, which lie inside the segments.
    fn advance(&mut self, segments: &[Segment], count: u64) {
        let mut left = count;
        while left > 0 {
            let here = (segments[self.segment].len - self.within) as u64;
            if left < here {
                self.within += left as usize;
                return;
            }
            left -= here;
            self.segment += 1;
            self.within = 0;
        }
    }

    /// Collects the pieces of the next call, and returns how many bytes they have together.
    fn gather(&mut self, segments: &[Segment], length: u64) -> u64 {
        self.pieces.clear();
        let length = length.min(CALL_BYTES_MAX);
        let mut left = length;
        let mut within = self.within;
        for segment in &segments[self.segment..] {
            if left == 0 || self.pieces.len() == SEGMENTS_MAX {
                break;
            }
            let len = (segment.len - within).min(left as usize);
            if len > 0 {
                self.pieces.push(Segment {
                    base: segment.base.wrapping_add(within),
                    len,
                });
                left -= len as u64;
            }
            within = 0;
        }
        length - left
    }

    fn gather_zeroes(&mut self, length: u64) -> u64 {
        static ZEROES: OnceLock<Buffer> = OnceLock::new();
        let zeroes = ZEROES.get_or_init(|| Buffer::new(ZEROES_BYTES));
        self.pieces.clear();
        let length = length.min(ZEROES_BYTES as u64 * ZEROES_MAX);
        let mut left = length as usize;
        while left > 0 {
            let len = left.min(ZEROES_BYTES);
            self.pieces.push(Segment {
                base: zeroes.segments()[0].base,
                len,
            });
            left -= len;
        }
        length
    }
}

#[cfg(test)]
mod tests;
