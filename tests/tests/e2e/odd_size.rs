//! Images that are no whole number of sectors, over NBD and as files: no byte is lost or made up.

use crate::disks;
use crate::files::Mounted;
use crate::run::{UGEOM, command, has, other, ugeom, ugeom_with};
use crate::serve::{Served, noise};
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tempfile::TempDir;
use ugeom_testkit::{Server, program, skip};

/// A sparse image as libnbd's test of nbdcopy makes it: 100 times a sector of data and one of
/// zeroes, 9,973 bytes apart.
fn image() -> (TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("odd.img");
    let file = std::fs::File::create(&path).expect("an image");
    for at in 1..=100_u64 {
        let data = noise(at, 512);
        file.write_all_at(&data, at * 9973).expect("data");
        file.write_all_at(&[0; 512], at * 9973 + 512)
            .expect("zeroes");
    }
    let bytes = std::fs::read(&path).expect("the image");
    assert_eq!(bytes.len(), 998_324);
    (folder, path, bytes)
}

#[test]
fn an_odd_image_is_copied_over_nbd_as_it_is() {
    let Some(nbdcopy) = program("nbdcopy") else { return };
    let (folder, path, bytes) = image();
    let copy = folder.path().join("copy");
    let served = Served::start(folder, &disks::text(&path), &[]);
    for options in [&[][..], &["--request-size=1048576"], &["--synchronous"]] {
        let copied = disks::text(&copy);
        other(&nbdcopy, &[options, &[&served.uri, &copied]].concat());
        assert!(
            std::fs::read(&copy).expect("a copy") == bytes,
            "{options:?}"
        );
        std::fs::remove_file(&copy).expect("no copy");
    }
}

#[test]
fn an_odd_export_is_padded_by_the_class_nbd_and_served_as_it_is() {
    let Some(nbdcopy) = program("nbdcopy") else { return };
    let (folder, path, bytes) = image();
    let copy = disks::at(&folder, "copy");
    let served = Served::start(folder, &disks::text(&path), &[]);
    let target = format!("{} | cache:1m | nop", served.uri);
    let read = ugeom(&["read", &target]);
    has(&read.stderr, "padded with 76 zero bytes");
    let mut padded = bytes.clone();
    padded.resize(998_400, 0);
    assert!(read.stdout == padded);
    let run_copy = format!("{} \"$uri\" {copy}", disks::text(&nbdcopy));
    let ended = ugeom(&["serve", &target, "--run", &run_copy]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(std::fs::read(&copy).expect("a copy") == bytes);
}

#[test]
fn layers_that_keep_the_size_serve_an_odd_image_as_it_is() {
    let Some(nbdcopy) = program("nbdcopy") else { return };
    let (folder, path, bytes) = image();
    let copy = disks::at(&folder, "copy");
    let run_copy = format!("{} \"$uri\" {copy}", disks::text(&nbdcopy));
    for layer in ["nop", "cache:1m", "delayed", "crash"] {
        let target = format!("{} | {layer}", disks::text(&path));
        let ended = ugeom(&["serve", &target, "--run", &run_copy]);
        assert_eq!(ended.code, 0, "{layer}: {}", ended.stderr);
        let copied = std::fs::read(&copy).expect("a copy");
        assert!(copied == bytes, "{layer}: {} bytes", copied.len());
    }
}

#[test]
fn an_odd_image_is_a_file_of_its_own_size() {
    let (folder, path, bytes) = image();
    let target = disks::text(&path);
    let mount = folder.path().join("mount");
    for transport in ["auto", "classic"] {
        std::fs::create_dir(&mount).expect("a directory");
        let copy = "cat \"$mnt/odd.img\" && stat -c %s \"$mnt/odd.img\"";
        let mut all = vec!["serve", &target, "--fuse-transport", transport, "--fuse"];
        let place = disks::text(&mount);
        all.extend([&place, "--run", copy]);
        let ended = ugeom(&all);
        if crate::files::lacks_mounts(&ended.stderr) {
            return skip(ended.stderr.trim());
        }
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let mut expected = bytes.clone();
        expected.extend(b"998324\n");
        assert!(ended.stdout == expected, "{transport}");
        std::fs::remove_dir(&mount).expect("it is free");
    }
}

/// Writes stay within the image, which keeps its size; every byte of it can be written.
#[test]
fn an_odd_image_is_written_to_its_last_byte() {
    let Some(nbdcopy) = program("nbdcopy") else { return };
    let (folder, path, _) = image();
    let (image, upstream) = (disks::text(&path), folder.path().join("upstream"));
    std::fs::write(&upstream, noise(1, 998_324)).expect("an image");
    let other_folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(other_folder, &disks::text(&upstream), &["--rw"]);
    let source = disks::at(&folder, "source");
    let copy = format!("{} --flush {source} \"$uri\"", disks::text(&nbdcopy));
    let options = [
        "engine=sync",
        "engine=guasi",
        "engine=libaio",
        "engine=mmap",
    ];
    let mut targets: Vec<(String, &PathBuf)> = options
        .map(|option| (format!("{image}?{option}"), &path))
        .to_vec();
    targets.extend([
        (image.clone(), &path),
        (format!("{image}?sectorsize=4096"), &path),
        (format!("{image} | cache:256k,write=back | nop"), &path),
        (served.uri.clone(), &upstream),
        (format!("{}&connections=1", served.uri), &upstream),
        (format!("{} | cache:256k,write=back", served.uri), &upstream),
    ]);
    let data = [noise(2, 998_324), vec![0; 998_324], noise(3, 998_324)];
    for (target, image) in &targets {
        for data in &data {
            std::fs::write(&source, data).expect("a source");
            let ended = ugeom(&["serve", target, "--rw", "--run", &copy]);
            assert_eq!(ended.code, 0, "{target}: {}", ended.stderr);
            let found = std::fs::read(image).expect("the image");
            assert!(found == *data, "{target}: {} bytes", found.len());
        }
    }
}

#[test]
fn nothing_is_written_behind_the_last_byte_of_an_odd_image() {
    let (_folder, path, mut bytes) = image();
    let image = disks::text(&path);
    // The last sector is padded with 76 bytes.
    let write = |data: &[u8]| ugeom_with(&["write", &image, "--offset", "997888"], data);
    let mut sector = vec![7; 512];
    let refused = write(&sector);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    has(
        &refused.stderr,
        "only zeroes can be written behind its last byte",
    );
    assert!(std::fs::read(&path).expect("the image") == bytes);
    sector[512 - 76..].fill(0);
    let written = write(&sector);
    assert_eq!(written.code, 0, "{}", written.stderr);
    bytes[997_888..].fill(7);
    assert!(std::fs::read(&path).expect("the image") == bytes);
}

#[test]
fn an_odd_file_of_a_mount_is_written_as_others_are() {
    let (folder, path, bytes) = image();
    for transport in ["classic", "auto"] {
        let arguments = ["--rw", "--fuse-transport", transport];
        let lent = tempfile::tempdir().expect("a folder");
        let Some(served) = Mounted::start(lent, &disks::text(&path), &arguments) else { return };
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(served.file("odd.img"))
            .expect("an open file");
        let end = bytes.len() as u64;
        file.write_all_at(&[9; 1000], end - 1000).expect("a write");
        assert!(file.write_at(&[9; 2], end).is_err(), "behind the end");
        file.sync_all().expect("flushed");
        let mut expected = bytes.clone();
        expected[998_324 - 1000..].fill(9);
        assert!(std::fs::read(&path).expect("the image") == expected);
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, hole, end - 900, 900).expect("a hole");
        expected[998_324 - 900..].fill(0);
        assert!(std::fs::read(&path).expect("the image") == expected);
        file.write_all_at(&bytes[998_324 - 1000..], end - 1000)
            .expect("a write");
    }
    drop(folder);
}

#[test]
fn the_json_of_an_odd_image_has_the_size_that_clients_see() {
    let Some(info) = program("nbdinfo") else { return };
    let (folder, path, bytes) = image();
    let socket = disks::at(&folder, "nbd");
    let address = format!("unix:{socket}");
    let image = disks::text(&path);
    let all = [
        "serve",
        &image,
        "--json",
        "--nbd",
        &address,
        "--control",
        "none",
    ];
    let mut child = command(UGEOM, &all).spawn().expect("a server");
    let stdout = child.stdout.take().expect("stdout");
    let _server = Server(child);
    // The object is complete when clients can connect; the stream stays open.
    let mut values = serde_json::Deserializer::from_reader(stdout).into_iter::<Value>();
    let json = values.next().expect("JSON").expect("JSON");
    assert_eq!(json["exports"][0]["size_bytes"], bytes.len());
    let uri = json["uris"][0].as_str().expect("a URI");
    let size = String::from_utf8(other(&info, &["--size", uri]));
    assert_eq!(size.expect("a number").trim(), bytes.len().to_string());
}
