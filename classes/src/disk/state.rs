//! The queue before the drive: which request it takes when it is free, and when each is due.
//!
//! It is a simulation on the axis of arrival times. Each call moves it on to the time of its
//! question, so no thread has to run it, and no request waits for another thread's attention.

use super::drive::{Drive, Work};
use std::collections::VecDeque;

/// A request that waits longer than this is taken before all others, ns: without it, a steady
/// stream of near requests would keep a far one waiting for ever.
pub(super) const STARVED_NS: u64 = 500_000_000;

/// The next step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// It was finished at this moment.
    Finished(u64),
    /// It is not finished before this moment: ask again then.
    NotBefore(u64),
    /// It is not in the queue.
    Unknown,
}

#[derive(Debug)]
struct Waiting<Id> {
    id: Id,
    work: Work,
    arrival_ns: u64,
}

#[derive(Debug)]
struct Active<Id> {
    /// Nothing when it was cancelled: the drive works on all the same.
    id: Option<Id>,
    due_ns: u64,
}

/// A drive and the requests that wait for it, named by `Id`.
#[derive(Debug)]
pub struct Queue<Id> {
    drive: Drive,
    /// When the drive was or will be free.
    free_ns: u64,
    /// When the youngest request arrived.
    arrival_ns: u64,
    active: Option<Active<Id>>,
    /// In the order of their arrival.
    waiting: VecDeque<Waiting<Id>>,
    finished: VecDeque<(Id, u64)>,
}

impl<Id: Copy + PartialEq> Queue<Id> {
    /// A queue before an idle drive.
    pub const fn new(drive: Drive) -> Self {
        Self {
            drive,
            free_ns: 0,
            arrival_ns: 0,
            active: None,
            waiting: VecDeque::new(),
            finished: VecDeque::new(),
        }
    }

    /// A request arrives. A moment before the arrival of another counts as that one. The drive may
    /// have been asked about later moments already: it was free then, or will be free later.
    pub(crate) fn arrive(&mut self, id: Id, work: Work, arrival_ns: u64) {
        self.arrival_ns = self.arrival_ns.max(arrival_ns);
        let arrival_ns = self.arrival_ns;
        self.waiting.push_back(Waiting {
            id,
            work,
            arrival_ns,
        });
        // All that are there may be finished at the next look.
        self.finished.reserve(self.depth());
    }

    /// How it stands with a request. Once it is told to be finished, it is forgotten.
    pub fn poll(&mut self, id: Id, now_ns: u64) -> Poll {
        self.advance(now_ns);
        if let Some(at) = self.finished.iter().position(|(known, _)| *known == id) {
            return match self.finished.swap_remove_back(at) {
                Some((_, due_ns)) => Poll::Finished(due_ns),
                None => Poll::Unknown,
            };
        }
        let Some(active) = &self.active else {
            return Poll::Unknown;
        };
        if active.id == Some(id) {
            return Poll::NotBefore(active.due_ns);
        }
        match self.waiting.iter().position(|waiting| waiting.id == id) {
            Some(place) => Poll::NotBefore(self.earliest_ns(active.due_ns, place)),
            None => Poll::Unknown,
        }
    }

    /// Takes a request out. The drive finishes a request in progress.
    pub fn cancel(&mut self, id: Id) {
        self.waiting.retain(|waiting| waiting.id != id);
        self.finished.retain(|(known, _)| *known != id);
        if let Some(active) = &mut self.active
            && active.id == Some(id)
        {
            active.id = None;
        }
    }

    /// How many requests wait or are worked on.
    pub fn depth(&self) -> usize {
        self.waiting.len() + usize::from(self.active.is_some())
    }

    /// A bound: the request at `place` cannot be finished earlier, since the drive chooses among
    /// the first few only and each takes the overhead at least.
    fn earliest_ns(&self, due_ns: u64, place: usize) -> u64 {
        let parameters = self.drive.parameters();
        let before = (place + 1).saturating_sub(parameters.queue) as u64;
        due_ns.saturating_add(parameters.overhead_ns.saturating_mul(before + 1))
    }

    /// Lets the drive work until `now_ns`.
    fn advance(&mut self, now_ns: u64) {
        loop {
            match &self.active {
                Some(active) if active.due_ns > now_ns => return,
                Some(active) => {
                    self.free_ns = active.due_ns;
                    self.finished
                        .extend(active.id.map(|id| (id, active.due_ns)));
                    self.active = None;
                }
                None => {}
            }
            let Some((place, start_ns)) = self.choose() else { return };
            let Some(next) = self.waiting.remove(place) else { return };
            let due_ns = self.drive.run(next.work, start_ns);
            self.active = Some(Active {
                id: Some(next.id),
                due_ns,
            });
        }
    }

    /// The next request of the drive, and its start. Of the requests that were there when it got
    /// free, it sees the first `queue` and takes the nearest, of equals the oldest.
    fn choose(&self) -> Option<(usize, u64)> {
        let oldest = self.waiting.front()?;
        let start_ns = self.free_ns.max(oldest.arrival_ns);
        if start_ns - oldest.arrival_ns > STARVED_NS {
            return Some((0, start_ns));
        }
        let seen = self
            .waiting
            .iter()
            .take(self.drive.parameters().queue.max(1));
        let there = seen.take_while(|waiting| waiting.arrival_ns <= start_ns);
        let nearest = there
            .enumerate()
            .min_by_key(|(_, waiting)| self.drive.distance_ns(waiting.work, start_ns));
        nearest.map(|(place, _)| (place, start_ns))
    }
}
