//! The contract of a provider as a suite: whatever class stands below, the same requests get the
//! same answers.
//!
//! A [`Subject`] makes the device and names its promises beyond the contract (that it keeps data,
//! say). [`check`] runs every case on a fresh device, with direct and with queued dispatch, at
//! every level of statistics, and with locks around devices and bios; it panics with the subject,
//! the mode and the case.

mod concurrent;
mod data;
mod edges;

use std::any::Any;
use ugeom_stack::{
    Channel, Delta, Dispatch, Errno, IoError, Opened, Pools, ProviderId, ProviderView, Registry,
    Stack, StackKnobs, Statistics,
};

/// A device that was made for one case.
pub struct Device {
    /// The stack that it is the top of.
    pub stack: Stack,
    /// The provider that is tested.
    pub provider: ProviderId,
    /// Resources that must live as long as the device: a temporary file, say.
    pub keep: Box<dyn Any>,
}

/// The effect of a DELETE on later reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The range reads as zeroes.
    Zeroes,
    /// The provider chooses.
    Anything,
    /// DELETE is refused with EOPNOTSUPP.
    Refused,
}

/// The promises of a device beyond the contract of every provider.
#[derive(Clone, Copy, Debug)]
pub struct Promises {
    /// It can be opened for writing.
    pub writable: bool,
    /// Written data can be read.
    pub keeps_data: bool,
    /// Reads of the same range give the same bytes.
    pub stable: bool,
    /// The effect of a DELETE.
    pub deleted: Deleted,
    /// ZERO works. Otherwise it is refused with EOPNOTSUPP.
    pub zeroes: bool,
    /// EXTENTS works. Otherwise it is refused with EOPNOTSUPP.
    pub extents: bool,
}

impl Promises {
    /// An ordinary disk: everything.
    pub const DISK: Self = Self {
        writable: true,
        keeps_data: true,
        stable: true,
        deleted: Deleted::Zeroes,
        zeroes: true,
        extents: true,
    };

    /// The same, but nothing can be changed.
    pub const READ_ONLY: Self = Self {
        writable: false,
        keeps_data: false,
        ..Self::DISK
    };
}

/// A kind of device under test.
pub struct Subject<'a> {
    /// The name in a failure; by custom the target as the stack language has it.
    pub name: &'a str,
    /// Makes a fresh device in a stack that works so.
    pub open: &'a dyn Fn(StackKnobs) -> Device,
    /// The promises that the suite checks.
    pub promises: Promises,
}

/// The ways in which a stack can run, all of which every class must stand.
pub fn modes() -> Vec<StackKnobs> {
    let mut modes = Vec::new();
    for dispatch in [Dispatch::Direct, Dispatch::Queued { spin_ns: 0 }] {
        for statistics in [
            Statistics::Off,
            Statistics::Counts,
            Statistics::Time { one_in: 2 },
        ] {
            modes.push(StackKnobs {
                dispatch,
                statistics,
                ..StackKnobs::default()
            });
        }
        modes.push(StackKnobs {
            dispatch,
            registry: Registry::Locked,
            pools: Pools::Shared,
            ..StackKnobs::default()
        });
    }
    modes
}

/// A case: its name, and its function.
type Case = (&'static str, fn(&mut Bench<'_>));

const CASES: &[Case] = &[
    ("the sizes fit each other", edges::sizes),
    ("requests off the sectors are refused", edges::unaligned),
    ("only the end of the media is short", edges::end_of_media),
    ("a request of no bytes does nothing", edges::empty),
    ("an unknown attribute is none", edges::unknown_attribute),
    ("an unwritable device refuses writers", edges::read_only),
    ("a reader cannot write", edges::reader_writes),
    ("pieces read as the whole does", data::pieces),
    ("what was written is read", data::write_and_read),
    ("a write changes nothing beside it", data::neighbours),
    ("random requests agree with a model", data::model),
    ("a flush succeeds", data::flush),
    ("DELETE does what is promised", data::delete),
    ("ZERO does what is promised", data::zero),
    ("extents cover what was asked", data::extents),
    (
        "a thousand requests at once come home",
        concurrent::thousand,
    ),
    (
        "two threads do not disturb each other",
        concurrent::two_threads,
    ),
    ("a cancelled request comes home once", concurrent::cancel),
    ("an orphaned provider answers ENXIO", concurrent::orphan),
];

/// Runs the whole suite on a subject, in every mode.
///
/// # Panics
/// When the subject breaks the contract; the message says how.
pub fn check(subject: &Subject<'_>) {
    check_in(subject, modes());
}

/// Runs it in every second mode, beginning with the first or the second: for one of several
/// subjects that share their code, so that each mode meets half of them.
///
/// # Panics
/// As [`check`].
pub fn check_half(subject: &Subject<'_>, turn: usize) {
    check_in(subject, modes().into_iter().skip(turn % 2).step_by(2));
}

fn check_in(subject: &Subject<'_>, modes: impl IntoIterator<Item = StackKnobs>) {
    for options in modes {
        for (name, case) in CASES {
            let mut bench = Bench::new(subject, options, name);
            case(&mut bench);
            bench.finish();
        }
    }
}

/// A fresh device with a channel, and what a case needs to talk about it.
struct Bench<'a> {
    subject: &'a Subject<'a>,
    case: &'static str,
    options: StackKnobs,
    device: Device,
    channel: Channel,
    opened: Opened,
    view: ProviderView,
    random: fastrand::Rng,
}

impl<'a> Bench<'a> {
    fn new(subject: &'a Subject<'a>, options: StackKnobs, case: &'static str) -> Self {
        let device = (subject.open)(options);
        let about = || format!("{} ({options:?}): {case}", subject.name);
        let delta = Delta::of_user(subject.promises.writable);
        let opened = device.stack.open(device.provider, delta);
        let opened = opened.unwrap_or_else(|error| panic!("{}: {error}", about()));
        let channel = device.stack.channel(1000);
        let channel = channel.unwrap_or_else(|error| panic!("{}: {error}", about()));
        let view = opened.view();
        let view = view.unwrap_or_else(|| panic!("{}: the provider is destroyed", about()));
        Self {
            subject,
            case,
            options,
            device,
            channel,
            opened,
            view,
            random: fastrand::Rng::with_seed(1),
        }
    }

    /// The state that every case must leave behind: nothing in flight, no bio dropped by a layer.
    fn finish(self) {
        let about = self.about();
        let Self {
            device,
            channel,
            opened,
            options,
            ..
        } = self;
        assert_eq!(channel.in_flight(), 0, "{about}: bios are still in flight");
        drop(channel);
        drop(opened);
        if options.statistics != Statistics::Off
            && let Ok(totals) = device.stack.statistics(device.provider)
        {
            assert_eq!(
                totals.in_flight(),
                0,
                "{about}: bios are counted as in flight"
            );
        }
        assert_eq!(device.stack.defects(), 0, "{about}: a layer dropped bios");
        drop(device.keep);
    }

    fn about(&self) -> String {
        let Self {
            subject,
            options,
            case,
            ..
        } = self;
        let (dispatch, statistics) = (options.dispatch, options.statistics);
        format!("{} ({dispatch:?}, {statistics:?}): {case}", subject.name)
    }

    #[track_caller]
    fn check(&self, holds: bool, what: &str) {
        assert!(holds, "{}: {what}", self.about());
    }

    #[track_caller]
    fn good<T>(&self, result: Result<T, IoError>) -> T {
        result.unwrap_or_else(|error| panic!("{}: {error}", self.about()))
    }

    #[track_caller]
    fn refused<T>(&self, result: Result<T, IoError>, errno: Errno) {
        match result {
            Ok(_) => panic!("{}: nothing was refused", self.about()),
            Err(error) => assert_eq!(error.errno, errno, "{}: {error}", self.about()),
        }
    }

    fn sector(&self) -> u64 {
        u64::from(self.view.sectorsize_bytes)
    }

    fn media(&self) -> u64 {
        self.view.mediasize_bytes
    }

    /// How much of the media's start the data cases play with, in bytes.
    fn playground(&self) -> u64 {
        const PLAYGROUND_BYTES: u64 = 256 << 10;
        let bytes = self.media().min(PLAYGROUND_BYTES.max(4 * self.sector()));
        bytes - bytes % self.sector()
    }

    #[track_caller]
    fn read(&mut self, offset: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0xa5; length as usize];
        let result = self.channel.read(&self.opened, offset, &mut bytes);
        let read = self.good(result);
        self.check(read == bytes.len(), "a read inside the media was short");
        bytes
    }

    #[track_caller]
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let result = self.channel.write(&self.opened, offset, bytes);
        let written = self.good(result);
        self.check(written == bytes.len(), "a write inside the media was short");
    }

    fn random_bytes(&mut self, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        self.random.fill(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests;
