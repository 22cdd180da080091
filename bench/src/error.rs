//! What can go wrong while measuring, in plain words.

use std::io;
use ugeom_stack::{IoError, StackError};

/// The reason why an experiment or a part of it could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The operating system refused something.
    #[error("{path}: {operation}: {source}")]
    Os {
        /// What was worked on.
        path: String,
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A read ended early.
    #[error(
        "{path}: a read of {wanted_bytes} bytes at offset {offset_bytes} ended after {got_bytes}"
    )]
    Short {
        /// What was read.
        path: String,
        /// Where, bytes.
        offset_bytes: u64,
        /// How much was asked for.
        wanted_bytes: u64,
        /// How much came.
        got_bytes: u64,
    },
    /// A stack could not be built or opened.
    #[error("building the stack to measure: {0}")]
    Stack(#[from] StackError),
    /// A target could not be opened; an error of the text points at the column.
    #[error(transparent)]
    Target(Box<ugeom_classes::TargetError>),
    /// A request to a provider failed.
    #[error("reading in cell {cell}: {source}")]
    Io {
        /// The name of the cell.
        cell: String,
        /// Which layer failed it, where and why.
        source: IoError,
    },
    /// A statistic could not be computed.
    #[error("computing {what}: {source}")]
    Statistics {
        /// The figure.
        what: String,
        /// Why not.
        source: ugeom_measure::Error,
    },
    /// A thread of a measurement could not be started or ended by a panic.
    #[error("cell {cell}: {problem}")]
    Thread {
        /// The name of the cell.
        cell: String,
        /// What happened.
        problem: String,
    },
    /// A load does not fit the provider that it is meant for.
    #[error("{job}: {problem}")]
    Load {
        /// What the load is called.
        job: String,
        /// Why not, in plain words.
        problem: String,
    },
    /// A saved result is not one, or of another kind.
    #[error("reading a saved result: {0}")]
    Document(String),
    /// Results or targets that cannot be compared.
    #[error("{0}")]
    Compare(String),
    /// A job that is to be measured cannot be run, or failed.
    #[error(transparent)]
    Job(#[from] crate::job::JobError),
    /// A command that is to be measured failed.
    #[error("`{command}`: {problem}")]
    Command {
        /// The command.
        command: String,
        /// What happened.
        problem: String,
    },
}

impl BenchError {
    /// Makes an [`BenchError::Os`] of what the system said.
    pub(crate) fn os(
        path: impl Into<String>,
        operation: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Os {
            path,
            operation,
            source,
        }
    }
}
