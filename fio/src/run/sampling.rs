//! The watching thread: samples of rates, progress, and the end of jobs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Copy, Progress, Watcher};
use crate::steady::{SteadyState, Watch};
use crate::tally::{Live, Phase, Samples, Tally};
use ugeom_job::settings::{ExitWhat, Job};

/// How often the rates of the progress line change, ns.
const SAMPLE_NS: u64 = 500_000_000;

/// The watching thread's state for each job of a wave.
pub(super) struct Sampling {
    /// A job with `exit_what=all` has ended.
    pub(super) ends_all: bool,
    begun: Instant,
    jobs: Vec<Sampled>,
    rates_at: (Instant, [(u64, u64); 3]),
    rates: [(f64, f64); 3],
}

#[derive(Default)]
struct Sampled {
    /// The start of counting, and the counts of the last sample.
    since: Option<Instant>,
    last_bytes: Option<(Instant, [(u64, u64); 3])>,
    last_requests: Option<(Instant, [(u64, u64); 3])>,
    values: [(Vec<f64>, Vec<f64>); 3],
    watch: Option<Watch>,
    base: (u64, u64),
    steady: bool,
}

impl Sampling {
    pub(super) fn new(wave: &[Copy]) -> Self {
        let now = Instant::now();
        let jobs = wave.iter().map(|copy| Sampled {
            watch: Watch::of(&copy.job),
            ..Sampled::default()
        });
        Self {
            ends_all: false,
            begun: now,
            jobs: jobs.collect(),
            rates_at: (now, [(0, 0); 3]),
            rates: [(0.0, 0.0); 3],
        }
    }

    pub(super) fn look(
        &mut self,
        wave: &[Copy],
        lives: &[Live],
        stops: &[AtomicBool],
        watcher: &mut dyn Watcher,
    ) {
        let now = Instant::now();
        let cancelled = watcher.cancelled();
        let ending = Ending::of(wave, lives);
        self.ends_all |= ending.all;
        for (index, (live, copy)) in lives.iter().zip(wave).enumerate() {
            let steady = self.jobs[index].look(now, live, &copy.job);
            if cancelled || steady || ending.wave || ending.groups.contains(&copy.group) {
                stops[index].store(true, Relaxed);
            }
        }
        let is_new = self.update_rates(now, lives);
        let jobs: Vec<(&Job, Phase)> = wave
            .iter()
            .zip(lives)
            .map(|(copy, live)| (&copy.job, live.phase()))
            .collect();
        let done = self.done(wave, lives);
        let elapsed = now.duration_since(self.begun).as_secs_f64();
        let left_s = done
            .filter(|done| *done > 0.01)
            .map(|done| (elapsed / done - elapsed) as u64);
        watcher.progress(&Progress {
            jobs: &jobs,
            rates: self.rates,
            is_new,
            done,
            left_s,
        });
    }

    /// Takes the rates since the last time, when it is time for it; true if it was.
    fn update_rates(&mut self, now: Instant, lives: &[Live]) -> bool {
        let elapsed = now.duration_since(self.rates_at.0);
        if elapsed.as_nanos() < u128::from(SAMPLE_NS) {
            return false;
        }
        let mut totals = [(0, 0); 3];
        for live in lives {
            for (total, more) in totals.iter_mut().zip(live.totals()) {
                *total = (total.0 + more.0, total.1 + more.1);
            }
        }
        let seconds = elapsed.as_secs_f64();
        for (kind, rate) in self.rates.iter_mut().enumerate() {
            let (before, after) = (self.rates_at.1[kind], totals[kind]);
            *rate = (
                after.0.saturating_sub(before.0) as f64 / seconds,
                after.1.saturating_sub(before.1) as f64 / seconds,
            );
        }
        self.rates_at = (now, totals);
        true
    }

    /// The share of the work that is done: by bytes, or by time where that ends a job.
    fn done(&self, wave: &[Copy], lives: &[Live]) -> Option<f64> {
        let share = |(copy, live): (&Copy, &Live)| {
            if live.phase() == Phase::Ended {
                return Some(1.0);
            }
            let goal = live.goal_bytes.load(Relaxed);
            let bytes: u64 = live.totals().iter().map(|(bytes, _)| bytes).sum();
            let by_bytes = (goal != u64::MAX).then(|| bytes as f64 / goal.max(1) as f64);
            let (ramp, runtime) = (copy.job.ramp_time_ns, copy.job.runtime_ns);
            let elapsed_ns = self.begun.elapsed().as_nanos() as f64;
            let by_time = (runtime > 0).then(|| elapsed_ns / (ramp + runtime) as f64);
            by_bytes
                .into_iter()
                .chain(by_time)
                .reduce(f64::max)
                .map(|done| done.min(1.0))
        };
        let shares: Option<Vec<f64>> = wave.iter().zip(lives).map(share).collect();
        shares.and_then(|shares| shares.into_iter().reduce(f64::min))
    }

    /// How long the wave has been running.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Puts the samples of a job into its counts.
    pub(super) fn give(&self, index: usize, tally: &mut Tally) {
        for (side, (bw, iops)) in tally.sides.iter_mut().zip(&self.jobs[index].values) {
            side.bw = Samples::of(bw.clone());
            side.iops = Samples::of(iops.clone());
        }
    }

    pub(super) fn steady(&self, index: usize) -> Option<SteadyState> {
        let job = &self.jobs[index];
        job.watch.as_ref().map(|watch| watch.state(job.steady))
    }
}

impl Sampled {
    /// Takes a sample when it is time for one; true when the job has become steady.
    fn look(&mut self, now: Instant, live: &Live, job: &Job) -> bool {
        if live.phase() != Phase::Running {
            return false;
        }
        let totals = live.totals();
        let since = *self.since.get_or_insert_with(|| {
            self.base = sum(&totals);
            now
        });
        let bytes = sample(&mut self.last_bytes, now, totals, job.bw_sample_ns);
        let requests = sample(&mut self.last_requests, now, totals, job.iops_sample_ns);
        for kind in (0..3).filter(|kind| totals[*kind].1 > 0) {
            let (bw, iops) = &mut self.values[kind];
            bw.extend(bytes.map(|rates| rates[kind].0 / 1024.0));
            iops.extend(requests.map(|rates| rates[kind].1));
        }
        let (bytes, requests) = sum(&totals);
        let at_ns = now.duration_since(since).as_nanos() as u64;
        let base = self.base;
        let steady = |watch: &mut Watch| watch.look(at_ns, bytes - base.0, requests - base.1);
        self.steady |= self.watch.as_mut().is_some_and(steady);
        self.steady
    }
}

fn sum(totals: &[(u64, u64); 3]) -> (u64, u64) {
    totals
        .iter()
        .fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1))
}

/// Bytes and requests a second since the last sample, when it is time for one.
fn sample(
    last: &mut Option<(Instant, [(u64, u64); 3])>,
    now: Instant,
    totals: [(u64, u64); 3],
    every_ns: u64,
) -> Option<[(f64, f64); 3]> {
    let (at, before) = *last.get_or_insert((now, totals));
    let elapsed = now.duration_since(at);
    if elapsed.as_nanos() < u128::from(every_ns.max(1)) {
        return None;
    }
    *last = Some((now, totals));
    let seconds = elapsed.as_secs_f64();
    Some([0, 1, 2].map(|kind| {
        let bytes = totals[kind].0.saturating_sub(before[kind].0);
        let requests = totals[kind].1.saturating_sub(before[kind].1);
        (bytes as f64 / seconds, requests as f64 / seconds)
    }))
}

/// The jobs that end because others have: `exitall`, `exit_what`, `exitall_on_error`.
#[derive(Default)]
struct Ending {
    groups: Vec<u32>,
    wave: bool,
    all: bool,
}

impl Ending {
    fn of(wave: &[Copy], lives: &[Live]) -> Self {
        let mut ending = Self::default();
        for (copy, live) in wave.iter().zip(lives) {
            let job = &copy.job;
            let failed = job.exitall_on_error && live.has_failed();
            let ended = job.exitall && live.phase() == Phase::Ended;
            if !failed && !ended {
                continue;
            }
            match job.exit_what {
                ExitWhat::Group => ending.groups.push(copy.group),
                ExitWhat::Stonewall => ending.wave = true,
                ExitWhat::All => (ending.wave, ending.all) = (true, true),
            }
        }
        ending
    }
}
