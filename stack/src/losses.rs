//! Writes that were acknowledged and then lost, and the users to which that is not yet reported.
//!
//! ```text
//!   handle A   handle B      each consumer has a mark: the last loss that it was told of
//!       \       /
//!        cache        <- raised to 7 before the consumer of the cache is told
//!          |
//!         nbd0        <- 7: the server died with writes that no FLUSH had covered
//! ```
//!
//! Each geom has the numbers of its last losses, from one sequence of the process, and the range of
//! each. A FLUSH fails at its sender if the geom below has lost something since the consumer's
//! mark, in the range that the consumer sees: the user of a partition does not hear of its
//! neighbour's loss. The geom above is told first and the mark moved afterwards, so of two
//! FLUSHes neither can overtake the news. It is Linux's `errseq_t` (`lib/errseq.c`), once for each
//! consumer of each layer.

use crate::bio::slot::Body;
use crate::bio::{Bio, Flags};
use crate::error::Errno;
use crate::snapshot::{EdgeInfo, Snapshot, code};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_machine::mutex::Mutex;

/// The number of the last loss in this process. One sequence for all, so that the numbers of
/// different geoms can be compared, also after layers have come and gone.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Losses that a geom keeps apart. With more, the two oldest become one that spans both.
const KEPT: usize = 16;

pub(crate) const EVERYWHERE: Range<u64> = 0..u64::MAX;

/// The lost part of a layer's acknowledged writes.
///
/// Ranges are those of the layer's providers; of a layer whose providers are ranges of the one
/// below ([`crate::Geom::position`]), they are those of the provider below.
#[derive(Default)]
pub struct Losses {
    /// The number of the last loss, 0 for none.
    last: AtomicU64,
    /// In the order of their numbers.
    kept: Mutex<Vec<Loss>>,
}

/// Writes that are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    number: u64,
    range: Range<u64>,
    why: &'static str,
    /// A listening consumer was told of it.
    heard: bool,
}

impl Losses {
    /// Acknowledged writes are lost, or may be, wherever they were: each consumer's next FLUSH
    /// fails with this reason. A geom calls it before it answers any FLUSH that does not cover
    /// them.
    pub fn record(&self, why: &'static str) {
        self.record_range(EVERYWHERE, why);
    }

    /// The same, of writes into this range. Consumers that see nothing of it do not hear of it.
    pub fn record_range(&self, range: Range<u64>, why: &'static str) {
        if range.is_empty() {
            return;
        }
        let mut kept = self.kept.lock();
        // Locked, so that a FLUSH that has seen this number has seen all before it.
        let number = LAST.fetch_add(1, Ordering::SeqCst) + 1;
        self.keep(&mut kept, number, range, why);
    }

    fn keep(&self, kept: &mut Vec<Loss>, number: u64, range: Range<u64>, why: &'static str) {
        let loss = Loss {
            number,
            range,
            why,
            heard: false,
        };
        let at = kept.partition_point(|other| other.number < number);
        kept.insert(at, loss);
        if kept.len() > KEPT {
            let oldest = kept.remove(0);
            kept[0].swallow(&oldest);
        }
        self.last.fetch_max(number, Ordering::SeqCst);
    }

    /// The layer below has lost this. A known loss, from another FLUSH that came back over the same
    /// consumer, is not reported again; another part of it is a separate loss.
    fn raise(&self, loss: &Loss, range: Range<u64>) {
        let mut kept = self.kept.lock();
        let known = |it: &Loss| it.number >= loss.number && it.spans(&range);
        if kept.iter().any(known) {
            return;
        }
        let taken = kept.iter().any(|it| it.number == loss.number);
        let number = match taken {
            true => LAST.fetch_add(1, Ordering::SeqCst) + 1,
            false => loss.number,
        };
        self.keep(&mut kept, number, range, loss.why);
    }

    /// The number of the last loss; 0 when there was none.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::SeqCst)
    }

    /// True when a loss has been reported to no consumer.
    pub fn is_unheard(&self) -> bool {
        self.unheard().is_some()
    }

    /// The reason of the latest loss that was reported to no consumer.
    pub(crate) fn unheard(&self) -> Option<&'static str> {
        let kept = self.kept.lock();
        let loss = kept.iter().rev().find(|loss| !loss.heard);
        loss.map(|loss| loss.why)
    }

    /// Those in `window` since `mark`, and the number up to which that is all.
    fn since(&self, mark: u64, window: &Range<u64>) -> (Vec<Loss>, u64) {
        let kept = self.kept.lock();
        let new = kept.iter().filter(|loss| loss.number > mark);
        let seen = new.filter_map(|loss| loss.within(window));
        (seen.collect(), self.last())
    }

    /// Marks these losses as reported to a consumer (`heard`), or as not reported.
    fn told(&self, told: &[Loss], heard: bool) {
        for loss in self.kept.lock().iter_mut() {
            if told.iter().any(|it| it.number == loss.number) {
                loss.heard = heard;
            }
        }
    }

    /// The mark of a new consumer, which gets the losses that were reported to no other.
    pub(crate) fn new_mark(&self) -> Arc<Mark> {
        let kept = self.kept.lock();
        let unheard = kept.iter().find(|loss| !loss.heard);
        let mark = unheard.map_or_else(|| self.last(), |loss| loss.number - 1);
        Arc::new(Mark(AtomicU64::new(mark)))
    }
}

impl Loss {
    fn spans(&self, range: &Range<u64>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }

    /// The part of it in `window`.
    fn within(&self, window: &Range<u64>) -> Option<Self> {
        let start = self.range.start.max(window.start);
        let range = start..self.range.end.min(window.end);
        (!range.is_empty()).then(|| Self {
            range,
            ..self.clone()
        })
    }

    /// Becomes one with a loss before it.
    fn swallow(&mut self, older: &Self) {
        let (start, end) = (older.range.start, older.range.end);
        self.range = self.range.start.min(start)..self.range.end.max(end);
        self.heard &= older.heard;
    }
}

/// The accepted and unwritten data of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsaved {
    /// Where the first of it was to be written, bytes.
    pub first_offset_bytes: u64,
    /// How much it is.
    pub bytes: u64,
}

/// The data that is lost with a stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum LostAtTheEnd {
    /// A layer could not write data that it had accepted.
    #[error(
        "{geom}: data is lost: {} bytes from offset {} on could not be written",
        unsaved.bytes,
        unsaved.first_offset_bytes
    )]
    Unwritten {
        geom: String,
        /// The data that it could not write.
        unsaved: Unsaved,
    },
    /// Acknowledged writes are lost, and no FLUSH has reported it.
    #[error("{geom}: data is lost: {why}")]
    Unheard { geom: String, why: &'static str },
    /// It was written to a file that ends with the process.
    #[error("{geom}: data is lost: {why}")]
    Removed { geom: String, why: &'static str },
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
    // There is nothing to flush, it is not allowed, or it was not tried.
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
        && !hot.geom.notes_each_loss()
    {
        info.losses.record(reason.text);
    }
    // Its sender hears of all that was lost since it was sent, also when another FLUSH of the
    // same consumer has been told meanwhile.
    let sent_here = depth == 0 && body.parent.is_none();
    let mark = if sent_here {
        body.lost_mark
    } else {
        info.mark.get()
    };
    if info.losses.last() <= mark {
        return;
    }
    tell(info, body, edge, mark, sent_here);
}

fn tell(info: &EdgeInfo, body: &mut Body, edge: u32, mark: u64, sent_here: bool) {
    let (lost, number) = info.losses.since(mark, &info.window);
    for loss in &lost {
        let (from, to) = (info.window.start, &loss.range);
        let range = match info.above_in_order {
            true => to.start - from..to.end - from,
            false => EVERYWHERE,
        };
        info.above.raise(loss, range);
    }
    // Of a sender that sees nothing of it the FLUSH does not fail: the way up tells.
    if let Some(last) = lost.last()
        && sent_here
        && body.error == 0
    {
        body.completed = 0;
        body.fail(code(Errno::IO), edge, last.why);
    }
    if sent_here && body.flags.contains(Flags::FOR_REQUEST) {
        return;
    }
    let nobody_hears = sent_here && body.flags.contains(Flags::UNHEARD);
    info.losses.told(&lost, !nobody_hears);
    info.mark.0.fetch_max(number, Ordering::SeqCst);
}
