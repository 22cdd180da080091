//! The steps of a cancellation one by one, with as much time between two of them as the worker
//! needs for its worst: the race of `an_interruption_never_reaches_the_next_request`, on order.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

use crate::shared::Shared;
use crate::state::Withdrawal;
use crate::{Context, Info, Io, IoCall, Outcome, RequestId, Settings, Status};

/// Longer than a worker takes to its next request, if nothing holds it.
const AMPLE: Duration = Duration::from_millis(30);

/// A request that runs until it may end, without a system call that could be interrupted.
struct Running {
    id: RequestId,
    may_end: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
}

impl Running {
    fn start(context: &Context) -> Running {
        let (may_end, ends) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (told, tells) = (Arc::clone(&may_end), Arc::clone(&ends));
        let work = move || {
            while !told.load(SeqCst) {
                std::thread::yield_now();
            }
            tells.store(true, SeqCst);
            Outcome::done(1)
        };
        let id = context.submit(0, 1, work).unwrap();
        until_begun(context, id);
        Running { id, may_end, ends }
    }

    fn withdraw(&self, shared: &Shared) -> Withdrawal {
        let slot = shared.slab.slot(self.id.slot);
        slot.state.withdraw(self.id.generation)
    }

    fn let_end(&self) {
        self.may_end.store(true, SeqCst);
        while !self.ends.load(SeqCst) {
            std::thread::yield_now();
        }
    }
}

fn until_begun(context: &Context, id: RequestId) {
    while context.info(id).unwrap().status == Status::Pending {
        std::thread::yield_now();
    }
}

/// A request behind it that waits in a system call, and what both came to.
fn next_request(context: &Context, between: impl FnOnce(&Shared)) -> Vec<Info> {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut byte = 0_u8;
    let call = IoCall::Read {
        fd: reader.as_raw_fd(),
        memory: &raw mut byte,
        len: 1,
    };
    // SAFETY: the byte lives until both requests were collected.
    let next = context.submit(0, 2, unsafe { Io::new(call) }).unwrap();
    sleep(AMPLE);
    between(&context.shared);
    until_begun(context, next);
    sleep(AMPLE);
    writer.write_all(b"x").unwrap();
    let mut ended = Vec::new();
    context.collect(2, 2, None, |info| ended.push(info));
    ended
}

fn results(ended: &[Info]) -> Vec<(usize, isize, i32)> {
    let result = |info: &Info| (info.tag, info.result, info.error);
    ended.iter().map(result).collect()
}

#[test]
fn a_request_waits_for_the_signal_that_was_meant_for_it() {
    let context = Settings::new().workers(1, 1).open().unwrap();
    let running = Running::start(&context);
    let withdrawal = running.withdraw(&context.shared);
    let Withdrawal::Signal(worker) = withdrawal else { panic!("{withdrawal:?}") };
    // The canceller sleeps between its two steps; the function ends, and the next request waits.
    running.let_end();
    let ended = next_request(&context, |shared| {
        let status = context.info(running.id).unwrap().status;
        assert_eq!(status, Status::Active, "it ended before the signal");
        shared.interrupt(worker);
        shared.slab.slot(running.id.slot).state.sent();
    });
    assert_eq!(results(&ended), [(1, 1, 0), (2, 1, 0)]);
}

#[test]
fn the_signal_that_comes_again_ends_with_its_request() {
    let context = Settings::new().workers(1, 1).open().unwrap();
    let running = Running::start(&context);
    context.cancel(running.id);
    // The handler has set its timer by now.
    sleep(AMPLE);
    running.let_end();
    let ended = next_request(&context, |_| {});
    assert_eq!(results(&ended), [(1, 1, 0), (2, 1, 0)]);
}
