//! The cost of second looks, bounded for each kind of structure.
//!
//! A magic number is a few bytes, and the look that confirms it reads up to 1 MiB. A medium that
//! repeats the bytes in every sector would make a search of a minute take days. So each kind may
//! spend a part of the bytes that were searched so far. Where it has spent that, its sectors are
//! counted and passed over, until enough bytes without them have been searched: a stretch full of
//! them does not hide the rest of the medium.

use super::Holds;
use std::collections::BTreeMap;

/// The allowance of each kind at the begin, bytes.
const FREE_BYTES: u64 = 32 << 20;
/// The allowance grows by one byte for so many searched ones.
const PART: u64 = 8;
/// The cost of a read of fewer bytes, bytes: a request takes time, whatever its length.
const READ_BYTES_MIN: u64 = 4096;

/// The cost of one look.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent(u64);

impl Spent {
    /// A read of the medium.
    pub fn read(&mut self, length: usize) {
        self.0 += (length as u64).max(READ_BYTES_MIN);
    }

    /// A copy of known bytes.
    pub fn known(&mut self, length: usize) {
        self.0 += length as u64;
    }
}

#[derive(Debug, Default)]
struct OfKind {
    spent_bytes: u64,
    unexamined: u64,
}

/// The costs by kind of structure.
#[derive(Debug, Default)]
pub(super) struct Budget {
    searched_bytes: u64,
    kinds: BTreeMap<Holds, OfKind>,
}

impl Budget {
    /// Counts searched bytes.
    pub fn looked(&mut self, length: usize) {
        self.searched_bytes = self.searched_bytes.saturating_add(length as u64);
    }

    /// Whether a structure of that kind may be examined; else it is counted.
    pub fn admits(&mut self, kind: Holds) -> bool {
        let most_bytes = FREE_BYTES + self.searched_bytes / PART;
        let of_kind = self.kinds.entry(kind).or_default();
        let admits = of_kind.spent_bytes < most_bytes;
        of_kind.unexamined += u64::from(!admits);
        admits
    }

    pub fn spend(&mut self, kind: Holds, spent: Spent) {
        let of_kind = self.kinds.entry(kind).or_default();
        of_kind.spent_bytes = of_kind.spent_bytes.saturating_add(spent.0);
    }

    /// The kinds that were passed over, and how often.
    pub fn unexamined(&self) -> impl Iterator<Item = (Holds, u64)> {
        let kinds = self.kinds.iter();
        kinds
            .map(|(kind, of_kind)| (*kind, of_kind.unexamined))
            .filter(|(_, unexamined)| *unexamined > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::put;
    use super::super::{Holds, Search};
    use super::*;
    use crate::gpt;
    use crate::media::Media;

    const MIB: u64 = 1 << 20;

    /// The sector that a hostile medium repeats, and what it seems to hold.
    fn pages() -> Vec<(Holds, Vec<u8>)> {
        let media = Media {
            sector_size_bytes: 512,
            sectors: 1 << 30,
        };
        let table = gpt::Table::create(media, 4096, gpt::Guid([1; 16])).unwrap();
        let header = table.encode(media).into_iter().find(|write| write.lba == 1);
        let mut luks = vec![0; 512];
        put(&mut luks, 0, b"LUKS\xba\xbe\0\x02");
        put(&mut luks, 8, &(4 * MIB).to_be_bytes());
        let mut fat = vec![0; 512];
        put(&mut fat, 11, &[0, 2, 1, 1, 0]);
        put(&mut fat, 19, &[0xff, 0xff, 0xf8]);
        put(&mut fat, 54, b"FAT16");
        put(&mut fat, 510, &[0x55, 0xaa]);
        let mut swap = vec![0; 512];
        put(&mut swap, 502, b"SWAPSPACE2");
        let mut bea = vec![0; 512];
        put(&mut bea, 0, b"\0BEA01");
        vec![
            (Holds::Listed, header.unwrap().data),
            (Holds::Luks, luks),
            (Holds::Fat, fat),
            (Holds::Swap, swap),
            (Holds::Udf, bea),
        ]
    }

    /// Bytes and requests of second looks at a medium that repeats a sector.
    #[test]
    fn second_looks_at_a_medium_of_magic_numbers_are_bounded() {
        for (holds, page) in pages() {
            let (mut bytes, mut requests) = (0, 0);
            let piece = page.repeat(2048);
            let size = 128 * MIB;
            let mut search = Search::new(size, 512);
            for at in (0..size).step_by(MIB as usize) {
                let mut read = |offset: u64, length: usize| {
                    bytes += length as u64;
                    requests += 1;
                    let skip = (offset % 512) as usize;
                    Ok(piece[skip..skip + length].to_vec())
                };
                search.look(at, &piece, &mut read);
            }
            let most = FREE_BYTES + size / PART + 4 * MIB;
            assert!(bytes <= most, "{holds:?}: {bytes} bytes");
            assert!(requests <= most / READ_BYTES_MIN, "{holds:?}: {requests}");
            let unexamined: Vec<Holds> = search.unexamined().map(|(kind, _)| kind).collect();
            if holds == Holds::Listed || holds == Holds::Luks {
                assert_eq!(unexamined, [holds]);
            }
        }
    }

    /// Behind the hostile stretch, the structures of the same kind are examined again.
    #[test]
    fn a_hostile_stretch_does_not_hide_the_rest() {
        let mut budget = Budget::default();
        let mut spent = Spent::default();
        spent.read(MIB as usize);
        let mut passed = 0;
        for _ in 0..256 {
            budget.looked(MIB as usize);
            match budget.admits(Holds::Luks) {
                true => budget.spend(Holds::Luks, spent),
                false => passed += 1,
            }
        }
        assert!((190..256).contains(&passed), "{passed}");
        assert!(budget.admits(Holds::Ext));
        budget.looked(16 * MIB as usize);
        assert!(budget.admits(Holds::Luks));
        let unexamined: Vec<_> = budget.unexamined().collect();
        assert_eq!(unexamined, [(Holds::Luks, passed)]);
    }
}
