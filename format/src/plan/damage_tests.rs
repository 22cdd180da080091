//! Damaged and hybrid tables: refusals, later changes, and repairs.

use super::*;
use crate::gpt::Side;
use crate::mbr::{Entry as Slice, Geometry, Mbr, MbrKind, PartType};

const MEDIA: Media = Media::of_512(20_480);

fn part(start: u64, sectors: u64) -> NewPart {
    NewPart {
        kind: "linux-data".to_owned(),
        start: Some(start),
        sectors: Some(sectors),
        ..Default::default()
    }
}

/// A disk with a GPT of two partitions.
fn disk() -> Vec<u8> {
    let create = Create {
        random: [7; 16],
        ..Default::default()
    };
    let mut table = Table::create(Scheme::Gpt, MEDIA, &create).unwrap();
    table.add(&part(2048, 1000)).unwrap();
    table.add(&part(4096, 1000)).unwrap();
    let mut disk = vec![0; 20_480 * 512];
    write(&table, &mut disk);
    disk
}

fn write(table: &Table, disk: &mut [u8]) {
    for write in table.encode() {
        disk[write.lba as usize * 512..][..write.data.len()].copy_from_slice(&write.data);
    }
}

fn load(disk: &[u8]) -> Table {
    let mut read =
        |lba: u64, count: u64| Ok(disk[lba as usize * 512..][..count as usize * 512].to_vec());
    Table::load(Scheme::Gpt, MEDIA, &mut read).unwrap()
}

fn slice(start: u32, sectors: u32) -> Slice {
    Slice::new(PartType(0x83), start, sectors, Geometry::LBA_ASSIST)
}

fn set_mbr(disk: &mut [u8], change: impl FnOnce(&mut Mbr)) {
    let mut mbr = Mbr::protective(20_480);
    change(&mut mbr);
    disk[..512].copy_from_slice(&mbr.encode());
}

#[test]
fn an_ordinary_mbr_over_a_gpt_is_replaced_only_where_the_gpt_is_named() {
    let mut disk = disk();
    let whole = disk.clone();
    set_mbr(&mut disk, |mbr| mbr.entries[0] = slice(63, 100));
    let mut table = load(&disk);
    assert!(matches!(table.delete(1), Err(Error::Corrupt { .. })));
    assert_eq!(table.recover(), Err(Error::OrdinaryMbr));
    assert_eq!(table.recover_from(Side::Primary).unwrap().len(), 1);
    write(&table, &mut disk);
    assert!(disk == whole);
}

#[test]
fn a_missing_protective_mbr_is_damage_and_mended() {
    let mut disk = disk();
    let whole = disk.clone();
    disk[446..510].fill(0);
    let mut table = load(&disk);
    assert!(
        table.damage()[0].contains("no protective MBR"),
        "{:?}",
        table.damage()
    );
    assert!(matches!(
        table.add(&part(6000, 10)),
        Err(Error::Corrupt { .. })
    ));
    table.recover().unwrap();
    write(&table, &mut disk);
    assert!(disk == whole);
}

#[test]
fn a_hybrid_mbr_follows_the_partitions_that_it_repeats() {
    let mut disk = disk();
    set_mbr(&mut disk, |mbr| {
        mbr.entries[0].sectors = 2047;
        mbr.entries[1] = slice(2048, 1000);
        mbr.entries[2] = slice(4096, 1000);
        mbr.entries[2].flag = 0x80;
    });
    let mut table = load(&disk);
    assert_eq!(table.damage(), [""; 0]);
    table.delete(1).unwrap();
    write(&table, &mut disk);
    let mbr = Mbr::decode(&disk).unwrap();
    assert_eq!(mbr.kind(), MbrKind::Hybrid);
    assert_eq!(mbr.entries[1], Slice::default());
    assert_eq!((mbr.entries[2].start, mbr.entries[2].flag), (4096, 0x80));
    // Without a copy of a partition it is a protective one.
    let mut table = load(&disk);
    table.delete(2).unwrap();
    write(&table, &mut disk);
    assert_eq!(Mbr::decode(&disk).unwrap().kind(), MbrKind::Protective);
    assert_eq!(load(&disk).damage(), [""; 0]);
}

#[test]
fn a_hybrid_mbr_with_a_partition_of_its_own_keeps_the_table_from_changes() {
    let mut disk = disk();
    set_mbr(&mut disk, |mbr| {
        mbr.entries[1] = slice(2048, 1000);
        mbr.entries[2] = slice(8000, 99);
    });
    let mut table = load(&disk);
    let error = table.delete(1).unwrap_err().to_string();
    ugeom_testkit::has(&error, "entry 3 of the hybrid MBR (sectors 8000 to 8098)");
    table.recover().unwrap();
    write(&table, &mut disk);
    let mbr = Mbr::decode(&disk).unwrap();
    assert_eq!(
        (mbr.entries[1].start, mbr.entries[2]),
        (2048, Slice::default())
    );
    assert_eq!(load(&disk).damage(), [""; 0]);
}

#[test]
fn a_table_in_doubt_is_recovered_only_from_a_named_copy() {
    let mut disk = disk();
    let whole = disk.clone();
    disk[512 + 56] ^= 1;
    let last = 20_479 * 512;
    disk[last + 16] ^= 1;
    let mut table = load(&disk);
    assert!(table.show("md0", Column::Type).contains("[DAMAGED]"));
    assert_eq!(table.parts().len(), 2);
    assert!(matches!(table.delete(1), Err(Error::Corrupt { .. })));
    assert_eq!(table.recover(), Err(Error::Doubtful));
    table.recover_from(Side::Backup).unwrap();
    let mut mended = disk.clone();
    write(&table, &mut mended);
    assert!(
        mended == whole,
        "the backup's checksum was all that was wrong"
    );
    // The primary as it stands: its GUID is the changed one.
    let mut table = load(&disk);
    table.recover_from(Side::Primary).unwrap();
    write(&table, &mut disk);
    assert_eq!(load(&disk).damage(), [""; 0]);
    assert_eq!(disk[512 + 56], whole[512 + 56] ^ 1);
    disk[last..].fill(0);
    let error = load(&disk).recover_from(Side::Backup).unwrap_err();
    assert!(matches!(
        error,
        Error::Copy {
            side: Side::Backup,
            ..
        }
    ));
}

#[test]
fn of_partitions_that_overlap_one_can_only_be_deleted() {
    let Table::Gpt(gpt) = load(&disk()) else { unreachable!() };
    let mut overlapping = gpt.table().clone();
    overlapping.entries[1].first = 3000;
    let mut disk = disk();
    for write in overlapping.encode(MEDIA) {
        disk[write.lba as usize * 512..][..write.data.len()].copy_from_slice(&write.data);
    }
    let mut table = load(&disk);
    let refused = Error::Overlapping {
        scheme: Scheme::Gpt,
        first: 1,
        second: 2,
    };
    assert_eq!(table.add(&part(8000, 10)), Err(refused.clone()));
    assert_eq!(table.delete(9), Err(refused));
    assert_eq!(table.delete(2), Ok(()));
    assert_eq!(table.add(&part(8000, 10)).map(|_| ()), Ok(()));
}

#[test]
fn free_space_ends_with_a_disk_that_was_cut() {
    const CUT: u64 = 8192;
    let disk = disk();
    let media = Media {
        sectors: CUT,
        ..MEDIA
    };
    let mut read = |lba: u64, count: u64| {
        let there = lba + count <= CUT;
        let bytes = there.then(|| disk[lba as usize * 512..][..count as usize * 512].to_vec());
        bytes.ok_or_else(|| "past the end".to_owned())
    };
    let table = Table::load(Scheme::Gpt, media, &mut read).unwrap();
    let rows = table.rows().into_iter();
    let ends = rows.filter_map(|row| match row {
        Row::Free(span) => Some(span.start + span.sectors),
        Row::Part { .. } => None,
    });
    assert_eq!(ends.max(), Some(CUT));
}

/// The media grew, and its last sector belongs to something else, or to a table of before.
#[test]
fn the_last_sector_of_a_media_that_grew_is_wiped_only_where_it_holds_a_header() {
    let media = Media::of_512(20_500);
    for (last, is_wiped) in [(b"GEOM::MIRROR".as_slice(), false), (b"EFI PART", true)] {
        let mut disk = disk();
        disk.resize(20_500 * 512, 0);
        disk[20_499 * 512..][..last.len()].copy_from_slice(last);
        let mut read =
            |lba: u64, count: u64| Ok(disk[lba as usize * 512..][..count as usize * 512].to_vec());
        let table = Table::load(Scheme::Gpt, media, &mut read).unwrap();
        let places: Vec<u64> = table.destroy().iter().map(|write| write.lba).collect();
        let expected: &[u64] = match is_wiped {
            true => &[0, 20_499, 20_479, 1],
            false => &[0, 20_479, 1],
        };
        assert_eq!(places, expected);
    }
}
