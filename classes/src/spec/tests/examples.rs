//! Texts and what they mean.

use super::*;
use crate::spec::{StackRef, parse};

/// Checks that the text reads as the target and that the target prints as `canonical`.
fn check(text: &str, expected: &Target, canonical: &str) {
    let read = parse(text, CLASSES).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(&read, expected, "{text}");
    assert_eq!(read.to_string(), canonical, "{text}");
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
        check(path, &target(vec![file(path)]), path);
    }
    check("  disk.img  ", &target(vec![file("disk.img")]), "disk.img");
    check("disk", &target(vec![layer("disk")]), "disk");
    check("disks", &target(vec![file("disks")]), "file:disks");
    check(
        "disk one.img",
        &target(vec![file("disk one.img")]),
        "\"disk one.img\"",
    );
}

#[test]
fn quotes_and_backslashes_take_the_meaning_from_a_character() {
    for text in [
        "\"a|b@c?d:e f\"",
        "a\\|b\\@c\\?d\\:e\\ f",
        "a\"|\"b\\@c\"?d:e \"f",
        "file:a\\|b\\@c\\?d:e f",
    ] {
        check(
            text,
            &target(vec![file("a|b@c?d:e f")]),
            "file:\"a|b@c?d:e f\"",
        );
    }
    check("\"zero\"", &target(vec![file("zero")]), "file:zero");
    check("\\zero", &target(vec![file("zero")]), "file:zero");
    check("\"md:64m\"", &target(vec![file("md:64m")]), "file:md:64m");
    check("\" x \"", &target(vec![file(" x ")]), "file:\" x \"");
    check(
        "/a\\\"b\\\\c",
        &target(vec![file("/a\"b\\c")]),
        "\"/a\\\"b\\\\c\"",
    );
    check(
        "\"/a\\\"b\\\\c\"",
        &target(vec![file("/a\"b\\c")]),
        "\"/a\\\"b\\\\c\"",
    );
}

#[test]
fn file_with_a_colon_is_always_a_path() {
    check("file:zero", &target(vec![file("zero")]), "file:zero");
    check(
        "file: /a/b.img",
        &target(vec![file("/a/b.img")]),
        "/a/b.img",
    );
    check("file:md:64m", &target(vec![file("md:64m")]), "file:md:64m");
    check("file:a,b", &target(vec![file("a,b")]), "file:a,b");
    check(
        "file:x.toml#y",
        &target(vec![file("x.toml#y")]),
        "file:\"x.toml#y\"",
    );
    check("file:x.toml", &target(vec![file("x.toml")]), "file:x.toml");
    check("\"x.toml\"", &target(vec![file("x.toml")]), "file:x.toml");
}

#[test]
fn options_of_a_path_follow_a_question_mark() {
    check(
        "file.img?engine=guasi",
        &target(vec![file("file.img").with_option("engine", "guasi")]),
        "file.img?engine=guasi",
    );
    check(
        "/dev/sdb ? engine = io_uring & direct = 1 @ s1",
        &target(vec![
            file("/dev/sdb")
                .with_option("engine", "io_uring")
                .with_option("direct", "1"),
        ])
        .at("s1"),
        "/dev/sdb?engine=io_uring&direct=1@s1",
    );
    check(
        "file:a?note=\"x&y\"",
        &target(vec![file("a").with_option("note", "x&y")]),
        "file:a?note=\"x&y\"",
    );
}

#[test]
fn a_class_has_values_and_then_options() {
    check("zero", &target(vec![layer("zero")]), "zero");
    check(
        "zero:clear=0",
        &target(vec![layer("zero").with_option("clear", "0")]),
        "zero:clear=0",
    );
    check(
        "md:64m,sectorsize=4096",
        &target(vec![
            layer("md").with("64m").with_option("sectorsize", "4096"),
        ]),
        "md:64m,sectorsize=4096",
    );
    check(
        "disk : seek = 8ms , rate=57m/s",
        &target(vec![
            layer("disk")
                .with_option("seek", "8ms")
                .with_option("rate", "57m/s"),
        ]),
        "disk:seek=8ms,rate=57m/s",
    );
    check(
        "disk:trace=\"/tmp/a, b|c\",note=\"\",x=a=b",
        &target(vec![
            layer("disk")
                .with_option("trace", "/tmp/a, b|c")
                .with_option("note", "")
                .with_option("x", "a=b"),
        ]),
        "disk:trace=\"/tmp/a, b|c\",note=\"\",x=\"a=b\"",
    );
    check(
        "md:\"a=b\",c",
        &target(vec![layer("md").with("a=b").with("c")]),
        "md:\"a=b\",c",
    );
}

#[test]
fn layers_stand_from_the_bottom_up() {
    check(
        "md:64m | nop:delay=1ms | mbr",
        &target(vec![
            layer("md").with("64m"),
            layer("nop").with_option("delay", "1ms"),
            layer("mbr"),
        ]),
        "md:64m | nop:delay=1ms | mbr",
    );
    check(
        "disk.img|nop:delay=1ms,rfail=5%",
        &target(vec![
            file("disk.img"),
            layer("nop")
                .with_option("delay", "1ms")
                .with_option("rfail", "5%"),
        ]),
        "disk.img | nop:delay=1ms,rfail=5%",
    );
}

#[test]
fn an_address_chooses_the_provider_to_use_or_to_build_on() {
    check(
        "disk.img@s1a",
        &target(vec![file("disk.img")]).at("s1a"),
        "disk.img@s1a",
    );
    check(
        "md:64m@md0s1a",
        &target(vec![layer("md").with("64m")]).at("md0s1a"),
        "md:64m@md0s1a",
    );
    check(
        "disk.img @s1 | nop:delay=1ms | bsd @ a",
        &target(vec![
            file("disk.img"),
            layer("nop").with_option("delay", "1ms").on("s1"),
            layer("bsd"),
        ])
        .at("a"),
        "disk.img@s1 | nop:delay=1ms | bsd@a",
    );
}

#[test]
fn the_last_plain_at_sign_begins_the_address() {
    check(
        "a@b.img@s1",
        &target(vec![file("a@b.img")]).at("s1"),
        "\"a@b.img\"@s1",
    );
    check(
        "\"me@home/d.img\"",
        &target(vec![file("me@home/d.img")]),
        "\"me@home/d.img\"",
    );
    check(
        "me\\@home/d.img@s1",
        &target(vec![file("me@home/d.img")]).at("s1"),
        "\"me@home/d.img\"@s1",
    );
    check(
        "md:1m@\"mirror/gm0\"",
        &target(vec![layer("md").with("1m")]).at("mirror/gm0"),
        "md:1m@\"mirror/gm0\"",
    );
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
    check(
        "stacks.toml#slow",
        &reference("stacks.toml", "slow"),
        "stacks.toml#slow",
    );
    check(
        "\"my s.toml\"#a-b",
        &reference("my s.toml", "a-b"),
        "\"my s.toml\"#a-b",
    );
    let carrying = Target {
        layers: vec![layer("nop").on("s1")],
        ..reference("/etc/s.toml", "x")
    };
    check(
        "/etc/s.toml#x@s1|nop@b",
        &carrying.at("b"),
        "/etc/s.toml#x@s1 | nop@b",
    );
    check(
        "disk#1.img",
        &target(vec![file("disk#1.img")]),
        "\"disk#1.img\"",
    );
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
    // What is no class is no URI: nothing else may follow a class's colon.
    assert!(parse("http://host/disk", CLASSES).is_err());
}
