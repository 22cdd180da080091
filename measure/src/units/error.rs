//! Why a size or a time was not understood, and at which byte.

/// What is wrong with the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitErrorKind {
    /// There is nothing, or nothing but blanks.
    #[error("a number is missing")]
    Empty,
    /// The text does not begin with a digit.
    #[error("a number must begin with a digit, not with `{0}`")]
    NotANumber(char),
    /// The unit after the number is not known.
    #[error("unknown unit `{unit}`; known are {known}")]
    UnknownUnit {
        /// The unit as it was written.
        unit: String,
        /// The units that are known.
        known: &'static str,
    },
    /// A time without a unit.
    #[error("a unit is missing; known are {known}")]
    MissingUnit {
        /// The units that are known.
        known: &'static str,
    },
    /// The number does not fit in 64 bits.
    #[error("the number is too large")]
    TooLarge,
    /// A fraction that leaves a part of a byte or nanosecond.
    #[error("that is not a whole number of {0}")]
    NotWhole(&'static str),
    /// A percentage above 100, or where none is allowed.
    #[error("{0}")]
    Percent(&'static str),
}

/// A size or a time that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`, at byte {at}: {kind}")]
pub struct UnitError {
    /// The whole text.
    pub text: String,
    /// The position of the first byte that is wrong, from 0.
    pub at: usize,
    /// What is wrong with it.
    pub kind: UnitErrorKind,
}

impl UnitError {
    pub(super) fn new(text: &str, at: usize, kind: UnitErrorKind) -> Self {
        Self {
            text: text.to_owned(),
            at,
            kind,
        }
    }
}
