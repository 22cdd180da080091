//! Images that are removed, replaced or moved while ugeom writes to them.

use crate::disks;
use crate::run::{Ended, UGEOM, command, has, run, tool};
use std::path::Path;

/// Runs a script in a folder with `a.img`, an image of 1 MiB in that format, and `b.img`.
fn beside(folder: &Path, format: &str, script: &str) -> Ended {
    let make = match format {
        "raw" => "truncate -s 1M a.img b.img".to_owned(),
        _ => format!("for it in a.img b.img; do qemu-img create -q -f {format} $it 1M; done"),
    };
    let lines = format!(
        "cd '{}' && rm -f * && {make} && {script}",
        disks::text(folder)
    );
    run(command("sh", &["-c", &lines]), b"")
}

const WRITE: &str = "printf changed | $UGEOM write $uri";

/// What happens to the file, whether the server writes, the exit code, and the messages.
const CASES: [(&str, bool, i32, &[&str]); 5] = [
    (
        "rm a.img",
        true,
        1,
        &["`cp /proc/", "a.img: data is lost: the file was removed"],
    ),
    (
        "mv b.img a.img",
        true,
        1,
        &["a.img: data is lost: the file was removed"],
    ),
    (
        "mv a.img moved",
        true,
        0,
        &["it was moved, and takes all writes where it is now"],
    ),
    ("rm a.img", false, 0, &[]),
    ("true", true, 0, &[]),
];

fn served(format: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    for (change, writes, code, messages) in CASES {
        let write = if writes {
            WRITE.replace("$UGEOM", UGEOM)
        } else {
            "true".to_owned()
        };
        let ended = beside(
            folder.path(),
            format,
            &format!("{UGEOM} serve a.img --rw --run '{change}; {write}'"),
        );
        assert_eq!(ended.code, code, "{format}, {change}: {}", ended.stderr);
        for message in messages {
            has(&ended.stderr, message);
        }
        if messages.is_empty() {
            assert!(!ended.stderr.contains("removed"), "{}", ended.stderr);
        }
        if change == "mv a.img moved" && format == "raw" {
            let moved = std::fs::read(folder.path().join("moved")).expect("the image");
            assert!(moved.starts_with(b"changed"));
        }
    }
}

/// `cp NEW IMAGE` and `> IMAGE` cut the image that the server has open.
#[test]
fn a_server_reports_that_its_image_was_cut_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = "printf changed | $UGEOM write --offset 512k".replace("$UGEOM", UGEOM);
    for (change, code) in [("truncate -s 256k a.img", 1), ("truncate -s 2M a.img", 0)] {
        let script = format!("{write} $uri && {change}; {write} $uri");
        let line = format!("{UGEOM} serve a.img --rw --run '{script}; true'");
        let ended = beside(folder.path(), "raw", &line);
        assert_eq!(ended.code, code, "{change}: {}", ended.stderr);
        if code == 1 {
            has(&ended.stderr, "has cut the file short");
            has(
                &ended.stderr,
                "a.img: data is lost: another program has cut",
            );
        }
    }
}

#[test]
fn a_server_reports_that_its_image_is_gone() {
    served("raw");
}

#[test]
fn images_of_virtual_machines_are_watched_too() {
    if tool("qemu-img").is_none() || tool("qemu-nbd").is_none() {
        return;
    }
    served("qcow2");
    served("vmdk");
}

#[test]
fn a_write_to_a_file_that_is_removed_meanwhile_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    // The second piece comes when the image is open: a FIFO passes what is read only.
    let script = "mkfifo pipe; UGEOM write a.img < pipe & exec 3> pipe; \
                  head -c 524288 /dev/zero >&3; rm a.img; echo x >&3; exec 3>&-; \
                  wait $!";
    let ended = beside(folder.path(), "raw", &script.replace("UGEOM", UGEOM));
    let text = ended.failed(1);
    has(&text, "a.img: data is lost: the file was removed");
}
