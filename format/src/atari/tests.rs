//! Reading of root sectors and their chains, and refusals.

use super::*;
use proptest::prelude::*;

const MEDIA: Media = Media::of_512(100_000);

fn put(sector: &mut [u8], at: usize, entry: (u8, &[u8; 3], u32, u32)) {
    bytes::put(sector, at, &[entry.0]);
    bytes::put(sector, at + 1, entry.1);
    bytes::put_u32_be(sector, at + 4, entry.2);
    bytes::put_u32_be(sector, at + 8, entry.3);
}

fn root(entries: &[(u8, &[u8; 3], u32, u32)]) -> Vec<u8> {
    let mut sector = vec![0; SECTOR_BYTES];
    bytes::put_u32_be(&mut sector, SIZE_OFFSET_BYTES, 100_000);
    for (index, entry) in entries.iter().enumerate() {
        put(&mut sector, ENTRIES_OFFSET_BYTES + 12 * index, *entry);
    }
    sector
}

fn read(sectors: &[(u64, Vec<u8>)]) -> Result<Table, Error> {
    Table::read(MEDIA, &mut |lba, _| {
        let sector = sectors.iter().find(|sector| sector.0 == lba);
        Ok(sector.map_or_else(|| vec![0; 512], |sector| sector.1.clone()))
    })
}

fn listed(table: &Table) -> Vec<(u64, u64)> {
    let parts = table.partitions.iter();
    parts.map(|part| (part.start, part.sectors)).collect()
}

#[test]
fn an_extended_partition_is_replaced_by_its_chain() {
    let table = read(&[
        (
            0,
            root(&[
                (0x81, b"GEM", 2, 1000),
                (1, b"XGM", 2000, 9000),
                (1, b"BGM", 20_000, 5),
            ]),
        ),
        (2000, root(&[(1, b"BGM", 1, 999), (1, b"XGM", 1000, 2000)])),
        (3000, root(&[(1, b"LNX", 1, 1999)])),
    ])
    .unwrap();
    assert_eq!(
        listed(&table),
        [(2, 1000), (2001, 999), (3001, 1999), (20_000, 5)]
    );
    assert_eq!(table.broken, None);
    assert!(table.partitions[0].is_bootable);
    assert_eq!(&table.partitions[2].kind, b"LNX");
}

#[test]
fn icd_has_eight_more() {
    let mut sector = root(&[(1, b"GEM", 2, 1000)]);
    put(&mut sector, ICD_OFFSET_BYTES, (1, b"BGM", 2000, 50));
    put(&mut sector, ICD_OFFSET_BYTES + 84, (1, b"BGM", 3000, 60));
    let table = read(&[(0, sector)]).unwrap();
    assert_eq!(listed(&table), [(2, 1000), (2000, 50), (3000, 60)]);
}

#[test]
fn what_is_no_root_sector_is_refused() {
    assert_eq!(read(&[]), Err(Error::NotFound));
    let foreign = root(&[(1, b"abc", 2, 1000)]);
    assert_eq!(read(&[(0, foreign)]), Err(Error::NotFound));
    let past = root(&[(1, b"GEM", 2, 1000), (1, b"GEM", 99_000, 1001)]);
    let expected = Error::Entry {
        number: 2,
        start: 99_000,
        sectors: 1001,
    };
    assert_eq!(read(&[(0, past)]), Err(expected));
}

#[test]
fn a_chain_that_breaks_gives_what_comes_before() {
    let first = root(&[(1, b"GEM", 2, 100), (1, b"XGM", 2000, 9000)]);
    let table = read(&[(0, first.clone())]).unwrap();
    assert_eq!(listed(&table), [(2, 100)]);
    assert_eq!(table.broken, Some(Error::Extended { sector: 2000 }));
    let looped = root(&[(1, b"BGM", 1, 9), (1, b"XGM", 0, 10)]);
    let table = read(&[(0, first), (2000, looped)]).unwrap();
    assert_eq!(listed(&table), [(2, 100), (2001, 9)]);
    assert_eq!(table.broken, Some(Error::Loop { sector: 2000 }));
}

proptest! {
    #[test]
    fn any_sectors_are_read_without_panic(
        sectors in proptest::collection::vec(
            (
                0..6_u64,
                proptest::collection::vec((any::<u8>(), 0..14_usize, 0..8_u32, any::<u32>()), 4),
            ),
            1..8,
        ),
    ) {
        let sectors: Vec<(u64, Vec<u8>)> = sectors
            .iter()
            .map(|(at, entries)| {
                let entries: Vec<(u8, &[u8; 3], u32, u32)> = entries
                    .iter()
                    .map(|(flags, kind, start, length)| {
                        (*flags, *KINDS.get(*kind).unwrap_or(&b"\0\0\0"), *start, *length)
                    })
                    .collect();
                (*at, root(&entries))
            })
            .collect();
        if let Ok(table) = read(&sectors) {
            prop_assert!(table.partitions.len() <= MAX_PARTITIONS + ENTRIES + ICD_ENTRIES);
        }
    }
}
