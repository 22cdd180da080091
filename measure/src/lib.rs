//! Histograms and statistics, pure mathematics: no input, no output, no clock.
//!
//! Everything that prints a figure computes it here. Samples are slices of `f64` in any unit; the
//! results have the same unit. A question that the values cannot answer (too few, no spread, not
//! finite) is an [`Error`], never a panic and never a silent NaN.
//!
//! | question | module |
//! |---|---|
//! | what does this sample look like? | [`summary`] |
//! | how sure is this mean? | [`interval`] |
//! | what did an absolute time vary between? | [`spread`] |
//! | do two samples differ? | [`two_samples`] |
//! | what did each case give in each round? | [`blocks`] |
//! | and without trusting in normal distributions? | [`rank`] |
//! | by what factor? | [`ratio`] |
//! | how does a series rise? | [`regression`] |
//! | what limits a device: IOPS or bandwidth? | [`limits`] |
//! | what does this statistic without a formula allow? | [`bootstrap`] |
//! | what may be claimed of a ratio, and in which words? | [`change`] |
//! | where did a series move to another level? | [`shift`] |
//! | is it slower than a limit? | [`gate`] |
//! | what does the bench itself contribute? | [`noise`] |
//! | what would ministat(1) say? | [`ministat`] |
//! | how are latencies distributed? | [`histogram`] |
//! | how do users write and read sizes and times? | [`units`] |

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod blocks;
pub mod bootstrap;
pub mod center;
pub mod change;
pub mod distributions;
pub mod error;
pub mod gate;
pub mod histogram;
pub mod interval;
pub mod limits;
pub mod ministat;
pub mod noise;
pub mod rank;
pub mod ratio;
pub mod regression;
pub mod shift;
pub mod spread;
pub mod summary;
pub mod two_samples;
pub mod units;

pub use blocks::Blocks;
pub use bootstrap::Bootstrap;
pub use center::Center;
pub use change::{Change, Claim};
pub use error::Error;
pub use histogram::{AtomicHistogram, Histogram};
pub use interval::{Effect, Interval, percent};
pub use limits::BlockedLimits;
pub use noise::Noise;
pub use ratio::Ratio;
pub use spread::Spread;
pub use summary::{Moments, Summary};
