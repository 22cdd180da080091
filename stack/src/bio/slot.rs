//! The memory of one bio: hot fields in the first cache line, then the recorded path.

use super::payload::Payload;
use super::{Command, Flags};
use crate::home::Home;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use ugeom_machine::buffer::Segment;
use ugeom_machine::mailbox::Link;

/// How many consumers a bio can pass on its way down. A stack that is deeper is refused when it is
/// attached, so that the path fits into the bio and no hop ever allocates.
pub const MAX_DEPTH: usize = 32;

/// The next step of a bio; read by the thread that finds it in its mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// In the caller's hands, or in the pool.
    Idle,
    /// Enter the consumer `edge`.
    Down,
    /// A clone: enter consumer number `edge` of the geom that made it.
    Child,
    /// The geom of the last hop is asked again (its delay is over).
    Resume,
    /// All clones of it are back; the geom of the last hop may look before the way back goes on.
    Joined,
    /// The geom of the last hop has finished; walk the path backwards.
    Up,
    /// The way back is done: hand it to the caller, or to the parent.
    Deliver,
    /// Its owner has dropped it: back into the pool.
    Free,
}

/// One recorded step of the path.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hop {
    /// The offset in the coordinates of the provider that was asked, bytes.
    pub offset: u64,
    /// The consumer that asked, as an index into the snapshot's edges.
    pub edge: u32,
    /// Requests in flight on the edge when this one started; only for marked bios.
    pub in_flight: u32,
    /// When it started, in clock ticks; only for marked bios.
    pub started_ticks: u64,
    /// A word of its own for the geom of this hop (an IRP stack location).
    pub scratch: u64,
}

/// Why a bio failed, beyond the number.
#[derive(Clone, Copy)]
pub(crate) struct Reason {
    pub text: &'static str,
    /// The edge whose provider (or the core, in its name) refused or failed it.
    pub edge: u32,
    /// The offset there, bytes.
    pub offset: u64,
}

/// The part of a slot that belongs to the bio's owner.
#[repr(C)]
pub(crate) struct Body {
    pub offset: u64,
    pub length: u64,
    pub completed: u64,
    pub segment: Segment,
    /// Hops recorded so far whose geom wants to see the end, a bit each.
    pub hooks: u32,
    /// The consumer to enter next (`Stage::Down`).
    pub edge: u32,
    pub command: Command,
    pub flags: Flags,
    pub depth: u8,
    pub stage: Stage,
    /// errno, 0 when all is well.
    pub error: u16,
    /// The requested provider of the geom.
    pub port: u16,
    // -- second cache line --
    pub generation: u64,
    pub cookie: u64,
    /// The opened handle that it was submitted to.
    pub entry: u32,
    /// The parent of a clone, as its slot.
    pub parent: Option<NonNull<Slot>>,
    /// Clones made, and clones that came back.
    pub children: u32,
    pub inbed: u32,
    /// READ clones may not overlap: where the next one may start in this bio's data, bytes.
    pub cloned_until: u64,
    /// For the exclusive time of a fan-out: when the first of the clones now in flight started,
    /// and how long any was in flight before that, ticks.
    pub children_live: u32,
    pub children_since_ticks: u64,
    pub children_ticks: u64,
    /// The requested length if the end of the media cut it, else 0; bytes.
    pub asked: u64,
    /// How long the hop below took, for the exclusive time of the one above, ticks.
    pub below_ticks: u64,
    /// When a delayed bio is due, in clock nanoseconds.
    pub due_ns: u64,
    /// Of a FLUSH: the last loss that its sender knew of.
    pub lost_mark: u64,
    pub reason: Option<Reason>,
    pub payload: Payload,
    pub home: Arc<Home>,
    pub hops: [Hop; MAX_DEPTH],
}

/// A place for a bio. Its address never changes while its pool lives. Aligned to two cache lines,
/// which processors fetch as a pair, so that two threads' slots have none in common.
#[repr(C, align(128))]
pub struct Slot {
    pub(crate) body: UnsafeCell<Body>,
    /// The link of whatever list or mailbox the bio is in.
    pub(crate) link: Link<Self>,
    /// Set by `Channel::cancel`, read by the next code that handles the bio.
    pub(crate) cancelled: AtomicBool,
    /// The present life ([`next_life`]), so that the name of an earlier one cancels nothing.
    pub(crate) life: AtomicU64,
    /// Whose it is (`Pool::own`), or in whose hands while all channels share one pool.
    pub(crate) keeper: AtomicUsize,
}

/// Lives that a slot takes at a time.
const BLOCK: u64 = 1 << 24;

/// The life after `life`. No two lives of any slots of the process are the same number: memory of
/// slots is used again at the same address, and numbers are all that tells them apart.
#[inline(always)]
pub(crate) fn next_life(life: u64) -> u64 {
    if life.is_multiple_of(BLOCK) {
        return first_life();
    }
    life.wrapping_add(1)
}

/// The first life of a block that is no other slot's.
#[cold]
#[inline(never)]
fn first_life() -> u64 {
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    let number = BLOCKS.fetch_add(1, Ordering::Relaxed);
    // 2^40 of them: a thousand a second last for 34 years. Past them, names would come again.
    assert!(number < u64::MAX / BLOCK, "all names of requests are used");
    number * BLOCK + 1
}

impl Slot {
    pub(crate) fn new(home: Arc<Home>, keeper: usize) -> Self {
        Self {
            body: UnsafeCell::new(Body {
                offset: 0,
                length: 0,
                completed: 0,
                segment: Segment {
                    base: std::ptr::null_mut(),
                    len: 0,
                },
                hooks: 0,
                edge: 0,
                command: Command::Read,
                flags: Flags::NONE,
                depth: 0,
                stage: Stage::Idle,
                error: 0,
                port: 0,
                generation: 0,
                cookie: 0,
                entry: 0,
                parent: None,
                children: 0,
                inbed: 0,
                cloned_until: 0,
                children_live: 0,
                children_since_ticks: 0,
                children_ticks: 0,
                asked: 0,
                below_ticks: 0,
                due_ns: 0,
                lost_mark: 0,
                reason: None,
                payload: Payload::None,
                home,
                hops: [Hop::default(); MAX_DEPTH],
            }),
            link: Link::new(std::ptr::null_mut()),
            cancelled: AtomicBool::new(false),
            life: AtomicU64::new(0),
            keeper: AtomicUsize::new(keeper),
        }
    }
}

impl Body {
    /// The hop recorded last: the geom that has the bio now.
    pub(crate) fn last_hop(&self) -> Option<&Hop> {
        self.hops.get(usize::from(self.depth).wrapping_sub(1))
    }

    /// The memory of the data, in order.
    #[inline]
    pub(crate) fn segments(&self) -> &[Segment] {
        match &self.payload {
            Payload::Memory(memory) => memory.segments(),
            Payload::Shared(segments) => segments,
            _ => std::slice::from_ref(&self.segment),
        }
    }

    /// Fails the bio at `edge`.
    #[cold]
    pub(crate) fn fail(&mut self, error: u16, edge: u32, text: &'static str) {
        self.error = error;
        self.reason = Some(Reason {
            text,
            edge,
            offset: self.offset,
        });
    }

    /// Makes a slot that comes from the pool or from an earlier round ready for a new one.
    #[inline]
    pub(crate) fn rearm(&mut self) {
        self.completed = 0;
        self.hooks = 0;
        self.depth = 0;
        self.error = 0;
    }
}
