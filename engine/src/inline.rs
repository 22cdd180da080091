//! Engines without a queue of their own: each operation is made, from its first step to its last,
//! by the thread that reaps it. They differ in how a step is made ([`InlineCalls`]).

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use ugeom_machine::buffer::{IoMemory, Segment};

use crate::op::{Completion, Engine, Errno, FileId, Op, Ticket};
use crate::progress::Step;
use crate::queue::Queue;

/// How steps are made.
pub trait InlineCalls: Default + Send + 'static {
    /// The state of the way for each file.
    type State: Send;

    /// The engine's name, as the user writes it.
    const NAME: &'static str;

    /// Prepares for a file that has just been made known.
    ///
    /// # Errors
    /// When the file cannot be used this way; it is then not made known.
    fn prepare(&self, file: &Arc<File>) -> Result<Self::State, Errno>;

    /// Makes one step, and returns the number of bytes.
    ///
    /// # Safety
    /// `file` is open. For reads and writes, `pieces` are those of the step, alive, and accessed
    /// by no other code.
    unsafe fn perform(
        state: &mut Self::State,
        file: BorrowedFd<'_>,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno>;
}

/// Runs operations one after another, in the order in which they were submitted.
pub struct InlineEngine<M, W: InlineCalls> {
    calls: W,
    queue: Queue<M>,
    /// By the index of the file.
    states: Vec<Option<W::State>>,
}

impl<M: IoMemory + 'static, W: InlineCalls> InlineEngine<M, W> {
    /// An engine with nothing in flight.
    pub fn new() -> InlineEngine<M, W> {
        Self::of(W::default())
    }

    /// An engine with nothing in flight that makes its steps by these calls.
    pub(crate) fn of(calls: W) -> InlineEngine<M, W> {
        InlineEngine {
            calls,
            queue: Queue::new(1),
            states: Vec::new(),
        }
    }

    fn run(&mut self, index: u32) {
        let file = self.queue.table.slot(index).op.file;
        while let Some(prepared) = self.queue.prepare(index) {
            let state = self.states.get_mut(file.index as usize);
            let result = match state.and_then(Option::as_mut) {
                // SAFETY: the file is held until the operation ends, and the memory is owned by
                // its slot, so that no other code reaches it (contract of `IoMemory`).
                Some(state) => unsafe {
                    let fd = BorrowedFd::borrow_raw(prepared.fd);
                    W::perform(state, fd, &prepared.step, prepared.pieces)
                },
                None => Err(Errno::BADF),
            };
            if self.queue.absorb_inline(index, result) {
                return;
            }
        }
    }
}

impl<M: IoMemory + 'static, W: InlineCalls> Default for InlineEngine<M, W> {
    fn default() -> Self {
        InlineEngine::new()
    }
}

impl<M: IoMemory + 'static, W: InlineCalls> Engine<M> for InlineEngine<M, W> {
    fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno> {
        let state = self.calls.prepare(&file)?;
        let id = self.queue.files.register(file)?;
        let index = id.index as usize;
        if self.states.len() <= index {
            self.states.resize_with(index + 1, || None);
        }
        self.states[index] = Some(state);
        Ok(id)
    }

    fn unregister(&mut self, file: FileId) {
        if self.queue.files.unregister(file).is_some() {
            self.states[file.index as usize] = None;
        }
    }

    fn submit(&mut self, op: Op, memory: M) -> Ticket {
        self.queue.submit(op, memory)
    }

    fn flush_submissions(&mut self) {}

    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        while let Some(index) = self.queue.next() {
            self.run(index);
        }
        let states = &mut self.states;
        self.queue
            .deliver(done, |_, index| states[index as usize] = None);
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.queue.cancel(ticket);
    }

    fn in_flight(&self) -> usize {
        self.queue.table.live()
    }

    fn name(&self) -> &'static str {
        W::NAME
    }
}
