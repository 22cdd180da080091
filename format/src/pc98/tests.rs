//! Reading of tables of a PC-98, and refusals.

use super::*;
use proptest::prelude::*;

fn entry(first: u16, last: u16) -> Entry {
    let mut entry = Entry {
        first: Chs {
            cylinder: first,
            ..Chs::default()
        },
        last: Chs {
            sector: 16,
            head: 7,
            cylinder: last,
        },
        ..Entry::default()
    };
    entry.set_kind(Pc98Type::FREEBSD);
    entry.name[..7].copy_from_slice(b"FreeBSD");
    entry
}

fn table() -> Table {
    let mut boot = [0; SECTOR_BYTES];
    boot[4..8].copy_from_slice(b"IPL1");
    let mut table = Table::create(&boot);
    table.entries[0] = entry(1, 99);
    table.entries[3] = entry(100, 100);
    table
}

#[test]
fn partitions_are_whole_cylinders() {
    let decoded = Table::decode(&table().encode()).unwrap();
    let places = |geometry| {
        let slices = decoded.slices(geometry);
        slices
            .map(|slice| (slice.number, slice.start, slice.sectors))
            .collect::<Vec<_>>()
    };
    let default = places(Geometry::DEFAULT);
    assert_eq!(default, [(1, 136, 99 * 136), (4, 13_600, 136)]);
    let other = Geometry {
        heads: 16,
        track_sectors: 63,
    };
    assert_eq!(places(other)[0], (1, 1008, 99 * 1008));
    assert_eq!(decoded.entries[0].label(), "FreeBSD");
    assert_eq!(decoded.entries[0].kind().to_string(), "freebsd");
}

#[test]
fn the_first_sector_of_a_pc_is_not_taken_for_one_of_a_pc98() {
    let mut head = table().encode();
    head[4..8].fill(0);
    assert!(Table::decode(&head).is_ok(), "no table of a PC is there");
    head[446 + 4] = 0x83;
    assert_eq!(Table::decode(&head), Err(Error::Foreign));
    // Code instead of a table of a PC: sector 1 alone decides, and must have no hole.
    head[446] = 0x42;
    assert_eq!(Table::decode(&head), Err(Error::Foreign));
    let mut whole = head;
    whole.copy_within(512 + 3 * 32..512 + 4 * 32, 512 + 32);
    whole[512 + 3 * 32..512 + 4 * 32].fill(0);
    assert_eq!(
        Table::decode(&whole).map(|it| it.slices(Geometry::DEFAULT).count()),
        Ok(2)
    );
    head[446] = 0;
    head[446 + 4] = 0;
    head[512 + 14..512 + 16].fill(0);
    head[512 + 3 * 32..].fill(0);
    assert_eq!(Table::decode(&head), Err(Error::Empty));
    head[510] = 0;
    assert_eq!(
        Table::decode(&head),
        Err(Error::Signature { found: 0xaa00 })
    );
    assert_eq!(
        Table::decode(&head[..512]),
        Err(Error::Short { found: 512 })
    );
}

#[test]
fn a_partition_that_ends_before_it_begins_is_refused() {
    let mut table = table();
    table.entries[1] = entry(9, 8);
    let expected = Error::Entry {
        number: 2,
        offset: 544,
        first: 9,
        last: 8,
    };
    assert_eq!(Table::decode(&table.encode()), Err(expected));
}

#[test]
fn the_ends_of_partitions_tell_the_geometry_where_they_agree() {
    let mut table = table();
    assert_eq!(table.geometry_of_ends(), Some(Geometry::DEFAULT));
    (table.entries[0].last.head, table.entries[0].last.sector) = (3, 31);
    assert_eq!(table.geometry_of_ends(), None);
    table.entries[3].last = table.entries[0].last;
    let geometry = Geometry {
        heads: 4,
        track_sectors: 32,
    };
    assert_eq!(table.geometry_of_ends(), Some(geometry));
    // parted writes no head and no sector.
    for entry in &mut table.entries {
        (entry.last.head, entry.last.sector) = (0, 0);
    }
    assert_eq!(table.geometry_of_ends(), None);
    assert_eq!(Table::create(&[0; SECTOR_BYTES]).geometry_of_ends(), None);
}

#[test]
fn flags_are_no_part_of_the_type() {
    let mut entry = entry(1, 2);
    (entry.mid, entry.sid) = (entry.mid | 0x80, entry.sid | 0x80);
    assert_eq!(entry.kind(), Pc98Type::FREEBSD);
    assert!(entry.is_active() && entry.is_bootable());
    entry.set_kind(Pc98Type(0x2020));
    assert_eq!((entry.mid, entry.sid), (0xa0, 0xa0));
    assert_eq!(Pc98Type::parse("!0x4414"), Some(Pc98Type::FREEBSD));
    for refused in ["!0", "!0x80", "!0x8000", "linux-data", "!65536"] {
        assert_eq!(Pc98Type::parse(refused), None, "{refused}");
    }
}

#[test]
fn names_are_shift_jis_of_which_katakana_are_read() {
    let named = |name: &[u8]| {
        let mut entry = entry(1, 2);
        entry.name = [0; 16];
        entry.name[..name.len()].copy_from_slice(name);
        text::visible(&entry.label())
    };
    assert_eq!(named(b"MS-DOS 5.00     "), "MS-DOS 5.00");
    assert_eq!(named(b"\xca\xb0\xc4\xde 1"), "ﾊｰﾄﾞ 1");
    assert_eq!(named("日本".as_bytes()), "日本");
    // Kanji; the bytes DE A8 would be a letter in UTF-8.
    assert_eq!(named(b"\x93\xfa\xc3\xde\xa8"), "\\x93\\xfa\\xc3\\xde\\xa8");
}

proptest! {
    #[test]
    fn any_table_survives_encoding_and_decoding(
        head in proptest::collection::vec(any::<u8>(), 2 * SECTOR_BYTES),
        named in any::<bool>(),
    ) {
        let mut head = head;
        head[510..512].copy_from_slice(&[0x55, 0xaa]);
        if named {
            head[4..8].copy_from_slice(b"IPL1");
        }
        let read = Table::read(&head);
        prop_assert_eq!(&read.encode()[..], &head[..]);
        if let Ok(table) = Table::decode(&head) {
            prop_assert!(table.slices(Geometry::DEFAULT).count() <= ENTRIES);
        }
    }
}
