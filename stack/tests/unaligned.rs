//! Requests of any alignment against plain memory, and under several writers.

mod common;

use common::{Memory, plan, stack};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use ugeom_stack::{
    Channel, Command, Cx, Delta, Errno, Flags, Geom, Next, Opened, RangeLock, Request, Stack,
    StackKnobs, Unaligned,
};

const SECTOR: u64 = 512;

struct Bed {
    stack: Stack,
    opened: Opened,
    channel: Channel,
    unaligned: Unaligned,
    ranges: Arc<RangeLock>,
}

fn bed(bytes: u64, geom: Arc<dyn Geom>) -> Bed {
    let stack = stack(StackKnobs::default());
    let made = stack.create("MEM", plan("mem0", bytes, geom), &[]);
    let opened = stack
        .open(made.expect("a provider")[0], Delta::READ_WRITE)
        .expect("opened");
    let ranges = Arc::new(RangeLock::new());
    let unaligned = Unaligned::new(&opened, &ranges).expect("unaligned");
    let channel = stack.channel(4).expect("a channel");
    Bed {
        stack,
        opened,
        channel,
        unaligned,
        ranges,
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Write,
    Zero,
}

fn request() -> impl Strategy<Value = (Kind, u64, usize)> {
    let kind = prop_oneof![Just(Kind::Read), Just(Kind::Write), Just(Kind::Zero)];
    let place = prop_oneof![
        0..9 * SECTOR,
        (0..10_u64).prop_map(|sector| sector * SECTOR)
    ];
    let length = prop_oneof![
        0..3000_usize,
        (0..5_usize).prop_map(|n| n * SECTOR as usize)
    ];
    (kind, place, length)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_request_does_to_the_provider_what_it_does_to_plain_memory(
        requests in proptest::collection::vec(request(), 1..30)
    ) {
        const MEDIA: usize = 8 * SECTOR as usize;
        let mut bed = bed(MEDIA as u64, Memory::new(MEDIA));
        let mut model = vec![0_u8; MEDIA];
        for (number, (kind, offset, length)) in requests.into_iter().enumerate() {
            let inside = (offset as usize).min(MEDIA)..(offset as usize + length).min(MEDIA);
            let expected = inside.len();
            let Bed { opened, channel, unaligned, .. } = &mut bed;
            let done = match kind {
                Kind::Read => {
                    let mut bytes = vec![0xee; length];
                    let done = unaligned.read(channel, opened, offset, &mut bytes);
                    prop_assert!(done.is_err() || bytes[..expected] == model[inside]);
                    done
                }
                Kind::Write => {
                    let bytes = vec![number as u8 + 1; length];
                    let done = unaligned.write(channel, opened, offset, &bytes);
                    model[inside].fill(number as u8 + 1);
                    done
                }
                Kind::Zero => {
                    let done = unaligned.zero(channel, opened, (offset, length), Flags::NONE);
                    model[inside].fill(0);
                    done
                }
            };
            match done {
                Ok(done) => prop_assert_eq!(done, expected),
                Err(error) => {
                    prop_assert!(offset as usize > MEDIA, "{}", error);
                    prop_assert_eq!(error.errno, Errno::IO);
                }
            }
        }
        let mut all = vec![0; MEDIA];
        bed.channel.read(&bed.opened, 0, &mut all).unwrap();
        prop_assert_eq!(all, model);
    }
}

#[test]
fn a_request_larger_than_the_bounce_buffer_goes_in_pieces() {
    let bytes = 3 << 20;
    let mut bed = bed(bytes, Memory::new(bytes as usize));
    let mut random = fastrand::Rng::with_seed(7);
    let data: Vec<u8> = (0..(2 << 20) + 77).map(|_| random.u8(..)).collect();
    let written = bed
        .unaligned
        .write(&mut bed.channel, &bed.opened, 1001, &data);
    assert_eq!(written.unwrap(), data.len());
    let mut back = vec![0; data.len()];
    let read = bed
        .unaligned
        .read(&mut bed.channel, &bed.opened, 1001, &mut back);
    assert_eq!(read.unwrap(), data.len());
    assert!(back == data);
}

#[test]
fn writers_of_one_sector_do_not_undo_each_other() {
    const WRITERS: usize = 4;
    let Bed {
        stack,
        opened,
        ranges,
        ..
    } = &bed(SECTOR, Memory::new(SECTOR as usize));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut channel = stack.channel(1).unwrap();
                let mut unaligned = Unaligned::new(opened, ranges).unwrap();
                for round in 0..=250_u8 {
                    let at = writer as u64;
                    unaligned.write(&mut channel, opened, at, &[round]).unwrap();
                    let mut now = [0];
                    unaligned.read(&mut channel, opened, at, &mut now).unwrap();
                    assert_eq!(now, [round], "writer {writer}");
                }
            });
        }
    });
}

#[test]
fn delete_leaves_the_sectors_alone_that_are_only_touched() {
    let mut bed = bed(4 * SECTOR, Memory::new(4 * SECTOR as usize));
    let ones = vec![1; 4 * SECTOR as usize];
    bed.channel.write(&bed.opened, 0, &ones).unwrap();
    let Bed {
        opened,
        channel,
        unaligned,
        ..
    } = &mut bed;
    assert_eq!(unaligned.delete(channel, opened, 10, 400).unwrap(), 0);
    assert_eq!(unaligned.delete(channel, opened, 10, 1100).unwrap(), 512);
    let mut all = vec![0; 4 * SECTOR as usize];
    channel.read(opened, 0, &mut all).unwrap();
    let zeroes: Vec<usize> = (0..all.len()).filter(|&at| all[at] == 0).collect();
    assert_eq!(zeroes, (512..1024).collect::<Vec<_>>());
}

struct NoZero(Arc<Memory>);

impl Geom for NoZero {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        if request.command() == Command::Zero {
            return request.fail(Errno::OPNOTSUPP, "no ZERO here");
        }
        self.0.start(request, cx)
    }
}

#[test]
fn zeroes_are_written_where_the_provider_has_no_zero() {
    let memory = Arc::new(Memory(Mutex::new(vec![9; 2048])));
    let mut bed = bed(2048, Arc::new(NoZero(Arc::clone(&memory))));
    let done = bed
        .unaligned
        .zero(&mut bed.channel, &bed.opened, (100, 1500), Flags::NONE);
    assert_eq!(done.unwrap(), 1500);
    let memory = memory.0.lock().unwrap();
    assert!(memory[..100].iter().all(|&byte| byte == 9));
    assert!(memory[100..1600].iter().all(|&byte| byte == 0));
    assert!(memory[1600..].iter().all(|&byte| byte == 9));
}

#[test]
fn an_offset_past_the_end_and_one_past_all_numbers_are_errors_that_say_so() {
    let mut bed = bed(1024, Memory::new(1024));
    for offset in [1025, u64::MAX - 3] {
        let error = bed
            .unaligned
            .write(&mut bed.channel, &bed.opened, offset, &[1, 2, 3]);
        let error = error.expect_err("nothing is there");
        assert_eq!(error.errno, Errno::IO);
        assert!(error.to_string().contains("past the end"), "{error}");
    }
    let none = bed
        .unaligned
        .read(&mut bed.channel, &bed.opened, 1024, &mut [0; 3]);
    assert_eq!(none.unwrap(), 0);
}
