//! The cost of waking another thread and being woken by it, on the same core and across cores.
//!
//! A program that sends one request at a time to another thread (a server, a worker, a device's
//! interrupt) pays this for each of them. In a virtual machine that gives its core back when it has
//! nothing to do, waking a thread on the other core takes the hypervisor tens of microseconds; on
//! the same core, or while the other thread spins, it takes none. Where the system happens to put
//! two threads then decides what a depth of one measures, and figures fall into two heaps.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, Thread};
use std::time::Duration;
use ugeom_machine::{clock, cpu};
use ugeom_measure::Histogram;
use ugeom_measure::units::duration_measured;

/// How long each of the three ways is measured, ns.
const MEASURE_NS: u64 = 20_000_000;

/// So many round trips are enough.
const TRIPS_MAX: u64 = 2000;

/// So many first trips are not counted: threads start and caches fill.
const WARM_UP_TRIPS: u64 = 20;

/// Times of round trips between two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trips {
    /// Half of them took at most this long, ns.
    pub median_ns: u64,
    /// A quarter took at most this long, ns.
    pub quartile_low_ns: u64,
    /// Three quarters took at most this long, ns.
    pub quartile_high_ns: u64,
    /// How many there were.
    pub trips: u64,
}

/// The cost of a wake-up there and one back, by where the threads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wakeups {
    /// Both parked, both on one core.
    pub same_core: Option<Trips>,
    /// Both parked, each on a core of its own; none with one core.
    pub across_cores: Option<Trips>,
    /// Both spinning, each on a core of its own; none with one core.
    pub spinning: Option<Trips>,
}

/// How the waiting thread waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Parked,
    Spinning,
}

impl Wakeups {
    /// Measures all three on the cores that this process may use; takes some 60 ms.
    pub fn measure() -> Self {
        let cores = cpu::Affinity::current().map(|affinity| affinity.cores());
        let cores = cores.unwrap_or_default();
        let Some(first) = cores.first().copied() else {
            return Self::default();
        };
        let across = |waiting| trips(first, *cores.get(1)?, waiting);
        Self {
            same_core: trips(first, first, Waiting::Parked),
            across_cores: across(Waiting::Parked),
            spinning: across(Waiting::Spinning),
        }
    }

    /// Whether it matters much for a depth of one on which cores the system puts two threads.
    pub fn placement_matters(&self) -> bool {
        match (self.same_core, self.across_cores) {
            (Some(same), Some(across)) => across.median_ns > 5 * same.median_ns,
            _ => false,
        }
    }
}

/// `1.40 us on the same core, 58 us across cores (0.3 us while spinning)`.
impl fmt::Display for Wakeups {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |trips: &Trips| duration_measured(trips.median_ns as f64);
        match &self.same_core {
            Some(same) => write!(out, "{} on the same core", words(same))?,
            None => return write!(out, "not measured"),
        }
        if let Some(across) = &self.across_cores {
            write!(out, ", {} across cores", words(across))?;
        }
        if let Some(spinning) = &self.spinning {
            write!(out, " ({} while spinning)", words(spinning))?;
        }
        Ok(())
    }
}

/// Whose turn it is: even for the one that asks, odd for the one that answers.
struct Turn(AtomicU64);

impl Turn {
    /// Waits until the number is at least `turn`.
    fn wait(&self, turn: u64, waiting: Waiting) {
        while self.0.load(Ordering::Acquire) < turn {
            match waiting {
                // A time-out, so that an answer that never comes cannot hang a measurement.
                Waiting::Parked => thread::park_timeout(Duration::from_secs(1)),
                Waiting::Spinning => std::hint::spin_loop(),
            }
        }
    }

    fn give(&self, turn: u64, to: &Thread, waiting: Waiting) {
        self.0.store(turn, Ordering::Release);
        if waiting == Waiting::Parked {
            to.unpark();
        }
    }
}

/// Says that there will be no more turns.
const END: u64 = u64::MAX;

/// Round trips between threads on these cores; none when they cannot be started or put there.
fn trips(asking: usize, answering: usize, waiting: Waiting) -> Option<Trips> {
    let turn = Arc::new(Turn(AtomicU64::new(0)));
    // A thread of its own, so that the caller's place is not touched.
    let asker = thread::Builder::new().spawn(move || {
        let own = thread::current();
        let theirs = Arc::clone(&turn);
        // Both are in their places before one of them spins: under a real-time scheduler a thread
        // that spins never lets another one of the same core begin.
        let (ready, is_ready) = mpsc::channel();
        let answers = move || answer(&theirs, &own, answering, waiting, &ready);
        let answerer = thread::Builder::new().spawn(answers).ok()?;
        let placed = is_ready.recv().unwrap_or(false) && cpu::pin(&[asking]).is_ok();
        if !placed {
            turn.give(END, answerer.thread(), Waiting::Parked);
            answerer.join().ok();
            return None;
        }
        let times = ask(&turn, answerer.thread(), waiting);
        turn.give(END, answerer.thread(), waiting);
        answerer.thread().unpark();
        answerer.join().ok()?;
        Some(times)
    });
    let times = asker.ok()?.join().ok()??;
    Some(Trips {
        median_ns: times.percentile(50.0)?,
        quartile_low_ns: times.percentile(25.0)?,
        quartile_high_ns: times.percentile(75.0)?,
        trips: times.count(),
    })
}

fn ask(turn: &Turn, answerer: &Thread, waiting: Waiting) -> Histogram {
    let mut times = Histogram::new();
    let started_ns = clock::now_ns();
    for trip in 0..WARM_UP_TRIPS + TRIPS_MAX {
        let before_ns = clock::now_ns();
        if before_ns - started_ns > MEASURE_NS && times.count() > 0 {
            break;
        }
        turn.give(2 * trip + 1, answerer, waiting);
        turn.wait(2 * trip + 2, waiting);
        if trip >= WARM_UP_TRIPS {
            times.record(clock::now_ns() - before_ns);
        }
    }
    times
}

/// Says whether it could be put on its core, and answers until the end.
fn answer(turn: &Turn, asker: &Thread, core: usize, waiting: Waiting, ready: &mpsc::Sender<bool>) {
    // The asker waits for it, so that it cannot be gone.
    let _ = ready.send(cpu::pin(&[core]).is_ok());
    let mut next = 1;
    loop {
        turn.wait(next, waiting);
        if turn.0.load(Ordering::Acquire) == END {
            return;
        }
        turn.give(next + 1, asker, waiting);
        next += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted_wherever_threads_can_be() {
        let wakeups = Wakeups::measure();
        let same = wakeups.same_core.unwrap();
        assert!(same.trips > 0 && same.median_ns > 0);
        assert!(same.quartile_low_ns <= same.median_ns && same.median_ns <= same.quartile_high_ns);
        let cores = cpu::Affinity::current().unwrap().cores().len();
        assert_eq!(wakeups.across_cores.is_some(), cores > 1);
        assert_eq!(wakeups.spinning.is_some(), cores > 1);
    }

    #[test]
    fn they_are_told_in_one_line() {
        let trips = |median_ns| {
            Some(Trips {
                median_ns,
                quartile_low_ns: median_ns,
                quartile_high_ns: median_ns,
                trips: 7,
            })
        };
        let virtual_machine = Wakeups {
            same_core: trips(1400),
            across_cores: trips(58_000),
            spinning: trips(300),
        };
        assert!(virtual_machine.placement_matters());
        assert_eq!(
            virtual_machine.to_string(),
            "1.40 us on the same core, 58.0 us across cores (300 ns while spinning)"
        );
        let one_core = Wakeups {
            same_core: trips(1400),
            ..Wakeups::default()
        };
        assert!(!one_core.placement_matters());
        assert_eq!(one_core.to_string(), "1.40 us on the same core");
        assert_eq!(Wakeups::default().to_string(), "not measured");
    }
}
