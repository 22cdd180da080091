//! GUID partition tables: layout, every kind of damage, round trips. Other
//! implementations are compared in `tests/oracles.rs`.

use super::*;
use crate::media::{Media, SectorWrite};
use proptest::prelude::*;
use ugeom_testkit::ends;

const GUID: Guid = Guid::from_u128(0x11112222_3333_4444_5555_666677778888);

fn media(sectors: u64, sector_size_bytes: u32) -> Media {
    Media {
        sector_size_bytes,
        sectors,
    }
}

fn entry(first: u64, last: u64, label: &str) -> Entry {
    let mut entry = Entry {
        kind: types::LINUX_DATA,
        first,
        last,
        ..Default::default()
    };
    entry.guid = Guid::from_u128(u128::from(first) << 64 | u128::from(last));
    assert!(entry.set_label(label));
    entry
}

/// A disk in memory.
struct Disk {
    media: Media,
    bytes: Vec<u8>,
}

impl Disk {
    fn new(media: Media, table: &Table) -> Disk {
        let size = media.sectors as usize * media.sector_len();
        let mut disk = Disk {
            media,
            bytes: vec![0; size],
        };
        for SectorWrite { lba, data } in table.encode(media) {
            disk.at(lba)[..data.len()].copy_from_slice(&data);
        }
        disk.protect();
        disk
    }

    fn protect(&mut self) {
        let mbr = crate::mbr::Mbr::protective(self.media.sectors).encode();
        self.bytes[..512].copy_from_slice(&mbr);
    }

    fn at(&mut self, lba: u64) -> &mut [u8] {
        &mut self.bytes[lba as usize * self.media.sector_len()..]
    }

    fn resize(&mut self, sectors: u64) {
        self.media.sectors = sectors;
        self.bytes
            .resize(sectors as usize * self.media.sector_len(), 0);
    }

    fn read(&self) -> Gpt {
        let size = self.media.sector_len();
        Gpt::read(self.media, &mut |lba, count| {
            Ok(self.bytes[lba as usize * size..][..count as usize * size].to_vec())
        })
    }
}

fn sample(media: Media) -> Table {
    let mut table = Table::create(media, 128, GUID).unwrap();
    let first = table.header.first_usable;
    table.entries[0] = entry(first, first + 9, "boot");
    table.entries[4] = entry(first + 20, first + 29, "wurzel \u{1f333}");
    table
}

#[test]
fn a_new_table_has_the_usual_places() {
    let header = Table::create(media(20_480, 512), 128, GUID).unwrap().header;
    assert_eq!((header.first_usable, header.last_usable), (34, 20_446));
    let large = Table::create(media(20_480, 4096), 128, GUID)
        .unwrap()
        .header;
    assert_eq!((large.first_usable, large.last_usable), (6, 20_474));
    let few = Table::create(media(20_480, 512), 4, GUID).unwrap().header;
    assert_eq!((few.first_usable, few.entry_count), (34, 4));
}

#[test]
fn a_media_without_room_is_refused() {
    assert!(Table::create(media(68, 512), 128, GUID).is_ok());
    assert_eq!(
        Table::create(media(67, 512), 128, GUID),
        Err(LayoutError::TooSmall {
            entries: 128,
            needed: 68,
            found: 67
        })
    );
    assert_eq!(
        Table::create(media(9999, 512), 0, GUID),
        Err(LayoutError::EntryCount(0))
    );
    assert_eq!(
        Table::create(media(9999, 512), 4097, GUID),
        Err(LayoutError::EntryCount(4097))
    );
}

#[test]
fn what_is_written_is_read_from_both_copies() {
    for size in [512, 4096] {
        let media = media(1000, size);
        let table = sample(media);
        let gpt = Disk::new(media, &table).read();
        assert_eq!(gpt.primary, Ok(table.placed(Side::Primary, media)));
        assert_eq!(gpt.backup, Ok(table.placed(Side::Backup, media)));
        assert_eq!(gpt.findings(), []);
        let (side, best) = gpt.best().unwrap();
        let found: Vec<_> = best.partitions().map(|(n, e)| (n, e.label())).collect();
        assert_eq!(side, Side::Primary);
        assert_eq!(
            found,
            [(1, "boot".to_owned()), (5, "wurzel \u{1f333}".to_owned())]
        );
    }
}

#[test]
fn a_damaged_primary_leaves_the_backup_and_is_reported() {
    for (offset, expect_crc) in [(512, false), (512 + 60, true), (1024 + 5, false)] {
        let media = media(1000, 512);
        let mut disk = Disk::new(media, &sample(media));
        disk.bytes[offset] ^= 0xff;
        let gpt = disk.read();
        let (side, table) = gpt.best().unwrap();
        assert_eq!((side, table.partitions().count()), (Side::Backup, 2));
        let error = gpt.primary.clone().unwrap_err();
        assert_eq!(
            matches!(error, Error::HeaderCrc { lba: 1, .. }),
            expect_crc,
            "{error}"
        );
        assert_eq!(
            gpt.findings(),
            [Finding::Damaged {
                side: Side::Primary,
                error
            }]
        );
        assert!(gpt.is_present());
    }
}

#[test]
fn a_disk_without_any_copy_has_no_gpt() {
    let empty = Disk {
        media: media(100, 512),
        bytes: vec![0; 51_200],
    };
    let gpt = empty.read();
    assert!(!gpt.is_present() && gpt.best().is_none() && gpt.findings().is_empty());
    for sectors in 0..3 {
        let tiny = Disk {
            media: media(sectors, 512),
            bytes: vec![0; 1536],
        };
        assert!(!tiny.read().is_present());
    }
}

#[test]
fn a_cut_image_keeps_its_primary_and_says_so() {
    let media = media(1000, 512);
    let mut disk = Disk::new(media, &sample(media));
    disk.resize(60);
    let gpt = disk.read();
    assert_eq!(gpt.best().unwrap().0, Side::Primary);
    let findings = gpt.findings();
    assert!(
        findings.contains(&Finding::Truncated {
            needed: 999,
            last: 59
        }),
        "{findings:?}"
    );
    let past = Finding::Partition {
        number: 5,
        first: 54,
        last: 63,
        damage: Damage::PastEnd { last_lba: 59 },
    };
    assert!(findings.contains(&past), "{findings:?}");
}

#[test]
fn a_grown_media_is_reported_and_the_table_can_be_fitted_to_it() {
    let small = media(1000, 512);
    let mut disk = Disk::new(small, &sample(small));
    disk.resize(2000);
    let gpt = disk.read();
    assert_eq!(
        gpt.findings(),
        [Finding::BackupNotLast {
            found: 999,
            last: 1999
        }]
    );
    let mut table = gpt.best().unwrap().1.clone();
    table.fit(disk.media).unwrap();
    let fitted = Disk::new(disk.media, &table).read();
    assert_eq!(fitted.findings(), []);
    assert_eq!(fitted.best().unwrap().1.header.last_usable, 1966);
    let one = fitted.best().unwrap().1.entries.clone();
    assert_eq!(one, table.entries);
}

#[test]
fn a_table_is_not_fitted_over_a_partition() {
    let mut table = sample(media(1000, 512));
    table.entries[7] = entry(900, 960, "late");
    assert_eq!(
        table.fit(media(970, 512)),
        Err(LayoutError::InTheWay {
            number: 8,
            last: 960,
            backup: 937
        })
    );
    assert_eq!(table.fit(media(994, 512)), Ok(()));
    assert_eq!(table.header.last_usable, 960);
}

#[test]
fn a_backup_of_another_table_is_reported() {
    let media = media(1000, 512);
    let mut disk = Disk::new(media, &sample(media));
    let mut other = sample(media);
    other.entries[9] = entry(100, 110, "extra");
    let other = Disk::new(media, &other);
    disk.bytes[900 * 512..].copy_from_slice(&other.bytes[900 * 512..]);
    let gpt = disk.read();
    assert_eq!(gpt.findings(), [Finding::Disagree { field: "table" }]);
    assert_eq!(gpt.best().unwrap().1.partitions().count(), 2);
}

#[test]
fn bad_entries_are_marked() {
    let media = media(1000, 512);
    let mut table = sample(media);
    table.entries[5] = entry(60, 70, "over 5");
    table.entries[6] = entry(100, 90, "reversed");
    table.entries[7] = entry(20, 33, "in the table");
    table.entries[8] = Entry {
        first: 200,
        last: 210,
        ..table.entries[0].clone()
    };
    let marks: Vec<_> = Disk::new(media, &table)
        .read()
        .findings()
        .into_iter()
        .map(|finding| match finding {
            Finding::Partition { number, damage, .. } => (number, damage),
            other => panic!("{other}"),
        })
        .collect();
    let usable = Damage::OutsideUsable {
        first: 34,
        last: 966,
    };
    assert_eq!(
        marks,
        [
            (7, Damage::Reversed),
            (8, usable),
            (9, Damage::SameGuid { other: 1 }),
            (6, Damage::Overlaps { other: 5 }),
        ]
    );
}

/// Decodes the sample's primary header after a change, with a correct CRC.
fn lying(change: impl FnOnce(&mut Header)) -> Error {
    let mut header = sample(media(1000, 512)).header;
    change(&mut header);
    Header::decode(&header.encode(512), 1).unwrap_err()
}

#[test]
fn a_header_that_lies_is_named_for_it() {
    assert_eq!(
        lying(|h| h.revision = 0x100),
        Error::Revision {
            lba: 1,
            found: 0x100
        }
    );
    assert_eq!(lying(|h| h.my_lba = 9), Error::MyLba { lba: 1, found: 9 });
    assert_eq!(
        lying(|h| h.alternate_lba = 1),
        Error::Alternate { lba: 1, found: 1 }
    );
    for size in [0, 64, 127, 129, 190, 8193, u32::MAX] {
        let error = lying(|h| h.entry_size_bytes = size);
        assert_eq!(
            error,
            Error::EntrySize {
                lba: 1,
                found: size
            }
        );
    }
    let error = lying(|h| h.entry_count = 0);
    assert_eq!(error, Error::EntryCount { lba: 1 });
    let error = lying(|h| h.entry_count = u32::MAX);
    assert_eq!(
        error,
        Error::TableSize {
            lba: 1,
            found: (u64::from(u32::MAX)) * 128
        }
    );
    assert_eq!(
        lying(|h| (h.first_usable, h.last_usable) = (50, 49)),
        Error::UsableRange {
            lba: 1,
            first: 50,
            last: 49
        }
    );
    assert!(matches!(
        lying(|h| h.first_usable = 0),
        Error::UsableRange { .. }
    ));
    for (table, over) in [
        (0, "the MBR or the primary header"),
        (1, "the MBR or the primary header"),
        (3, "the usable range"),
        (970, "a header"),
        (u64::MAX, ""),
    ] {
        let mut header = sample(media(1000, 512)).header;
        header.table_lba = table;
        let found = Header::decode(&header.encode(512), 1);
        match found {
            Err(Error::TablePlace { over: found, .. }) => assert_eq!(found, over),
            other => assert!(over.is_empty() && other.is_ok(), "{table}: {other:?}"),
        }
    }
}

#[test]
fn a_header_with_a_wrong_size_is_named_for_it() {
    for size in [0_u32, 91, 513, u32::MAX] {
        let mut sector = sample(media(1000, 512)).header.encode(512);
        sector[12..16].copy_from_slice(&size.to_le_bytes());
        let error = Error::HeaderSize {
            lba: 1,
            found: size,
            most: 512,
        };
        assert_eq!(Header::decode(&sector, 1), Err(error));
    }
}

#[test]
fn a_longer_header_and_longer_entries_keep_their_extra_bytes() {
    let media = media(1000, 512);
    let mut table = sample(media);
    table.header.extra = vec![1, 2, 3];
    table.header.entry_size_bytes = 256;
    table.entries.truncate(64);
    table.entries[0].extra = vec![0, 7];
    let gpt = Disk::new(media, &table).read();
    let found = gpt.primary.unwrap();
    assert_eq!(found.header.extra, [1, 2, 3]);
    assert_eq!(found.entries[0].extra, [0, 7]);
    assert_eq!(found.entries, table.entries);
}

#[test]
fn entries_of_any_size_and_number_are_read_and_written() {
    for (size, count, sectors) in [(136, 128, 1000), (1000, 33, 1000), (128, 100_000, 60_000)] {
        let media = media(sectors, 512);
        let mut table = sample(media);
        table.header.entry_size_bytes = size;
        table.entries = Entries::unused(count);
        let reserved = media.sectors_for(u64::from(size) * count as u64);
        table.header.first_usable = 2 + reserved;
        table.header.last_usable = media.last_lba() - reserved - 1;
        let first = table.header.first_usable;
        table.entries[0] = entry(first, first + 9, "first");
        table.entries[count - 1] = entry(first + 20, first + 29, "last");
        table.entries[count - 1].extra = vec![7; size as usize - 128];
        let gpt = Disk::new(media, &table).read();
        assert_eq!(gpt.findings(), [], "{size} {count}");
        let found = gpt.best().unwrap().1;
        assert_eq!(
            (&found.entries, found.entries.len()),
            (&table.entries, count)
        );
        let numbers: Vec<usize> = found.partitions().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, count]);
        assert_eq!(
            found.entries.kept().count(),
            2,
            "unused entries take no memory"
        );
    }
}

#[test]
fn more_entries_in_use_than_are_listed_are_an_error() {
    let mut header = sample(media(1000, 512)).header;
    header.entry_count = MAX_KEPT_ENTRIES as u32 + 1;
    let data = vec![1; header.table_size_bytes() as usize];
    header.table_crc = crc32fast::hash(&data);
    assert_eq!(
        Table::decode(header, &data),
        Err(Error::TooManyUsed { lba: 1 })
    );
}

#[test]
fn a_table_whose_checksums_are_wrong_in_both_copies_is_listed_as_doubtful() {
    let media = media(1000, 512);
    for at in [512 + 56, 2 * 512 + 9] {
        let mut disk = Disk::new(media, &sample(media));
        disk.bytes[at] ^= 1;
        disk.bytes[999 * 512 + 56] ^= 1;
        let gpt = disk.read();
        assert_eq!(gpt.best(), None);
        assert!(gpt.is_doubtful());
        let (side, table) = gpt.listed().unwrap();
        assert_eq!((side, table.partitions().count()), (Side::Primary, 2));
        assert_eq!(gpt.findings().len(), 2, "{:?}", gpt.findings());
        assert!(gpt.as_it_stands(Side::Backup).is_ok());
    }
    // A good header with a bad table is more than a bad header.
    let mut disk = Disk::new(media, &sample(media));
    disk.bytes[512 + 56] ^= 1;
    disk.bytes[967 * 512 + 9] ^= 1;
    assert_eq!(disk.read().listed().unwrap().0, Side::Backup);
    // A header whose fields are impossible is none, whatever its checksum.
    disk.bytes[512 + 84] = 7;
    disk.bytes[999 * 512 + 84] = 7;
    assert!(disk.read().listed().is_none());
    assert!(!disk.read().is_doubtful());
}

#[test]
fn what_stands_in_front_of_a_gpt_is_checked() {
    use crate::mbr::{Entry as Slice, Geometry, Mbr, PartType};
    let media = media(1000, 512);
    let table = sample(media);
    let found = |change: &dyn Fn(&mut Mbr)| {
        let mut disk = Disk::new(media, &table);
        let mut mbr = Mbr::protective(1000);
        change(&mut mbr);
        disk.bytes[..512].copy_from_slice(&mbr.encode());
        disk.read().findings()
    };
    let slice = |start, sectors| Slice::new(PartType(0x83), start, sectors, Geometry::LBA_ASSIST);
    assert_eq!(found(&|_| ()), []);
    assert_eq!(found(&|mbr| mbr.entries[0].sectors = u32::MAX), []);
    let damage = |found: Vec<Finding>| match found.as_slice() {
        [Finding::Mbr(damage)] => damage.clone(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        damage(found(&|mbr| mbr.entries[0] = Slice::default())),
        MbrDamage::Missing { .. }
    ));
    assert_eq!(
        damage(found(&|mbr| mbr.entries[0].start = 2)),
        MbrDamage::First { found: 2 }
    );
    assert_eq!(
        damage(found(&|mbr| mbr.entries[0].sectors = 10)),
        MbrDamage::Last {
            found: 10,
            last: 999
        }
    );
    assert_eq!(
        damage(found(&|mbr| mbr.entries[0] = slice(34, 10))),
        MbrDamage::Ordinary
    );
    assert_eq!(found(&|mbr| mbr.entries[1] = slice(34, 10)), []);
    assert_eq!(
        damage(found(&|mbr| mbr.entries[1] = slice(34, 11))),
        MbrDamage::Stray {
            entry: 2,
            first: 34,
            last: 44
        }
    );
    let mut disk = Disk::new(media, &table);
    disk.bytes[..512].fill(0);
    assert!(matches!(
        damage(disk.read().findings()),
        MbrDamage::Missing { .. }
    ));
}

#[test]
fn a_header_of_a_disk_with_other_sectors_is_found() {
    let large = media(200, 4096);
    let disk = Disk::new(large, &sample(large));
    let small = media(1600, 512);
    let mut read = |lba: u64, count: u64| {
        Ok(disk.bytes[lba as usize * 512..][..count as usize * 512].to_vec())
    };
    assert_eq!(other_sector_size(small, &mut read), Some(4096));
    let disk = Disk::new(small, &sample(small));
    let mut read = |lba: u64, count: u64| {
        Ok(disk.bytes[lba as usize * 4096..][..count as usize * 4096].to_vec())
    };
    assert_eq!(other_sector_size(large, &mut read), Some(512));
    let mut none = |_: u64, count: u64| Ok(vec![0; count as usize * 4096]);
    assert_eq!(other_sector_size(large, &mut none), None);
}

#[test]
fn names_are_cut_nowhere() {
    let mut entry = Entry::default();
    assert!(entry.set_label(&"x".repeat(36)));
    assert!(!entry.set_label(&"x".repeat(37)));
    assert!(!entry.set_label("a\0b"));
    assert_eq!(entry.label(), "x".repeat(36));
    entry.name[..4].copy_from_slice(&[0xd800, 0x41, 0x1b, 0]);
    assert_eq!(entry.label(), "\u{fffd}A\u{1b}");
    entry.attributes = ATTR_BOOTONCE | ATTR_BOOTME | ATTR_REQUIRED;
    assert_eq!(entry.attribute_names(), ["bootme", "bootonce"]);
}

#[test]
fn a_reader_that_fails_is_quoted() {
    let gpt = Gpt::read(media(100, 512), &mut |_, _| Err("no such luck".to_owned()));
    let reason = "no such luck".to_owned();
    assert_eq!(
        gpt.primary,
        Err(Error::Read {
            lba: 1,
            last: 1,
            reason
        })
    );
    let short = Gpt::read(media(100, 512), &mut |_, _| Ok(vec![0; 511]));
    assert_eq!(
        short.backup,
        Err(Error::Short {
            lba: 99,
            found: 511,
            expected: 512
        })
    );
}

fn any_entry() -> impl Strategy<Value = Entry> {
    (
        any::<[u8; 16]>(),
        any::<[u8; 16]>(),
        any::<[u64; 3]>(),
        any::<[u16; 32]>(),
    )
        .prop_map(|(kind, guid, [first, last, attributes], units)| {
            let mut name = [0; NAME_UNITS];
            name[..32].copy_from_slice(&units);
            let (kind, guid) = (Guid(kind), Guid(guid));
            Entry {
                kind,
                guid,
                first,
                last,
                attributes,
                name,
                extra: Vec::new(),
            }
        })
}

proptest! {
    #[test]
    fn any_entries_survive_writing_and_reading(
        entries in proptest::collection::vec(any_entry(), 128),
        size in prop_oneof![Just(512_u32), Just(4096)],
    ) {
        let media = media(200, size);
        let mut table = Table::create(media, 128, GUID).unwrap();
        table.entries = entries.into();
        let gpt = Disk::new(media, &table).read();
        prop_assert_eq!(&gpt.primary.as_ref().unwrap().entries, &table.entries);
        prop_assert_eq!(&gpt.backup.as_ref().unwrap().entries, &table.entries);
        let _ = gpt.findings();
    }

    #[test]
    fn any_header_with_a_right_crc_is_read_within_bounds(
        fields in any::<[u64; 5]>(),
        small in any::<[u32; 3]>(),
        exponent in 5_u32..14,
    ) {
        let mut header = sample(media(1000, 512)).header;
        [header.alternate_lba, header.first_usable, header.last_usable, header.table_lba, _] =
            fields;
        header.entry_count = small[0] % 20_000;
        header.entry_size_bytes = (1 << exponent) + 8 * (small[1] % 32);
        header.table_crc = small[2];
        let sector = header.encode(512);
        let mut read = 0;
        let gpt = Gpt::read(media(fields[4], 512), &mut |_, count| {
            read += count;
            Ok(if count == 1 { sector.clone() } else { vec![0; count as usize * 512] })
        });
        let _ = (gpt.findings(), gpt.is_present());
        prop_assert!(read <= 3 + 2 * MAX_TABLE_SIZE_BYTES / 512);
    }
}

#[test]
fn an_empty_sector_and_a_missing_one_are_said_in_words() {
    let signature = |found| Error::Signature { lba: 1, found };
    let empty = signature([0; 8]).to_string();
    ends(&empty, "begins with zeroes, not with \"EFI PART\"");
    let other = signature(*b"FI PART\0").to_string();
    ends(
        &other,
        "it begins with \"FI PART\\x00\", not with \"EFI PART\"",
    );
    let short = |found| {
        let expected = 512;
        let lba = 9;
        Error::Short {
            lba,
            found,
            expected,
        }
        .to_string()
    };
    assert_eq!(short(0), "sector 9 lies past the end of the disk");
    assert_eq!(short(100), "sector 9: 100 bytes are there, 512 are needed");
}
