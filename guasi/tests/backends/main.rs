//! Promises of a context about system calls, by workers and by the ring: each test runs with
//! workers and with the ring (where the kernel allows one), and compares both with the manual.

mod cached;
#[path = "../common/mod.rs"]
mod common;
mod held;
mod requests;
mod sockets;
mod together;

use common::until;
use std::cell::Cell;
use std::io::{PipeReader, PipeWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ugeom_guasi::{Backend, Cancel, Context, Info, Io, IoCall, Outcome, RequestId, Settings};
use ugeom_guasi::{GuasiError, Status};
use ugeom_testkit::begins;

/// How many calls run at a time in [`narrow`] contexts.
const ONE: u32 = 1;

thread_local! {
    /// Whether contexts are made for one thread.
    static ONE_THREAD: Cell<bool> = const { Cell::new(false) };
}

fn settings(backend: Backend) -> Settings {
    let settings = Settings::new().priorities(4).backend(backend);
    settings.one_thread(ONE_THREAD.get())
}

/// One call at a time: one worker, or a ring of depth one.
fn narrow(backend: Backend) -> Context {
    settings(backend)
        .workers(0, ONE)
        .ring_depth(ONE)
        .open()
        .unwrap()
}

fn wide(backend: Backend) -> Context {
    settings(backend).open().unwrap()
}

/// Runs a test with each backend that can be had here, and with a ring for one thread. `Auto` also
/// runs cached reads in the thread that submits them.
fn each(check: impl Fn(Backend)) {
    check(Backend::Workers);
    match settings(Backend::Ring).open() {
        Ok(_) => {
            check(Backend::Ring);
            // Tests with several threads have to pass as well: they may only become slower.
            ONE_THREAD.set(true);
            check(Backend::Ring);
            ONE_THREAD.set(false);
            check(Backend::Auto);
        }
        Err(error @ GuasiError::NoRing { .. }) => ugeom_testkit::skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// Defines tests that take a backend.
macro_rules! backends {
    ($($module:ident :: $name:ident)*) => {
        $(#[test] fn $name() { each($module::$name); })*
    };
}

// The test itself is what the sanitizer reports: it closes what a worker reads from.
#[test]
#[cfg_attr(tsan, ignore = "it closes a descriptor in use on purpose")]
fn closing_a_descriptor_in_flight_harms_nobody() {
    each(sockets::closing_a_descriptor_in_flight_harms_nobody);
}

backends! {
    cached::reads_are_whole_whatever_part_of_them_is_cached
    cached::an_eventfd_answers_as_pread_does
    cached::a_cached_read_overtakes_nothing_that_waits
    cached::cached_reads_come_back_by_priority_in_every_thread
    held::requests_beside_results_run_when_the_program_asks
    held::requests_beside_results_run_when_the_results_are_fetched
    held::requests_beside_results_run_for_another_thread_that_waits
    held::requests_beside_results_end_when_they_are_cancelled
    requests::calls_answer_as_the_manual_says
    requests::calls_without_data_answer_as_the_manual_says
    requests::a_long_batch_comes_back_whole_and_right
    requests::what_waits_runs_by_priority_and_then_in_order
    requests::results_come_back_by_priority
    requests::what_waits_is_cancelled_and_never_runs
    requests::what_runs_is_interrupted_with_eintr
    requests::an_interruption_ends_its_request_alone
    requests::a_request_tells_its_status_until_it_is_released
    requests::a_fetch_waits_for_as_many_as_it_wants_and_no_longer_than_it_may
    requests::the_descriptor_is_readable_while_there_is_something_to_fetch
    together::a_context_closes_with_requests_waiting_and_running
    together::functions_and_calls_go_side_by_side
    together::a_fetcher_hears_of_what_others_submit_and_fetch
    together::a_fetcher_hears_of_the_request_of_a_second_thread
    together::a_second_thread_fetches_from_one_that_computes
    together::requests_of_the_first_thread_are_cancelled_after_the_second_came
    together::a_request_outlives_the_thread_that_submitted_it
    sockets::sockets_wait_until_they_are_ready
    sockets::a_socket_that_does_not_block_is_waited_for
    sockets::the_time_of_a_socket_call_runs_out
    sockets::a_pipe_without_readers_is_epipe_and_no_signal
}

/// A read of one byte; `memory` outlives the request.
fn read(fd: i32, memory: *mut u8, len: usize) -> Io {
    // SAFETY: the memory of each test outlives its requests.
    unsafe { Io::new(IoCall::Read { fd, memory, len }) }
}

fn write(fd: i32, data: &'static [u8]) -> Io {
    let (memory, len) = (data.as_ptr(), data.len());
    // SAFETY: the data is static.
    unsafe { Io::new(IoCall::Write { fd, memory, len }) }
}

fn io(call: IoCall) -> Io {
    // SAFETY: each test keeps what its calls name until they have ended.
    unsafe { Io::new(call) }
}

fn fetch(context: &Context, count: usize) -> Vec<Info> {
    let mut all = Vec::new();
    let limit = Some(Duration::from_secs(60));
    context.fetch(count, usize::MAX, limit, |info| all.push(info));
    assert!(all.len() >= count, "{} of {count} came back", all.len());
    all
}

fn end(info: &Info) -> (isize, i32) {
    (info.result, info.error)
}

/// Submits one call and waits for its end.
fn call(context: &Context, call: IoCall) -> (isize, i32) {
    context.submit(0, 0, io(call)).unwrap();
    end(&fetch(context, 1)[0])
}

fn status(context: &Context, id: RequestId) -> Status {
    context.info(id).unwrap().status
}

/// A context in which one call runs, and waits for a byte of the pipe.
struct Blocked {
    context: Context,
    writer: PipeWriter,
    id: RequestId,
    _reader: PipeReader,
    _byte: Box<u8>,
}

/// The same pipe by a number that other tests of this process do not get once it is closed.
fn with_high_number(reader: &PipeReader) -> PipeReader {
    const HIGH: libc::c_int = 900;
    // SAFETY: a call without pointers on an open descriptor.
    let number = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
    assert!(number >= HIGH, "{}", std::io::Error::last_os_error());
    // SAFETY: it is open, and has no owner yet.
    PipeReader::from(unsafe { OwnedFd::from_raw_fd(number) })
}

fn blocked(backend: Backend) -> Blocked {
    let context = narrow(backend);
    let (reader, writer) = std::io::pipe().unwrap();
    let reader = with_high_number(&reader);
    let mut byte = Box::new(0);
    let id = context
        .submit(0, 99, read(reader.as_raw_fd(), &raw mut *byte, 1))
        .unwrap();
    until(|| status(&context, id) == Status::Active);
    Blocked {
        context,
        writer,
        id,
        _reader: reader,
        _byte: byte,
    }
}

#[test]
fn the_backend_and_the_reason_are_told() {
    let context = settings(Backend::Workers).open().unwrap();
    assert_eq!(
        (context.backend(), context.has_ring()),
        ("workers: asked for", false)
    );
    let context = settings(Backend::Auto).open().unwrap();
    let expected = if context.has_ring() {
        "ring: the kernel allows it"
    } else {
        "workers: io_uring cannot be used: "
    };
    begins(&context.backend(), expected);
    for backend in Backend::ALL {
        assert_eq!(backend.name().parse(), Ok(backend));
    }
    assert!("uring".parse::<Backend>().unwrap_err().contains("`uring`"));
    let error = settings(Backend::Auto).ring_depth(0).open().err().unwrap();
    assert_eq!(
        error.to_string(),
        "the depth of the ring is 0; it can be 1 to 32768"
    );
}

#[test]
fn a_ring_alone_needs_no_worker() {
    let Ok(context) = settings(Backend::Ring).open() else {
        return ugeom_testkit::skip("no io_uring here");
    };
    let works = (0..1000).map(|tag| (tag, io(IoCall::Nothing)));
    context.submit_batch(0, works, |_| ()).unwrap();
    assert_eq!(context.collect(1000, 1000, None, |_| ()), 1000);
    assert_eq!(context.workers(), 0);
}
