//! [`Bio`]: the owned handle, eight bytes. It cannot be completed twice, because completing takes
//! it; one that is dropped completes with EIO and is counted as a defect.

use super::payload::Extent;
use super::request::Request;
use super::slot::{Body, Slot, Stage, next_life};
use super::{Command, Flags};
use crate::error::Errno;
use crate::home::Home;
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ugeom_machine::buffer::{IoMemory, Segment};
use ugeom_machine::mailbox::{Handle, Link};

/// Identifies one life of a bio, for cancelling. No other life of this process ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BioId {
    /// Where its slot is, as a number: nothing follows it.
    pub(super) address: usize,
    pub(super) life: u64,
}

/// A request that a geom keeps for a while (see [`Request::park`]), owned by its holder.
///
/// Complete it from any thread with [`Bio::complete`]; it returns on its own.
pub struct Bio {
    slot: NonNull<Slot>,
}

// SAFETY: a `Bio` is the exclusive right to its slot's body, so moving it moves that right; the
// memory behind its segments is `IoMemory`, valid from any thread until the bio is done.
unsafe impl Send for Bio {}

impl Bio {
    /// # Safety
    /// The caller must be the only owner of the slot's body.
    #[inline]
    pub(crate) unsafe fn from_slot(slot: NonNull<Slot>) -> Self {
        Self { slot }
    }

    #[inline]
    pub(crate) fn into_slot(self) -> NonNull<Slot> {
        let slot = self.slot;
        mem::forget(self);
        slot
    }

    #[inline]
    pub(crate) fn body(&self) -> &Body {
        // SAFETY: owning the `Bio` is the exclusive right to the body, and slots outlive bios.
        unsafe { &*self.slot.as_ref().body.get() }
    }

    #[inline]
    pub(crate) fn body_mut(&mut self) -> &mut Body {
        // SAFETY: as in `body`; `&mut self` makes the access unique.
        unsafe { &mut *self.slot.as_ref().body.get() }
    }

    /// Lends the bio to a geom for a decision.
    #[inline]
    pub(crate) fn request(&mut self) -> Request<'_> {
        let offset = self.body().offset;
        self.request_at(offset)
    }

    /// The same, for a driver that knows the offset already.
    #[inline(always)]
    pub(crate) fn request_at(&mut self, offset: u64) -> Request<'_> {
        Request::new(self.slot, offset, PhantomData)
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        // SAFETY: slots outlive bios; the field is atomic.
        unsafe { self.slot.as_ref() }
            .cancelled
            .load(Ordering::Relaxed)
    }

    /// Starts a new life: names of the one before become void.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        // SAFETY: slots outlive bios; the fields are atomic.
        let slot = unsafe { self.slot.as_ref() };
        let life = next_life(slot.life.load(Ordering::Relaxed));
        slot.life.store(life, Ordering::Relaxed);
        slot.cancelled.store(false, Ordering::Relaxed);
    }

    /// The id of this bio, as [`crate::Channel::cancel`] and [`crate::Geom::cancel`] take it.
    #[inline]
    pub fn id(&self) -> BioId {
        id_of(self.slot)
    }

    /// READ, WRITE or another command.
    pub fn command(&self) -> Command {
        self.body().command
    }

    /// ORDERED, FUA and the other modifiers of the bio.
    pub fn flags(&self) -> Flags {
        self.body().flags
    }

    /// Where, in bytes of the provider that was asked.
    pub fn offset(&self) -> u64 {
        self.body().offset
    }

    /// How much, in bytes.
    pub fn length(&self) -> u64 {
        self.body().length
    }

    /// Lends the memory of a READ, piece by piece, to be filled, as [`Request::fill`] does.
    pub fn fill(&mut self, with: impl FnMut(u64, &mut [u8])) {
        self.request().fill(with);
    }

    /// Shows the data of a WRITE, piece by piece, as [`Request::each`] does.
    pub fn each(&mut self, with: impl FnMut(u64, &[u8])) {
        self.request().each(with);
    }

    /// Adds a stretch to the answer of an EXTENTS, as [`Request::add_extent`] does.
    pub fn add_extent(&mut self, extent: Extent) -> bool {
        self.request().add_extent(extent)
    }

    /// Finishes it with a number of bytes done, or with an error, from any thread.
    pub fn complete(mut self, result: Result<u64, Errno>) {
        self.set_result(result);
        self.send_up();
    }

    /// Lets the caller ask the geom again (see [`crate::Geom::resume`]), from any thread.
    pub fn resume(mut self) {
        self.body_mut().stage = Stage::Resume;
        let home = Arc::clone(self.body().home.downward());
        home.mailbox.post(self);
    }

    pub(crate) fn set_result(&mut self, result: Result<u64, Errno>) {
        let body = self.body_mut();
        match result {
            Ok(bytes) => {
                body.error = 0;
                body.completed = bytes.min(body.length);
            }
            Err(errno) => return self.set_failed(errno, "the provider failed it"),
        }
        body.stage = Stage::Up;
    }

    pub(crate) fn set_failed(&mut self, errno: Errno, reason: &'static str) {
        let body = self.body_mut();
        let edge = body.last_hop().map_or(0, |hop| hop.edge);
        body.fail(errno.raw_os_error() as u16, edge, reason);
        body.completed = 0;
        body.stage = Stage::Up;
    }

    /// Finishes it with an error and plain words that reach the user, from any thread.
    pub fn fail(mut self, errno: Errno, reason: &'static str) {
        self.set_failed(errno, reason);
        self.send_up();
    }

    /// Posts it to the thread that walks the path backwards: home, or `g_up` when queued.
    fn send_up(self) {
        // The clone keeps the mailbox alive after the bio has been posted: from then on home may
        // finish and go away.
        let home = Arc::clone(self.body().home.upward());
        home.mailbox.post(self);
    }

    /// Posts it to the mailbox of `to`.
    pub(crate) fn post_to(self, to: &Arc<Home>) {
        let to = Arc::clone(to);
        to.mailbox.post(self);
    }

    /// Takes the parent of a clone that came back. The last child to come back gets it.
    pub(crate) fn parent_body(&mut self) -> Option<&mut Body> {
        let parent = self.body().parent?;
        // SAFETY: a parent waits, with no other owner, until all of its children are back, and
        // all of its children return to one thread, which is the one that runs this.
        Some(unsafe { &mut *parent.as_ref().body.get() })
    }

    /// Ends a clone's tie to its parent; returns the parent when this was the last child.
    pub(crate) fn release_parent(&mut self) -> Option<Self> {
        let parent = self.body_mut().parent.take()?;
        // SAFETY: as in `parent_body`.
        let body = unsafe { &mut *parent.as_ref().body.get() };
        body.inbed += 1;
        // SAFETY: the last child is back, so the right to the parent passes to this handle.
        (body.inbed == body.children).then(|| unsafe { Self::from_slot(parent) })
    }

    /// Whose slot it is ([`super::slot::Slot::keeper`]).
    #[inline(always)]
    pub(crate) fn keeper(&self) -> usize {
        // SAFETY: slots outlive bios; the field is atomic.
        unsafe { self.slot.as_ref() }.keeper.load(Ordering::Relaxed)
    }

    /// Says whose it is from now on.
    pub(super) fn set_keeper(&mut self, keeper: usize) {
        // SAFETY: slots outlive bios; the field is atomic.
        let slot = unsafe { self.slot.as_ref() };
        slot.keeper.store(keeper, Ordering::Relaxed);
    }

    /// The address of the slot, as the identity of this bio.
    pub(crate) fn slot_pointer(&self) -> NonNull<Slot> {
        self.slot
    }
}

/// The name of the present life of a slot that a bio or a request owns.
#[inline]
pub(super) fn id_of(slot: NonNull<Slot>) -> BioId {
    // SAFETY: slots outlive bios; the field is atomic.
    let life = unsafe { slot.as_ref() }.life.load(Ordering::Relaxed);
    BioId {
        address: slot.addr().get(),
        life,
    }
}

impl Drop for Bio {
    fn drop(&mut self) {
        // SAFETY: the handle that is being dropped gives its right to the one made here, and is
        // not used afterwards.
        let mut bio = unsafe { Self::from_slot(self.slot) };
        let body = bio.body_mut();
        if matches!(body.stage, Stage::Idle | Stage::Free) {
            body.stage = Stage::Free;
            let home = Arc::clone(&body.home);
            home.mailbox.post(bio);
            return;
        }
        body.home.count_defect();
        bio.fail(Errno::IO, "a layer dropped the bio (a defect)");
    }
}

// SAFETY: the segments of a bio lie in memory that its caller owns and has lent to it, or that it
// owns itself, and that stays valid and untouched by others until the bio has completed.
unsafe impl IoMemory for Bio {
    fn segments(&self) -> &[Segment] {
        self.body().segments()
    }

    fn is_watched(&self) -> bool {
        self.body().flags.contains(Flags::WATCHED)
    }
}

// SAFETY: `into_node` and `from_node` pass the right to the slot along, and `link` names a field
// that only the mailbox or list that holds the bio uses.
unsafe impl Handle for Bio {
    type Node = Slot;

    #[inline]
    fn into_node(self) -> NonNull<Slot> {
        self.into_slot()
    }

    #[inline]
    unsafe fn from_node(node: NonNull<Slot>) -> Self {
        // SAFETY: the mailbox gives each node back once.
        unsafe { Self::from_slot(node) }
    }

    #[inline]
    unsafe fn link(node: NonNull<Slot>) -> *const Link<Slot> {
        // SAFETY: the node is a live slot; only the address of a field is taken.
        unsafe { &raw const (*node.as_ptr()).link }
    }
}
