//! Sizes and times as users write and read them.
//!
//! | what | function | example |
//! |---|---|---|
//! | read a size | [`parse_size`] | `64m` is 67,108,864 bytes |
//! | read a size or a share | [`parse_size_or_percent`] | `50%` |
//! | read a time | [`parse_duration_ns`] | `10us` is 10,000 ns |
//! | write a size that reads back | [`size_exact`] | `64m` |
//! | write a size for people | [`size_human`] | `1.4 MiB` |
//! | write a size as FreeBSD does | [`humanize_number`], [`diskinfo_size`] | `1.0E` |
//! | write a time | [`duration_exact`], [`duration_human`] | `10us`, `5.02 us` |
//! | write a count | [`grouped`] | `5,021` |

mod duration;
mod error;
mod humanize;
mod number;
mod size;

pub use duration::{
    TimeUnit, duration_exact, duration_human, parse_duration_ns, parse_duration_ns_in,
};
pub use error::{UnitError, UnitErrorKind};
pub use humanize::{Humanize, Scale, diskinfo_size, humanize_number};
pub use size::{Size, grouped, parse_size, parse_size_or_percent, size_exact, size_human};
