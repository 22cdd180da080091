//! The two loops that make requests: one at a time, and as many as there are slots.
//!
//! ```text
//!   requests (an iterator) --> door (Direct or Door) --> recorder
//! ```
//!
//! All three are type parameters, so that each combination is a loop of its own without a branch
//! for what it does not do. How many requests there are, and what ends them early, is the
//! iterator's: `take`, `take_while`.

use super::door::{Direct, Door, Event, Request};
use super::failure::Failure;
use super::recorder::{Recorder, Times};
use std::time::Duration;
use ugeom_machine::clock;

/// No request takes longer than this, or it is lost.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// More requests are not held back to be handed over together. Fewer are, when fewer are in flight:
/// a device that has run dry gets its next request at once.
pub const BATCH_MAX: usize = 8;

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Makes one request after the other. A single reading of the clock ends one and begins the next.
///
/// # Errors
/// [`Failure`] of the first request that was not done as a whole.
#[inline(always)]
pub fn one_by_one(
    door: &mut impl Direct,
    requests: impl IntoIterator<Item = Request>,
    recorder: &mut impl Recorder,
) -> Result<Done, Failure> {
    let mut done = Done::default();
    let mut begun = recorder.now();
    for request in requests {
        let result = door.call(&request);
        if result != Ok(u64::from(request.length)) {
            return Err(Failure::of(&request, result, door));
        }
        let ended = recorder.now();
        let issued = begun;
        recorder.took(
            &request,
            Times {
                begun,
                issued,
                ended,
            },
        );
        begun = ended;
        done.requests += 1;
        done.bytes += u64::from(request.length);
    }
    Ok(done)
}

/// A door whose slots are kept in flight.
pub struct Queue<D> {
    door: D,
    /// The request of each slot, and when it was begun and handed over.
    slots: Vec<(Request, Times)>,
    idle: Vec<u32>,
    /// Those that were made and not handed over.
    held: Vec<u32>,
    events: Vec<Event>,
    batch_max: usize,
}

impl<D: Door> Queue<D> {
    /// A queue of so many slots, which the door has, that hands over up to [`BATCH_MAX`] requests
    /// together.
    #[must_use]
    pub fn new(door: D, slots: u32) -> Self {
        let nothing = (Request::of(false, 0, 0), Times::default());
        Self {
            door,
            slots: vec![nothing; slots as usize],
            idle: (0..slots).rev().collect(),
            held: Vec::with_capacity(slots as usize),
            events: Vec::with_capacity(slots as usize),
            batch_max: BATCH_MAX,
        }
    }

    /// The same, handing over all that it can make at a time.
    #[must_use]
    pub fn in_whole_batches(mut self) -> Self {
        self.batch_max = usize::MAX;
        self
    }

    /// How many slots there are.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The door; nothing is in flight.
    pub fn door(&mut self) -> &mut D {
        &mut self.door
    }

    /// Makes all requests and waits for the last.
    ///
    /// # Errors
    /// [`Failure`] of the first that was not done as a whole; others may be in flight still, so
    /// that the queue is of no use any more.
    pub fn run(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        recorder: &mut impl Recorder,
    ) -> Result<Done, Failure> {
        let mut requests = requests.into_iter();
        let mut done = Done::default();
        let mut has_more = true;
        let mut now = recorder.now();
        loop {
            while has_more && let Some(&slot) = self.idle.last() {
                let Some(request) = requests.next() else {
                    has_more = false;
                    break;
                };
                self.idle.pop();
                self.door.submit(slot, &request);
                self.slots[slot as usize] = (
                    request,
                    Times {
                        begun: now,
                        ..Times::default()
                    },
                );
                self.held.push(slot);
                let with_door = self.in_flight() - self.held.len();
                if self.held.len() >= with_door.clamp(1, self.batch_max) {
                    now = self.hand_over(now, recorder);
                }
            }
            now = self.hand_over(now, recorder);
            recorder.filled(self.idle.is_empty(), has_more, done.requests);
            if self.in_flight() == 0 {
                return Ok(done);
            }
            now = self.collect(now, &mut done, recorder)?;
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.idle.len()
    }

    /// Hands over what was made; when that was.
    #[inline]
    fn hand_over(&mut self, now: u64, recorder: &mut impl Recorder) -> u64 {
        if self.held.is_empty() {
            return now;
        }
        self.door.flush();
        let now = recorder.now();
        recorder.seen(now, self.in_flight());
        for slot in self.held.drain(..) {
            self.slots[slot as usize].1.issued = now;
        }
        now
    }

    /// Takes what has ended, after sleeping for it if there is nothing yet; when that was.
    #[inline]
    fn collect(
        &mut self,
        mut now: u64,
        done: &mut Done,
        recorder: &mut impl Recorder,
    ) -> Result<u64, Failure> {
        let in_flight = self.in_flight();
        self.reap_or_wait(in_flight)?;
        if !self.events.is_empty() {
            now = recorder.now();
            recorder.seen(now, in_flight);
        }
        for Event { slot, result } in self.events.drain(..) {
            let (request, times) = &self.slots[slot as usize];
            if result != Ok(u64::from(request.length)) {
                return Err(Failure::of(request, result, &mut self.door));
            }
            let times = Times {
                ended: now,
                ..*times
            };
            recorder.took(request, times);
            done.requests += 1;
            done.bytes += u64::from(request.length);
            self.idle.push(slot);
        }
        Ok(now)
    }

    fn reap_or_wait(&mut self, in_flight: usize) -> Result<(), Failure> {
        self.door.reap(&mut self.events);
        if !self.events.is_empty() {
            return Ok(());
        }
        let since_ns = clock::now_ns();
        while self.events.is_empty() {
            // A wait may end early, as when a signal arrives.
            if u128::from(clock::now_ns().saturating_sub(since_ns)) >= LOST_AFTER.as_nanos() {
                return Err(Failure::Lost(in_flight as u64));
            }
            self.door.wait(Some(LOST_AFTER)).map_err(Failure::Waiting)?;
            self.door.reap(&mut self.events);
        }
        Ok(())
    }
}
