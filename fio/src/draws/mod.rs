//! Random numbers as fio draws them, so that a job makes the same requests in the same order under
//! both programs. Algorithms and seeds are those of fio 3.33; see [`Seeds`] for later versions.

mod lfsr;
mod seeds;
mod tausworthe;

pub use lfsr::Lfsr;
pub use seeds::{Purpose, Seeds};
use tausworthe::{Taus88, Taus258};
use ugeom_format::verify_state::Generator;
use ugeom_load::places::Below;

/// 2^32 and 2^64: one more than the largest number of a generator.
const RANGE_32: f64 = 4_294_967_296.0;
const RANGE_64: f64 = RANGE_32 * RANGE_32;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub enum Draws {
    /// Of 32 bits: `random_generator=tausworthe`.
    Short(Taus88),
    /// Of 64 bits: `random_generator=tausworthe64`.
    Long(Taus258),
}

impl Draws {
    /// The numbers of 32 bits that follow from the lower half of a seed.
    pub fn short(seed: u64) -> Self {
        Self::Short(Taus88::new(seed as u32))
    }

    /// The numbers of 64 bits that follow from a seed, or those of 32 bits.
    pub fn new(seed: u64, long: bool) -> Self {
        match long {
            true => Self::Long(Taus258::new(seed)),
            false => Self::short(seed),
        }
    }

    /// The next number of the generator, of 32 or 64 bits.
    #[inline(always)]
    pub fn number(&mut self) -> u64 {
        match self {
            Self::Short(numbers) => u64::from(numbers.next()),
            Self::Long(numbers) => numbers.next(),
        }
    }

    /// The state of the numbers that follow, as fio keeps it: zeros unless they `are_used`.
    pub fn state(&self, are_used: bool) -> Generator {
        match self {
            _ if !are_used => Generator::Short([0; 4]),
            Self::Short(numbers) => Generator::Short(numbers.state()),
            Self::Long(numbers) => Generator::Long(numbers.state()),
        }
    }

    /// The largest number that can come.
    pub fn max(&self) -> u64 {
        match self {
            Self::Short(_) => u64::from(u32::MAX),
            Self::Long(_) => u64::MAX,
        }
    }

    /// The next number as a share: from 0 on, below 1.
    #[inline(always)]
    fn share(&mut self) -> f64 {
        match self {
            Self::Short(numbers) => f64::from(numbers.next()) / RANGE_32,
            Self::Long(numbers) => numbers.next() as f64 / RANGE_64,
        }
    }

    /// A percentage, 1 to 100.
    #[inline]
    pub fn percentage(&mut self) -> u8 {
        1 + self.below(100) as u8
    }
}

impl Below for Draws {
    #[inline(always)]
    fn below(&mut self, limit: u64) -> u64 {
        (limit as f64 * self.share()) as u64
    }
}
