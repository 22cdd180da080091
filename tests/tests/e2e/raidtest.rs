//! `ugeom raidtest`: files, output and refusals of raidtest(8).

use crate::disks;
use crate::run::{UGEOM, command, end, has, json_of, ugeom, wait_for_lock, words_of};
use std::path::Path;

/// A folder with an empty image of 1 MiB and the path of the file of requests beside it.
fn folder() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    std::fs::write(&image, vec![0; 1 << 20]).expect("an image");
    let file = disks::at(&folder, "requests");
    (folder, disks::text(&image), file)
}

fn generate(file: &str, arguments: &[&str]) {
    let mut all = vec!["raidtest", "genfile", "-f", "--seed", "1"];
    all.extend(arguments);
    all.push(file);
    let ended = ugeom(&all);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[test]
fn the_lines_are_those_of_the_original() {
    let (_folder, image, file) = folder();
    let ended = ugeom(&["raidtest", "genfile", "-r", "-s", "1m", "-n", "101", &file]);
    let text = ended.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("File {file} generated."));
    assert_eq!(lines[1], "Number of READ requests: 101.");
    assert_eq!(lines[2], "Number of WRITE requests: 0.");
    assert!(lines[3].starts_with("Number of bytes to transmit: ") && lines[3].ends_with('.'));
    assert_eq!(std::fs::metadata(&file).expect("it").len(), 101 * 16);
    for device in [image.as_str(), "md:1m"] {
        let ended = ugeom(&["raidtest", "test", "-d", device, "-n", "3", &file]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{device}");
        let text = ended.text();
        let test: Vec<&str> = text.lines().collect();
        assert_eq!(test[0], format!("Read 101 requests from {file}."));
        assert_eq!(test[1..4], lines[1..4]);
        assert_eq!(test[4], "Number of processes: 3.");
        let number = |line: &str, name: &str| {
            let number = line.strip_prefix(name).expect(name);
            number.parse::<u64>().expect("a number")
        };
        assert!(number(test[5], "Bytes per second: ") > 0);
        assert!(number(test[6], "Requests per second: ") > 0);
        assert_eq!(test.len(), 7);
    }
}

#[test]
fn all_requests_are_run_by_however_many_workers() {
    let (_folder, image, file) = folder();
    generate(&file, &["-s", "1m", "-n", "10"]);
    // More workers than requests, and a number that does not divide.
    for (device, workers, processes) in [(&image, "4", true), (&image, "12", true)] {
        let ended = ugeom(&[
            "raidtest", "test", "-r", "--json", "-d", device, "-n", workers, &file,
        ]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        let json = json_of(ended.text());
        assert_eq!(
            (&json["requests"], &json["reads"]),
            (&10.into(), &10.into())
        );
        assert_eq!(json["are_processes"], processes);
    }
}

#[test]
fn writes_change_the_image_and_nothing_else() {
    let (_folder, image, file) = folder();
    std::fs::write(&image, vec![7; 1 << 20]).expect("an image");
    generate(&file, &["-w", "-s", "512k", "-n", "5"]);
    let ended = ugeom(&["raidtest", "test", "-d", &image, "-n", "2", &file]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let after = std::fs::read(&image).expect("the image");
    assert!(
        after[..512 << 10].iter().any(|byte| *byte != 7),
        "something was written"
    );
    assert!(
        after[512 << 10..].iter().all(|byte| *byte == 7),
        "only where the file says"
    );
    assert_eq!(ended.stderr, "", "two processes write to one image");
    let all = ["raidtest", "test", "--json", "-d", &image, "-n", "2", &file];
    let json = json_of(ugeom(&all).quiet());
    assert_eq!(
        (&json["are_processes"], &json["writes"]),
        (&true.into(), &5.into())
    );
}

#[test]
fn what_somebody_else_writes_to_is_refused() {
    let (_folder, image, file) = folder();
    generate(&file, &["-w", "-s", "512k", "-n", "5"]);
    // A job that holds the image open for writing until it is told to end.
    let mut holder = command(UGEOM, &["write", &image]);
    let mut child = holder.spawn().expect("it starts");
    let stdin = child.stdin.take().expect("a pipe");
    wait_for_lock(&image);
    let refused = ugeom(&["raidtest", "test", "-d", &image, "-n", "2", &file]);
    drop(stdin);
    assert_eq!(end(child).code, 0);
    assert_eq!(refused.code, 1);
    let error = refused.stderr;
    has(&error, "it is locked");
}

#[test]
fn what_is_on_a_disk_is_not_overwritten_unasked() {
    let (_folder, disk) = disks::partitioned_image(4096, 63, 100);
    let image = disks::text(&disk);
    let (_other, _, file) = folder();
    // Only the first sector, where the table is.
    generate(&file, &["-w", "-s", "512", "-n", "1"]);
    let before = std::fs::read(&disk).expect("the image");
    let ended = ugeom(&["raidtest", "test", "-d", &image, &file]);
    assert_eq!(ended.code, 1);
    has(&ended.stderr, "carries");
    assert!(std::fs::read(&disk).expect("the image") == before);
    let ended = ugeom(&["raidtest", "test", "--destroy", "-d", &image, &file]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(std::fs::read(&disk).expect("the image") != before);
}

#[test]
fn bad_files_and_sizes_are_refused_with_the_reason() {
    let (folder, image, file) = folder();
    let refused = |line: &str, code: i32, part: &str| {
        let said = ugeom(&words_of(&format!("raidtest {line}"))).failed(code);
        assert!(said.contains(part), "{line}: {part}: {said}");
    };
    generate(&file, &["-s", "1g", "-n", "9"]);
    let cut = disks::at(&folder, "cut");
    std::fs::write(&cut, &std::fs::read(&file).expect("it")[..40]).expect("cut");
    for (line, code, part) in [
        (&format!("genfile -s 1m -n 3 {file}")[..], 1, "File exists"),
        ("genfile -s 100 -n 3 new", 2, "has no sector of 512 bytes"),
        ("genfile -s 1m -n 0 new", 2, "write a number from 1 to "),
        (
            &format!("test -r -d {image} {file}"),
            1,
            "reaches past the end",
        ),
        (
            &format!("test -r -w -d {image} {file}"),
            2,
            "cannot be used with",
        ),
        (
            &format!("test -r -d md:1m -n 0 {file}"),
            2,
            "write a number from 1 to ",
        ),
        (&format!("test -r -d mdd:1m {file}"), 2, "mdd"),
        (
            &format!("test -d {image} {cut}"),
            1,
            "request 2 (byte 32) is cut off",
        ),
        (
            &format!("test -r -d {image} /nowhere"),
            1,
            "/nowhere: No such file",
        ),
    ] {
        refused(line, code, part);
    }
    std::fs::write(&cut, b"").expect("empty");
    refused(
        &format!("test -d {image} {cut}"),
        1,
        "there are no requests",
    );
    generate(&file, &["-s", "1m", "-n", "9"]);
    let large = format!("test -r -d md:1m,sectorsize=4k {file}");
    refused(&large, 1, "whole sectors of 4096 bytes");
    assert!(!Path::new("new").exists(), "nothing was made");
}
