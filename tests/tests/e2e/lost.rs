//! Reports of lost data: to clients of a server whose upstream loses it, and by the exit code of
//! commands.

use crate::disks;
use crate::run::{UGEOM, command as process, end, has, run, run_in, ugeom, ugeom_with};
use crate::serve::Served;
use crate::upstream::{Upstream, ask, connect, flush};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use tempfile::TempDir;
use ugeom_format::wire::nbd::command;
use ugeom_testkit::{program, skip};

const BYTES: u64 = 8 << 20;
const BLOCK: usize = 4096;
const BLOCKS: u64 = BYTES / BLOCK as u64;
const CLIENTS: usize = 4;

/// How many deaths of the upstream, if `UGEOM_CRASHES` does not say.
const CRASHES: u64 = 12;

/// Writes a block of 4 KiB.
pub fn write(stream: &mut UnixStream, block: u64, byte: u8) {
    let at = block * BLOCK as u64;
    let error = ask(stream, command::WRITE, 0, at, &[byte; BLOCK]);
    assert_eq!(error.expect("a reply"), 0, "written, perhaps later");
}

/// The certain content of the image, from the promises to one client.
fn check(image: &Path, promised: &BTreeMap<u64, u8>, seed: u64) {
    let bytes = std::fs::read(image).expect("the image");
    for (block, byte) in promised {
        let at = *block as usize * BLOCK;
        let kept = bytes[at..at + BLOCK].iter().all(|it| it == byte);
        assert!(kept, "seed {seed}: OK for block {block}, which is gone");
    }
}

/// One server, one death of its upstream; how many clients had something to lose.
fn one_death(upstream: &mut Upstream, layers: &str, seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let own = tempfile::tempdir().expect("a folder");
    let socket = own.path().join("nbd");
    let target = format!("{}{layers}", upstream.target());
    let mut served = Served::start(own, &target, &["--rw", "--no-taste", "--threads", "4"]);
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| connect(&socket).expect("a connection"))
        .collect();
    let mut written: Vec<BTreeMap<u64, u8>> = vec![BTreeMap::new(); CLIENTS];
    let mut writes = |clients: &mut Vec<UnixStream>, written: &mut Vec<BTreeMap<u64, u8>>| {
        for _ in 0..random.usize(1..12) {
            let client = random.usize(0..CLIENTS);
            let block = client as u64 + CLIENTS as u64 * random.u64(0..BLOCKS / CLIENTS as u64);
            let byte = random.u8(1..);
            write(&mut clients[client], block, byte);
            written[client].insert(block, byte);
        }
        let mut order: Vec<usize> = (0..CLIENTS).collect();
        random.shuffle(&mut order);
        order
    };
    let order = writes(&mut clients, &mut written);
    for client in order.into_iter().take(1) {
        assert_eq!(flush(&mut clients[client]), 0);
        // A FLUSH covers what was written over the other connections, too.
        for other in &mut written {
            check(&upstream.image(), other, seed);
            other.clear();
        }
    }
    let order = writes(&mut clients, &mut written);
    upstream.kill();
    upstream.start_again();
    let writers = written.iter().filter(|it| !it.is_empty()).count();
    for client in order {
        let error = flush(&mut clients[client]);
        let lost = !written[client].is_empty();
        assert!(error != 0 || !lost, "seed {seed}: client {client} got OK");
        assert_eq!(flush(&mut clients[client]), 0, "once");
        written[client].clear();
        // From now on all is as ever.
        let block = client as u64;
        write(&mut clients[client], block, 255);
        assert_eq!(flush(&mut clients[client]), 0);
        check(&upstream.image(), &BTreeMap::from([(block, 255)]), seed);
    }
    drop(clients);
    assert_eq!(served.signal("-TERM").code(), Some(0), "all have heard");
    writers
}

fn deaths(layers: &str, start: impl Fn(u64) -> Option<Upstream>) {
    let Some(mut upstream) = start(BYTES) else { return };
    let long = std::env::var("UGEOM_CRASHES").ok();
    let long = long.map(|text| text.parse().expect("UGEOM_CRASHES is a number"));
    let (mut writers, crashes) = (0, long.unwrap_or(CRASHES));
    for seed in 0..crashes {
        writers += one_death(&mut upstream, layers, seed);
    }
    println!("{crashes} deaths, {writers} clients with writes to lose, all of which heard");
    assert!(writers > 0);
}

#[test]
fn every_client_hears_of_what_a_dead_upstream_has_forgotten() {
    deaths("", Upstream::start);
}

#[test]
fn every_client_hears_through_a_cache_too() {
    deaths(" | cache:4m", Upstream::start);
}

/// A FLUSH fails that had nothing to flush: no data is lost.
#[test]
fn a_server_that_goes_when_all_is_flushed_takes_nothing_with_it() {
    for layers in ["", "|cache:1m,write=back"] {
        for written in [false, true] {
            let Some(mut upstream) = Upstream::start(BYTES) else { return };
            let folder = tempfile::tempdir().expect("a folder");
            let socket = folder.path().join("nbd");
            let uri = upstream.target();
            let target = format!("nbd:uri=\"{uri}\",retry=100ms{layers}");
            let mut served = Served::start(folder, &target, &["--rw", "--no-taste"]);
            let mut client = connect(&socket).expect("a connection");
            if written {
                write(&mut client, 0, 7);
                assert_eq!(flush(&mut client), 0);
            }
            upstream.kill();
            assert_ne!(flush(&mut client), 0, "the server is gone");
            drop(client);
            let case = format!("{target}, written: {written}");
            assert_eq!(served.signal("-TERM").code(), Some(0), "{case}");
        }
    }
}

#[test]
fn every_client_hears_over_tls_too() {
    deaths("", Upstream::start_with_tls);
}

#[test]
fn a_cache_that_writes_back_writes_again_what_its_upstream_has_forgotten() {
    let Some(mut upstream) = Upstream::start(BYTES) else { return };
    let own = tempfile::tempdir().expect("a folder");
    let socket = own.path().join("nbd");
    // Dirty data is written below at once, and not flushed there.
    let target = format!("{} | cache:4m,write=back,idle=1ms", upstream.target());
    let mut served = Served::start(own, &target, &["--rw", "--no-taste", "--threads", "2"]);
    let mut clients = [connect(&socket), connect(&socket)].map(|it| it.expect("a connection"));
    for block in 0..8 {
        write(&mut clients[0], block, 7);
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    upstream.kill();
    upstream.start_again();
    // Where the writes got below before it died, both hear; else nothing was lost.
    let first = flush(&mut clients[1]);
    assert_eq!(flush(&mut clients[0]), first);
    for client in &mut clients {
        assert_eq!(flush(client), 0);
    }
    let promised = (0..8).map(|block| (block, 7)).collect();
    check(&upstream.image(), &promised, 0);
    drop(clients);
    assert_eq!(served.signal("-TERM").code(), Some(0));
}

#[test]
fn both_descriptors_of_a_file_hear_of_what_is_lost() {
    // nbdkit closes its copies of the files when it is started again, and their FLUSH waits for it:
    // until `retry` is over.
    for layers in ["&retry=1s", "&retry=1s | cache:4m"] {
        let Some(mut upstream) = Upstream::start(BYTES) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let Some(files) = files(folder.path(), &upstream, layers) else { return };
        let mount = folder.path().join("mnt");
        // That of the layer on top, whose name is that of the one below with its own behind it.
        let entries = std::fs::read_dir(&mount).expect("a folder");
        let paths = entries.map(|entry| entry.expect("a file").path());
        let path = paths.max().expect("the file on top");
        let open = || {
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).open(&path).expect("opens")
        };
        let (one, other) = (open(), open());
        one.write_all_at(&[7; BLOCK], 0).expect("written");
        upstream.kill();
        upstream.start_again();
        other.sync_all().expect_err("what was written is gone");
        one.sync_all().expect_err("it has not heard yet");
        one.sync_all().expect("it has heard");
        other.sync_all().expect("it has heard");
        one.write_all_at(&[7; BLOCK], 0).expect("written again");
        one.sync_all().expect("it is there");
        check(&upstream.image(), &BTreeMap::from([(0, 7)]), 0);
        drop((one, other));
        crate::run::other("kill", &["-TERM", &files.id().to_string()]);
        assert_eq!(end(files).code, 0);
    }
}

#[test]
fn writers_over_nbd_and_fuse_both_get_the_error_of_a_loss() {
    // Either the file's FLUSH is the first after the loss, or the connection's.
    for file_first in [true, false] {
        let Some(mut upstream) = Upstream::start(BYTES) else { return };
        let target = upstream.target();
        let Some((folder, child)) = serve_both(&target, &[]) else { return };
        let (socket, mount) = (folder.path().join("nbd"), folder.path().join("mnt"));
        let entry = std::fs::read_dir(&mount).expect("a folder").next();
        let path = entry.expect("a file").expect("its name").path();
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).open(path).expect("opens");
        let mut client = connect(&socket).expect("a connection");
        write(&mut client, 0, 7);
        file.write_all_at(&[7; BLOCK], BLOCK as u64)
            .expect("written");
        upstream.kill();
        upstream.start_again();
        let mut flushes = [false; 2];
        for round in 0..2 {
            for of_file in [file_first, !file_first] {
                flushes[usize::from(of_file)] = match of_file {
                    true => file.sync_all().is_ok(),
                    false => flush(&mut client) == 0,
                };
            }
            // Both writers get the error, once.
            assert_eq!(flushes, [round == 1; 2], "{file_first}, {round}");
        }
        drop((file, client));
        crate::run::other("kill", &["-TERM", &child.id().to_string()]);
        assert_eq!(end(child).code, 0, "all have the error");
    }
}

/// Waits until a server listens and its files are there; false, after saying why, when it cannot
/// mount here.
/// Serves a target with NBD (`nbd`) and files (`mnt`) in a folder of its own, without tasting.
pub fn serve_both(target: &str, arguments: &[&str]) -> Option<(TempDir, Child)> {
    let folder = tempfile::tempdir().expect("a folder");
    let (mount, socket) = (folder.path().join("mnt"), folder.path().join("nbd"));
    std::fs::create_dir(&mount).expect("a mount point");
    let (place, listen) = (disks::text(&mount), format!("unix:{}", socket.display()));
    let server = ["serve", target, "--rw", "--no-taste", "--fuse", &place];
    let both = [&server[..], &["--nbd", &listen], arguments].concat();
    let mut serve = process(UGEOM, &both);
    serve.env("XDG_RUNTIME_DIR", folder.path());
    let mut child = serve.spawn().expect("a server");
    listens_and_mounts(&socket, &mount, &mut child).then_some((folder, child))
}

pub fn listens_and_mounts(socket: &Path, mount: &Path, child: &mut Child) -> bool {
    let has_files = || std::fs::read_dir(mount).is_ok_and(|mut all| all.next().is_some());
    while UnixStream::connect(socket).is_err() || !has_files() {
        if let Some(status) = child.try_wait().expect("waiting") {
            skip(&format!("no files: the server ended with {status}"));
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    true
}

#[test]
fn every_client_of_an_image_hears_of_one_failed_fsync() {
    let Some(mut upstream) = Upstream::start(BYTES) else { return };
    let (folder, own) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let Some(files) = files(folder.path(), &upstream, "") else { return };
    let mount = folder.path().join("mnt");
    let entry = std::fs::read_dir(&mount).expect("a folder").next();
    let image = disks::text(&entry.expect("a file").expect("its name").path());
    let socket = own.path().join("nbd");
    // The class `file` on a file whose fsync(2) fails once; each thread of the server opens it.
    let mut served = Served::start(own, &image, &["--rw", "--no-taste", "--threads", "3"]);
    for _ in 0..CRASHES.min(5) {
        let connect = || connect(&socket).expect("a connection");
        let mut clients: Vec<UnixStream> = (0..3).map(|_| connect()).collect();
        for (block, client) in (0..).zip(&mut clients) {
            write(client, block, 7);
        }
        upstream.kill();
        upstream.start_again();
        for client in clients.iter_mut().rev() {
            assert_ne!(flush(client), 0, "what it has written is gone");
        }
        for (block, client) in (0..).zip(&mut clients) {
            // The kernel reports the error to the open file of each of the three threads.
            let heard = (0..3).find(|_| flush(client) == 0);
            assert!(heard.is_some(), "it has heard");
            write(client, block, 7);
            assert_eq!(flush(client), 0);
        }
        let promised = (0..3).map(|block| (block, 7)).collect();
        check(&upstream.image(), &promised, 0);
    }
    assert_eq!(served.signal("-TERM").code(), Some(0), "all have heard");
    crate::run::other("kill", &["-TERM", &files.id().to_string()]);
    assert_eq!(end(files).code, 0);
}

/// Serves the upstream as files; `None`, after saying why, where this machine cannot.
fn files(folder: &Path, upstream: &Upstream, layers: &str) -> Option<Child> {
    let mount = folder.join("mnt");
    std::fs::create_dir(&mount).expect("a mount point");
    let (target, place) = (
        format!("{}{layers}", upstream.target()),
        disks::text(&mount),
    );
    let all = ["serve", &target, "--fuse", &place, "--rw", "--no-taste"];
    let mut serve = process(UGEOM, &all);
    serve.env("XDG_RUNTIME_DIR", folder);
    let mut child = serve.spawn().expect("a server");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("stdout");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    if line.trim() == place {
        return Some(child);
    }
    skip(&format!("no files: {}", end(child).stderr.trim()));
    None
}

/// The last line of stderr says what is lost.
fn says_what_is_lost(stderr: &str, words: &str) {
    let last = stderr.lines().last().unwrap_or_default();
    assert!(last.contains("data is lost"), "{stderr}");
    assert!(last.contains(words), "{stderr}");
}

/// A cache over a disk that takes no writes.
const BROKEN: &str = "md:1m | nop:wfail=100% | cache:1m,write=back,idle=3600s,age=3600s";

#[test]
fn a_server_that_loses_data_at_its_end_exits_with_1_and_says_what() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source");
    std::fs::write(&source, vec![5; 64 << 10]).expect("a source");
    if let Some(copy) = program("nbdcopy") {
        let copy = format!("{} {} $uri", disks::text(&copy), disks::text(&source));
        let target = "md:64k | nop:wfail=100% | cache:1m,write=back,idle=3600s,age=3600s";
        let all = ["serve", target, "--rw", "--no-taste", "--run", &copy];
        let ended = run(process(UGEOM, &all), b"");
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        says_what_is_lost(&ended.stderr, "65536 bytes from offset 0 on");
    }
    let (mut server, socket) = broken_server(folder.path(), BROKEN);
    let mut client = connect(&socket).expect("a connection");
    write(&mut client, 3, 7);
    write(&mut client, 5, 7);
    crate::run::other("kill", &["-TERM", &server.id().to_string()]);
    // The command's own pipe is read to its end by `end`.
    server.stdin = None;
    let ended = end(server);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    says_what_is_lost(&ended.stderr, "8192 bytes from offset 12288 on");
}

/// A server, and its socket, once it listens.
fn broken_server(folder: &Path, target: &str) -> (Child, std::path::PathBuf) {
    let socket = folder.join("nbd");
    let listen = format!("unix:{}", socket.display());
    let all = ["serve", target, "--nbd", &listen, "--rw", "--no-taste"];
    let mut serve = process(UGEOM, &all);
    serve.env("XDG_RUNTIME_DIR", folder);
    let mut child = serve.spawn().expect("a server");
    while UnixStream::connect(&socket).is_err() {
        assert!(child.try_wait().expect("waiting").is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    (child, socket)
}

#[test]
fn a_server_whose_upstream_is_gone_at_the_end_exits_with_1() {
    for layers in ["", " | cache:1m,write=back,idle=3600s,age=3600s"] {
        let Some(mut upstream) = Upstream::start(BYTES) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let target = format!("{}&retry=300ms{layers}", upstream.target());
        let (server, socket) = broken_server(folder.path(), &target);
        let mut client = connect(&socket).expect("a connection");
        write(&mut client, 2, 7);
        upstream.kill();
        drop(client);
        crate::run::other("kill", &["-TERM", &server.id().to_string()]);
        let ended = end(server);
        assert_eq!(ended.code, 1, "{layers}: {}", ended.stderr);
        let words = if layers.is_empty() {
            "nbd0"
        } else {
            "offset 8192 on"
        };
        says_what_is_lost(&ended.stderr, words);
    }
}

#[test]
fn commands_that_lose_data_exit_with_1_and_say_what() {
    let written = ugeom_with(&["write", BROKEN, "--offset", "4096"], &[7; 8192]).failed(1);
    says_what_is_lost(&written, "8192 bytes from offset 4096 on");
    let created = ugeom(&["part", "create", "-s", "mbr", BROKEN]).failed(1);
    says_what_is_lost(&created, "512 bytes from offset 0 on");
}

/// The argument that names the target of a job.
fn filename(target: &str) -> String {
    format!("--filename={target}")
}

#[test]
fn jobs_that_lose_data_fail_and_print_their_result() {
    let file = filename(BROKEN);
    let job = ["--name=a", "--rw=write", "--bs=4k", "--size=16k"];
    let ended = ugeom(&[&["run", &file][..], &job].concat());
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    says_what_is_lost(&ended.stderr, "16384 bytes from offset 0 on");
    has(&ended.text(), "total=0,4,0,0");

    // A second job that cannot run is another failed one; the data of the first is lost all the
    // same.
    let second = "--name=b --stonewall --rw=read --size=4k --exec_prerun=false";
    let second: Vec<&str> = second.split(' ').collect();
    let folder = tempfile::tempdir().expect("a folder");
    let words = [&["run"][..], &job, &[&file], &second, &[&file]].concat();
    let ended = run_in(folder.path(), UGEOM, &words);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    has(&ended.stderr, "b: exec_prerun failed");
    says_what_is_lost(&ended.stderr, "16384 bytes from offset 0 on");
}

#[test]
fn comparisons_and_sweeps_that_lose_data_exit_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lost.fio");
    let text = format!("[a]\nfilename={BROKEN}\nrw=write\nbs=4k\nsize=16k\n");
    std::fs::write(&file, text).expect("a job file");
    let file = file.to_str().expect("UTF-8");
    let compared = ugeom(&["ab", "--rounds", "1", file, file]).failed(1);
    says_what_is_lost(&compared, "16384 bytes from offset 0 on");
    let line = [
        "lab", "sweep", "--write", "--budget", "1s", "--bytes", "64k", BROKEN,
    ];
    let swept = ugeom(&line).failed(1);
    says_what_is_lost(&swept, "bytes from offset");
}
