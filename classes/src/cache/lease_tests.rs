//! Tests of leases: pages of the cache in the hands of a reader.

use super::tests::{fact, open};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::{lease, slab};
use ugeom_stack::{Channel, Delta, Opened};

const BLOCK: usize = 4096;

/// Reads a range by lease; `None` when it was copied. Either way the bytes are right.
fn lease(
    channel: &mut Channel,
    opened: &Opened,
    offset: u64,
    length: usize,
) -> Option<slab::Lease> {
    let draft = channel.bio().expect("a bio");
    let draft = draft.read_or_lease(offset, Buffer::new(length));
    channel.submit(opened, draft);
    while channel.poll() == 0 {
        channel.wait(None);
    }
    let mut finished = channel.finished().expect("it is done");
    assert_eq!(finished.result(), Ok(length as u64));
    let mut shown = Vec::new();
    finished.each(|_, piece| shown.extend_from_slice(piece));
    let lease = finished.take_lease();
    let lease = match lease {
        Some(lease::Lease::Still(lease)) => Some(lease),
        // A lease that the cache cannot grant may come from the disk below.
        Some(lease::Lease::Moving(_)) => None,
        None => {
            assert_eq!(finished.buffer().expect("a copy")[..], shown);
            None
        }
    };
    if let Some(lease) = &lease {
        assert_eq!(lease.bytes(), shown);
    }
    channel.recycle(finished);
    lease
}

#[test]
fn a_leased_page_keeps_its_bytes_whatever_is_written_and_read() {
    let (target, mut channel, opened) = open("md:1m | nop | cache:64k,block=4k,readahead=off");
    channel.write(&opened, 0, &[1; BLOCK]).expect("writes");
    let first = lease(&mut channel, &opened, 512, 1024).expect("a hit in one block is lent");
    channel.write(&opened, 0, &[2; BLOCK]).expect("writes");
    let mut bytes = [0; BLOCK];
    channel.read(&opened, 0, &mut bytes).expect("reads");
    assert_eq!(bytes, [2; BLOCK], "the next reader gets what was written");
    // More than the cache holds: every buffer that can be used again is.
    for offset in (0..1 << 20).step_by(BLOCK) {
        channel.read(&opened, offset, &mut bytes).expect("reads");
    }
    assert_eq!(first.bytes(), [1; 1024]);
    assert_eq!(fact(&target, "leases"), 1);
}

#[test]
fn what_is_not_in_one_block_of_the_cache_is_copied() {
    let (target, mut channel, opened) = open("md:1m | cache:64k,block=4k,readahead=off");
    assert!(lease(&mut channel, &opened, 0, BLOCK).is_none(), "a miss");
    assert!(lease(&mut channel, &opened, 0, BLOCK).is_some());
    assert!(lease(&mut channel, &opened, 4096, BLOCK).is_none());
    assert!(
        lease(&mut channel, &opened, 2048, BLOCK).is_none(),
        "two blocks"
    );
    assert_eq!(fact(&target, "leases"), 1);
}

#[test]
fn no_more_than_an_eighth_is_lent_at_the_same_time() {
    let (_target, mut channel, opened) = open("md:1m | cache:64k,block=4k,readahead=off");
    channel
        .read(&opened, 0, &mut [0; 4 * BLOCK])
        .expect("reads");
    let mut held = Vec::new();
    for block in 0..4 {
        held.extend(lease(&mut channel, &opened, block * 4096, BLOCK));
    }
    assert_eq!(held.len(), 2, "of sixteen buffers");
    held.pop();
    assert!(
        lease(&mut channel, &opened, 0, 512).is_some(),
        "one was given back"
    );
}

#[test]
fn a_lease_outlives_its_stack() {
    let (target, mut channel, opened) = open("md:1m | cache:64k,block=4k | nop");
    channel.write(&opened, 8192, &[7; BLOCK]).expect("writes");
    let lease = lease(&mut channel, &opened, 8192, BLOCK).expect("a hit");
    drop((channel, opened));
    drop(target);
    assert_eq!(lease.bytes(), [7; BLOCK]);
}

#[test]
fn what_is_dirty_and_lent_moves_when_it_is_written_again() {
    for index in ["hash", "splay"] {
        let text = format!(
            "md:1m | cache:64k,block=4k,readahead=off,index={index},write=back,dirty=32k,\
             idle=999s,age=999s"
        );
        let (target, mut channel, opened) = open(&text);
        channel.write(&opened, 0, &[1; BLOCK]).expect("writes");
        let first = lease(&mut channel, &opened, 0, BLOCK).expect("a hit");
        channel.write(&opened, 512, &[2; 512]).expect("writes");
        let second = lease(&mut channel, &opened, 0, BLOCK).expect("the buffer that it is in now");
        channel.write(&opened, 1024, &[3; 512]).expect("writes");
        assert_eq!(first.bytes(), [1; BLOCK], "{index}");
        let half = [[1; 512], [2; 512]].concat();
        assert_eq!(second.bytes()[..1024], half);
        assert_eq!(second.bytes()[1024..], [1; BLOCK - 1024]);
        let latest = [[1; 512], [2; 512], [3; 512], [1; 512]].concat();
        let mut bytes = [0; 2048];
        channel.read(&opened, 0, &mut bytes).expect("reads");
        assert_eq!(bytes[..], latest[..], "{index}");
        // It is one dirty buffer, wherever it went.
        assert_eq!(fact(&target, "dirty"), BLOCK as u64);
        channel.write(&opened, 8192, &[4; BLOCK]).expect("writes");
        drop((first, second));
        channel.flush(&opened).expect("flushes");
        assert_eq!(fact(&target, "dirty"), 0);
        let below = target.stack.open(target.bottom, Delta::READ);
        channel
            .read(&below.expect("opens"), 0, &mut bytes)
            .expect("reads");
        assert_eq!(bytes[..], latest[..], "{index}: below");
    }
}

#[test]
fn readers_who_keep_buffers_do_not_keep_others_from_reading_and_writing() {
    for write in ["through", "back"] {
        let (target, mut channel, opened) =
            open(&format!("md:1m | cache:4k,block=4k,write={write}"));
        channel.write(&opened, 0, &[1; BLOCK]).expect("writes");
        channel.flush(&opened).expect("flushes");
        // The only buffer there is.
        let lease = lease(&mut channel, &opened, 0, BLOCK).expect("a hit");
        for round in 2..6 {
            channel.write(&opened, 0, &[round; BLOCK]).expect("writes");
            channel.write(&opened, 512, &[9; 512]).expect("writes");
            let mut bytes = [0; BLOCK];
            channel.read(&opened, 0, &mut bytes).expect("reads");
            assert_eq!(
                (bytes[0], bytes[512], bytes[1024]),
                (round, 9, round),
                "{write}"
            );
            channel.read(&opened, 8192, &mut bytes).expect("reads");
            assert_eq!(bytes, [0; BLOCK]);
        }
        assert_eq!(lease.bytes(), [1; BLOCK]);
        assert_eq!(target.stack.defects(), 0);
    }
}
