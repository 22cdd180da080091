//! Waiting in the tests of contexts.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use ugeom_guasi::Context;

/// Waits for what other threads or the kernel do, however long this machine takes.
pub fn until(mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "it did not happen"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the descriptor of a context becomes readable within that time.
pub fn readable(context: &Context, wait_ms: i32) -> bool {
    let fd = context.event_fd().unwrap().as_raw_fd();
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, ours.
    unsafe { libc::poll(&raw mut polled, 1, wait_ms) == 1 }
}
