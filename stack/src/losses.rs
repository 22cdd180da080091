//! Writes that were acknowledged and then lost: who has heard of it, and who has not.
//!
//! ```text
//!   handle A   handle B      each consumer has a mark: the last loss that it was told of
//!       \       /
//!        cache        <- raised to 7 before the consumer of the cache is told
//!          |
//!         nbd0        <- 7: the server died with writes that no FLUSH had covered
//! ```
//!
//! Each geom has the number of its last loss, from one sequence of the process. A FLUSH that comes
//! back over a consumer fails if the geom below has lost something since the consumer's mark. The
//! geom above is told first and the mark moved afterwards, so of two FLUSHes neither can overtake
//! the news. It is Linux's `errseq_t` (`lib/errseq.c`), once for each consumer of each layer.

use crate::bio::slot::Body;
use crate::bio::{Bio, Flags};
use crate::error::Errno;
use crate::snapshot::{EdgeInfo, Snapshot, code};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of the last loss in this process. One sequence for all, so that the numbers of
/// different geoms can be compared, also after layers have come and gone.
static LAST: AtomicU64 = AtomicU64::new(0);

/// What a layer has lost of the writes that it had acknowledged.
#[derive(Default)]
pub struct Losses {
    /// The number of the last loss, 0 for none.
    last: AtomicU64,
    /// The last loss that a listening consumer was told of.
    heard: AtomicU64,
    why: Mutex<&'static str>,
}

impl Losses {
    pub(crate) fn why(&self) -> MutexGuard<'_, &'static str> {
        // Nothing panics while it is locked.
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acknowledged writes are lost, or may be: each consumer's next FLUSH fails with this reason.
    /// A geom calls it before it answers any FLUSH that does not cover them.
    pub fn record(&self, why: &'static str) {
        let number = LAST.fetch_add(1, Ordering::SeqCst) + 1;
        self.raise(number, why);
    }

    fn raise(&self, number: u64, why: &'static str) {
        *self.why() = why;
        self.last.fetch_max(number, Ordering::SeqCst);
    }

    /// The number of the last loss; 0 when there was none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::SeqCst)
    }

    /// True when a loss has been reported to no consumer.
    #[must_use]
    pub fn is_unheard(&self) -> bool {
        self.last() > self.heard.load(Ordering::SeqCst)
    }

    /// The mark of a new consumer: of what nobody has heard yet, it hears.
    pub(crate) fn new_mark(&self) -> Arc<Mark> {
        Arc::new(Mark(AtomicU64::new(self.heard.load(Ordering::SeqCst))))
    }
}

/// What a layer has accepted and not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsaved {
    /// Where the first of it was to be written, bytes.
    pub first_offset_bytes: u64,
    /// How much it is.
    pub bytes: u64,
}

/// What a stack takes with it when it is given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LostAtTheEnd {
    /// A layer could not write what it had accepted.
    #[error(
        "{geom}: data is lost: {} bytes from offset {} on could not be written",
        unsaved.bytes,
        unsaved.first_offset_bytes
    )]
    Unwritten {
        /// The layer.
        geom: String,
        /// What it could not write.
        unsaved: Unsaved,
    },
    /// Acknowledged writes are lost, and no FLUSH has told anybody.
    #[error("{geom}: data is lost: {why}")]
    Unheard {
        /// The layer.
        geom: String,
        /// In its words.
        why: &'static str,
    },
}

/// The number of the last loss that a consumer was told of.
#[derive(Default)]
pub(crate) struct Mark(AtomicU64);

impl Mark {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Says whether a FLUSH error means that nothing is lost.
fn loses(errno: u16) -> bool {
    // There is nothing to flush, nobody may, or nobody has tried.
    let harmless = [Errno::OPNOTSUPP, Errno::PERM, Errno::CANCELED];
    !harmless.iter().any(|other| code(*other) == errno)
}

/// A FLUSH goes back over the hop at `depth`, with this result.
#[cold]
pub(crate) fn flushed(snapshot: &Snapshot, bio: &mut Bio, edge: u32, depth: usize) {
    let (Some(info), Some(hot)) = (
        snapshot.info.get(edge as usize),
        snapshot.edges.get(edge as usize),
    ) else {
        return;
    };
    let own = bio.body().reason.filter(|reason| reason.edge == edge);
    let body = bio.body_mut();
    if body.error != 0
        && let Some(reason) = own
        && loses(body.error)
        && !hot.geom.keeps_unflushed()
    {
        info.losses.record(reason.text);
    }
    let number = info.losses.last();
    // Whoever sent it hears of all that was lost since it was sent, also when another FLUSH of the
    // same consumer has been told meanwhile.
    let sent_here = depth == 0 && body.parent.is_none();
    let mark = if sent_here {
        body.lost_mark
    } else {
        info.mark.get()
    };
    if number <= mark {
        return;
    }
    tell(info, body, edge, number, sent_here);
}

fn tell(info: &EdgeInfo, body: &mut Body, edge: u32, number: u64, sent_here: bool) {
    let why = *info.losses.why();
    info.above.raise(number, why);
    if body.error == 0 {
        body.completed = 0;
        body.fail(code(Errno::IO), edge, why);
    }
    if sent_here && body.flags.contains(Flags::UNHEARD) {
        let before = number.saturating_sub(1);
        info.losses.heard.fetch_min(before, Ordering::SeqCst);
    } else {
        info.losses.heard.fetch_max(number, Ordering::SeqCst);
    }
    info.mark.0.fetch_max(number, Ordering::SeqCst);
}
