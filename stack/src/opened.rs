//! [`Opened`]: a provider held open.

use crate::access::Delta;
use crate::error::IoError;
use crate::losses::Mark;
use crate::stack::Shared;
use crate::topology::{ConsumerId, GeomView, ProviderId, ProviderView};
use std::sync::Arc;

/// The purpose of a handle, and the access to give back with it.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// A consumer has opened it so.
    Open(Delta),
    /// Classes taste through it; opened for reading.
    Tasting,
    /// It is a geom's own consumer, whose counts follow those above.
    Own,
}

/// A provider held open. Dropping it closes it; when it was the last writer, layers that keep
/// something from the media write it, and the classes taste the provider again, before the drop
/// returns. [`Opened::close`] does the same and reports lost writes.
pub struct Opened {
    pub(crate) shared: Arc<Shared>,
    consumer: ConsumerId,
    pub(crate) entry: u32,
    provider: ProviderId,
    held: Purpose,
    closed: bool,
    /// The consumer's mark in the losses below it.
    pub(crate) mark: Arc<Mark>,
}

impl Opened {
    pub(crate) fn new(
        shared: Arc<Shared>,
        (consumer, entry): (ConsumerId, u32),
        provider: ProviderId,
        held: Purpose,
        mark: Arc<Mark>,
    ) -> Self {
        Self {
            shared,
            consumer,
            entry,
            provider,
            held,
            closed: false,
            mark,
        }
    }

    /// True when it is a handle of that stack.
    #[inline(always)]
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// The id of its provider.
    pub fn provider(&self) -> ProviderId {
        self.provider
    }

    /// The consumer that stands for this handle.
    pub fn consumer(&self) -> ConsumerId {
        self.consumer
    }

    /// The provider as it is now; `None` when it is gone.
    pub fn view(&self) -> Option<ProviderView> {
        self.shared
            .topology
            .with(|topology| topology.provider_view(self.provider))
    }

    /// The geom that it belongs to.
    pub(crate) fn geom(&self) -> GeomView {
        self.shared
            .topology
            .with(|topology| topology.geom_of(self.provider))
    }

    /// Ends the access, and reports errors that a drop would not.
    ///
    /// # Errors
    /// What a layer has accepted before and could not write now; the first such error. It is
    /// closed all the same.
    pub fn close(mut self) -> Result<(), IoError> {
        self.closed = true;
        self.shared.give_up(self.consumer, self.held)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.closed {
            // The layer that lost something has said so; a drop cannot.
            let _ = self.shared.give_up(self.consumer, self.held);
        }
    }
}
