//! The memory between the programs and this process: a ring for each processor.
//!
//! ```text
//!   0        the gate: 0 is closed
//!   4096     one block of 128 bytes a processor: head (0), lost (8), tail (64)
//!   marks    64 KiB, a byte for each thread that submitted, by the low bits of its number
//!   rings    one ring a processor, of slots of 64 bytes
//! ```
//!
//! A program takes the slot of the number that it got from `head`, fills it, and writes the number
//! plus one into its first word at last; x86 makes stores visible in order. Programs that interrupt
//! each other on a processor take different slots. The reader raises `tail` when it has read.

use crate::event::{Event, EventKind, FAILED, Op};
use std::sync::atomic::Ordering;
use ugeom_machine::bpf::SharedArray;

pub(super) const SLOT_BYTES: usize = 64;
pub(super) const CONTROL_AT: usize = 4096;
pub(super) const CONTROL_SHIFT: u32 = 7;
pub(super) const HEAD: i16 = 0;
pub(super) const LOST: i16 = 8;
pub(super) const TAIL: i16 = 64;
pub(super) const MARKS: usize = 1 << 16;
/// Programs that check for room before others have taken their slots need some to spare.
pub(super) const SPARE_SLOTS: usize = 64;

/// The numbers that place control words, rings and slots in the shared array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Processors, a power of two.
    pub(super) processors: usize,
    /// Slots of a ring, a power of two.
    pub(super) slots: usize,
}

impl Layout {
    pub(super) fn new(processors: usize, ring_bytes: usize) -> Self {
        Self {
            processors: processors.next_power_of_two(),
            slots: (ring_bytes / SLOT_BYTES)
                .next_power_of_two()
                .max(4 * SPARE_SLOTS),
        }
    }

    pub(super) fn marks_at(&self) -> usize {
        (CONTROL_AT + (self.processors << CONTROL_SHIFT)).next_multiple_of(4096)
    }

    pub(super) fn rings_at(&self) -> usize {
        self.marks_at() + MARKS
    }

    pub(super) fn ring_shift(&self) -> u32 {
        (self.slots * SLOT_BYTES).ilog2()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rings_at() + (self.processors << self.ring_shift())
    }
}

/// The rings, as they are read.
pub(super) struct Rings {
    pub(super) array: SharedArray,
    pub(super) layout: Layout,
    /// The next slot of each processor.
    next: Vec<u64>,
}

impl Rings {
    pub(super) fn new(array: SharedArray, layout: Layout) -> Self {
        Self {
            array,
            layout,
            next: vec![0; layout.processors],
        }
    }

    pub(super) fn gate(&self, open: bool) {
        if let Some(gate) = self.array.word(0) {
            gate.store(u64::from(open), Ordering::Release);
        }
    }

    /// Events for which there was no room.
    pub(super) fn lost(&self) -> u64 {
        let lost = |cpu: usize| self.control(cpu, LOST);
        (0..self.layout.processors).map(lost).sum()
    }

    fn control(&self, cpu: usize, word: i16) -> u64 {
        let at = CONTROL_AT + (cpu << CONTROL_SHIFT) + word as usize;
        self.array
            .word(at)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Reads slots that are filled, not all at once where there are many: then the time up to which
    /// none was left.
    pub(super) fn read(&mut self, events: &mut Vec<Event>) -> Option<u64> {
        let most = super::super::look_events(self.layout.processors) as u64;
        let mut left_ns = None;
        for cpu in 0..self.layout.processors {
            let (mut next, head) = (self.next[cpu], self.control(cpu, HEAD));
            let end = head.min(next + most);
            let mut last_ns = 0;
            while next < end {
                let index = next as usize & (self.layout.slots - 1);
                let ring = self.layout.rings_at() + (cpu << self.layout.ring_shift());
                let at = ring + index * SLOT_BYTES;
                let filled = self.array.word(at).map(|word| word.load(Ordering::Acquire));
                // Taken and not filled yet: read with the next look.
                if filled != Some(next + 1) {
                    break;
                }
                let mut words = [0; SLOT_BYTES / 8];
                self.array.read_into(at, &mut words);
                events.extend(decode(&words, cpu as u16));
                (next, last_ns) = (next + 1, words[1]);
            }
            if next == end && end < head {
                left_ns = Some(left_ns.map_or(last_ns, |left: u64| left.min(last_ns)));
            }
            self.next[cpu] = next;
            let tail = CONTROL_AT + (cpu << CONTROL_SHIFT) + TAIL as usize;
            if let Some(tail) = self.array.word(tail) {
                tail.store(next, Ordering::Release);
            }
        }
        left_ns
    }
}

/// A slot: number, time, thread and process, `dev << 32 | error << 16 | flags << 8 | kind`, sector,
/// `extra << 32 | bytes`, id, other.
fn decode(words: &[u64; SLOT_BYTES / 8], cpu: u16) -> Option<Event> {
    let [_, time_ns, threads, what, sector, length, id, other] = *words;
    let kind = EventKind::numbered(what as u8)?;
    let high = length >> 32;
    let failed = match what >> 16 & 0xff {
        0 => 0,
        _ => FAILED,
    };
    let (other, extra) = match kind {
        EventKind::Complete => (other, high | failed),
        EventKind::BioComplete => (other, failed),
        EventKind::Remap => (high, other),
        EventKind::Split => (0, other),
        _ => (other, high),
    };
    Some(Event {
        time_ns,
        kind,
        cpu,
        op: match kind {
            EventKind::FuseSend | EventKind::FuseEnd => Op::of_opcode(what as u32 >> 8 & 0xff),
            _ => Op::of_flags(what as u32 >> 8 & 0xff),
        },
        tid: threads as u32,
        pid: (threads >> 32) as u32,
        dev: (what >> 32) as u32,
        sector,
        sectors: length as u32 / 512,
        id,
        other,
        extra,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_the_fields_of_its_kind() {
        let dev = 7 << 20 | 3;
        let what = |kind: EventKind| u64::from(kind as u8) | 1 << 8 | dev << 32;
        let words = [
            1,
            99,
            5 << 32 | 6,
            what(EventKind::Remap),
            64,
            9 << 32 | 4096,
            1000,
            8,
        ];
        let event = decode(&words, 2).unwrap();
        assert_eq!(
            (event.kind, event.op, event.cpu),
            (EventKind::Remap, Op::Write, 2)
        );
        assert_eq!((event.tid, event.pid, u64::from(event.dev)), (6, 5, dev));
        assert_eq!((event.sector, event.sectors, event.id), (64, 8, 1000));
        assert_eq!((event.other, event.extra), (9, 8));
        let words = [
            1,
            99,
            0,
            what(EventKind::Complete),
            64,
            4096 << 32 | 4096,
            1000,
            8,
        ];
        let event = decode(&words, 2).unwrap();
        assert_eq!((event.other, event.extra), (8, 4096));
        let failed = u64::from(EventKind::BioComplete as u8) | 10 << 16 | dev << 32;
        let event = decode(&[1, 99, 0, failed, 0, 4096, 1000, 0], 0).unwrap();
        assert_eq!((event.op, event.extra, event.other), (Op::Read, FAILED, 0));
        let written = u64::from(EventKind::FuseSend as u8) | 16 << 8 | 42 << 32;
        let event = decode(&[1, 99, 0, written, 0, 0, 6, 0], 0).unwrap();
        assert_eq!((event.op, event.dev, event.id), (Op::Write, 42, 6));
        assert_eq!(decode(&[0; 8], 0), None);
    }

    #[test]
    fn nothing_overlaps_in_the_memory() {
        let layout = Layout::new(3, 1 << 20);
        assert_eq!((layout.processors, layout.slots), (4, 1 << 14));
        assert!(layout.marks_at() >= CONTROL_AT + 4 * 128);
        assert_eq!(layout.bytes(), layout.rings_at() + (4 << 20));
    }
}
