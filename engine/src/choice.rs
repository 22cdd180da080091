//! The engines by their names, and why one cannot be used.

use std::fmt;
use std::io;
use std::str::FromStr;

/// The choice of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choice {
    /// The best that the system allows.
    #[default]
    Auto,
    /// The kernel's submission and completion rings.
    IoUring,
    /// Blocking system calls in threads.
    Guasi,
    /// The kernel's older asynchronous I/O, io_submit(2).
    Libaio,
    /// Blocking system calls, pread(2) and pwrite(2).
    Sync,
    /// Blocking system calls, lseek(2) and read(2) or write(2).
    Seek,
    /// Blocking system calls that move data through a pipe, splice(2).
    Splice,
    /// Copies from and to the mapped file.
    Mmap,
    /// A simulated disk with [`Faults::default`](crate::Faults), for tests.
    Simulated,
}

impl Choice {
    /// All choices, in the order in which they are to be listed.
    pub const ALL: [Choice; 9] = [
        Choice::Auto,
        Choice::IoUring,
        Choice::Guasi,
        Choice::Libaio,
        Choice::Sync,
        Choice::Seek,
        Choice::Splice,
        Choice::Mmap,
        Choice::Simulated,
    ];

    /// The name as the user writes it.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::IoUring => "io_uring",
            Choice::Guasi => "guasi",
            Choice::Libaio => "libaio",
            Choice::Sync => "sync",
            Choice::Seek => "seek",
            Choice::Splice => "splice",
            Choice::Mmap => "mmap",
            Choice::Simulated => "simulated",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Choice {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Choice, EngineError> {
        let found = Choice::ALL.into_iter().find(|choice| choice.name() == text);
        found.ok_or_else(|| EngineError::Unknown {
            name: text.to_owned(),
        })
    }
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum EngineError {
    #[error("no engine is called '{name}': there are {}", names())]
    Unknown {
        /// The requested engine.
        name: String,
    },
    /// The system does not let us use the engine.
    #[error("{engine} cannot be used: {reason}")]
    Refused {
        engine: &'static str,
        /// The missing or forbidden feature, in plain words.
        reason: String,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// The names of all engines, as a sentence lists them.
fn names() -> String {
    let names = Choice::ALL.map(Choice::name);
    let (last, others) = names.split_last().unwrap_or((&"none", &[]));
    format!("{} and {last}", others.join(", "))
}
