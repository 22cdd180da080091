//! The actions of a program without unsafe code on a stack, none of which may be unsound.
#![forbid(unsafe_code)]

mod common;

use common::{Parker, plan, stack};
use std::sync::Arc;
use std::time::Duration;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{BioId, Channel, Delta, Errno, Opened, Pools, StackKnobs};

/// A stack whose requests wait until they are let go.
fn waiting(options: StackKnobs) -> (ugeom_stack::Stack, Arc<Parker>, Opened) {
    let stack = stack(options);
    let parker = Arc::new(Parker::default());
    let geom = Arc::clone(&parker) as Arc<dyn ugeom_stack::Geom>;
    let provider = stack.create("PARK", plan("p", 1 << 20, geom), &[]).unwrap()[0];
    let opened = stack.open(provider, Delta::READ).unwrap();
    (stack, parker, opened)
}

fn submit(channel: &mut Channel, opened: &Opened) -> BioId {
    let draft = channel.bio().unwrap().read(0, Buffer::new(512));
    channel.submit(opened, draft)
}

fn let_all_go(parker: &Parker) {
    for bio in parker.held.lock().unwrap().drain(..) {
        bio.complete(Ok(512));
    }
}

/// Channels come and go, and the memory of their requests is used again at the same place.
#[test]
fn the_name_of_a_request_of_a_dropped_channel_cancels_nothing() {
    for pools in [Pools::PerCore, Pools::Shared] {
        let (stack, parker, opened) = waiting(StackKnobs {
            pools,
            ..StackKnobs::default()
        });
        let mut old = Vec::new();
        for _ in 0..if cfg!(miri) { 3 } else { 100 } {
            let mut channel = stack.channel(1).unwrap();
            let id = submit(&mut channel, &opened);
            assert!(!old.contains(&id), "a name is used once");
            for earlier in &old {
                channel.cancel(*earlier);
            }
            let cancelled = channel.wait(Some(Duration::ZERO));
            let_all_go(&parker);
            channel.wait(None);
            let finished = channel.finished().unwrap();
            assert_eq!((cancelled, finished.result()), (0, Ok(512)));
            channel.recycle(finished);
            old.push(id);
        }
    }
}

#[test]
fn the_name_of_a_request_still_cancels_it() {
    let (stack, _parker, opened) = waiting(StackKnobs::default());
    let mut channel = stack.channel(1).unwrap();
    for _ in 0..3 {
        let id = submit(&mut channel, &opened);
        channel.cancel(id);
        channel.wait(None);
        let finished = channel.finished().unwrap();
        assert_eq!(finished.result(), Err(Errno::CANCELED));
        channel.recycle(finished);
    }
}
