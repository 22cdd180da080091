//! The possible contents of a disk's cache after each record of a log.
//!
//! The changes behind the first one that is not durable stand in a row, in the order of the log.
//! Those in front of it are the image. A durable change behind a volatile one stays in the row, so
//! that changes of the same place always apply in their order.

use crate::log::LogEntry;
use std::collections::VecDeque;
use ugeom_format::crash_log::{Entry, Record, numbers};

/// How many changes a cache holds; beyond, the oldest is taken for durable, as a disk writes what
/// it has no room for. It also bounds memory where a log has no barrier.
const CHANGES_MAX: usize = 1 << 16;

/// A change of the media that is not part of the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// The number of its record.
    pub number: u64,
    pub record: Record,
    pub data_at: u64,
    /// A barrier covers it.
    pub durable: bool,
}

pub(crate) struct Tracker {
    pub changes: VecDeque<Change>,
    volatile: usize,
    volatile_bytes: u64,
    cache_bytes: u64,
}

impl Tracker {
    /// With a cache of that size.
    pub fn new(cache_bytes: u64) -> Self {
        Self {
            changes: VecDeque::new(),
            volatile: 0,
            volatile_bytes: 0,
            cache_bytes,
        }
    }

    /// The changes that a power cut may lose, oldest first.
    pub fn volatile(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| !change.durable)
    }

    /// True when a record may make changes durable.
    pub fn is_barrier(record: &Record) -> bool {
        matches!(
            record.entry,
            Entry::Barrier { .. } | Entry::Durable { .. } | Entry::Begin
        )
    }

    /// Takes the next record of the log; `data` is asked for that of barriers. Changes that become
    /// part of the image are handed to `image`, in their order.
    pub fn feed<E>(
        &mut self,
        entry: &LogEntry,
        data: impl FnOnce() -> Result<Vec<u8>, E>,
        mut image: impl FnMut(&Change) -> Result<(), E>,
    ) -> Result<(), E> {
        match entry.record.entry {
            Entry::Write { .. } | Entry::Zero { .. } | Entry::Delete { .. } => {
                self.changes.push_back(Change {
                    number: entry.number,
                    record: entry.record,
                    data_at: entry.data_at,
                    durable: false,
                });
                self.volatile += 1;
                self.volatile_bytes += u64::from(entry.record.stored_bytes);
                self.make_room();
            }
            Entry::Barrier { covers } => {
                let except: Vec<u64> = if entry.record.stored_bytes == 0 {
                    Vec::new()
                } else {
                    numbers(&data()?).collect()
                };
                self.cover(|change| change < covers && !except.contains(&change));
            }
            Entry::Durable { write } => self.cover_one(write),
            Entry::Begin => self.cover(|_| true),
            Entry::Promise => {}
        }
        while let Some(first) = self.changes.front()
            && first.durable
        {
            image(first)?;
            self.changes.pop_front();
        }
        Ok(())
    }

    fn cover(&mut self, covered: impl Fn(u64) -> bool) {
        let (mut count, mut bytes) = (0, 0);
        for change in &mut self.changes {
            if !change.durable && covered(change.number) {
                change.durable = true;
                count += 1;
                bytes += u64::from(change.record.stored_bytes);
            }
        }
        self.volatile -= count;
        self.volatile_bytes -= bytes;
    }

    /// The row is in the order of the log, so a change is found without a walk.
    fn cover_one(&mut self, number: u64) {
        let at = self
            .changes
            .binary_search_by_key(&number, |change| change.number);
        if let Ok(at) = at
            && !self.changes[at].durable
        {
            self.changes[at].durable = true;
            self.volatile -= 1;
            self.volatile_bytes -= u64::from(self.changes[at].record.stored_bytes);
        }
    }

    fn make_room(&mut self) {
        while self.volatile > 1
            && (self.changes.len() > CHANGES_MAX || self.volatile_bytes > self.cache_bytes)
        {
            let Some(oldest) = self.volatile().next().map(|change| change.number) else { return };
            self.cover_one(oldest);
            if self.changes.len() > CHANGES_MAX {
                // The caller drains the row from its front, one for one.
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64, entry: Entry) -> LogEntry {
        LogEntry {
            number,
            record: Record::new(entry, &[1]),
            data_at: 0,
        }
    }

    fn write(number: u64) -> LogEntry {
        let write = Entry::Write {
            offset_bytes: 0,
            length_bytes: 512,
            fua: false,
        };
        entry(number, write)
    }

    /// Feeds an entry; how many changes became part of the image.
    fn feed(tracker: &mut Tracker, entry: &LogEntry, data: &[u8]) -> usize {
        let mut count = 0;
        let fed = tracker.feed::<()>(
            entry,
            || Ok(data.to_vec()),
            |_| {
                count += 1;
                Ok(())
            },
        );
        fed.expect("it cannot fail");
        count
    }

    #[test]
    fn a_log_without_a_barrier_needs_no_more_than_a_full_cache() {
        let mut tracker = Tracker::new(u64::MAX);
        for number in 0..200_000 {
            feed(&mut tracker, &write(number), &[]);
            assert!(tracker.changes.len() <= CHANGES_MAX + 1);
        }
        assert_eq!(tracker.volatile().count(), CHANGES_MAX);
    }

    #[test]
    fn a_cache_of_some_bytes_holds_no_more() {
        let mut tracker = Tracker::new(10);
        for number in 0..100 {
            feed(&mut tracker, &write(number), &[]);
        }
        let numbers: Vec<u64> = tracker.volatile().map(|change| change.number).collect();
        assert_eq!(numbers, (90..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_in_flight_at_a_flush_stays_volatile() {
        let mut tracker = Tracker::new(u64::MAX);
        for number in 0..4 {
            feed(&mut tracker, &write(number), &[]);
        }
        let mut barrier = entry(4, Entry::Barrier { covers: 3 });
        barrier.record.stored_bytes = 8;
        let merged = feed(&mut tracker, &barrier, &1_u64.to_le_bytes());
        assert_eq!(merged, 1, "only the first has none before it");
        let numbers: Vec<u64> = tracker.volatile().map(|change| change.number).collect();
        assert_eq!(numbers, [1, 3]);
        assert_eq!(
            feed(&mut tracker, &entry(5, Entry::Durable { write: 1 }), &[]),
            2
        );
    }
}
