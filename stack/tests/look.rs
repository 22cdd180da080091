//! Looking at a stack that works: counting more and less meanwhile, and handles that come and go.

mod common;

use common::{Memory, Parker, Slicer, all_stacks, plan, stack, user};
use std::sync::Arc;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Command, Delta, Stack, StackKnobs, Statistics, Totals};

const SIZE: u64 = 64 * 512;
const READ: usize = Command::Read as usize;

fn two_layers(stack: &Stack) {
    let memory = plan("mem", SIZE, Memory::new(SIZE as usize));
    let bottom = stack.create("MEM", memory, &[]).expect("memory")[0];
    let slice = plan("slice", SIZE - 512, Slicer::new(512));
    stack.create("LAYER", slice, &[bottom]).expect("a layer");
}

fn totals(stack: &Stack, name: &str) -> Totals {
    let look = stack.look();
    let id = look.tree.provider(name).expect(name).id;
    look.providers[&id].clone()
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes there, and others cover its unsafe code")]
fn what_is_counted_can_change_while_requests_are_under_way() {
    for (options, stack) in all_stacks() {
        two_layers(&stack);
        let slice = stack.find("slice").expect("slice");
        let (opened, mut channel) = user(&stack, slice, Delta::READ_WRITE, 64);
        let levels = [
            Statistics::Counts,
            Statistics::Time { one_in: 1 },
            Statistics::Time { one_in: 4 },
            Statistics::Counts,
        ];
        let before = if options.statistics == Statistics::Off {
            0
        } else {
            1
        };
        channel.read(&opened, 0, &mut [0; 512]).expect("read");
        for level in levels {
            for _ in 0..8 {
                let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
                channel.submit(&opened, draft);
            }
            stack.set_statistics(level);
            assert_eq!(stack.options().statistics, level);
            while channel.in_flight() > 0 || channel.poll() > 0 {
                channel.wait(None);
                while let Some(finished) = channel.finished() {
                    assert_eq!(finished.result(), Ok(512), "{options:?}");
                    channel.recycle(finished);
                }
            }
            channel.read(&opened, 0, &mut [0; 512]).expect("read");
        }
        let counted = 8 * 3 + 4 + before * 9;
        for name in ["mem", "slice"] {
            let totals = totals(&stack, name);
            assert_eq!(totals.in_flight(), 0, "{name} {options:?}");
            assert_eq!(totals.operations[READ], counted, "{name} {options:?}");
            let time = totals.time.expect("times");
            assert!(time.read.count() >= 9, "{name} {options:?}: {time:?}");
            assert_eq!(time.write.count() + time.delete.count(), 0);
        }
    }
}

#[test]
fn a_larger_share_of_timed_requests_holds_at_once() {
    let stack = stack(StackKnobs {
        statistics: Statistics::Time { one_in: 1 << 20 },
        ..StackKnobs::default()
    });
    two_layers(&stack);
    let slice = stack.find("slice").expect("slice");
    let (opened, mut channel) = user(&stack, slice, Delta::READ, 4);
    let mut read = |times: u64| {
        for _ in 0..times {
            channel.read(&opened, 0, &mut [0; 512]).expect("read");
        }
        let time = totals(&stack, "slice").time.expect("times");
        time.read.count()
    };
    let before = read(2);
    stack.set_statistics(Statistics::Time { one_in: 1 });
    assert_eq!(read(8), before + 8);
}

#[test]
fn handles_that_were_timed_leave_their_figures_and_their_place() {
    let stack = stack(StackKnobs {
        statistics: Statistics::Time { one_in: 1 },
        ..StackKnobs::default()
    });
    two_layers(&stack);
    let slice = stack.find("slice").expect("slice");
    let mut channel = stack.channel(4).expect("a channel");
    for round in 1..=100 {
        let opened = stack.open(slice, Delta::READ_WRITE).expect("open");
        channel.read(&opened, 0, &mut [0; 1024]).expect("read");
        channel
            .discard(&opened, Command::Delete, 0, 512)
            .expect("gone");
        let look = stack.look();
        let all = look.consumers.values();
        let handles = all.filter(|it| it.totals.operations[READ] == 1).count();
        // The slicer's own consumer has seen every round, this handle the last one only.
        assert_eq!(handles, if round == 1 { 2 } else { 1 }, "round {round}");
        let slice = totals(&stack, "slice");
        assert_eq!(slice.operations[READ], round);
        let time = slice.time.expect("times");
        assert_eq!((time.read.count(), time.delete.count()), (round, round));
    }
}

#[test]
fn a_look_shows_what_is_in_flight_and_who_asked() {
    let stack = stack(StackKnobs::default());
    let parker = Arc::new(Parker::default());
    let provider = stack.create("PARK", plan("park", SIZE, parker.clone()), &[]);
    let provider = provider.expect("a geom")[0];
    let (opened, mut channel) = user(&stack, provider, Delta::READ, 4);
    for _ in 0..3 {
        let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
        channel.submit(&opened, draft);
    }
    let look = stack.look();
    assert_eq!(look.providers[&provider].in_flight(), 3);
    let handle = look.tree.above(provider).next().expect("a handle");
    let consumer = &look.consumers[&handle.consumers[0].id];
    assert_eq!((handle.class, consumer.totals.in_flight()), ("DEV", 3));
    for bio in parker.held.lock().expect("held").drain(..) {
        bio.complete(Ok(512));
    }
    while channel.wait(None) > 0 {
        while let Some(finished) = channel.finished() {
            channel.recycle(finished);
        }
    }
    assert_eq!(stack.look().providers[&provider].in_flight(), 0);
}
