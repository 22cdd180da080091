//! Tasting of partition tables: listed, marked and refused entries. Those of a GPT are in
//! `gpt.rs`.

use crate::common::disks::{
    GEOMETRY, MIB, chain_of, disk, disk_of, errors, facts, label_of, mark, mbr_of, names,
    read_sector, view,
};
use ugeom_format::{ebr, mbr};
use ugeom_stack::{AttributeValue, Delta, Errno};
use ugeom_testkit::{begins, has};

#[test]
fn a_read_of_a_slice_is_a_read_of_the_disk_at_its_offset() {
    let label = label_of(512, 8, &[(0, 16, 32), (2, 0, 1000)]);
    let writes = [
        (0, mbr_of(&[(0xa5, 63, 1000)])),
        (64 * 512, label),
        ((63 + 16 + 5) * 512, b"here".to_vec()),
    ];
    let stack = disk(MIB, &writes);
    assert_eq!(names(&stack), ["md0s1", "md0s1a", "md0s1c"]);
    let sector = read_sector(&stack, "md0s1a", 5 * 512).expect("a sector");
    assert_eq!(&sector[..5], b"here\0");
    assert_eq!(
        sector,
        read_sector(&stack, "md0s1", 21 * 512).expect("a sector")
    );
    assert_eq!(
        sector,
        read_sector(&stack, "md0", 84 * 512).expect("a sector")
    );
}

#[test]
fn a_partition_past_the_end_is_listed_and_marked_and_fails_where_the_disk_ends() {
    let stack = disk(MIB, &[(0, mbr_of(&[(0x83, 1024, 4096), (0x83, 9000, 10)]))]);
    let marked = mark(&stack, "md0s1").expect("a mark");
    assert_eq!(marked, "reaches 1572864 bytes past the end of md0");
    assert!(mark(&stack, "md0s2").is_some());
    assert_eq!(view(&stack, "md0s1").mediasize_bytes, 2 * MIB);
    assert_eq!(
        read_sector(&stack, "md0s1", 1023 * 512)
            .expect("the last sector")
            .len(),
        512
    );
    for (name, offset) in [("md0s1", 1024 * 512), ("md0s1", MIB), ("md0s2", 0)] {
        let error = read_sector(&stack, name, offset).expect_err("nothing is there");
        assert_eq!(error.errno, Errno::IO);
        let text = error.to_string();
        has(&text, "of md0:");
        has(&text, "past the end of the media");
    }
}

#[test]
fn a_partition_of_a_cut_slice_is_marked_where_the_disk_ends() {
    let label = label_of(
        512,
        8,
        &[(0, 16, 100), (1, 1900, 200), (2, 0, 4096), (3, 3000, 9)],
    );
    let stack = disk(MIB, &[(0, mbr_of(&[(0xa5, 48, 4096)])), (49 * 512, label)]);
    let past = |sectors| {
        Some(format!(
            "reaches {} bytes past the end of md0",
            sectors * 512
        ))
    };
    assert_eq!(mark(&stack, "md0s1"), past(48 + 4096 - 2048));
    assert_eq!(mark(&stack, "md0s1a"), None);
    assert_eq!(mark(&stack, "md0s1b"), past(48 + 2100 - 2048));
    assert_eq!(mark(&stack, "md0s1c"), past(48 + 4096 - 2048));
    assert_eq!(mark(&stack, "md0s1d"), past(48 + 3009 - 2048));
}

#[test]
fn overlapping_partitions_are_listed_and_marked() {
    let table = mbr_of(&[
        (0x83, 100, 100),
        (0x83, 150, 100),
        (0x83, 300, 10),
        (0x83, 301, 2),
    ]);
    let stack = disk(MIB, &[(0, table)]);
    let marks: Vec<Option<String>> = names(&stack)
        .iter()
        .map(|name| mark(&stack, name))
        .collect();
    let overlap = |name: &str| Some(format!("overlaps {name}"));
    assert_eq!(marks, [None, overlap("md0s1"), None, overlap("md0s3")]);
}

#[test]
fn the_raw_partition_of_a_label_overlaps_nothing() {
    let label = label_of(512, 8, &[(0, 16, 100), (1, 50, 100), (2, 0, 2048)]);
    let stack = disk(MIB, &[(512, label)]);
    assert_eq!(mark(&stack, "md0c"), None);
    assert_eq!(mark(&stack, "md0a"), None);
    assert_eq!(mark(&stack, "md0b").expect("a mark"), "overlaps md0a");
}

#[test]
fn what_overlaps_is_not_written_while_it_is_held_exclusively() {
    let table = mbr_of(&[(0x83, 100, 100), (0x83, 150, 100), (0x83, 300, 10)]);
    let stack = disk(MIB, &[(0, table)]);
    let find = |name: &str| stack.find(name).expect("a slice");
    let exclusive_reader = Delta {
        read: 1,
        write: 0,
        exclusive: 1,
    };
    let refused = |name: &str, delta| match stack.open(find(name), delta) {
        Ok(_) => panic!("{name} was opened"),
        Err(error) => error.errno(),
    };
    let open = |name: &str, delta, why| stack.open(find(name), delta).expect(why);
    {
        let _held = open("md0s1", exclusive_reader, "an exclusive reader");
        assert_eq!(refused("md0s2", Delta::READ_WRITE), Errno::PERM);
        open("md0s2", Delta::READ, "reading does no harm");
        open("md0s3", Delta::READ_WRITE, "s3 does not overlap");
        assert_eq!(refused("md0", Delta::READ_WRITE), Errno::PERM);
    }
    {
        let _writer = open("md0s2", Delta::READ_WRITE, "a writer");
        assert_eq!(refused("md0s1", exclusive_reader), Errno::PERM);
        open(
            "md0s1",
            Delta::READ_WRITE,
            "two writers are their own business",
        );
    }
    open("md0", Delta::READ_WRITE, "everything is closed again");
}

#[test]
fn a_slice_says_what_it_is() {
    let label = label_of(512, 8, &[(1, 16, 32), (2, 0, 1000)]);
    let writes = [
        (0, mbr_of(&[(0x83, 1500, 10), (0xa5, 63, 1000)])),
        (64 * 512, label),
    ];
    let stack = disk(MIB, &writes);
    let ask = |name: &str, attribute: &str| {
        let provider = stack.find(name).expect("a provider");
        let opened = stack.open(provider, Delta::READ).expect("open for reading");
        let mut channel = stack.channel(1).expect("a channel");
        channel.attribute(&opened, attribute).expect("an answer")
    };
    let text = |text: &str| Some(AttributeValue::Text(text.to_owned()));
    let number = |number| Some(AttributeValue::Number(number));
    for (name, attribute, expected) in [
        ("md0s2", "PART::scheme", text("MBR")),
        ("md0s2", "PART::type", text("freebsd")),
        ("md0s2", "PART::offset", number(63 * 512)),
        ("md0s2", "PART::index", number(2)),
        ("md0s2", "PART::depth", number(0)),
        ("md0s2", "MBR::type", number(165)),
        ("md0s2b", "PART::scheme", text("BSD")),
        ("md0s2b", "PART::type", text("freebsd-ufs")),
        ("md0s2b", "PART::offset", number(16 * 512)),
        ("md0s2b", "PART::depth", number(1)),
        ("md0s2b", "MBR::offset", number(63 * 512)),
        ("md0s2b", "GEOM::nothing", None),
        ("md0", "PART::scheme", None),
    ] {
        assert_eq!(ask(name, attribute), expected, "{name} {attribute}");
    }
}

#[test]
fn marks_follow_the_size_of_the_disk() {
    let stack = disk(MIB, &[(0, mbr_of(&[(0x83, 1024, 1024)]))]);
    let disk = stack.find("md0").expect("the disk");
    assert_eq!(mark(&stack, "md0s1"), None);
    stack.resize(disk, MIB - 512).expect("it shrinks");
    assert_eq!(
        mark(&stack, "md0s1").expect("a mark"),
        "reaches 512 bytes past the end of md0"
    );
    assert_eq!(view(&stack, "md0s1").mediasize_bytes, MIB / 2);
    let error = read_sector(&stack, "md0s1", MIB / 2 - 512).expect_err("it is gone");
    assert_eq!(error.errno, Errno::IO);
    stack.resize(disk, 2 * MIB).expect("it grows");
    assert_eq!(mark(&stack, "md0s1"), None);
    assert_eq!(
        read_sector(&stack, "md0s1", MIB / 2 - 512)
            .expect("a sector")
            .len(),
        512
    );
}

#[test]
fn an_entry_that_begins_at_sector_0_is_a_slice() {
    let stack = disk(MIB, &[(0, mbr_of(&[(0x17, 0, 2048), (0xef, 100, 50)]))]);
    assert_eq!(names(&stack), ["md0s1", "md0s2"]);
    assert_eq!(
        read_sector(&stack, "md0s1", 0).expect("a sector"),
        read_sector(&stack, "md0", 0).expect("a sector")
    );
}

#[test]
fn no_mbr_is_nested_in_a_slice_and_no_table_in_a_label() {
    // The slice holds an MBR and a label; the label's partition holds another label.
    let inner = label_of(512, 8, &[(0, 4, 4)]);
    let label = label_of(512, 8, &[(0, 32, 100), (2, 0, 1000)]);
    let table = mbr_of(&[(0xa5, 63, 1000), (0x83, 1200, 100)]);
    let stack = disk(
        MIB,
        &[
            (0, table.clone()),
            (512, label_of(512, 8, &[(3, 1500, 100)])),
            (63 * 512, table),
            (64 * 512, label),
            ((63 + 33) * 512, inner.clone()),
            (1201 * 512, inner),
        ],
    );
    let mut found = names(&stack);
    found.sort();
    assert_eq!(
        found,
        ["md0d", "md0s1", "md0s1a", "md0s1c", "md0s2", "md0s2a"]
    );
    assert_eq!(errors(&stack), [""; 0]);
}

#[test]
fn a_logical_partition_is_named_after_the_disk_and_counted_from_five() {
    let logicals: Vec<ebr::NewLogical> = (0..3)
        .map(|n| ebr::NewLogical {
            ebr_lba: 200 + n * 100,
            start: 263 + n * 100,
            sectors: 30,
            kind: mbr::PartType::FREEBSD,
        })
        .collect();
    let mut writes = vec![(0, mbr_of(&[(0x83, 63, 100), (0x0f, 200, 400)]))];
    writes.extend(chain_of(200, &logicals));
    writes.push((364 * 512, label_of(512, 8, &[(0, 2, 10)])));
    let stack = disk(MIB, &writes);
    assert_eq!(
        names(&stack),
        ["md0s1", "md0s2", "md0s5", "md0s6", "md0s7", "md0s6a"]
    );
    let logical = view(&stack, "md0s6");
    assert_eq!(
        logical.fact("start"),
        Some("163"),
        "counted from the extended partition"
    );
}

#[test]
fn logical_partitions_of_a_second_chain_carry_its_name() {
    let one = |at: u64| {
        let kind = mbr::PartType::LINUX;
        let logical = ebr::NewLogical {
            ebr_lba: at,
            start: at + 10,
            sectors: 20,
            kind,
        };
        chain_of(at, &[logical]).remove(0)
    };
    let table = mbr_of(&[(0x05, 200, 100), (0x83, 400, 10), (0x05, 600, 100)]);
    let stack = disk(MIB, &[(0, table), one(200), one(600)]);
    let mut found = names(&stack);
    found.sort();
    assert_eq!(found, ["md0s1", "md0s2", "md0s3", "md0s3s5", "md0s5"]);
    assert_eq!(errors(&stack), [""; 0]);
}

#[test]
fn a_chain_that_loops_gives_what_comes_before() {
    let entry = |kind, start| mbr::Entry::new(mbr::PartType(kind), start, 20, GEOMETRY);
    let first = ebr::Ebr {
        logical: Some(entry(0x83, 10)),
        next: Some(entry(5, 100)),
    };
    let second = ebr::Ebr {
        logical: Some(entry(0x83, 10)),
        next: Some(entry(5, 0)),
    };
    let writes = [
        (0, mbr_of(&[(0x05, 200, 400)])),
        (200 * 512, first.encode().to_vec()),
        (300 * 512, second.encode().to_vec()),
    ];
    let stack = disk(MIB, &writes);
    assert_eq!(names(&stack), ["md0s1", "md0s5", "md0s6"]);
    assert_eq!(mark(&stack, "md0s5"), None);
    let marked = mark(&stack, "md0s6").expect("a mark");
    has(&marked, "breaks after it");
    has(&marked, "a loop");
    assert_eq!(facts(&stack, "EBR", "state"), ["CORRUPT"]);
}

#[test]
fn an_extended_partition_without_a_record_is_an_error_with_its_place() {
    let stack = disk(MIB, &[(0, mbr_of(&[(0x05, 200, 400)]))]);
    assert_eq!(names(&stack), ["md0s1"]);
    let errors = errors(&stack);
    assert_eq!(errors.len(), 1, "{errors:?}");
    begins(
        &errors[0],
        "EBR on md0s1: no extended boot record at sector 0",
    );
}

#[test]
fn an_endless_chain_ends_at_256_partitions() {
    let entry = |kind, start| mbr::Entry::new(mbr::PartType(kind), start, 1, GEOMETRY);
    let record = |n: u32| ebr::Ebr {
        logical: Some(entry(0x83, 1)),
        next: Some(entry(5, 2 * n + 2)),
    };
    let mut writes = vec![(0, mbr_of(&[(0x05, 10, 4000)]))];
    writes.extend(
        (0..1900).map(|n: u32| ((10 + 2 * u64::from(n)) * 512, record(n).encode().to_vec())),
    );
    let stack = disk(4 * MIB, &writes);
    assert_eq!(names(&stack).len(), 1 + 256);
    let marked = mark(&stack, "md0s260").expect("a mark");
    ugeom_testkit::has(&marked, "256");
}

#[test]
fn a_label_may_stand_at_three_places_and_count_from_the_disk() {
    // Absolute: everything is moved by the start of c. Relative: c does not begin first.
    for (entries, start) in [
        (vec![(0, 63 + 16, 10), (2, 63, 1000)], "16"),
        (vec![(0, 16, 10), (2, 0, 1000)], "16"),
        (vec![(0, 16, 10), (2, 63, 900)], "16"),
    ] {
        for (offset, sector) in [(512, 512), (64, 512), (4096, 4096), (512, 4096), (64, 4096)] {
            let label = label_of(sector, 8, &entries);
            let size = 4096 * u64::from(sector);
            let stack = disk_of(size, sector, &[(offset, label)]);
            let part = view(&stack, "md0a");
            assert_eq!(
                part.fact("start"),
                Some(start),
                "{entries:?} at {offset} of sectors of {sector}"
            );
            assert_eq!(part.sectorsize_bytes, sector);
        }
    }
}

#[test]
fn a_label_has_as_many_letters_as_it_says() {
    for count in [1, 8, 16, 20, 22] {
        let entries: Vec<(usize, u32, u32)> =
            (0..count).map(|at| (at, 16 + at as u32, 1)).collect();
        let stack = disk(MIB, &[(512, label_of(512, count, &entries))]);
        let expected: Vec<String> = ('a'..='v').take(count).map(|c| format!("md0{c}")).collect();
        assert_eq!(names(&stack), expected);
    }
}

#[test]
fn a_label_may_count_in_larger_sectors_than_the_disk() {
    let stack = disk(
        MIB,
        &[(512, label_of(2048, 8, &[(0, 8, 100), (2, 0, 512)]))],
    );
    let part = view(&stack, "md0a");
    assert_eq!(
        (part.sectorsize_bytes, part.mediasize_bytes),
        (2048, 100 * 2048)
    );
    assert_eq!(part.fact("start"), Some("32"), "in sectors of the disk");
}

#[test]
fn a_damaged_label_is_an_error_that_says_why() {
    let good = label_of(512, 8, &[(0, 16, 10)]);
    let mut count = good.clone();
    count[138] = 200;
    let mut second = good.clone();
    second[132] = 0;
    for (label, reason) in [
        (count, "claims 200 partitions"),
        (second, "at its byte 132"),
    ] {
        let stack = disk(MIB, &[(512, label)]);
        assert_eq!(names(&stack), [""; 0], "{reason}");
        let errors = errors(&stack);
        assert_eq!(errors.len(), 1, "{errors:?}");
        let said = errors[0].starts_with("BSD on md0: the label at byte 512")
            && errors[0].contains(reason);
        assert!(said, "{errors:?}");
    }
}

#[test]
fn a_label_with_a_wrong_checksum_is_listed_and_says_so() {
    let mut label = label_of(512, 8, &[(0, 16, 10)]);
    label[136] ^= 1;
    let stack = disk(MIB, &[(512, label)]);
    assert_eq!(names(&stack), ["md0a"]);
    assert_eq!(facts(&stack, "BSD", "state"), ["CORRUPT"]);
    let damage = facts(&stack, "BSD", "damage");
    assert!(
        damage.len() == 1 && damage[0].contains("checksum"),
        "{damage:?}"
    );
}

#[test]
fn nothing_is_found_where_nothing_can_be() {
    for (size, sector) in [
        (0, 512),
        (512, 512),
        (1024, 512),
        (1536, 512),
        (520 * 100, 520),
    ] {
        let stack = disk_of(size, sector, &[]);
        assert_eq!(names(&stack), [""; 0]);
        assert_eq!(
            errors(&stack),
            [""; 0],
            "{size} bytes in sectors of {sector}"
        );
    }
    // A floppy with a FAT: the bytes where the table would be are code.
    let mut boot = vec![0; 512];
    boot[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    boot[11..14].copy_from_slice(&[0, 2, 1]);
    boot[440..510].fill(0x6f);
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    let stack = disk(MIB, &[(0, boot)]);
    assert_eq!((names(&stack), errors(&stack)), (Vec::new(), Vec::new()));
}
