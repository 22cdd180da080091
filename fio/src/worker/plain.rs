//! Plain jobs: one request at a time, on a door that does it within a call, and nothing that has to
//! be looked at for each request. Differences between such jobs are decided before the loop.
//!
//! ```text
//!   place -> content, if it is a write -> door.call -> clock -> one counter
//! ```
//!
//! The clock is read once a request: a request begins when the one before has ended. Its duration
//! is counted in ticks, and becomes nanoseconds when the job has ended. Limits, the end of the
//! time and signals are looked at every 100 us.

use ugeom_engine::Errno;
use ugeom_load::door::{Direct, Door, Kind, Request};
use ugeom_machine::clock;
use ugeom_measure::Histogram;

use super::super::content::Label;
use super::super::places::Simple;
use super::super::tally::Tally;
use super::{Done, Worker};
use ugeom_job::settings::{Job, READ, TRIM, Verify, WRITE};

/// How long nothing but requests is looked at, ns.
const LOOK_NS: u64 = 100_000;

/// How many requests are made between two looks at the clock at the most, where none is timed: a
/// target that becomes slow delays the end of the job by so many requests.
const BURST_MAX: u64 = 256;

/// Durations below so many ticks, some us, have a counter each.
const SHORT_TICKS: usize = 4096;

/// Durations of requests, with a counter for each short one.
struct Times {
    /// How many took so many ticks.
    short: Box<[u64; SHORT_TICKS]>,
    /// Durations from [`SHORT_TICKS`] ticks on, ns.
    long: Histogram,
}

impl Times {
    fn new() -> Self {
        Self {
            short: Box::new([0; SHORT_TICKS]),
            long: Histogram::new(),
        }
    }

    #[inline(always)]
    fn add(&mut self, ticks: u64) {
        match self.short.get_mut(ticks as usize) {
            Some(count) => *count += 1,
            None => self.add_long(ticks),
        }
    }

    #[inline(never)]
    fn add_long(&mut self, ticks: u64) {
        self.long.record(clock::ticks_to_ns(ticks));
    }

    /// All durations, ns; none are left.
    fn take(&mut self) -> Histogram {
        for (ticks, count) in self.short.iter_mut().enumerate() {
            let ns = clock::ticks_to_ns(ticks as u64);
            self.long.record_many(ns, std::mem::take(count));
        }
        std::mem::take(&mut self.long)
    }
}

/// A request that was not done as a whole.
struct Odd {
    request: Request,
    result: Result<u64, Errno>,
    ticks: u64,
}

/// A stretch of requests.
struct Stretch {
    /// Those that were done as a whole.
    whole: u64,
    /// The one after them.
    odd: Option<Odd>,
    /// When the stretch ended, in ticks.
    ended: u64,
}

/// The common properties of the requests of a plain job.
#[derive(Clone, Copy)]
pub(super) struct Alike {
    side: usize,
    kind: Kind,
    length: u32,
}

impl<D: Door + Direct> Worker<'_, D> {
    /// Does the job like [`Worker::run`], and makes its requests by [`Direct::call`] where it is a
    /// plain one.
    pub fn run_directly(mut self) -> Done {
        match self.plain() {
            None => self.run(),
            Some((alike, simple)) => self.run_by(|worker| worker.work_plainly(alike, simple)),
        }
    }

    /// The common properties of the requests, and their places, if the job is a plain one.
    pub(super) fn plain(&mut self) -> Option<(Alike, Simple)> {
        let job = self.task.job;
        let alone = self.task.blocking && self.slots.len() == 1 && job.verify == Verify::No;
        let traced = self.traces.replay.is_some() || self.traces.log.is_some();
        let logged = self.logs.is_some() || self.written.is_some();
        let paced = self.pace.is_some() || job.thinktime_ns > 0 || self.has_min_rates();
        if !alone || traced || logged || paced || self.has_conditions || job.max_latency_ns > 0 {
            return None;
        }
        let (side, kind) = only_kind(job)?;
        let simple = self.places.simple(side)?;
        let length = job.sizes[side].min as u32;
        Some((Alike { side, kind, length }, simple))
    }

    fn work_plainly(&mut self, alike: Alike, simple: Simple) {
        let unmeasured = self.task.job.unmeasured;
        if unmeasured.clat && unmeasured.lat {
            match simple {
                Simple::Sequence(steps) => self.make_all::<_, false>(alike, steps),
                Simple::Random(steps) => self.make_all::<_, false>(alike, steps),
                Simple::Mapped(steps) => self.make_all::<_, false>(alike, steps),
            }
        } else {
            match simple {
                Simple::Sequence(steps) => self.make_all::<_, true>(alike, steps),
                Simple::Random(steps) => self.make_all::<_, true>(alike, steps),
                Simple::Mapped(steps) => self.make_all::<_, true>(alike, steps),
            }
        }
    }

    /// Makes all requests, `TIMED` or not.
    fn make_all<S: Iterator<Item = u64>, const TIMED: bool>(&mut self, alike: Alike, mut steps: S) {
        let mut times = Times::new();
        let look_ticks = clock::ns_to_ticks(LOOK_NS);
        let mut now = clock::ticks();
        let mut burst = 1;
        loop {
            let warms_up = !self.counting;
            self.look_at_the_clock(now);
            if warms_up && self.counting {
                times = Times::new();
            }
            let bytes_left = self.limits.bytes_left.div_ceil(u64::from(alike.length));
            let left = self.limits.requests_left.min(bytes_left);
            self.finished |= left == 0;
            if self.finished {
                break;
            }
            let begun = now;
            let stretch = if TIMED {
                let phase_ends = if self.counting {
                    self.limits.end
                } else {
                    self.limits.ramp_end
                };
                let until = phase_ends.min(now + look_ticks);
                self.timed(alike, &mut steps, &mut times, left, now, until)
            } else {
                let stretch = self.untimed(alike, &mut steps, left.min(burst));
                burst = match stretch.ended.saturating_sub(begun) < look_ticks {
                    true => (burst * 2).min(BURST_MAX),
                    false => (burst / 2).max(1),
                };
                stretch
            };
            now = stretch.ended;
            self.count(alike, stretch, &mut times);
        }
        let times = times.take();
        let unmeasured = self.task.job.unmeasured;
        let side = &mut self.tally.sides[alike.side];
        if !unmeasured.clat {
            side.clat.merge(&times);
        }
        if !unmeasured.lat {
            side.lat.merge(&times);
        }
    }

    /// Makes up to `left` requests, until the clock shows `until`.
    #[inline(never)]
    fn timed<S: Iterator<Item = u64>>(
        &mut self,
        alike: Alike,
        steps: &mut S,
        times: &mut Times,
        left: u64,
        mut now: u64,
        until: u64,
    ) -> Stretch {
        let mut whole = 0;
        let mut odd = None;
        while whole < left
            && now < until
            && let Some(offset) = steps.next()
        {
            let request = alike.at(offset);
            if alike.kind == Kind::Write {
                self.fill_buffer(&request);
                now = clock::ticks();
            }
            let result = self.door.call(&request);
            let ended = clock::ticks();
            let ticks = ended.wrapping_sub(now);
            now = ended;
            if result != Ok(u64::from(alike.length)) {
                odd = Some(Odd {
                    request,
                    result,
                    ticks,
                });
                break;
            }
            times.add(ticks);
            whole += 1;
        }
        Stretch {
            whole,
            odd,
            ended: now,
        }
    }

    #[inline(never)]
    fn untimed<S: Iterator<Item = u64>>(
        &mut self,
        alike: Alike,
        steps: &mut S,
        count: u64,
    ) -> Stretch {
        let mut whole = 0;
        let mut odd = None;
        while whole < count
            && let Some(offset) = steps.next()
        {
            let request = alike.at(offset);
            if alike.kind == Kind::Write {
                self.fill_buffer(&request);
            }
            let result = self.door.call(&request);
            if result != Ok(u64::from(alike.length)) {
                let ticks = 0;
                odd = Some(Odd {
                    request,
                    result,
                    ticks,
                });
                break;
            }
            whole += 1;
        }
        Stretch {
            whole,
            odd,
            ended: clock::ticks(),
        }
    }

    #[inline]
    fn fill_buffer(&mut self, request: &Request) {
        let number = Some(self.write_number as u16);
        self.write_number += 1;
        let offset = request.offset;
        let buffer = &mut self.door.buffer(0)[..request.length as usize];
        self.content.before_write(buffer, Label { offset, number });
    }

    fn count(&mut self, alike: Alike, stretch: Stretch, times: &mut Times) {
        let made = stretch.whole + u64::from(stretch.odd.is_some());
        self.limits.requests_left -= made;
        let bytes = made * u64::from(alike.length);
        self.limits.bytes_left = self.limits.bytes_left.saturating_sub(bytes);
        let one = Tally::batch(1);
        self.tally.depths[0] += made;
        self.tally.submits[one] += made;
        self.tally.completes[one] += made;
        let mut requests = stretch.whole;
        let mut bytes = stretch.whole * u64::from(alike.length);
        if let Some(odd) = stretch.odd {
            self.tally.sides[alike.side].short +=
                u64::from(odd.result.is_ok_and(|bytes| bytes > 0));
            match odd.result {
                Err(errno) => self.failed(&odd.request, errno),
                Ok(0) => self.failed(&odd.request, Errno::IO),
                Ok(some) => {
                    requests += 1;
                    bytes += some;
                    times.add(odd.ticks);
                }
            }
        }
        let side = &mut self.tally.sides[alike.side];
        side.requests += requests;
        side.bytes += bytes;
        self.task.live.add(alike.side, requests, bytes);
    }
}

impl Alike {
    #[inline(always)]
    fn at(self, offset: u64) -> Request {
        Request {
            kind: self.kind,
            file: 0,
            offset,
            length: self.length,
        }
    }
}

/// The kind of all requests of a job, where there is one.
fn only_kind(job: &Job) -> Option<(usize, Kind)> {
    match job.rw.does {
        [true, false, false] => Some((READ, Kind::Read)),
        [false, true, false] if !job.has_syncs() => Some((WRITE, Kind::Write)),
        [false, false, true] if !job.rw.trim_then_write => Some((TRIM, Kind::Trim)),
        _ => None,
    }
}
