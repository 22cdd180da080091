//! Choosing an engine, and saying why it was chosen.

use ugeom_guasi::Backend;
use ugeom_machine::buffer::IoMemory;

use crate::choice::{Choice, EngineError};
use crate::guasi::{GuasiEngine, GuasiOptions};
use crate::libaio::LibaioEngine;
use crate::mmap::{AccessOrder, Mapped, MmapEngine};
use crate::op::Engine;
use crate::simulated::{Faults, Simulation};
use crate::splice::SpliceEngine;
use crate::sync::{SeekEngine, SyncEngine};
use crate::uring::UringEngine;

/// An engine, and in plain words why it is this one: `NAME: REASON`.
pub type Opened<M> = (Box<dyn Engine<M>>, String);

/// The options of an engine, beside its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// How many operations (1 to 32768) it hands on at a time; more may be submitted, and wait in
    /// the engine.
    pub depth: u32,
    /// For `guasi`, also where `auto` comes to it.
    pub guasi: GuasiOptions,
    /// For `mmap`: the order of the requests to come, where the kernel is to know it.
    pub order: Option<AccessOrder>,
    /// For `mmap`: the files become no shorter while they are used, so that nothing needs to ask
    /// where they end before each request. One that does become shorter is EIO, or zeros in the
    /// page of its new end.
    pub settled: bool,
}

impl EngineOptions {
    /// Without advice on the order of requests, for files of any length.
    #[must_use]
    pub fn new(depth: u32, guasi: GuasiOptions) -> Self {
        Self {
            depth,
            guasi,
            order: None,
            settled: false,
        }
    }
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
    open_engine_with(choice, EngineOptions::new(depth, GuasiOptions::default()))
}

/// As [`open_engine`], with all options.
///
/// # Errors
/// When an engine was asked for by name that the system refuses.
pub fn open_engine_with<M: IoMemory + 'static>(
    choice: Choice,
    options: EngineOptions,
) -> Result<Opened<M>, EngineError> {
    let EngineOptions {
        depth,
        guasi,
        order,
        settled,
    } = options;
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
        Choice::Splice => Box::new(SpliceEngine::new()),
        Choice::Mmap => Box::new(MmapEngine::of(Mapped { order, settled })),
        Choice::Simulated => Box::new(Simulation::new(Faults::default()).engine(depth)),
    };
    let why = format!("{}: asked for", engine.name());
    Ok((engine, why))
}

/// The engine that `auto` selects here: a ring of the kernel, else threads, else (if no thread can
/// be started) the caller's own.
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
