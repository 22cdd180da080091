//! The engine `sync`: each operation is a blocking system call, made when it is reaped.
//!
//! For comparison, for measuring without a queue, and for systems that have nothing better.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use ugeom_machine::buffer::IoMemory;

use crate::calls;
use crate::files::Files;
use crate::op::{Completion, Engine, Errno, FileId, Op, Ticket};
use crate::progress::settled;
use crate::table::{List, Table};

/// Runs operations one after another, in the order in which they were submitted.
pub struct SyncEngine<M> {
    files: Files,
    table: Table<M>,
    queue: List,
}

impl<M: IoMemory + 'static> SyncEngine<M> {
    /// An engine with nothing in flight.
    pub fn new() -> SyncEngine<M> {
        SyncEngine {
            files: Files::default(),
            table: Table::new(),
            queue: List::new(),
        }
    }

    fn run(&mut self, index: u32) -> Result<u64, Errno> {
        let slot = self.table.slot(index);
        let Some(memory) = &slot.memory else {
            return Err(Errno::IO);
        };
        if !slot.holds_file {
            return Err(Errno::BADF);
        }
        if slot.cancelled {
            return Err(Errno::CANCELED);
        }
        if let Some(result) = settled(&slot.op, memory) {
            return result;
        }
        let file = self.files.held(slot.op.file);
        loop {
            let step = slot.progress.step(&slot.op, memory, file);
            // SAFETY: the file is held until the operation ends, and the memory is owned by the
            // slot, so that nobody else reaches it (contract of `IoMemory`).
            let result = unsafe { calls::perform(file.fd(), &step, slot.progress.pieces()) };
            if let Some(end) = slot.progress.absorb(&slot.op, memory, file, result) {
                return end;
            }
        }
    }
}

impl<M: IoMemory + 'static> Default for SyncEngine<M> {
    fn default() -> Self {
        SyncEngine::new()
    }
}

impl<M: IoMemory + 'static> Engine<M> for SyncEngine<M> {
    fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno> {
        self.files.register(file)
    }

    fn unregister(&mut self, file: FileId) {
        self.files.unregister(file);
    }

    fn submit(&mut self, op: Op, memory: M) -> Ticket {
        let index = self.table.insert(op, memory);
        self.table.slot(index).holds_file = self.files.acquire(op.file);
        self.table.push(&mut self.queue, index);
        self.table.ticket(index)
    }

    fn flush_submissions(&mut self) {}

    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        while let Some(index) = self.table.pop(&mut self.queue) {
            let result = self.run(index);
            let slot = self.table.slot(index);
            if slot.holds_file {
                self.files.release(slot.op.file);
            }
            if let Some(memory) = self.table.remove(index) {
                done(Completion { memory, result });
            }
        }
    }

    fn cancel(&mut self, ticket: Ticket) {
        if let Some(index) = self.table.find(ticket) {
            self.table.slot(index).cancelled = true;
        }
    }

    fn in_flight(&self) -> usize {
        self.table.live()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn name(&self) -> &'static str {
        "sync"
    }
}
