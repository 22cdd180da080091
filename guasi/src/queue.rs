//! The queue of one priority: requests that wait for a worker, first in, first out, for any number
//! of submitters and workers.
//!
//! ```text
//!   head                 tail        a ticket counts up for ever; ticket t lives in cell t mod N
//!    |                    |
//!  [ 7 | 8 | 9 | 10 | 11 | .. ]      cell: lap of its ticket (8 bits), generation (32), slot (24)
//! ```
//!
//! Submitters reserve tickets for a whole batch with one exchange of `tail` and then fill cells. A
//! worker takes the ticket at `head` by one exchange, after it has seen the cell filled in this
//! lap: it never waits for a submitter that was interrupted between reserving and filling (that one
//! calls for workers only when it has filled), and it never looks at `tail`, whose cache line
//! belongs to the submitters.
//!
//! A cell is filled again only when `head` has passed it, so that it holds either what this lap
//! put there or what the lap before did; eight bits of lap are enough to tell these two apart, and
//! a worker that slept with an old `head` fails in its exchange.

#[cfg(not(all(loom, test)))]
use crate::sync::OnceLock;
use crate::sync::{AtomicU64, Ordering, Padded, Zeroes, zeroes_u64};

/// Slots are numbered with 24 bits.
pub(crate) const SLOT_BITS: u32 = 24;

/// A request in the queue: its slot, and the generation that tells it from later users of the slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

pub(crate) struct Queue {
    head: Padded<AtomicU64>,
    tail: Padded<AtomicU64>,
    /// The value of `head` when a submitter last read it. Never ahead of it, so that a queue that
    /// looks to have room has it, without a look at the line that workers fight for.
    head_seen: Padded<AtomicU64>,
    cells: Zeroes<AtomicU64>,
}

impl Queue {
    /// Room for `cells` requests, a power of two; `None` without memory for it.
    pub(crate) fn new(cells: usize) -> Option<Queue> {
        debug_assert!(cells.is_power_of_two());
        Some(Queue {
            head: Padded(AtomicU64::new(0)),
            tail: Padded(AtomicU64::new(0)),
            head_seen: Padded(AtomicU64::new(0)),
            cells: zeroes_u64(cells)?,
        })
    }

    /// Appends the entries in order, all or (without room for all) none of them.
    pub(crate) fn push(&self, entries: &[Entry]) -> bool {
        let Some(first) = self.reserve(entries.len() as u64) else { return false };
        for (ticket, entry) in (first..).zip(entries) {
            // Release: what the submitter wrote into the slot goes before.
            self.cell(ticket)
                .store(self.packed(ticket, *entry), Ordering::Release);
        }
        true
    }

    fn reserve(&self, count: u64) -> Option<u64> {
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            let full = self.head_seen.load(Ordering::Acquire) + self.cells.len() as u64;
            if tail + count > full {
                // Acquire: the cells below `head` have been read before they are filled again.
                let head = self.head.load(Ordering::Acquire);
                if tail + count > head + self.cells.len() as u64 {
                    return None;
                }
                self.head_seen.fetch_max(head, Ordering::Release);
            }
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match self
                .tail
                .compare_exchange_weak(tail, tail + count, success, failure)
            {
                Ok(_) => return Some(tail),
                Err(now) => tail = now,
            }
        }
    }

    /// Takes the oldest entry.
    pub(crate) fn pop(&self) -> Option<Entry> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the release of the submitter that filled the cell.
            let cell = self.cell(head).load(Ordering::Acquire);
            if !self.filled(head, cell) {
                let now = self.head.load(Ordering::Relaxed);
                if now == head {
                    return None;
                }
                head = now;
                continue;
            }
            // Release: the cell was read before a submitter sees that it may be filled again.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self
                .head
                .compare_exchange_weak(head, head + 1, success, failure)
            {
                Ok(_) => return Some(unpacked(cell)),
                Err(now) => head = now,
            }
        }
    }

    /// The entry that will be taken next, for a look ahead; it may be gone at once.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn peek(&self) -> Option<Entry> {
        let head = self.head.load(Ordering::Relaxed);
        let cell = self.cell(head).load(Ordering::Relaxed);
        self.filled(head, cell).then(|| unpacked(cell))
    }

    /// How many entries were taken.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn taken(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// Whether nothing can be taken.
    pub(crate) fn is_empty(&self) -> bool {
        loop {
            let head = self.head.load(Ordering::Relaxed);
            if self.filled(head, self.cell(head).load(Ordering::Relaxed)) {
                return false;
            }
            if self.head.load(Ordering::Relaxed) == head {
                return true;
            }
        }
    }

    fn cell(&self, ticket: u64) -> &AtomicU64 {
        &self.cells[ticket as usize & (self.cells.len() - 1)]
    }

    /// The lap of a ticket, from 1: cells begin as 0.
    fn lap(&self, ticket: u64) -> u64 {
        ((ticket >> self.cells.len().trailing_zeros()) + 1) & 0xff
    }

    fn filled(&self, ticket: u64, cell: u64) -> bool {
        cell >> 56 == self.lap(ticket)
    }

    fn packed(&self, ticket: u64, entry: Entry) -> u64 {
        let generation = u64::from(entry.generation) << SLOT_BITS;
        self.lap(ticket) << 56 | generation | u64::from(entry.slot)
    }
}

fn unpacked(cell: u64) -> Entry {
    Entry {
        slot: cell as u32 & ((1 << SLOT_BITS) - 1),
        generation: (cell >> SLOT_BITS) as u32,
    }
}

/// The queues of all priorities: the first, and each of the others when it is first used.
#[cfg(not(all(loom, test)))]
pub(crate) struct Queues {
    queues: Box<[OnceLock<Box<Queue>>]>,
    cells: usize,
}

#[cfg(not(all(loom, test)))]
impl Queues {
    /// Room for `cells` requests of each priority; `None` without memory for it.
    pub(crate) fn new(priorities: u32, cells: usize) -> Option<Queues> {
        let queues: Box<[_]> = (0..priorities).map(|_| OnceLock::new()).collect();
        let first = Box::new(Queue::new(cells)?);
        let _ = queues.first().map(|place| place.set(first));
        Some(Queues { queues, cells })
    }

    /// How many priorities there are.
    pub(crate) fn count(&self) -> u32 {
        self.queues.len() as u32
    }

    /// Those of the first `priorities` that were ever used, in order.
    #[inline]
    pub(crate) fn used(&self, priorities: usize) -> impl Iterator<Item = &Queue> {
        let queues = self.queues[..priorities].iter();
        queues.filter_map(|queue| queue.get().map(|queue| &**queue))
    }

    /// As [`Queue::push`]; without memory for the queue there is no room.
    pub(crate) fn push(&self, priority: u32, entries: &[Entry]) -> bool {
        let place = &self.queues[priority as usize];
        if place.get().is_none() {
            let Some(queue) = Queue::new(self.cells) else { return false };
            // Another thread may have been faster.
            let _ = place.set(Box::new(queue));
        }
        place.get().is_some_and(|queue| queue.push(entries))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicU32;

    fn entry(number: u32) -> Entry {
        Entry {
            slot: number & 0xff_ffff,
            generation: u32::MAX - number,
        }
    }

    #[test]
    fn entries_come_out_in_order_over_many_laps() {
        let queue = Queue::new(4).unwrap();
        let mut next = 0;
        // More than 256 laps of 4 entries: the lap of a cell wraps.
        for round in 0..500 {
            let count = 1 + round % 4;
            let batch: Vec<Entry> = (next..next + count).map(entry).collect();
            assert!(queue.push(&batch));
            assert!(!queue.is_empty());
            assert_eq!(queue.peek(), Some(batch[0]));
            for expected in batch {
                assert_eq!(queue.pop(), Some(expected));
            }
            next += count;
            assert_eq!(queue.pop(), None);
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn a_batch_that_does_not_fit_changes_nothing() {
        let queue = Queue::new(4).unwrap();
        assert!(queue.push(&[entry(0), entry(1), entry(2)]));
        assert!(!queue.push(&[entry(3), entry(4)]));
        assert!(queue.push(&[entry(5)]));
        assert!(!queue.push(&[entry(6)]));
        let out: Vec<Entry> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(out, [entry(0), entry(1), entry(2), entry(5)]);
    }

    #[test]
    fn every_entry_is_taken_once_by_many_threads() {
        const EACH: u32 = if cfg!(miri) { 60 } else { 20_000 };
        let queue = Queue::new(64).unwrap();
        let times = crate::sync::zeroes_u32(2 * EACH as usize).unwrap();
        let left = AtomicU32::new(2 * EACH);
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for thread in 0..2 {
                let (queue, times, left) = (&queue, &times, &left);
                threads.push(scope.spawn(move || {
                    for number in (thread * EACH..(thread + 1) * EACH).step_by(2) {
                        while !queue.push(&[entry(number), entry(number + 1)]) {
                            std::thread::yield_now();
                        }
                    }
                }));
                threads.push(scope.spawn(move || {
                    while left.load(Ordering::Relaxed) > 0 {
                        let Some(found) = queue.pop() else {
                            std::thread::yield_now();
                            continue;
                        };
                        assert_eq!(found, entry(found.slot));
                        times[found.slot as usize].fetch_add(1, Ordering::Relaxed);
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                }));
            }
            // A join is seen by ThreadSanitizer, the end of the scope is not.
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    }
}
