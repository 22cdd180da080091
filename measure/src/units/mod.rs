//! Sizes, times, percentages and counts as users write and read them.
//!
//! | what | function | example |
//! |---|---|---|
//! | read a size | [`size_bytes`] | `64m` is 67,108,864 bytes |
//! | read a size or a share | [`size_or_percent`] | `50%` |
//! | read a rate | [`rate_bytes_per_second`] | `57m/s` |
//! | read a time | [`duration_ns`] | `10us` is 10,000 ns |
//! | read a percentage, a probability | [`percent`], [`probability`] | `95`, `5%` |
//! | read a count, a truth value | [`whole_number`], [`truth`] | `0x2a`, `yes` |
//! | write a size that reads back | [`size_exact`] | `64m` |
//! | write a size for people | [`size_human`] | `1.4 MiB` |
//! | write a size as FreeBSD does | [`diskinfo_size`] | `1.0E` |
//! | write a time | [`duration_exact`], [`duration_human`] | `10us`, `5.02 us` |
//! | write a count | [`grouped`] | `5,021` |

mod duration;
mod error;
mod humanize;
mod number;
mod read;
mod size;

pub use duration::{TimeUnit, duration_exact, duration_human, duration_measured};
pub use error::UnitError;
pub use humanize::diskinfo_size;
pub use read::{
    SECTOR_BYTES, SizeUnits, duration_ns, percent, probability, rate_bytes_per_second, size_bytes,
    size_or_percent, truth, whole_number,
};
pub use size::{Size, grouped, size_exact, size_human};
