//! The meaning of the word that a request other than READ carries.

/// How far the cache is with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is to be done when it comes back.
    Passed,
    /// A WRITE whose first bytes are in their blocks; it waits for the next one and has waited so
    /// often.
    Putting { done_bytes: u64, times: u32 },
    /// A WRITE whose next block is being read.
    Filling { done_bytes: u64 },
    /// It waits until the dirty blocks are written below.
    Draining,
    /// A FLUSH that is below, and ends this round of writes there.
    Flushing { round: u32 },
    /// It waits until no other request changes its blocks below, and has waited so often.
    Entering { times: u32 },
    /// Dirty parts beside its range are being written below; its number among the writers.
    Edges { number: usize },
    /// It is on its way below itself; its number among the writers.
    Changing { number: usize },
    /// It was below, and the blocks have to be made to agree; its number among the writers.
    Agreeing { number: usize },
}

const KIND_SHIFT: u32 = 60;
const TIMES_SHIFT: u32 = 44;
const BYTES_MASK: u64 = (1 << TIMES_SHIFT) - 1;
const TIMES_MASK: u64 = (1 << (KIND_SHIFT - TIMES_SHIFT)) - 1;

impl Progress {
    /// Its form as one atomic word.
    pub fn word(self) -> u64 {
        let (kind, times, value) = match self {
            Self::Passed => (0, 0, 0),
            Self::Putting { done_bytes, times } => (1, times, done_bytes),
            Self::Filling { done_bytes } => (2, 0, done_bytes),
            Self::Draining => (3, 0, 0),
            Self::Entering { times } => (4, times, 0),
            Self::Edges { number } => (5, 0, number as u64),
            Self::Changing { number } => (6, 0, number as u64),
            Self::Agreeing { number } => (7, 0, number as u64),
            Self::Flushing { round } => (8, 0, u64::from(round)),
        };
        kind << KIND_SHIFT | u64::from(times) << TIMES_SHIFT | value
    }

    /// The reverse of [`Progress::word`].
    pub fn of(word: u64) -> Self {
        let done_bytes = word & BYTES_MASK;
        let number = done_bytes as usize;
        let times = (word >> TIMES_SHIFT & TIMES_MASK) as u32;
        match word >> KIND_SHIFT {
            1 => Self::Putting { done_bytes, times },
            2 => Self::Filling { done_bytes },
            3 => Self::Draining,
            4 => Self::Entering { times },
            5 => Self::Edges { number },
            6 => Self::Changing { number },
            7 => Self::Agreeing { number },
            8 => Self::Flushing {
                round: done_bytes as u32,
            },
            _ => Self::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_says_what_it_was_made_from() {
        for progress in [
            Progress::Passed,
            Progress::Putting {
                done_bytes: (1 << 44) - 512,
                times: 60_000,
            },
            Progress::Filling { done_bytes: 4096 },
            Progress::Draining,
            Progress::Entering { times: 12_000 },
            Progress::Edges { number: 7 },
            Progress::Changing { number: 0 },
            Progress::Agreeing { number: 70_000 },
            Progress::Flushing { round: u32::MAX },
        ] {
            assert_eq!(Progress::of(progress.word()), progress);
        }
    }
}
