//! `ugeom diskinfo` against the listings that the author of GEOM recorded, and FreeBSD's formats.

use crate::disks::{self, REAL};
use crate::run::ugeom;

#[test]
fn every_recorded_listing_of_a_real_disk_comes_out() {
    let mut lines = 0;
    for name in REAL {
        let Some(disk) = disks::real("every_recorded_listing_of_a_real_disk", name) else {
            return;
        };
        let printed = ugeom(&["diskinfo", "--classic", &disk.target]);
        let printed: String = printed
            .text()
            .lines()
            .map(|l| format!("/dev/{l}\n"))
            .collect();
        assert_eq!(printed, disk.listing, "{name}");
        lines += printed.lines().count();
        drop(disk.folder);
    }
    assert_eq!(lines, 75, "the recorded listings have so many lines");
}

#[test]
fn the_published_listing_of_gzero_comes_out() {
    let printed = ugeom(&["diskinfo", "-v", "zero:clear=0"]).quiet();
    let published = "\t512         \t# sectorsize\n\
                     \t1152921504606846976\t# mediasize in bytes (1.0E)\n\
                     \t2251799813685248\t# mediasize in sectors\n";
    let (name, rest) = printed.split_once('\n').expect("lines");
    assert_eq!(name, "zero0");
    assert!(rest.starts_with(published), "{rest}");
}

#[test]
fn one_line_a_provider_with_stripes_and_firmware_geometry() {
    let (_folder, path) = disks::empty_image(1_474_560);
    let target = format!("{}?fwsectors=18&fwheads=2", disks::text(&path));
    let printed = ugeom(&["diskinfo", &target]).quiet();
    assert_eq!(printed, "disk.img\t512\t1474560\t2880\t0\t0\t80\t2\t18\n");
}

#[test]
fn an_address_means_that_provider_alone() {
    let Some(disk) = disks::real("an_address_means_that_provider_alone", "critter.ad0") else {
        return;
    };
    let printed = ugeom(&["diskinfo", &format!("{}@s1b", disk.target)]);
    assert_eq!(
        printed.text(),
        "md34s1b\t512\t1073741824\t2097152\t0\t1073774080\n"
    );
    let bare = ugeom(&["diskinfo", "--no-taste", &disk.target]).quiet();
    assert_eq!(bare, "md34\t512\t2671841280\t5218440\t0\t0\n");
}

#[test]
fn what_can_be_looked_at_is_printed_beside_what_cannot() {
    let ended = ugeom(&["diskinfo", "md:1m", "/no/such/disk", "md:2m"]);
    assert_eq!(ended.code, 1);
    assert_eq!(
        ended.text(),
        "md0\t512\t1048576\t2048\t0\t0\nmd0\t512\t2097152\t4096\t0\t0\n"
    );
    assert!(
        ended.stderr.starts_with("ugeom: opening /no/such/disk: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn the_same_for_programs() {
    let json = ugeom(&["diskinfo", "--json", "md:1m,sectorsize=4k"]).quiet();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json[0]["name"], "md0");
    assert_eq!(json[0]["sectors"], 256);
    assert_eq!(json[0]["firmware"], serde_json::Value::Null);
}

#[test]
fn a_provider_without_a_serial_number_says_so() {
    let ended = ugeom(&["diskinfo", "-s", "md:1m"]);
    assert_eq!(ended.failed(1), "ugeom: md0: it has no identification\n");
}
