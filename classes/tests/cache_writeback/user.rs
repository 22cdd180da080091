//! One user of a part of a device, with a map of the possible values of each sector. More than one
//! only after a write that failed.

use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Errno, Flags, Opened};

pub const SECTOR: usize = 512;

/// The operations of a user on a range of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Read,
    Write,
    Fua,
    Ordered,
    Delete,
    Zero,
    OrderedZero,
    Flush,
}

impl Act {
    pub fn flags(self) -> Flags {
        match self {
            Self::Fua => Flags::FUA,
            Self::Ordered | Self::OrderedZero => Flags::ORDERED,
            _ => Flags::NONE,
        }
    }

    /// Reads and writes half of the time each, now and then something else.
    pub fn of(number: u8) -> Self {
        match number % 64 {
            0..26 => Self::Read,
            26..48 => Self::Write,
            48..52 => Self::Fua,
            52..54 => Self::Ordered,
            54..58 => Self::Delete,
            58..61 => Self::Zero,
            61 => Self::OrderedZero,
            _ => Self::Flush,
        }
    }
}

pub fn open(text: &str) -> Target {
    let options = TargetOptions::untasted().for_writing();
    open_target(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub struct User<'a> {
    channel: Channel,
    opened: &'a Opened,
    first: usize,
    known: Vec<Vec<u64>>,
    next: u64,
    /// Requests below may fail.
    faults: bool,
}

impl<'a> User<'a> {
    /// Of `sectors` sectors from `first` on, which are zero; his values begin with `tag`.
    pub fn new(
        target: &Target,
        opened: &'a Opened,
        (first, sectors): (usize, usize),
        tag: u64,
        faults: bool,
    ) -> Self {
        Self {
            channel: target.stack.channel(4).expect("a channel"),
            opened,
            first,
            known: vec![vec![0]; sectors],
            next: tag << 40,
            faults,
        }
    }

    fn offset(&self, start: usize) -> u64 {
        ((self.first + start) * SECTOR) as u64
    }

    /// Does something to `count` sectors from `start` on, both cut to what there is.
    pub fn act(&mut self, act: Act, start: usize, count: usize) {
        let start = start % self.known.len();
        let count = count.clamp(1, self.known.len() - start);
        match act {
            Act::Read => self.read(start, count),
            Act::Write => self.write(start, count, Flags::NONE),
            Act::Fua => self.write(start, count, Flags::FUA),
            Act::Ordered => self.write(start, count, Flags::ORDERED),
            Act::Delete => self.discard(Command::Delete, start, count, Flags::NONE),
            Act::Zero => self.discard(Command::Zero, start, count, Flags::NONE),
            Act::OrderedZero => self.discard(Command::Zero, start, count, Flags::ORDERED),
            Act::Flush => {
                let flushed = self.channel.flush(self.opened);
                assert!(flushed.is_ok() || self.faults, "{flushed:?}");
            }
        }
    }

    fn finish(&mut self) -> Result<u64, Errno> {
        while self.channel.wait(None) == 0 {}
        let finished = self.channel.finished().expect("it is back");
        let result = finished.result();
        self.channel.recycle(finished);
        assert!(result.is_ok() || self.faults, "{result:?}");
        result
    }

    fn write(&mut self, start: usize, count: usize, flags: Flags) {
        self.next += 1;
        let bytes = self.next.to_le_bytes().repeat(count * SECTOR / 8);
        let draft = self.channel.bio().expect("a bio");
        let draft = draft.write(self.offset(start), Buffer::from_slice(&bytes));
        self.channel.submit(self.opened, draft.flags(flags));
        let result = self.finish();
        for known in &mut self.known[start..start + count] {
            if result.is_ok() {
                known.clear();
            }
            known.push(self.next);
        }
    }

    fn discard(&mut self, command: Command, start: usize, count: usize, flags: Flags) {
        let draft = self.channel.bio().expect("a bio");
        let length = (count * SECTOR) as u64;
        let draft = draft.discard(command, self.offset(start), length);
        self.channel.submit(self.opened, draft.flags(flags));
        // Nothing below fails a DELETE; one that fails has not got that far.
        if self.finish().is_ok() {
            self.known[start..start + count].fill(vec![0]);
        }
    }

    fn read(&mut self, start: usize, count: usize) {
        let mut bytes = vec![0xee; count * SECTOR];
        let read = self
            .channel
            .read(self.opened, self.offset(start), &mut bytes);
        if read.is_ok() {
            self.compare(start, &bytes);
        }
        assert!(read.is_ok() || self.faults, "{read:?}");
    }

    /// Holds bytes against what is known.
    pub fn compare(&mut self, start: usize, bytes: &[u8]) {
        for (at, sector) in bytes.chunks(SECTOR).enumerate() {
            let (value, _) = sector.split_at(8);
            assert_eq!(value.repeat(SECTOR / 8), sector, "a torn sector");
            let value = u64::from_le_bytes(value.try_into().expect("eight bytes"));
            let known = &mut self.known[start + at];
            assert!(
                known.contains(&value),
                "sector {} is {value:#x}, not one of {known:x?}",
                self.first + start + at
            );
            // A write that failed either reached the media or not, and that stays so.
            *known = vec![value];
        }
    }
}
