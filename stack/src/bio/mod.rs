//! The bio: one request on its way through the layers, its commands, flags and payloads.
//!
//! The words and numbers are GEOM's (`sys/sys/bio.h`, `geom(4)`). A bio lives in a slot of its
//! home thread's pool ([`pool`]), or of one for all threads (`shared_pool.rs`); layers see it as a
//! [`Request`] while they decide, and own it as a [`Bio`] while they keep it. This folder holds all
//! the unsafe code of the crate.

mod borrow;
mod carrier;
mod draft;
mod owned;
mod payload;
pub(crate) mod pool;
pub(crate) mod request;
mod shared_pool;
pub(crate) mod slot;
mod watched;

pub(crate) use borrow::{Loan, Trip, lend};
pub use carrier::Carrier;
pub use draft::{Draft, Finished};
pub use owned::{Bio, BioId};
pub(crate) use payload::Payload;
pub use payload::{AttributeValue, Extent, ExtentKind};
pub use request::{FanOut, Next, Request};
pub(crate) use shared_pool::SharedPool;
pub use slot::MAX_DEPTH;

/// The command of a bio. The order is GEOM's; ZERO and EXTENTS are additions of ugeom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Command {
    /// Read `length` bytes at `offset` into the data.
    Read = 0,
    /// Write `length` bytes of data at `offset`.
    Write = 1,
    /// The range is not needed any more; what it reads as afterwards is up to the provider.
    Delete = 2,
    /// The range must read as zeroes afterwards; no data is carried.
    Zero = 3,
    /// All writes that completed before this was submitted must become durable.
    Flush = 4,
    /// Ask for a named attribute (`GEOM::fwsectors`, `PART::type`, ...).
    GetAttr = 5,
    /// Ask which parts of the range hold data, read as zeroes, or are holes.
    Extents = 6,
}

/// How many commands there are; the size of tables indexed by `Command as usize`.
pub const COMMANDS: usize = 7;

impl Command {
    /// All commands in the order of their numbers.
    pub const ALL: [Self; COMMANDS] = [
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Zero,
        Self::Flush,
        Self::GetAttr,
        Self::Extents,
    ];

    /// The bit of this command in a permission mask.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u8
    }

    /// 0 when the command reads, 1 when it changes the media.
    pub(crate) const fn side(self) -> usize {
        match self {
            Self::Read | Self::GetAttr | Self::Extents => 0,
            Self::Write | Self::Delete | Self::Zero | Self::Flush => 1,
        }
    }

    /// True when the command names a range of the media (and so is checked against it).
    pub const fn has_range(self) -> bool {
        !matches!(self, Self::Flush | Self::GetAttr)
    }

    /// GEOM's name, as in error messages and statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Delete => "DELETE",
            Self::Zero => "ZERO",
            Self::Flush => "FLUSH",
            Self::GetAttr => "GETATTR",
            Self::Extents => "EXTENTS",
        }
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Modifiers of a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No modifier: neither ORDERED nor FUA.
    pub const NONE: Self = Self(0);
    /// A write (or zero) is durable before it completes: force unit access.
    pub const FUA: Self = Self(1);
    /// A barrier among the requests of one channel: all earlier ones complete before it starts,
    /// all later ones start after it completed (GEOM's `BIO_ORDERED`).
    pub const ORDERED: Self = Self(2);
    /// Of a FLUSH: its client has gone, so its error reaches at most a log, and a loss that it
    /// finds stays unreported for the next client. Of a READ: it is a taste, which may read what
    /// cannot be read, so layers log nothing.
    pub const UNHEARD: Self = Self(4);
    /// Of a ZERO: the range stays allocated, where the layer below can leave holes and can do
    /// without.
    pub const NO_HOLE: Self = Self(8);
    /// Of a FLUSH: it makes another request of its sender durable, whose error it decides. A loss
    /// that it finds stays unreported for the sender's next FLUSH.
    pub const FOR_REQUEST: Self = Self(0x10);
    /// The core's own: this bio is one of those whose time is taken.
    pub(crate) const MARKED: Self = Self(0x80);
    /// The core's own: this bio holds a reference in the locked registry.
    pub(crate) const REFERENCED: Self = Self(0x40);

    /// The core's own: the memory of this READ is watched
    /// ([`ugeom_machine::buffer::IoMemory::is_watched`]).
    pub(crate) const WATCHED: Self = Self(0x20);

    /// True when all of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The fields that a clone takes over from its parent (GEOM: `ORDERED` and how the data is
    /// mapped; the mark is needed for the time of fan-outs).
    pub(crate) const fn for_clone(self) -> Self {
        let kept = Self::FUA.0 | Self::ORDERED.0 | Self::NO_HOLE.0;
        Self(self.0 & (kept | Self::MARKED.0 | Self::WATCHED.0))
    }

    /// The same, and whether the memory is watched.
    pub(crate) const fn with_watched(self, watched: bool) -> Self {
        if watched {
            self.with(Self::WATCHED)
        } else {
            self
        }
    }

    /// The fields that a geom's own request takes over from the one that it is made for: only the
    /// mark.
    pub(crate) const fn for_own(self) -> Self {
        Self(self.0 & Self::MARKED.0)
    }
}
