//! The targets of requests: an engine with files, a stack, calls of the system or of this program,
//! or nothing at all.
//!
//! ```text
//!   Direct   does a request within a call              StackCalls, Calls, and every door below but
//!   Door     takes requests and gives them back,       EngineDoor
//!            one slot each                             EngineDoor, StackDoor, NullDoor
//! ```
//!
//! A door owns one buffer for each slot. A slot is idle or in flight; only the buffer of an idle
//! slot can be touched.

mod calls;
mod engine;
mod null;
mod stack;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ugeom_engine::Errno;
use ugeom_machine::cpu::Usage;
use ugeom_stack::IoError;

pub use calls::{Calls, file_calls};
pub use engine::{EngineDoor, Memory};
pub use null::NullDoor;
pub use stack::{StackCalls, StackDoor};
pub use ugeom_format::trace::Kind;

/// One request of a load: kind, place and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Reads, writes, discards or syncs.
    pub kind: Kind,
    /// The number of the door's file.
    pub file: u32,
    /// Where, bytes from the beginning of the file.
    pub offset: u64,
    /// How much, bytes; at most the length of the buffer.
    pub length: u32,
}

impl Request {
    /// Whether it makes writes durable.
    #[inline(always)]
    pub fn is_sync(&self) -> bool {
        matches!(self.kind, Kind::DataSync | Kind::Sync)
    }

    /// A request of a door with one file.
    #[inline(always)]
    pub fn of(kind: Kind, offset: u64, length: u32) -> Self {
        Self {
            kind,
            file: 0,
            offset,
            length,
        }
    }

    /// A read of a door with one file.
    #[inline(always)]
    pub fn read(offset: u64, length: u32) -> Self {
        Self::of(Kind::Read, offset, length)
    }

    /// A write of a door with one file.
    #[inline(always)]
    pub fn write(offset: u64, length: u32) -> Self {
        Self::of(Kind::Write, offset, length)
    }
}

/// A request has ended.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The slot it was made with.
    pub slot: u32,
    /// The bytes done, or the error.
    pub result: Result<u64, Errno>,
}

/// The door's explanation of a failure besides its number.
pub trait Explain {
    /// The layer, place and reason of the last failed request; none where no layers do requests.
    fn explain(&mut self) -> Option<IoError> {
        None
    }
}

/// A door that does a request within a call, for loops that make one at a time.
pub trait Direct: Explain {
    /// Does a request with the first slot; the bytes done.
    ///
    /// # Errors
    /// That of the request; [`Explain::explain`] may know more.
    fn call(&mut self, request: &Request) -> Result<u64, Errno>;
}

/// Something that takes requests.
pub trait Door: Explain {
    /// The memory of an idle slot.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// Begins a request with an idle slot; it may be queued until [`Door::flush`].
    fn submit(&mut self, slot: u32, request: &Request);

    /// The I/O priority of requests that begin from now on, as ioprio_set(2) has it; 0 is that of
    /// the thread. Doors without priorities ignore it.
    fn set_priority(&mut self, priority: u16) {
        let _ = priority;
    }

    /// Hands over queued requests.
    fn flush(&mut self);

    /// Adds the requests that have ended to `events`; their slots are idle again.
    fn reap(&mut self, events: &mut Vec<Event>);

    /// Other files instead of those that the door has, while nothing is in flight. Doors without
    /// files ignore it.
    ///
    /// # Errors
    /// The reason why a file cannot be used.
    fn renew(&mut self, files: Vec<Arc<File>>) -> Result<(), Errno> {
        let _ = files;
        Ok(())
    }

    /// Sleeps until something may have ended, or until the time is over.
    ///
    /// # Errors
    /// When the system cannot be asked any more.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// The usage of the door's own threads so far; exactly when everything has `ended`.
    fn helpers_usage(&mut self, ended: bool) -> Usage {
        let _ = ended;
        Usage::default()
    }
}
