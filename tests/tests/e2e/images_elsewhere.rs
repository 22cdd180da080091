//! Images of virtual machines that are not all in one regular file: on a block device, and with
//! their data in another file.

use crate::run::{has, other, ugeom, ugeom_with};
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
