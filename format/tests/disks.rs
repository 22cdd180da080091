//! Real disks of 2001 and 2002 with the listing that GEOM's author recorded
//! for each: every line of it has to come out of the bytes.

mod common;

use common::XmlDisk;
use std::collections::BTreeSet;
use ugeom_format::{Media, apm, bsd, ebr, mbr};
use ugeom_testkit::shared;

/// Name suffix and size in bytes of every provider that GEOM would make.
fn providers(disk: &XmlDisk) -> BTreeSet<(String, u64)> {
    let mut found = BTreeSet::from([(String::new(), disk.media_size_bytes)]);
    let unit = u64::from(disk.sector_size_bytes);
    add_label(disk, "", 0, &mut found);
    if let Ok(mbr) = mbr::Mbr::decode(&disk.sector(0)) {
        for (number, entry) in mbr.slices() {
            let name = format!("s{number}");
            found.insert((name.clone(), u64::from(entry.sectors) * unit));
            if entry.kind == mbr::PartType::FREEBSD {
                add_label(disk, &name, u64::from(entry.start), &mut found);
            }
            if entry.kind.is_extended() {
                add_logicals(disk, entry, &mut found);
            }
        }
    }
    let media = Media::new(disk.media_size_bytes, disk.sector_size_bytes).unwrap();
    let mut read = |lba, count| {
        assert_eq!(count, 1);
        Ok(disk.sector(lba))
    };
    if let Ok(map) = apm::Map::read(media, &mut read) {
        for (number, entry) in map.slices() {
            found.insert((format!("s{number}"), u64::from(entry.blocks) * unit));
        }
    }
    found
}

fn add_label(disk: &XmlDisk, parent: &str, start: u64, found: &mut BTreeSet<(String, u64)>) {
    let head = [disk.sector(start), disk.sector(start + 1)].concat();
    if let Ok((_, label)) = bsd::find(&head, disk.sector_size_bytes) {
        for slice in label.slices() {
            found.insert((format!("{parent}{}", slice.letter()), slice.size_bytes));
        }
    }
}

fn add_logicals(disk: &XmlDisk, extended: &mbr::Entry, found: &mut BTreeSet<(String, u64)>) {
    let mut walk = ebr::EbrWalk::new(u64::from(extended.start), u64::from(extended.sectors));
    let mut number = 5;
    while let Some(lba) = walk.next_lba() {
        let step = walk.feed(&disk.sector(lba));
        assert_eq!(step.error, None);
        if let Some(logical) = step.logical {
            let size = logical.sectors * u64::from(disk.sector_size_bytes);
            found.insert((format!("s{number}"), size));
            number += 1;
        }
    }
}

/// The recorded listing: device, sector size, media size, sectors and, where
/// the firmware knew, cylinders, heads and sectors.
fn recorded(reference: &str, disk: &XmlDisk) -> BTreeSet<(String, u64)> {
    reference
        .lines()
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let number = |column: usize| columns[column].parse::<u64>().unwrap();
            assert_eq!(number(1), u64::from(disk.sector_size_bytes));
            assert_eq!(number(2), number(1) * number(3), "{line}");
            if columns.len() > 4 {
                assert_eq!(disk.firmware, Some((number(4), number(5), number(6))));
            }
            (
                columns[0].trim_start_matches("/dev/md34").to_owned(),
                number(2),
            )
        })
        .collect()
}

#[test]
fn every_recorded_listing_comes_out_of_the_bytes() {
    let Some(folder) = shared("every_recorded_listing", "fixtures/phk-disks") else {
        return;
    };
    let mut disks = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "xml") {
            continue;
        }
        let disk = XmlDisk::parse(&std::fs::read_to_string(&path).unwrap());
        let reference = std::fs::read_to_string(path.with_extension("ref")).unwrap();
        assert_eq!(
            providers(&disk),
            recorded(&reference, &disk),
            "{}",
            path.display()
        );
        disks += 1;
    }
    assert_eq!(disks, 8);
}

fn disk(test: &str, name: &str) -> Option<XmlDisk> {
    let folder = shared(test, "fixtures/phk-disks")?;
    Some(XmlDisk::parse(
        &std::fs::read_to_string(folder.join(name)).unwrap(),
    ))
}

#[test]
fn recorded_labels_and_tables_encode_to_the_same_bytes() {
    let test = "recorded_labels_and_tables_encode_to_the_same_bytes";
    for (name, lba, at) in [
        ("alpha.da0.xml", 0, 64),
        ("kern.flp.xml", 1, 0),
        ("flat.da1.xml", 1, 0),
        ("flat.da1.xml", 64, 0),
        ("critter.ad0.xml", 64, 0),
        ("typo.ad0.xml", 16_768_081, 0),
    ] {
        let Some(disk) = disk(test, name) else {
            return;
        };
        let sector = disk.sector(lba);
        let label = bsd::Label::decode(&sector[at..], at as u64, 512).unwrap();
        let bytes = label.encode().unwrap();
        assert_eq!(bytes, sector[at..at + bytes.len()], "{name}");
        if at == 64 {
            let sum = u64::from_le_bytes(sector[504..].try_into().unwrap());
            assert_eq!(bsd::alpha_checksum(&sector), sum, "{name}");
        }
    }
    for name in [
        "critter.ad0.xml",
        "flat.da1.xml",
        "kern.flp.xml",
        "typo.ad0.xml",
        "msdos.ext.xml",
    ] {
        let sector = disk(test, name).unwrap().sector(0);
        assert_eq!(
            mbr::Mbr::decode(&sector).unwrap().encode()[..],
            sector,
            "{name}"
        );
    }
}

#[test]
fn a_recorded_chain_encodes_to_the_same_entries() {
    let test = "a_recorded_chain_encodes_to_the_same_entries";
    let Some(disk) = disk(test, "msdos.ext.xml") else {
        return;
    };
    let mut walk = ebr::EbrWalk::new(4_192_965, 835_380);
    let mut logicals = Vec::new();
    while let Some(lba) = walk.next_lba() {
        let found = walk.feed(&disk.sector(lba)).logical.unwrap();
        logicals.push(ebr::NewLogical {
            ebr_lba: found.ebr_lba,
            start: found.start,
            sectors: found.sectors,
            kind: found.entry.kind,
        });
    }
    assert_eq!(logicals.len(), 23);
    let geometry = mbr::Geometry {
        heads: 255,
        sectors: 63,
    };
    for (lba, bytes) in ebr::encode_chain(4_192_965, &logicals, geometry).unwrap() {
        let recorded = disk.sector(lba);
        assert_eq!(bytes[446..], recorded[446..], "sector {lba}");
    }
}

#[test]
fn a_recorded_map_encodes_to_the_same_bytes() {
    let Some(disk) = disk("a_recorded_map_encodes_to_the_same_bytes", "apple.xml") else {
        return;
    };
    let names = ["apple-hfs", "Apple_partition_map", "Apple_Driver43"];
    for (number, name) in (1..).zip(names) {
        let sector = disk.sector(number);
        let entry = apm::Entry::decode(&sector, number).unwrap();
        assert_eq!(entry.encode()[..], sector);
        assert_eq!(
            entry
                .alias()
                .map_or_else(|| entry.kind_name(), str::to_owned),
            name
        );
    }
    let descriptor = apm::Descriptor::decode(&disk.sector(0)).unwrap();
    assert_eq!((descriptor.blocks, descriptor.drivers), (715_880, 1));
}

#[test]
fn the_made_up_table_of_a_floppy_is_known_for_what_it_is() {
    let test = "the_made_up_table_of_a_floppy_is_known_for_what_it_is";
    let Some(floppy) = disk(test, "kern.flp.xml") else {
        return;
    };
    let kind = |disk: &XmlDisk, lba| mbr::Mbr::decode(&disk.sector(lba)).unwrap().kind();
    assert_eq!(kind(&floppy, 0), mbr::MbrKind::Dedicated);
    let flat = disk(test, "flat.da1.xml").unwrap();
    assert_eq!(kind(&flat, 0), mbr::MbrKind::Partitioned);
    assert_eq!(kind(&flat, 63), mbr::MbrKind::Dedicated);
}

#[test]
fn partitions_of_recorded_slices_begin_inside_their_slice() {
    let test = "partitions_of_recorded_slices_begin_inside_their_slice";
    for (name, lba, expected) in [
        ("alpha.da0.xml", 0, "a0 b491520 c0 e2613184 f2654144"),
        (
            "critter.ad0.xml",
            63,
            "a0 b2097152 c0 d30384128 e4194304 f5218304 g13606912 h19898368",
        ),
        ("flat.da1.xml", 0, "a0 b73728 c0 h598016"),
        ("flat.da1.xml", 63, "b819200 c0 e0 f1638400 g3735552"),
        ("typo.ad0.xml", 6_289_920, "c0"),
        ("typo.ad0.xml", 16_768_080, "a0 c0 d4096000"),
    ] {
        let Some(disk) = disk(test, name) else {
            return;
        };
        let head = [disk.sector(lba), disk.sector(lba + 1)].concat();
        let (_, label) = bsd::find(&head, 512).unwrap();
        assert_eq!(label.verify(0), Ok(()));
        let found: Vec<_> = label
            .slices()
            .map(|slice| format!("{}{}", slice.letter(), slice.start_bytes / 512))
            .collect();
        assert_eq!(found.join(" "), expected, "{name}");
    }
}
