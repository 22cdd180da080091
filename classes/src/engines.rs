//! The I/O engines of a file: one for each thread that sends requests to it.

use crate::build::BuildError;
use ugeom_engine::{Choice, Engine, EngineOptions, GuasiOptions, open_engine_with};
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{Carrier, Errno};

/// How many requests one thread's engine hands to the kernel at a time; more wait in the engine.
pub(crate) const DEPTH: u32 = 256;

/// A request in an engine, with the number of FLUSHes that had failed when it was submitted.
pub(crate) type Carried = (Carrier, u64);

/// How the threads' engines are opened, and those that no thread has yet.
pub(crate) struct Engines {
    choice: Choice,
    options: EngineOptions,
    why: String,
    /// The first is open before a thread asks, so that an engine that cannot work here is an error
    /// when the file is opened and not with the first request.
    spare: Mutex<Vec<Box<dyn Engine<Carried>>>>,
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
        let options = EngineOptions::new(DEPTH, guasi);
        let opened = open_engine_with(choice, options);
        let (first, why) = opened.map_err(|error| {
            let problem = format!("{error} (engine=auto selects an available engine)");
            BuildError::refused(path, problem)
        })?;
        Ok(Self {
            choice,
            options,
            why,
            spare: Mutex::new(vec![first]),
        })
    }

    /// Engines that exist already, the last for the first thread that asks.
    #[cfg(test)]
    pub(crate) fn of(spare: Vec<Box<dyn Engine<Carried>>>) -> Self {
        Self {
            choice: Choice::Auto,
            options: EngineOptions::new(DEPTH, GuasiOptions::default()),
            why: String::new(),
            spare: Mutex::new(spare),
        }
    }

    /// The engine's name and why it is this one.
    pub(crate) fn why(&self) -> String {
        self.why.clone()
    }

    /// The engine of a thread that has none yet.
    ///
    /// # Errors
    /// `MFILE`: that the engine works here is known, so what fails are limits.
    pub(crate) fn of_thread(&self) -> Result<Box<dyn Engine<Carried>>, Errno> {
        let mut spare = self.spare.lock();
        if let Some(engine) = spare.pop() {
            return Ok(engine);
        }
        drop(spare);
        let opened = open_engine_with(self.choice, self.options);
        opened.map(|(engine, _)| engine).map_err(|_| Errno::MFILE)
    }
}
