//! The meaning of the word that a request carries for the cache.

/// How far the cache is with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is to be done when it comes back.
    Passed,
    /// A READ whose blocks are being read; the number of its record.
    Reading(usize),
    /// A READ that waits for a block that another request reads: the bytes that are done, and how
    /// often it has waited.
    Waiting {
        done_bytes: u64,
        /// How often it has waited for this block.
        times: u32,
    },
    /// A change of the media that is in flight below; its number among the writers.
    Writing(usize),
}

const KIND_SHIFT: u32 = 62;
const TIMES_SHIFT: u32 = 44;
const DONE_MASK: u64 = (1 << TIMES_SHIFT) - 1;
const TIMES_MASK: u64 = (1 << (KIND_SHIFT - TIMES_SHIFT)) - 1;
const NUMBER_MASK: u64 = (1 << KIND_SHIFT) - 1;

impl Progress {
    /// Its form as one atomic word.
    pub fn word(self) -> u64 {
        match self {
            Self::Passed => 0,
            Self::Reading(number) => 1 << KIND_SHIFT | number as u64,
            Self::Waiting { done_bytes, times } => {
                2 << KIND_SHIFT | u64::from(times) << TIMES_SHIFT | done_bytes
            }
            Self::Writing(number) => 3 << KIND_SHIFT | number as u64,
        }
    }

    /// The reverse of [`Progress::word`].
    pub fn of(word: u64) -> Self {
        let number = (word & NUMBER_MASK) as usize;
        match word >> KIND_SHIFT {
            0 => Self::Passed,
            1 => Self::Reading(number),
            2 => Self::Waiting {
                done_bytes: word & DONE_MASK,
                times: (word >> TIMES_SHIFT & TIMES_MASK) as u32,
            },
            _ => Self::Writing(number),
        }
    }
}
