//! Apple partition maps: listing, damage, round trips. A real map is in
//! `tests/disks.rs`.

use super::*;
use proptest::prelude::*;

fn padded(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn entry(kind: &str, start: u32, blocks: u32) -> Entry {
    Entry {
        map_blocks: 4,
        start,
        blocks,
        kind: padded(kind),
        ..Default::default()
    }
}

fn disk(block_size: u16, entries: &[Entry]) -> Vec<u8> {
    let descriptor = Descriptor {
        block_size_bytes: block_size,
        blocks: 100,
        drivers: 0,
    };
    let mut data = descriptor.encode().to_vec();
    data.resize(usize::from(block_size), 0);
    for entry in entries {
        data.extend(entry.encode());
        data.resize(data.len().next_multiple_of(usize::from(block_size)), 0);
    }
    data
}

fn read(data: &[u8], sector_size_bytes: u32) -> Result<Map, Error> {
    let size = sector_size_bytes as usize;
    let media = Media {
        sector_size_bytes,
        sectors: (data.len() / size) as u64,
    };
    Map::read(media, &mut |lba, count| {
        Ok(data[lba as usize * size..][..count as usize * size].to_vec())
    })
}

fn sample() -> [Entry; 4] {
    [
        entry(TYPE_MAP, 1, 4),
        entry(TYPE_FREE, 5, 5),
        entry("FreeBSD-UFS", 10, 50),
        entry("Something_Else", 60, 40),
    ]
}

#[test]
fn partitions_keep_the_number_of_their_block_and_free_space_is_one() {
    for size in [512, 2048] {
        let map = read(&disk(size, &sample()), u32::from(size)).unwrap();
        let found: Vec<_> = map.slices().map(|(n, e)| (n, e.start, e.blocks)).collect();
        assert_eq!(found, [(1, 1, 4), (2, 5, 5), (3, 10, 50), (4, 60, 40)]);
        let aliases: Vec<_> = map.slices().map(|(_, entry)| entry.alias()).collect();
        assert_eq!(aliases, [None, None, Some("freebsd-ufs"), None]);
        assert_eq!(map.entries.len(), 4);
    }
}

#[test]
fn a_foreign_block_in_the_map_is_passed_over() {
    let mut entries = sample();
    entries[2].map_blocks = 5;
    let map = read(&disk(512, &entries), 512).unwrap();
    assert_eq!(map.slices().map(|(n, _)| n).collect::<Vec<_>>(), [1, 2, 4]);
    let mut bytes = disk(512, &sample());
    bytes[3 * 512] = 0;
    let map = read(&bytes, 512).unwrap();
    assert_eq!(map.slices().map(|(n, _)| n).collect::<Vec<_>>(), [1, 2, 4]);
}

#[test]
fn a_map_that_the_media_cuts_off_ends_there() {
    let bytes = disk(512, &sample()[..3]);
    assert_eq!(read(&bytes, 512).unwrap().entries.len(), 3);
}

#[test]
fn each_damage_is_named() {
    let good = disk(512, &sample());
    let broken = |damage: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        damage(&mut bytes);
        read(&bytes, 512).unwrap_err()
    };
    let error = Error::Signature {
        block: 0,
        found: *b"XR",
        expected: *b"ER",
    };
    assert_eq!(broken(|b| b[0] = b'X'), error);
    let error = Error::Signature {
        block: 1,
        found: *b"XM",
        expected: *b"PM",
    };
    assert_eq!(broken(|b| b[512] = b'X'), error);
    let error = Error::BlockSize {
        found: 0x0300,
        expected: 512,
    };
    assert_eq!(broken(|b| b[2] = 3), error);
    assert_eq!(broken(|b| b[519] = 0), Error::MapSize { found: 0 });
    assert_eq!(
        broken(|b| b[516] = 0xff),
        Error::MapSize { found: 0xff00_0004 }
    );
    let error = Error::Short {
        block: 1,
        found: 0,
        expected: 512,
    };
    assert_eq!(broken(|b| b.truncate(512)), error);
    let error = Error::Short {
        block: 0,
        found: 0,
        expected: 512,
    };
    assert_eq!(broken(|b| b.truncate(0)), error);
}

#[test]
fn a_lying_map_size_is_read_within_bounds() {
    let mut first = entry(TYPE_MAP, 1, 4);
    first.map_blocks = MAX_ENTRIES;
    let descriptor = Descriptor {
        block_size_bytes: 512,
        blocks: 9,
        drivers: 0,
    }
    .encode();
    let media = Media::of_512(u64::MAX);
    let mut reads = 0;
    let map = Map::read(media, &mut |lba, _| {
        reads += 1;
        Ok(if lba == 0 {
            descriptor.to_vec()
        } else {
            first.encode().to_vec()
        })
    });
    assert_eq!(map.unwrap().entries.len(), MAX_ENTRIES as usize);
    assert_eq!(reads, MAX_ENTRIES + 1);
}

proptest! {
    #[test]
    fn any_entry_survives_encoding_and_decoding(
        mut block in proptest::collection::vec(any::<u8>(), 512),
    ) {
        crate::bytes::put(&mut block, 0, b"PM\0\0");
        let entry = Entry::decode(&block, 7).unwrap();
        prop_assert_eq!(&entry.encode()[..], &block[..]);
        prop_assert_eq!(Entry::decode(&entry.encode(), 7), Ok(entry.clone()));
        let _ = (entry.label(), entry.kind_name(), entry.alias(), entry.is_used());
    }
}
