//! The volatile cache of a disk: writes that were acknowledged and are not on the media.

use std::collections::{BTreeMap, VecDeque};

pub(super) struct VolatileWrite {
    pub offset_bytes: u64,
    pub data: Vec<u8>,
}

/// All of them, oldest first.
pub(super) struct Volatile {
    sector_bytes: u64,
    writes: VecDeque<VolatileWrite>,
    /// The number of the oldest.
    first: u64,
    /// The newest write of each sector.
    newest: BTreeMap<u64, u64>,
    bytes: u64,
    /// Sectors that are read from here and will never reach the media: a FLUSH that should have
    /// covered them has failed. None of them is in `newest`.
    doomed: BTreeMap<u64, Vec<u8>>,
}

impl Volatile {
    pub fn new(sector_bytes: u64) -> Self {
        Self {
            sector_bytes,
            writes: VecDeque::new(),
            first: 0,
            newest: BTreeMap::new(),
            bytes: 0,
            doomed: BTreeMap::new(),
        }
    }

    /// The data that it holds and that can reach the media, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True when it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.doomed.is_empty()
    }

    /// Takes a write of whole sectors.
    pub fn add(&mut self, offset_bytes: u64, data: Vec<u8>) {
        let number = self.first + self.writes.len() as u64;
        for sector in self.sectors(offset_bytes, data.len() as u64) {
            self.newest.insert(sector, number);
            self.doomed.remove(&sector);
        }
        self.bytes += data.len() as u64;
        self.writes.push_back(VolatileWrite { offset_bytes, data });
    }

    fn sectors(&self, offset_bytes: u64, length_bytes: u64) -> std::ops::Range<u64> {
        let end = offset_bytes + length_bytes;
        offset_bytes / self.sector_bytes..end.div_ceil(self.sector_bytes)
    }

    /// True when it holds a sector of the range that can reach the media.
    pub fn overlaps(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        let sectors = self.sectors(offset_bytes, length_bytes);
        self.newest.range(sectors).next().is_some()
    }

    /// Overlays its data of a range on that of the media.
    pub fn overlay(&self, offset_bytes: u64, into: &mut [u8]) {
        let wanted = self.sectors(offset_bytes, into.len() as u64);
        let sector = self.sector_bytes as usize;
        for (number, newest) in self.newest.range(wanted) {
            let Some(write) = self.writes.get((newest - self.first) as usize) else { continue };
            let at = number * self.sector_bytes;
            let (from, to) = (
                (at - write.offset_bytes) as usize,
                (at - offset_bytes) as usize,
            );
            into[to..to + sector].copy_from_slice(&write.data[from..from + sector]);
        }
        for (number, data) in self
            .doomed
            .range(self.sectors(offset_bytes, into.len() as u64))
        {
            let to = (number * self.sector_bytes - offset_bytes) as usize;
            into[to..to + sector].copy_from_slice(data);
        }
    }

    /// Takes data that is read from now on and never reaches the media.
    pub fn add_doomed(&mut self, offset_bytes: u64, data: &[u8]) {
        let sectors = self.sectors(offset_bytes, data.len() as u64);
        for (sector, data) in sectors.zip(data.chunks(self.sector_bytes as usize)) {
            self.newest.remove(&sector);
            self.doomed.insert(sector, data.to_vec());
        }
    }

    /// The media holds newer data of a range: its doomed writes are gone.
    pub fn forget_doomed(&mut self, offset_bytes: u64, length_bytes: u64) {
        for sector in self.sectors(offset_bytes, length_bytes) {
            self.doomed.remove(&sector);
        }
    }

    /// Takes the oldest write out.
    pub fn pop(&mut self) -> Option<VolatileWrite> {
        let write = self.writes.pop_front()?;
        for sector in self.sectors(write.offset_bytes, write.data.len() as u64) {
            if self.newest.get(&sector) == Some(&self.first) {
                self.newest.remove(&sector);
            }
        }
        self.first += 1;
        self.bytes -= write.data.len() as u64;
        Some(write)
    }

    /// No write that is held now will ever reach the media; reads find it until [`Self::clear`].
    pub fn doom(&mut self) {
        let sector = self.sector_bytes as usize;
        for (number, newest) in std::mem::take(&mut self.newest) {
            let Some(write) = self.writes.get((newest - self.first) as usize) else { continue };
            let from = (number * self.sector_bytes - write.offset_bytes) as usize;
            let data = write.data[from..from + sector].to_vec();
            self.doomed.insert(number, data);
        }
        self.clear_sound();
    }

    /// Forgets all volatile writes: they are lost.
    pub fn clear(&mut self) {
        self.newest.clear();
        self.doomed.clear();
        self.clear_sound();
    }

    fn clear_sound(&mut self) {
        self.first += self.writes.len() as u64;
        self.writes.clear();
        self.bytes = 0;
    }
}
