//! Any sequence of requests leaves a device as it would leave a plain vector of bytes, whatever
//! layers, dispatch and statistics it goes through.
//!
//! Requests that do not overlap are in flight together, as many as the sequence has one after the
//! other; one that overlaps with another waits for all. So each request has one right answer, in
//! whatever order the layers finish them.

use proptest::prelude::*;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{
    Channel, Command, Delta, Dispatch, Finished, Flags, Opened, StackKnobs, Statistics,
};

const SECTOR: usize = 512;
const SECTORS: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Step {
    command: Command,
    first: usize,
    count: usize,
    byte: u8,
    ordered: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let command = prop_oneof![
        4 => Just(Command::Read),
        4 => Just(Command::Write),
        1 => Just(Command::Zero),
        1 => Just(Command::Delete),
        1 => Just(Command::Flush),
    ];
    let parts = (
        command,
        0..SECTORS,
        1..16_usize,
        any::<u8>(),
        prop::bool::weighted(0.1),
    );
    parts.prop_map(|(command, first, count, byte, ordered)| {
        let count = count.min(SECTORS - first);
        Step {
            command,
            first,
            count,
            byte,
            ordered,
        }
    })
}

impl Step {
    fn bytes(&self) -> Range<usize> {
        match self.command {
            Command::Flush => 0..0,
            _ => self.first * SECTOR..(self.first + self.count) * SECTOR,
        }
    }

    /// The data of a write: its byte, and where each piece belongs.
    fn data(&self) -> Vec<u8> {
        let number = |at: usize| self.byte ^ (at / 8 % 251) as u8;
        self.bytes().map(number).collect()
    }
}

/// A device and the vector that it has to equal.
struct Run {
    channel: Channel,
    opened: Opened,
    model: Vec<u8>,
    /// By cookie: what is in flight, and what a read has to find.
    under_way: HashMap<u64, (Range<usize>, Option<Vec<u8>>)>,
}

impl Run {
    fn step(&mut self, number: u64, step: &Step) {
        let range = step.bytes();
        let overlaps = |(other, _): &(Range<usize>, Option<Vec<u8>>)| {
            range.start < other.end && other.start < range.end
        };
        if self.under_way.values().any(overlaps) {
            self.settle();
        }
        let (offset, length) = (range.start as u64, range.len() as u64);
        let draft = self.channel.bio().expect("a bio");
        let (draft, expected) = match step.command {
            Command::Read => {
                let expected = self.model[range.clone()].to_vec();
                (draft.read(offset, Buffer::new(range.len())), Some(expected))
            }
            Command::Write => {
                let data = step.data();
                self.model[range.clone()].copy_from_slice(&data);
                (draft.write(offset, Buffer::from_slice(&data)), None)
            }
            Command::Flush => (draft.flush(), None),
            other => {
                self.model[range.clone()].fill(0);
                (draft.discard(other, offset, length), None)
            }
        };
        let flags = if step.ordered {
            Flags::ORDERED
        } else {
            Flags::NONE
        };
        self.channel
            .submit(&self.opened, draft.flags(flags).cookie(number));
        self.under_way.insert(number, (range, expected));
    }

    fn settle(&mut self) {
        while !self.under_way.is_empty() {
            assert_ne!(
                self.channel.wait(Some(Duration::from_secs(60))),
                0,
                "a request is lost"
            );
            while let Some(finished) = self.channel.finished() {
                self.collect(&finished);
                self.channel.recycle(finished);
            }
        }
    }

    fn collect(&mut self, finished: &Finished) {
        let known = self.under_way.remove(&finished.cookie());
        let (range, expected) = known.expect("a request that was sent, and once");
        assert_eq!(finished.result(), Ok(range.len() as u64));
        if let Some(expected) = expected {
            let buffer = finished.buffer().expect("its buffer");
            assert!(buffer[..] == expected[..], "read of {range:?}");
        }
    }
}

fn agrees(target: &str, dispatch: Dispatch, statistics: Statistics, steps: &[Step]) {
    let options = TargetOptions {
        knobs: StackKnobs {
            dispatch,
            statistics,
            ..StackKnobs::default()
        },
        ..TargetOptions::default()
    };
    let target = open_target(target, &options).unwrap_or_else(|error| panic!("{error}"));
    let opened = target.open(Delta::READ_WRITE).expect("opens");
    let channel = target.stack.channel(steps.len() + 1).expect("a channel");
    let model = vec![0; SECTORS * SECTOR];
    let mut run = Run {
        channel,
        opened,
        model,
        under_way: HashMap::new(),
    };
    for (number, step) in steps.iter().enumerate() {
        run.step(number as u64, step);
    }
    run.settle();
    let mut media = vec![0xff; SECTORS * SECTOR];
    run.channel.read(&run.opened, 0, &mut media).expect("reads");
    assert!(media == run.model, "the media differs at the end");
    assert_eq!(target.stack.defects(), 0);
}

const LEVELS: [Statistics; 3] = [
    Statistics::Off,
    Statistics::Counts,
    Statistics::Time { one_in: 1 },
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn md_is_a_vector(steps in prop::collection::vec(step(), 1..100), level in 0..3_usize) {
        agrees("md:32k", Dispatch::Direct, LEVELS[level], &steps);
    }

    #[test]
    fn md_is_a_vector_through_queues(
        steps in prop::collection::vec(step(), 1..100),
        level in 0..3_usize,
    ) {
        agrees("md:32k", Dispatch::Queued { spin_ns: 0 }, LEVELS[level], &steps);
    }

    #[test]
    fn md_is_a_vector_below_layers(
        steps in prop::collection::vec(step(), 1..100),
        level in 0..3_usize,
        queued: bool,
        seed in 0..1000_u64,
    ) {
        let spin_ns = 0;
        let dispatch = if queued { Dispatch::Queued { spin_ns } } else { Dispatch::Direct };
        let target = format!("md:36k | nop:offset=4k,hook=1 | delayed:delay=1us,seed={seed}");
        agrees(&target, dispatch, LEVELS[level], &steps);
    }

    #[test]
    fn a_disk_is_a_vector(
        steps in prop::collection::vec(step(), 1..100),
        level in 0..3_usize,
        queue in 1..32_u64,
    ) {
        let target = format!("disk:32k,overhead=1us,rate=1g/s,seek=5us,queue={queue}");
        agrees(&target, Dispatch::Direct, LEVELS[level], &steps);
    }
}
