//! Changes of partitions and tables that there are.

use super::*;

#[test]
fn type_label_attributes_and_length_change_and_nothing_else() {
    for scheme in ALL {
        let mut table = new(scheme);
        let align = Some(64);
        let first = NewPart {
            align_sectors: align,
            ..sized(kind(scheme), 1024)
        };
        let (a, b) = (table.add(&first).unwrap(), table.add(&first).unwrap());
        let before = table.parts();
        let other = match scheme {
            Scheme::Mbr => "freebsd",
            _ => "freebsd-swap",
        };
        table.change(a, &Change::Kind(other.to_owned())).unwrap();
        assert_eq!(table.resize(a, Some(1000), align), Ok(960), "{scheme}");
        let mut disk = Vec::new();
        let read = written(&table, &mut disk).unwrap();
        let mut expected = before;
        (expected[0].kind, expected[0].sectors) = (other.to_owned(), 960);
        expected[0].raw_kind = read.parts()[0].raw_kind.clone();
        assert_eq!(read.parts(), expected, "{scheme}");
        let error = table.resize(a, Some(1025), None).unwrap_err();
        assert!(
            matches!(error, Error::Overlap { other, .. } if other == b),
            "{scheme}: {error}"
        );
        assert_eq!(
            table.resize(a, None, None),
            Ok(1024),
            "{scheme}: up to the next one"
        );
        let wrong = Change::Kind("no-such-type".to_owned());
        assert!(matches!(
            table.change(a, &wrong),
            Err(Error::UnknownType { .. })
        ));
        assert_eq!(table.change(99, &wrong), Err(Error::NoSuchPartition(99)));
    }
}

#[test]
fn attributes_are_those_of_the_scheme() {
    let set = |table: &mut Table, index, name: &str, on| {
        let name = name.to_owned();
        table.change(index, &Change::Attribute { name, on })
    };
    let attributes = |table: &Table| -> Vec<Vec<&'static str>> {
        table
            .parts()
            .into_iter()
            .map(|part| part.attributes)
            .collect()
    };
    let mut mbr = new(Scheme::Mbr);
    for _ in 0..2 {
        mbr.add(&sized("linux-data", 100)).unwrap();
    }
    set(&mut mbr, 1, "active", true).unwrap();
    set(&mut mbr, 2, "Active", true).unwrap();
    assert_eq!(attributes(&mbr), [vec![], vec!["active"]], "one at most");
    set(&mut mbr, 2, "active", false).unwrap();
    assert_eq!(attributes(&mbr), [[""; 0]; 2]);
    let error = set(&mut mbr, 1, "bootme", true).unwrap_err().to_string();
    assert_eq!(error, "MBR has no attribute \"bootme\", it has active");
    let error = mbr.set_on_table("Active", true).unwrap_err().to_string();
    ugeom_testkit::has(&error, "attribute of a partition of MBR");
    let mut gpt = new(Scheme::Gpt);
    gpt.add(&sized("efi", 100)).unwrap();
    set(&mut gpt, 1, "bootonce", true).unwrap();
    assert_eq!(attributes(&gpt), [["bootme", "bootonce"]]);
    set(&mut gpt, 1, "bootonce", false).unwrap();
    assert_eq!(attributes(&gpt), [["bootme"]]);
    gpt.set_on_table("active", true).unwrap();
    let mut disk = Vec::new();
    written(&gpt, &mut disk).unwrap();
    assert_eq!((disk[446], disk[450]), (0x80, 0xee));
    for (on, expected) in [(true, [0, 0xee]), (false, [0xee, 0])] {
        gpt.set_on_table("lenovofix", on).unwrap();
        let back = written(&gpt, &mut disk).unwrap();
        assert_eq!([disk[450], disk[466]], expected, "the entry moves");
        assert_eq!(back.damage(), [""; 0]);
        let place = if on { 462 } else { 446 };
        assert_eq!(disk[place], 0x80, "and stays active");
        gpt = back;
        gpt.set_on_table("active", true).unwrap();
    }
    let mut bsd = new(Scheme::Bsd);
    bsd.add(&sized("freebsd-ufs", 100)).unwrap();
    let error = set(&mut bsd, 1, "active", true).unwrap_err().to_string();
    assert_eq!(error, "BSD has no attribute \"active\"");
}

#[test]
fn a_table_that_is_destroyed_is_gone_and_can_be_destroyed_again_before() {
    for scheme in ALL {
        let mut table = new(scheme);
        table.add(&sized(kind(scheme), 100)).unwrap();
        let mut disk = Vec::new();
        written(&table, &mut disk).unwrap();
        let writes = table.destroy();
        let last = writes.len() - 1;
        for (number, write) in writes.iter().enumerate() {
            let at = write.lba as usize * 512;
            disk[at..at + write.data.len()].copy_from_slice(&write.data);
            let left = load(scheme, MEDIA, &disk);
            let gpt_headers = scheme == Scheme::Gpt && number < last;
            if scheme == Scheme::Gpt {
                assert_eq!(disk[510..512], [0; 2], "a protective MBR without a GPT");
            }
            assert_eq!(
                left.is_ok(),
                gpt_headers,
                "{scheme} after write {number} of {last}"
            );
        }
        let none = Table::load_all(MEDIA, None, &mut |lba, count| {
            Ok(disk[lba as usize * 512..][..count as usize * 512].to_vec())
        });
        assert_eq!(none, [], "{scheme}");
    }
}

#[test]
fn a_preferred_alignment_moves_the_start_and_keeps_the_length() {
    let mut table = new(Scheme::Mbr);
    let preferred = |sectors: Option<u64>| NewPart {
        sectors,
        preferred_align_sectors: Some(2048),
        ..part("linux-data")
    };
    table.add(&preferred(Some(3000))).unwrap();
    table.add(&preferred(Some(100))).unwrap();
    table.add(&preferred(None)).unwrap();
    assert_eq!(
        places(&table),
        [(1, 2048, 3000), (2, 6144, 100), (3, 8192, 12_288)]
    );
    // Without room for it, the first sector that is free.
    let mut small = Table::create(
        Scheme::Mbr,
        Media {
            sectors: 1500,
            ..MEDIA
        },
        &Create::default(),
    )
    .unwrap();
    small.add(&preferred(Some(1000))).unwrap();
    assert_eq!(places(&small), [(1, 63, 1000)]);
}

#[test]
fn an_mbr_with_partitions_of_its_own_is_not_made_active_for_the_gpt() {
    let mut disk = Vec::new();
    written(&new(Scheme::Gpt), &mut disk).unwrap();
    let mut foreign = new(Scheme::Mbr);
    foreign.add(&sized("freebsd", 100)).unwrap();
    disk[..512].copy_from_slice(&foreign.encode().remove(0).data);
    let mut table = load(Scheme::Gpt, MEDIA, &disk).unwrap();
    let before = table.clone();
    let refused = table.set_on_table("active", true);
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    assert_eq!(table, before);
    // A hybrid one, which is sound, is refused for what it is.
    table_with_hybrid(&mut disk);
    let mut table = load(Scheme::Gpt, MEDIA, &disk).unwrap();
    let refused = table.set_on_table("active", true);
    assert_eq!(refused, Err(Error::ForeignMbr("active".to_owned())));
}

/// Gives a GPT a partition and an MBR that repeats it.
fn table_with_hybrid(disk: &mut Vec<u8>) {
    let mut table = new(Scheme::Gpt);
    table.add(&sized("freebsd-ufs", 100)).unwrap();
    written(&table, disk).unwrap();
    let part = table.parts().remove(0);
    let mut mbr = crate::mbr::Mbr::protective(MEDIA.sectors);
    mbr.entries[1] = crate::mbr::Entry::new(
        crate::mbr::PartType(0xa5),
        part.start as u32,
        part.sectors as u32,
        crate::mbr::Geometry::LBA_ASSIST,
    );
    disk[..512].copy_from_slice(&mbr.encode());
}
