//! [`Lower`]: a geom's own way to the providers below it.
//!
//! Requests that pass a geom go where it forwards them, in the thread that brought them. A geom
//! that has I/O to do without a request (a cache that writes later what it was given before) has a
//! thread and a channel of its own, and submits to its own consumers. They are open as long as
//! a consumer above has opened them: what it may, the geom may. [`crate::Geom::settle`] is called
//! before that ends.

use crate::channel::Channel;
use crate::error::{Errno, StackError};
use crate::opened::{Opened, Purpose};
use crate::stack::Shared;
use crate::topology::{ConsumerId, ProviderId};
use std::sync::{Arc, Weak};

/// One consumer of the geom's: its entry in snapshots, and the provider that it is attached to.
#[derive(Clone, Copy)]
pub(crate) struct OwnEntry {
    pub consumer: ConsumerId,
    pub entry: u32,
    pub provider: ProviderId,
}

/// A geom's own way down. It does not keep the stack alive; channels and handles that it gives out
/// do, so a geom lets go of them when it is told to settle.
#[derive(Clone)]
pub struct Lower {
    shared: Weak<Shared>,
    consumers: Vec<OwnEntry>,
}

impl Lower {
    pub(crate) fn new(shared: Weak<Shared>, consumers: Vec<OwnEntry>) -> Self {
        Self { shared, consumers }
    }

    fn shared(&self) -> Result<Arc<Shared>, StackError> {
        let gone = || StackError::System {
            what: "the stack is destroyed",
            error: Errno::NXIO,
        };
        self.shared.upgrade().ok_or_else(gone)
    }

    /// A channel for the calling thread, for up to `depth` bios at a time.
    ///
    /// # Errors
    /// `System` when the stack is gone, or a mailbox cannot be made.
    pub fn channel(&self, depth: usize) -> Result<Channel, StackError> {
        Channel::new(&self.shared()?, depth, false)
    }

    /// The consumer of the geom at that position of its plan, to submit to. Dropping it closes
    /// nothing.
    ///
    /// # Errors
    /// `System` when the stack is gone, `Invalid` when there is no such consumer.
    pub fn consumer(&self, position: usize) -> Result<Opened, StackError> {
        let own = self.consumers.get(position).copied();
        let own = own.ok_or_else(|| StackError::Invalid("no such consumer".into()))?;
        let (consumer, entry) = (own.consumer, own.entry);
        let shared = self.shared()?;
        let mark = shared.topology.with(|topology| topology.mark_of(consumer));
        Ok(Opened::new(
            shared,
            (consumer, entry),
            own.provider,
            Purpose::Own,
            mark,
        ))
    }
}
