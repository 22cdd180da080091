//! Peculiarities of schemes.

use super::*;

#[test]
fn every_scheme_survives_writing_and_reading() {
    let whole_cylinders = EVERY.map(|scheme| (scheme, 1008));
    for (scheme, sectors) in whole_cylinders
        .into_iter()
        .chain(ALL.map(|scheme| (scheme, 100)))
    {
        let mut table = new(scheme);
        let mut indexes = Vec::new();
        for times in 1..=3 {
            let part = sized(kind(scheme), times * sectors);
            indexes.push(table.add(&part).unwrap());
        }
        table.delete(indexes[1]).unwrap();
        let back = written(&table, &mut Vec::new()).unwrap();
        assert_eq!(back.parts(), table.parts(), "{scheme} {sectors}");
        assert_eq!(back.parts().len(), 2);
        assert_eq!((back.usable(), back.damage()), (table.usable(), vec![]));
        assert_eq!(back.scheme(), scheme);
    }
}

#[test]
fn partitions_of_sun_and_nec_are_whole_cylinders() {
    for (scheme, cylinder, first) in [(Scheme::Vtoc8, 1008, 0), (Scheme::Pc98, 136, 136)] {
        let mut table = new(scheme);
        let index = table.add(&sized(kind(scheme), 2 * cylinder + 5)).unwrap();
        assert_eq!(places(&table), [(index, first, 2 * cylinder)], "{scheme}");
        let next = NewPart {
            start: Some(5 * cylinder - 1),
            ..sized(kind(scheme), cylinder)
        };
        table.add(&next).unwrap();
        assert_eq!(places(&table)[1], (2, 5 * cylinder, cylinder), "{scheme}");
        assert_eq!(table.resize(1, Some(cylinder + 7), None), Ok(cylinder));
        let small = Err(Error::Cylinder { sectors: cylinder });
        assert_eq!(table.resize(1, Some(7), None), small);
        assert!(table.add(&sized(kind(scheme), cylinder - 1)).is_err());
    }
}

#[test]
fn c_of_a_sun_label_is_the_disk_and_not_edited() {
    let mut table = new(Scheme::Vtoc8);
    for expected in [1, 2, 4] {
        assert_eq!(table.add(&sized("freebsd-ufs", 1008)), Ok(expected));
    }
    let three = NewPart {
        index: Some(3),
        ..sized("freebsd-ufs", 1008)
    };
    assert_eq!(table.add(&three), Err(Error::IndexInUse(3)));
    assert_eq!(table.delete(3), Err(Error::NoSuchPartition(3)));
    let Table::Vtoc8(label) = &table else { unreachable!() };
    assert_eq!(label.label().partitions[2].sectors, 18 * 1008);
}

/// gpart lists the sectors of such a partition as free, and gives them away.
#[test]
fn c_of_a_sun_label_is_kept_where_it_is_a_partition() {
    let mut disk = Vec::new();
    let mut table = new(Scheme::Vtoc8);
    table.add(&sized("freebsd-ufs", 1008)).unwrap();
    written(&table, &mut disk).unwrap();
    // Solaris' `format` with slice 2 as `var`: cylinders 1 to 10.
    disk[142 + 8..][..2].copy_from_slice(&7_u16.to_be_bytes());
    disk[444 + 16..][..4].copy_from_slice(&1_u32.to_be_bytes());
    disk[444 + 20..][..4].copy_from_slice(&10_080_u32.to_be_bytes());
    let words = disk[..510].chunks_exact(2);
    let sum = words.fold(0, |sum, word| sum ^ u16::from_be_bytes([word[0], word[1]]));
    disk[510..512].copy_from_slice(&sum.to_be_bytes());
    let read =
        &mut |lba: u64, count: u64| Ok(disk[lba as usize * 512..][..count as usize * 512].to_vec());
    let mut table = Table::load_on(Scheme::Vtoc8, MEDIA, None, read).unwrap();
    assert_eq!(places(&table), [(1, 0, 1008), (3, 1008, 10_080)]);
    assert_eq!(table.add(&sized("freebsd-ufs", 1008)), Ok(2));
    assert_eq!(places(&table)[1], (2, 11 * 1008, 1008));
    table.delete(3).unwrap();
    assert_eq!(places(&table).len(), 2);
}

#[test]
fn flags_of_a_pc98_partition_are_set_one_by_one() {
    let mut table = new(Scheme::Pc98);
    table.add(&sized("freebsd", 136)).unwrap();
    for (name, on, expected) in [
        ("active", true, vec!["active"]),
        ("bootable", true, vec!["bootable", "active"]),
        ("active", false, vec!["bootable"]),
    ] {
        let name = name.to_owned();
        table.change(1, &Change::Attribute { name, on }).unwrap();
        let back = written(&table, &mut Vec::new()).unwrap();
        assert_eq!(back.parts()[0].attributes, expected);
        assert_eq!(back.parts()[0].kind, "freebsd", "the type stays");
    }
}

#[test]
fn the_geometry_of_the_disk_counts() {
    let geometry = Some(Geometry {
        heads: 4,
        track_sectors: 32,
    });
    let create = Create {
        geometry,
        ..Create::default()
    };
    for scheme in [Scheme::Pc98, Scheme::Vtoc8] {
        let mut table = Table::create(scheme, MEDIA, &create).unwrap();
        table.add(&sized(kind(scheme), 1280)).unwrap();
        let mut disk = Vec::new();
        written(&table, &mut disk).unwrap();
        let read = &mut |lba: u64, count: u64| {
            Ok(disk[lba as usize * 512..][..count as usize * 512].to_vec())
        };
        let back = Table::load_on(scheme, MEDIA, geometry, read).unwrap();
        assert_eq!(places(&back)[0].2, 1280, "{scheme}");
    }
}

#[test]
fn logical_partitions_are_numbered_in_order() {
    let mut table = new(Scheme::Ebr);
    let at = |start| NewPart {
        start: Some(start),
        ..sized("linux-data", 100)
    };
    assert_eq!(table.add(&at(5000)), Ok(5));
    assert_eq!(table.add(&at(9000)), Ok(6));
    assert_eq!(table.add(&at(7000)), Ok(6));
    assert_eq!(
        places(&table),
        [(5, 5000, 100), (6, 7000, 100), (7, 9000, 100)]
    );
    // The first one has its record in sector 0, all before it is its own.
    assert!(matches!(
        table.add(&at(100)),
        Err(Error::Overlap { other: 5, .. })
    ));
    table.delete(5).unwrap();
    let index = NewPart {
        index: Some(7),
        ..at(100)
    };
    let error = table.add(&index).unwrap_err();
    assert_eq!(error, Error::IndexOfPlace { found: 7, index: 5 });
    assert_eq!(table.add(&at(100)), Ok(5));
    let back = written(&table, &mut Vec::new()).unwrap();
    assert_eq!(
        places(&back),
        [(5, 100, 100), (6, 7000, 100), (7, 9000, 100)]
    );
    // The record of the next one has no place behind the first.
    assert!(matches!(
        table.add(&at(200)),
        Err(Error::Overlap { other: 5, .. })
    ));
    assert_eq!(table.add(&at(201)), Ok(6));
}

#[test]
fn records_of_others_keep_their_boot_code_and_their_links() {
    let mut table = new(Scheme::Ebr);
    for _ in 0..2 {
        table.add(&sized("linux-data", 1000)).unwrap();
    }
    let mut disk = Vec::new();
    written(&table, &mut disk).unwrap();
    disk[..10].fill(0x90);
    table = load(Scheme::Ebr, MEDIA, &disk).unwrap();
    table.delete(5).unwrap();
    let back = written(&table, &mut disk).unwrap();
    assert_eq!(back.parts().len(), 1);
    assert_eq!(disk[..10], [0x90; 10]);
}

#[test]
fn an_apple_map_gives_its_free_space_away() {
    let mut table = new(Scheme::Apm);
    assert_eq!(table.usable(), (18, 20_479));
    let index = table
        .add(&NewPart {
            label: Some("root".to_owned()),
            ..sized("apple-hfs", 1000)
        })
        .unwrap();
    let mut disk = Vec::new();
    written(&table, &mut disk).unwrap();
    // parted describes the rest as free.
    let mut free = crate::apm::Entry::decode(&disk[1024..1536], 2).unwrap();
    (free.start, free.blocks) = (1018, 19_462);
    free.kind = [0; 32];
    free.kind[..10].copy_from_slice(b"Apple_Free");
    disk[1536..2048].copy_from_slice(&free.encode());
    let mut table = load(Scheme::Apm, MEDIA, &disk).unwrap();
    assert_eq!(places(&table), [(index, 18, 1000)]);
    assert_eq!(table.parts()[0].label.as_deref(), Some("root"));
    assert_eq!(table.add(&sized("freebsd-ufs", 500)), Ok(2));
    let order: Vec<u64> = table.encode().iter().map(|write| write.lba).collect();
    assert_eq!(order, [3], "the entry takes the place of the free one");
    let back = written(&table, &mut disk).unwrap();
    assert_eq!(places(&back), [(1, 18, 1000), (2, 1018, 500)]);
    let kinds: Vec<String> = back.parts().into_iter().map(|part| part.kind).collect();
    assert_eq!(kinds, ["apple-hfs", "freebsd-ufs"]);
    for reserved in [
        "!Apple_Free",
        "!Apple_partition_map",
        "Apple_Void",
        "nonsense",
        "!",
    ] {
        let refused = table.add(&sized(reserved, 10));
        assert!(
            matches!(refused, Err(Error::UnknownType { .. })),
            "{reserved}"
        );
    }
}

#[test]
fn a_torn_disklabel64_is_recovered_from_its_copy() {
    let mut table = new(Scheme::Bsd64);
    table.add(&sized("freebsd-ufs", 1000)).unwrap();
    let mut disk = Vec::new();
    written(&table, &mut disk).unwrap();
    let sound = disk.clone();
    disk[1024] ^= 1;
    let mut found = load(Scheme::Bsd64, MEDIA, &disk).unwrap();
    assert_eq!(found.damage().len(), 1);
    assert!(matches!(found.delete(1), Err(Error::Corrupt { .. })));
    assert_eq!(found.recover().unwrap().len(), 1);
    written(&found, &mut disk).unwrap();
    assert!(disk == sound);
    // Without the magic number the copy does not count: it may be an old one.
    disk[512..516].fill(0);
    assert!(load(Scheme::Bsd64, MEDIA, &disk).is_err());
}

#[test]
fn a_database_of_windows_is_only_read() {
    let create = Table::create(Scheme::Ldm, MEDIA, &Create::default());
    assert!(matches!(create, Err(Error::ReadOnly { .. })));
}
