//! Damaged GPTs: the listing, and the writes and backups of `part recover`, with sfdisk, sgdisk and
//! xxd as judges.

use crate::disks;
use crate::run::{UGEOM, has, json_of, other, part, run_in, ugeom, ugeom_with, words_of};
use std::path::{Path, PathBuf};
use ugeom_testkit::program;

/// An image with a GPT of two partitions, and its bytes.
fn gpt() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let (folder, path) = disks::empty_image(4 << 20);
    let disk = disks::text(&path);
    part(&["create", "-s", "gpt", &disk]);
    part(&["add", "-t", "linux-data", "-b", "2048", "-s", "2048", &disk]);
    part(&["add", "-t", "efi", "-b", "4096", "-s", "1000", &disk]);
    let sound = std::fs::read(&path).expect("the image");
    (folder, path, sound)
}

fn changed(path: &Path, sound: &[u8], places: &[usize]) {
    let mut bytes = sound.to_vec();
    for &at in places {
        bytes[at] ^= 1;
    }
    std::fs::write(path, bytes).expect("the image");
}

#[test]
fn a_missing_protective_mbr_is_reported_and_mended() {
    let (_folder, path, sound) = gpt();
    let disk = disks::text(&path);
    let mut bytes = sound.clone();
    bytes[446..510].fill(0);
    std::fs::write(&path, &bytes).expect("the image");
    let shown = ugeom(&["show", &disk]);
    has(&shown.text(), "no protective MBR");
    let shown = ugeom(&["part", "show", &disk]);
    has(&shown.text(), "[CORRUPT]");
    has(&shown.stderr, "no protective MBR");
    let refused = ugeom(&["part", "delete", "-i", "1", &disk]).failed(1);
    has(&refused, "recover it first");
    let kept = disks::text(&path.with_extension("kept"));
    let done = part(&["recover", "--keep", &kept, &disk]);
    let line = format!("disk.img: the overwritten sectors are in {kept}\n");
    assert_eq!(done, format!("disk.img recovered\n{line}"));
    assert!(std::fs::read(&path).expect("the image") == sound);
    if let Some(sfdisk) = program("sfdisk") {
        let dump = String::from_utf8(other(sfdisk, &["-d", &disk])).expect("text");
        has(&dump, "label: gpt");
    }
    let Some(xxd) = program("xxd") else { return };
    other(xxd, &["-r", &kept, &disk]);
    assert!(
        std::fs::read(&path).expect("the image") == bytes,
        "xxd brings it back"
    );
}

#[test]
fn a_table_with_wrong_checksums_is_listed_and_recovered_from_a_named_copy() {
    let (folder, path, sound) = gpt();
    let disk = disks::text(&path);
    let last = sound.len() - 512;
    changed(&path, &sound, &[512 + 56, last + 16]);
    let damaged = std::fs::read(&path).expect("the image");
    let shown = ugeom(&["show", &disk]);
    has(&shown.text(), "DAMAGED: neither copy is whole");
    has(&shown.text(), "disk.imgp2");
    assert!(ugeom(&["part", "show", &disk]).text().contains("[DAMAGED]"));
    let refused = ugeom(&["part", "recover", &disk]).failed(1);
    has(&refused, "--from primary, --from backup");
    let plan = part(&["recover", "--from", "backup", "--dry-run", &disk]);
    has(&plan, "primary header, sector 1: would be written");
    let plan = json_of(part(&words_of(&format!(
        "recover --from backup --dry-run --json {disk}"
    ))));
    assert_eq!(plan["dry_run"], true);
    assert_eq!(plan["writes"].as_array().map(Vec::len), Some(2), "{plan}");
    assert!(
        std::fs::read(&path).expect("the image") == damaged,
        "nothing was written"
    );
    // The file is made in the current folder, and never over another one.
    let recover = |side: &str| {
        let recover = ["part", "recover", "--from", side, &disk];
        run_in(folder.path(), UGEOM, &recover).quiet()
    };
    assert!(recover("backup").contains("are in disk.img.before-recover\n"));
    assert!(std::fs::read(&path).expect("the image") == sound);
    changed(&path, &sound, &[512 + 56, last + 16]);
    assert!(recover("primary").contains("are in disk.img.before-recover.2\n"));
    let Some(sgdisk) = program("sgdisk") else { return };
    let verdict = other(sgdisk, &["-v", &disk]);
    assert!(String::from_utf8_lossy(&verdict).contains("No problems found"));
}

#[test]
fn nothing_is_written_where_the_old_sectors_cannot_be_kept() {
    let (_folder, path, sound) = gpt();
    let disk = disks::text(&path);
    changed(&path, &sound, &[512 + 56]);
    let damaged = std::fs::read(&path).expect("the image");
    let refused = ugeom(&["part", "recover", "--keep", &disk, &disk]).failed(1);
    has(&refused, "nothing was written");
    assert!(std::fs::read(&path).expect("the image") == damaged);
}

/// `show` and `part show` report a table for sectors of another size.
fn report_other_sectors(target: &str, made_for: u32, here: u32) {
    let said = format!(
        "made for sectors of {made_for} bytes, not of {here} as here: \
         ?sectorsize={made_for} opens it"
    );
    for arguments in [["show", target].as_slice(), &["part", "show", target]] {
        has(&ugeom(arguments).stderr, &said);
    }
}

#[test]
fn other_sector_sizes_are_tried_and_named() {
    let Some(sgdisk) = program("sgdisk") else { return };
    let (_folder, path) = disks::empty_image(16 << 20);
    let disk = disks::text(&path);
    other(sgdisk, &["-n", "1:2048:4095", &disk]);
    report_other_sectors(&format!("{disk}?sectorsize=4096"), 512, 4096);
    let (_folder, path) = disks::empty_image(16 << 20);
    let disk = disks::text(&path);
    let large = format!("{disk}?sectorsize=4096");
    part(&["create", "-s", "gpt", &large]);
    part(&["add", "-t", "efi", &large]);
    report_other_sectors(&disk, 4096, 512);
    for (made_for, here) in [(4096, 512), (2048, 512), (512, 4096)] {
        let (_folder, path) = disks::empty_image(16 << 20);
        let disk = disks::text(&path);
        part(&[
            "create",
            "-s",
            "bsd",
            &format!("{disk}?sectorsize={made_for}"),
        ]);
        report_other_sectors(&format!("{disk}?sectorsize={here}"), made_for, here);
    }
}

/// The partition past the end can be in no table for this disk: the others go into a new one.
#[test]
fn a_table_with_a_partition_past_the_end_is_made_anew_without_it() {
    let Some(sgdisk) = program("sgdisk") else { return };
    let (_folder, path, _) = gpt();
    let disk = disks::text(&path);
    let file = std::fs::File::options().write(true).open(&path);
    file.and_then(|file| file.set_len(4500 * 512))
        .expect("an image of whole sectors");
    has(
        &ugeom(&["part", "recover", &disk]).failed(1),
        "without the partition's line, the text of `ugeom part backup` makes a table that fits",
    );
    let saved = ugeom(&["part", "backup", &disk]).text();
    let saved: Vec<&str> = saved
        .lines()
        .filter(|line| !line.starts_with("2 "))
        .collect();
    let restored = ["part", "restore", "-F", "--uuids", disk.as_str()];
    ugeom_with(&restored, saved.join("\n").as_bytes()).quiet();
    let verdict = String::from_utf8(other(&sgdisk, &["-v", &disk])).expect("text");
    has(&verdict, "No problems found");
    has(&part(&["show", &disk]), "2048  2048         1  linux-data");
}

#[test]
fn tables_of_many_and_of_long_entries_are_what_sgdisk_lists() {
    let Some(sgdisk) = program("sgdisk") else { return };
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    other(
        &sgdisk,
        &words_of(&format!(
            "-S 4000 -n 1:8192:16383 -n 4000:20480:24575 {disk}"
        )),
    );
    let shown = part(&["show", "-p", &disk]);
    has(&shown, "disk.imgp1 ");
    has(&shown, "disk.imgp4000 ");
    part(&["delete", "-i", "1", &disk]);
    let verdict = String::from_utf8(other(&sgdisk, &["-v", &disk])).expect("text");
    has(&verdict, "No problems found");
}

#[test]
fn part_show_prints_what_partitions_carry() {
    let (_folder, path, sound) = gpt();
    let disk = disks::text(&path);
    let mut bytes = sound;
    bytes[2048 * 512..][..6].copy_from_slice(b"LUKS\xba\xbe");
    bytes[2048 * 512 + 7] = 2;
    std::fs::write(&path, &bytes).expect("the image");
    let shown = part(&["show", &disk]);
    has(&shown, "  1  linux-data  (1.0M)  LUKS2\n");
    let json = json_of(part(&["show", "--json", &disk]));
    let rows = json[0]["rows"].as_array().expect("rows");
    let first = rows
        .iter()
        .find(|row| row["index"] == 1)
        .expect("the first");
    assert_eq!(first["contents"][0]["summary"], "LUKS2");
}
