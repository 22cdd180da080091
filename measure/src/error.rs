//! Errors of statistics, with the reason in plain words.

/// The reason why a statistic was refused. Every function of this crate that can fail answers with
/// one of these; none panics.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("{what} needs at least {needed} values, there are {got}")]
    TooFew {
        /// The statistic that was asked for.
        what: &'static str,
        /// How many values it needs.
        needed: u64,
        /// How many there were.
        got: u64,
    },
    #[error("{what}: value {index} is {value}, not a finite number")]
    NotFinite {
        /// The statistic that was asked for.
        what: &'static str,
        /// The position of the first such value, from 0.
        index: usize,
        value: f64,
    },
    /// All values are equal, so there is no spread to judge by. The value is handed back, so that a
    /// caller can still say "always exactly this" ([`crate::Interval::exact`]).
    #[error("{what}: the values do not vary (always {value}), so no interval can be computed")]
    ZeroVariance {
        /// The statistic that was asked for.
        what: &'static str,
        /// The value, difference or ratio that never varied.
        value: f64,
    },
    /// Two lists that must be equally long are not.
    #[error("{what}: {left} values stand beside {right}, there must be as many of both")]
    UnequalLengths {
        /// The statistic that was asked for.
        what: &'static str,
        /// The length of the first list.
        left: usize,
        /// The length of the second list.
        right: usize,
    },
    /// A parameter (a confidence, a probability, an index) lies outside its range.
    #[error("{what} is {value}, but it must be {rule}")]
    OutOfRange {
        what: &'static str,
        value: f64,
        rule: &'static str,
    },
    #[error("{what}: the values are too large, the result is not a finite number")]
    Overflow {
        /// The statistic that was asked for.
        what: &'static str,
    },
}

/// Refuses the first value that is infinite or not a number.
pub(crate) fn require_finite(what: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(Error::NotFinite {
            what,
            index,
            value: values[index],
        }),
        None => Ok(()),
    }
}

/// Refuses a list that is too short.
pub(crate) fn require_count(what: &'static str, needed: u64, got: u64) -> Result<(), Error> {
    if got < needed {
        Err(Error::TooFew { what, needed, got })
    } else {
        Ok(())
    }
}

/// Refuses two lists of unequal length.
pub(crate) fn require_pairs(what: &'static str, left: usize, right: usize) -> Result<(), Error> {
    if left == right {
        Ok(())
    } else {
        Err(Error::UnequalLengths { what, left, right })
    }
}

/// Refuses a confidence that is not strictly between 0 and 1.
pub(crate) fn require_confidence(confidence: f64) -> Result<(), Error> {
    if confidence > 0.0 && confidence < 1.0 {
        Ok(())
    } else {
        Err(Error::OutOfRange {
            what: "the confidence",
            value: confidence,
            rule: "between 0 and 1, as 0.95 is",
        })
    }
}

/// Refuses a result that overflowed.
pub(crate) fn finite(what: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Overflow { what })
    }
}
