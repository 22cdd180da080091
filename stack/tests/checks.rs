//! The checks that every request passes, in GEOM's order, with GEOM's errors.

mod common;

use common::{Memory, all_options, pile, plan, stack, user};
use ugeom_stack::{Channel, Command, Delta, Errno, Opened, Stack, StackKnobs};

const SIZE: u64 = 64 * 512;

struct Bench {
    stack: Stack,
    channel: Channel,
    provider: ugeom_stack::ProviderId,
}

fn bench(options: StackKnobs) -> Bench {
    let stack = stack(options);
    let provider = stack.create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[]);
    let provider = provider.expect("a memory")[0];
    let channel = stack.channel(8).expect("a channel");
    Bench {
        stack,
        channel,
        provider,
    }
}

fn errno_of_read(channel: &mut Channel, opened: &Opened, offset: u64, length: usize) -> Errno {
    let mut into = vec![0; length];
    channel
        .read(opened, offset, &mut into)
        .expect_err("refused")
        .errno
}

#[test]
fn reading_needs_a_reader_and_writing_a_writer() {
    for options in all_options() {
        let mut bench = bench(options);
        let writer = Delta {
            read: 0,
            write: 1,
            exclusive: 0,
        };
        let writer = bench.stack.open(bench.provider, writer).expect("open");
        // Even a request that is wrong in every other way is EPERM first.
        assert_eq!(
            errno_of_read(&mut bench.channel, &writer, 7, 3),
            Errno::PERM
        );
        drop(writer);
        let reader = bench.stack.open(bench.provider, Delta::READ).expect("open");
        let refused = bench
            .channel
            .write(&reader, 7, &[1, 2, 3])
            .expect_err("refused");
        assert_eq!(refused.errno, Errno::PERM);
        assert_eq!(refused.provider, "mem");
        assert_eq!(
            bench.channel.flush(&reader).expect_err("refused").errno,
            Errno::PERM
        );
    }
}

#[test]
fn an_errored_provider_answers_with_its_error_before_anything_else_is_looked_at() {
    let mut bench = bench(StackKnobs::default());
    let opened = bench.stack.open(bench.provider, Delta::READ).expect("open");
    bench
        .stack
        .orphan(bench.provider, Errno::NXIO)
        .expect("orphan");
    assert_eq!(
        errno_of_read(&mut bench.channel, &opened, 7, 3),
        Errno::NXIO
    );
}

#[test]
fn offset_and_length_must_be_multiples_of_the_sector_size() {
    for options in all_options() {
        let mut bench = bench(options);
        let opened = bench.stack.open(bench.provider, Delta::READ).expect("open");
        assert_eq!(
            errno_of_read(&mut bench.channel, &opened, 1, 512),
            Errno::INVAL
        );
        assert_eq!(
            errno_of_read(&mut bench.channel, &opened, 512, 513),
            Errno::INVAL
        );
        let huge = u64::MAX - 511;
        assert_eq!(
            errno_of_read(&mut bench.channel, &opened, huge, 512),
            Errno::IO
        );
    }
}

#[test]
fn a_read_past_the_end_is_an_error_and_one_across_it_is_short() {
    for options in all_options() {
        let mut bench = bench(options);
        let opened = bench.stack.open(bench.provider, Delta::READ).expect("open");
        let mut into = [0; 2048];
        assert_eq!(
            errno_of_read(&mut bench.channel, &opened, SIZE + 512, 512),
            Errno::IO
        );
        assert_eq!(
            bench
                .channel
                .read(&opened, SIZE - 512, &mut into)
                .expect("short"),
            512
        );
        assert_eq!(
            bench
                .channel
                .read(&opened, SIZE, &mut into)
                .expect("nothing"),
            0
        );
        assert_eq!(bench.channel.read(&opened, 0, &mut []).expect("nothing"), 0);
    }
}

#[test]
fn a_sector_size_that_is_no_power_of_two_is_checked_as_well() {
    let stack = stack(StackKnobs::default());
    let mut odd = plan("odd", 520 * 10, Memory::new(520 * 10));
    odd.providers[0].sectorsize_bytes = 520;
    let provider = stack.create("MEM", odd, &[]).expect("odd")[0];
    let (opened, mut channel) = user(&stack, provider, Delta::READ, 1);
    let mut into = [0; 1040];
    assert_eq!(
        channel.read(&opened, 520, &mut into).expect("aligned"),
        1040
    );
    assert_eq!(errno_of_read(&mut channel, &opened, 512, 520), Errno::INVAL);
    assert_eq!(errno_of_read(&mut channel, &opened, 520, 512), Errno::INVAL);
}

#[test]
fn a_provider_without_media_is_enxio() {
    let stack = stack(StackKnobs::default());
    let provider = stack
        .create("MEM", plan("none", 0, Memory::new(0)), &[])
        .expect("none")[0];
    let (opened, mut channel) = user(&stack, provider, Delta::READ, 1);
    assert_eq!(errno_of_read(&mut channel, &opened, 0, 512), Errno::NXIO);
}

#[test]
fn a_layer_that_reaches_past_its_parent_is_eio_and_names_the_parent() {
    for options in all_options() {
        let bench = bench(options);
        // The slice claims twice what its parent has.
        let top = pile(&bench.stack, bench.provider, 2 * SIZE, 1, false);
        let (opened, mut channel) = user(&bench.stack, top, Delta::READ, 1);
        let mut into = [0; 1024];
        assert_eq!(
            channel
                .read(&opened, SIZE - 1024, &mut into)
                .expect("inside"),
            1024
        );
        let error = channel
            .read(&opened, SIZE - 512, &mut into)
            .expect_err("across");
        assert_eq!((error.errno, error.provider.as_str()), (Errno::IO, "mem"));
        assert_eq!(error.offset_bytes, SIZE - 512);
        assert!(
            error.reason.contains("past the end of the media"),
            "{error}"
        );
    }
}

#[test]
fn delete_and_zero_are_checked_like_writes() {
    let mut bench = bench(StackKnobs::default());
    let opened = bench
        .stack
        .open(bench.provider, Delta::READ_WRITE)
        .expect("open");
    let channel = &mut bench.channel;
    let data = [7; 1024];
    assert_eq!(channel.write(&opened, 0, &data).expect("write"), 1024);
    for command in [Command::Delete, Command::Zero] {
        let error = channel
            .discard(&opened, command, 1, 512)
            .expect_err("unaligned");
        assert_eq!((error.errno, error.command), (Errno::INVAL, command));
    }
    assert_eq!(
        channel
            .discard(&opened, Command::Zero, 512, 512)
            .expect("zero"),
        512
    );
    let mut into = [1; 1024];
    channel.read(&opened, 0, &mut into).expect("read");
    assert!(into[..512].iter().all(|byte| *byte == 7) && into[512..].iter().all(|byte| *byte == 0));
    assert_eq!(
        channel
            .discard(&opened, Command::Delete, SIZE - 512, 4096)
            .expect("cut"),
        512
    );
}

#[test]
fn an_unknown_attribute_is_none_and_extents_unsupported_is_an_error() {
    let mut bench = bench(StackKnobs::default());
    let opened = bench.stack.open(bench.provider, Delta::READ).expect("open");
    assert_eq!(
        bench
            .channel
            .attribute(&opened, "GEOM::nothing")
            .expect("asked"),
        None
    );
    let error = bench
        .channel
        .extents(&opened, 0, SIZE, 16)
        .expect_err("not here");
    assert_eq!(error.errno, Errno::OPNOTSUPP);
}

#[test]
fn the_drop_of_a_finished_bio_gives_its_slot_back() {
    let bench = bench(StackKnobs::default());
    let (opened, mut channel) = user(&bench.stack, bench.provider, Delta::READ, 2);
    for _ in 0..1000 {
        let draft = channel.bio().expect("two at a time are allowed");
        let buffer = ugeom_machine::buffer::Buffer::new(512);
        channel.submit(&opened, draft.read(0, buffer));
        channel.wait(None);
        drop(channel.finished().expect("finished"));
    }
}

#[test]
fn a_handle_of_another_stack_leads_nowhere() {
    let mine = bench(StackKnobs::default());
    let mut other = bench(StackKnobs::default());
    let theirs = other.stack.open(other.provider, Delta::READ).expect("open");
    let (mine_opened, mut channel) = user(&mine.stack, mine.provider, Delta::READ, 1);
    assert_eq!(errno_of_read(&mut channel, &theirs, 0, 512), Errno::NXIO);
    assert!(channel.read(&mine_opened, 0, &mut [0; 512]).is_ok());
    assert!(other.channel.read(&theirs, 0, &mut [0; 512]).is_ok());
}

#[test]
#[should_panic(expected = "a draft is submitted to the channel that made it")]
fn a_draft_of_another_channel_is_the_callers_defect() {
    let mut bench = bench(StackKnobs::default());
    let (opened, mut other) = user(&bench.stack, bench.provider, Delta::READ, 1);
    let draft = other.bio().expect("a bio");
    let buffer = ugeom_machine::buffer::Buffer::new(512);
    bench.channel.submit(&opened, draft.read(0, buffer));
}

#[test]
fn a_finished_bio_given_to_another_channel_goes_home() {
    let mut bench = bench(StackKnobs::default());
    let (opened, mut other) = user(&bench.stack, bench.provider, Delta::READ, 1);
    for _ in 0..100 {
        let draft = other.bio().expect("the slot came back");
        let buffer = ugeom_machine::buffer::Buffer::new(512);
        other.submit(&opened, draft.read(0, buffer));
        other.wait(None);
        bench.channel.recycle(other.finished().expect("finished"));
    }
}

#[test]
fn a_draft_that_nobody_filled_in_moves_nothing() {
    let mut bench = bench(StackKnobs::default());
    let opened = bench.stack.open(bench.provider, Delta::READ).expect("open");
    let mut into = [0; 512];
    bench
        .channel
        .read(&opened, 0, &mut into)
        .expect("a slot has been used");
    let draft = bench.channel.bio().expect("the same slot");
    bench.channel.submit(&opened, draft.at(512).length(512));
    assert_eq!(bench.channel.wait(None), 1);
    assert_eq!(bench.channel.finished().expect("finished").result(), Ok(0));
}
