//! Images that are no whole number of sectors, over NBD and as files: no byte is lost or made up.

use crate::disks;
use crate::run::{has, other, ugeom};
use crate::serve::{Served, noise};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tempfile::TempDir;
use ugeom_testkit::{program, skip};

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
    let copy = disks::text(&folder.path().join("copy"));
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
    let copy = disks::text(&folder.path().join("copy"));
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
