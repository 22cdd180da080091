//! Why a data set was refused, with its name and the line.

use super::{LINE_BYTES_MAX, VALUES_MAX, VALUES_MIN};

/// The defects of a data set. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("{name}: line {line}: `{text}` is not a number")]
    NotANumber {
        name: String,
        line: u64,
        /// The text there, shortened.
        text: String,
    },
    /// It holds an infinity or a NaN, with which the original crashes.
    #[error("{name}: line {line}: `{text}` is not a finite number")]
    NotFinite {
        name: String,
        line: u64,
        /// The text there, shortened.
        text: String,
    },
    #[error("{name}: there is no column {column}: the longest line has {widest}")]
    NoSuchColumn {
        name: String,
        /// The column that was asked for, from 1.
        column: usize,
        /// The number of columns of the longest line.
        widest: usize,
    },
    /// A data set has fewer than [`VALUES_MIN`] values.
    #[error("{name}: a data set needs at least {VALUES_MIN} values, this one has {got}")]
    TooFew {
        name: String,
        /// How many it has.
        got: usize,
    },
    #[error("{name}: line {line} is longer than {LINE_BYTES_MAX} bytes; is this a text?")]
    LineTooLong { name: String, line: u64 },
    #[error("{name}: line {line}: there are more than {VALUES_MAX} values")]
    TooMany {
        name: String,
        /// The line of the first one that is too many.
        line: u64,
    },
}
