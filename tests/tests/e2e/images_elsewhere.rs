//! Images of virtual machines that are not all in one regular file: on a block device, and with
//! their data in another file.

use crate::run::{command, has, other, run, ugeom, ugeom_with, words_of};
use crate::serve::noise;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;
use ugeom_testkit::{LoopDevice, program};

const SIZE: usize = 8 << 20;

/// A folder with `raw.img`, full of data; nothing without qemu's programs.
fn folder() -> Option<(TempDir, Vec<u8>)> {
    program("qemu-img")?;
    program("qemu-nbd")?;
    let folder = tempfile::tempdir().expect("a folder");
    let disk = noise(4, SIZE);
    std::fs::write(folder.path().join("raw.img"), &disk).expect("a disk");
    Some((folder, disk))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn an_image_on_a_block_device_is_opened_where_its_format_is_given() {
    let Some((folder, disk)) = folder() else { return };
    let raw = text(&folder.path().join("raw.img"));
    for (format, of_qemu) in [
        ("qcow2", "qcow2"),
        ("vdi", "vdi"),
        ("vhd", "vpc"),
        ("vhdx", "vhdx"),
    ] {
        let file = folder.path().join(format);
        let image = text(&file);
        other(
            "qemu-img",
            &["convert", "-f", "raw", "-O", of_qemu, &raw, &image],
        );
        let length = std::fs::metadata(&file).expect("an image").len();
        let larger = std::fs::File::options()
            .write(true)
            .open(&file)
            .expect("the image");
        larger
            .set_len(length.next_multiple_of(1 << 20) + (1 << 20))
            .expect("room");
        let Some(device) = LoopDevice::over(&file, &[]) else { return };
        let target = format!("{}?format={format}", device.text());
        let read = ugeom(&["read", &target, "--length", "8m"]);
        assert_eq!(read.code, 0, "{format}: {}", read.stderr);
        assert_eq!(read.stdout, disk, "{format}");
        let write = ugeom_with(
            &["write", &target, "--offset", "1m", "--destroy"],
            b"a new sector",
        );
        assert_eq!(write.code, 0, "{format}: {}", write.stderr);
        let read = ugeom(&["read", &target, "--offset", "1m", "--length", "12"]);
        assert_eq!(read.stdout, b"a new sector", "{format}");
        // The device's own bytes are the image.
        let error = ugeom_with(&["write", &device.text()], b"x").failed(1);
        has(&error, "nothing was written");
        drop(device);
        if format == "qcow2" {
            other("qemu-img", &["check", "-q", &image]);
        }
    }
}

#[test]
fn the_data_file_of_a_qcow2_image_is_followed_in_its_folder_only() {
    let Some((folder, disk)) = folder() else { return };
    let place = |name: &str| text(&folder.path().join(name));
    for (image, data, options) in [
        ("plain.qcow2", "plain.data", ""),
        ("raw.qcow2", "raw.data", ",data_file_raw=on"),
    ] {
        let (image, options) = (place(image), format!("data_file={}{options}", place(data)));
        let create = ["create", "-q", "-f", "qcow2", "-o", &options, &image, "8M"];
        other("qemu-img", &create);
        let raw = place("raw.img");
        other(
            "qemu-img",
            &["convert", "-n", "-f", "raw", "-O", "qcow2", &raw, &image],
        );
        let read = ugeom(&["read", &image]);
        assert_eq!(read.code, 0, "{image}: {}", read.stderr);
        assert_eq!(read.stdout, disk, "{image}");
        has(&read.stderr, &format!("has its data in {}", place(data)));
        let write = ugeom_with(
            &["write", &image, "--offset", "64k", "--destroy"],
            b"a new sector",
        );
        assert_eq!(write.code, 0, "{image}: {}", write.stderr);
        other("qemu-img", &["check", "-q", &image]);
        let out = place("out.img");
        other("qemu-img", &["convert", "-O", "raw", &image, &out]);
        let mut expected = disk.clone();
        expected[64 << 10..][..12].copy_from_slice(b"a new sector");
        assert_eq!(std::fs::read(out).expect("a copy"), expected, "{image}");
    }
    // The same file, seen through a link from another folder.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let secret = elsewhere.path().join("secret");
    std::fs::rename(place("plain.data"), &secret).expect("moved");
    symlink(&secret, place("plain.data")).expect("a link");
    let image = place("plain.qcow2");
    let error = ugeom(&["read", &image]).failed(1);
    has(&error, "its data file");
    has(&error, "not in its directory");
    assert_eq!(ugeom(&["read", &format!("{image}?backing=any")]).code, 0);
    std::fs::remove_file(place("plain.data")).expect("removed");
    has(&ugeom(&["read", &image]).failed(1), "No such file");
}

/// `base.vmdk`, `middle.vmdk` on it and `top.vmdk` on that, each with data of its own.
fn snapshots(folder: &TempDir) -> impl Fn(&str) -> String {
    let folder = folder.path().to_owned();
    let place = move |name: &str| text(&folder.join(name));
    other(
        "qemu-img",
        &[
            "convert",
            "-f",
            "raw",
            "-O",
            "vmdk",
            &place("raw.img"),
            &place("base.vmdk"),
        ],
    );
    for (number, name, below) in [
        ("1", "middle.vmdk", "base.vmdk"),
        ("2", "top.vmdk", "middle.vmdk"),
    ] {
        let image = place(name);
        let create = [
            "create", "-q", "-f", "vmdk", "-F", "vmdk", "-b", below, &image,
        ];
        other("qemu-img", &create);
        let write = format!("write -P {number} {number}m 192k");
        other("qemu-io", &["-f", "vmdk", "-c", &write, &image]);
    }
    place
}

#[test]
fn a_snapshot_of_vmware_is_read_and_written_with_its_parents() {
    let Some((folder, mut disk)) = folder() else { return };
    let place = snapshots(&folder);
    for number in [1, 2] {
        disk[number << 20..][..192 << 10].fill(number as u8);
    }
    let top = place("top.vmdk");
    let read = ugeom(&["read", &top]);
    assert_eq!(read.code, 0, "{}", read.stderr);
    assert!(read.stdout == disk, "the data of all three images");
    for parent in ["middle.vmdk", "base.vmdk"] {
        has(&read.stderr, &format!("based on {}", place(parent)));
    }
    let parents = || ["base.vmdk", "middle.vmdk"].map(|name| std::fs::read(place(name)).unwrap());
    let before = parents();
    let write = ugeom_with(
        &["write", &top, "--offset", "64k", "--destroy"],
        b"a new sector",
    );
    assert_eq!(write.code, 0, "{}", write.stderr);
    assert!(before == parents(), "parents stay as they are");
    other(
        "qemu-img",
        &["convert", "-O", "raw", &top, &place("out.img")],
    );
    disk[64 << 10..][..12].copy_from_slice(b"a new sector");
    assert!(std::fs::read(place("out.img")).expect("a copy") == disk);
}

#[test]
fn a_snapshot_is_refused_without_the_parent_that_it_was_made_on() {
    let Some((folder, _)) = folder() else { return };
    let place = snapshots(&folder);
    let top = place("top.vmdk");
    let refused = |target: &str, why: &str| has(&ugeom(&["read", target]).failed(1), why);
    let descriptor = |name: &str, from: &str, to: &str| {
        assert_eq!(from.len(), to.len(), "the descriptor keeps its length");
        let mut image = std::fs::read(place(name)).expect("an image");
        let found = image
            .windows(from.len())
            .position(|it| it == from.as_bytes());
        image[found.expect("the text")..][..from.len()].copy_from_slice(to.as_bytes());
        std::fs::write(place(name), image).expect("the image");
    };
    // Written to after the snapshot.
    other(
        "qemu-io",
        &[
            "-f",
            "vmdk",
            "-c",
            "write -P 9 0 64k",
            &place("middle.vmdk"),
        ],
    );
    refused(&top, "has changed since: its CID is ");
    let error = ugeom(&["read", &place("middle.vmdk")]);
    assert_eq!(error.code, 0, "{}", error.stderr);
    // A name that leads to itself, to nothing, to what is no image, to another folder.
    descriptor("middle.vmdk", "Hint=\"base.vmdk\"", "Hint=\"./no.vmdk\"");
    refused(&place("middle.vmdk"), "cannot be opened: No such file");
    std::fs::copy(place("raw.img"), place("no.vmdk")).expect("a copy");
    refused(&place("middle.vmdk"), "is no vmdk image");
    std::fs::remove_file(place("no.vmdk")).expect("removed");
    symlink(place("middle.vmdk"), place("no.vmdk")).expect("a link");
    refused(&place("middle.vmdk"), "form a loop");
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::rename(place("base.vmdk"), elsewhere.path().join("b")).expect("moved");
    std::fs::remove_file(place("no.vmdk")).expect("removed");
    symlink(elsewhere.path().join("b"), place("no.vmdk")).expect("a link");
    refused(
        &place("middle.vmdk"),
        "not in its directory; backing=any allows it",
    );
    let any = format!("{}?backing=any", place("middle.vmdk"));
    assert_eq!(ugeom(&["read", &any]).code, 0);
}

/// `qemu-img` in that folder.
fn img(folder: &TempDir, line: &str) {
    let mut command = command("qemu-img", &words_of(line));
    command.current_dir(folder.path());
    let ended = run(command, b"");
    assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
}

/// QED on qcow on qcow2 on a plain disk, each with data of its own.
#[test]
fn images_of_qed_and_qcow_are_read_with_those_that_they_are_based_on() {
    let Some((folder, disk)) = folder() else { return };
    img(&folder, "create -f qcow2 -b raw.img -F raw low.qcow2");
    img(&folder, "create -f qcow -b low.qcow2 -F qcow2 middle.qcow");
    img(&folder, "create -f qed -b middle.qcow -F qcow top.qed");
    let mut expected = disk;
    let layers = [
        ("low.qcow2", "qcow2", 1),
        ("middle.qcow", "qcow", 2),
        ("top.qed", "qed", 3),
    ];
    for (name, format, number) in layers {
        let write = format!("write -P {number} {number}m 64k");
        let mut io = command("qemu-io", &["-f", format, "-c", &write, name]);
        io.current_dir(folder.path());
        assert_eq!(run(io, b"").code, 0, "{name}");
        expected[number << 20..][..64 << 10].fill(number as u8);
    }
    let image = text(&folder.path().join("top.qed"));
    let read = ugeom(&["read", &image]);
    assert_eq!(read.code, 0, "{}", read.stderr);
    assert!(read.stdout == expected);
    for named in ["middle.qcow (qcow)", "low.qcow2 (qcow2)", "raw.img (raw)"] {
        has(&read.stderr, named);
    }
    has(
        &ugeom_with(&["write", &image], b"x").failed(1),
        "a qed image can only be read",
    );
    // A plain disk that begins as an image does stays one.
    let mut plain = vec![0; SIZE];
    plain[..512].copy_from_slice(&std::fs::read(folder.path().join("low.qcow2")).unwrap()[..512]);
    std::fs::write(folder.path().join("plain.img"), &plain).expect("a disk");
    img(&folder, "create -f qed -b plain.img -F raw marked.qed");
    let read = ugeom(&["read", &text(&folder.path().join("marked.qed"))]);
    assert!(read.stdout == plain, "{}", read.stderr);
}

/// The rule of backing files: nothing outside the folder, no protocols, no loops.
#[test]
fn a_name_in_an_image_of_qed_or_qcow_reaches_no_file_elsewhere() {
    let Some((folder, disk)) = folder() else { return };
    std::fs::create_dir(folder.path().join("in")).expect("a folder");
    for format in ["qed", "qcow"] {
        let name = format!("in/top.{format}");
        img(
            &folder,
            &format!("create -f {format} -b ../raw.img -F raw {name}"),
        );
        let image = text(&folder.path().join(&name));
        has(
            &ugeom(&["read", &image]).failed(1),
            "is not in its directory; backing=any",
        );
        let any = ugeom(&["read", &format!("{image}?backing=any")]);
        assert!(any.stdout == disk, "{}", any.stderr);
        // A name of the same length in its place.
        let bytes = std::fs::read(&image).expect("the image");
        let at = bytes
            .windows(10)
            .position(|it| it == b"../raw.img")
            .expect("the name");
        let renamed = |to: &[u8; 10]| {
            let mut bytes = bytes.clone();
            bytes[at..at + 10].copy_from_slice(to);
            std::fs::write(&image, bytes).expect("the image");
            ugeom(&["read", &image]).failed(1)
        };
        has(&renamed(b"nbd:unix:x"), "is no name of a file");
        has(&renamed(b"no/raw.img"), "cannot be opened");
        let mut cut = bytes.clone();
        cut.truncate(at + 4);
        std::fs::write(&image, cut).expect("the image");
        ugeom(&["read", &image]).failed(1);
    }
}
