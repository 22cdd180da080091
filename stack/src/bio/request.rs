//! [`Request`]: a bio lent to a geom for one decision, and [`Next`], the decision.
//!
//! A geom consumes the request to make its decision, so it cannot decide twice and cannot touch a
//! bio that it has given away.

use super::owned::{Bio, id_of};
use super::payload::{AttributeValue, Extent, Payload};
use super::slot::{Body, Slot, Stage};
use super::{BioId, Command, Flags, watched};
use crate::cx::Cx;
use crate::error::Errno;
use std::marker::PhantomData;
use std::ptr::NonNull;
use ugeom_machine::buffer::{IoMemory, Segment};
use ugeom_machine::lease::Lease;
use ugeom_machine::mailbox::Fifo;
use ugeom_machine::returning::Returning;

/// The fate of a request. Only the methods of [`Request`] make one.
///
/// Two plain words, so that it travels in registers: what to do, and where. The offset goes from
/// layer to layer this way and not through the bio's memory, whose latency each layer would pay.
#[must_use = "the decision is what the core acts on"]
pub struct Next {
    code: u64,
    /// Where the request is to go on, in bytes of the provider below.
    pub(crate) offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Enter this consumer of the geom.
    Forward(u16),
    /// Finished here; the result is in the body.
    Done,
    /// The geom (or a fan-out) owns it now.
    Parked,
    /// The thread's timers get it; it is due at `due_ns`.
    Delayed,
}

/// Codes from here on are no consumers.
const DONE: u64 = 1 << 16;
const PARKED: u64 = DONE + 1;
const DELAYED: u64 = DONE + 2;

/// It has another owner; which one does not matter.
const PARKED_NEXT: Next = Next {
    code: PARKED,
    offset: 0,
};

impl Next {
    /// The consumer to enter, when that is the decision and there is such a consumer.
    #[inline(always)]
    pub(crate) fn forwards_below(&self, count: u16) -> Option<u32> {
        // All other decisions have codes beyond any count.
        (self.code < u64::from(count)).then_some(self.code as u32)
    }

    /// True when the request is finished here.
    #[inline(always)]
    pub(crate) fn is_done(&self) -> bool {
        self.code == DONE
    }

    #[inline(always)]
    pub(crate) fn verdict(&self) -> Verdict {
        match self.code {
            DONE => Verdict::Done,
            PARKED => Verdict::Parked,
            DELAYED => Verdict::Delayed,
            consumer => Verdict::Forward(consumer as u16),
        }
    }
}

/// A bio lent to a geom.
pub struct Request<'a> {
    slot: NonNull<Slot>,
    offset: u64,
    lent: PhantomData<&'a mut Body>,
}

impl<'a> Request<'a> {
    #[inline]
    pub(super) fn new(slot: NonNull<Slot>, offset: u64, lent: PhantomData<&'a mut Body>) -> Self {
        Self { slot, offset, lent }
    }

    #[inline]
    fn body(&self) -> &Body {
        // SAFETY: a request stands for the unique borrow of the body that `new` was given.
        unsafe { &*self.slot.as_ref().body.get() }
    }

    #[inline]
    fn body_mut(&mut self) -> &mut Body {
        // SAFETY: as in `body`, and `&mut self` makes it unique.
        unsafe { &mut *self.slot.as_ref().body.get() }
    }

    /// READ, WRITE or another command.
    #[inline]
    pub fn command(&self) -> Command {
        self.body().command
    }

    /// ORDERED, FUA and the other modifiers of the bio.
    #[inline]
    pub fn flags(&self) -> Flags {
        self.body().flags
    }

    /// Where, in bytes from the start of the provider that was asked. Always a multiple of that
    /// provider's sector size.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How much, in bytes; inside the provider's media.
    #[inline]
    pub fn length(&self) -> u64 {
        self.body().length
    }

    /// The port: the position of the requested provider in the geom's plan.
    #[inline]
    pub fn port(&self) -> u16 {
        self.body().port
    }

    /// Moves the request to another place before it is forwarded.
    #[inline]
    pub fn set_offset(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// The bytes done, or why not, as the layer below left it. For [`crate::Geom::done`].
    ///
    /// # Errors
    /// The error that the layer below finished with.
    pub fn result(&self) -> Result<u64, Errno> {
        let body = self.body();
        match body.error {
            0 => Ok(body.completed),
            error => Err(Errno::from_raw_os_error(i32::from(error))),
        }
    }

    /// Discards the answer of the layer below: the request goes on as if there were none.
    /// For a geom that has another way.
    pub fn disregard(&mut self) {
        let body = self.body_mut();
        body.error = 0;
        body.completed = 0;
        body.reason = None;
        if let Payload::Lendable { lent, .. } = &mut body.payload {
            *lent = None;
        }
    }

    /// True when the caller of a READ takes memory that a layer lends him, in place of a copy
    /// ([`Request::lend`]).
    #[inline]
    pub fn may_lend(&self) -> bool {
        matches!(self.body().payload, Payload::Lendable { .. })
    }

    /// No layer below lends memory in place of filling the caller's: for a geom that changes what
    /// was read, in the caller's memory.
    #[inline]
    pub fn refuse_lease(&mut self) {
        if self.may_lend() {
            let body = self.body_mut();
            if let Payload::Lendable { buffer, .. } = std::mem::take(&mut body.payload) {
                body.payload = Payload::Buffer(buffer);
            }
        }
    }

    /// Finished in full: the caller of a READ gets these bytes, which are all that he asked for,
    /// to look at and to give back by dropping them. The lease is dropped when the caller takes
    /// none, or another number of bytes; then this fails with EINVAL.
    pub fn lend(mut self, lease: impl Into<Lease>) -> Next {
        let lease = lease.into();
        let body = self.body_mut();
        let fits = body.command == Command::Read && lease.len() as u64 == body.length;
        match &mut body.payload {
            Payload::Lendable { lent, .. } if fits => *lent = Some(lease),
            _ => {
                return self.fail(
                    Errno::INVAL,
                    "a layer returned a lease that was not requested",
                );
            }
        }
        self.done_in_full()
    }

    /// The word that belongs to this geom for the duration of this bio.
    pub fn scratch(&mut self) -> &mut u64 {
        let body = self.body_mut();
        let last = usize::from(body.depth) - 1;
        &mut body.hops[last].scratch
    }

    /// The id of this bio.
    pub fn id(&self) -> BioId {
        id_of(self.slot)
    }

    /// Lends the memory of a READ, piece by piece, to be filled: `with(at, piece)`, where `at`
    /// counts bytes from the start of the data. Does nothing for other commands.
    #[inline]
    pub fn fill(&mut self, mut with: impl FnMut(u64, &mut [u8])) {
        let body = self.body();
        if body.command != Command::Read {
            return;
        }
        if self.may_lend() {
            self.take_back();
        }
        let body = self.body();
        let mut at = 0;
        for segment in body.segments() {
            let length = (body.length - at).min(segment.len as u64) as usize;
            if length == 0 {
                break;
            }
            if body.flags.contains(Flags::WATCHED) {
                // SAFETY: the segment is valid memory of this READ, which others only copy out of,
                // as shared bytes; the length is inside it.
                unsafe { watched::fill(segment.base, length, at, &mut with) };
                at += length as u64;
                continue;
            }
            // SAFETY: the segments of a READ are memory that is valid and that no other code
            // touches until the bio has completed; the length is inside the segment. Clones of a
            // READ never overlap (see `FanOut::child`).
            let piece = unsafe { std::slice::from_raw_parts_mut(segment.base, length) };
            with(at, piece);
            at += length as u64;
        }
    }

    /// The data filled in now counts, not the memory lent before.
    #[cold]
    fn take_back(&mut self) {
        drop(self.take_lease());
    }

    /// Takes the lease of a layer below, for a geom that derives the caller's data from it,
    /// which is one piece then. For [`crate::Geom::done`].
    pub fn take_lease(&mut self) -> Option<Lease> {
        match &mut self.body_mut().payload {
            Payload::Lendable { lent, .. } => lent.take(),
            _ => None,
        }
    }

    /// Shows the data of a WRITE (or of a READ that has been filled), piece by piece:
    /// `with(at, piece)`.
    #[inline]
    pub fn each(&self, mut with: impl FnMut(u64, &[u8])) {
        let body = self.body();
        if let Payload::Lendable {
            lent: Some(lease), ..
        } = &body.payload
        {
            return lease.each(with);
        }
        let mut at = 0;
        for segment in body.segments() {
            let length = (body.length - at).min(segment.len as u64) as usize;
            if length == 0 {
                break;
            }
            // SAFETY: the segments are valid memory that nothing changes while the bio is away
            // from home; the length is inside the segment.
            let piece = unsafe { std::slice::from_raw_parts(segment.base, length) };
            with(at, piece);
            at += length as u64;
        }
    }

    /// The name that a GETATTR asks for; empty for other commands.
    pub fn attribute(&self) -> &str {
        match &self.body().payload {
            Payload::Attribute { name, .. } => name,
            _ => "",
        }
    }

    /// Completes a GETATTR with the value of the attribute.
    pub fn answer(mut self, answer: AttributeValue) -> Next {
        if let Payload::Attribute { value, .. } = &mut self.body_mut().payload {
            *value = Some(answer);
        }
        self.done(Ok(0))
    }

    /// Adds a stretch to the answer of an EXTENTS; false when the caller wants no more, or the
    /// range is covered. A stretch that reaches past the range is cut.
    pub fn add_extent(&mut self, extent: Extent) -> bool {
        let body = self.body_mut();
        let left = body.length - body.completed;
        let Payload::Extents { limit, found } = &mut body.payload else { return false };
        if found.len() >= *limit || left == 0 {
            return false;
        }
        let length_bytes = extent.length_bytes.min(left);
        match found.last_mut() {
            Some(last) if last.kind == extent.kind => last.length_bytes += length_bytes,
            _ => found.push(Extent {
                length_bytes,
                ..extent
            }),
        }
        body.completed += length_bytes;
        body.completed < body.length
    }

    /// Passes the request on to a consumer of this geom, by its position in the geom's plan.
    #[inline]
    pub fn forward(self, consumer: u16) -> Next {
        Next {
            code: u64::from(consumer),
            offset: self.offset,
        }
    }

    /// Finished: so many bytes, or an error.
    #[inline]
    pub fn done(mut self, result: Result<u64, Errno>) -> Next {
        let body = self.body_mut();
        match result {
            Ok(bytes) => {
                body.error = 0;
                body.completed = bytes.min(body.length);
            }
            Err(errno) => return self.fail(errno, "the provider failed it"),
        }
        Next {
            code: DONE,
            offset: self.offset,
        }
    }

    /// Finished: all bytes of the request, without an error.
    #[inline]
    pub fn done_in_full(mut self) -> Next {
        let body = self.body_mut();
        body.completed = body.length;
        Next {
            code: DONE,
            offset: self.offset,
        }
    }

    /// Leaves the result of the layer below as it is. For [`crate::Geom::done`].
    #[inline]
    pub fn finish(self) -> Next {
        Next {
            code: DONE,
            offset: self.offset,
        }
    }

    /// Failed, with plain words that reach the user.
    #[cold]
    pub fn fail(mut self, errno: Errno, reason: &'static str) -> Next {
        let offset = self.offset;
        let body = self.body_mut();
        let edge = body.last_hop().map_or(0, |hop| hop.edge);
        body.offset = offset;
        body.fail(errno.raw_os_error() as u16, edge, reason);
        body.completed = 0;
        Next {
            code: DONE,
            offset: self.offset,
        }
    }

    /// Takes the bio, to be completed later from any thread.
    pub fn park(mut self) -> (Bio, Next) {
        let offset = self.offset;
        let body = self.body_mut();
        body.stage = Stage::Up;
        body.offset = offset;
        // SAFETY: the request was the unique right to the body, and it ends here; the driver
        // forgets its own handle when it sees `Parked`.
        (
            unsafe { Bio::from_slot(self.slot) },
            Next {
                code: PARKED,
                offset,
            },
        )
    }

    /// Comes back to [`crate::Geom::resume`] of this geom after so many nanoseconds.
    pub fn delay(mut self, delay_ns: u64) -> Next {
        let offset = self.offset;
        let body = self.body_mut();
        body.offset = offset;
        body.due_ns = ugeom_machine::clock::now_ns().saturating_add(delay_ns);
        body.stage = Stage::Resume;
        Next {
            code: DELAYED,
            offset,
        }
    }

    /// Begins to divide the request into clones, which go to consumers of this geom. The geom
    /// must have promised enough room ([`crate::Geom::widest_fan_out`]).
    pub fn fan_out(self, cx: &mut Cx) -> FanOut<'_> {
        let (parent, _) = self.park();
        FanOut {
            parent: Some(parent),
            children: Fifo::new(),
            cx,
        }
    }
}

/// Memory of a request whose payload has it, or that has none.
const NOTHING: Segment = Segment {
    base: std::ptr::null_mut(),
    len: 0,
};

/// A request that is being divided into clones. Nothing moves before [`FanOut::finish`].
pub struct FanOut<'c> {
    parent: Option<Bio>,
    children: Fifo<Bio>,
    cx: &'c mut Cx,
}

impl FanOut<'_> {
    /// Adds a clone for `consumer`: the parent's data from `at` on, `length` bytes of it, at
    /// `offset` of the provider below.
    ///
    /// # Errors
    /// EINVAL when the range is not inside the parent's data, or when clones of a READ would
    /// overlap or go backwards (two layers below must not fill the same memory).
    pub fn child(&mut self, consumer: u16, offset: u64, at: u64, length: u64) -> Result<(), Errno> {
        let Some(parent) = self.parent.as_mut() else {
            return Err(Errno::INVAL);
        };
        let parent_slot = parent.slot_pointer();
        let body = parent.body_mut();
        let end = at.checked_add(length).ok_or(Errno::INVAL)?;
        let reads = body.command == Command::Read;
        if end > body.length || (reads && at < body.cloned_until) {
            return Err(Errno::INVAL);
        }
        if reads {
            body.cloned_until = end;
        }
        let mut child = new_clone(self.cx, parent_slot, body, consumer);
        let clone = child.body_mut();
        clone.command = body.command;
        clone.flags = body.flags.for_clone();
        clone.offset = offset;
        clone.length = length;
        (clone.segment, clone.payload) = part_of(body, at, length);
        body.children += 1;
        self.children.push(child);
        Ok(())
    }

    /// Adds a request of the geom's own: a READ of `memory`'s length at `offset` of the provider
    /// below `consumer`, into `memory`, which has nothing to do with the parent's data. It counts
    /// as a clone ([`crate::Geom::widest_fan_out`]); the memory is dropped when it is back.
    pub fn read_into(&mut self, consumer: u16, offset: u64, memory: Box<dyn IoMemory>) {
        let place = (offset, memory.total_bytes());
        self.own(
            Command::Read,
            consumer,
            place,
            (NOTHING, Payload::Memory(memory)),
            Flags::for_own,
        );
    }

    /// The same into a buffer that the geom gets back before it sees the parent again. Nothing is
    /// allocated.
    pub fn read_returning(&mut self, consumer: u16, offset: u64, buffer: Returning) {
        self.own_returning(Command::Read, consumer, offset, (buffer, Flags::for_own));
    }

    fn own_returning(
        &mut self,
        command: Command,
        consumer: u16,
        offset: u64,
        (buffer, flags): (Returning, fn(Flags) -> Flags),
    ) {
        let payload = Payload::Returning(buffer);
        let segment = payload.returning_segment().unwrap_or(NOTHING);
        let place = (offset, segment.len as u64);
        self.own(command, consumer, place, (segment, payload), flags);
    }

    fn own(
        &mut self,
        command: Command,
        consumer: u16,
        (offset, length): (u64, u64),
        (segment, payload): (Segment, Payload),
        flags: fn(Flags) -> Flags,
    ) {
        let Some(parent) = self.parent.as_mut() else { return };
        let parent_slot = parent.slot_pointer();
        let body = parent.body_mut();
        let mut child = new_clone(self.cx, parent_slot, body, consumer);
        let clone = child.body_mut();
        clone.command = command;
        clone.flags = flags(body.flags).with_watched(payload.is_watched());
        clone.offset = offset;
        clone.length = length;
        (clone.segment, clone.payload) = (segment, payload);
        body.children += 1;
        self.children.push(child);
    }

    /// Adds a WRITE of the geom's own: `memory`, at `offset` of the provider below `consumer`. As
    /// [`FanOut::read_into`] otherwise.
    pub fn write_from(&mut self, consumer: u16, offset: u64, memory: Box<dyn IoMemory>) {
        let place = (offset, memory.total_bytes());
        self.own(
            Command::Write,
            consumer,
            place,
            (NOTHING, Payload::Memory(memory)),
            Flags::for_own,
        );
    }

    /// Adds a WRITE that stands for the parent, with other bytes: those of `buffer`, at `offset` of
    /// the provider below `consumer`. As [`FanOut::write_from`], but as durable as the parent is to
    /// be, and the buffer goes back. Nothing is allocated.
    pub fn write_instead(&mut self, consumer: u16, offset: u64, buffer: Returning) {
        self.own_returning(Command::Write, consumer, offset, (buffer, Flags::for_clone));
    }

    /// Adds a DELETE that stands for the parent, of a range of another place and length of the
    /// provider below `consumer`: for a geom whose sectors have another size there.
    pub fn delete_instead(&mut self, consumer: u16, offset: u64, length: u64) {
        let place = (offset, length);
        self.own(
            Command::Delete,
            consumer,
            place,
            (NOTHING, Payload::None),
            Flags::for_clone,
        );
    }

    /// Sends the clones on their way. When all are back, the parent goes on: its error is the
    /// first of theirs, its bytes are the sum of theirs (GEOM's `g_std_done`).
    pub fn finish(mut self) -> Next {
        if let Some(parent) = self.parent.take() {
            if parent.body().children == 0 {
                parent.complete(Err(Errno::INVAL));
                return PARKED_NEXT;
            }
            parent.into_slot();
        }
        while let Some(mut child) = self.children.pop() {
            child.body_mut().stage = Stage::Child;
            self.cx.ready.push(child);
        }
        PARKED_NEXT
    }
}

impl Drop for FanOut<'_> {
    fn drop(&mut self) {
        // Without `finish` the children were never submitted: they only go back to the pool.
        while let Some(mut child) = self.children.pop() {
            let body = child.body_mut();
            body.parent = None;
            body.payload = Payload::None;
            self.cx.pool.put(child);
        }
    }
}

/// A clone of `parent` for `consumer`; its command is still to be set.
fn new_clone(cx: &mut Cx, slot: NonNull<Slot>, parent: &Body, consumer: u16) -> Bio {
    let mut child = cx.pool.take();
    child.begin();
    let clone = child.body_mut();
    clone.rearm();
    clone.port = 0;
    clone.below_ticks = 0;
    clone.children_ticks = 0;
    clone.children_live = 0;
    clone.generation = parent.generation;
    clone.edge = u32::from(consumer);
    clone.stage = Stage::Free;
    clone.parent = Some(slot);
    child
}

/// The memory of `length` bytes from `at` on. Allocates only when the data has several segments.
fn part_of(body: &Body, at: u64, length: u64) -> (Segment, Payload) {
    if !matches!(body.command, Command::Read | Command::Write) {
        return (NOTHING, Payload::None);
    }
    let mut parts = Vec::new();
    let (mut skip, mut left) = (at, length);
    for segment in body.segments() {
        let size = segment.len as u64;
        if skip >= size {
            skip -= size;
            continue;
        }
        let take = (size - skip).min(left);
        let part = Segment {
            // The offset is inside the segment, so the address stays inside its memory.
            base: segment.base.wrapping_add(skip as usize),
            len: take as usize,
        };
        left -= take;
        skip = 0;
        if left == 0 && parts.is_empty() {
            return (part, Payload::None);
        }
        parts.push(part);
        if left == 0 {
            break;
        }
    }
    (NOTHING, Payload::Shared(parts.into_boxed_slice()))
}
