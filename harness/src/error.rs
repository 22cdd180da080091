//! Errors of measurements, in plain words.

use std::error::Error;
use std::io;
use ugeom_machine::file_error::FileError;

/// The reason why an experiment or a part of it could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum HarnessError {
    /// The operating system refused something.
    #[error(transparent)]
    Os(#[from] FileError),
    #[error(
        "{path}: a read of {wanted_bytes} bytes at offset {offset_bytes} ended after {got_bytes}"
    )]
    Short {
        path: String,
        offset_bytes: u64,
        /// How much was asked for.
        wanted_bytes: u64,
        got_bytes: u64,
    },
    /// A stack could not be built or opened.
    #[error("building the stack to measure: {0}")]
    Stack(#[source] Box<dyn Error + Send + Sync>),
    /// The measured code failed, with an error of its own crate.
    #[error(transparent)]
    Subject(Box<dyn Error + Send + Sync>),
    #[error("case {case}: {source}")]
    Request {
        /// The name of the case.
        case: String,
        /// The failed layer, the place and the reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A statistic could not be computed.
    #[error("computing {what}: {source}")]
    Statistics {
        what: String,
        source: ugeom_measure::Error,
    },
    /// A thread of a measurement could not be started or ended by a panic.
    #[error("case {case}: {problem}")]
    Thread {
        /// The name of the case.
        case: String,
        problem: String,
    },
    /// A process of a measurement failed; these are its own words.
    #[error("{0}")]
    Worker(String),
    /// A load does not fit the provider that it is meant for.
    #[error("{job}: {problem}")]
    Load {
        /// The name of the load.
        job: String,
        /// Why not, in plain words.
        problem: String,
    },
    #[error("reading a saved result: {0}")]
    Document(String),
    /// Results or targets that cannot be compared.
    #[error("{0}")]
    Compare(String),
    /// A command that is to be measured failed.
    #[error("`{command}`: {problem}")]
    Command { command: String, problem: String },
}

impl HarnessError {
    /// Makes an [`HarnessError::Stack`] of the error that the stack gave.
    pub fn stack(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Stack(Box::new(error))
    }

    /// Makes an [`HarnessError::Subject`] of any other error.
    pub fn subject(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Subject(Box::new(error))
    }

    /// Makes an [`HarnessError::Request`] of the error that a request of `case` gave.
    pub fn request(case: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Request {
            case: case.into(),
            source: Box::new(source),
        }
    }

    /// Makes an [`HarnessError::Os`] of a failed action other than opening.
    pub fn os(path: impl Into<String>, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let error = FileError::at(path, action);
        move |source| error(source).into()
    }

    /// Makes an [`HarnessError::Os`] of a file that cannot be opened.
    pub fn open(path: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let error = FileError::open(path);
        move |source| error(source).into()
    }
}
