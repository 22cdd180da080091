//! Files and block devices, through an engine.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ugeom_engine::{Choice, Engine, EngineOptions, Errno, FileId, Op, open_engine_with};
use ugeom_machine::buffer::{Buffer, Pool};
use ugeom_machine::cpu::Usage;

use super::{Door, Event, Explain, Kind, Request};

/// A buffer, and the slot it belongs to.
pub type Memory = (Buffer, u32);

/// Requests on files, through an engine.
pub struct EngineDoor {
    engine: Box<dyn Engine<Memory>>,
    files: Vec<FileId>,
    buffers: Vec<Buffer>,
}

impl EngineDoor {
    /// Opens the engine, with a slot for each request at a time, and makes the files known to it.
    /// Answers with the reason for the choice of the engine, too.
    ///
    /// # Errors
    /// The reason why the engine, or a file, cannot be used.
    pub fn open(
        choice: Choice,
        options: EngineOptions,
        bytes: usize,
        files: Vec<Arc<File>>,
    ) -> Result<(Self, String), Box<dyn std::error::Error + Send + Sync>> {
        let (mut engine, why) = open_engine_with::<Memory>(choice, options)?;
        let (pool, buffers) = Pool::new(options.depth as usize, bytes);
        // Where the engine makes nothing of it, the buffers are memory like any other.
        engine.register_memory(&pool);
        Ok((Self::with(engine, buffers, files)?, why))
    }

    /// A door of an engine that is open, with a slot for each buffer.
    ///
    /// # Errors
    /// The reason why a file cannot be used.
    pub fn with(
        mut engine: Box<dyn Engine<Memory>>,
        buffers: Vec<Buffer>,
        files: impl IntoIterator<Item = Arc<File>>,
    ) -> Result<Self, Errno> {
        let files = files.into_iter().map(|file| engine.register(file));
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
            engine,
            buffers,
        })
    }
}

impl Explain for EngineDoor {}

impl Door for EngineDoor {
    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        &mut self.buffers[slot as usize]
    }

    #[inline]
    fn submit(&mut self, slot: u32, request: &Request) {
        let kind = match request.kind {
            Kind::Read => ugeom_engine::OpKind::Read,
            Kind::Write => ugeom_engine::OpKind::Write { durable: false },
            Kind::Trim => ugeom_engine::OpKind::Discard,
            Kind::DataSync => ugeom_engine::OpKind::Flush,
            Kind::Sync => ugeom_engine::OpKind::Sync,
        };
        let op = Op {
            kind,
            file: self.files[request.file as usize],
            offset: request.offset,
            length: u64::from(request.length),
        };
        let buffer = std::mem::replace(&mut self.buffers[slot as usize], Buffer::new(0));
        self.engine.submit(op, (buffer, slot));
    }

    fn renew(&mut self, files: Vec<Arc<File>>) -> Result<(), Errno> {
        for file in self.files.drain(..) {
            self.engine.unregister(file);
        }
        let files = files.into_iter().map(|file| self.engine.register(file));
        self.files = files.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn set_priority(&mut self, priority: u16) {
        self.engine.set_priority(priority);
    }

    #[inline]
    fn flush(&mut self) {
        self.engine.flush_submissions();
    }

    #[inline]
    fn reap(&mut self, events: &mut Vec<Event>) {
        let buffers = &mut self.buffers;
        self.engine.reap(&mut |completion| {
            let (buffer, slot) = completion.memory;
            buffers[slot as usize] = buffer;
            events.push(Event {
                slot,
                result: completion.result,
            });
        });
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.engine.wait(timeout)
    }

    fn helpers_usage(&mut self, ended: bool) -> Usage {
        self.engine.helpers_usage(ended)
    }
}
