//! Damaged images of virtual machines: missing data is not read as zeroes, sound data is read,
//! headers that qemu refuses are refused.

use crate::run::{Ended, UGEOM, command, has, other, run, ugeom, ugeom_with};
use crate::serve::noise;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;
use ugeom_testkit::program;

const SIZE: usize = 16 << 20;
const CLUSTER: usize = 64 << 10;

/// A folder with `a.FORMAT`, full of data; nothing without qemu's programs.
fn image(format: &str) -> Option<(TempDir, Vec<u8>)> {
    program("qemu-img")?;
    program("qemu-nbd")?;
    let folder = tempfile::tempdir().expect("a folder");
    let disk = noise(1, SIZE);
    let raw = folder.path().join("raw.img");
    std::fs::write(&raw, &disk).expect("a disk");
    let made = folder.path().join(format!("a.{format}"));
    let (raw, made) = (raw.display().to_string(), made.display().to_string());
    let arguments = ["convert", "-f", "raw", "-O", format, &raw, &made];
    other("qemu-img", &arguments);
    Some((folder, disk))
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

fn overwrite(path: &str, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).expect("an image");
    file.write_all_at(bytes, at).expect("written");
}

fn word(path: &str, at: u64) -> u64 {
    let mut bytes = [0; 8];
    let file = std::fs::File::open(path).expect("an image");
    file.read_exact_at(&mut bytes, at).expect("a number");
    u64::from_be_bytes(bytes)
}

/// Reads with `--skip-errors`; what came out, and the lost bytes by the map.
fn rescued(folder: &TempDir, target: &str) -> (Ended, Vec<u8>, usize) {
    let (out, map) = (path(folder, "out"), path(folder, "map"));
    // The map of an earlier run would be continued.
    let _ = std::fs::remove_file(&map);
    let file = std::fs::File::create(&out).expect("the output");
    let mut child = command(UGEOM, &["read", "--skip-errors", "--map", &map, target]);
    child.stdout(file);
    let ended = run(child, b"");
    let map = std::fs::read_to_string(map).expect("the map");
    let lost = map.lines().filter(|line| line.ends_with('-'));
    let lost = lost.map(|line| {
        let length = line.split_whitespace().nth(1).expect("a length");
        usize::from_str_radix(length.trim_start_matches("0x"), 16).expect("a number")
    });
    let lost = lost.sum();
    let out = std::fs::read(out).expect("the output");
    (ended, out, lost)
}

#[test]
fn clusters_past_the_end_of_the_file_are_errors() {
    let Some((folder, disk)) = image("qcow2") else { return };
    let target = path(&folder, "a.qcow2");
    let file = OpenOptions::new().write(true).open(&target).expect("it");
    file.set_len(10 << 20).expect("cut");
    let (ended, out, lost) = rescued(&folder, &target);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    has(&ended.stderr, "cut short: the file ends at byte 10485760");
    assert!((6 << 20..8 << 20).contains(&lost), "{lost}");
    let kept = SIZE - lost;
    assert!(out[..kept] == disk[..kept]);
    let plain = ugeom(&["read", &target]);
    assert_eq!(plain.code, 1);
    has(&plain.stderr, "past the end of the image's file");
}

#[test]
fn cut_images_of_other_formats_are_named() {
    for format in ["vdi", "vmdk"] {
        let Some((folder, _)) = image(format) else { return };
        let target = path(&folder, &format!("a.{format}"));
        let sound = ugeom(&["show", &target]);
        assert!(!sound.stderr.contains("cut short"), "{}", sound.stderr);
        let file = OpenOptions::new().write(true).open(&target).expect("it");
        file.set_len(10 << 20).expect("cut");
        has(
            &ugeom(&["show", &target]).stderr,
            "cut short: the file ends",
        );
    }
}

#[test]
fn a_wrong_entry_of_the_map_costs_its_own_cluster() {
    let Some((folder, disk)) = image("qcow2") else { return };
    let target = path(&folder, "a.qcow2");
    let l2 = word(&target, word(&target, 40)) & 0x00ff_ffff_ffff_fe00;
    // Not aligned, and with bits that have to be 0.
    for wrong in [(1_u64 << 63) | 0x12_3400, (1 << 63) | (1 << 60) | 0x50_0000] {
        overwrite(&target, l2 + 100 * 8, &wrong.to_be_bytes());
        let (ended, out, lost) = rescued(&folder, &target);
        assert_eq!((ended.code, lost), (1, CLUSTER), "{}", ended.stderr);
        has(&ended.stderr, "65,536 bytes in 1 place could not be read");
        let mut expected = disk.clone();
        expected[100 * CLUSTER..][..CLUSTER].fill(0);
        assert!(out == expected);
    }
    let cut = ugeom(&["read", &target]);
    assert_eq!(cut.code, 1);
    assert!(cut.stdout.len() >= 4 << 20, "{}", cut.stdout.len());
    assert!(disk.starts_with(&cut.stdout));
}

#[test]
fn headers_that_qemu_refuses_are_not_opened_in_silence() {
    let Some((folder, disk)) = image("qcow2") else { return };
    let target = path(&folder, "a.qcow2");
    let sound = std::fs::read(&target).expect("the image");
    for (at, bytes, problem) in [
        (41, &[0xff; 4][..], "L1 table at byte"),
        (24, &[0xff; 4], "entries in the L1 table"),
        (7, &[0xff], "version 255 at byte 4, expected 2 or 3"),
    ] {
        std::fs::write(&target, &sound).expect("the image");
        overwrite(&target, at, bytes);
        has(&ugeom(&["show", &target]).failed(1), problem);
    }
    for (at, what) in [
        (48, "refcount table"),
        (56, "refcount table"),
        (60, "table of snapshots"),
        (64, "table of snapshots"),
    ] {
        std::fs::write(&target, &sound).expect("the image");
        overwrite(&target, at, &[0xff; 4]);
        let read = ugeom(&["read", &target]);
        assert!(read.code == 0 && read.stdout == disk, "{}", read.stderr);
        has(
            &read.stderr,
            &format!("damaged, for reading only: the {what}"),
        );
        let refused = ugeom(&["write", "--destroy", &target]).failed(1);
        has(&refused, what);
    }
}

/// The footer at its end alone does not make it a plain disk with a footer.
#[test]
fn a_vhd_without_its_first_footer_is_not_taken_for_a_plain_disk() {
    let Some((folder, _)) = image("vpc") else { return };
    let target = path(&folder, "a.vpc");
    overwrite(&target, 7, b"X");
    let before = std::fs::read(&target).expect("the image");
    has(&ugeom(&["read", &target]).failed(1), "invalid VPC image");
    let write = ["write", "--destroy", &target];
    has(&ugeom_with(&write, b"wrong").failed(1), "invalid VPC image");
    assert!(std::fs::read(&target).expect("the image") == before);
}

const L2_OFFSET_BITS: u64 = 0x00ff_ffff_ffff_fe00;
const COPIED: u64 = 1 << 63;

/// qemu refuses such a write, too, and marks the image as corrupt.
#[test]
fn data_is_not_written_over_the_structures_of_an_image() {
    let Some((folder, _)) = image("qcow2") else { return };
    let target = path(&folder, "a.qcow2");
    let sound = std::fs::read(&target).expect("the image");
    let (l1, table) = (word(&target, 40), word(&target, 48));
    let (l2, block) = (word(&target, l1) & L2_OFFSET_BITS, word(&target, table));
    for place in [l1, l2, table, block] {
        std::fs::write(&target, &sound).expect("the image");
        overwrite(&target, l2 + 100 * 8, &(COPIED | place).to_be_bytes());
        let before = std::fs::read(&target).expect("the image");
        // Within the cluster, and from the one before it on: another thread does that.
        for (offset, length) in [(100 * CLUSTER, 512), (99 * CLUSTER + 512, CLUSTER)] {
            let offset = offset.to_string();
            let arguments = ["write", "--destroy", "--offset", &offset, &target];
            let refused = ugeom_with(&arguments, &vec![7; length]).failed(1);
            has(&refused, "map is damaged and leads to its own tables");
            let after = std::fs::read(&target).expect("the image");
            for place in [0, l1, l2, table, block] {
                let cluster = place as usize..place as usize + CLUSTER;
                assert!(after[cluster.clone()] == before[cluster], "{place:x}");
            }
        }
    }
}

/// The next allocation would take the header for free space.
#[test]
fn an_image_whose_counts_miss_its_structures_is_not_written() {
    let Some((folder, disk)) = image("qcow2") else { return };
    let (raw, target) = (path(&folder, "raw.img"), path(&folder, "b.qcow2"));
    for options in [
        "refcount_bits=1",
        "refcount_bits=16",
        "refcount_bits=64,cluster_size=4k",
    ] {
        let arguments = ["convert", "-O", "qcow2", "-o", options, &raw, &target];
        other("qemu-img", &arguments);
        let write = ["write", "--destroy", "--offset", "1m", &target];
        ugeom_with(&write, b"sound").quiet();
        let block = word(&target, word(&target, 48));
        overwrite(&target, block, &[0; 512]);
        let before = std::fs::read(&target).expect("the image");
        let refused = ugeom_with(&write, b"wrong").failed(1);
        has(
            &refused,
            "its reference counts take its header at byte 0 of the file",
        );
        assert!(
            std::fs::read(&target).expect("the image") == before,
            "{options}"
        );
        other("qemu-img", &["check", "-q", "-r", "all", &target]);
        ugeom_with(&write, b"right").quiet();
        let read = ugeom(&["read", &target]).stdout;
        assert!(read[1 << 20..].starts_with(b"right"));
        assert!(read[..1 << 20] == disk[..1 << 20], "{options}");
    }
}

/// qemu-nbd would write new entries of the map into whatever the directory leads to.
#[test]
fn a_vmdk_image_whose_tables_overlap_is_not_written_to() {
    let Some((folder, disk)) = image("vmdk") else { return };
    let target = path(&folder, "a.vmdk");
    let sound = ugeom_with(
        &["write", "--destroy", "--length", "4096", &target],
        &[7; 4096],
    );
    assert_eq!(sound.code, 0, "{}", sound.stderr);
    let mut bytes = [0; 8];
    let file = std::fs::File::open(&target).expect("an image");
    file.read_exact_at(&mut bytes, 56).expect("the directory");
    let directory = u64::from_le_bytes(bytes) * 512;
    // The table of the first 32 MiB is the directory itself.
    let wrong = u32::try_from(directory / 512).expect("a sector");
    overwrite(&target, directory, &wrong.to_le_bytes());
    let before = std::fs::read(&target).expect("the image");
    let refused = ugeom_with(&["write", "--destroy", &target], &disk[..4096]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    has(
        &refused.stderr,
        "cannot be written to: an entry of its grain directory leads to byte",
    );
    assert!(before == std::fs::read(&target).expect("the image"));
    assert_eq!(ugeom(&["show", &target]).code, 0);
}
