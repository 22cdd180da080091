//! `ioengine=cpuio`: a job that loads a processor beside others, and makes no requests. As by fio,
//! each busy phase counts as a read without bytes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ugeom_machine::cpu::Usage;

use crate::tally::{Live, Phase, Tally};
use crate::worker::Done;
use ugeom_job::settings::{Job, READ};

/// How long a pause lasts before the end of the job is looked for.
const NAP: Duration = Duration::from_millis(20);

/// How many numbers are sorted at a time.
const NUMBERS: usize = 1024;

/// Busy phases and pauses in turn, until the time is over, the job is stopped, or `are_others_done`
/// where it ends with them.
pub(super) fn run(
    job: &Job,
    live: &Live,
    stop: &AtomicBool,
    are_others_done: &dyn Fn() -> bool,
) -> Done {
    let begun = Instant::now();
    let before = Usage::of_thread();
    let wanted_ns = job.ramp_time_ns.saturating_add(job.runtime_ns);
    let until = (job.runtime_ns > 0).then(|| begun + Duration::from_nanos(wanted_ns));
    let is_over = || {
        let is_late = until.is_some_and(|until| Instant::now() >= until);
        stop.load(Relaxed) || is_late || (job.cpu.ends_with_others && are_others_done())
    };
    let mut tally = Tally::default();
    let counted = |tally: &Tally| Tally {
        elapsed_ns: begun.elapsed().as_nanos() as u64,
        usage: Usage::of_thread().since(&before),
        ..tally.clone()
    };
    live.enter(Phase::Running);
    let load = u64::from(job.cpu.load_percent.clamp(1, 100));
    let busy = Duration::from_nanos(job.cpu.busy_ns);
    let pause = Duration::from_nanos(job.cpu.busy_ns / load * (100 - load));
    let mut numbers = Numbers::default();
    while !is_over() {
        let phase = Instant::now();
        let end = phase + busy;
        while Instant::now() < end && !stop.load(Relaxed) {
            if job.cpu.sorts {
                numbers.sort();
            } else {
                std::hint::spin_loop();
            }
        }
        count(job, phase.elapsed().as_nanos() as u64, &mut tally);
        let end = Instant::now() + pause;
        while Instant::now() < end && !is_over() {
            std::thread::sleep(NAP.min(end.saturating_duration_since(Instant::now())));
        }
        if live.is_asked() {
            live.publish(counted(&tally));
        }
    }
    Done {
        tally: counted(&tally),
        logs: None,
        state: None,
        trouble: None,
    }
}

/// Counts a busy phase.
fn count(job: &Job, ns: u64, tally: &mut Tally) {
    tally.depth(1, 1);
    for calls in [&mut tally.submits, &mut tally.completes] {
        calls[Tally::batch(1)] += 1;
    }
    let side = &mut tally.sides[READ];
    side.requests += 1;
    if !job.unmeasured.clat {
        side.clat.record(ns);
    }
    if !job.unmeasured.lat {
        side.lat.record(ns);
    }
}

/// Numbers without an order.
#[derive(Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    fn sort(&mut self) {
        let numbers = std::iter::repeat_with(|| fastrand::u64(..)).take(NUMBERS);
        self.0.clear();
        self.0.extend(numbers);
        self.0.sort_unstable();
        std::hint::black_box(&self.0);
    }
}
