//! Why a server cannot be started.

use std::io;

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum ServeError {
    #[error("`{address}` is not an address: {problem}; write unix:PATH or tcp:HOST:PORT")]
    Address {
        address: String,
        /// The defect.
        problem: String,
    },
    /// An address that cannot be listened to.
    #[error("{address}: listening: {problem}")]
    Listen {
        address: String,
        /// Why not, in plain words.
        problem: String,
        /// The error of the system, if it was called.
        #[source]
        source: Option<io::Error>,
    },
    /// A rule about clients that cannot be kept.
    #[error("the rule `{rule}`: {problem}")]
    Rule {
        rule: String,
        /// The defect.
        problem: String,
    },
    /// A socket from outside that cannot be served.
    #[error("an inherited socket: {problem}")]
    Given {
        /// The defect.
        problem: String,
    },
    /// The system refused something that every server needs.
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

impl ServeError {
    pub(crate) fn system(what: &'static str, source: io::Error) -> Self {
        Self::System { what, source }
    }
}
