//! Errors between a server and `ugeom stat`.

use std::io;
use std::path::PathBuf;

/// An error of the control socket.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum ControlError {
    /// A line is not one that this side understands.
    #[error("{what} that cannot be understood: {problem}")]
    Message {
        /// Whose line: `a question`, `an answer`.
        what: &'static str,
        /// The defect.
        problem: String,
    },
    #[error("{}: {problem}", path.display())]
    Place {
        /// Where it should be.
        path: PathBuf,
        problem: String,
    },
    #[error("no server listens to {}", path.display())]
    NoServer { path: PathBuf },
    #[error("{} belongs to another user: only root and the user who started a server may query it",
        path.display())]
    Forbidden { path: PathBuf },
    #[error("the server at {} has ended{why}", path.display())]
    Gone {
        path: PathBuf,
        /// How that was noticed; empty, or with a colon before it.
        why: String,
    },
    /// The server answers with an error of its own.
    #[error("the server at {} refuses: {reason}", path.display())]
    Refused {
        path: PathBuf,
        /// Why, in its own words.
        reason: String,
    },
    /// The system refuses something.
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}
