//! Sleeping until there is something to do: a message, a completion, a moment.

use crate::cx::Cx;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use ugeom_machine::clock;

/// Sleeps by way of `with`, which gets the descriptors of geoms with something in flight, and how
/// long it may take at most. See [`crate::Channel::sleep`].
pub(crate) fn sleep(
    cx: &Cx,
    timeout: Option<Duration>,
    with: impl FnOnce(&[BorrowedFd<'_>], Option<Duration>),
) {
    let due = cx.next_due_ns();
    let until_due = due.map(|due| Duration::from_nanos(due.saturating_sub(clock::now_ns())));
    let timeout = match (until_due, timeout) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let mut fds = cx.wait_fds();
    let (first, second) = (fds.next(), fds.next());
    let asleep = cx.home.mailbox.fall_asleep();
    let timeout = if asleep.is_some() {
        timeout
    } else {
        Some(Duration::ZERO)
    };
    match (first, second) {
        (None, _) => with(&[], timeout),
        (Some(only), None) => with(&[only], timeout),
        (Some(first), Some(second)) => {
            let all: Vec<_> = [first, second].into_iter().chain(fds).collect();
            with(&all, timeout);
        }
    }
}

/// Sleeps until the mailbox gets something, a geom's descriptor is readable, a timer is due, or
/// `deadline_ns` (clock nanoseconds) has come.
pub(crate) fn park(cx: &Cx, deadline_ns: Option<u64>) {
    let due = match (cx.next_due_ns(), deadline_ns) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let timeout = due.map(|due| Duration::from_nanos(due.saturating_sub(clock::now_ns())));
    if timeout == Some(Duration::ZERO) {
        return;
    }
    let mut few: [Option<BorrowedFd<'_>>; 4] = [None; 4];
    let mut count = 0;
    let mut fds = cx.wait_fds();
    for place in &mut few {
        *place = fds.next();
        count += usize::from(place.is_some());
    }
    // An interrupted or failed sleep is a short one: the caller looks again.
    let _ = if let Some(more) = fds.next() {
        let all: Vec<_> = cx.wait_fds().take(count).chain([more]).chain(fds).collect();
        cx.home.mailbox.park(&all, timeout)
    } else {
        match few {
            [Some(a), Some(b), Some(c), Some(d)] => cx.home.mailbox.park(&[a, b, c, d], timeout),
            [Some(a), Some(b), Some(c), None] => cx.home.mailbox.park(&[a, b, c], timeout),
            [Some(a), Some(b), ..] => cx.home.mailbox.park(&[a, b], timeout),
            [Some(a), ..] => cx.home.mailbox.park(&[a], timeout),
            _ => cx.home.mailbox.park(&[], timeout),
        }
    };
}
