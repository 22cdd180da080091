//! The rest of a qcow2 image survives writes: neighbours in the same cluster, older data at a power
//! cut, snapshots, bitmaps.

use crate::images_killed::Image;
use crate::images_killed::QCOW2_MENDED;
use crate::run::{Ended, UGEOM, command, has, run, ugeom, ugeom_with, words_of};
use crate::serve::Served;
use std::process::Stdio;

impl Image {
    fn served(&self) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        Served::start(folder, &self.path("a.qcow2"), &["--rw", "--no-taste"])
    }

    fn disk(&self) -> Vec<u8> {
        self.done(&["convert", "-f", "qcow2", "-O", "raw", "a.qcow2", "raw.img"]);
        std::fs::read(self.folder.path().join("raw.img")).expect("the copy")
    }
}

/// Runs commands of qemu-io over NBD.
fn client(served: &Served, script: &str) -> Ended {
    let mut io = command("qemu-io", &["-f", "raw", "-t", "writeback", &served.uri]);
    io.stdin(Stdio::piped());
    let ended = run(io, script.as_bytes());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended
}

/// A client writes into a cluster and zeroes another part of it at the same time.
#[test]
fn zeroes_in_a_cluster_spare_a_write_beside_them() {
    const CLUSTER: usize = 8 << 10;
    const COUNT: usize = (16 << 20) / CLUSTER;
    let Some(image) = Image::new(&["qemu-io", "qemu-nbd"], "cluster_size=8k") else {
        return;
    };
    for zero in ["-z -u", "-z"] {
        image.done(&words_of(
            "create -q -f qcow2 -o cluster_size=8k a.qcow2 16M",
        ));
        let mut served = image.served();
        let write = |cluster| {
            let at = cluster * CLUSTER;
            let (middle, last) = (at + 1024, at + 2048);
            format!(
                "aio_write -q -P 7 {at} 1k\naio_write -q {zero} {middle} 1k\n\
                 aio_write -q -P 9 {last} 1k\n"
            )
        };
        let script: String = (0..COUNT).map(write).collect();
        client(&served, &(script + "aio_flush\nflush\n"));
        assert!(served.signal("-TERM").success());
        let disk = image.disk();
        for (cluster, data) in disk.chunks(CLUSTER).enumerate() {
            for (at, byte) in [(0, 7), (1024, 0), (2048, 9)] {
                let is_there = data[at..at + 1024].iter().all(|it| *it == byte);
                assert!(is_there, "{zero}: cluster {cluster}, byte {at}");
            }
        }
    }
}

/// A program that does not know bitmaps has to switch them off, and backups that rely on them
/// would begin anew.
#[test]
fn bitmaps_of_an_image_stay_valid() {
    let Some(image) = Image::new(&["qemu-io", "qemu-nbd"], "compat=1.1") else { return };
    image.done(&["bitmap", "--add", "a.qcow2", "backup"]);
    let written = ugeom_with(
        &["write", &image.path("a.qcow2"), "--offset", "3m"],
        b"data",
    );
    assert_eq!(written.code, 0, "{}", written.stderr);
    let served = ugeom(&["serve", &image.path("a.qcow2"), "--rw", "--run", "true"]);
    assert_eq!(served.code, 0, "{}", served.stderr);
    let checked = image.done(&["check", "-f", "qcow2", "a.qcow2"]);
    assert!(!checked.stderr.contains("bitmap"), "{}", checked.stderr);
    let info = image.done(&["info", "--output=json", "a.qcow2"]).text();
    has(&info, "\"backup\"");
    assert!(!info.contains("in-use"), "{info}");
    let mut without = command(UGEOM, &["write", &image.path("a.qcow2")]);
    without.env("PATH", "/nowhere");
    let error = run(without, b"x").failed(1);
    has(&error, "qemu-nbd, which is not installed");
}

/// Every crash state of the medium below an image that is written to in small pieces: what lies
/// beside them in their clusters, and has long been durable, is there.
#[test]
fn a_power_cut_spares_what_lies_beside_a_write() {
    if !crate::crash::has_files() || Image::new(&["qemu-io", "qemu-nbd"], "compat=1.1").is_none() {
        return;
    }
    let snapshot = "qemu-img create -q -f qcow2 $dev 8M
        qemu-io -f qcow2 -c 'write -q -P 165 0 4M' $dev
        qemu-img snapshot -c before $dev";
    let base = "head -c 4M /dev/zero | tr '\\0' '\\245' >base.img
        qemu-img create -q -f qcow2 -b $PWD/base.img -F raw $dev 8M";
    let compressed = "qemu-img create -q -f qcow2 $dev 8M
        for i in $(seq 0 63); do echo write -q -c -P 165 $((i * 64))k 64k; done |
            qemu-io -f qcow2 $dev >/dev/null";
    for (name, setup) in [
        ("snapshot", snapshot),
        ("base", base),
        ("compressed", compressed),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let run_it = format!(
            r#"for i in 1 2 3 4 5; do
                 for at in 0 16 900; do
                     head -c 512 /dev/zero | tr '\0' "\\00$i" |
                         {UGEOM} write -q --destroy "$dev?format=qcow2&backing=any" \
                             --offset $(((i * 200 + at) * 1024)) || exit 1
                 done
                 echo ack k$i >&3
             done"#
        );
        let check = r#"
            head -c 4M raw.$$ | tr -d '\245\001\002\003\004\005' >other.$$
            for i in 1 2 3 4 5; do
                dd if=raw.$$ skip=$((i * 400)) count=1 status=none | tr -d "\\00$i" >left.$$
                test -s left.$$ || echo found k$i >&3
            done
            test ! -s other.$$ || { echo older data is gone >&2; exit 1; }
            rm raw.$$ other.$$ left.$$"#;
        let check = format!("{QCOW2_MENDED}{check}");
        let points = crate::crash::states(80);
        let arguments = [
            "--size", "16m", "--points", &points, "--setup", setup, "--run", &run_it, "--check",
            &check,
        ];
        let ended = crate::crash::crash(folder.path(), &arguments);
        assert_eq!(ended.code, 0, "{name}: {}{}", ended.text(), ended.stderr);
    }
}
