//! `trim_percentage`: some of the blocks that were written are trimmed again, as by fio: chosen by
//! lot, in the order of writing, `trim_backlog_batch` of them whenever the number of blocks that
//! wait to be read back is a multiple of `trim_backlog`.

use std::collections::{BTreeSet, VecDeque};

use ugeom_load::door::{Door, Kind, Request};

use super::super::places::Place;
use super::written::Written;
use super::{Task, Worker};
use crate::draws::{Draws, Purpose};
use ugeom_job::settings::{READ, Trimming};

/// The blocks that are to be trimmed.
pub(super) struct Trims {
    trimming: Trimming,
    draws: Draws,
    /// Those that are chosen, with the turn of their write.
    chosen: VecDeque<(Place, u64)>,
    /// How many more of this batch are trimmed.
    batch_left: u64,
    /// Where blocks that were trimmed began: file and offset, bytes (`trim_verify_zero`).
    zeroed: BTreeSet<(u32, u64)>,
}

impl Trims {
    /// Those of a task; `None` where fio trims nothing either: without `trim_backlog`.
    pub(super) fn of(task: &Task<'_>) -> Option<Self> {
        let trimming = task.job.trimming;
        (trimming.percent > 0 && trimming.backlog > 0).then(|| Self {
            trimming,
            draws: task.seeds.draws(Purpose::Trims),
            chosen: VecDeque::new(),
            batch_left: 0,
            zeroed: BTreeSet::new(),
        })
    }

    /// A block has been written: whether it will be trimmed is drawn.
    pub(super) fn wrote(&mut self, place: Place, turn: u64) {
        let limit = self.draws.max() / 100 * u64::from(self.trimming.percent);
        if self.draws.number() <= limit {
            self.chosen.push_back((place, turn));
        }
        self.zeroed.remove(&(place.file, place.offset));
    }

    /// The next block to trim, if it is time to; `read`: the last request was a read.
    fn due(&mut self, written: &mut Written, read: bool) -> Option<Place> {
        let holds = |(place, turn): &(Place, u64)| written.holds(place, *turn);
        while self.chosen.front().is_some_and(|first| !holds(first)) {
            self.chosen.pop_front();
        }
        let (place, _) = *self.chosen.front()?;
        let count = written.count() as u64;
        match self.batch_left.checked_sub(1) {
            Some(left) => self.batch_left = left,
            None if read || !count.is_multiple_of(self.trimming.backlog) => return None,
            None => {
                self.batch_left = match self.trimming.batch {
                    0 => self.trimming.backlog,
                    batch => batch,
                };
            }
        }
        self.chosen.pop_front();
        if self.trimming.verifies_zero {
            self.zeroed.insert((place.file, place.offset));
        } else {
            written.forget(place);
        }
        Some(place)
    }

    /// Whether a block was trimmed, and must be zero.
    pub(super) fn is_zeroed(&self, place: &Place) -> bool {
        self.zeroed.contains(&(place.file, place.offset))
    }
}

impl<D: Door> Worker<'_, D> {
    /// Trims a block if it is time to.
    pub(super) fn make_trim(&mut self, now: u64) -> bool {
        let read = self.task.job.rw.does[READ] && self.mix.last() == READ;
        let (Some(trims), Some(written)) = (&mut self.trims, &mut self.written) else {
            return false;
        };
        let Some(place) = trims.due(written, read) else {
            return false;
        };
        let Some(slot) = self.free.pop() else {
            return false;
        };
        let request = Request {
            kind: Kind::Trim,
            file: place.file,
            offset: place.offset,
            length: place.length,
        };
        self.make(slot, request, now, now);
        // As by fio, trims are a part of the amount, unless backlogs are read back.
        let counts = self.task.job.verifying.backlog == 0;
        self.limits
            .take(if counts { place.length.into() } else { 0 });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64) -> Place {
        Place {
            file: 0,
            offset,
            length: 4096,
        }
    }

    fn trims(batch: u64, verifies_zero: bool) -> Trims {
        Trims {
            trimming: Trimming {
                percent: 100,
                backlog: 4,
                batch,
                verifies_zero,
            },
            draws: Draws::short(1),
            chosen: VecDeque::new(),
            batch_left: 0,
            zeroed: BTreeSet::new(),
        }
    }

    /// The blocks that are trimmed after each of eight writes, the last of the place of the third.
    fn trimmed(trims: &mut Trims) -> Vec<Vec<u64>> {
        let mut written = Written::new(false);
        let offsets = [0, 1, 2, 3, 4, 5, 6, 2].map(|block| block * 4096);
        let mut all = Vec::new();
        for offset in offsets {
            let turn = written.add(place(offset), 0);
            trims.wrote(place(offset), turn);
            let mut now = Vec::new();
            while let Some(place) = trims.due(&mut written, false) {
                now.push(place.offset / 4096);
            }
            all.push(now);
        }
        all
    }

    #[test]
    fn a_batch_is_trimmed_when_the_backlog_is_full() {
        // Three of the first four leave one; blocks that were trimmed are no part of the backlog.
        let expected = [
            vec![],
            vec![],
            vec![],
            vec![0, 1, 2],
            vec![],
            vec![],
            vec![3, 4, 5],
            vec![],
        ];
        assert_eq!(trimmed(&mut trims(2, false)), expected);
        // Those that must be zero stay a part of it, so that the next batch follows at once.
        let mut zeroing = trims(1, true);
        assert_eq!(trimmed(&mut zeroing)[3], [0, 1, 2, 3]);
        assert!(zeroing.is_zeroed(&place(4096)) && !zeroing.is_zeroed(&place(8192)));
    }
}
