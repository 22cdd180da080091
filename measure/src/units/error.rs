//! Why a number with a unit was refused.

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum UnitError {
    /// It is not a number, or its unit is unknown.
    #[error("this is not {what}")]
    Form {
        what: &'static str,
        /// How such a value is written.
        help: &'static str,
    },
    /// It does not fit in 64 bits.
    #[error("this is more than 2^64 - 1 {unit}")]
    TooLarge { unit: &'static str },
    #[error("this is not a whole number of {unit}")]
    Fraction { unit: &'static str },
}

impl UnitError {
    /// How such a value is written.
    pub const fn help(&self) -> Option<&'static str> {
        match self {
            Self::Form { help, .. } => Some(help),
            Self::TooLarge { .. } | Self::Fraction { .. } => None,
        }
    }

    /// The error and its help in one line, for messages that have no place for a second one.
    pub fn with_help(&self) -> String {
        match self.help() {
            Some(help) => format!("{self}; write {help}"),
            None => self.to_string(),
        }
    }
}
