//! Promises of a context about its workers: when they start, when they are interrupted, when they
//! end.

mod common;

use common::until;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use ugeom_guasi::{Cancel, Context, GuasiError, Io, IoCall, Outcome, Settings, Status};
use ugeom_machine::cpu::Usage;

/// A read that waits for a byte.
fn waiting_read(fd: i32, memory: &mut u8) -> Io {
    let call = IoCall::Read { fd, memory, len: 1 };
    // SAFETY: the byte of each test outlives its context.
    unsafe { Io::new(call) }
}

fn status(context: &Context, id: ugeom_guasi::RequestId) -> Status {
    context.info(id).unwrap().status
}

/// With fewer workers than `count` they never end.
fn submit_calls_that_wait_for_each_other(context: &Context, count: usize) {
    let barrier = Arc::new(Barrier::new(count));
    let works = (0..count).map(|tag| {
        let barrier = Arc::clone(&barrier);
        let wait = move || {
            barrier.wait();
            Outcome::done(0)
        };
        (tag, wait)
    });
    assert_eq!(context.submit_batch(0, works, |_| ()).unwrap(), count);
}

#[test]
fn the_least_number_of_workers_is_there_from_the_start() {
    let context = Settings::new().workers(3, 5).open().unwrap();
    assert_eq!(context.workers(), 3);
    until(|| context.idle_workers() == 3);
}

#[test]
fn a_worker_that_is_idle_is_used_before_another_is_started() {
    let context = Settings::new().workers(0, 8).open().unwrap();
    for tag in 0..50 {
        context.submit(0, tag, || Outcome::done(0)).unwrap();
        assert_eq!(context.collect(1, 1, None, |_| ()), 1);
        until(|| context.idle_workers() == context.workers());
    }
    assert_eq!(context.workers(), 1);
}

#[test]
fn as_many_workers_start_as_there_are_calls_that_wait() {
    const COUNT: usize = 40;
    let context = Settings::new().workers(0, 0).open().unwrap();
    submit_calls_that_wait_for_each_other(&context, COUNT);
    assert_eq!(context.collect(COUNT, COUNT, None, |_| ()), COUNT);
    assert!(context.workers() >= COUNT as u32);
}

/// Short calls may have led to a limit on the workers at work; calls that wait for each other lift
/// it.
#[test]
fn calls_that_wait_for_each_other_end_after_many_short_ones() {
    const COUNT: usize = 200;
    let context = Settings::new().workers(0, 0).open().unwrap();
    let short = || {
        std::thread::sleep(Duration::from_micros(10));
        Outcome::done(0)
    };
    let submit = |count| {
        let works = (0..count).map(|tag| (tag, short));
        assert_eq!(context.submit_batch(0, works, |_| ()).unwrap(), count);
    };
    submit(COUNT);
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        submit(context.collect(1, COUNT, None, |_| ()));
    }
    submit_calls_that_wait_for_each_other(&context, COUNT);
    let all = 2 * COUNT;
    assert_eq!(context.collect(all, all, None, |_| ()), all);
}

#[test]
fn never_more_workers_than_allowed() {
    let context = Settings::new().workers(0, 2).open().unwrap();
    let at_once = Arc::new(AtomicUsize::new(0));
    let works = (0..200).map(|tag| {
        let at_once = Arc::clone(&at_once);
        let work = move || {
            assert!(at_once.fetch_add(1, Ordering::SeqCst) < 2);
            std::thread::yield_now();
            at_once.fetch_sub(1, Ordering::SeqCst);
            Outcome::done(1)
        };
        (tag, work)
    });
    context.submit_batch(0, works, |_| ()).unwrap();
    context.collect(200, 200, None, |info| assert_eq!(info.result, 1));
    assert!(context.workers() <= 2);
}

#[test]
fn idle_workers_above_the_minimum_leave() {
    let settings = Settings::new()
        .workers(1, 4)
        .idle(Duration::from_millis(30));
    let context = settings.open().unwrap();
    let barrier = Arc::new(Barrier::new(4));
    for tag in 0..4 {
        let barrier = Arc::clone(&barrier);
        let work = move || {
            barrier.wait();
            Outcome::done(0)
        };
        context.submit(0, tag, work).unwrap();
    }
    assert_eq!(context.collect(4, 4, None, |_| ()), 4);
    assert_eq!(context.workers(), 4);
    until(|| context.workers() == 1);
    // They come back when they are needed.
    context.submit(0, 9, || Outcome::done(0)).unwrap();
    assert_eq!(context.collect(1, 1, None, |_| ()), 1);
}

#[test]
fn workers_that_cannot_be_started_are_an_error_and_no_request_is_left() {
    // More than any machine has: the stack cannot be mapped.
    let settings = Settings::new().stack_bytes(1 << 46);
    let error = settings.clone().workers(1, 1).open().err().unwrap();
    assert!(matches!(error, GuasiError::NoWorker(_)), "{error}");
    let context = settings.workers(0, 4).open().unwrap();
    for _ in 0..3 {
        let error = context.submit(0, 0, || Outcome::done(0)).unwrap_err();
        assert_eq!(error.to_string(), "no worker can be started");
    }
    assert_eq!(context.collect(1, 1, Some(Duration::ZERO), |_| ()), 0);
    assert_eq!(context.workers(), 0);
}

#[test]
fn a_call_that_waits_is_interrupted() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut byte = 0;
    let context = Settings::new().workers(1, 1).open().unwrap();
    // Many times: the signal may come before, in or after the system call.
    for _ in 0..300 {
        let id = context
            .submit(0, 0, waiting_read(reader.as_raw_fd(), &mut byte))
            .unwrap();
        until(|| status(&context, id) == Status::Active);
        assert_eq!(context.cancel(id), Cancel::Interrupted);
        let mut end = (0, 0);
        let fetched = context.collect(1, 1, Some(Duration::from_secs(60)), |info| {
            end = (info.result, info.error);
        });
        assert_eq!((fetched, end), (1, (-1, libc::EINTR)));
    }
}

#[test]
fn an_interruption_never_reaches_the_next_request() {
    const ROUNDS: usize = 3_000;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut byte = 0;
    let context = Settings::new().workers(1, 1).open().unwrap();
    for round in 0..ROUNDS {
        // Ends by itself at about the time of the cancellation; then one that waits and must not
        // be interrupted.
        let spins = round % 97 * 20;
        let short = move || {
            (0..spins).for_each(|_| std::hint::spin_loop());
            Outcome::done(0)
        };
        let id = context.submit(0, 1, short).unwrap();
        let read = waiting_read(reader.as_raw_fd(), &mut byte);
        let victim = context.submit(0, 2, read).unwrap();
        context.cancel(id);
        while status(&context, victim) != Status::Active {
            std::hint::spin_loop();
        }
        writer.write_all(b"x").unwrap();
        let fetched = context.collect(2, 2, None, |info| {
            if info.tag == 2 {
                assert_eq!((info.result, info.error), (1, 0));
            }
        });
        assert_eq!(fetched, 2);
    }
}

#[test]
fn closing_interrupts_what_runs_and_cancels_what_waits() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut byte = 0;
    let context = Settings::new().workers(0, 1).open().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let id = context
        .submit(0, 0, waiting_read(reader.as_raw_fd(), &mut byte))
        .unwrap();
    until(|| status(&context, id) == Status::Active);
    let counter = Arc::clone(&ran);
    let work = move || Outcome::done(counter.fetch_add(1, Ordering::Relaxed) as isize);
    context.submit(0, 1, work).unwrap();
    drop(context);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert_eq!(Arc::strong_count(&ran), 1, "what was not run is dropped");
}

#[test]
fn several_threads_submit_and_fetch_at_once() {
    const EACH: usize = 5_000;
    let context = Settings::new().workers(0, 2).priorities(2).open().unwrap();
    let fetched = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let submitters = [0, 1].map(|priority| {
            let context = &context;
            scope.spawn(move || {
                for tag in 0..EACH {
                    context.submit(priority, tag, || Outcome::done(1)).unwrap();
                }
            })
        });
        let fetchers = [0, 1].map(|_| {
            scope.spawn(|| {
                while fetched.load(Ordering::Relaxed) < 2 * EACH {
                    let wait = Some(Duration::from_millis(5));
                    let got = context.collect(3, 64, wait, |info| assert_eq!(info.result, 1));
                    fetched.fetch_add(got, Ordering::Relaxed);
                }
            })
        });
        // A join is seen by ThreadSanitizer, the end of the scope is not.
        for thread in submitters {
            thread.join().unwrap();
        }
        for thread in fetchers {
            thread.join().unwrap();
        }
    });
    assert_eq!(fetched.load(Ordering::Relaxed), 2 * EACH);
}

#[test]
fn what_workers_used_is_told_living_and_ended() {
    const BURNED_NS: u64 = 60_000_000;
    let context = Settings::new().workers(0, 2).open().unwrap();
    let burn = || {
        let begin = Usage::of_thread();
        let mut used = Usage::default();
        while used.user_ns + used.system_ns < BURNED_NS {
            used = Usage::of_thread().since(&begin);
        }
        Outcome::done(0)
    };
    context.submit(0, 0, burn).unwrap();
    context.submit(0, 1, burn).unwrap();
    assert_eq!(context.collect(2, 2, None, |_| {}), 2);
    let total = |usage: Usage| usage.user_ns + usage.system_ns;
    // Rounded down in user space and in the kernel, for each of two workers.
    let rounded_ns = 4 * 10_000_000;
    let living = total(context.workers_usage());
    assert!(living + rounded_ns >= 2 * BURNED_NS, "{living}");
    context.close();
    let ended = context.workers_usage();
    assert!(total(ended) >= 2 * BURNED_NS, "{ended:?}");
    assert_eq!(context.workers_usage(), ended);
}
