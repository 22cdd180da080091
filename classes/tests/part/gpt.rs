//! How a GPT is tasted: damaged, cut, hybrid, hostile, large.

use crate::common::disks::{
    MIB, at_offsets, disk, disk_of, errors, facts, gpt_of, label_of, mark, mbr_of, names,
    read_sector,
};
use crate::common::write;
use ugeom_format::{Media, gpt};
use ugeom_stack::{Command, Errno};
use ugeom_testkit::has;

fn small_gpt() -> Vec<(u64, Vec<u8>)> {
    let media = Media::of_512(2048);
    gpt_of(media, &[("linux-data", 100, 50), ("freebsd", 200, 50)])
}

#[test]
fn of_each_of_128_partitions_three_sectors_are_tasted() {
    for sector in [512, 4096] {
        let media = Media {
            sector_size_bytes: sector,
            sectors: (1 << 40) / u64::from(sector),
        };
        let parts: Vec<(&str, u64, u64)> = (0..128)
            .map(|n| ("freebsd-ufs", 2048 + n * 100_000, 100_000))
            .collect();
        let stack = disk_of(1 << 40, sector, &gpt_of(media, &parts));
        assert_eq!(names(&stack).len(), 128);
        let disk = stack.find("md0").expect("the disk");
        let read = stack.statistics(disk).expect("statistics").bytes[Command::Read as usize];
        assert!(
            read > 2 * 16_384 && read < MIB + 128 * 3 * u64::from(sector),
            "{read} bytes with sectors of {sector}"
        );
        // Tables and labels begin in one of the first two, GELI's metadata is in the last.
        for name in names(&stack) {
            let part = stack.find(&name).expect("a partition");
            let read = stack.statistics(part).expect("statistics").bytes[Command::Read as usize];
            assert_eq!(read, 3 * u64::from(sector), "{name}");
        }
    }
}

#[test]
fn a_gpt_hides_its_protective_mbr() {
    let stack = disk(MIB, &small_gpt());
    assert_eq!(names(&stack), ["md0p1", "md0s2"]);
    assert_eq!(facts(&stack, "GPT", "state"), ["OK"]);
    assert!(stack.tree().geoms.iter().all(|geom| geom.class != "MBR"));
}

#[test]
fn a_damaged_copy_of_a_gpt_is_named_and_the_other_is_used() {
    for (offset, state) in [
        (512 + 60, "backup"),
        (1024 + 5, "backup"),
        (MIB - 512 + 60, "primary"),
    ] {
        let mut writes = small_gpt();
        writes.push((offset, vec![0xff]));
        let stack = disk(MIB, &writes);
        assert_eq!(names(&stack), ["md0p1", "md0s2"]);
        assert_eq!(facts(&stack, "GPT", "state"), ["CORRUPT"]);
        assert_eq!(facts(&stack, "GPT", "selected"), [state]);
        let damage = facts(&stack, "GPT", "damage");
        has(&damage[0], "GPT is damaged");
        has(&damage[0], "CRC");
        assert_eq!(errors(&stack), [""; 0]);
    }
}

#[test]
fn a_hybrid_mbr_is_listed_beside_its_gpt() {
    let mut writes = small_gpt();
    writes.push((
        0,
        mbr_of(&[(0xee, 1, 99), (0x83, 100, 50), (0xa5, 200, 50)]),
    ));
    let stack = disk(MIB, &writes);
    let mut found = names(&stack);
    found.sort();
    assert_eq!(found, ["md0p1", "md0p2", "md0s2", "md0s3"]);
    assert_eq!(facts(&stack, "GPT", "state"), ["OK"]);
    assert_eq!(errors(&stack), [""; 0]);
}

#[test]
fn a_gpt_behind_an_ordinary_mbr_may_be_left_over() {
    let mut writes = small_gpt();
    writes.push((0, mbr_of(&[(0x83, 63, 1000)])));
    let stack = disk(MIB, &writes);
    let mut found = names(&stack);
    found.sort();
    assert_eq!(found, ["md0p1", "md0p2", "md0s1"]);
    let damage = facts(&stack, "GPT", "damage");
    assert!(
        damage.len() == 1 && damage[0].contains("left over"),
        "{damage:?}"
    );
}

#[test]
fn a_cut_image_of_a_gpt_lists_everything_and_marks_what_is_missing() {
    let media = Media::of_512(4096);
    let writes = gpt_of(
        media,
        &[("linux-data", 100, 50), ("linux-data", 1000, 3000)],
    );
    let stack = disk(MIB, &writes);
    assert_eq!(names(&stack), ["md0p1", "md0p2"]);
    assert_eq!(mark(&stack, "md0p1"), None);
    let past = (4000 - 2048) * 512;
    let marked = mark(&stack, "md0p2").expect("a mark");
    assert_eq!(marked, format!("reaches {past} bytes past the end of md0"));
    let damage = facts(&stack, "GPT", "damage");
    assert!(
        damage.iter().any(|damage| damage.contains("it was cut")),
        "{damage:?}"
    );
}

#[test]
fn impossible_entries_of_a_gpt_are_listed_and_marked() {
    let media = Media::of_512(2048);
    let mut table = gpt::Table::create(media, 128, gpt::Guid([1; 16])).expect("a GPT");
    let places = [
        (200, 100),
        (300, u64::MAX),
        (u64::MAX - 1, u64::MAX),
        (3, 5),
        (40, 50),
    ];
    for (number, (first, last)) in (1_u8..).zip(places) {
        let entry = &mut table.entries[usize::from(number) - 1];
        entry.kind = gpt::types::LINUX_DATA;
        entry.guid = gpt::Guid([number.min(4); 16]);
        (entry.first, entry.last) = (first, last);
    }
    let writes = at_offsets(table.encode(media), 512);
    let stack = disk(MIB, &writes);
    assert_eq!(names(&stack), ["md0p1", "md0p2", "md0p3", "md0p4", "md0p5"]);
    for (name, words) in [
        ("md0p1", "ends before it begins"),
        ("md0p2", "past the end of md0"),
        ("md0p3", "past the end of md0"),
        ("md0p4", "leaves the usable range"),
        ("md0p5", "has the GUID of partition 4"),
    ] {
        let marked = mark(&stack, name).expect("a mark");
        assert!(marked.contains(words), "{name}: {marked}");
    }
    assert_eq!(
        read_sector(&stack, "md0p1", 0)
            .expect_err("it is empty")
            .errno,
        Errno::NXIO
    );
    assert_eq!(
        read_sector(&stack, "md0p3", 0)
            .expect_err("it is nowhere")
            .errno,
        Errno::NXIO
    );
}

#[test]
fn nobody_looks_into_a_thousand_partitions() {
    let media = Media::of_512(8192);
    let mut table = gpt::Table::create(media, 1024, gpt::Guid([1; 16])).expect("a GPT");
    let first = table.header.first_usable;
    for index in 0..1024 {
        let entry = &mut table.entries[index];
        entry.kind = gpt::types::FREEBSD;
        (entry.first, entry.last) = (first, first + 10);
    }
    let mut writes: Vec<(u64, Vec<u8>)> = table
        .encode(media)
        .into_iter()
        .map(|write| (write.lba * 512, write.data))
        .collect();
    writes.push(((first + 1) * 512, label_of(512, 22, &[(0, 2, 4)])));
    let stack = disk(4 * MIB, &writes);
    assert_eq!(names(&stack).len(), 1024);
}

#[test]
fn a_table_that_is_written_over_goes_and_the_new_one_comes() {
    let stack = disk(MIB, &[(0, mbr_of(&[(0x83, 63, 100)]))]);
    let disk = stack.find("md0").expect("the disk");
    assert_eq!(names(&stack), ["md0s1"]);
    write(
        &stack,
        disk,
        &[(0, mbr_of(&[(0x83, 63, 100), (0x83, 200, 10)]))],
    );
    assert_eq!(names(&stack), ["md0s1", "md0s2"]);
    write(&stack, disk, &[(0, vec![0; 512])]);
    assert_eq!(names(&stack), [""; 0]);
    write(&stack, disk, &small_gpt());
    assert_eq!(names(&stack), ["md0p1", "md0s2"]);
}
