//! Requests of several threads and kinds, and the end of a context.

use super::*;

/// Until a test gives up.
const LONG: Duration = Duration::from_secs(60);

pub fn a_context_closes_with_requests_waiting_and_running(backend: Backend) {
    for depth in [1, 8] {
        let context = settings(backend)
            .workers(0, depth)
            .ring_depth(depth)
            .open()
            .unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let mut bytes = [0u8; 20];
        let memory = bytes.as_mut_ptr();
        for at in 0..20 {
            let read = read(reader.as_raw_fd(), memory.wrapping_add(at), 1);
            context.submit(at as u32 % 4, at, read).unwrap();
        }
        drop(context);
    }
}

pub fn functions_and_calls_go_side_by_side(backend: Backend) {
    let context = settings(backend).workers(0, 3).open().unwrap();
    for round in 0..200 {
        for tag in 0..10 {
            context
                .submit(tag as u32 % 4, tag, io(IoCall::Nothing))
                .unwrap();
            context
                .submit(tag as u32 % 4, 10 + tag, || Outcome::done(0))
                .unwrap();
        }
        let mut sum = 0;
        assert_eq!(context.collect(20, 20, None, |info| sum += info.tag), 20);
        assert_eq!(sum, (0..20).sum(), "round {round}");
    }
}

/// Fetchers sleep in the ring or elsewhere; whatever comes, and whichever thread took it out of the
/// kernel, they are woken.
pub fn a_fetcher_hears_of_what_others_submit_and_fetch(backend: Backend) {
    const EACH: usize = 2_000;
    let context = Arc::new(
        settings(backend)
            .workers(0, 3)
            .ring_depth(16)
            .open()
            .unwrap(),
    );
    let fetched = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let submitters = [0, 1].map(|thread| {
            let context = &context;
            scope.spawn(move || {
                for tag in 0..EACH {
                    let submitted = match (tag + thread) % 3 {
                        0 => context.submit(0, tag, || Outcome::done(0)),
                        1 => context.submit(1, tag, io(IoCall::Nothing)),
                        _ => context.submit(2, tag, io(IoCall::Sync { fd: -1 })),
                    };
                    submitted.unwrap();
                }
            })
        });
        let fetchers = [1, 3].map(|wants| {
            let (context, fetched) = (&context, &fetched);
            scope.spawn(move || {
                use std::sync::atomic::Ordering::SeqCst;
                while fetched.load(SeqCst) < 2 * EACH {
                    // A limit: the other one may take the last.
                    let limit = Some(Duration::from_millis(200));
                    let got = context.collect(wants, 16, limit, |_| ());
                    fetched.fetch_add(got, SeqCst);
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
    assert_eq!(fetched.into_inner(), 2 * EACH);
}

pub fn a_request_outlives_the_thread_that_submitted_it(backend: Backend) {
    let context = Arc::new(wide(backend));
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut bytes = [0u8; 4];
    let memory = bytes.as_mut_ptr().expose_provenance();
    for at in 0..4 {
        let (context, fd) = (Arc::clone(&context), reader.as_raw_fd());
        let submit = move || {
            let memory = std::ptr::with_exposed_provenance_mut(memory + at);
            context.submit(0, at, read(fd, memory, 1)).unwrap()
        };
        std::thread::spawn(submit).join().unwrap();
    }
    writer.write_all(b"abcd").unwrap();
    for info in fetch(&context, 4) {
        assert_eq!(end(&info), (1, 0));
    }
    bytes.sort_unstable();
    assert_eq!(&bytes, b"abcd");
}

/// The only user of a context sleeps for the result of a second one: with a ring it sleeps in the
/// first io_uring, and the request goes to the second.
pub fn a_fetcher_hears_of_the_request_of_a_second_thread(backend: Backend) {
    for round in 0..100 {
        let context = wide(backend);
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut byte = [0u8];
        let first = read(reader.as_raw_fd(), byte.as_mut_ptr(), 1);
        context.submit(0, 1, first).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                // Before it sleeps, while it falls asleep, or after.
                std::thread::sleep(Duration::from_micros(20 * (round % 10)));
                context.submit(0, 2, io(IoCall::Nothing)).unwrap();
            });
            let mut tags = Vec::new();
            let fetched = context.collect(1, 1, Some(LONG), |info| tags.push(info.tag));
            assert_eq!((fetched, &tags[..]), (1, &[2][..]), "round {round}");
            second.join().unwrap();
        });
        writer.write_all(b"x").unwrap();
        let mut tags = Vec::new();
        assert_eq!(context.collect(1, 1, Some(LONG), |i| tags.push(i.tag)), 1);
        assert_eq!(tags, [1], "round {round}");
    }
}

/// A second thread waits for a request of the first one, which meanwhile does not enter the kernel.
pub fn a_second_thread_fetches_from_one_that_computes(backend: Backend) {
    for round in 0..20 {
        let context = wide(backend);
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut byte = [0u8];
        let first = read(reader.as_raw_fd(), byte.as_mut_ptr(), 1);
        context.submit(0, 1, first).unwrap();
        let fetched = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut tags = Vec::new();
                let count = context.collect(1, 1, Some(LONG), |info| tags.push(info.tag));
                fetched.store(true, std::sync::atomic::Ordering::Release);
                assert_eq!((count, &tags[..]), (1, &[1][..]), "round {round}");
            });
            writer.write_all(b"x").unwrap();
            while !fetched.load(std::sync::atomic::Ordering::Acquire) {
                std::hint::spin_loop();
            }
        });
    }
}

/// A cancellation reaches a request in the ring that is no longer the current one.
pub fn requests_of_the_first_thread_are_cancelled_after_the_second_came(backend: Backend) {
    let context = wide(backend);
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut byte = [0u8];
    let waits = read(reader.as_raw_fd(), byte.as_mut_ptr(), 1);
    let id = context.submit(0, 1, waits).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            context.submit(0, 2, io(IoCall::Nothing)).unwrap();
            assert_eq!(context.collect(1, 1, Some(LONG), |_| {}), 1);
            context.cancel(id);
        });
    });
    let mut tags = Vec::new();
    assert_eq!(context.collect(1, 1, Some(LONG), |i| tags.push(i.tag)), 1);
    assert_eq!(tags, [1]);
}
