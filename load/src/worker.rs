//! One worker: a thread's channel, its part of the pattern, and the two loops.

use super::LoadJob;
use super::pattern::{Request, Requests, Source};
use super::watch::{Unwatched, Watch, Watched};
use std::sync::Arc;
use std::time::Duration;
use ugeom_harness::HarnessError;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_measure::Histogram;
use ugeom_stack::{Channel, Draft, Finished, IoError, Opened, Stack};

/// No request takes longer than this, or something is lost.
const TIMEOUT: Duration = Duration::from_secs(60);

/// From the start to the end of a worker, and what it did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub start_ns: u64,
    pub end_ns: u64,
    pub requests: u64,
    pub bytes: u64,
}

/// A worker. Those of a load lie one behind the other, and each changes its own with every request:
/// on two lines of the cache of its own, which processors fetch in pairs, none slows another down.
#[repr(align(128))]
pub(super) struct Worker {
    source: Source,
    latency: Option<Box<Histogram>>,
    lane: Lane,
}

/// A worker's way into the stack.
struct Lane {
    name: String,
    channel: Channel,
    opened: Arc<Opened>,
    /// For one request at a time.
    buffer: Buffer,
    /// For many: bios that are not under way, each with a buffer and a number of its own.
    idle: Vec<Draft>,
    /// When each of these was sent, ticks, by its number.
    sent_ticks: Vec<u64>,
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
        let mut channel = stack.channel(depth).map_err(HarnessError::stack)?;
        let mut idle = Vec::with_capacity(depth);
        if depth > 1 {
            for number in 0..depth as u64 {
                let Some(draft) = channel.bio() else { break };
                let draft = draft.read(0, Buffer::new(longest)).cookie(number);
                idle.push(draft);
            }
        }
        let own = if depth > 1 { 0 } else { longest };
        Ok(Self {
            source: job.pattern.source(index, workers, job.seed),
            latency: job.latency.then(Box::default),
            lane: Lane {
                name: job.name.clone(),
                channel,
                opened: Arc::clone(opened),
                buffer: Buffer::new(own),
                sent_ticks: vec![0; idle.len()],
                idle,
            },
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
    pub(super) fn run(&mut self, count: u64) -> Result<Span, HarnessError> {
        match &mut self.source {
            Source::Sequential(source) => self.lane.watch(source, &mut self.latency, count),
            Source::Random(source) => self.lane.watch(source, &mut self.latency, count),
            Source::List(source) => self.lane.watch(source, &mut self.latency, count),
        }
    }

    /// The times since they were taken last.
    pub(super) fn take_latency(&mut self) -> Option<Box<Histogram>> {
        self.latency.as_mut().map(std::mem::take)
    }
}

impl Lane {
    fn watch<S: Requests>(
        &mut self,
        source: &mut S,
        latency: &mut Option<Box<Histogram>>,
        count: u64,
    ) -> Result<Span, HarnessError> {
        match latency {
            Some(latency) => self.timed(source, &mut Watched(latency), count),
            None => self.timed(source, &mut Unwatched, count),
        }
    }

    fn timed<S: Requests, W: Watch>(
        &mut self,
        source: &mut S,
        watch: &mut W,
        count: u64,
    ) -> Result<Span, HarnessError> {
        // The share of a list that has fewer requests than there are workers may be empty.
        let start_ns = clock::now_ns();
        let bytes = match (count, self.sent_ticks.len()) {
            (0, _) => 0,
            (_, 0) => self.one_by_one(source, watch, count)?,
            (_, _) => self.many(source, watch, count)?,
        };
        Ok(Span {
            start_ns,
            end_ns: clock::now_ns(),
            requests: count,
            bytes,
        })
    }

    /// One request at a time. Returns the bytes moved.
    #[inline(never)]
    fn one_by_one<S: Requests, W: Watch>(
        &mut self,
        source: &mut S,
        watch: &mut W,
        count: u64,
    ) -> Result<u64, HarnessError> {
        let Self {
            channel,
            opened,
            buffer,
            ..
        } = self;
        let mut bytes = 0;
        let mut before = watch.now();
        for _ in 0..count {
            let request = source.next();
            let memory = &mut buffer[..request.length_bytes as usize];
            let done = channel.transfer(opened, request.write, request.offset_bytes, memory);
            match done {
                Ok(done) if done == request.length_bytes as usize => bytes += done as u64,
                other => return Err(refused(&self.name, request, other)),
            }
            let now = watch.now();
            watch.took(before, now);
            before = now;
        }
        Ok(bytes)
    }

    /// As many at once as there are bios. Returns the bytes moved.
    #[inline(never)]
    fn many<S: Requests, W: Watch>(
        &mut self,
        source: &mut S,
        watch: &mut W,
        count: u64,
    ) -> Result<u64, HarnessError> {
        let (mut sent, mut home, mut bytes) = (0, 0, 0);
        while sent < count
            && let Some(draft) = self.idle.pop()
        {
            self.send(source.next(), draft, watch.now());
            sent += 1;
        }
        while home < count {
            let Some(finished) = self.channel.finished() else {
                if self.channel.wait(Some(TIMEOUT)) == 0 {
                    return Err(self.lost(sent - home));
                }
                continue;
            };
            home += 1;
            let now = watch.now();
            let number = finished.cookie() as usize;
            let before = self.sent_ticks.get(number).copied().unwrap_or(now);
            watch.took(before, now);
            bytes += self.whole(&finished)?;
            let draft = finished.again();
            if sent < count {
                self.send(source.next(), draft, now);
                sent += 1;
            } else {
                self.idle.push(draft);
            }
        }
        Ok(bytes)
    }

    #[inline(always)]
    fn send(&mut self, request: Request, draft: Draft, now_ticks: u64) {
        let draft = draft
            .at(request.offset_bytes)
            .length(u64::from(request.length_bytes))
            .writing(request.write);
        if let Some(sent) = self.sent_ticks.get_mut(draft.number() as usize) {
            *sent = now_ticks;
        }
        self.channel.submit(&self.opened, draft);
    }

    /// The bytes of a request that was done as a whole.
    #[inline(always)]
    fn whole(&self, finished: &Finished) -> Result<u64, HarnessError> {
        match finished.result() {
            Ok(done) if done == finished.length() => Ok(done),
            other => Err(self.failed(finished, other.unwrap_or(0))),
        }
    }

    #[cold]
    fn failed(&self, finished: &Finished, done: u64) -> HarnessError {
        match self.channel.explain(finished) {
            Some(source) => HarnessError::request(self.name.clone(), source),
            None => HarnessError::Short {
                path: self.name.clone(),
                offset_bytes: finished.offset(),
                wanted_bytes: finished.length(),
                got_bytes: done,
            },
        }
    }

    #[cold]
    fn lost(&self, missing: u64) -> HarnessError {
        HarnessError::Thread {
            cell: self.name.clone(),
            problem: format!("{missing} requests did not complete within a minute"),
        }
    }
}

#[cold]
fn refused(name: &str, request: Request, got: Result<usize, IoError>) -> HarnessError {
    match got {
        Err(source) => HarnessError::request(name.to_owned(), source),
        Ok(got) => HarnessError::Short {
            path: name.to_owned(),
            offset_bytes: request.offset_bytes,
            wanted_bytes: u64::from(request.length_bytes),
            got_bytes: got as u64,
        },
    }
}
