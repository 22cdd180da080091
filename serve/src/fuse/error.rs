//! Why files cannot be served.

use std::io;
use std::path::PathBuf;

/// Why files cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum FuseError {
    /// A directory that cannot be mounted on.
    #[error("{}: {problem}", directory.display())]
    Place {
        directory: PathBuf,
        /// The defect, in plain words.
        problem: String,
    },
    /// The kernel, or fusermount3, refuses the mount.
    #[error("mounting {}: {problem}", directory.display())]
    Mount {
        directory: PathBuf,
        /// Why, in plain words.
        problem: String,
        /// The error of the system, if it was called.
        #[source]
        source: Option<io::Error>,
    },
    /// A transport that was asked for by name cannot be had.
    #[error("FUSE over io_uring is not available: {0}")]
    Transport(String),
    /// The system refused something that every server needs.
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

impl FuseError {
    pub(crate) fn system(what: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Self::System { what, source }
    }
}
