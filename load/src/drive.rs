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

/// The requests that a loop completed, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Requests that were completed.
    pub requests: u64,
    /// Bytes that they have transferred.
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
    pub fn new(door: D, slots: u32) -> Self {
        let nothing = (Request::read(0, 0), Times::default());
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

    /// Hands over the made requests; returns the time.
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

    /// Takes completed requests, after sleeping for them if there are none yet; returns the time.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::{Calls, EngineDoor, Kind, NullDoor, StackCalls, StackDoor, file_calls};
    use crate::places::{Random, Sequence};
    use crate::recorder::Unwatched;
    use std::io::Write;
    use std::sync::Arc;
    use ugeom_classes::{Target, TargetOptions, open_target};
    use ugeom_engine::{Choice, Errno, open_engine};
    use ugeom_machine::buffer::Buffer;
    use ugeom_stack::{Command, Delta};
    use ugeom_testkit::begins;

    const BLOCK: u32 = 4096;
    const BLOCKS: u64 = 64;

    fn requests(kind: Kind) -> impl Iterator<Item = Request> {
        let places = Random::new(0, BLOCK.into(), BLOCKS, fastrand::Rng::with_seed(3));
        places.map(move |offset| Request::of(kind, offset, BLOCK))
    }

    fn disk() -> Target {
        let options = TargetOptions {
            writable: true,
            ..TargetOptions::default()
        };
        open_target("md:256k", &options).unwrap()
    }

    fn stack_door(target: &Target, slots: u32) -> StackDoor {
        let opened = target.open(Delta::READ_WRITE).unwrap();
        let channel = target.stack.channel(slots as usize).unwrap();
        StackDoor::new(channel, Arc::new(opened), slots, BLOCK as usize)
    }

    fn file() -> std::fs::File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; (BLOCKS * BLOCK as u64) as usize])
            .unwrap();
        file
    }

    #[test]
    fn every_door_makes_each_request_once() {
        let all = Done {
            requests: 1000,
            bytes: 1000 * u64::from(BLOCK),
        };
        let buffer = || Buffer::new(BLOCK as usize);
        let alone = |door: &mut dyn FnMut() -> Done| assert_eq!(door(), all);
        let target = disk();
        let opened = target.open(Delta::READ).unwrap();
        let mut channel = target.stack.channel(1).unwrap();
        let reads = || requests(Kind::Read).take(1000);
        alone(&mut || {
            let mut memory = buffer();
            let mut door = StackCalls::new(&mut channel, &opened, &mut memory);
            one_by_one(&mut door, reads(), &mut Unwatched).unwrap()
        });
        let file = Arc::new(file());
        alone(&mut || {
            let mut door = Calls::new(buffer(), file_calls(Arc::clone(&file)));
            one_by_one(&mut door, reads(), &mut Unwatched).unwrap()
        });
        alone(&mut || {
            let mut door = NullDoor::new(1, BLOCK as usize);
            one_by_one(&mut door, reads(), &mut Unwatched).unwrap()
        });
        for slots in [1, 7, 1500] {
            let mut queue = Queue::new(stack_door(&target, slots), slots);
            alone(&mut || queue.run(reads(), &mut Unwatched).unwrap());
            alone(&mut || {
                queue
                    .run(requests(Kind::Write).take(1000), &mut Unwatched)
                    .unwrap()
            });
            let mut queue = Queue::new(NullDoor::new(slots, 0), slots).in_whole_batches();
            alone(&mut || queue.run(reads(), &mut Unwatched).unwrap());
        }
        let (engine, _) = open_engine(Choice::Sync, 7).unwrap();
        let buffers = (0..7).map(|_| buffer()).collect();
        let door = EngineDoor::with(engine, buffers, [file]).unwrap();
        let mut queue = Queue::new(door, 7);
        alone(&mut || queue.run(reads(), &mut Unwatched).unwrap());
        let totals = target.stack.statistics(target.top).unwrap();
        assert_eq!(totals.operations[Command::Write as usize], 3000);
    }

    #[test]
    fn the_first_request_that_is_not_whole_ends_a_loop_with_its_place() {
        let ends = |result: Result<u64, Errno>| {
            let mut door =
                Calls::new(
                    [0; 4096].to_vec(),
                    |request: &Request, _: &mut [u8]| match request.offset {
                        8192 => result,
                        _ => Ok(request.length.into()),
                    },
                );
            let places = Sequence::new(0, 4096, 10).take(10);
            let requests = places.map(|offset| Request::write(offset, BLOCK));
            let failure = one_by_one(&mut door, requests, &mut Unwatched).unwrap_err();
            failure.in_case("x").to_string()
        };
        assert_eq!(
            ends(Ok(512)),
            "x: a read of 4096 bytes at offset 8192 ended after 512"
        );
        let failed = ends(Err(Errno::NOSPC));
        begins(&failed, "x at offset 8192: writing: ");
        let small = open_target("md:8k", &TargetOptions::default()).unwrap();
        let opened = Arc::new(small.open(Delta::READ).unwrap());
        let door = StackDoor::new(small.stack.channel(2).unwrap(), opened, 2, 4096);
        let past = [0, 4096, 8192].map(|offset| Request::read(offset, BLOCK));
        let failure = Queue::new(door, 2).run(past, &mut Unwatched).unwrap_err();
        let failure = failure.in_case("y").to_string();
        assert_eq!(
            failure,
            "y: a read of 4096 bytes at offset 8192 ended after 0"
        );
    }

    #[test]
    fn the_memory_of_a_slot_keeps_its_bytes_from_request_to_request() {
        let target = disk();
        let mut door = stack_door(&target, 1);
        door.buffer(0).fill(7);
        let mut queue = Queue::new(door, 1);
        let trim = Request {
            kind: Kind::Trim,
            ..Request::write(8192, BLOCK)
        };
        let written = [0, 8192].map(|offset| Request::write(offset, BLOCK));
        let part = Request::write(4096, 512);
        let all = written.into_iter().chain([part, trim]);
        queue.run(all, &mut Unwatched).unwrap();
        assert!(queue.door().buffer(0).iter().all(|byte| *byte == 7));
        assert_eq!(queue.door().buffer(0).len(), BLOCK as usize);
        let mut bytes = vec![1; 12_288];
        let opened = target.open(Delta::READ).unwrap();
        let mut channel = target.stack.channel(1).unwrap();
        channel.read(&opened, 0, &mut bytes).unwrap();
        assert!(bytes[..4608].iter().all(|byte| *byte == 7));
        assert!(bytes[4608..].iter().all(|byte| *byte == 0));
    }

    /// Notes everything; its clock counts its readings.
    #[derive(Default)]
    struct Notes {
        clock: u64,
        times: Vec<Times>,
        in_flight: usize,
        full: bool,
    }

    impl Recorder for Notes {
        fn now(&mut self) -> u64 {
            self.clock += 1;
            self.clock
        }

        fn took(&mut self, _: &Request, times: Times) {
            self.times.push(times);
        }

        fn seen(&mut self, _: u64, in_flight: usize) {
            self.in_flight = self.in_flight.max(in_flight);
        }

        fn filled(&mut self, is_full: bool, _: bool, _: u64) {
            self.full |= is_full;
        }
    }

    #[test]
    fn a_recorder_is_told_of_every_request_in_the_order_of_its_times() {
        let mut notes = Notes::default();
        let mut queue = Queue::new(NullDoor::new(16, 0), 16);
        queue
            .run(requests(Kind::Read).take(100), &mut notes)
            .unwrap();
        assert_eq!((notes.times.len(), notes.in_flight), (100, 16));
        let ordered = |times: &Times| times.begun <= times.issued && times.issued < times.ended;
        assert!(notes.full && notes.times.iter().all(ordered));
        let mut notes = Notes::default();
        let mut door = NullDoor::new(1, 0);
        one_by_one(&mut door, requests(Kind::Read).take(3), &mut notes).unwrap();
        let spans: Vec<_> = notes.times.iter().map(|it| (it.begun, it.ended)).collect();
        assert_eq!(spans, [(1, 2), (2, 3), (3, 4)]);
    }
}
