//! [`divide`]: the pieces of one piece of work, done by several cores.
//!
//! ```text
//! caller    publishes the work -> takes pieces -> withdraws the work -> waits for the helpers
//! helpers   sleep -> join -> take pieces until there are none -> leave -> poll -> sleep
//! ```
//! Pieces are taken one by one, so a helper that wakes late, or not at all, costs nothing: the
//! caller does what is left. There is one helper for each further core, [`HELPERS_MAX`] at most,
//! started by the first call. They serve one caller at a time; another one meanwhile does its work
//! alone, since the cores have work.

use crate::mutex::{Condvar, Mutex};
use std::hint::spin_loop;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The most helpers of a process.
pub(crate) const HELPERS_MAX: usize = 7;
/// How long a helper polls for more work before it sleeps: a client that waits for each of its
/// large requests comes back sooner.
const POLL: Duration = Duration::from_micros(50);
/// Turns between two looks at the clock.
const TURNS: usize = 64;

/// Work that is being divided.
struct CrewJob {
    /// Lives until the caller of [`divide`] has withdrawn the job and all helpers have left.
    work: &'static (dyn Fn(usize) + Sync),
    pieces: usize,
    /// The next piece that is not taken.
    next: AtomicUsize,
    /// Helpers that may still use the job.
    joined: AtomicUsize,
    panicked: AtomicBool,
}

impl CrewJob {
    fn take_pieces(&self) {
        loop {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.pieces {
                return;
            }
            (self.work)(piece);
        }
    }
}

/// A job in the hands of helpers.
#[derive(Clone, Copy)]
struct Shared(&'static CrewJob);

#[derive(Default)]
struct Crew {
    /// Held by the caller whose work is being divided.
    caller: Mutex<()>,
    current: Mutex<Option<Shared>>,
    /// How many jobs there have been.
    jobs: AtomicU64,
    wake: Condvar,
    helpers: usize,
}

impl Crew {
    /// Starts the helpers; those that the system has no room for are missing.
    fn start() -> &'static Self {
        static CREW: OnceLock<Crew> = OnceLock::new();
        static STARTED: OnceLock<()> = OnceLock::new();
        let crew = CREW.get_or_init(|| {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            Self {
                helpers: (cores - 1).min(HELPERS_MAX),
                ..Self::default()
            }
        });
        STARTED.get_or_init(|| {
            for number in 0..crew.helpers {
                let name = format!("crew{number}");
                // The callers do without one that cannot be started.
                let _ = thread::Builder::new().name(name).spawn(|| crew.help());
            }
        });
        crew
    }

    /// The loop of a helper, which runs as long as the process.
    fn help(&self) {
        let mut seen = 0;
        loop {
            self.look_out(seen);
            let shared = {
                let mut current = self.current.lock();
                while current.is_none() || self.jobs.load(Ordering::Relaxed) == seen {
                    current = self.wake.wait(current);
                }
                seen = self.jobs.load(Ordering::Relaxed);
                let shared = current.as_ref().copied();
                // Under the lock: the caller that withdraws the job sees it.
                shared.inspect(|shared| {
                    shared.0.joined.fetch_add(1, Ordering::Relaxed);
                })
            };
            if let Some(Shared(job)) = shared {
                if catch_unwind(AssertUnwindSafe(|| job.take_pieces())).is_err() {
                    job.panicked.store(true, Ordering::Relaxed);
                }
                // The caller sees what was written here. Nothing of the job is used any more.
                job.joined.fetch_sub(1, Ordering::Release);
            }
        }
    }

    fn look_out(&self, seen: u64) {
        let until = Instant::now() + POLL;
        while self.jobs.load(Ordering::Relaxed) == seen {
            for _ in 0..TURNS {
                spin_loop();
            }
            if Instant::now() >= until {
                return;
            }
            // Other threads need the core.
            thread::yield_now();
        }
    }
}

/// Takes a job back, also when the caller's own piece panics.
struct Withdrawn<'a>(&'a Crew, &'static CrewJob);

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        *self.0.current.lock() = None;
        // Each helper that joined has one piece at most.
        self.1.next.fetch_max(self.1.pieces, Ordering::Relaxed);
        let mut turns = 0;
        while self.1.joined.load(Ordering::Acquire) > 0 {
            spin_loop();
            turns += 1;
            if turns % TURNS == 0 {
                thread::yield_now();
            }
        }
    }
}

/// Calls `work` once with each number below `pieces`, on this thread and on helpers. Returns when
/// all of them have returned.
///
/// # Panics
/// When a call panics.
pub fn divide(pieces: usize, work: &(dyn Fn(usize) + Sync)) {
    let alone = || (0..pieces).for_each(work);
    if pieces < 2 {
        return alone();
    }
    let crew = Crew::start();
    let caller = match crew.caller.try_lock() {
        Some(caller) if crew.helpers > 0 => caller,
        _ => return alone(),
    };
    // SAFETY: a reference to the same value with a longer life. It is used by the calls of
    // `take_pieces` of this function and of helpers that have joined; `Withdrawn` lets no helper
    // join any more and waits until all have left, before this function returns or unwinds.
    let work: &'static (dyn Fn(usize) + Sync) = unsafe {
        std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work)
    };
    let job = CrewJob {
        work,
        pieces,
        next: AtomicUsize::new(0),
        joined: AtomicUsize::new(0),
        panicked: AtomicBool::new(false),
    };
    // SAFETY: as above: no helper uses the job after `Withdrawn` has been dropped, and the job is
    // dropped after that.
    let shared: &'static CrewJob = unsafe { &*std::ptr::from_ref(&job) };
    {
        let withdrawn = Withdrawn(crew, shared);
        {
            let mut current = crew.current.lock();
            *current = Some(Shared(shared));
            crew.jobs.fetch_add(1, Ordering::Relaxed);
        }
        crew.wake.notify_all();
        job.take_pieces();
        drop(withdrawn);
    }
    drop(caller);
    assert!(
        !job.panicked.load(Ordering::Relaxed),
        "a piece of divided work panicked"
    );
}

/// The pieces that [`chunks`] makes at most.
pub(crate) const CHUNKS_MAX: usize = 16;

/// Divides `data` into at most [`CHUNKS_MAX`] chunks of a multiple of `unit` bytes, no smaller than
/// `least` bytes, and calls `work` once with each and where it begins, on this thread and on
/// helpers. Allocates nothing.
///
/// # Errors
/// The error of the first chunk, by its place, that failed.
///
/// # Panics
/// When a call panics, or `unit` is 0.
pub fn chunks<E: Send>(
    data: &mut [u8],
    (unit, least): (usize, usize),
    work: impl Fn(usize, &mut [u8]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let length = data
        .len()
        .div_ceil(CHUNKS_MAX)
        .max(least)
        .next_multiple_of(unit);
    let count = data.len().div_ceil(length);
    let mut chunks = data.chunks_mut(length);
    let places: [Mutex<Option<&mut [u8]>>; CHUNKS_MAX] =
        std::array::from_fn(|_| Mutex::new(chunks.next()));
    let failed: Mutex<Option<(usize, E)>> = Mutex::new(None);
    divide(count, &|number| {
        let Some(chunk) = places[number].lock().take() else { return };
        if let Err(error) = work(number * length, chunk) {
            let mut failed = failed.lock();
            if failed.as_ref().is_none_or(|(first, _)| number < *first) {
                *failed = Some((number, error));
            }
        }
    });
    failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn chunks_cover_all_bytes_once_in_whole_units() {
        let large = 1 << 20;
        for (length, unit, least) in [
            (large, 4096, large / 16),
            (100, 7, 1),
            (5, 4096, 1),
            (0, 8, 8),
            (large, 48, 16),
        ] {
            let mut data = vec![0_u8; length];
            let result = chunks(&mut data, (unit, least), |at, chunk| {
                assert!(at.is_multiple_of(unit) && chunk.len() >= least.min(length - at));
                assert!(chunk == vec![0; chunk.len()], "once");
                chunk.fill(1);
                Ok::<(), ()>(())
            });
            assert_eq!(result, Ok(()));
            assert!(data == vec![1; length], "{length} {unit} {least}");
        }
    }

    #[test]
    fn the_first_error_by_place_is_the_result() {
        for _ in 0..if cfg!(miri) { 5 } else { 50 } {
            let result = chunks(&mut [0; 1600], (100, 1), |at, _| match at {
                300 | 900 | 1500 => Err(at),
                _ => Ok(()),
            });
            assert_eq!(result, Err(300));
        }
    }

    #[test]
    fn every_piece_is_done_once() {
        for pieces in [0, 1, 2, 3, 17, if cfg!(miri) { 100 } else { 1000 }] {
            let done: Vec<AtomicU32> = (0..pieces).map(|_| AtomicU32::new(0)).collect();
            divide(pieces, &|piece| {
                done[piece].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|one| one.load(Ordering::Relaxed) == 1));
        }
    }

    /// The caller sees the helpers' writes, also while other callers divide work.
    #[test]
    fn many_callers_get_their_own_results() {
        thread::scope(|scope| {
            for seed in 0..4_u64 {
                scope.spawn(move || {
                    for round in 0..if cfg!(miri) { 20 } else { 500 } {
                        let places: Vec<AtomicU64> = (0..16).map(|_| AtomicU64::new(0)).collect();
                        divide(16, &|piece| {
                            let value = seed << 32 | round << 8 | piece as u64;
                            places[piece].store(value, Ordering::Relaxed);
                        });
                        for (piece, place) in places.iter().enumerate() {
                            let value = seed << 32 | round << 8 | piece as u64;
                            assert_eq!(place.load(Ordering::Relaxed), value);
                        }
                    }
                });
            }
        });
    }

    /// Two pieces that wait for each other end only when two threads take them.
    #[test]
    fn pieces_run_at_the_same_time() {
        if thread::available_parallelism().map_or(1, NonZero::get) < 2 {
            println!("SKIP pieces_run_at_the_same_time: one core");
            return;
        }
        let here = AtomicUsize::new(0);
        // Another test may have the helpers: then one thread sees both, and tries again.
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            here.store(0, Ordering::Relaxed);
            let together = AtomicBool::new(false);
            divide(2, &|_| {
                here.fetch_add(1, Ordering::Relaxed);
                let deadline = Instant::now() + Duration::from_millis(50);
                while Instant::now() < deadline && !together.load(Ordering::Relaxed) {
                    if here.load(Ordering::Relaxed) == 2 {
                        together.store(true, Ordering::Relaxed);
                    }
                    thread::yield_now();
                }
                here.fetch_sub(1, Ordering::Relaxed);
            });
            if together.load(Ordering::Relaxed) {
                return;
            }
            assert!(Instant::now() < until, "never two at a time");
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_ends_nothing_else() {
        for _ in 0..if cfg!(miri) { 2 } else { 20 } {
            let panics = catch_unwind(|| divide(8, &|piece| assert_ne!(piece, 5)));
            assert!(panics.is_err());
        }
        every_piece_is_done_once();
    }
}
