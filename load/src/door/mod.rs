//! What a worker sends its requests to: an engine with files, a stack, or nothing at all.
//!
//! A door owns one buffer for each slot. A slot is idle or in flight; only the buffer of an idle
//! slot can be touched.

mod engine;
mod null;
mod stack;

use std::io;
use std::time::Duration;

use ugeom_engine::Errno;
use ugeom_machine::cpu::Usage;

pub use engine::EngineDoor;
pub use null::NullDoor;
pub use stack::StackDoor;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fill the slot's buffer.
    Read,
    /// Write the slot's buffer.
    Write,
    /// Give the range back.
    Trim,
    /// Make what was written durable.
    Sync,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What to do.
    pub kind: Kind,
    /// Which of the door's files.
    pub file: u32,
    /// Where, bytes from the beginning of the file.
    pub offset: u64,
    /// How much, bytes; at most the length of the buffer.
    pub length: u32,
}

/// A request has ended.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The slot it was made with.
    pub slot: u32,
    /// The bytes done, or the error.
    pub result: Result<u64, Errno>,
}

/// A door that does a request within a call, for workers that make one at a time.
pub trait Direct: Door {
    /// Does a request with the first slot; the bytes done.
    ///
    /// # Errors
    /// That of the request; [`Door::explain`] may know more.
    fn call(&mut self, request: &Request) -> Result<u64, Errno>;
}

/// Something that takes requests.
pub trait Door {
    /// The memory of an idle slot.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// Begins a request with an idle slot; it may be queued until [`Door::flush`].
    fn submit(&mut self, slot: u32, request: &Request);

    /// The I/O priority of requests that begin from now on, as ioprio_set(2) has it; 0 is that of
    /// the thread. Doors without priorities ignore it.
    fn set_priority(&mut self, priority: u16) {
        let _ = priority;
    }

    /// Hands over what is queued.
    fn flush(&mut self);

    /// Adds the requests that have ended to `events`; their slots are idle again.
    fn reap(&mut self, events: &mut Vec<Event>);

    /// Sleeps until something may have ended, or until the time is over.
    ///
    /// # Errors
    /// When the system cannot be asked any more.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// What threads of the door's own have used so far; exactly when everything has `ended`.
    fn helpers_usage(&mut self, ended: bool) -> Usage {
        let _ = ended;
        Usage::default()
    }

    /// The whole story of the last failed request, if the door knows more than its number.
    fn explain(&mut self) -> Option<String> {
        None
    }
}
