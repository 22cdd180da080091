//! What has been written, so that it can be read back: for each place the last write of it.

use std::collections::BTreeMap;

use super::super::places::Place;

/// The blocks that were written, by file and offset.
#[derive(Default)]
pub struct Written {
    blocks: BTreeMap<(u32, u64), (u32, u16)>,
}

impl Written {
    /// A block has been written; it takes the place of all that it covers a part of, whose
    /// checksums do not hold any more.
    pub fn add(&mut self, place: Place, number: u16) {
        let end = place.offset + u64::from(place.length);
        let before = self
            .blocks
            .range(..(place.file, place.offset))
            .next_back()
            .filter(|((file, offset), (length, _))| {
                *file == place.file && offset + u64::from(*length) > place.offset
            })
            .map(|(key, _)| *key);
        let inside = self
            .blocks
            .range((place.file, place.offset)..(place.file, end));
        let gone: Vec<(u32, u64)> = inside.map(|(key, _)| *key).chain(before).collect();
        for key in gone {
            self.blocks.remove(&key);
        }
        let key = (place.file, place.offset);
        self.blocks.insert(key, (place.length, number));
    }

    /// A range does not hold any more what was written to it.
    pub fn forget(&mut self, place: Place) {
        self.add(place, 0);
        self.blocks.remove(&(place.file, place.offset));
    }

    /// All of them, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Place, u16)> + '_ {
        self.blocks
            .iter()
            .map(|(&(file, offset), &(length, number))| {
                let place = Place {
                    file,
                    offset,
                    length,
                };
                (place, number)
            })
    }

    /// Those within so many bytes, the lowest places first.
    pub fn first(&self, mut bytes: u64) -> impl Iterator<Item = (Place, u16)> + '_ {
        self.iter().take_while(move |(place, _)| {
            let fits = u64::from(place.length) <= bytes;
            bytes = bytes.saturating_sub(u64::from(place.length));
            fits
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.blocks.len()
    }

    /// Takes out so many of them, the lowest places first.
    pub fn take(&mut self, count: usize) -> Vec<(Place, u16)> {
        let taken: Vec<(Place, u16)> = self.iter().take(count).collect();
        for (place, _) in &taken {
            self.blocks.remove(&(place.file, place.offset));
        }
        taken
    }

    /// The bytes that they cover.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|(place, _)| u64::from(place.length)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64, length: u32) -> Place {
        Place {
            file: 0,
            offset,
            length,
        }
    }

    #[test]
    fn the_last_write_of_a_place_counts() {
        let mut written = Written::default();
        written.add(place(0, 8), 1);
        written.add(place(8, 8), 2);
        written.add(place(16, 8), 3);
        written.add(place(4, 8), 4);
        let all: Vec<(u64, u16)> = written
            .iter()
            .map(|(p, number)| (p.offset, number))
            .collect();
        assert_eq!(all, [(4, 4), (16, 3)]);
        written.add(place(16, 8), 5);
        written.forget(place(4, 1));
        let all: Vec<(u64, u16)> = written
            .iter()
            .map(|(p, number)| (p.offset, number))
            .collect();
        assert_eq!((all, written.bytes()), (vec![(16, 5)], 8));
    }
}
