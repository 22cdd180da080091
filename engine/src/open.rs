//! Choosing an engine, and saying why it was chosen.

use std::fmt;
use std::io;
use std::str::FromStr;

use ugeom_guasi::Backend;
use ugeom_machine::buffer::IoMemory;

use crate::guasi::{GuasiEngine, GuasiOptions};
use crate::libaio::LibaioEngine;
use crate::mmap::MmapEngine;
use crate::op::Engine;
use crate::simulated::{Faults, Simulation};
use crate::sync::{SeekEngine, SyncEngine};
use crate::uring::UringEngine;

/// Which engine to use.
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
    /// Copies from and to the mapped file.
    Mmap,
    /// A simulated disk with [`Faults::default`], for tests.
    Simulated,
}

impl Choice {
    /// All choices, in the order in which they are to be listed.
    pub const ALL: [Choice; 8] = [
        Choice::Auto,
        Choice::IoUring,
        Choice::Guasi,
        Choice::Libaio,
        Choice::Sync,
        Choice::Seek,
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
pub enum EngineError {
    /// No engine has this name.
    #[error("no engine is called '{name}': there are {}", names())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The system does not let us use the engine.
    #[error("{engine} cannot be used: {reason}")]
    Refused {
        /// The engine's name.
        engine: &'static str,
        /// What is missing or forbidden, in plain words.
        reason: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The names of all engines, as a sentence lists them.
fn names() -> String {
    let names = Choice::ALL.map(Choice::name);
    let (last, others) = names.split_last().unwrap_or((&"none", &[]));
    format!("{} and {last}", others.join(", "))
}

/// An engine, and in plain words why it is this one: `NAME: REASON`.
pub type Opened<M> = (Box<dyn Engine<M>>, String);

/// What an engine is to be like, beyond which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// How many operations (1 to 32768) it hands on at a time; more may be submitted, and wait in
    /// the engine.
    pub depth: u32,
    /// For `guasi`, also where `auto` comes to it.
    pub guasi: GuasiOptions,
}

/// Opens an engine that hands at most `depth` operations (1 to 32768) to the kernel at a time;
/// more may be submitted, and wait in the engine. Returns it with the reason for the choice.
///
/// # Errors
/// When an engine was asked for by name that the system refuses.
pub fn open_engine<M: IoMemory + 'static>(
    choice: Choice,
    depth: u32,
) -> Result<Opened<M>, EngineError> {
    let guasi = GuasiOptions::default();
    open_engine_with(choice, EngineOptions { depth, guasi })
}

/// As [`open_engine`], with all options.
///
/// # Errors
/// When an engine was asked for by name that the system refuses.
pub fn open_engine_with<M: IoMemory + 'static>(
    choice: Choice,
    options: EngineOptions,
) -> Result<Opened<M>, EngineError> {
    let EngineOptions { depth, guasi } = options;
    let engine: Box<dyn Engine<M>> = match choice {
        Choice::Auto => return Ok(open_best(options)),
        Choice::IoUring => Box::new(UringEngine::open(depth)?),
        Choice::Guasi => {
            let engine = GuasiEngine::open(depth, guasi)?;
            let why = match guasi.backend {
                Backend::Workers => "guasi: asked for".to_owned(),
                _ => format!("guasi: asked for; {}", engine.backend()),
            };
            return Ok((Box::new(engine), why));
        }
        Choice::Libaio => Box::new(LibaioEngine::open(depth)?),
        Choice::Sync => Box::new(SyncEngine::new()),
        Choice::Seek => Box::new(SeekEngine::new()),
        Choice::Mmap => Box::new(MmapEngine::new()),
        Choice::Simulated => Box::new(Simulation::new(Faults::default()).engine(depth)),
    };
    let why = format!("{}: asked for", engine.name());
    Ok((engine, why))
}

/// What `auto` means here: a ring of the kernel, else threads, else (where not even one can be
/// started) no others than the caller's own.
fn open_best<M: IoMemory + 'static>(options: EngineOptions) -> Opened<M> {
    let no_ring = match UringEngine::open(options.depth) {
        Ok(engine) => {
            let why = "io_uring: the kernel allows it";
            return (Box::new(engine), why.to_owned());
        }
        Err(error) => error,
    };
    match GuasiEngine::open(options.depth, options.guasi) {
        Ok(engine) => (Box::new(engine), format!("guasi: {no_ring}")),
        Err(error) => {
            let why = format!("sync: {no_ring}; {error}");
            (Box::new(SyncEngine::new()), why)
        }
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
        assert!(error.ends_with("mmap and simulated"), "{error}");
    }
}
