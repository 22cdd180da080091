//! The interface of callers and engines: operations, completions, and the trait.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use ugeom_machine::buffer::{IoMemory, Pool};
use ugeom_machine::cpu::Usage;

pub use rustix::io::Errno;

/// An operation on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Fills the memory from the file.
    Read,
    /// Writes the memory to the file.
    Write {
        /// Completes only once the data would survive a loss of power (RWF_DSYNC, pwritev2(2);
        /// FUA where the disk has it).
        durable: bool,
    },
    /// Makes all writes that completed before durable (fdatasync(2)). Offset and length do not
    /// matter.
    Flush,
    /// As `Flush`, with everything that is known of the file, its times among it (fsync(2)).
    Sync,
    /// Gives the range back: a hole in a file (fallocate(2), FALLOC_FL_PUNCH_HOLE; it then reads
    /// as zero), BLKDISCARD on a block device (what it then reads as is up to the disk).
    Discard,
    /// Makes the range, which lies within the file, read as zero: by a hole
    /// (FALLOC_FL_PUNCH_HOLE), else by FALLOC_FL_ZERO_RANGE (on a block device what BLKZEROOUT
    /// does), else by writing zeroes.
    Zero {
        /// Without the hole: the range stays allocated, or becomes so.
        allocated: bool,
    },
}

/// A file known to an engine. Unique within the process: the id of another engine, or of a file
/// that was unregistered, is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(crate) index: u32,
    pub(crate) serial: u32,
}

/// One operation on a registered file; its memory is passed beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Read, write, flush or another kind of operation.
    pub kind: OpKind,
    /// A registered file of the same engine.
    pub file: FileId,
    /// Where the range starts, in bytes.
    pub offset: u64,
    /// How long it is, in bytes; for reads and writes at most the length of the memory.
    pub length: u64,
}

/// Names an operation in flight, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(crate) index: u32,
    pub(crate) serial: u32,
}

/// The end of an operation.
#[derive(Debug)]
pub struct Completion<M> {
    /// The memory that was submitted.
    pub memory: M,
    /// The number of bytes read, written, discarded or zeroed (0 for a flush): less than asked for
    /// only where a read met the end of the file. An operation that failed half-way fails as a
    /// whole, with the system's reason; which part of it took effect is not known.
    pub result: Result<u64, Errno>,
}

/// A way to run block I/O on memory of type `M`.
///
/// `M` is `'static`, as an engine that is forgotten (`std::mem::forget`) keeps it for ever. To find
/// out which request a completion belongs to, let the memory carry it: a pair of an
/// [`IoMemory`] and anything else is one, too.
///
/// An engine belongs to one thread at a time. It may move while nothing is in flight.
///
/// **The loop.** Submit, then reap; when a reap hands back nothing, sleep, then reap again. To
/// sleep, either call [`wait`](Engine::wait), or wait on [`wait_fd`](Engine::wait_fd) together with
/// other descriptors. Sleep on the descriptor only after a reap that followed the last `submit` and
/// `cancel` (which may have produced completions without the kernel's help).
///
/// Dropping an engine cancels or awaits operations in flight, then drops that memory.
pub trait Engine<M: IoMemory + 'static>: Send {
    /// Makes a file known. The engine keeps it open until [`unregister`](Engine::unregister) and
    /// the end of the last operation on it.
    ///
    /// # Errors
    /// The error of fstat(2).
    fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno>;

    /// Tells the engine of memory that many operations are going to use in one piece each, which
    /// it keeps alive from here on. Returns whether it makes use of that: `io_uring` then has its
    /// pages looked up once and not for each operation. Operations on the pool's buffers work
    /// either way.
    fn register_memory(&mut self, pool: &Arc<Pool>) -> bool {
        let _ = pool;
        false
    }

    /// Takes a file away. Operations in flight on it go on; the id is void at once, and an id that
    /// is void already does no harm.
    fn unregister(&mut self, file: FileId);

    /// Starts an operation; it may be queued. Never refuses: what is wrong with the operation
    /// (EBADF for a void file, EINVAL for memory shorter than `length` or a range beyond 2^63)
    /// comes back as its completion.
    fn submit(&mut self, op: Op, memory: M) -> Ticket;

    /// The I/O priority of the reads and writes that are submitted from now on, as ioprio_set(2)
    /// has it: the class in the upper three bits; 0 is that of the thread. Engines whose system
    /// calls have none ignore it.
    fn set_priority(&mut self, priority: u16) {
        let _ = priority;
    }

    /// Hands submitted operations to the kernel. `reap` and `wait` do so, too.
    fn flush_submissions(&mut self);

    /// Hands every operation that has ended to `done`, in any order.
    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>));

    /// Asks for an early end: the operation completes with ECANCELED if it could be stopped, else
    /// as if nothing had been asked. In both cases it completes once, through `reap`. A ticket
    /// whose operation has ended does no harm.
    fn cancel(&mut self, ticket: Ticket);

    /// Number of operations submitted and not yet handed back.
    fn in_flight(&self) -> usize;

    /// A descriptor that is readable while completions wait to be reaped; the same for the whole
    /// life of the engine. `None`: operations run inside `reap` itself, so that there is nothing
    /// to sleep for while any is in flight.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Sleeps until at least one completion waits to be reaped, or until `timeout`. Returns at once
    /// when nothing is in flight, and may return early, as when a Unix signal arrives.
    ///
    /// # Errors
    /// When the system cannot be asked any more: operations may then stay in flight for ever.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let _ = timeout;
        Ok(())
    }

    /// The usage of the engine's threads so far. With `ended` nothing is in flight and nothing will
    /// be submitted any more: the engine ends them, which makes it exact. Without, times of threads
    /// that live may be short by 10 ms each. Threads of the kernel count nowhere.
    fn helpers_usage(&mut self, ended: bool) -> Usage {
        let _ = ended;
        Usage::default()
    }

    /// The engine's name, as the user writes it.
    fn name(&self) -> &'static str;
}
