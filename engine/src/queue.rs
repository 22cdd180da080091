//! The queue of engines that submit operations and get them back later: the operations in flight,
//! from the backlog to the kernel (or to threads, or to a simulation) and to the caller.
//!
//! ```text
//!   submit --> backlog --> outside --> absorb --> ready --> deliver
//!                 ^   (at most `depth`)   |
//!                 +--- short, put off ----+
//! ```

use std::mem;
use std::os::fd::RawFd;

use ugeom_machine::buffer::{IoMemory, Segment};

use crate::files::{Files, Registered};
use crate::op::{Completion, Errno, Op, Ticket};
use crate::progress::{Step, settled};
use crate::table::{List, OperationState, Table};

/// Methods of [`Engine`](crate::Engine) that are the same for engines with a `queue: Queue<M>`.
macro_rules! by_queue {
    // Files that only the queue knows.
    (files) => {
        fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno> {
            self.queue.files.register(file)
        }

        fn unregister(&mut self, file: FileId) {
            self.queue.files.unregister(file);
        }
    };
    // Operations that carry the priority that was set before them.
    (submit with priorities) => {
        fn submit(&mut self, op: Op, memory: M) -> Ticket {
            let ticket = self.queue.submit(op, memory);
            self.priorities.set(ticket.index, op.kind);
            self.refill();
            ticket
        }

        fn set_priority(&mut self, priority: u16) {
            self.priorities.next(priority);
        }
    };
    // `enter` hands operations on; `request_cancel` asks for one that the queue does not hold back.
    (flush and cancel) => {
        fn flush_submissions(&mut self) {
            self.enter();
        }

        fn cancel(&mut self, ticket: Ticket) {
            if let Some(index) = self.queue.cancel(ticket) {
                self.request_cancel(index);
            }
        }

        fn in_flight(&self) -> usize {
            self.queue.table.live()
        }
    };
}
pub(crate) use by_queue;

/// The operations of one engine.
pub(crate) struct Queue<M> {
    pub files: Files,
    pub table: Table<M>,
    /// To be handed on.
    backlog: List,
    /// To be given to the caller, in this order.
    ready: Vec<u32>,
    /// Operations handed on and not yet absorbed.
    outside: usize,
    depth: usize,
}

/// The next call of an operation, and its operands.
pub(crate) struct Prepared<'a> {
    pub step: Step,
    pub fd: RawFd,
    /// The file's index, where the kernel knows the file by that.
    pub in_kernel_table: Option<u32>,
    /// Alive and at the same place until the operation is absorbed or dropped.
    pub pieces: &'a [Segment],
    pub ticket: Ticket,
}

impl<M: IoMemory> Queue<M> {
    /// Nothing in flight; at most `depth` operations are handed on at a time.
    pub fn new(depth: u32) -> Queue<M> {
        Queue {
            files: Files::default(),
            table: Table::new(),
            backlog: List::new(),
            ready: Vec::new(),
            outside: 0,
            depth: depth as usize,
        }
    }

    /// Takes an operation in, behind all others. An impossible operation is ready at once.
    pub fn submit(&mut self, op: Op, memory: M) -> Ticket {
        let settled = settled(&op, &memory);
        let index = self.table.insert(op, memory);
        let ticket = self.table.ticket(index);
        if !self.files.acquire(op.file) {
            self.finish(index, Err(Errno::BADF));
            return ticket;
        }
        self.table.slot(index).holds_file = true;
        match settled {
            Some(result) => self.finish(index, result),
            None => self.put_off(index),
        }
        ticket
    }

    /// The operation to hand on next, if there is one and room outside. It is in no list then:
    /// `handed_on`, `finish` or `put_off` follows.
    pub fn next(&mut self) -> Option<u32> {
        if self.outside < self.depth {
            self.table.pop(&mut self.backlog)
        } else {
            None
        }
    }

    /// The next step of an operation.
    pub fn prepare(&mut self, index: u32) -> Option<Prepared<'_>> {
        let ticket = self.table.ticket(index);
        let slot = self.table.slot(index);
        let memory = slot.memory.as_ref()?;
        let file = self.files.held(slot.op.file);
        let step = slot.progress.step(&slot.op, memory, file);
        Some(Prepared {
            step,
            fd: file.fd(),
            in_kernel_table: file.in_kernel_table.then_some(slot.op.file.index),
            pieces: slot.progress.pieces(),
            ticket,
        })
    }

    /// The step of an operation that was handed on, and its pieces.
    pub fn asked(&mut self, index: u32) -> Option<(Step, &[Segment])> {
        let progress = &self.table.slot(index).progress;
        progress.asked().map(|step| (step, progress.pieces()))
    }

    /// Takes the result of a step that was made at once. `false`: there is another one to make.
    pub fn absorb_inline(&mut self, index: u32, result: Result<u64, Errno>) -> bool {
        let slot = self.table.slot(index);
        let Some(memory) = &slot.memory else { return true };
        let file = self.files.held(slot.op.file);
        match slot.progress.absorb(&slot.op, memory, file, result) {
            Some(end) => self.finish(index, end),
            None => return false,
        }
        true
    }

    /// The step of an operation has been handed on.
    pub fn handed_on(&mut self, index: u32) {
        self.table.slot(index).place = OperationState::Kernel;
        self.outside += 1;
    }

    /// Takes the result of a step that was handed on: the operation ends, or goes on with the next
    /// step, before operations that have not begun.
    pub fn absorb(&mut self, index: u32, result: Result<u64, Errno>) {
        self.outside -= 1;
        if self.absorb_inline(index, result) {
            return;
        }
        if self.table.slot(index).cancelled {
            return self.finish(index, Err(Errno::CANCELED));
        }
        self.table.slot(index).place = OperationState::Queued;
        self.table.push_front(&mut self.backlog, index);
    }

    /// Ends an operation that is in no list.
    pub fn finish(&mut self, index: u32, result: Result<u64, Errno>) {
        self.table.slot(index).place = OperationState::Ready(result);
        self.ready.push(index);
    }

    /// Appends an operation that is in no list to the backlog.
    pub fn put_off(&mut self, index: u32) {
        self.table.slot(index).place = OperationState::Queued;
        self.table.push(&mut self.backlog, index);
    }

    /// Hands completed operations to the caller. `forget` learns of files that are not in use any
    /// more.
    pub fn deliver(
        &mut self,
        done: &mut dyn FnMut(Completion<M>),
        mut forget: impl FnMut(&Registered, u32),
    ) {
        // Taken out, so that its room is kept while the table is worked on.
        let mut ready = mem::take(&mut self.ready);
        for index in ready.drain(..) {
            let slot = self.table.slot(index);
            let (place, op, holds_file) = (slot.place, slot.op, slot.holds_file);
            if holds_file && let Some(file) = self.files.release(op.file) {
                forget(&file, op.file.index);
            }
            let memory = self.table.remove(index);
            if let (Some(memory), OperationState::Ready(result)) = (memory, place) {
                done(Completion { memory, result });
            }
        }
        self.ready = ready;
    }

    /// Notes the wish for an early end; what was not handed on ends here. Returns the operation if
    /// it is outside and this is the first time.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<u32> {
        let index = self.table.find(ticket)?;
        let slot = self.table.slot(index);
        let again = mem::replace(&mut slot.cancelled, true);
        match slot.place {
            OperationState::Queued => {
                self.table.unlink(&mut self.backlog, index);
                self.finish(index, Err(Errno::CANCELED));
                None
            }
            OperationState::Kernel if !again => Some(index),
            _ => None,
        }
    }

    /// Ends everything that was not handed on, and asks for the end of the rest. Returns what is
    /// outside.
    pub fn abandon(&mut self) -> Vec<u32> {
        while let Some(index) = self.table.pop(&mut self.backlog) {
            self.finish(index, Err(Errno::CANCELED));
        }
        let outside: Vec<u32> = self.table.in_kernel().collect();
        for &index in &outside {
            self.table.slot(index).cancelled = true;
        }
        outside
    }

    /// Whether there is room outside for more.
    pub fn has_room(&self) -> bool {
        self.outside < self.depth
    }

    /// Number of operations handed on and not yet absorbed.
    pub fn outside(&self) -> usize {
        self.outside
    }

    /// Whether something has ended that was not delivered.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Leaves all memory in flight alone for ever: it may still be in use, and there is no way to
    /// tell for how long. It is better lost than used twice.
    pub fn leak(&mut self) {
        mem::forget(mem::replace(&mut self.table, Table::new()));
    }
}
