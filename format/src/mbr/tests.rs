//! Master boot records: known sectors, damage, round trips.

use super::*;
use proptest::prelude::*;

fn sector_with(entries: &[(usize, [u8; 16])]) -> [u8; 512] {
    let mut sector = [0; 512];
    for (index, entry) in entries {
        bytes::put(&mut sector, 446 + 16 * index, entry);
    }
    bytes::put(&mut sector, 510, &[0x55, 0xaa]);
    sector
}

/// The first entry of a laptop's disk: active, FreeBSD, from sector 63.
const FREEBSD: [u8; 16] = [
    0x80, 1, 1, 0, 0xa5, 0x0f, 0xff, 0xff, 63, 0, 0, 0, 0x41, 0x29, 0x54, 0x02,
];
/// The made-up table of boot1.
const MADE_UP: [u8; 16] = [
    0x80, 0, 1, 0, 0xa5, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x50, 0xc3, 0, 0,
];
const PROTECTIVE: [u8; 16] = [
    0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
];

#[test]
fn a_known_entry_is_read_field_by_field() {
    let mbr = Mbr::decode(&sector_with(&[(0, FREEBSD)])).unwrap();
    let (number, entry) = mbr.slices().next().unwrap();
    assert_eq!((number, entry.start, entry.sectors), (1, 63, 39_070_017));
    assert!(entry.is_active());
    assert_eq!(entry.kind.to_string(), "freebsd");
    assert_eq!(mbr.kind(), MbrKind::Partitioned);
    assert_eq!(mbr.encode(), sector_with(&[(0, FREEBSD)]));
}

#[test]
fn the_made_up_table_of_boot1_lists_nothing() {
    for head in [254, 255] {
        let mut entry = MADE_UP;
        entry[5] = head;
        let mbr = Mbr::decode(&sector_with(&[(3, entry)])).unwrap();
        assert_eq!(mbr.kind(), MbrKind::Dedicated);
        assert_eq!(mbr.slices().count(), 0);
    }
}

#[test]
fn a_protective_entry_is_not_listed_but_its_neighbours_are() {
    let alone = Mbr::decode(&sector_with(&[(0, PROTECTIVE)])).unwrap();
    assert_eq!(
        (alone.kind(), alone.slices().count()),
        (MbrKind::Protective, 0)
    );
    let hybrid = Mbr::decode(&sector_with(&[(0, PROTECTIVE), (2, FREEBSD)])).unwrap();
    assert_eq!(hybrid.kind(), MbrKind::Hybrid);
    assert_eq!(
        hybrid
            .slices()
            .map(|(number, _)| number)
            .collect::<Vec<_>>(),
        [3]
    );
}

#[test]
fn an_extended_entry_is_listed() {
    let mut extended = FREEBSD;
    extended[4] = 0x05;
    let mbr = Mbr::decode(&sector_with(&[(1, extended)])).unwrap();
    let (number, entry) = mbr.slices().next().unwrap();
    assert_eq!((number, entry.kind.is_extended()), (2, true));
}

#[test]
fn a_sector_without_a_signature_is_refused() {
    assert_eq!(Mbr::decode(&[0; 512]), Err(Error::Signature { found: 0 }));
    assert_eq!(Mbr::decode(&[0; 511]), Err(Error::Short { found: 511 }));
    assert_eq!(Mbr::decode(&[]), Err(Error::Short { found: 0 }));
}

#[test]
fn a_wrong_active_flag_names_the_entry_and_the_byte() {
    let mut entry = FREEBSD;
    entry[0] = 0x41;
    let error = Mbr::decode(&sector_with(&[(2, entry)])).unwrap_err();
    assert_eq!(
        error,
        Error::ActiveFlag {
            entry: 3,
            offset: 478,
            found: 0x41
        }
    );
}

#[test]
fn a_fat_boot_sector_with_an_empty_table_is_refused() {
    let mut sector = sector_with(&[]);
    assert_eq!(Mbr::decode(&sector).unwrap().kind(), MbrKind::Empty);
    bytes::put(&mut sector, 11, &[0x00, 0x02, 8]);
    assert_eq!(
        Mbr::decode(&sector),
        Err(Error::BootSector {
            sector_size_bytes: 512
        })
    );
    let mut exfat = sector_with(&[]);
    bytes::put(&mut exfat, 0, b"\xeb\x76\x90EXFAT   ");
    assert_eq!(Mbr::decode(&exfat), Err(Error::ExFat));
    // With partitions in the table the parameter block no longer matters.
    bytes::put(&mut sector, 446, &FREEBSD);
    assert_eq!(Mbr::decode(&sector).unwrap().kind(), MbrKind::Partitioned);
}

#[test]
fn a_protective_record_covers_the_disk_or_as_much_as_fits() {
    let small = Mbr::protective(1000);
    assert_eq!((small.entries[0].start, small.entries[0].sectors), (1, 999));
    assert_eq!(small.encode()[446..454], [0, 0, 2, 0, 0xee, 15, 55, 0]);
    let large = Mbr::protective(1 << 40);
    assert_eq!(large.entries[0].sectors, u32::MAX);
    assert_eq!(large.encode()[446..462], PROTECTIVE);
    assert_eq!(large.kind(), MbrKind::Protective);
    assert_eq!(Mbr::protective(0).entries[0].sectors, 0);
}

pub(crate) fn any_entry() -> impl Strategy<Value = Entry> {
    (
        any::<bool>(),
        any::<[u8; 3]>(),
        any::<u8>(),
        any::<[u8; 3]>(),
        any::<u32>(),
        any::<u32>(),
    )
        .prop_map(|(active, first, kind, last, start, sectors)| Entry {
            flag: if active { 0x80 } else { 0 },
            first_chs: Chs::decode(first),
            kind: PartType(kind),
            last_chs: Chs::decode(last),
            start,
            sectors,
        })
}

proptest! {
    #[test]
    fn any_table_survives_encoding_and_decoding(
        entries in proptest::array::uniform4(any_entry()),
        disk_id in any::<u32>(),
    ) {
        let mut mbr = Mbr::empty(disk_id);
        mbr.entries = entries;
        prop_assert_eq!(Mbr::decode(&mbr.encode()), Ok(mbr));
    }
}
