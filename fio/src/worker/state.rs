//! `verify_state_save` and `verify_state_load`: the writes that ended last, and where a later job
//! stops to verify: at the first request of the last ones that had not ended.

use std::collections::{HashSet, VecDeque};

use ugeom_format::verify_state::{Completion, VerifyState};
use ugeom_load::door::{Door, Kind, Request};

use super::super::draws::Purpose;
use super::super::places::Place;
use super::{Task, Worker};
use ugeom_job::settings::{Job, READ, Verify, WRITE};

/// The states of a job: the one that it leaves, and the one that it was given.
pub(super) struct States {
    last: Option<LastWrites>,
    given: Option<Given>,
}

/// The writes that ended last.
struct LastWrites {
    depth: u64,
    /// The offsets of each file, the newest last: no more than `depth`.
    files: Vec<VecDeque<u64>>,
    /// Writes that have ended since `ramp_time`.
    ended: u64,
    /// Writes that were issued before the end of `ramp_time`.
    issued_before: u64,
}

/// The writes of an earlier job.
struct Given {
    depth: u64,
    writes: u64,
    ended: HashSet<Completion>,
}

impl States {
    pub(super) fn of(task: &Task<'_>) -> Self {
        let job = task.job;
        let verifies = job.verify != Verify::No;
        let saves = verifies && job.verifying.saves && job.rw.does[WRITE];
        let given = task.state.filter(|_| verifies);
        Self {
            last: saves.then(|| LastWrites {
                depth: job.iodepth.into(),
                files: vec![VecDeque::new(); task.regions.len()],
                ended: 0,
                issued_before: 0,
            }),
            given: given.map(|state| Given {
                depth: state.depth.into(),
                writes: state.writes,
                ended: state.completions.iter().copied().collect(),
            }),
        }
    }

    /// `ramp_time` is over after so many writes: as by fio, those before do not count.
    pub(super) fn begin_counting(&mut self, issued: u64) {
        if let Some(last) = &mut self.last {
            last.ended = 0;
            last.issued_before = issued;
        }
    }

    /// A write has ended.
    pub(super) fn wrote(&mut self, place: &Place) {
        if let Some(last) = &mut self.last {
            let offsets = &mut last.files[place.file as usize];
            if offsets.len() as u64 == last.depth {
                offsets.pop_front();
            }
            offsets.push_back(place.offset);
            last.ended += 1;
        }
    }
}

impl LastWrites {
    /// As fio lists them: the same number of each file, with zeros where a file has had less.
    fn completions(&self) -> Vec<Completion> {
        let count = self.ended.min(self.depth) as usize;
        let of_file = |(file, offsets): (usize, &VecDeque<u64>)| {
            let newest_first = offsets.iter().rev().copied();
            let file = file as u64;
            let completion = move |offset| Completion { file, offset };
            let padded = newest_first.chain(std::iter::repeat(0)).take(count);
            padded.map(completion).collect::<Vec<Completion>>()
        };
        self.files.iter().enumerate().flat_map(of_file).collect()
    }
}

impl Given {
    /// Whether a block is to be left out, after so many reads: it is among the last `depth` ones,
    /// or behind them, and its write had not ended.
    fn leaves_out(&self, place: Completion, reads: u64) -> bool {
        let begins = self.writes.saturating_sub(self.depth).max(self.depth);
        let is_last = self.writes <= self.depth || (begins..=self.writes).contains(&reads);
        is_last && !self.ended.contains(&place)
    }
}

impl<D: Door> Worker<'_, D> {
    /// The state for a later job. `reseeded`: it has read back its writes.
    pub(super) fn state(&self, reseeded: bool) -> Option<VerifyState> {
        let last = self.states.last.as_ref()?;
        let (job, seeds): (&Job, _) = (self.task.job, &self.task.seeds);
        let offsets = match reseeded && seeds.repeats() {
            true => seeds.draws(Purpose::Offsets),
            false => self.places.offsets().clone(),
        };
        Some(VerifyState {
            depth: job.iodepth,
            files: self.task.regions.len() as u32,
            writes: self.write_number - last.issued_before,
            index: self.task.number.into(),
            generator: offsets.state(job.rw.random),
            name: job.name.clone().into_bytes(),
            completions: last.completions(),
        })
    }

    /// Whether the check of a block ends the job: the state that was given has not seen its write
    /// end. Requests of mixed jobs check nothing.
    pub(super) fn is_unwritten(&self, request: &Request) -> bool {
        let Some(given) = &self.states.given else {
            return false;
        };
        let place = Completion {
            file: request.file.into(),
            offset: request.offset,
        };
        let reads = self.tally.sides[READ].requests;
        request.kind == Kind::Read && given.leaves_out(place, reads)
    }
}
