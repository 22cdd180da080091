//! Choosing an engine, and saying why it was chosen.

use std::fmt;
use std::io;
use std::str::FromStr;

use ugeom_machine::buffer::IoMemory;

use crate::op::Engine;
use crate::sync::SyncEngine;
use crate::uring::UringEngine;

/// Which engine to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choice {
    /// The best that the system allows.
    #[default]
    Auto,
    /// Blocking system calls.
    Sync,
    /// The kernel's submission and completion rings.
    IoUring,
}

impl Choice {
    /// All choices, in the order in which they are to be listed.
    pub const ALL: [Choice; 3] = [Choice::Auto, Choice::Sync, Choice::IoUring];

    /// The name as the user writes it.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Sync => "sync",
            Choice::IoUring => "io_uring",
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
pub enum EngineError {
    /// No engine has this name.
    #[error("no engine is called '{name}': there are auto, sync and io_uring")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The system does not let us use io_uring.
    #[error("io_uring cannot be used: {reason}")]
    IoUring {
        /// What is missing or forbidden, in plain words.
        reason: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Opens an engine that hands at most `depth` operations (1 to 32768) to the kernel at a time;
/// more may be submitted, and wait in the engine. Returns it with the reason for the choice.
///
/// # Errors
/// When io_uring was asked for by name and cannot be used.
pub fn open_engine<M: IoMemory + 'static>(
    choice: Choice,
    depth: u32,
) -> Result<(Box<dyn Engine<M>>, String), EngineError> {
    match choice {
        Choice::Sync => Ok((Box::new(SyncEngine::new()), "sync: asked for".to_owned())),
        Choice::IoUring => {
            let engine = UringEngine::open(depth)?;
            Ok((
                Box::new(engine),
                "io_uring: asked for, and the kernel allows it".to_owned(),
            ))
        }
        Choice::Auto => match UringEngine::open(depth) {
            Ok(engine) => Ok((
                Box::new(engine),
                "io_uring: the kernel allows it".to_owned(),
            )),
            Err(error) => Ok((Box::new(SyncEngine::new()), format!("sync: {error}"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_read_back_from_its_name() {
        for choice in Choice::ALL {
            assert_eq!(choice.to_string().parse::<Choice>().unwrap(), choice);
        }
        let error = "aio".parse::<Choice>().unwrap_err().to_string();
        assert!(error.contains("'aio'"), "{error}");
    }
}
