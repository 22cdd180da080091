//! The volatile cache of a disk: writes that were acknowledged and are not on the media.

use std::collections::{BTreeMap, VecDeque};

pub(super) struct VolatileWrite {
    pub offset_bytes: u64,
    pub data: Vec<u8>,
    /// A FLUSH that should have covered it has failed: it will never reach the media.
    pub doomed: bool,
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
}

impl Volatile {
    pub fn new(sector_bytes: u64) -> Self {
        Self {
            sector_bytes,
            writes: VecDeque::new(),
            first: 0,
            newest: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// The data that it holds, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a write of whole sectors.
    pub fn add(&mut self, offset_bytes: u64, data: Vec<u8>) {
        let number = self.first + self.writes.len() as u64;
        for sector in self.sectors(offset_bytes, data.len() as u64) {
            self.newest.insert(sector, number);
        }
        self.bytes += data.len() as u64;
        self.writes.push_back(VolatileWrite {
            offset_bytes,
            data,
            doomed: false,
        });
    }

    fn sectors(&self, offset_bytes: u64, length_bytes: u64) -> std::ops::Range<u64> {
        let end = offset_bytes + length_bytes;
        offset_bytes / self.sector_bytes..end.div_ceil(self.sector_bytes)
    }

    /// True when it holds a sector of the range.
    pub fn overlaps(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        let sectors = self.sectors(offset_bytes, length_bytes);
        self.newest.range(sectors).next().is_some()
    }

    /// Puts what it holds of a range over what the media holds of it.
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
    }

    /// Takes data that is read from now on and never reaches the media.
    pub fn add_doomed(&mut self, offset_bytes: u64, data: Vec<u8>) {
        self.add(offset_bytes, data);
        if let Some(write) = self.writes.back_mut() {
            write.doomed = true;
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

    /// No write that is held now will ever reach the media.
    pub fn doom(&mut self) {
        for write in &mut self.writes {
            write.doomed = true;
        }
    }

    /// Takes out what can reach the media, oldest first. What cannot is kept, but for sectors that
    /// were written again.
    pub fn take_sound(&mut self) -> Vec<VolatileWrite> {
        let newest = self.newest.clone();
        let (mut sound, mut kept) = (Vec::new(), Vec::new());
        while let Some(write) = self.pop() {
            match write.doomed {
                true => kept.push((self.first - 1, write)),
                false => sound.push(write),
            }
        }
        for (number, write) in kept {
            let sectors = self.sectors(write.offset_bytes, write.data.len() as u64);
            for (sector, data) in sectors.zip(write.data.chunks(self.sector_bytes as usize)) {
                if newest.get(&sector) == Some(&number) {
                    self.add(sector * self.sector_bytes, data.to_vec());
                }
            }
        }
        self.doom();
        sound
    }
}
