//! One trait for ways to run block I/O, and the engines behind it: sync, io_uring.
//!
//! An engine takes an operation together with the memory that it reads into or writes from, owns
//! that memory while the operation is in flight, and hands it back exactly once. A caller thus
//! cannot free or touch memory that the kernel is still using, not even by dropping the engine.
//!
//! ```text
//!   register(file) -> FileId
//!   submit(op, memory) -> Ticket        queued, nothing blocks
//!   flush_submissions()                 handed to the kernel, as a batch
//!   reap(|completion| ...)              memory and result come back
//!   wait(timeout), or sleep on wait_fd  in between
//! ```
//!
//! The files: `op` is what callers and engines exchange; `open` chooses an engine; `files`, `table`
//! and `progress` are what all engines share: registered files, operations in flight without
//! allocation, and the way from an operation to system calls and back (splitting, short reads,
//! retries, fall-backs); `calls` are the system calls; `sync` and `uring` are the engines.

mod calls;
mod files;
mod op;
mod open;
mod progress;
mod sync;
mod table;
mod uring;

pub use op::{Completion, Engine, Errno, FileId, Kind, Op, Ticket};
pub use open::{Choice, EngineError, open_engine};
pub use sync::SyncEngine;
pub use uring::UringEngine;
