//! One worker: a thread's way into the stack, and its part of the pattern.

use super::LoadJob;
use super::door::{Request, StackCalls, StackDoor};
use super::drive::{Done, Queue, one_by_one};
use super::failure::Failure;
use super::pattern::Source;
use super::recorder::{Recorder, Unwatched, Watched};
use super::start::Span;
use std::sync::Arc;
use ugeom_harness::HarnessError;
use ugeom_machine::buffer::Buffer;
use ugeom_measure::Histogram;
use ugeom_stack::{Channel, Opened, Stack};

/// A worker. Those of a load lie one behind the other, and each changes its own with every request:
/// on two lines of the cache of its own, which processors fetch in pairs, none slows another down.
#[repr(align(128))]
pub(super) struct Worker {
    name: String,
    source: Source,
    latency: Option<Box<Histogram>>,
    lane: Lane,
}

/// A worker's way into the stack.
enum Lane {
    /// One request at a time.
    Alone {
        channel: Box<Channel>,
        opened: Arc<Opened>,
        buffer: Buffer,
    },
    /// Several requests in flight.
    Many(Box<Queue<StackDoor>>),
}

impl Worker {
    pub(super) fn new(
        stack: &Stack,
        opened: &Arc<Opened>,
        job: &LoadJob,
        index: usize,
        workers: usize,
    ) -> Result<Self, HarnessError> {
        let longest = job.pattern.longest_bytes() as usize;
        let depth = job.depth.max(1);
        let channel = stack.channel(depth).map_err(HarnessError::stack)?;
        let opened = Arc::clone(opened);
        let lane = if depth > 1 {
            let door = StackDoor::new(channel, opened, depth as u32, longest);
            Lane::Many(Box::new(Queue::new(door, depth as u32)))
        } else {
            Lane::Alone {
                channel: Box::new(channel),
                opened,
                buffer: Buffer::new(longest),
            }
        };
        Ok(Self {
            name: job.name.clone(),
            source: job.pattern.source(index, workers, job.seed),
            latency: job.latency.then(Box::default),
            lane,
        })
    }

    /// How many requests of a list are this worker's.
    pub(super) fn list_length(&self) -> u64 {
        match &self.source {
            Source::List(list) => list.len(),
            Source::Sequential(_) | Source::Random(_) => 0,
        }
    }

    /// Sends so many requests and waits for all of them.
    pub(super) fn run(&mut self, count: u64) -> Result<Span<Done>, HarnessError> {
        let Self {
            name,
            source,
            latency,
            lane,
        } = self;
        Span::of(|| {
            let done = match source {
                Source::Sequential(source) => lane.watch(source, latency, count),
                Source::Random(source) => lane.watch(source, latency, count),
                Source::List(source) => lane.watch(source, latency, count),
            };
            done.map_err(|failure| failure.in_case(name))
        })
    }

    /// The times since they were taken last.
    pub(super) fn take_latency(&mut self) -> Option<Box<Histogram>> {
        self.latency.as_mut().map(std::mem::take)
    }
}

impl Lane {
    fn watch<S: Iterator<Item = Request>>(
        &mut self,
        source: &mut S,
        latency: &mut Option<Box<Histogram>>,
        count: u64,
    ) -> Result<Done, Failure> {
        // The share of a list that has fewer requests than there are workers may be empty.
        match latency {
            _ if count == 0 => Ok(Done::default()),
            Some(latency) => self.requests(source, count, &mut Watched(latency)),
            None => self.requests(source, count, &mut Unwatched),
        }
    }

    #[inline(never)]
    fn requests<S: Iterator<Item = Request>>(
        &mut self,
        source: &mut S,
        count: u64,
        recorder: &mut impl Recorder,
    ) -> Result<Done, Failure> {
        match self {
            Self::Alone {
                channel,
                opened,
                buffer,
            } => {
                let mut door = StackCalls::new(channel, opened, buffer);
                one_by_one(&mut door, source.take(count as usize), recorder)
            }
            Self::Many(queue) => queue.run(source.take(count as usize), recorder),
        }
    }
}
