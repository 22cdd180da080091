//! FLUSHes that failed, and the writes in flight beside them.
//!
//! The kernel, or a server, reports writes that it lost once (`lib/errseq.c` of Linux). A write in
//! flight at that moment may have been done before it, and be lost without another report:
//!
//! ```text
//!   write  |-----------------|         acknowledged after the report
//!   FLUSH      |-----| failed          its sender knows that older writes are lost
//!   FLUSH                      |----|  fails, too: it should have covered the write
//! ```
//!
//! So a write keeps how many FLUSHes had failed when it was submitted. If that has changed when it
//! is acknowledged, it counts as lost.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_stack::Losses;

/// The failed FLUSHes of one disk, over all threads and connections.
pub(crate) struct Failures {
    count: AtomicU64,
    losses: Arc<Losses>,
    /// What the FLUSH after such a write fails with.
    why: &'static str,
}

impl Failures {
    pub fn new(losses: &Arc<Losses>, why: &'static str) -> Self {
        Self {
            count: AtomicU64::new(0),
            losses: Arc::clone(losses),
            why,
        }
    }

    /// Where losses are recorded.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// How many there have been.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// A FLUSH has failed, or may have. It is counted before any request beside it is completed.
    pub fn failed(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// A write that need not be durable is going to be acknowledged; `before` is the count when
    /// it was submitted.
    pub fn wrote(&self, range: Range<u64>, before: u64) {
        if self.count() != before {
            self.losses.record_range(range, self.why);
        }
    }
}
