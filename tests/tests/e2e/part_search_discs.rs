//! Lost partitions on hostile media, and on discs with two file systems over the same files.

use crate::disks;
use crate::part_search::{MIB, file_of, searched};
use crate::run::{has, json_of, other, ugeom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use ugeom_testkit::program;

/// A medium that repeats the magic number of LUKS is searched in seconds, and the limit is named.
#[test]
fn a_medium_of_magic_numbers_is_searched_and_the_limit_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hostile.img");
    let file = file_of(&path, 96);
    let mut header = b"LUKS\xba\xbe\0\x02".to_vec();
    header.extend((4 * MIB).to_be_bytes());
    header.resize(512, 0);
    let piece = header.repeat(2048);
    for number in 0..32 {
        file.write_all_at(&piece, number * MIB).expect("a piece");
    }
    let disk = disks::text(&path);
    let searched = ugeom(&["part", "search", "--json", &disk]);
    assert_eq!(searched.code, 0, "{}", searched.stderr);
    has(&searched.stderr, "repeats the magic number of LUKS: ");
    let found = json_of(searched.stdout);
    assert!(found["unexamined_sectors"].as_u64() > Some(1000), "{found}");
}

/// ISO 9660 and UDF over the same files are one entry that names both.
#[test]
fn a_bridge_disc_is_one_entry() {
    let Some(genisoimage) = program("genisoimage") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (from, iso) = (folder.path().join("from"), folder.path().join("disc.iso"));
    std::fs::create_dir(&from).expect("a folder");
    std::fs::write(from.join("file"), vec![7; 300_000]).expect("a file");
    let arguments = ["-quiet", "-udf", "-V", "DISC", "-o"].map(Path::new);
    other(genisoimage, &[&arguments[..], &[&iso, &from]].concat());
    let disc = std::fs::read(&iso).expect("the disc");
    let path = folder.path().join("disk.img");
    file_of(&path, 8)
        .write_all_at(&disc, MIB)
        .expect("the disc");
    let found = searched(&disks::text(&path), &[]);
    let all = found["partitions"].as_array().expect("partitions");
    assert_eq!(all.len(), 1, "{found:#}");
    assert_eq!(all[0]["holds"], "ISO 9660 and UDF");
    assert_eq!(all[0]["start_sector"], 2048);
}
