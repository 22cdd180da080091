//! ministat(1) to the letter: its data sets, its statistics, and its text and plot.
//!
//! ```text
//! x iguana                                                    names
//! +--------------------------------------------------------+
//! |x       *   x               *       +        + x       +|  plot: a mark for each value
//! | |__________M___|____A____________M__|A_______________| |  bar: median, average, deviation
//! +--------------------------------------------------------+
//!     N           Min           Max        Median ...         statistics
//! x   7            50           750           200 ...
//! Difference at 80.0% confidence                              against the first set
//! ```
//!
//! It is here because published figures rest on it: its pooled Student test is what the oldest ones
//! call proven. The rules of this project (`verdict`) are others and stand beside it.
//!
//! Two versions were published, and they do not agree ([`Version`]). Sources: ministat(1) and the
//! behaviour of FreeBSD's program; the classic one is compared byte by byte with Debian's package.
//! Undefined behaviour of the original (it reads or writes outside of its memory) is an [`Error`]
//! or [`PlotError`] here.

mod data;
mod error;
mod number;
mod plot;
mod printf;
mod report;
mod statistics;
mod student;

pub use data::{DataSet, Format, Parser};
pub use error::Error;
pub use plot::{Plot, PlotError, WIDTH, WIDTH_MIN};
pub use report::{MinistatOptions, Report};
pub use statistics::{Difference, Statistics};
pub use student::Confidence;

use serde::{Deserialize, Serialize};

/// Longer lines are refused. (The original cuts lines where its buffer ends, after 1,023 or 8,191
/// bytes, and takes the rest for another line.)
pub const LINE_BYTES_MAX: usize = 65_536;

/// More values are refused: they are all kept in memory.
pub const VALUES_MAX: usize = 1 << 24;

/// More data sets than this are refused: there are no more symbols.
pub const SETS_MAX: usize = 7;

/// At least so many values make a data set.
pub const VALUES_MIN: usize = 3;

/// The symbols of the first to the seventh set.
pub const SYMBOLS: [char; SETS_MAX] = ['x', '+', '*', '%', '#', '@', 'O'];

/// The version of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// The program up to 2017 and in Debian's package: the median of an even number of values is
    /// the upper one of the middle two, the variance is computed in one pass from the sum of the
    /// squares (large values with a small spread lose it), and the interval of the difference in
    /// per cent takes the reference for exact.
    Classic,
    /// The program of today: the median is the mean of the middle two, the variance takes two
    /// passes, and the interval in per cent knows that the reference has a spread, too.
    #[default]
    Current,
}
