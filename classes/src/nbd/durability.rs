//! What the server has acknowledged and not made durable, for all links of a geom together.
//!
//! A server that dies forgets such writes. The one that takes its place answers a FLUSH well, of
//! which it knows nothing to flush; so when a connection breaks while there are such writes, each
//! link's next FLUSH fails. Whether the server has really died cannot be known.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of acknowledged writes and of losses.
#[derive(Default)]
pub(super) struct Durability {
    /// Writes that were acknowledged.
    written: AtomicU64,
    /// Of these, how many a FLUSH has covered.
    flushed: AtomicU64,
    losses: AtomicU64,
}

impl Durability {
    /// The server has acknowledged a write that it need not have made durable.
    pub fn wrote(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    /// How many writes a FLUSH covers that is sent now.
    pub fn covers(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// A FLUSH that covers so many writes has been answered well.
    pub fn flushed(&self, covered: u64) {
        self.flushed.fetch_max(covered, Ordering::SeqCst);
    }

    /// A connection is gone that was up.
    pub fn connection_lost(&self) {
        let written = self.written.load(Ordering::SeqCst);
        if self.flushed.fetch_max(written, Ordering::SeqCst) < written {
            self.losses.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How often writes may have been lost.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_that_no_flush_covers_can_be_lost() {
        let durability = Durability::default();
        durability.connection_lost();
        assert_eq!(durability.losses(), 0);
        durability.wrote();
        let covered = durability.covers();
        durability.wrote();
        durability.flushed(covered);
        durability.connection_lost();
        assert_eq!(durability.losses(), 1);
        // The other connections to the same server break, too: it is one loss.
        durability.connection_lost();
        assert_eq!(durability.losses(), 1);
        durability.wrote();
        durability.flushed(durability.covers());
        durability.connection_lost();
        assert_eq!(durability.losses(), 1);
    }
}
