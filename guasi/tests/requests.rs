//! Promises of a context about requests: they run once, in order of priority, come back in order,
//! and are known until they are released.

mod common;

use common::readable;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ugeom_guasi::{Cancel, Context, GuasiError, Info, Io, IoCall, Outcome, Settings, Status};

fn one_worker() -> Context {
    Settings::new().workers(1, 1).priorities(4).open().unwrap()
}

/// Keeps the only worker busy until the sender is dropped or used.
fn block(context: &Context) -> Sender<()> {
    let (release, wait) = mpsc::channel::<()>();
    let (began, begun) = mpsc::channel();
    let wait: Mutex<Receiver<()>> = Mutex::new(wait);
    let work = move || {
        began.send(()).unwrap();
        let _ = wait.lock().unwrap().recv();
        Outcome::done(0)
    };
    context.submit(0, usize::MAX, work).unwrap();
    begun.recv().unwrap();
    release
}

fn fetch_all(context: &Context, count: usize) -> Vec<Info> {
    let mut all = Vec::new();
    let got = context.fetch(count, usize::MAX, None, |info| all.push(info));
    assert_eq!(got, all.len());
    all
}

fn tags(infos: &[Info]) -> Vec<usize> {
    infos.iter().map(|info| info.tag).collect()
}

#[test]
fn every_request_runs_once() {
    const COUNT: usize = 10_000;
    let context = Settings::new().workers(0, 3).open().unwrap();
    let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..COUNT).map(|_| AtomicUsize::new(0)).collect());
    let works = (0..COUNT).map(|tag| {
        let runs = Arc::clone(&runs);
        let work = move || {
            runs[tag].fetch_add(1, Ordering::Relaxed);
            Outcome::done(tag as isize)
        };
        (tag, work)
    });
    let mut submitted = 0;
    assert_eq!(
        context.submit_batch(0, works, |_| submitted += 1).unwrap(),
        COUNT
    );
    assert_eq!(submitted, COUNT);
    let infos = fetch_all(&context, COUNT);
    let mut tags = tags(&infos);
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..COUNT));
    for info in infos {
        assert_eq!(
            (info.result, info.status),
            (info.tag as isize, Status::Complete)
        );
        assert!(context.release(info.id));
    }
    assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1));
}

#[test]
fn waiting_requests_run_by_priority_and_then_in_order() {
    let context = one_worker();
    let release = block(&context);
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    for (tag, priority) in [2, 0, 3, 2, 1, 0].into_iter().enumerate() {
        let order = Arc::clone(&order);
        let work = move || {
            order.lock().unwrap().push(tag);
            Outcome::done(0)
        };
        context.submit(priority, tag, work).unwrap();
    }
    drop(release);
    fetch_all(&context, 7);
    assert_eq!(*order.lock().unwrap(), [1, 5, 4, 0, 3, 2]);
}

#[test]
fn results_come_back_by_priority_and_then_in_the_order_of_their_ends() {
    let context = one_worker();
    let priorities = [3, 1, 0, 1, 3, 0];
    for (tag, priority) in priorities.into_iter().enumerate() {
        context.submit(priority, tag, || Outcome::done(0)).unwrap();
        // One after the other, so that the order of ends is known.
        while context.idle_workers() == 0 {
            std::thread::yield_now();
        }
    }
    let mut first = Vec::new();
    // In parts: what was taken from the workers and not handed over keeps its place.
    assert_eq!(context.fetch(1, 3, None, |info| first.push(info)), 3);
    context.submit(0, 6, || Outcome::done(0)).unwrap();
    let rest = fetch_all(&context, 4);
    assert_eq!(tags(&first), [2, 5, 1]);
    assert_eq!(tags(&rest), [6, 3, 0, 4]);
}

#[test]
fn a_fetch_waits_for_as_many_as_it_wants_and_no_longer_than_it_may() {
    let context = one_worker();
    let start = Instant::now();
    let time = Duration::from_millis(1_020);
    assert_eq!(context.fetch(1, 1, Some(time), |_| ()), 0);
    assert!(start.elapsed() >= time);
    context.submit(0, 0, || Outcome::done(0)).unwrap();
    let release = block(&context);
    // One of two: the time passes, and what there is comes back.
    assert_eq!(
        context.fetch(2, 2, Some(Duration::from_millis(10)), |_| ()),
        1
    );
    drop(release);
    assert_eq!(context.fetch(1, 0, None, |_| ()), 0, "nothing is wanted");
    assert_eq!(
        context.fetch(5, 1, None, |_| ()),
        1,
        "no more than the most"
    );
}

#[test]
fn a_request_tells_its_status_until_it_is_released() {
    let context = one_worker();
    let release = block(&context);
    let id = context
        .submit(1, 8, || Outcome::failed(libc::ENOSPC))
        .unwrap();
    let info = context.info(id).unwrap();
    assert_eq!(
        (info.status, info.result, info.error),
        (Status::Pending, -1, 0)
    );
    assert!(!context.release(id), "not fetched");
    drop(release);
    fetch_all(&context, 2);
    let info = context.info(id).unwrap();
    assert_eq!((info.status, info.tag), (Status::Complete, 8));
    assert_eq!((info.result, info.error), (-1, libc::ENOSPC));
    assert!(context.release(id));
    assert!(!context.release(id), "twice");
    assert_eq!(context.info(id), None);
    assert_eq!(context.cancel(id), Cancel::Unknown);
    let next = context.submit(0, 9, || Outcome::done(0)).unwrap();
    assert_ne!(next, id, "the slot is used again under another name");
    assert_eq!(context.info(id), None);
}

#[test]
fn a_cancelled_request_never_runs_and_is_dropped() {
    struct Flag(Arc<AtomicUsize>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let context = one_worker();
    let release = block(&context);
    let drops = Arc::new(AtomicUsize::new(0));
    let flag = Flag(Arc::clone(&drops));
    let work = move || -> Outcome {
        let _flag = &flag;
        unreachable!("it was cancelled")
    };
    let id = context.submit(0, 5, work).unwrap();
    assert_eq!(context.cancel(id), Cancel::Canceled);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    let infos = fetch_all(&context, 1);
    assert_eq!(tags(&infos), [5]);
    let end = (infos[0].status, infos[0].result, infos[0].error);
    assert_eq!(end, (Status::Canceled, -1, libc::ECANCELED));
    assert_eq!(context.cancel(id), Cancel::Complete);
    drop(release);
    fetch_all(&context, 1);
}

#[test]
fn a_panic_ends_its_request_and_not_the_worker() {
    let context = one_worker();
    let work = || -> Outcome { panic!("on purpose") };
    context.submit(0, 1, work).unwrap();
    context.submit(0, 2, || Outcome::done(3)).unwrap();
    let infos = fetch_all(&context, 2);
    assert_eq!((infos[0].result, infos[0].error), (-1, libc::EFAULT));
    assert_eq!((infos[1].result, infos[1].error), (3, 0));
}

#[test]
fn wrong_requests_are_refused_by_name() {
    let context = Settings::new().workers(1, 1).requests(2).open().unwrap();
    let error = context.submit(1, 0, || Outcome::done(0)).unwrap_err();
    assert_eq!(error.to_string(), "priority 1 is not below 1");
    let release = block(&context);
    context.submit(0, 0, || Outcome::done(0)).unwrap();
    let error = context.submit(0, 0, || Outcome::done(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "all 2 requests of the context are in use"
    );
    drop(release);
    let error = Settings::new().priorities(0).open().err().unwrap();
    assert_eq!(
        error.to_string(),
        "the number of priorities is 0; it can be 1 to 1048576"
    );
    let error = Settings::new().workers(3, 2).open().err().unwrap();
    assert_eq!(
        error.to_string(),
        "the least number of workers is 3; it can be 0 to 2"
    );
}

#[test]
fn room_that_cancelled_requests_gave_back_can_be_used_while_workers_are_busy() {
    let context = Settings::new().workers(1, 1).requests(4).open().unwrap();
    let release = block(&context);
    let mut refused = 0;
    for _ in 0..100 {
        match context.submit(0, 0, || Outcome::done(0)) {
            Ok(id) => {
                context.cancel(id);
                assert_eq!(context.collect(1, 1, None, |_| ()), 1);
            }
            // The names of cancelled requests fill the queue until a worker comes by.
            Err(GuasiError::Full { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0);
    drop(release);
    context.collect(1, 1, None, |_| ());
    // The worker has ended its request, and is about to come by.
    let limit = Instant::now() + Duration::from_secs(60);
    while let Err(error) = context.submit(0, 7, || Outcome::done(0)) {
        assert!(matches!(error, GuasiError::Full { .. }), "{error}");
        assert!(Instant::now() < limit, "the room does not come back");
        std::thread::yield_now();
    }
    assert_eq!(
        context.collect(1, 1, None, |info| assert_eq!(info.tag, 7)),
        1
    );
}

#[test]
fn system_calls_answer_as_the_manual_says() {
    let context = one_worker();
    let (reader, writer): (PipeReader, PipeWriter) = std::io::pipe().unwrap();
    let (mut memory, data) = ([0u8; 8], *b"guasi");
    let call = |call| {
        // SAFETY: every request is fetched before what it uses goes away.
        context.submit(0, 0, unsafe { Io::new(call) }).unwrap();
        let mut end = (0, 0);
        context.collect(1, 1, None, |info| end = (info.result, info.error));
        end
    };
    let (fd, len) = (writer.as_raw_fd(), data.len());
    assert_eq!(
        call(IoCall::Write {
            fd,
            memory: data.as_ptr(),
            len
        }),
        (5, 0)
    );
    let (fd, len) = (reader.as_raw_fd(), memory.len());
    assert_eq!(
        call(IoCall::Read {
            fd,
            memory: memory.as_mut_ptr(),
            len
        }),
        (5, 0)
    );
    assert_eq!(&memory[..5], &data);
    let wrong = IoCall::ReadAt {
        fd,
        memory: memory.as_mut_ptr(),
        len,
        offset: 0,
    };
    assert_eq!(call(wrong), (-1, libc::ESPIPE));
    assert_eq!(call(IoCall::Sync { fd: -1 }), (-1, libc::EBADF));
    let path = c"/nonexistent/file".as_ptr();
    assert_eq!(
        call(IoCall::Open {
            path,
            flags: 0,
            mode: 0
        }),
        (-1, libc::ENOENT)
    );
}

#[test]
fn the_event_descriptor_is_readable_while_there_is_something_to_fetch() {
    let context = one_worker();
    assert!(!readable(&context, 0));
    for round in 0..100 {
        context.submit(0, round, || Outcome::done(0)).unwrap();
        context.submit(0, round, || Outcome::done(0)).unwrap();
        assert!(readable(&context, 10_000));
        assert_eq!(context.collect(1, 1, None, |_| ()), 1);
        assert!(readable(&context, 10_000), "one is left, or still to come");
        assert_eq!(context.collect(1, 1, None, |_| ()), 1);
        assert!(!readable(&context, 0));
    }
}
