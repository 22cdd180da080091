//! Editing: gpart's rules for space and indexes, damage, and listings.

use super::*;
use ugeom_testkit::has;

mod backup;
mod bootcode;
mod histories;
mod modify;
mod schemes;

const MEDIA: Media = Media::of_512(20_480);

fn new(scheme: Scheme) -> Table {
    Table::create(
        scheme,
        MEDIA,
        &Create {
            random: [7; 16],
            ..Default::default()
        },
    )
    .unwrap()
}

fn part(kind: &str) -> NewPart {
    NewPart {
        kind: kind.to_owned(),
        ..Default::default()
    }
}

fn sized(kind: &str, sectors: u64) -> NewPart {
    NewPart {
        sectors: Some(sectors),
        ..part(kind)
    }
}

/// A type that the scheme knows.
fn kind(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Mbr | Scheme::Ebr => "linux-data",
        Scheme::Pc98 => "freebsd",
        _ => "freebsd-ufs",
    }
}

/// Writes the table to an empty disk, or over `disk`, and reads it back.
fn written(table: &Table, disk: &mut Vec<u8>) -> Result<Table, Error> {
    let (media, size) = (table.media(), table.media().sector_len());
    disk.resize(media.sectors as usize * size, 0);
    for SectorWrite { lba, data } in table.encode() {
        disk[lba as usize * size..][..data.len()].copy_from_slice(&data);
    }
    load(table.scheme(), media, disk)
}

fn load(scheme: Scheme, media: Media, disk: &[u8]) -> Result<Table, Error> {
    let size = media.sector_len();
    Table::load(scheme, media, &mut |lba, count| {
        Ok(disk[lba as usize * size..][..count as usize * size].to_vec())
    })
}

fn places(table: &Table) -> Vec<(u32, u64, u64)> {
    table
        .parts()
        .iter()
        .map(|part| (part.index, part.start, part.sectors))
        .collect()
}

const ALL: [Scheme; 3] = [Scheme::Mbr, Scheme::Bsd, Scheme::Gpt];
/// Every scheme that can be written.
const EVERY: [Scheme; 8] = [
    Scheme::Apm,
    Scheme::Bsd,
    Scheme::Bsd64,
    Scheme::Ebr,
    Scheme::Gpt,
    Scheme::Mbr,
    Scheme::Pc98,
    Scheme::Vtoc8,
];

#[test]
fn without_size_and_start_the_largest_space_is_filled() {
    for (scheme, expected) in [
        (Scheme::Mbr, (1, 63, 20_417)),
        (Scheme::Bsd, (1, 0, 20_480)),
        (Scheme::Gpt, (1, 34, 20_413)),
    ] {
        let mut table = new(scheme);
        assert_eq!(table.add(&part(kind(scheme))), Ok(1));
        assert_eq!(places(&table), [expected]);
        assert_eq!(table.free(), []);
        let error = table.add(&part(kind(scheme))).unwrap_err();
        assert_eq!(
            error,
            Error::NoSpace {
                needed: 1,
                align: 1,
                largest: 0
            }
        );
    }
}

#[test]
fn a_size_alone_takes_the_smallest_space_that_holds_it() {
    let mut table = new(Scheme::Gpt);
    for (start, sectors) in [(1000, 100), (1150, 100), (1300, 100)] {
        let start = Some(start);
        table
            .add(&NewPart {
                start,
                ..sized("efi", sectors)
            })
            .unwrap();
    }
    let index = table.add(&sized("efi", 50)).unwrap();
    assert_eq!((index, table.parts()[3].start), (4, 1100));
    let aligned = NewPart {
        align_sectors: Some(8),
        ..sized("efi", 50)
    };
    table.add(&aligned).unwrap();
    // The 50 sectors after 1250 hold only 40 aligned ones.
    assert_eq!((table.parts()[4].start, table.parts()[4].sectors), (40, 48));
}

#[test]
fn a_start_alone_takes_the_rest_of_its_space() {
    let mut table = new(Scheme::Gpt);
    table
        .add(&NewPart {
            start: Some(1000),
            ..sized("efi", 100)
        })
        .unwrap();
    table
        .add(&NewPart {
            start: Some(900),
            ..part("efi")
        })
        .unwrap();
    let aligned = NewPart {
        start: Some(1101),
        align_sectors: Some(2048),
        ..part("efi")
    };
    table.add(&aligned).unwrap();
    assert_eq!(
        places(&table),
        [(1, 1000, 100), (2, 900, 100), (3, 2048, 16_384)]
    );
}

#[test]
fn what_overlaps_or_leaves_the_range_is_refused_and_changes_nothing() {
    for scheme in ALL {
        let mut table = new(scheme);
        table
            .add(&NewPart {
                start: Some(1000),
                ..sized(kind(scheme), 100)
            })
            .unwrap();
        let before = table.clone();
        let at = |start, sectors| NewPart {
            start: Some(start),
            ..sized(kind(scheme), sectors)
        };
        for (start, sectors) in [(1099, 1), (1000, 1), (901, 100), (950, 500), (1050, 10)] {
            let error = table.add(&at(start, sectors)).unwrap_err();
            assert!(
                matches!(error, Error::Overlap { other: 1, .. }),
                "{scheme}: {error}"
            );
        }
        for (start, sectors) in [
            (20_480, 1),
            (20_000, 1000),
            (u64::MAX, 1),
            (5000, u64::MAX),
            (u64::MAX, u64::MAX),
        ] {
            let error = table.add(&at(start, sectors)).unwrap_err();
            assert!(
                matches!(error, Error::OutOfRange { .. }),
                "{scheme}: {error}"
            );
        }
        assert_eq!(table.add(&at(5000, 0)), Err(Error::Empty));
        assert_eq!(table.add(&sized(kind(scheme), 0)), Err(Error::Empty));
        let zero = NewPart {
            align_sectors: Some(0),
            ..part(kind(scheme))
        };
        assert_eq!(table.add(&zero), Err(Error::Align));
        assert_eq!(table, before);
    }
}

#[test]
fn indexes_are_given_lowest_first_and_not_twice() {
    let mut table = new(Scheme::Bsd);
    for expected in [1, 2, 4, 5] {
        assert_eq!(table.add(&sized("freebsd-ufs", 10)), Ok(expected));
    }
    let with = |index| NewPart {
        index: Some(index),
        ..sized("freebsd-ufs", 10)
    };
    assert_eq!(table.add(&with(3)), Err(Error::IndexInUse(3)));
    assert_eq!(table.add(&with(4)), Err(Error::IndexInUse(4)));
    assert_eq!(table.add(&with(0)), Err(Error::Index { found: 0, most: 8 }));
    assert_eq!(table.add(&with(9)), Err(Error::Index { found: 9, most: 8 }));
    assert_eq!(table.delete(3), Err(Error::NoSuchPartition(3)));
    assert_eq!(table.delete(7), Err(Error::NoSuchPartition(7)));
    let mut mbr = new(Scheme::Mbr);
    for _ in 0..4 {
        mbr.add(&sized("freebsd", 10)).unwrap();
    }
    assert_eq!(mbr.add(&sized("freebsd", 10)), Err(Error::TableFull(4)));
}

#[test]
fn types_and_labels_that_the_scheme_lacks_are_refused() {
    for (scheme, wrong) in [
        (Scheme::Mbr, "freebsd-ufs"),
        (Scheme::Mbr, "!238"),
        (Scheme::Bsd, "efi"),
        (Scheme::Gpt, "!165"),
    ] {
        let mut table = new(scheme);
        let error = table.add(&part(wrong)).unwrap_err();
        assert!(matches!(error, Error::UnknownType { .. }), "{error}");
        let label = Some("x".repeat(37));
        let error = table
            .add(&NewPart {
                label,
                ..part(kind(scheme))
            })
            .unwrap_err();
        assert!(matches!(error, Error::Label { .. }), "{error}");
        assert_eq!(table, new(scheme));
    }
}

#[test]
fn boot_code_and_foreign_bytes_are_kept() {
    for scheme in ALL {
        for size in [512, 4096] {
            let media = Media {
                sector_size_bytes: size,
                sectors: 4096,
            };
            let sector0 = vec![0xc3; size as usize];
            let create = Create {
                sector0,
                ..Default::default()
            };
            let mut table = Table::create(scheme, media, &create).unwrap();
            table.add(&part(kind(scheme))).unwrap();
            let mut disk = vec![0xc3; media.sectors as usize * size as usize];
            let back = written(&table, &mut disk).unwrap();
            assert_eq!(back.parts(), table.parts());
            assert_eq!(disk[..440], [0xc3; 440], "{scheme} {size}");
            if size == 4096 {
                assert_eq!(disk[512..4096], [0xc3; 3584], "{scheme}");
            }
        }
    }
}

#[test]
fn an_empty_mbr_over_a_fat_boot_sector_is_not_taken_for_one() {
    let mut sector0 = vec![0xc3; 512];
    sector0[11..14].copy_from_slice(&[0, 2, 8]);
    let create = Create {
        sector0,
        ..Default::default()
    };
    let table = Table::create(Scheme::Mbr, MEDIA, &create).unwrap();
    let mut disk = Vec::new();
    assert_eq!(written(&table, &mut disk).unwrap().parts(), []);
    assert_eq!(disk[..440], [0; 440]);
}

/// A disk of [`MEDIA`] with that label in its second sector.
fn disk_of(label: &crate::bsd::Label) -> Vec<u8> {
    let mut disk = vec![0; 20_480 * 512];
    let place = crate::bsd::Location::SectorOne;
    crate::bsd::put(&mut disk[512..1024], place, label).unwrap();
    disk
}

#[test]
fn a_label_with_absolute_offsets_stays_absolute() {
    let mut table = new(Scheme::Bsd);
    table.add(&sized("freebsd-ufs", 100)).unwrap();
    if let Table::Bsd(bsd) = &mut table {
        let mut label = bsd.label().clone();
        for partition in label.partitions.iter_mut().filter(|part| part.sectors > 0) {
            partition.start += 63;
        }
        let mut disk = disk_of(&label);
        let mut table = load(Scheme::Bsd, MEDIA, &disk).unwrap();
        assert_eq!(places(&table), [(1, 0, 100)]);
        table.add(&sized("freebsd-swap", 50)).unwrap();
        let back = written(&table, &mut disk).unwrap();
        assert_eq!(places(&back), [(1, 0, 100), (2, 100, 50)]);
        let Table::Bsd(bsd) = back else { unreachable!() };
        assert_eq!(bsd.label().partitions[1].start, 163);
    }
}

#[test]
fn deleting_the_only_sign_of_relative_offsets_is_refused() {
    let mut label = match new(Scheme::Bsd) {
        Table::Bsd(bsd) => bsd.label().clone(),
        _ => unreachable!(),
    };
    label.partitions[2].start = 63;
    for (index, start) in [(0, 16), (1, 100)] {
        label.partitions[index].start = start;
        label.partitions[index].sectors = 10;
    }
    let disk = disk_of(&label);
    let mut table = load(Scheme::Bsd, MEDIA, &disk).unwrap();
    assert_eq!(table.delete(1), Err(Error::MovesOthers(1)));
    assert_eq!(places(&table), [(1, 16, 10), (2, 100, 10)]);
    assert_eq!(table.delete(2), Ok(()));
}

#[test]
fn a_damaged_gpt_is_not_edited_but_recovered() {
    let mut table = new(Scheme::Gpt);
    table.add(&part("freebsd-ufs")).unwrap();
    let mut disk = Vec::new();
    written(&table, &mut disk).unwrap();
    for at in [512, 1024, 20_479 * 512, 20_447 * 512] {
        let mut broken = disk.clone();
        broken[at] ^= 0xff;
        let mut found = load(Scheme::Gpt, MEDIA, &broken).unwrap();
        assert!(matches!(found.delete(1), Err(Error::Corrupt { .. })));
        assert!(matches!(
            found.add(&part("efi")),
            Err(Error::Corrupt { .. })
        ));
        has(&found.show("md0", Column::Type), "GPT  (10M) [CORRUPT]");
        assert_eq!(found.recover().unwrap().len(), 1);
        let back = written(&found, &mut broken).unwrap();
        assert_eq!((back.damage(), broken == disk), (vec![], true));
    }
    let error = new(Scheme::Mbr).recover().unwrap_err();
    assert_eq!(error, Error::NothingToRecover(Scheme::Mbr));
}

#[test]
fn a_gpt_on_a_grown_media_moves_to_its_end() {
    let mut table = new(Scheme::Gpt);
    table.add(&part("freebsd-ufs")).unwrap();
    let mut disk = Vec::new();
    written(&table, &mut disk).unwrap();
    let grown = Media {
        sectors: 40_960,
        ..MEDIA
    };
    disk.resize(40_960 * 512, 0);
    let mut found = load(Scheme::Gpt, grown, &disk).unwrap();
    assert_eq!(
        found.recover().unwrap(),
        ["the backup header is in sector 20479, the media ends with sector 40959"]
    );
    let back = written(&found, &mut disk).unwrap();
    assert_eq!((back.damage(), back.usable()), (vec![], (34, 40_926)));
    let mbr = crate::mbr::Mbr::decode(&disk).unwrap();
    assert_eq!(mbr.entries[0].sectors, 40_959);
    assert_eq!(back.parts(), table.parts());
}

#[test]
fn a_gpt_that_claims_every_sector_there_can_be_is_shown_but_not_edited() {
    let mut disk = Vec::new();
    written(&new(Scheme::Gpt), &mut disk).unwrap();
    let mut header = crate::gpt::Header::decode(&disk[512..1024], 1).unwrap();
    header.last_usable = u64::MAX;
    header.alternate_lba = 1 << 40;
    disk[512..1024].copy_from_slice(&header.encode(512));
    let mut table = load(Scheme::Gpt, MEDIA, &disk).unwrap();
    let text = table.show("md0", Column::Type);
    assert!(text.starts_with("=>                  34  18446744073709551581  md0  GPT"));
    assert!(matches!(
        table.add(&part("efi")),
        Err(Error::Corrupt { .. })
    ));
    // Recovering brings the range back inside the media.
    table.recover().unwrap();
    assert_eq!(table.usable(), (34, 20_446));
}

#[test]
fn a_gpt_whose_partition_is_in_the_way_is_not_recovered() {
    let mut table = new(Scheme::Gpt);
    table.add(&part("freebsd-ufs")).unwrap();
    let mut disk = Vec::new();
    written(&table, &mut disk).unwrap();
    let cut = Media {
        sectors: 10_000,
        ..MEDIA
    };
    let mut found = load(Scheme::Gpt, cut, &disk[..10_000 * 512]).unwrap();
    assert!(matches!(found.recover(), Err(Error::Layout(_))));
    let rows = found.rows();
    assert!(matches!(&rows[0], Row::Part { marks, .. } if marks == &["past the end"]));
}

#[test]
fn all_tables_of_a_disk_are_found_without_the_protective_ones() {
    let size = MEDIA.sector_len();
    let all = |disk: &[u8]| {
        let mut read = |lba: u64, count: u64| {
            Ok(disk[lba as usize * size..][..count as usize * size].to_vec())
        };
        Table::load_all(MEDIA, None, &mut read)
            .iter()
            .map(Table::scheme)
            .collect::<Vec<_>>()
    };
    let mut disk = vec![0; 20_480 * 512];
    assert_eq!(all(&disk), []);
    written(&new(Scheme::Bsd), &mut disk).unwrap();
    assert_eq!(all(&disk), [Scheme::Bsd]);
    let mut mbr = new(Scheme::Mbr);
    written(&mbr, &mut disk).unwrap();
    assert_eq!(all(&disk), [Scheme::Bsd]);
    mbr.add(&part("freebsd")).unwrap();
    written(&mbr, &mut disk).unwrap();
    assert_eq!(all(&disk), [Scheme::Mbr, Scheme::Bsd]);
    let mut disk = Vec::new();
    written(&new(Scheme::Gpt), &mut disk).unwrap();
    assert_eq!(all(&disk), [Scheme::Gpt]);
    for SectorWrite { lba, data } in new(Scheme::Gpt).destroy() {
        disk[lba as usize * size..][..size].copy_from_slice(&data);
    }
    assert_eq!(all(&disk), []);
}

#[test]
fn a_listing_looks_like_gparts() {
    let mut table = new(Scheme::Gpt);
    let boot = NewPart {
        label: Some("boot".to_owned()),
        ..sized("freebsd-boot", 1024)
    };
    table.add(&boot).unwrap();
    let root = NewPart {
        start: Some(2048),
        ..sized("freebsd-ufs", 4096)
    };
    table.add(&root).unwrap();
    let expected = "\
=>   34  20413  md0  GPT  (10M)
     34   1024    1  freebsd-boot  (512K)
   1058    990       - free -  (495K)
   2048   4096    2  freebsd-ufs  (2.0M)
   6144  14303       - free -  (7.0M)

";
    assert_eq!(table.show("md0", Column::Type), expected);
    let labels = table.show("md0", Column::Label);
    assert!(labels.contains("  1  boot  (512K)\n") && labels.contains("  2  (null)  (2.0M)\n"));
    let providers = table.show("md0", Column::Provider);
    ugeom_testkit::has(&providers, "  md0p1  freebsd-boot  (512K)\n");
    let raw = table.show("md0", Column::RawType);
    assert!(raw.contains("  2  516e7cb6-6ecf-11d6-8ff8-00022d09712b  (2.0M)\n"));
}

#[test]
fn a_table_that_does_not_fit_is_not_made() {
    let media = |sectors, sector_size_bytes| Media {
        sector_size_bytes,
        sectors,
    };
    let make = |scheme, media, entries| {
        Table::create(
            scheme,
            media,
            &Create {
                entries,
                ..Default::default()
            },
        )
    };
    for scheme in ALL {
        assert!(make(scheme, media(1, 512), None).is_err(), "{scheme}");
        assert!(make(scheme, media(2048, 512), Some(0)).is_err(), "{scheme}");
        assert!(
            make(scheme, media(2048, 512), Some(5000)).is_err(),
            "{scheme}"
        );
    }
    assert!(make(Scheme::Bsd, media(2048, 512), Some(20)).is_ok());
    assert!(make(Scheme::Bsd, media(2048, 16_384), None).is_err());
    assert_eq!("gpt".parse(), Ok(Scheme::Gpt));
    assert_eq!("vtoc8".parse(), Ok(Scheme::Vtoc8));
    let unknown = "sgi".parse::<Scheme>().unwrap_err().to_string();
    let listed = "there are APM, BSD, BSD64, EBR, GPT, MBR, PC98, VTOC8";
    assert!(unknown.ends_with(listed), "{unknown}");
}

#[test]
fn sizes_are_printed_as_gpart_prints_them() {
    for (bytes, text) in [
        (0, "0B"),
        (512, "512B"),
        (999, "999B"),
        (1000, "1.0K"),
        (1536, "1.5K"),
        (2008 * 512, "1.0M"),
        (512 << 10, "512K"),
        (10 << 30, "10G"),
        (9_999_220_736, "9.3G"),
        (1_000_204_886_016, "932G"),
        (1 << 60, "1.0E"),
        (u64::MAX, "16E"),
    ] {
        assert_eq!(human_size(bytes), text, "{bytes}");
    }
}
