//! Texts and their meaning.

use super::*;
use crate::spec::{StackRef, parse};

/// Checks that the text reads as the target and that the target prints as `canonical`.
fn check(text: &str, expected: &Target, canonical: &str) {
    let read = parse(text, CLASSES).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(&read, expected, "{text}");
    assert_eq!(read.to_string(), canonical, "{text}");
}

/// Rows of texts, the layers that they mean, from the bottom up, and how these print.
fn check_layers<const N: usize>(rows: [(&str, Vec<Layer>, &str); N]) {
    for (text, layers, canonical) in rows {
        check(text, &target(layers), canonical);
    }
}

/// The same of one path each.
fn check_paths<const N: usize>(rows: [(&str, &str, &str); N]) {
    check_layers(rows.map(|(text, path, canonical)| (text, vec![file(path)], canonical)));
}

#[test]
fn a_word_that_is_no_class_is_a_path() {
    for path in [
        "disk.img",
        "/dev/sda",
        "./zero",
        "../disk.img",
        "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
        "images/md0",
        "/a/b,c=d.img",
        "b\u{fc}cher.img",
    ] {
        check_paths([(path, path, path)]);
    }
    check_layers([("disk", vec![layer("disk")], "disk")]);
    check_paths([
        ("  disk.img  ", "disk.img", "disk.img"),
        ("disks", "disks", "file:disks"),
        ("disk one.img", "disk one.img", "\"disk one.img\""),
    ]);
}

#[test]
fn quotes_and_backslashes_take_the_meaning_from_a_character() {
    for text in [
        "\"a|b@c?d:e f\"",
        "a\\|b\\@c\\?d\\:e\\ f",
        "a\"|\"b\\@c\"?d:e \"f",
        "file:a\\|b\\@c\\?d:e f",
    ] {
        check_paths([(text, "a|b@c?d:e f", "file:\"a|b@c?d:e f\"")]);
    }
    check_paths([
        ("\"zero\"", "zero", "file:zero"),
        ("\\zero", "zero", "file:zero"),
        ("\"md:64m\"", "md:64m", "file:md:64m"),
        ("\" x \"", " x ", "file:\" x \""),
        ("/a\\\"b\\\\c", "/a\"b\\c", "\"/a\\\"b\\\\c\""),
        ("\"/a\\\"b\\\\c\"", "/a\"b\\c", "\"/a\\\"b\\\\c\""),
    ]);
}

#[test]
fn file_with_a_colon_is_always_a_path() {
    check_paths([
        ("file:zero", "zero", "file:zero"),
        ("file: /a/b.img", "/a/b.img", "/a/b.img"),
        ("file:md:64m", "md:64m", "file:md:64m"),
        ("file:a,b", "a,b", "file:a,b"),
        ("file:x.toml#y", "x.toml#y", "file:\"x.toml#y\""),
        ("file:x.toml", "x.toml", "file:x.toml"),
        ("\"x.toml\"", "x.toml", "file:x.toml"),
    ]);
}

#[test]
fn options_of_a_path_follow_a_question_mark() {
    let with = |path: &str, option: &str, value: &str| file(path).with_option(option, value);
    let of_two = with("/dev/sdb", "engine", "io_uring").with_option("direct", "1");
    check(
        "/dev/sdb ? engine = io_uring & direct = 1 @ s1",
        &target(vec![of_two]).at("s1"),
        "/dev/sdb?engine=io_uring&direct=1@s1",
    );
    for (text, layer) in [
        ("file.img?engine=guasi", with("file.img", "engine", "guasi")),
        ("file:a?note=\"x&y\"", with("a", "note", "x&y")),
    ] {
        check_layers([(text, vec![layer], text)]);
    }
}

#[test]
fn a_class_has_values_and_then_options() {
    let disk = || layer("disk");
    let seek = disk()
        .with_option("seek", "8ms")
        .with_option("rate", "57m/s");
    let trace = disk()
        .with_option("trace", "/tmp/a, b|c")
        .with_option("note", "");
    let traced = "disk:trace=\"/tmp/a, b|c\",note=\"\"";
    let sector = layer("md").with("64m").with_option("sectorsize", "4096");
    check_layers([
        ("zero", vec![layer("zero")], "zero"),
        (
            "zero:clear=0",
            vec![layer("zero").with_option("clear", "0")],
            "zero:clear=0",
        ),
        (
            "md:64m,sectorsize=4096",
            vec![sector],
            "md:64m,sectorsize=4096",
        ),
        (
            "disk : seek = 8ms , rate=57m/s",
            vec![seek],
            "disk:seek=8ms,rate=57m/s",
        ),
        (
            &format!("{traced},x=a=b"),
            vec![trace.with_option("x", "a=b")],
            &format!("{traced},x=\"a=b\""),
        ),
        (
            "md:\"a=b\",c",
            vec![layer("md").with("a=b").with("c")],
            "md:\"a=b\",c",
        ),
    ]);
}

#[test]
fn layers_stand_from_the_bottom_up() {
    let delay = layer("nop").with_option("delay", "1ms");
    let text = "md:64m | nop:delay=1ms | mbr";
    let layers = vec![layer("md").with("64m"), delay.clone(), layer("mbr")];
    check_layers([
        (text, layers, text),
        (
            "disk.img|nop:delay=1ms,rfail=5%",
            vec![file("disk.img"), delay.with_option("rfail", "5%")],
            "disk.img | nop:delay=1ms,rfail=5%",
        ),
    ]);
}

#[test]
fn an_address_chooses_the_provider_to_use_or_to_build_on() {
    let nop = layer("nop").with_option("delay", "1ms").on("s1");
    let layers = vec![file("disk.img"), nop, layer("bsd")];
    for (text, expected, canonical) in [
        (
            "disk.img@s1a",
            target(vec![file("disk.img")]).at("s1a"),
            "disk.img@s1a",
        ),
        (
            "md:64m@md0s1a",
            target(vec![layer("md").with("64m")]).at("md0s1a"),
            "md:64m@md0s1a",
        ),
        (
            "disk.img @s1 | nop:delay=1ms | bsd @ a",
            target(layers).at("a"),
            "disk.img@s1 | nop:delay=1ms | bsd@a",
        ),
    ] {
        check(text, &expected, canonical);
    }
}

#[test]
fn the_last_plain_at_sign_begins_the_address() {
    check_paths([("\"me@home/d.img\"", "me@home/d.img", "\"me@home/d.img\"")]);
    for (text, layer, address, canonical) in [
        ("a@b.img@s1", file("a@b.img"), "s1", "\"a@b.img\"@s1"),
        (
            "me\\@home/d.img@s1",
            file("me@home/d.img"),
            "s1",
            "\"me@home/d.img\"@s1",
        ),
        (
            "md:1m@\"mirror/gm0\"",
            layer("md").with("1m"),
            "mirror/gm0",
            "md:1m@\"mirror/gm0\"",
        ),
    ] {
        check(text, &target(vec![layer]).at(address), canonical);
    }
}

#[test]
fn a_stack_of_a_file_can_carry_layers() {
    let reference = |file: &str, name: &str| Target {
        stack: Some(StackRef {
            file: spanned(file),
            name: spanned(name),
        }),
        ..target(Vec::new())
    };
    let carrying = Target {
        layers: vec![layer("nop").on("s1")],
        ..reference("/etc/s.toml", "x")
    };
    for (text, expected, canonical) in [
        (
            "stacks.toml#slow",
            reference("stacks.toml", "slow"),
            "stacks.toml#slow",
        ),
        (
            "\"my s.toml\"#a-b",
            reference("my s.toml", "a-b"),
            "\"my s.toml\"#a-b",
        ),
        (
            "/etc/s.toml#x@s1|nop@b",
            carrying.at("b"),
            "/etc/s.toml#x@s1 | nop@b",
        ),
        (
            "disk#1.img",
            target(vec![file("disk#1.img")]),
            "\"disk#1.img\"",
        ),
    ] {
        check(text, &expected, canonical);
    }
}

#[test]
fn an_address_finds_a_full_name_before_the_end_of_a_name() {
    let names = ["md0", "md0s1", "md0s1a", "s1"];
    let find = |text: &str, names: &[&'static str]| {
        address(text).and_then(|address| address.find("md0", names.iter().copied()))
    };
    assert_eq!(find("s1a", &names), Some("md0s1a"));
    assert_eq!(find("md0s1a", &names), Some("md0s1a"));
    assert_eq!(find("md0", &names), Some("md0"));
    assert_eq!(find("s1", &names), Some("s1"));
    assert_eq!(find("s1", &names[..3]), Some("md0s1"));
    assert_eq!(find("s2", &names), None);
    assert_eq!(find("a", &names), None);
}

#[test]
fn a_uri_is_a_layer_of_its_class() {
    for (text, uri, options) in [
        ("nbd://host/disk", "nbd://host/disk", 0),
        ("nbd://[::1]:7/a?timeout=5s", "nbd://[::1]:7/a", 1),
        ("nbd+unix:///a?socket=/x&retry=1s", "nbd+unix:///a", 2),
        ("nbds://host/disk", "nbds://host/disk", 0),
        ("nbds+unix:///a?socket=/x", "nbds+unix:///a", 1),
    ] {
        let target = parse(text, CLASSES).unwrap();
        let layer = &target.layers[0];
        assert_eq!(
            (layer.class.value.as_str(), layer.positional.len()),
            ("nbd", 1)
        );
        assert_eq!(
            (layer.positional[0].value.as_str(), layer.options.len()),
            (uri, options)
        );
    }
    let target = parse("nbd:\"nbd://h/x\",timeout=5s | nop", CLASSES).unwrap();
    assert_eq!(target.layers[0].positional[0].value, "nbd://h/x");
    let quoted = parse("md:\"//x\"", CLASSES).unwrap();
    assert_eq!(quoted.layers[0].positional[0].value, "//x");
    assert_eq!(quoted.to_string(), "md:\"//x\"");
    // A URI begins with a class: nothing else may follow a class's colon.
    assert!(parse("http://host/disk", CLASSES).is_err());
}
