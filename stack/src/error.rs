//! The errors of the stack: kind, then context (provider, offset, operation), then reason.

use crate::bio::Command;

pub use rustix::io::Errno;

/// Why a request failed, as a caller is told.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{command}{} of {provider}: {reason} ({errno})", self.range())]
#[allow(missing_docs, reason = "messages name the fields")]
pub struct IoError {
    /// The number, for programs.
    pub errno: Errno,
    pub command: Command,
    /// The provider that refused or failed it; it may lie below the one that was asked.
    pub provider: String,
    /// Where, in bytes of that provider.
    pub offset_bytes: u64,
    /// How much, in bytes.
    pub length_bytes: u64,
    pub reason: String,
}

impl IoError {
    fn range(&self) -> String {
        match self.command.has_range() {
            true => format!(" of {} bytes at {}", self.length_bytes, self.offset_bytes),
            false => String::new(),
        }
    }
}

impl From<IoError> for std::io::Error {
    fn from(error: IoError) -> Self {
        Self::new(
            Self::from_raw_os_error(error.errno.raw_os_error()).kind(),
            error,
        )
    }
}

/// Why a change of the topology, or opening a provider, was refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum StackError {
    #[error("no such provider: {name}{}", hint(.known))]
    NoProvider {
        /// The requested name.
        name: String,
        /// Names that exist, to choose from.
        known: Vec<String>,
    },
    #[error("no such geom: {0}")]
    NoGeom(String),
    #[error("a provider named {0} exists already")]
    NameTaken(String),
    /// Attaching would close a circle (ELOOP).
    #[error("attaching {geom} to {provider} would close a loop")]
    Loop {
        /// The geom that wants to attach.
        geom: String,
        /// The provider that it wants.
        provider: String,
    },
    #[error("attaching {geom} to {provider} would make the stack deeper than {limit} layers")]
    TooDeep {
        /// The geom that wants to attach.
        geom: String,
        /// The provider that it wants.
        provider: String,
        /// The limit, in consumers.
        limit: usize,
    },
    /// The access counts do not allow it.
    #[error("cannot open {provider} {wanted}: {reason} ({errno})")]
    Access {
        provider: String,
        /// The deltas asked for, as GEOM writes them: `r1w0e0`.
        wanted: String,
        /// The violated rule.
        reason: String,
        errno: Errno,
    },
    /// The object is still in use.
    #[error("{0} is busy: {1}")]
    Busy(String, String),
    /// Values that make no provider.
    #[error("{0}")]
    Invalid(String),
    /// Reading from a provider failed while it was tasted or prepared.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The operating system refused something that the stack itself needs.
    #[error("{what}: {error}")]
    System { what: &'static str, error: Errno },
}

impl StackError {
    /// The errno that describes it best.
    pub fn errno(&self) -> Errno {
        match self {
            Self::NoProvider { .. } | Self::NoGeom(_) => Errno::NOENT,
            Self::NameTaken(_) => Errno::EXIST,
            Self::Loop { .. } => Errno::LOOP,
            Self::TooDeep { .. } => Errno::MLINK,
            Self::Access { errno, .. } => *errno,
            Self::Busy(..) => Errno::BUSY,
            Self::Invalid(_) => Errno::INVAL,
            Self::Io(error) => error.errno,
            Self::System { error, .. } => *error,
        }
    }
}

fn hint(known: &[String]) -> String {
    const SHOWN: usize = 8;
    if known.is_empty() {
        return String::new();
    }
    let more = if known.len() > SHOWN { ", ..." } else { "" };
    let names: Vec<&str> = known.iter().take(SHOWN).map(String::as_str).collect();
    format!(" (there are: {}{more})", names.join(", "))
}
