//! More programs that speak NBD, at `ugeom serve`: copies between servers, measuring, mounting.

use crate::run::{command, has, other, run, ugeom, wait_for, words_of};
use crate::serve::{Served, noise};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use ugeom_testkit::{Server, program};

/// nbdkit's memory is coherent over several connections, and the filter admits one client.
#[test]
fn one_connection_serves_many_threads_of_a_server_that_admits_one() {
    let (Some(kit), Some(_)) = (program("nbdkit"), program("nbdcopy")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, source) = (folder.path().join("up"), folder.path().join("in"));
    std::fs::write(&source, noise(6, 4 << 20)).expect("a source");
    let mut upstream = command(
        &kit,
        &["-f", "--filter=limit", "memory", "4m", "limit=1", "-U"],
    );
    let upstream = upstream.arg(&socket).stderr(Stdio::null()).spawn();
    let _upstream = Server(upstream.expect("nbdkit"));
    wait_for("nbdkit listens", || socket.exists());
    let target = format!("nbd+unix:///?socket={}&connections=1", socket.display());
    let source = source.display();
    let copies = format!(
        "nbdcopy --connections=4 --flush {source} $uri && nbdcopy --connections=4 $uri - | \
         cmp - {source}"
    );
    let serve = ["serve", &target, "--rw", "--threads", "4", "--run", &copies];
    assert_eq!(ugeom(&serve).quiet(), "");
}

#[test]
fn nbdcopy_copies_from_server_to_server_in_every_way() {
    let Some(copy) = program("nbdcopy") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("from.img");
    let mut data = noise(3, 6 << 20);
    data[1 << 20..3 << 20].fill(0);
    std::fs::write(&image, &data).expect("an image");
    let from = Served::start(folder, &image.display().to_string(), &[]);
    let ways: [&[&str]; 4] = [
        &["--flush"],
        &["--flush", "--synchronous"],
        &words_of("--flush --connections=2 --requests=3 --request-size=32768"),
        &["--flush", "--no-extents", "--allocated"],
    ];
    for way in ways {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("to.img");
        std::fs::write(&image, noise(4, 6 << 20)).expect("an image");
        let to = Served::start(folder, &image.display().to_string(), &["--rw"]);
        other(&copy, &[way, &[&from.uri, &to.uri]].concat());
        assert!(std::fs::read(&image).expect("the image") == data, "{way:?}");
    }
}

/// Zeroes leave holes unless the client asks for allocated blocks, as with nbdkit's file plugin.
#[test]
fn zeroes_that_a_client_writes_leave_holes_in_the_image() {
    let (Some(copy), Some(qemu)) = (program("nbdcopy"), program("qemu-img")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("from.img");
    let mut data = vec![0; 8 << 20];
    data[..1 << 20].copy_from_slice(&noise(5, 1 << 20));
    std::fs::write(&image, &data).expect("an image");
    let from = image.display().to_string();
    let used = |program: &Path, words: &[&str], before: u8| {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("to.img");
        if before == 0 {
            let file = std::fs::File::create(&image).expect("an image");
            file.set_len(8 << 20).expect("its size");
        } else {
            std::fs::write(&image, vec![before; 8 << 20]).expect("an image");
        }
        let to = Served::start(folder, &image.display().to_string(), &["--rw"]);
        other(program, &[words, &[&from, &to.uri]].concat());
        assert!(std::fs::read(&image).expect("the image") == data);
        std::fs::metadata(&image).expect("facts").blocks() * 512
    };
    let convert = ["convert", "-n", "-f", "raw", "-O", "raw"];
    for before in [0, 7] {
        assert!(
            used(&copy, &["--flush"], before) < 2 << 20,
            "nbdcopy, {before}"
        );
        assert!(
            used(&qemu, &convert, before) < 2 << 20,
            "qemu-img, {before}"
        );
        let allocated = used(&copy, &["--flush", "--allocated"], before);
        assert!(allocated >= 8 << 20, "allocated, {before}");
    }
}

#[test]
fn qemu_img_bench_reads_and_writes() {
    let Some(qemu) = program("qemu-img") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder, "md:64m", &["--rw"]);
    let ways: [&[&str]; 3] = [
        &["-c", "5000", "-d", "32"],
        &words_of("-c 2000 -d 128 -s 65536 -w --pattern=90"),
        &words_of("-c 500 -d 8 -s 512 -w --flush-interval=16"),
    ];
    for way in ways {
        let all = [&["bench", "-f", "raw"], way, &[&served.uri]].concat();
        let said = other(&qemu, &all);
        let said = String::from_utf8_lossy(&said);
        has(&said, "Run completed");
    }
}

#[test]
fn nbdfuse_makes_a_file_of_an_export() {
    let (Some(nbdfuse), Some(unmount)) = (program("nbdfuse"), program("fusermount3")) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mount = folder.path().join("mnt");
    std::fs::create_dir(&mount).expect("a mount point");
    let image = folder.path().join("disk.img");
    let data = noise(5, 2 << 20);
    std::fs::write(&image, &data).expect("an image");
    let served = Served::start(folder, &image.display().to_string(), &["--rw"]);
    let file = mount.join("disk");
    let mut mounting = command(&nbdfuse, &[&file.display().to_string(), &served.uri]);
    let mut mounted = mounting.stderr(Stdio::piped()).spawn().expect("nbdfuse");
    while !file.exists() {
        if mounted.try_wait().expect("nbdfuse").is_some() {
            return ugeom_testkit::skip("nbdfuse cannot mount here");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let read = std::fs::read(&file);
    let other_data = noise(6, 2 << 20);
    let written = std::fs::OpenOptions::new().write(true).open(&file);
    let written = written.and_then(|mut to| {
        std::io::Write::write_all(&mut to, &other_data)?;
        to.sync_all()
    });
    let ended = run(
        command(&unmount, &["-u", &mount.display().to_string()]),
        b"",
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    mounted.wait().expect("nbdfuse ends");
    assert!(read.expect("read") == data);
    written.expect("written");
    assert!(std::fs::read(&image).expect("the image") == other_data);
}

/// `nbdkit` with the handshakes of before 2011 and of before 2013.
#[test]
fn servers_with_old_handshakes_are_read() {
    let Some(nbdkit) = program("nbdkit") else { return };
    for (handshake, named) in [("--oldstyle", false), ("--mask-handshake=0", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s").display().to_string();
        let all = ["-f", "-U", &socket, handshake, "pattern", "1m"];
        let mut child = command(&nbdkit, &all);
        let child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let _server = Server(child.expect("a server"));
        while !Path::new(&socket).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let target = |name: &str| format!("nbd+unix:///{name}?socket={socket}");
        let read = ugeom(&["read", &target("")]);
        assert_eq!(read.code, 0, "{handshake}: {}", read.stderr);
        let pattern: Vec<u8> = (0..1 << 17)
            .flat_map(|at: u64| (at * 8).to_be_bytes())
            .collect();
        assert!(read.stdout == pattern, "{handshake}");
        let other = ugeom(&["read", &target("other"), "--length", "512"]);
        assert_eq!(other.code == 0, named, "{}", other.stderr);
    }
}
