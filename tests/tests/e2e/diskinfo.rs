//! `ugeom diskinfo` against the listings that the author of GEOM recorded, and FreeBSD's formats.

use crate::disks::{self, REAL};
use crate::run::{has, json_of, ugeom};
use ugeom_testkit::begins;

#[test]
fn every_recorded_listing_of_a_real_disk_comes_out() {
    let mut lines = 0;
    for name in REAL {
        let Some(disk) = disks::real(name) else { return };
        let printed = ugeom(&["diskinfo", "--classic", &disk.target]).quiet();
        let printed: String = printed.lines().map(|l| format!("/dev/{l}\n")).collect();
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
    let Some(disk) = disks::real("critter.ad0") else { return };
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
    begins(&ended.stderr, "ugeom: /no/such/disk: ");
}

#[test]
fn the_same_for_programs() {
    let json = json_of(ugeom(&["diskinfo", "--json", "md:1m,sectorsize=4k"]).quiet());
    assert_eq!(json[0]["name"], "md0");
    assert_eq!(json[0]["sectors"], 256);
    assert_eq!(json[0]["firmware"], serde_json::Value::Null);
}

#[test]
fn a_provider_without_a_serial_number_says_so() {
    let ended = ugeom(&["diskinfo", "-s", "md:1m"]);
    assert_eq!(ended.failed(1), "ugeom: md0: it has no identification\n");
}

/// Lines with each number replaced by `#`: what stays is the layout.
fn shape(text: &str) -> Vec<String> {
    let measured = |line: &&str| !line.contains('#');
    let blank = |c: char| if c.is_ascii_digit() { '#' } else { c };
    let lines = text.lines().filter(measured);
    lines
        .map(|line| {
            let plain: String = line.chars().map(blank).collect();
            let words: Vec<&str> = plain.split_whitespace().collect();
            words.join(" ")
        })
        .collect()
}

#[test]
fn overhead_seeks_and_transfers_are_printed_as_freebsd_prints_them() {
    let ended = ugeom(&["diskinfo", "-ct", "md:4m"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let text = ended.text();
    begins(&text, "md0\n\t512         \t# sectorsize\n");
    let start = text.find("I/O command overhead:\n").expect("a heading");
    let names: Vec<&str> = text[start..]
        .lines()
        .map(|line| line.split([':', '.']).next().unwrap_or(line).trim())
        .map(|line| line.split("  ").next().unwrap_or(line))
        .collect();
    let seeks = "Full stroke,Half stroke,Quarter stroke,Short forward,Short backward,Seq outer,\
                 Seq inner";
    assert_eq!(names[4], "");
    assert_eq!(names[5], "Seek times");
    assert_eq!(names[6..13].join(","), seeks);
    assert_eq!(
        names[13..].join(","),
        ",Transfer rates,outside,middle,inside,"
    );
    for count in [250, 500, 400, 2048] {
        has(&text, &format!("\t{count:5} iter in "));
    }
    has(&text, "\toutside:         4096 kbytes in ");
    has(&text, "\ttime to read 20480 sectors ");
    has(&text, "\tcalculated command overhead\t\t\t= ");
}

#[test]
fn measured_seeks_are_there_for_programs_and_contain_the_delay_of_a_layer() {
    let json = ugeom(&["diskinfo", "-t", "--json", "md:2m | nop:delay=100us"]);
    let json = json_of(json.text());
    let seeks = json[0]["seeks"].as_array().expect("seeks");
    let counts: Vec<u64> = seeks
        .iter()
        .filter_map(|s| s["requests"].as_u64())
        .collect();
    assert_eq!(counts, [250, 250, 500, 400, 400, 2048, 2048]);
    for seek in seeks {
        let request_ns = seek["request_ns"].as_f64().expect("a time");
        assert!(request_ns >= 100_000.0, "no sooner than the layer answers");
    }
    assert_eq!(json[0]["transfers"][2]["name"], "inside");
    assert_eq!(json[0]["transfers"][2]["bytes_each"], 1 << 20);
    assert_eq!(json[0]["transfers"][2]["requests"], 2);
    assert_eq!(json[0]["complete"], true);
    assert_eq!(json[0]["command_overhead_ns"], serde_json::Value::Null);
    assert_eq!(json[0]["mediasize_bytes"], 2 << 20);
}

#[test]
fn random_reads_and_writes_are_printed_as_freebsd_prints_them() {
    let (_folder, path) = disks::empty_image(1 << 20);
    let target = format!("{}?direct=0", disks::text(&path));
    let ended = ugeom(&["diskinfo", "-i", "--time=5ms", "--seed=1", &target]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let text = ended.text();
    let labels: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Asynchronous random reads:")
        .skip(1)
        .map(|line| line.split(':').next().unwrap_or(line))
        .collect();
    let sizes = "\tsectorsize,\t4 kbytes,\t32 kbytes,\t128 kbytes,\t1024 kbytes,";
    assert_eq!(labels.join(","), sizes);
    assert_eq!(text.matches(" ops in  ").count(), 5);
    let untouched = std::fs::read(&path).expect("the image");
    assert!(untouched.iter().all(|&byte| byte == 0), "only read");

    let ended = ugeom(&["diskinfo", "-wS", "--time=1ns", "--seed=1", &target]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let lines = shape(&ended.text());
    let start = lines
        .iter()
        .position(|line| line == "Synchronous random writes:");
    let writes = &lines[start.expect("a heading") + 1..];
    assert_eq!(writes.len(), 12, "512 bytes to a megabyte: {writes:?}");
    let is_write = |line: &String| line.contains("usec/IO") && line.ends_with("Mbytes/s");
    assert!(writes.iter().all(is_write), "{writes:?}");
    let written = std::fs::read(&path).expect("the image");
    assert_eq!(written.len(), 1 << 20, "as long as before");
    assert!(written.iter().any(|&byte| byte != 0));
}

#[test]
fn writing_takes_both_letters_and_an_empty_disk() {
    for arguments in [["diskinfo", "-S", "md:1m"], ["diskinfo", "-w", "md:1m"]] {
        let refused = ugeom(&arguments).failed(2);
        has(&refused, "required");
    }
    let refused = ugeom(&["diskinfo", "--time=1s", "md:1m"]).failed(2);
    has(&refused, "--time needs a measurement");
    let (_folder, path) = disks::empty_image(4 << 20);
    let image = disks::text(&path);
    ugeom(&["part", "create", "-s", "gpt", &image]).quiet();
    let before = std::fs::read(&path).expect("the image");
    let target = format!("{image}?direct=0");
    let refused = ugeom(&["diskinfo", "-wS", "--time=1ns", &target]).failed(1);
    has(&refused, "carries a GPT (at byte 512)");
    assert!(std::fs::read(&path).expect("the image") == before);
    let options = ["diskinfo", "-wS", "--destroy", "--json", "--time=1ns"];
    let json = ugeom(&[options.as_slice(), &[&target]].concat());
    assert_eq!(json.code, 0, "{}", json.stderr);
    let json = json_of(json.text());
    assert_eq!(json[0]["random_writes"][0]["requests"], 250);
    assert!(std::fs::read(&path).expect("the image") != before);
}

#[test]
fn what_is_too_small_to_be_measured_names_the_size_it_takes() {
    let refused = ugeom(&["diskinfo", "-t", "md:512k"]).failed(1);
    has(
        &refused,
        "it has 524288 bytes, and this takes at least 1048576",
    );
    let refused = ugeom(&["diskinfo", "-t", "md:4m,sectorsize=4k"]).failed(1);
    has(&refused, "at least 8388608");
}

/// The statements of FreeBSD's `part/misc.sh`: partitions append their suffix to the path of the
/// disk, and a disk without one has partitions without one.
#[test]
fn partitions_append_to_the_physical_path() {
    let create = |target: &str, steps: &[&[&str]]| {
        for step in steps {
            let (at, words) = step.split_last().expect("words");
            let on = format!("{target}{at}");
            ugeom(&[&["part"], words, &[on.as_str()]].concat());
        }
    };
    let bsd: &[&[&str]] = &[
        &["create", "-s", "bsd", ""],
        &["add", "-t", "freebsd-ufs", ""],
    ];
    let gpt: &[&[&str]] = &[&["create", "-s", "gpt", ""], &["add", "-t", "efi", ""]];
    let mbr: &[&[&str]] = &[&["create", "-s", "mbr", ""], &["add", "-t", "freebsd", ""]];
    let inside: &[&[&str]] = &[
        &["create", "-s", "bsd", "@s1"],
        &["add", "-t", "freebsd-ufs", "@s1"],
    ];
    let nested = [mbr, inside].concat();
    let logical: &[&[&str]] = &[
        &["create", "-s", "mbr", ""],
        &["add", "-t", "ebr", ""],
        &["create", "-s", "ebr", "@s1"],
        &["add", "-t", "linux-data", "@s1"],
    ];
    for (steps, partition, path) in [
        (bsd, "a", "a"),
        (gpt, "p1", "p1"),
        (mbr, "s1", "s1"),
        (&nested, "s1a", "s1/a"),
        (logical, "s5", "s1/s5"),
    ] {
        let (_folder, disk) = disks::empty_image(4 << 20);
        let disk = disks::text(&disk);
        let nop = format!("{disk} | nop:physpath=some/physical/path");
        create(&nop, steps);
        let own = ugeom(&["diskinfo", "-p", &format!("{nop}@{partition}")]).quiet();
        assert_eq!(own, format!("some/physical/path/{path}\n"));
        let verbose = ugeom(&["diskinfo", "-v", &format!("{nop}@{partition}")]).quiet();
        let line = format!("some/physical/path/{path}\t# Physical path\n");
        has(&verbose, &line);
        for without in [
            format!("{disk}@{partition}"),
            format!("{disk} | nop:physpath=\"\""),
        ] {
            let said = ugeom(&["diskinfo", "-p", &without]).failed(1);
            has(&said, "it has no physical path");
        }
    }
}

/// The statement of FreeBSD's `eli/misc_test.sh`.
#[test]
fn geli_appends_to_the_physical_path() {
    let path = |target: &str| ugeom(&["diskinfo", "-p", target]);
    // The layers below are asked, too, and the disk has none.
    let own = path("md:1m | nop:physpath=some/physical/path | eli:onetime=1");
    assert_eq!(own.text(), "some/physical/path\nsome/physical/path/eli\n");
    for without in ["", " | nop", " | nop:physpath=\"\""] {
        let said = path(&format!("md:1m{without} | eli:onetime=1")).failed(1);
        has(&said, ".eli: it has no physical path");
    }
}
