//! Tables in partitions: labels of other systems in slices of any type, whole disks in partitions,
//! and classes that the user names.

use crate::common::disks::{
    MIB, at_offsets, disk, errors, facts, gpt_of, label_of, mark, mbr_of, names, read_sector, view,
};
use ugeom_classes::{TargetOptions, open_target};
use ugeom_format::Media;

const SLICE: u32 = 64;

/// A disk with one slice of that type, and a label in it.
fn slice_with(kind: u8, label: &[u8]) -> ugeom_stack::Stack {
    let offset = u64::from(SLICE + 1) * 512;
    disk(
        2 * MIB,
        &[
            (0, mbr_of(&[(kind, SLICE, 3000)])),
            (offset, label.to_vec()),
        ],
    )
}

fn place(stack: &ugeom_stack::Stack, name: &str) -> (String, u64) {
    let view = view(stack, name);
    let start = view.fact("start").expect("a start");
    (start.to_owned(), view.mediasize_bytes / 512)
}

#[test]
fn a_label_is_found_in_slices_and_partitions_of_any_type() {
    let label = label_of(512, 8, &[(0, 16, 100), (2, 0, 3000)]);
    let stack = slice_with(0x83, &label);
    assert_eq!(names(&stack), ["md0s1", "md0s1a", "md0s1c"]);
    let media = Media::of_512(4096);
    let mut writes = gpt_of(media, &[("linux-data", 64, 1000)]);
    writes.push((65 * 512, label));
    let stack = disk(2 * MIB, &writes);
    assert_eq!(names(&stack), ["md0p1", "md0p1a", "md0p1c"]);
}

#[test]
fn places_of_netbsd_count_from_the_disk_also_beside_a_raw_partition_at_its_start() {
    let entries = [(0, 164, 100), (2, SLICE, 3000), (3, 0, 4096), (4, 10, 20)];
    let stack = slice_with(0xa9, &label_of(512, 8, &entries));
    assert_eq!(names(&stack), ["md0s1", "md0s1a", "md0s1c"]);
    assert_eq!(place(&stack, "md0s1a"), ("100".into(), 100));
    assert_eq!(place(&stack, "md0s1c"), ("0".into(), 3000));
    assert_eq!(facts(&stack, "BSD", "outside"), ["d 0 4096", "e 10 20"]);
    assert_eq!(mark(&stack, "md0s1a"), None);
}

#[test]
fn a_label_of_openbsd_has_48_bits_and_16_partitions() {
    let mut label = label_of(512, 16, &[(0, SLICE, 64), (2, 0, 4096), (15, 0, 7)]);
    label[114] = 1;
    // `p`: first sector 2^32 + 200, length 3 * 2^32 + 7.
    let p = 148 + 15 * 16;
    label[p + 4..p + 12].copy_from_slice(&[200, 0, 0, 0, 1, 0, 3, 0]);
    let stack = slice_with(0xa6, &label);
    assert_eq!(names(&stack), ["md0s1", "md0s1a", "md0s1p"]);
    assert_eq!(place(&stack, "md0s1a"), ("0".into(), 64));
    let start = (1_u64 << 32) + 200 - u64::from(SLICE);
    assert_eq!(place(&stack, "md0s1p"), (start.to_string(), (3 << 32) + 7));
    assert!(mark(&stack, "md0s1p").is_some_and(|mark| mark.contains("past the end")));
}

#[test]
fn a_big_endian_label_is_listed_and_marked() {
    let mut label = label_of(512, 8, &[(0, 16, 100), (2, 0, 3000)]);
    let words = [0, 40, 44, 48, 52, 56, 60, 132, 140, 144];
    let parts = (0..8).flat_map(|n| [148 + 16 * n, 152 + 16 * n, 156 + 16 * n]);
    for at in words.into_iter().chain(parts) {
        label[at..at + 4].reverse();
    }
    for at in [4, 6, 136, 138] {
        label[at..at + 2].reverse();
    }
    // XOR of swapped words is the swapped XOR: the checksum stays right but for what is no number.
    let stack = slice_with(0xa5, &label);
    assert_eq!(names(&stack), ["md0s1", "md0s1a", "md0s1c"]);
    assert_eq!(place(&stack, "md0s1a"), ("16".into(), 100));
    assert_eq!(facts(&stack, "BSD", "byteorder"), ["big-endian"]);
    assert_eq!(
        mark(&stack, "md0s1a").as_deref(),
        Some("from a big-endian label")
    );
}

#[test]
fn the_disk_of_a_virtual_machine_is_found_in_a_partition() {
    let media = |sectors| Media::of_512(sectors);
    let mut writes = gpt_of(media(4096), &[("linux-data", 64, 1000), ("efi", 2000, 500)]);
    let inner = gpt_of(
        media(1000),
        &[("freebsd-ufs", 100, 200), ("linux-data", 500, 100)],
    );
    writes.extend(inner.into_iter().map(|(at, bytes)| (64 * 512 + at, bytes)));
    writes.push((2000 * 512, mbr_of(&[(0x83, 63, 100)])));
    writes.push(((64 + 100 + 7) * 512, b"in here".to_vec()));
    let stack = disk(2 * MIB, &writes);
    assert_eq!(
        names(&stack),
        ["md0p1", "md0p2", "md0p1p1", "md0p1p2", "md0p2s1"]
    );
    let sector = read_sector(&stack, "md0p1p1", 7 * 512).expect("a sector");
    assert_eq!(&sector[..7], b"in here");
    assert_eq!(errors(&stack), [""; 0]);
}

#[test]
fn a_backup_at_the_end_of_a_partition_is_no_table_of_the_partition() {
    let media = Media::of_512(4096);
    // The slice ends where an older GPT of the whole disk did.
    let mut writes = gpt_of(media, &[("linux-data", 64, 1000)]);
    writes.retain(|write| write.0 > MIB);
    writes.push((0, mbr_of(&[(0x83, 63, 4096 - 63)])));
    let stack = disk(2 * MIB, &writes);
    assert_eq!(names(&stack), ["md0p1", "md0s1"]);
    assert_eq!(facts(&stack, "GPT", "selected"), ["backup"]);
}

#[test]
fn sizes_beyond_what_disks_have_are_not_cut() {
    let media = Media::of_512(4096);
    let mut table = ugeom_format::gpt::Table::create(media, 128, ugeom_format::gpt::Guid([1; 16]))
        .expect("a GPT");
    table.entries[0].kind = ugeom_format::gpt::types::LINUX_DATA;
    (table.entries[0].first, table.entries[0].last) = (64, (1 << 54) + 63);
    table.entries[1].kind = ugeom_format::gpt::types::EFI;
    (table.entries[1].first, table.entries[1].last) = (64, u64::MAX - 1);
    let writes = at_offsets(table.encode(media), 512);
    let stack = disk(2 * MIB, &writes);
    let first = view(&stack, "md0p1");
    assert_eq!(first.mediasize_bytes, 1 << 63);
    let fact = |name: &str, wanted: &str| {
        let view = view(&stack, name);
        view.fact(wanted).expect("a fact").to_owned()
    };
    assert_eq!(fact("md0p1", "length"), "9223372036854775808");
    assert_eq!(fact("md0p2", "end"), (u64::MAX - 1).to_string());
    let length = (u128::from(u64::MAX) - 64) * 512;
    assert_eq!(fact("md0p2", "length"), length.to_string());
}

fn refused(target: &str) -> String {
    let error = open_target(target, &TargetOptions::default()).err();
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_class_that_is_named_probes_anywhere_and_says_why_it_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("d.img");
    let mut bytes = vec![0; 2 << 20];
    let mut put = |sector: usize, data: &[u8]| {
        bytes[sector * 512..sector * 512 + data.len()].copy_from_slice(data);
    };
    put(0, &mbr_of(&[(0x83, 64, 2000), (0x83, 3000, 500)]));
    put(64, &mbr_of(&[(0x83, 100, 50)]));
    std::fs::write(&path, bytes).expect("an image");
    let target = |rest: &str| format!("{}{rest}", path.display());
    let opened = open_target(&target("@s1 | mbr@d.imgs1s1"), &TargetOptions::default());
    assert_eq!(opened.expect("a nested MBR").name, "d.imgs1s1");
    for (rest, reason) in [
        (
            "@s1 | bsd",
            "BSD on d.imgs1: no disklabel: the magic 0x82564557",
        ),
        (
            "@s2 | mbr",
            "MBR on d.imgs2: no boot signature at byte 510: found 0x0000",
        ),
        (
            "@s2 | gpt",
            "GPT on d.imgs2: neither sector 1 nor the last one (499)",
        ),
        (
            "@s1 | apm",
            "APM on d.imgs1: block 0: it begins with zeroes, not with \"ER\"",
        ),
        (
            "@s2 | ebr",
            "EBR on d.imgs2: no extended boot record at sector 0: no boot signature",
        ),
    ] {
        let text = refused(&target(rest));
        assert!(text.contains(reason), "{rest}: {text}");
    }
}
