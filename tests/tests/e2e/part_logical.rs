//! Logical partitions by the verbs of gpart: the changes that an extended boot record allows, and
//! refusals.

use crate::disks;
use crate::run::{has, part, part_refused, ugeom, ugeom_with};
use std::path::PathBuf;

/// A disk with a slice, and an extended partition with the logical partition s5.
struct Logical {
    _folder: tempfile::TempDir,
    path: PathBuf,
    disk: String,
    extended: String,
}

impl Logical {
    fn new() -> Self {
        let (folder, path) = disks::empty_image(64 << 20);
        let disk = disks::text(&path);
        let extended = format!("{disk}@s2");
        part(&["create", "-s", "mbr", &disk]);
        part(&["add", "-t", "linux-data", "-s", "8m", &disk]);
        part(&["add", "-t", "ebr", &disk]);
        // A warning says that the extended partition has no record yet.
        assert_eq!(ugeom(&["part", "create", "-s", "ebr", &extended]).code, 0);
        part(&["add", "-t", "linux-data", "-s", "10m", &extended]);
        Self {
            _folder: folder,
            path,
            disk,
            extended,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("the image")
    }

    /// The message of a verb that is refused, and writes nothing.
    fn refuses(&self, arguments: &[&str]) -> String {
        let before = self.bytes();
        let said = ugeom_with(&[&["part"], arguments].concat(), b"EBR 256\n").failed(1);
        assert!(self.bytes() == before, "{arguments:?} wrote");
        said
    }
}

/// The words of each line of a saved table.
fn saved(target: &str) -> Vec<Vec<String>> {
    let text = part(&["backup", target]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    text.lines().map(words).collect()
}

#[test]
fn an_extended_partition_holds_extended_boot_records_and_a_disk_none() {
    let it = Logical::new();
    let (disk, extended) = (it.disk.as_str(), it.extended.as_str());
    for verb in [&["delete"][..], &["modify", "-t", "ntfs"], &["resize"]] {
        let said = it.refuses(&[verb, &["--scheme", "ebr", "-i", "5", disk]].concat());
        let reason = "logical partitions need an extended partition of an MBR";
        assert!(said.contains(reason), "{verb:?}: {said}");
        let said = it.refuses(&[verb, &["--scheme", "mbr", "-i", "1", extended]].concat());
        assert!(
            said.contains("it holds logical partitions"),
            "{verb:?}: {said}"
        );
    }
    let said = it.refuses(&["destroy", "-F", "--scheme", "ebr", disk]);
    has(&said, "need an extended partition");
    let said = it.refuses(&["destroy", "-F", "--scheme", "mbr", extended]);
    has(&said, "it holds logical partitions");
}

#[test]
fn a_refusal_names_the_extended_boot_record() {
    let it = Logical::new();
    let (disk, extended) = (it.disk.as_str(), it.extended.as_str());
    let code = format!("{disk}.code");
    std::fs::write(&code, [1; 512]).expect("boot code");
    for verb in [
        &["create", "-s", "ebr", extended][..],
        &["restore", extended],
        &["bootcode", "-p", &code, "-i", "2", disk],
    ] {
        let said = it.refuses(verb);
        let found = "disk.imgs2 carries an extended boot record (at byte 446)";
        assert!(said.contains(found), "{verb:?}: {said}");
    }
    let said = ugeom_with(&["write", extended], &[1; 512]).failed(1);
    has(&said, "an extended boot record");
    let shown = ugeom(&["show", disk]).quiet();
    let row = shown.lines().find(|line| line.contains("disk.imgs2 "));
    assert!(
        row.is_some_and(|row| row.trim_end().ends_with("EBR")),
        "{shown}"
    );
    // The same without partitions.
    part(&["delete", "-i", "5", extended]);
    let said = it.refuses(&["create", "-s", "ebr", extended]);
    let empty = "carries an extended boot record without partitions";
    has(&said, empty);
}

#[test]
fn an_extended_boot_record_has_neither_labels_nor_boot_code() {
    let it = Logical::new();
    let (disk, extended) = (it.disk.as_str(), it.extended.as_str());
    let code = format!("{disk}.code");
    std::fs::write(&code, [1; 446]).expect("boot code");
    let unknown = ["set", "-a", "bootme", "-i", "5", extended];
    let unknown = part_refused(&unknown, 2);
    for words in [
        &["add", "-t", "ebr"][..],
        &["modify", "-i", "5", "-t", "!5"],
    ] {
        let refused = part_refused(&[words, &[extended]].concat(), 2);
        has(&refused, "not of an extended partition");
    }
    has(
        &unknown,
        "disk.imgs2: EBR has no attribute \"bootme\", it has active",
    );
    for (verb, reason) in [
        (
            &["add", "-t", "ntfs", "-l", "name"][..],
            "logical partitions have none",
        ),
        (&["add", "-t", "ntfs", "-b", "2048"], "overlap partition 5"),
        (
            &["add", "-t", "ntfs", "-i", "1"],
            "they are numbered in order",
        ),
        (
            &["modify", "-i", "5", "-l", "name"],
            "logical partitions have none",
        ),
        (
            &["modify", "-i", "1", "-t", "ntfs"],
            "there is no partition 1",
        ),
        (
            &["set", "-a", "active"],
            "active is an attribute of a partition of EBR: name the partition (-i)",
        ),
        (
            &["unset", "-a", "active"],
            "active is an attribute of a partition of EBR: name the partition (-i)",
        ),
        (&["delete", "-i", "6"], "there is no partition 6"),
        (
            &["destroy"],
            "the EBR of disk.imgs2 is not empty (partitions: 1)",
        ),
        (&["bootcode", "-b", &code], "EBR"),
    ] {
        let said = it.refuses(&[verb, &[extended]].concat());
        assert!(said.contains(reason), "{verb:?}: {said}");
    }
}

#[test]
fn logical_partitions_are_changed_as_gpart_does() {
    let it = Logical::new();
    let extended = it.extended.as_str();
    part(&["add", "-t", "ntfs", "-b", "65536", "-s", "2048", extended]);
    for index in ["5", "6"] {
        let said = part(&["set", "-a", "active", "-i", index, extended]);
        assert_eq!(said, format!("active set on disk.imgs{index}\n"));
    }
    let lines = saved(extended);
    assert_eq!(lines[1], ["5", "linux-data", "2048", "20480"]);
    assert_eq!(lines[2], ["6", "ntfs", "65536", "2048", "[active]"]);
    part(&["unset", "-a", "active", "-i", "6", extended]);
    part(&["modify", "-i", "6", "-t", "!0x83", extended]);
    part(&["delete", "-i", "5", extended]);
    assert_eq!(saved(extended)[1..], [["5", "linux-data", "65536", "2048"]]);
    assert_eq!(
        part(&["recover", extended]),
        "disk.imgs2: nothing to recover\n"
    );
    assert_eq!(part(&["destroy", "-F", extended]), "disk.imgs2 destroyed\n");
    let start = (2048 + (8 << 11)) * 512;
    assert!(it.bytes()[start..start + 512].iter().all(|byte| *byte == 0));
}
