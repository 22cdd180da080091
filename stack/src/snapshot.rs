//! The topology as the data path sees it: immutable, one flat array of edges, with a generation.
//!
//! An edge is an attached consumer together with its target: the checks of its provider and the
//! geom behind it. The edges of one geom's consumers lie side by side, so that a layer's
//! `Forward(n)` is one addition.

use crate::bio::slot::Body;
use crate::bio::{Bio, BioId, Command};
use crate::class::Geom;
use crate::cx::{Cx, LocalKey};
use crate::devices::Devices;
use crate::error::Errno;
use crate::generations::Picture;
use crate::losses::{Losses, Mark};
use crate::shift::Run;
use std::ops::Range;
use std::sync::Arc;
use ugeom_machine::direct::Direct;

/// Moves a bio as far as it goes; gives it back when it has completed at once.
pub(crate) type Drive = fn(&Snapshot, &mut Cx, Bio) -> Option<Bio>;

/// The hot part of an attached consumer: one cache line.
#[repr(align(64))]
pub(crate) struct Edge {
    /// Where the media ends for requests that read and for those that write, bytes; 0 for those
    /// that need the slow checks (not permitted, an errored provider, an odd sector size).
    pub ends: [u64; 2],
    /// The bits that no offset and no length may have: those below the sector size, and the highest
    /// (so that their sum cannot wrap).
    pub forbidden: u64,
    pub geom: Direct<dyn Geom>,
    /// The first edge of that geom's consumers.
    pub below: u32,
    /// How many consumers that geom has.
    pub below_count: u16,
    /// The port of this provider in that geom.
    pub port: u16,
    /// Where its statistics are counted.
    pub stat: u32,
    /// The geom wants to see requests come back.
    pub hooked: bool,
    /// The layers that requests which enter here pass at once, an index into [`Snapshot::runs`];
    /// [`NO_RUN`] when there are none.
    pub run: u32,
}

/// Of an edge whose requests pass no layers at once.
pub(crate) const NO_RUN: u32 = u32::MAX;

/// The data of an edge for the slow checks only, apart from the cache lines of the path.
#[derive(Clone)]
pub(crate) struct EdgeInfo {
    pub provider: String,
    pub sectorsize: u32,
    pub mediasize: u64,
    /// Commands that the consumer's access counts allow.
    pub permit: u32,
    pub error: Option<Errno>,
    pub orphan: bool,
    /// Clones that a request entering here may need at the most, all layers below included.
    pub clones: usize,
    /// The losses of the provider's geom, and the consumer's own.
    pub losses: Arc<Losses>,
    pub above: Arc<Losses>,
    /// The range of the geom's losses that the provider shows.
    pub window: Range<u64>,
    /// The consumer's geom shows the provider's bytes in their order.
    pub above_in_order: bool,
    /// The consumer's mark in them.
    pub mark: Arc<Mark>,
}

/// One generation of the topology.
pub(crate) struct Snapshot {
    pub generation: u64,
    /// Those of the attached consumers, and then those that runs add.
    pub edges: Box<[Edge]>,
    /// The runs of all edges ([`crate::shift`]).
    pub runs: Box<[Run]>,
    pub info: Box<[EdgeInfo]>,
    /// For each opened handle, the edge that its requests enter; `u32::MAX` when it is closed.
    pub entries: Box<[u32]>,
    /// How a caller's request starts.
    pub enter: Drive,
    /// How a request goes on after it waited somewhere.
    pub go_on: Drive,
    /// One request in this many is timed; 0 for none.
    pub sample_one_in: u32,
    /// The references of the locked registry.
    pub devices: Arc<Devices>,
    /// How many edges the statistics need room for.
    pub stats_wanted: usize,
    /// The thread states that are still wanted.
    pub local_keys: Vec<LocalKey>,
}

impl Picture for Snapshot {
    fn generation(&self) -> u64 {
        self.generation
    }
}

/// The result of the slow checks.
pub(crate) enum Admission {
    /// The request may enter the edge.
    Enter,
    /// Nothing is left to do: it is complete with 0 bytes.
    Nothing,
    /// It has been failed.
    Refused,
}

/// No offset and no length may have this bit; then their sum does not wrap.
pub(crate) const HIGHEST: u64 = 1 << 63;

impl Edge {
    /// True when a request that moves `length` bytes (not 0) passes all of GEOM's checks; the
    /// others take [`Snapshot::admit`]. `side` is [`Command::side`].
    #[inline(always)]
    pub(crate) fn admits(&self, side: usize, offset: u64, length: u64) -> bool {
        let clean = (offset | length) & self.forbidden == 0;
        clean & (offset.wrapping_add(length) <= self.ends[side & 1])
    }
}

impl Snapshot {
    /// Asks every geom to give a cancelled bio back, if it holds it.
    pub(crate) fn cancel(&self, id: BioId) {
        for edge in &self.edges {
            edge.geom.cancel(id);
        }
    }

    /// GEOM's checks in GEOM's order, for everything that the fast path does not admit.
    #[cold]
    #[inline(never)]
    pub(crate) fn admit(&self, index: u32, body: &mut Body) -> Admission {
        let Some(info) = self.info.get(index as usize) else {
            let text = "the consumer is not attached to a provider";
            return refuse(body, index, Errno::NXIO, text);
        };
        if info.permit & body.command.bit() == 0 {
            let text = match body.command {
                Command::Read | Command::GetAttr | Command::Extents => "not opened for reading",
                _ => "not opened for writing",
            };
            return refuse(body, index, Errno::PERM, text);
        }
        if let Some(errno) = info.error {
            return refuse(body, index, errno, "the provider is destroyed or failed");
        }
        if info.orphan {
            return refuse(body, index, Errno::NXIO, "the consumer is orphaned");
        }
        if !body.command.has_range() {
            if body.command == Command::Flush {
                body.offset = info.mediasize;
            }
            return Admission::Enter;
        }
        if info.sectorsize == 0 || info.mediasize == 0 {
            return refuse(body, index, Errno::NXIO, "the provider has no media");
        }
        let sector = u64::from(info.sectorsize);
        for (bytes, text) in [
            (
                body.offset,
                "the offset is not a multiple of the sector size",
            ),
            (
                body.length,
                "the length is not a multiple of the sector size",
            ),
        ] {
            if !bytes.is_multiple_of(sector) {
                return refuse(body, index, Errno::INVAL, text);
            }
        }
        admit_range(info.mediasize, index, body)
    }
}

fn refuse(body: &mut Body, index: u32, errno: Errno, text: &'static str) -> Admission {
    body.fail(code(errno), index, text);
    Admission::Refused
}

/// The last check: the range against the end of the media.
fn admit_range(mediasize: u64, index: u32, body: &mut Body) -> Admission {
    if body.offset > mediasize {
        return refuse(
            body,
            index,
            Errno::IO,
            "the offset is past the end of the media",
        );
    }
    let room = mediasize - body.offset;
    if body.length > room {
        if body.depth > 0 {
            // GEOM would shorten it in silence here; a partition that ends before its table says
            // so must not look like the end of the media.
            let text = "the layer above reaches past the end of the media";
            return refuse(body, index, Errno::IO, text);
        }
        if body.asked == 0 {
            body.asked = body.length;
        }
        body.length = room;
    }
    if body.length == 0 {
        Admission::Nothing
    } else {
        Admission::Enter
    }
}

/// An errno as a bio carries it.
pub(crate) fn code(errno: Errno) -> u16 {
    errno.raw_os_error() as u16
}
