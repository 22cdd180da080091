//! Written blocks, for reading back: for each place the last write of it.

use std::collections::{BTreeMap, VecDeque};

use super::super::places::Place;

/// A file and an offset, bytes.
type Key = (u32, u64);

/// The last write of a place.
struct Block {
    length: u32,
    /// The number of the write, as it is in the block.
    number: u16,
    /// How many writes there were before.
    turn: u64,
}

/// The blocks that were written.
pub struct Written {
    blocks: BTreeMap<Key, Block>,
    /// The order of writing, with those that are gone; `None`: they count in the order of places.
    order: Option<VecDeque<(Key, u64)>>,
    writes: u64,
}

impl Written {
    /// Nothing yet. `in_order`: they are read back in the order of writing, as by fio where a map
    /// keeps places from being written twice.
    pub fn new(in_order: bool) -> Self {
        Self {
            blocks: BTreeMap::new(),
            order: in_order.then(VecDeque::new),
            writes: 0,
        }
    }

    /// A block has been written; it takes the place of all that it covers a part of, whose
    /// checksums do not hold any more. Answers with the turn of the write.
    pub fn add(&mut self, place: Place, number: u16) -> u64 {
        let end = place.offset + u64::from(place.length);
        let before = self
            .blocks
            .range(..(place.file, place.offset))
            .next_back()
            .filter(|((file, offset), block)| {
                *file == place.file && offset + u64::from(block.length) > place.offset
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
        let block = Block {
            length: place.length,
            number,
            turn: self.writes,
        };
        self.blocks.insert(key, block);
        if let Some(order) = &mut self.order {
            order.push_back((key, self.writes));
        }
        self.writes += 1;
        self.writes - 1
    }

    /// Whether a place still holds the data that a turn wrote.
    pub fn holds(&self, place: &Place, turn: u64) -> bool {
        let block = self.blocks.get(&(place.file, place.offset));
        block.is_some_and(|block| block.turn == turn)
    }

    /// A range no longer holds its written data.
    pub fn forget(&mut self, place: Place) {
        self.add(place, 0);
        self.blocks.remove(&(place.file, place.offset));
    }

    /// Every written block with the number of its last write.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (Place, u16)> + '_> {
        let place = |(file, offset): Key, block: &Block| {
            let place = Place {
                file,
                offset,
                length: block.length,
            };
            (place, block.number)
        };
        let Some(order) = &self.order else {
            return Box::new(
                self.blocks
                    .iter()
                    .map(move |(key, block)| place(*key, block)),
            );
        };
        Box::new(order.iter().filter_map(move |(key, turn)| {
            let block = self.blocks.get(key)?;
            (block.turn == *turn).then(|| place(*key, block))
        }))
    }

    /// The first ones, as many as so many bytes have room for.
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

    /// Takes out the first one.
    pub fn take_first(&mut self) -> Option<(Place, u16)> {
        let taken = self.iter().next()?;
        let (place, _) = taken;
        self.blocks.remove(&(place.file, place.offset));
        let blocks = &self.blocks;
        if let Some(order) = &mut self.order {
            let gone = |(key, turn): &(Key, u64)| blocks.get(key).is_none_or(|it| it.turn != *turn);
            while order.front().is_some_and(gone) {
                order.pop_front();
            }
        }
        Some(taken)
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
        let mut written = Written::new(false);
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

    #[test]
    fn writes_are_read_back_in_their_order_where_that_is_asked_for() {
        let mut written = Written::new(true);
        for (number, offset) in [16, 0, 8, 24, 0].into_iter().enumerate() {
            written.add(place(offset, 8), number as u16);
        }
        let offsets = |blocks: &mut dyn Iterator<Item = (Place, u16)>| {
            blocks.map(|(place, _)| place.offset).collect::<Vec<u64>>()
        };
        assert_eq!(offsets(&mut written.iter()), [16, 8, 24, 0]);
        assert_eq!(offsets(&mut written.first(16)), [16, 8]);
        let taken = [written.take_first(), written.take_first()];
        assert_eq!(offsets(&mut taken.into_iter().flatten()), [16, 8]);
        assert_eq!(offsets(&mut written.iter()), [24, 0]);
    }
}
