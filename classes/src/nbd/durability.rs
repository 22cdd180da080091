//! Writes that a server has acknowledged over one connection and not made durable.
//!
//! A server that dies forgets such writes, and the one that takes its place answers a FLUSH well,
//! of which it knows nothing to flush. No message of the protocol tells two lives of a server
//! apart. So each connection counts as a life of its own: a write is durable when a FLUSH that was
//! sent after its acknowledgement, **over the same connection**, was answered well. Other writes
//! are lost when the connection breaks, or may be; and a FLUSH of the geom visits every connection
//! that has such writes ([`super::links`]), in any order.

use super::together::Together;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The error of FLUSHes after a broken connection.
pub(super) const BROKE: &str =
    "the connection broke before, and writes that no FLUSH had covered may be lost";

/// The account of one connection.
pub(super) struct Durability {
    /// Writes that were acknowledged over it.
    written: u64,
    /// Of these, how many a FLUSH over it has covered.
    covered: u64,
    /// Where they are, and some that were covered since there was none: one range, so that a
    /// million writes take no memory.
    unflushed_range: Range<u64>,
    /// Whether there are others; readable without the link.
    unflushed: Arc<AtomicBool>,
    /// Where losses are noted, for all links of the geom.
    together: Arc<Together>,
}

impl Durability {
    pub fn new(together: &Arc<Together>) -> Self {
        Self {
            written: 0,
            covered: 0,
            unflushed_range: 0..0,
            unflushed: Arc::default(),
            together: Arc::clone(together),
        }
    }

    /// True while there are acknowledged writes that no FLUSH has covered.
    pub fn unflushed(&self) -> &Arc<AtomicBool> {
        &self.unflushed
    }

    pub fn is_unflushed(&self) -> bool {
        self.written > self.covered
    }

    fn tell(&mut self) {
        let unflushed = self.is_unflushed();
        if !unflushed {
            self.unflushed_range = 0..0;
        }
        if self.unflushed.swap(unflushed, Ordering::SeqCst) != unflushed {
            self.together.set_unflushed(unflushed);
        }
    }

    /// The server has acknowledged a write that it need not have made durable, and that was sent
    /// when so many FLUSHes had failed.
    pub fn wrote(&mut self, range: Range<u64>, failures: u64) {
        self.together.failures().wrote(range.clone(), failures);
        self.written += 1;
        let all = &mut self.unflushed_range;
        *all = if all.is_empty() {
            range
        } else {
            all.start.min(range.start)..all.end.max(range.end)
        };
        self.tell();
    }

    /// How many writes a FLUSH covers that is sent now.
    pub fn covers(&self) -> u64 {
        self.written
    }

    /// A FLUSH that covers so many writes has been answered well.
    pub fn flushed(&mut self, covered: u64) {
        self.covered = self.covered.max(covered);
        self.tell();
    }

    /// The connection is gone; the next one begins a new account.
    pub fn broke(&mut self) {
        if self.is_unflushed() {
            // Before others can find nothing to be flushed here.
            let range = self.unflushed_range.clone();
            self.together.losses().record_range(range, BROKE);
        }
        (self.written, self.covered) = (0, 0);
        self.tell();
    }
}
