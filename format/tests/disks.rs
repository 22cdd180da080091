//! Real disks of 2001 and 2002: the decoded sectors encode to the same bytes.

use ugeom_format::{apm, bsd, ebr, mbr};
use ugeom_testkit::RecordedDisk;

#[test]
fn recorded_labels_and_tables_encode_to_the_same_bytes() {
    for (name, lba, at) in [
        ("alpha.da0", 0, 64),
        ("kern.flp", 1, 0),
        ("flat.da1", 1, 0),
        ("flat.da1", 64, 0),
        ("critter.ad0", 64, 0),
        ("typo.ad0", 16_768_081, 0),
    ] {
        let Some(disk) = RecordedDisk::open(name) else { return };
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
        "critter.ad0",
        "flat.da1",
        "kern.flp",
        "typo.ad0",
        "msdos.ext",
    ] {
        let sector = RecordedDisk::open(name).unwrap().sector(0);
        assert_eq!(
            mbr::Mbr::decode(&sector).unwrap().encode()[..],
            sector,
            "{name}"
        );
    }
}

#[test]
fn a_recorded_chain_encodes_to_the_same_entries() {
    let Some(disk) = RecordedDisk::open("msdos.ext") else { return };
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
    let Some(disk) = RecordedDisk::open("apple") else { return };
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
    let Some(floppy) = RecordedDisk::open("kern.flp") else { return };
    let kind = |disk: &RecordedDisk, lba| mbr::Mbr::decode(&disk.sector(lba)).unwrap().kind();
    assert_eq!(kind(&floppy, 0), mbr::MbrKind::Dedicated);
    let flat = RecordedDisk::open("flat.da1").unwrap();
    assert_eq!(kind(&flat, 0), mbr::MbrKind::Partitioned);
    assert_eq!(kind(&flat, 63), mbr::MbrKind::Dedicated);
}

#[test]
fn partitions_of_recorded_slices_begin_inside_their_slice() {
    for (name, lba, expected) in [
        ("alpha.da0", 0, "a0 b491520 c0 e2613184 f2654144"),
        (
            "critter.ad0",
            63,
            "a0 b2097152 c0 d30384128 e4194304 f5218304 g13606912 h19898368",
        ),
        ("flat.da1", 0, "a0 b73728 c0 h598016"),
        ("flat.da1", 63, "b819200 c0 e0 f1638400 g3735552"),
        ("typo.ad0", 6_289_920, "c0"),
        ("typo.ad0", 16_768_080, "a0 c0 d4096000"),
    ] {
        let Some(disk) = RecordedDisk::open(name) else { return };
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
