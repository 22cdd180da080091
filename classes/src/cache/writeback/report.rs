//! Failed writes: kept for `show` and confxml, and reported once, as a warning, which the program
//! prints.

use crate::cache::lost::Lost;
use std::ops::Range;
use std::sync::Arc;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{Fact, IoError, Losses, Unsaved};

const UNKEPT: &str = "dirty data of the cache could not be kept";

/// The blocks that a pass could not write.
#[derive(Clone)]
pub(super) struct Failure {
    pub error: IoError,
    pub first_offset: u64,
    pub bytes: u64,
}

#[derive(Default)]
struct UnwrittenBlocks {
    /// Where the cache stands, as messages name it.
    name: String,
    /// The blocks that the last pass could not write.
    unwritten: Option<(u64, u64)>,
    lost: Lost,
}

#[derive(Default)]
pub(super) struct Report {
    state: Mutex<UnwrittenBlocks>,
    losses: Arc<Losses>,
}

impl Report {
    pub fn new(name: &str, losses: &Arc<Losses>) -> Self {
        let state = UnwrittenBlocks {
            name: name.to_owned(),
            ..UnwrittenBlocks::default()
        };
        Self {
            state: Mutex::new(state),
            losses: Arc::clone(losses),
        }
    }

    /// A pass has ended. The first failure of a row is said; what follows is the same again.
    pub fn pass(&self, failure: Option<&Failure>) {
        let mut state = self.state.lock();
        let before = state.unwritten.is_some();
        state.unwritten = failure.map(|failure| (failure.first_offset, failure.bytes));
        if let Some(Failure {
            error,
            first_offset,
            bytes,
        }) = failure
            && !before
        {
            let name = &state.name;
            log::warn!(
                "{name}: {bytes} bytes from offset {first_offset} on could not be written: \
                 {error}; they are kept, and tried again"
            );
        }
    }

    /// Bytes that will never be written.
    pub fn lost(&self, offset: u64, bytes: u64) {
        let mut lost = Lost::default();
        lost.add(offset, bytes);
        self.cut_off(lost, "the media ends before them");
    }

    /// The same, for several ranges behind the end of the media. The error goes to every consumer,
    /// since none of them sees that range any more.
    pub fn cut_off(&self, lost: Lost, because: &str) {
        self.say(0..u64::MAX, lost, because);
    }

    /// The same, for several places.
    pub fn lost_all(&self, lost: Lost, because: &str) {
        let from = lost.first_offset.unwrap_or(lost.end);
        self.say(from..lost.end, lost, because);
    }

    fn say(&self, seen_by: Range<u64>, lost: Lost, because: &str) {
        let Some(first) = lost.first_offset else { return };
        self.losses.record_range(seen_by, UNKEPT);
        let mut state = self.state.lock();
        state.lost.add(first, lost.bytes);
        let (name, bytes) = (&state.name, lost.bytes);
        log::warn!(
            "{name}: {bytes} bytes that were to be written from offset {first} on are lost: \
             {because}"
        );
    }

    /// Data already lost, with the data still to be written.
    pub fn unsaved(&self, mut left_over: Lost) -> Option<Unsaved> {
        let lost = self.state.lock().lost;
        if let Some(first) = lost.first_offset {
            left_over.add(first, lost.bytes);
        }
        let first_offset_bytes = left_over.first_offset?;
        let bytes = left_over.bytes;
        Some(Unsaved {
            first_offset_bytes,
            bytes,
        })
    }

    /// For `show` and confxml.
    pub fn facts(&self) -> Vec<Fact> {
        let state = self.state.lock();
        let (unwritten_at, unwritten) = state.unwritten.unwrap_or_default();
        let mut facts = vec![
            ("unwritten", unwritten.to_string()),
            ("lost", state.lost.bytes.to_string()),
        ];
        if state.unwritten.is_some() {
            facts.push(("unwritten_at", unwritten_at.to_string()));
        }
        if let Some(first) = state.lost.first_offset {
            facts.push(("lost_at", first.to_string()));
        }
        facts
    }
}
