//! Bios that a device hands on to the one below as they are, as RAID 0, NVMe's multipath and bcache
//! do: they enter the device below without an event of their own, and are reported once, by the
//! lowest one.
//!
//! ```text
//!   queue (md0) - remap (md0 to nvme0n1, not always) - get request (nvme0n1) ... done (nvme0n1)
//! ```
//!
//! The first event of the bio on another device tells that it was handed on. The device above ends
//! with the one below.

use super::{Linker, Phase, bio_of};
use crate::event::{Dev, Event, Op};

impl Linker {
    /// The span of a bio on the device of this event, which is that of the device above until the
    /// first event below.
    pub(super) fn on_device(&mut self, event: &Event) -> Option<u64> {
        let bio = bio_of(event);
        let above = match self.groups.newest_of(bio) {
            Some(serial) if self.live.dev(serial) == event.dev => return Some(serial),
            Some(serial) => Some(serial),
            // Its place has changed, and with it the key: it is the last that its thread submitted.
            None if event.id == 0 => self.remapped(event.tid, bio).map(|(serial, _)| serial),
            None => None,
        };
        // Other requests of the thread may be what its place belongs to.
        let is_guess = above.is_none();
        let above = above.or_else(|| self.queued_last(event))?;
        let start_ns = self
            .remapped(event.tid, bio)
            .map_or(event.time_ns, |(_, at_ns)| at_ns);
        self.remaps.remove(&event.tid);
        let entered = Event {
            time_ns: start_ns.min(event.time_ns),
            ..*event
        };
        let serial = self
            .live
            .begin(&entered, event.dev, Some(above), Phase::Block, is_guess);
        self.live.phase(above, entered.time_ns, Phase::Device);
        self.live.part_allocated(above);
        self.live.hands_on(above);
        self.groups.enter(bio, serial);
        self.live.parts_expected(serial, 1);
        Some(serial)
    }

    /// The span above a bio that was remapped by this thread, and when.
    fn remapped(&self, tid: u32, bio: u64) -> Option<(u64, u64)> {
        let remap = self.remaps.get(&tid).filter(|remap| remap.bio == bio)?;
        Some((remap.parent?, remap.at_ns))
    }

    /// The span that a thread submitted last, if nothing else has happened to it.
    fn queued_last(&self, event: &Event) -> Option<u64> {
        let serial = *self.queued.get(&event.tid)?;
        let fits = event.id == 0 && self.live.is_entering(serial);
        (fits && self.live.dev(serial) != event.dev).then_some(serial)
    }

    /// A device that handed a bio on has ended with the one below: counts its end.
    pub(super) fn count_handed_on(&mut self, serial: u64) {
        let key = (self.live.dev(serial), self.live.op(serial) == Op::Read);
        *self.handed_on.entry(key).or_default() += 1;
    }

    /// Ends of devices that hand bios on, which no event tells: by device, and whether they read.
    pub(crate) fn handed_on(&self, dev: Dev, is_read: bool) -> u64 {
        self.handed_on.get(&(dev, is_read)).copied().unwrap_or(0)
    }
}
