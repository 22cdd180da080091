//! The I/O engines of a file: one for each thread that sends requests to it.

use crate::build::BuildError;
use std::sync::{Mutex, PoisonError};
use ugeom_engine::{Choice, Engine, EngineOptions, GuasiOptions, open_engine_with};
use ugeom_stack::{Carrier, Errno};

/// How many requests one thread's engine hands to the kernel at a time; more wait in the engine.
pub(crate) const DEPTH: u32 = 256;

/// How the threads' engines are opened, and the first of them.
pub(crate) struct Engines {
    choice: Choice,
    options: EngineOptions,
    why: String,
    /// It is open before a thread asks, so that an engine that cannot work here is an error when
    /// the file is opened and not with the first request.
    first: Mutex<Option<Box<dyn Engine<Carrier>>>>,
}

impl Engines {
    /// Opens the engine of the thread that is going to be the first one.
    ///
    /// # Errors
    /// `Refused` when the system refuses the engine that was asked for.
    pub(crate) fn open(
        path: &str,
        (choice, guasi): (Choice, GuasiOptions),
    ) -> Result<Self, BuildError> {
        let options = EngineOptions {
            depth: DEPTH,
            guasi,
        };
        let opened = open_engine_with(choice, options);
        let (first, why) = opened.map_err(|error| BuildError::Refused {
            path: path.to_owned(),
            problem: format!("{error} (engine=auto selects an available engine)"),
        })?;
        Ok(Self {
            choice,
            options,
            why,
            first: Mutex::new(Some(first)),
        })
    }

    /// The engine's name and why it is this one.
    pub(crate) fn why(&self) -> String {
        self.why.clone()
    }

    /// The engine of a thread that has none yet.
    ///
    /// # Errors
    /// `MFILE`: that the engine works here is known, so what fails are limits.
    pub(crate) fn of_thread(&self) -> Result<Box<dyn Engine<Carrier>>, Errno> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = first.take() {
            return Ok(engine);
        }
        drop(first);
        let opened = open_engine_with(self.choice, self.options);
        opened.map(|(engine, _)| engine).map_err(|_| Errno::MFILE)
    }
}
