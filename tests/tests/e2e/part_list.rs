//! `ugeom part list` and `status` in the form of geom(8), and the output of `show` for a table
//! whose places depend on the disk.

use crate::disks::{empty_image, text};
use crate::run::{has, part, part_refused, ugeom};
use std::fs::File;
use std::os::unix::fs::FileExt;

#[test]
fn every_fact_of_a_table_is_listed_as_geom_lists_it() {
    let (_folder, path) = empty_image(64 << 20);
    let disk = text(&path);
    part(&["create", "-s", "mbr", &disk]);
    part(&["add", "-t", "freebsd", "-s", "8m", &disk]);
    part(&["set", "-a", "active", "-i", "1", &disk]);
    part(&["create", "-s", "bsd", &format!("{disk}@s1")]);
    part(&[
        "add",
        "-t",
        "freebsd-ufs",
        "-s",
        "1m",
        &format!("{disk}@s1"),
    ]);
    let listed = part(&["list", &disk]);
    let geoms: Vec<&str> = listed
        .split("\n\n")
        .filter(|text| !text.is_empty())
        .collect();
    assert_eq!(geoms.len(), 2, "{listed}");
    let lines: Vec<&str> = geoms[0].lines().collect();
    assert_eq!(lines[0], "Geom name: disk.img");
    for expected in [
        "scheme: MBR",
        "state: OK",
        "Providers:",
        "1. Name: disk.imgs1",
        "   Mediasize: 8388608 (8.0M)",
        "   Sectorsize: 512",
        "   Mode: r0w0e0",
        "   attrib: active",
        "   rawtype: 165",
        "   length: 8388608",
        "   offset: 1048576",
        "   type: freebsd",
        "   index: 1",
        "   start: 2048",
        "   end: 18431",
        "Consumers:",
        "1. Name: disk.img",
    ] {
        assert!(lines.contains(&expected), "{expected}: {listed}");
    }
    has(geoms[1], "Geom name: disk.imgs1\n");
    has(geoms[1], "1. Name: disk.imgs1a\n");
    assert_eq!(
        part(&["list", &format!("{disk}@s1")]),
        format!("{}\n\n", geoms[1])
    );
    let status = part(&["status", &disk]);
    let rows: Vec<Vec<&str>> = status
        .lines()
        .map(|line| line.split(' ').collect())
        .collect();
    let cells = |row: &[&str]| row.iter().filter(|it| !it.is_empty()).count();
    assert!(rows.iter().all(|row| cells(row) == 3), "{status}");
    has(&status, "disk.imgs1      OK  disk.img\n");
    has(&status, "disk.imgs1a      OK  disk.imgs1\n");
}

#[test]
fn a_disk_without_a_table_has_nothing_to_list() {
    let (_folder, path) = empty_image(1 << 20);
    for verb in ["list", "status"] {
        let error = part_refused(&[verb, &text(&path)], 1);
        has(&error, "there is no partition table on disk.img");
    }
}

#[test]
fn the_geometry_of_a_pc_98_is_named_where_the_disk_states_none() {
    let (_folder, path) = empty_image(64 << 20);
    let disk = text(&path);
    let of_32 = format!("{disk}?fwheads=4&fwsectors=32");
    part(&["create", "-s", "pc98", &of_32]);
    part(&["add", "-t", "freebsd", "-s", "12800", &of_32]);
    let warned = |disk: &str| {
        let shown = ugeom(&["show", disk]);
        assert!(!shown.text().contains("geometry"));
        shown.stderr
    };
    let assumed = "PC98 on disk.img: the disk states no geometry: 8 heads of 17 sectors assumed";
    has(
        &warned(&disk),
        &format!("{assumed}; the partitions end as with ?fwheads=4&fwsectors=32\n"),
    );
    assert_eq!(warned(&of_32), "");
    let xml = ugeom(&["show", "--xml", &disk]).text();
    assert!(!xml.contains("<hint>"), "{xml}");
    // parted leaves head and sector of the end at 0.
    let file = File::options().write(true).open(&path).expect("the image");
    file.write_all_at(&[0, 0], 512 + 12).expect("an entry");
    has(
        &warned(&disk),
        &format!("{assumed}; ?fwheads= and ?fwsectors= set it\n"),
    );
    file.write_all_at(&[16, 7], 512 + 12).expect("an entry");
    assert_eq!(warned(&disk), "");
}
