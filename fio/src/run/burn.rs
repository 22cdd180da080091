//! `ioengine=cpuio`: a job that loads a processor beside others, and makes no requests.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ugeom_machine::cpu::Usage;

use crate::tally::{Live, Phase, Tally};
use crate::worker::Done;
use ugeom_job::settings::Job;

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
    let counted = || Tally {
        elapsed_ns: begun.elapsed().as_nanos() as u64,
        usage: Usage::of_thread().since(&before),
        ..Tally::default()
    };
    live.enter(Phase::Running);
    let load = u64::from(job.cpu.load_percent.clamp(1, 100));
    let busy = Duration::from_nanos(job.cpu.busy_ns);
    let pause = Duration::from_nanos(job.cpu.busy_ns / load * (100 - load));
    let mut numbers = Numbers::default();
    while !is_over() {
        let end = Instant::now() + busy;
        while Instant::now() < end && !stop.load(Relaxed) {
            if job.cpu.sorts {
                numbers.sort();
            } else {
                std::hint::spin_loop();
            }
        }
        let end = Instant::now() + pause;
        while Instant::now() < end && !is_over() {
            std::thread::sleep(NAP.min(end.saturating_duration_since(Instant::now())));
        }
        if live.is_asked() {
            live.publish(counted());
        }
    }
    Done {
        tally: counted(),
        logs: None,
        state: None,
        trouble: None,
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
