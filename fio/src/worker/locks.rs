//! `lockfile`: requests of a job exclude those of other jobs to the same file, while they are in
//! flight. A job does not exclude itself.
//!
//! Jobs get a file in the order in which they asked. One that has requests in flight gets no more
//! as long as another waits, so a deep queue keeps no job out.

use ugeom_load::door::{Door, Kind, Request};

use std::collections::{BTreeMap, VecDeque};
use ugeom_machine::mutex::Mutex;

use super::super::places::Region;
use super::Worker;
use ugeom_job::settings::{FileLocking, Job};

/// How long a job waits before it asks for a file again, ns.
const NAP_NS: u64 = 20_000;

#[derive(Debug, Default)]
struct FileLock {
    /// The job that has it alone, and its requests in flight.
    alone: Option<(u32, u32)>,
    /// Jobs that share it, and their requests in flight.
    together: BTreeMap<u32, u32>,
    waiting: VecDeque<u32>,
}

impl FileLock {
    /// How a job gets the file for one more request: alone or not; `None` when it has to wait.
    fn take(&mut self, job: u32, alone: bool) -> Option<bool> {
        let has = self.alone.is_some_and(|(owner, _)| owner == job);
        let others_wait = self.waiting.iter().any(|waiting| *waiting != job);
        let first = self.waiting.front().is_none_or(|first| *first == job);
        let shares = self.together.contains_key(&job);
        let free = match alone {
            _ if has => !others_wait,
            true => self.alone.is_none() && self.together.is_empty() && first,
            false if shares => !others_wait,
            false => self.alone.is_none() && first,
        };
        if !free {
            if !self.waiting.contains(&job) {
                self.waiting.push_back(job);
            }
            return None;
        }
        self.waiting.retain(|waiting| *waiting != job);
        let alone = alone || has;
        match alone {
            true => self.alone = Some((job, self.alone.map_or(0, |(_, count)| count) + 1)),
            false => *self.together.entry(job).or_default() += 1,
        }
        Some(alone)
    }

    fn give(&mut self, job: u32, alone: bool) {
        if alone {
            self.alone = self
                .alone
                .and_then(|(owner, count)| (count > 1).then_some((owner, count - 1)));
        } else if let Some(count) = self.together.get_mut(&job) {
            *count -= 1;
            if *count == 0 {
                self.together.remove(&job);
            }
        }
    }

    /// The job has ended.
    fn leave(&mut self, job: u32) {
        self.waiting.retain(|waiting| *waiting != job);
        self.together.remove(&job);
        self.alone = self.alone.filter(|(owner, _)| *owner != job);
    }
}

/// The files of the jobs that lock them, by name.
#[derive(Debug, Default)]
pub struct FileLocks(BTreeMap<String, Mutex<FileLock>>);

impl FileLocks {
    /// Adds the files of a job, if it locks them.
    pub fn add(&mut self, job: &Job, regions: &[Region]) {
        if job.file_locking != FileLocking::No {
            let names = regions.iter().map(|region| region.name.clone());
            self.0.extend(names.map(|name| (name, Mutex::default())));
        }
    }

    /// The part of a job, by its number; `None` when it locks nothing.
    #[must_use]
    pub fn of<'a>(&'a self, job: &Job, number: u32, regions: &[Region]) -> Option<Held<'a>> {
        if job.file_locking == FileLocking::No {
            return None;
        }
        let file = |region: &Region| self.0.get(&region.name);
        Some(Held {
            files: regions.iter().map(file).collect(),
            number,
            readers_share: job.file_locking == FileLocking::ReadWrite,
            slots: BTreeMap::new(),
        })
    }
}

/// The locks of one job. Dropping it lets the others go on.
pub struct Held<'a> {
    files: Vec<Option<&'a Mutex<FileLock>>>,
    number: u32,
    readers_share: bool,
    /// Slots of requests in flight: their file, and whether it is locked for this job alone.
    slots: BTreeMap<u32, (u32, bool)>,
}

impl Held<'_> {
    /// Whether a request may begin in this slot.
    pub fn take(&mut self, slot: u32, request: &Request) -> bool {
        let file = self.files.get(request.file as usize).copied().flatten();
        let (Some(state), false) = (file, request.is_sync()) else {
            return true;
        };
        let alone = !(self.readers_share && request.kind == Kind::Read);
        let taken = state.lock().take(self.number, alone);
        if let Some(alone) = taken {
            self.slots.insert(slot, (request.file, alone));
        }
        taken.is_some()
    }

    /// The request in this slot has ended.
    pub fn give(&mut self, slot: u32) {
        if let Some((file, alone)) = self.slots.remove(&slot)
            && let Some(state) = self.files.get(file as usize).copied().flatten()
        {
            state.lock().give(self.number, alone);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for state in self.files.iter().flatten() {
            state.lock().leave(self.number);
        }
    }
}

impl<D: Door> Worker<'_, D> {
    /// Whether the file of a request is free for it; else the request is kept for later.
    pub(super) fn may_use_file(&mut self, slot: u32, request: &Request, due: u64) -> bool {
        let Some(held) = &mut self.held else {
            return true;
        };
        let free = held.take(slot, request);
        if !free {
            self.next_up = Some((*request, Some(due)));
            let nap = ugeom_machine::clock::ns_to_ticks(NAP_NS);
            self.not_before = Some(ugeom_machine::clock::ticks() + nap);
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_at_a_time_or_many_readers() {
        let mut state = FileLock::default();
        assert_eq!(state.take(1, false), Some(false));
        assert_eq!(state.take(2, false), Some(false));
        assert_eq!(state.take(3, true), None);
        // A reader does not overtake the writer that waits, even one that reads already.
        assert_eq!(state.take(1, false), None);
        assert_eq!(state.take(4, false), None);
        state.give(1, false);
        assert_eq!(state.take(3, true), None);
        state.give(2, false);
        assert_eq!(state.take(3, true), Some(true));
        assert_eq!(state.take(1, false), None);
        state.give(3, true);
        // In the order in which they asked: 1, then 4.
        assert_eq!(state.take(4, false), None);
        assert_eq!(state.take(1, false), Some(false));
        assert_eq!(state.take(4, false), Some(false));
    }

    #[test]
    fn a_job_does_not_exclude_itself_and_others_need_not_wait_for_one_that_ended() {
        let mut state = FileLock::default();
        assert_eq!(state.take(1, true), Some(true));
        assert_eq!(state.take(1, true), Some(true));
        assert_eq!(state.take(1, false), Some(true));
        assert_eq!(state.take(2, true), None);
        assert_eq!(state.take(3, true), None);
        assert_eq!(state.take(1, true), None);
        state.leave(2);
        for _ in 0..3 {
            assert_eq!(state.take(3, true), None);
            state.give(1, true);
        }
        assert_eq!(state.take(3, true), Some(true));
        // Its own reads keep a writer from writing until they have ended.
        let mut state = FileLock::default();
        assert_eq!(state.take(1, false), Some(false));
        assert_eq!(state.take(1, true), None);
        state.give(1, false);
        assert_eq!(state.take(1, true), Some(true));
    }
}
