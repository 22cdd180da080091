//! Errors of a job: the place, the defect, and the correct text.

use std::fmt;
use std::sync::Arc;
use ugeom_stack::LostAtTheEnd;

/// Where a setting was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A line of a job file, counted from 1.
    Line {
        /// The file, as the user named it.
        file: Arc<str>,
        /// Line of the job file, from 1.
        line: u32,
    },
    /// An argument of the command line.
    Argument {
        /// The argument of the command line, as it was given.
        text: Arc<str>,
    },
    /// The value is a default and was not written anywhere.
    #[default]
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}: "),
            Self::Argument { text } => write!(f, "{text}: "),
            Self::Default => Ok(()),
        }
    }
}

/// Why jobs cannot be understood or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum JobError {
    /// The text of a job is wrong.
    #[error("{origin}{}", unrepeated(.origin, .message))]
    Language {
        origin: Origin,
        /// The defect, and the correct text.
        message: String,
    },
    /// A job is understood but cannot be run as it is: its size, its target.
    #[error("{job}: {message}")]
    Target {
        /// The name of the job.
        job: String,
        message: String,
        /// The error of the system.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The job begins past the end of its target, or the target is smaller than a request.
    #[error("{job}: {message}")]
    NoRoom { job: String, message: String },
    /// A stack lost data that it had accepted.
    #[error(transparent)]
    Lost(#[from] LostAtTheEnd),
}

/// The message without the setting or its value that it begins with, where the origin shows it:
/// `--bs=4q: bs=4q: ...`, `--read_iolog=log: log: ...`.
fn unrepeated<'a>(origin: &Origin, message: &'a str) -> &'a str {
    let Origin::Argument { text } = origin else {
        return message;
    };
    let setting = text.trim_start_matches('-');
    let value = setting.split_once('=').map(|(_, value)| value);
    let mut shown = [Some(setting), value].into_iter().flatten();
    shown
        .find_map(|shown| message.strip_prefix(shown)?.strip_prefix(": "))
        .unwrap_or(message)
}

impl JobError {
    /// An error in the text.
    pub fn language(origin: &Origin, message: impl Into<String>) -> Self {
        Self::Language {
            origin: origin.clone(),
            message: message.into(),
        }
    }

    /// An error about a target that no other caused.
    pub fn target(job: &str, message: impl Into<String>) -> Self {
        Self::Target {
            job: job.to_owned(),
            message: message.into(),
            source: None,
        }
    }

    /// An error of a target that has no room for the job; `origin`: the setting that asks for it.
    pub fn no_room(job: &str, origin: &Origin, message: impl fmt::Display) -> Self {
        Self::NoRoom {
            job: job.to_owned(),
            message: format!("{origin}{message}"),
        }
    }

    /// An error about a target, and its cause.
    pub fn caused(
        job: &str,
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Self::Target {
            job: job.to_owned(),
            message: format!("{}: {source}", message.into()),
            source: Some(source),
        }
    }

    /// True when the user's text is wrong, and not the machine's answer.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Language { .. })
    }
}
