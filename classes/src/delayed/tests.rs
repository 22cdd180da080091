//! Tests of `delayed`.

use crate::target::TargetOptions;
use crate::target::tests::opened;
use std::time::Duration;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Errno, Opened, Stack};

fn open(text: &str) -> (Stack, Channel, Opened) {
    // Without tasting, whose reads would wait as long as all others.
    let (target, channel, opened) = opened(text, &TargetOptions::untasted(), 64);
    (target.stack, channel, opened)
}

/// Reads `count` sectors at once; the cookies in the order in which they completed.
fn order_of(text: &str, count: u64) -> Vec<u64> {
    let (_stack, mut channel, opened) = open(text);
    for number in 0..count {
        let draft = channel.bio().expect("a bio");
        let draft = draft.read(number * 512, Buffer::new(512)).cookie(number);
        channel.submit(&opened, draft);
    }
    let mut order = Vec::new();
    while (order.len() as u64) < count {
        assert_ne!(
            channel.wait(Some(Duration::from_secs(60))),
            0,
            "a request is lost"
        );
        while let Some(finished) = channel.finished() {
            assert_eq!(finished.result(), Ok(512));
            order.push(finished.cookie());
        }
    }
    order
}

#[test]
fn requests_finish_out_of_order() {
    // All are held before the first is let go, so the seed alone decides.
    let text = "md:1m | delayed:seed=3,depth=32,delay=3600s";
    let order = order_of(text, 32);
    assert_eq!(order, order_of(text, 32));
    assert_ne!(
        order,
        order_of("md:1m | delayed:seed=4,depth=32,delay=3600s", 32)
    );
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..32).collect::<Vec<_>>());
    assert_ne!(order, sorted);
}

#[test]
fn a_request_alone_finishes_after_the_delay() {
    assert_eq!(order_of("md:1m | delayed:depth=1000,delay=1us", 1), [0]);
}

#[test]
fn a_failure_keeps_its_explanation() {
    let (_stack, mut channel, opened) = open("md:1m | nop:wfail=100%,error=EROFS | delayed");
    let error = channel.write(&opened, 0, &[0; 512]).expect_err("it fails");
    assert_eq!(error.errno, Errno::ROFS);
    assert_eq!(error.provider, "md0.nop");
    assert_eq!(error.reason, "a failure injected by nop");
}

#[test]
fn a_held_request_can_be_cancelled() {
    let (_stack, mut channel, opened) = open("md:1m | delayed:depth=1000,delay=3600s");
    let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
    let id = channel.submit(&opened, draft);
    channel.cancel(id);
    assert_ne!(
        channel.wait(Some(Duration::from_secs(60))),
        0,
        "it is still held"
    );
    let finished = channel.finished().expect("it came home");
    assert_eq!(finished.result(), Err(Errno::CANCELED));
}

#[test]
fn its_thread_ends_with_the_stack() {
    let (stack, channel, opened) = open("md:1m | delayed");
    drop(opened);
    drop(channel);
    // Dropping the geom joins the thread: this returns only when it has ended.
    drop(stack);
}
