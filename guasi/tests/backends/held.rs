//! A program that has results to fetch and submits more: a ring may hold those requests until its
//! next call, and no longer.

use super::*;

/// Until a test gives up.
const LONG: Duration = Duration::from_secs(60);

/// How often each case is tried: a request is held only if it was submitted within microseconds.
const TRIES: usize = 200;

/// A context with results to fetch, and a write to a pipe that was submitted after them.
struct Beside {
    context: Context,
    id: RequestId,
    reader: PipeReader,
    _writer: PipeWriter,
}

const RESULTS: usize = 40;

fn beside(context: Context) -> Beside {
    let (reader, writer) = std::io::pipe().unwrap();
    let no_ops = (0..RESULTS + 1).map(|tag| (tag, io(IoCall::Nothing)));
    context.submit_batch(0, no_ops, |_| ()).unwrap();
    assert_eq!(context.collect(1, 1, Some(LONG), |_| ()), 1);
    // The second of two submissions in a row comes within microseconds.
    context.submit(0, 100, io(IoCall::Nothing)).unwrap();
    let written = write(writer.as_raw_fd(), b"x");
    let id = context.submit(0, 101, written).unwrap();
    Beside {
        context,
        id,
        reader,
        _writer: writer,
    }
}

impl Beside {
    /// Whether the byte comes within so many milliseconds.
    fn is_written(&self, wait_ms: i32) -> bool {
        let mut poll = libc::pollfd {
            fd: self.reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, ours.
        unsafe { libc::poll(&raw mut poll, 1, wait_ms) > 0 }
    }
}

pub fn requests_beside_results_run_when_the_program_asks(backend: Backend) {
    for _ in 0..TRIES {
        let beside = beside(wide(backend));
        until(|| status(&beside.context, beside.id) == Status::Complete);
        assert!(beside.is_written(0));
    }
}

pub fn requests_beside_results_run_when_the_results_are_fetched(backend: Backend) {
    for max in [1, 100] {
        for _ in 0..TRIES {
            let beside = beside(wide(backend));
            let mut tags = Vec::new();
            while tags.len() < RESULTS + 2 {
                let got = beside
                    .context
                    .collect(1, max, Some(LONG), |info| tags.push(info.tag));
                assert!(got > 0, "{tags:?}");
            }
            assert!(tags.contains(&101) && beside.is_written(0), "{tags:?}");
        }
    }
}

pub fn requests_beside_results_run_for_another_thread_that_waits(backend: Backend) {
    let began = Instant::now();
    for _ in 0..TRIES {
        let Beside { context, .. } = &beside(wide(backend));
        let all = RESULTS + 2;
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(context.fetch(all, all, Some(LONG), |_| ()), all));
        });
    }
    assert!(began.elapsed() < LONG);
}

pub fn requests_beside_results_end_when_they_are_cancelled(backend: Backend) {
    for _ in 0..TRIES {
        let beside = beside(wide(backend));
        let end = match beside.context.cancel(beside.id) {
            Cancel::Canceled => Status::Canceled,
            _ => Status::Complete,
        };
        until(|| status(&beside.context, beside.id) == end);
        let infos = fetch(&beside.context, RESULTS + 2);
        let info = infos.iter().find(|info| info.tag == 101).unwrap();
        assert_eq!(info.status, end);
        let is_done = info.status == Status::Complete && info.result == 1;
        assert_eq!(beside.is_written(0), is_done);
    }
}

#[test]
#[cfg_attr(
    tsan,
    ignore = "two submissions take longer than the time within which one is held"
)]
fn a_ring_for_one_thread_holds_requests_beside_results() {
    // Beside other tests on few cores, no two submissions may come together for seconds.
    let began = Instant::now();
    while began.elapsed() < LONG {
        let Ok(context) = settings(Backend::Ring).open() else {
            return ugeom_testkit::skip("no io_uring here");
        };
        let beside = beside(context);
        if !beside.is_written(100) {
            until(|| status(&beside.context, beside.id) == Status::Complete);
            assert!(beside.is_written(0));
            return;
        }
    }
    panic!("none was held");
}
