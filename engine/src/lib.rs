//! One trait for ways to run block I/O, and the engines behind it: io_uring, guasi, libaio,
//! sync, seek, mmap, simulated.
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
//! The files: `op` is what callers and engines exchange; `open` chooses an engine; `files`,
//! `table`, `priorities`, `progress` and `queue` are what all engines share: registered files,
//! operations in flight without allocation, the way from an operation to system calls and back
//! (splitting, short reads, retries, fall-backs), and the way from the backlog to the caller;
//! `calls` are the system calls; `inline` is what engines without a queue of their own have in
//! common; `uring`, `guasi`, `libaio`, `sync`, `mmap` and `simulated` are the engines. [`reactor`]
//! is what a thread sleeps on that has engines, sockets, timers and mailboxes to wait for;
//! [`requests`] is how a driver of the kernel asks a program.

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod calls;
mod choice;
mod completions;
mod files;
mod guasi;
mod inline;
mod libaio;
mod mmap;
mod op;
mod open;
mod ordered;
mod priorities;
mod progress;
mod queue;
pub mod reactor;
pub mod requests;
mod simulated;
mod splice;
mod sync;
mod table;
mod uring;

pub use choice::{Choice, EngineError};
pub use guasi::{GuasiEngine, GuasiOptions, Workers};
pub use inline::InlineEngine;
pub use libaio::LibaioEngine;
pub use mmap::{AccessOrder, MmapEngine};
pub use op::{Completion, Engine, Errno, FileId, Op, OpKind, Ticket};
pub use open::{EngineOptions, Opened, open_engine, open_engine_with};
pub use ordered::{Checks, Layout, OrderedFile, Rank};
pub use simulated::{Crash, Faults, SECTOR_BYTES, SimulatedEngine, Simulation};
pub use splice::SpliceEngine;
pub use sync::{SeekEngine, SyncEngine};
pub use ugeom_guasi::Backend;
pub use uring::UringEngine;
