//! `ugeom show`: the tree for people, and its forms for programs.

use crate::disks;
use crate::run::{UGEOM, command, has, json_of, other, run, ugeom};
use serde_json::Value;
use std::collections::BTreeSet;
use ugeom_testkit::ends;

#[test]
fn a_disk_that_carries_two_tables_shows_both_and_marks_what_is_cut_off() {
    let Some(disk) = disks::real("flat.da1") else { return };
    let expected = "\
NAME         CLASS  SIZE    START   SECTORS  SECSIZE  MODE    TYPE              LABEL  CONTENT
md34         FILE    37K                 74      512  r0w0e0  image                    MBR, BSD
├─md34s1     MBR     17G       63  35873082      512  r0w0e0  freebsd [active]         MBR, BSD
│ │ ! reaches 18367012352 bytes past the end of md34
│ ├─md34s1b  BSD    400M   819200    819200      512  r0w0e0  freebsd-swap
│ │   ! reaches 838855168 bytes past the end of md34
│ ├─md34s1c  BSD     17G        0  35873082      512  r0w0e0  !0                       MBR, BSD
│ │   ! reaches 18367012352 bytes past the end of md34
│ ├─md34s1e  BSD    400M        0    819200      512  r0w0e0  freebsd-ufs              MBR, BSD
│ │   ! reaches 419424768 bytes past the end of md34
│ ├─md34s1f  BSD    1.0G  1638400   2097152      512  r0w0e0  freebsd-ufs
│ │   ! reaches 1912596992 bytes past the end of md34
│ └─md34s1g  BSD     15G  3735552  32137530      512  r0w0e0  freebsd-ufs
│     ! reaches 18367012352 bytes past the end of md34
├─md34a      BSD     36M        0     73728      512  r0w0e0  freebsd-ufs              MBR, BSD
│   ! reaches 37710848 bytes past the end of md34
├─md34b      BSD    256M    73728    524288      512  r0w0e0  freebsd-swap
│   ! reaches 306146304 bytes past the end of md34
├─md34c      BSD    7.8G        0  16450560      512  r0w0e0  !0                       MBR, BSD
│   ! reaches 8422648832 bytes past the end of md34
└─md34h      BSD    7.6G   598016  15851520      512  r0w0e0  freebsd-ufs
    ! reaches 8422124544 bytes past the end of md34
";
    assert_eq!(ugeom(&["show", &disk.target]).quiet(), expected);
    let slice = ugeom(&["show", &format!("{}@s1", disk.target)]).quiet();
    assert_eq!(slice.lines().count(), 13, "{slice}");
    assert!(
        slice
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("md34s1 ")),
        "{slice}"
    );
    let bare = ugeom(&["show", "--no-taste", &disk.target]).quiet();
    assert_eq!(bare.lines().count(), 2, "{bare}");
}

#[test]
fn without_a_locale_the_tree_is_drawn_in_ascii() {
    let mut ascii = command(UGEOM, &["show", "md:1m | nop"]);
    ascii.env("LC_ALL", "C");
    let tree = run(ascii, b"").quiet();
    assert!(tree.is_ascii() && tree.contains("\n`-md0.nop "), "{tree}");
}

/// All objects with a `name` and a `mediasize_bytes` below `value`.
fn providers<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| providers(value, found)),
        Value::Object(fields) => {
            if fields.contains_key("mediasize_bytes") {
                found.push(value);
            }
            fields.values().for_each(|value| providers(value, found));
        }
        _ => {}
    }
}

#[test]
fn the_json_has_every_provider_of_the_recorded_listing() {
    let Some(disk) = disks::real("msdos.ext") else { return };
    let json = json_of(ugeom(&["show", "--json", &disk.target]).quiet());
    let mut found = Vec::new();
    providers(&json, &mut found);
    let shown: BTreeSet<String> = found
        .iter()
        .map(|p| {
            format!(
                "/dev/{}\t{}",
                p["name"].as_str().unwrap_or(""),
                p["mediasize_bytes"]
            )
        })
        .collect();
    let recorded = disk.listing.lines().map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        format!("{}\t{}", fields[0], fields[2])
    });
    assert_eq!(shown, recorded.collect());
    assert_eq!(json["providers"][0]["geoms"][0]["class"], "MBR");
    assert_eq!(json["providers"][0]["geoms"][0]["config"]["scheme"], "MBR");
}

const COUNT_XML: &str = "\
import sys, xml.etree.ElementTree as tree
mesh = tree.fromstring(sys.stdin.read())
assert mesh.tag == 'mesh'
geoms = {g.get('id') for c in mesh for g in c.findall('geom')}
for provider in mesh.iter('provider'):
    if provider.get('id'):
        assert provider.find('geom').get('ref') in geoms
        assert int(provider.findtext('mediasize')) > 0
        print(provider.findtext('name'))
";

#[test]
fn the_xml_is_well_formed_and_its_references_hold() {
    let Some(python) = ugeom_testkit::program("python3") else { return };
    let Some(disk) = disks::real("critter.ad0") else { return };
    let xml = ugeom(&["show", "--xml", &disk.target]);
    let names = run(command(python, &["-c", COUNT_XML]), &xml.stdout).quiet();
    assert_eq!(
        names.lines().count(),
        disk.listing.lines().count(),
        "{names}"
    );
}

#[test]
fn the_dot_graph_draws_no_edge_to_nowhere() {
    let Some(disk) = disks::real("typo.ad0") else { return };
    let dot = ugeom(&["show", "--dot", &disk.target]).text();
    let body = dot
        .strip_prefix("digraph geom {\n")
        .and_then(|dot| dot.strip_suffix("}\n"));
    let (mut nodes, mut edges) = (BTreeSet::new(), Vec::new());
    for line in body.expect("a graph").lines() {
        let line = line.strip_suffix(';').expect("a statement");
        match (line.split_once(" -> "), line.split_once(' ')) {
            (Some(edge), _) => edges.push(edge),
            (None, Some((node, label))) => {
                assert!(label.starts_with('[') && label.ends_with("\"]"), "{line}");
                nodes.insert(node);
            }
            (None, None) => panic!("{line}"),
        }
    }
    let hexagons = dot.matches("shape=hexagon").count();
    assert_eq!(hexagons, disk.listing.lines().count());
    assert!(edges.len() > hexagons);
    for (from, to) in edges {
        assert!(nodes.contains(from) && nodes.contains(to), "{from} -> {to}");
    }
}

#[test]
fn the_engine_of_a_file_is_named_with_the_reason() {
    let (_folder, path) = disks::empty_image(1 << 20);
    let path = disks::text(&path);
    let shown = ugeom(&["show", "-v", &format!("{path}?engine=sync")]).quiet();
    has(&shown, "engine: sync: asked for");
    let shown = ugeom(&["show", "-v", &path]).quiet();
    let lines = shown.lines().filter(|line| line.contains("engine: "));
    let allowed = [
        "engine: io_uring: the kernel allows it",
        "engine: guasi: io_uring cannot",
    ];
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 1, "{shown}");
    assert!(
        allowed.iter().any(|text| lines[0].contains(text)),
        "{shown}"
    );
}

#[test]
fn a_large_sparse_disk_with_128_partitions_is_shown_whole() {
    let Some(sgdisk) = ugeom_testkit::program("sgdisk") else { return };
    let (_folder, path) = disks::empty_image(1 << 40);
    let path = disks::text(&path);
    let mut arguments: Vec<String> = Vec::new();
    for number in 1..=128_u64 {
        let start = 2048 * number;
        arguments.push(format!("--new={number}:{start}:{}", start + 2047));
    }
    arguments.extend(["--change-name=7:root".to_owned(), path.clone()]);
    other(sgdisk, &arguments);
    let tree = ugeom(&["show", &path]).quiet();
    assert_eq!(tree.lines().count(), 130);
    let seventh = tree.lines().nth(8).expect("partition 7");
    has(&seventh, "disk.imgp7 ");
    ends(&seventh, "  root");
}

#[test]
fn the_kernels_devices_are_those_of_diskstats() {
    let tree = ugeom(&["show", "--kernel"]).quiet();
    assert!(tree.starts_with("NAME "), "{tree}");
    let shown: Value =
        serde_json::from_str(&ugeom(&["show", "--kernel", "--json"]).quiet()).unwrap();
    let mut found = Vec::new();
    providers(&shown, &mut found);
    let stats = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
    for line in stats.lines().filter(|line| !line.contains(" loop")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A device that was never read may have no media.
        if words.get(3) != Some(&"0") {
            let is_it = |provider: &&Value| provider["name"] == words[2];
            assert_eq!(found.iter().copied().filter(is_it).count(), 1, "{line}");
        }
    }
    let error = ugeom(&["show", "--kernel", "/proc/version"]).failed(2);
    has(&error, "no block device of this kernel");
}
