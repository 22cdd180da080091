//! GUASI: any call, made asynchronous.
//!
//! A *context* takes requests (a function of C with up to sixteen parameters, a system call, a
//! closure), runs each in one of its workers, and hands them back when they have ended: by
//! priority, then in the order of their ends. A request can be asked about, and cancelled: one that
//! waits never runs, one that runs is interrupted.
//!
//! ```
//! use ugeom_guasi::{Outcome, Settings};
//!
//! let context = Settings::new().workers(0, 2).open()?;
//! context.submit(0, 7, || Outcome::done(6 * 7))?;
//! let fetched = context.collect(1, 10, None, |request| {
//!     assert_eq!((request.tag, request.result), (7, 42));
//! });
//! assert_eq!(fetched, 1);
//! # Ok::<(), ugeom_guasi::GuasiError>(())
//! ```
//!
//! ```text
//!  submit              queue of the priority     worker           stack of the priority   fetch
//!    | slot of the slab      |                    |                       |               |
//!    |----- exchange ------->|<---- exchange -----| PENDING -> ACTIVE     |               |
//!    |  wakes one worker     |                    | run                   |               |
//!    |  if no fetcher polls  |                    | ACTIVE -> COMPLETE    |               |
//!    |                       |                    |------ exchange ------>|<- takes all --|
//! ```
//!
//! No memory is allocated for a request, and no lock is taken but one a batch. The files: `context`
//! is the interface, `settings` makes one, `work` and `calls` are what can be run; `slab` holds the
//! requests, `state` is the life of one, `queue` what waits, `done` what has ended, `roster` the
//! sleeping workers and their wake-up; `shared` puts them together and is the worker; `interrupt`
//! ends calls early; `ring` runs system calls without workers, `inline` cached reads at once;
//! `event` is the descriptor for epoll; `thread` is how a worker begins and ends, `stack` what it
//! stands on, and `fork` what becomes of a context in a child. docs/guasi.md says what is promised
//! and what it costs.

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

#[cfg(not(all(loom, test)))]
mod calls;
#[cfg(not(all(loom, test)))]
mod context;
mod done;
#[cfg(not(all(loom, test)))]
mod event;
#[cfg(not(all(loom, test)))]
mod fork;
#[cfg(not(all(loom, test)))]
mod inline;
#[cfg(not(all(loom, test)))]
mod interrupt;
#[cfg(not(all(loom, test)))]
mod pages;
mod parker;
mod queue;
#[cfg(not(all(loom, test)))]
mod ring;
mod roster;
#[cfg(not(all(loom, test)))]
mod settings;
#[cfg(not(all(loom, test)))]
mod shared;
#[cfg(not(all(loom, test)))]
mod slab;
#[cfg(not(all(loom, test)))]
mod stack;
mod state;
mod sync;
#[cfg(not(all(loom, test)))]
mod thread;
#[cfg(not(all(loom, test)))]
mod watch;
#[cfg(not(all(loom, test)))]
mod work;

#[cfg(all(test, loom))]
mod guasi_loom;
#[cfg(all(test, not(loom), not(miri)))]
mod interrupt_tests;

#[cfg(not(all(loom, test)))]
pub use calls::{IoCall, Statx, VectorsAt, ready};
#[cfg(not(all(loom, test)))]
pub use context::{Cancel, Context, GuasiError, Info, RequestId, Status};
#[cfg(not(all(loom, test)))]
pub use settings::{Backend, IDLE, PRIORITIES_MAX, REQUESTS_MAX, RING_DEPTH, SPIN, Settings};
#[cfg(not(all(loom, test)))]
pub use work::{CCall, CCleanup, CFunction, Io, Outcome, PARAMS_MAX, Work};
