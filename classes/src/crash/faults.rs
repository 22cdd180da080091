//! The choice of faults: by a rate and a seed, or by the number of a request.

use crate::draws::{draw, happens};
use ugeom_stack::Command;

/// The faults of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The power goes before the request is done.
    Cut,
    /// A write is acknowledged and never done.
    Lost,
    /// A write goes to another place.
    Misdirected,
    /// A write goes to its place and to another one.
    Duplicated,
    /// A read returns the data from before the last write.
    Stale,
    /// A read finds a bit that has changed, and stays so.
    Rot,
    /// A read fails, and so does each one until the sector is written again.
    Latent,
    /// A read or a write fails; the next one does not.
    Eio,
    /// A FLUSH fails, and the writes that it covers will be lost; the next one succeeds.
    FlushFail,
    /// A write finds no space.
    NoSpace,
    /// A request takes longer.
    Spike,
}

impl Fault {
    /// All of them, with the option's name, in the order in which they are tried.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Cut, "cut"),
        (Self::Spike, "spike"),
        (Self::Eio, "eio"),
        (Self::NoSpace, "enospc"),
        (Self::FlushFail, "flushfail"),
        (Self::Lost, "lost"),
        (Self::Misdirected, "misdirected"),
        (Self::Duplicated, "duplicated"),
        (Self::Stale, "stale"),
        (Self::Rot, "rot"),
        (Self::Latent, "latent"),
    ];

    /// Whether requests of that kind can meet it.
    fn concerns(self, command: Command) -> bool {
        let (read, write) = (command == Command::Read, command == Command::Write);
        match self {
            Self::Cut => true,
            Self::Spike => read || write || command == Command::Flush,
            Self::Lost | Self::Misdirected | Self::Duplicated | Self::NoSpace => write,
            Self::Stale | Self::Rot | Self::Latent => read,
            Self::Eio => read || write,
            Self::FlushFail => command == Command::Flush,
        }
    }
}

/// When a fault happens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trigger {
    /// To each request with this probability, 0 to 1.
    Rate(f64),
    /// To the requests with these numbers, from 1.
    Operations(Vec<u64>),
}

/// Bytes of the media that faults may hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub start_bytes: u64,
    pub end_bytes: u64,
}

/// All faults that were asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FaultPlan {
    pub triggers: Vec<(Fault, Trigger)>,
    pub region: Region,
    pub seed: u64,
}

impl FaultPlan {
    /// The fault that the request with that number meets.
    pub fn of(&self, number: u64, command: Command, range: Option<(u64, u64)>) -> Option<Fault> {
        let hit = |offset: u64, length: u64| {
            offset < self.region.end_bytes && offset + length > self.region.start_bytes
        };
        let inside = range.is_none_or(|(offset, length)| hit(offset, length));
        let mut found = self.triggers.iter().filter(|(fault, trigger)| {
            (inside || *fault == Fault::Cut)
                && fault.concerns(command)
                && match trigger {
                    Trigger::Rate(rate) => happens(*rate, self.draw(number, *fault as u64)),
                    Trigger::Operations(numbers) => numbers.contains(&number),
                }
        });
        found.next().map(|(fault, _)| *fault)
    }

    /// True when a fault of that kind can happen at all.
    pub fn has(&self, fault: Fault) -> bool {
        self.triggers.iter().any(|(other, _)| *other == fault)
    }

    /// A random value for a request, the same in every run.
    pub fn draw(&self, number: u64, purpose: u64) -> u64 {
        draw(
            self.seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03),
            number,
        )
    }
}
