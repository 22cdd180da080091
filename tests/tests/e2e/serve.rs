//! `ugeom serve --nbd` beside the programs that speak NBD: libnbd's, qemu's, nbdkit, fio.

use crate::disks;
use crate::run::{UGEOM, command, has, json_in, json_of, other, run, ugeom, words_of};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;
use ugeom_testkit::{Server, program};

/// The URI that a server prints first.
pub fn uri_of(server: &mut Child) -> String {
    let stdout = server.stdout.take().expect("stdout");
    let mut uri = String::new();
    BufReader::new(stdout).read_line(&mut uri).expect("a line");
    assert!(uri.starts_with("nbd+unix:///?socket="), "{uri}");
    uri.trim().to_owned()
}

/// Serves a target at the socket `name` of a folder, which is its home as well; with its URI.
pub fn serve_nbd(folder: &Path, name: &str, target: &str, arguments: &[&str]) -> (Server, String) {
    let socket = format!("unix:{}", folder.join(name).display());
    let mut all = vec!["serve", target, "--nbd", &socket];
    all.extend(arguments);
    let mut serve = command(UGEOM, &all);
    serve.env("XDG_RUNTIME_DIR", folder).env("TMPDIR", folder);
    let mut child = serve.stderr(Stdio::null()).spawn().expect("a server");
    let uri = uri_of(&mut child);
    (Server(child), uri)
}

/// A server that runs, with a folder for its socket and its image.
pub struct Served {
    child: Server,
    pub uri: String,
    folder: TempDir,
}

impl Served {
    /// Serves an image of `folder`, or another target that `{}` stands in for.
    pub fn start(folder: TempDir, target: &str, arguments: &[&str]) -> Self {
        let (child, uri) = serve_nbd(folder.path(), "nbd", target, arguments);
        Self { child, uri, folder }
    }

    /// The URI of another export than the default.
    pub fn export(&self, name: &str) -> String {
        self.uri.replacen("///", &format!("///{name}"), 1)
    }

    pub fn path(&self, name: &str) -> String {
        disks::at(&self.folder, name)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&mut self, signal: &str) -> std::process::ExitStatus {
        self.child.signal(signal)
    }
}

/// Bytes like no others, without a stretch of zeroes.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(1..)).collect()
}

/// A sparse image of 8 MiB with data in three places; its folder and its path.
fn sparse_image() -> (TempDir, PathBuf) {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let file = std::fs::File::create(&path).expect("an image");
    file.set_len(8 << 20).expect("its size");
    for (seed, at, length) in [
        (1, 0, 64 << 10),
        (2, 1 << 20, 1 << 20),
        (3, 8_000_000, 300_000),
    ] {
        file.write_all_at(&noise(seed, length), at).expect("data");
    }
    (folder, path)
}

fn nbdinfo(program: &Path, arguments: &[&str]) -> Value {
    let text = other(program, &[arguments, &["--json"]].concat());
    json_of(&text)
}

#[test]
fn nbdinfo_lists_every_partition_and_says_what_it_may_do() {
    let (Some(info), Some(sfdisk)) = (program("nbdinfo"), program("sfdisk")) else { return };
    let (folder, path) = sparse_image();
    let image = disks::text(&path);
    let script = b"label: dos\n2048,4096,a5\n8192,1024,83\n";
    assert_eq!(run(command(sfdisk, &["-q", &image]), script).code, 0);
    let served = Served::start(folder, &image, &[]);
    let list = nbdinfo(&info, &["--list", &served.uri]);
    let exports = list["exports"].as_array().expect("a list");
    let facts = |export: &Value| {
        let name = export["export-name"].as_str().expect("a name").to_owned();
        (name, export["export-size"].as_u64().expect("a size"))
    };
    let found: Vec<(String, u64)> = exports.iter().map(facts).collect();
    let expected = [
        ("disk.img".to_owned(), 8 << 20),
        ("disk.imgs1".to_owned(), 4096 * 512),
        ("disk.imgs2".to_owned(), 1024 * 512),
    ];
    assert_eq!(found, expected);
    assert_eq!(list["structured"], true);
    for export in exports {
        assert_eq!(export["is_read_only"], true);
        assert_eq!(export["can_multi_conn"], true);
        assert_eq!(export["can_df"], true);
        assert_eq!(export["block_size_minimum"], 1);
        let contexts = export["contexts"].as_array().expect("contexts");
        assert_eq!(contexts, &["base:allocation", "qemu:allocation-depth"]);
    }
    let one = nbdinfo(&info, &[&served.export("disk.imgs2")]);
    assert_eq!(facts(&one["exports"][0]), expected[2]);
    let ended = run(command(&info, &[&served.export("disk.imgs9")]), b"");
    assert_ne!(ended.code, 0);
    let words = "No such file or directory for export: disk.imgs9";
    has(&ended.stderr, words);
}

/// nbdkit's plugin `file` tells each client the size that the file has when it connects.
#[test]
fn a_medium_that_has_grown_has_its_new_size_for_the_next_client() {
    let (Some(info), Some(sfdisk)) = (program("nbdinfo"), program("sfdisk")) else { return };
    let Some(qemu_io) = program("qemu-io") else { return };
    let (folder, path) = sparse_image();
    let image = disks::text(&path);
    let script = b"label: dos\n2048,4096,a5\n8192,1024,83\n";
    assert_eq!(run(command(sfdisk, &["-q", &image]), script).code, 0);
    let served = Served::start(folder, &format!("{image} | nop"), &["--rw"]);
    let part = served.export("disk.img.nops1");
    let size = |uri: &str| -> u64 {
        let text = other(&info, &["--size", uri]);
        String::from_utf8_lossy(&text)
            .trim()
            .parse()
            .expect("a size")
    };
    assert_eq!((size(&served.uri), size(&part)), (8 << 20, 4096 * 512));
    let file = std::fs::File::options().write(true).open(&path);
    let file = file.expect("the image");
    file.set_len((16 << 20) + 700).expect("grows");
    // The last sector is not whole.
    let grown = (16 << 20) + 512;
    assert_eq!((size(&served.uri), size(&part)), (grown, 4096 * 512));
    let write = "write -P 7 12M 64k";
    other(&qemu_io, &["-f", "raw", "-c", write, &served.uri]);
    let bytes = std::fs::read(&path).expect("the image");
    assert!(bytes[12 << 20..][..64 << 10].iter().all(|byte| *byte == 7));
    assert_eq!(bytes.len(), (16 << 20) + 700);
    // A shrunken file keeps its size, and reading past the end fails.
    file.set_len(8 << 20).expect("shrinks");
    assert_eq!(size(&served.uri), grown);
}

#[test]
fn the_map_of_an_image_is_the_one_that_qemu_finds_in_the_file() {
    let (Some(info), Some(qemu)) = (program("nbdinfo"), program("qemu-img")) else { return };
    let (folder, path) = sparse_image();
    let image = disks::text(&path);
    let map = |what: &str| {
        let map = json_of(other(&qemu, &["map", "-f", "raw", "--output=json", what]));
        let stretch = |it: &Value| {
            let number = |key: &str| it[key].as_u64().expect("a number");
            (number("start"), number("length"), it["data"].clone())
        };
        let all = map.as_array().expect("a map").iter().map(stretch);
        all.collect::<Vec<_>>()
    };
    let truth = map(&image);
    assert!(truth.len() > 3, "the file system has no holes: {truth:?}");
    let served = Served::start(folder, &image, &[]);
    assert_eq!(map(&served.uri), truth);
    let told = nbdinfo(&info, &["--map", &served.uri]);
    let told = told.as_array().expect("a map").iter().map(|it| {
        let number = |key: &str| it[key].as_u64().expect("a number");
        (
            number("offset"),
            number("length"),
            Value::Bool(number("type") & 1 == 0),
        )
    });
    assert_eq!(told.collect::<Vec<_>>(), truth);
}

#[test]
fn nbdcopy_takes_an_image_out_and_brings_one_in() {
    let Some(copy) = program("nbdcopy") else { return };
    let (folder, path) = sparse_image();
    let before = std::fs::read(&path).expect("the image");
    let mut served = Served::start(folder, &disks::text(&path), &["--rw"]);
    let out = served.path("out.img");
    other(&copy, &[&served.uri, &out]);
    assert!(std::fs::read(&out).expect("the copy") == before);
    let other_data = noise(9, 8 << 20);
    let source = served.path("in.img");
    std::fs::write(&source, &other_data).expect("a source");
    other(&copy, &["--flush", &source, &served.uri]);
    assert!(std::fs::read(&path).expect("the image") == other_data);
    // Holes of a source arrive as holes or zeroes, in whole pieces and small ones.
    std::fs::write(&source, &before).expect("a source");
    other(&copy, &["--flush", "--allocated", &source, &served.uri]);
    assert!(std::fs::read(&path).expect("the image") == before);
    assert!(served.signal("-TERM").success(), "a signal ends it well");
}

#[test]
fn qemu_converts_compares_and_writes_where_it_likes() {
    let (Some(qemu), Some(io)) = (program("qemu-img"), program("qemu-io")) else { return };
    let (folder, path) = sparse_image();
    let image = disks::text(&path);
    let served = Served::start(folder, &image, &["--rw", "--threads", "2"]);
    let out = served.path("out.qcow2");
    other(
        &qemu,
        &["convert", "-f", "raw", "-O", "qcow2", &served.uri, &out],
    );
    let compare = ["compare", "-f", "raw", "-F", "qcow2", &served.uri, &out];
    other(&qemu, &compare);
    let commands = [
        "write -P 0x5a 1000 3000",
        "read -P 0x5a 1000 3000",
        "write -f -P 0xa5 511 2",
        "read -P 0xa5 511 2",
        "read -P 0x5a 1000 3000",
        "write -z 1500 100000",
        "read -P 0 1500 100000",
        "read -P 0x5a 1000 500",
        "write -z -u 2m 1m",
        "discard 3m 1m",
        "flush",
    ];
    for one in commands {
        let ended = run(command(&io, &["-f", "raw", "-c", one, &served.uri]), b"");
        let said = format!("{one}: {}{}", ended.text(), ended.stderr);
        assert!(ended.code == 0 && !said.contains("failed"), "{said}");
    }
    let now = std::fs::read(&path).expect("the image");
    assert_eq!(now[511..513], [0xa5; 2]);
    assert!(now[1000..1500].iter().all(|&byte| byte == 0x5a));
    assert!(now[1500..101_500].iter().all(|&byte| byte == 0));
    other(
        &qemu,
        &words_of(&format!("convert -n -f qcow2 -O raw {out} {}", served.uri)),
    );
    other(&qemu, &compare);
}

#[test]
fn fio_verifies_what_it_has_written() {
    let Some(fio) = program("fio") else { return };
    let engines = other(&fio, &["--enghelp"]);
    if !String::from_utf8_lossy(&engines).contains("nbd") {
        return ugeom_testkit::skip("this fio has no engine nbd");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let state = disks::text(folder.path());
    let served = Served::start(folder, "md:32m", &["--rw"]);
    let uri = format!("--uri={}", served.uri);
    let state = format!("--aux-path={state}");
    let job = format!(
        "--name=v --ioengine=nbd {uri} {state} --rw=randrw --bsrange=512-64k --bs_unaligned \
         --iodepth=32 --size=32m --verify=crc32c --verify_fatal=1 --output-format=json"
    );
    let job = words_of(&job);
    let text = other(&fio, &job);
    let text = String::from_utf8(text).expect("UTF-8");
    let json = json_in(&text);
    let job = &json["jobs"][0];
    assert_eq!(job["error"], 0);
    assert!(job["write"]["total_ios"].as_u64() > Some(100), "{job}");
}

#[test]
fn a_command_gets_the_uri_and_its_failure_is_ours() {
    let Some(_) = program("nbdinfo") else { return };
    let ended = ugeom(&["serve", "md:3m", "--run", "nbdinfo --size \"$uri\""]);
    assert_eq!(
        (ended.code, ended.text().as_str()),
        (0, "3145728\n"),
        "{}",
        ended.stderr
    );
    let twice = ugeom(&["serve", "md:3m", "--nbd", "unix:a", "--nbd", "unix:a"]).failed(2);
    has(&twice, "--nbd unix:a is given twice");
    // As nbdkit and shells have it.
    for (command, code) in [("exit 3", 3), ("exit 0", 0), ("kill -9 $$", 137)] {
        let ended = ugeom(&["serve", "md:3m", "--run", command]);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        if code > 0 {
            has(&ended.stderr, &format!("`{command}` failed"));
        }
    }
    let tcp = [
        "serve",
        "md:3m",
        "--nbd",
        "tcp:localhost:0",
        "--run",
        "nbdinfo --size \"$uri\"",
    ];
    let ended = ugeom(&tcp);
    assert_eq!(
        (ended.code, ended.text().as_str()),
        (0, "3145728\n"),
        "{}",
        ended.stderr
    );
}

#[test]
fn nbdkit_passes_a_disk_on() {
    let (Some(nbdkit), Some(_)) = (program("nbdkit"), program("nbdcopy")) else { return };
    let (folder, path) = sparse_image();
    let image = disks::text(&path);
    let served = Served::start(folder, &image, &["--rw"]);
    let (uri, out) = (format!("uri={}", served.uri), served.path("out.img"));
    let copy = format!("nbdcopy \"$uri\" {out}");
    let filters = format!("--filter=checkwrite --filter=blocksize nbd {uri} minblock=4096");
    let filters = words_of(&filters);
    other(
        &nbdkit,
        &[&["-U", "-"][..], &filters[1..], &["--run", &copy]].concat(),
    );
    assert!(std::fs::read(&out).expect("a copy") == std::fs::read(&path).expect("the image"));
    // The filter fails whatever would change a byte: a copy of the same bytes does not.
    let copy = format!("nbdcopy {out} \"$uri\"");
    other(
        &nbdkit,
        &["-U", "-", filters[0], "nbd", &uri, "--run", &copy],
    );
}

#[test]
fn what_cannot_be_listened_to_is_said_in_plain_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = format!("unix:{}", folder.path().join("x".repeat(120)).display());
    let error = ugeom(&["serve", "md:1m", "--nbd", &long]).failed(1);
    has(&error, "a Unix socket's has at most 107");
    let error = ugeom(&["serve", "md:1m", "--nbd", "here"]).failed(2);
    has(&error, "write unix:PATH or tcp:HOST:PORT");
    let error = ugeom(&["serve", "md:1m"]).failed(2);
    has(&error, "--nbd");
    let served = Served::start(folder, "md:1m", &[]);
    let again = format!("unix:{}", served.path("nbd"));
    let error = ugeom(&["serve", "md:1m", "--nbd", &again]).failed(1);
    has(&error, "another server listens to it");
    let error = ugeom(&["serve", "/no/such/disk", "--nbd", &again]).failed(1);
    has(&error, "/no/such/disk");
}

/// A script that goes on after success must not take an aborted copy for a whole one.
#[test]
fn a_command_that_a_signal_ends_early_is_no_success() {
    let cases = [
        ("-TERM", "echo begins; exec sleep 60", 143),
        ("-INT", "echo begins; exec sleep 60", 130),
        (
            "-TERM",
            "trap 'exit 7' TERM; echo begins; while :; do sleep 0.1; done",
            7,
        ),
        (
            "-TERM",
            "trap 'exit 0' TERM; echo begins; while :; do sleep 0.1; done",
            0,
        ),
    ];
    for (signal, work, code) in cases {
        let mut serve = command(UGEOM, &["serve", "md:1m", "--run", work]);
        let mut server = Server(serve.stderr(Stdio::null()).spawn().expect("a server"));
        let stdout = server.stdout.take().expect("stdout");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(server.signal(signal).code(), Some(code), "{signal} {work}");
    }
}

/// `sh -c` waits for its children and does not pass signals on.
#[test]
fn a_signal_ends_what_the_command_has_started() {
    let work = "(sleep 61; true) & sleep 62 & echo $!; wait; true";
    let mut serve = command(UGEOM, &["serve", "md:1m", "--run", work]);
    let mut server = Server(serve.stderr(Stdio::null()).spawn().expect("a server"));
    let stdout = server.stdout.take().expect("stdout");
    let mut reader = BufReader::new(stdout);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    let sleep = Path::new("/proc").join(line.trim());
    assert!(sleep.exists(), "{line}");
    assert_eq!(server.signal("-TERM").code(), Some(143));
    // The pipe ends with its last writer, which are all that the command has started.
    assert_eq!(reader.read_line(&mut line).expect("the end"), 0);
}
