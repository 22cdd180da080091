//! Servers under what the system does to a process: the limit of file sizes, SIGSTOP.

use crate::disks;
use crate::run::{UGEOM, command as process, has, run, wait_for};
use crate::serve::Served;
use crate::upstream::{ask, connect};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;
use ugeom_format::wire::nbd::command;
use ugeom_testkit::Server;

/// Engines, and whether requests are direct: each calls the kernel in another way.
const ENGINES: [&str; 7] = [
    "sync",
    "seek",
    "guasi",
    "libaio",
    "libaio&direct=1",
    "io_uring",
    "io_uring&direct=1",
];

#[test]
fn a_write_past_the_limit_of_file_sizes_is_an_error_of_that_write() {
    for engine in ENGINES {
        let folder = tempfile::tempdir().expect("a folder");
        let name = disks::text(folder.path());
        let client = format!(
            "head -c 64k /dev/zero | {UGEOM} write --offset 4m $uri; echo $?; \
             printf after | {UGEOM} write $uri; echo $?"
        );
        let lines = format!(
            "cd '{name}' && truncate -s 8m a.img && ulimit -f 1024 && \
             {UGEOM} serve 'a.img?engine={engine}' --rw --no-taste --run '{client}'"
        );
        let ended = run(process("bash", &["-c", &lines]), b"");
        if ended.stderr.contains("a.img: ") && ended.stdout.is_empty() {
            // The engine, or direct I/O, is not possible here.
            assert_eq!(ended.code, 1, "{engine}: {}", ended.stderr);
            continue;
        }
        assert_eq!(ended.code, 0, "{engine}: {}", ended.stderr);
        assert_eq!(ended.stdout, b"1\n0\n", "{engine}: {}", ended.stderr);
        has(&ended.stderr, "File too large");
        let image = std::fs::read(folder.path().join("a.img")).expect("the image");
        assert!(image.starts_with(b"after"), "{engine}");
    }
}

#[test]
fn a_program_of_a_server_gets_the_signal_of_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = disks::text(folder.path());
    let lines = format!(
        "cd '{name}' && ulimit -f 8 && {UGEOM} serve md:1m --run 'exec dd if=/dev/zero of=x bs=64k'"
    );
    let ended = run(process("bash", &["-c", &lines]), b"");
    assert_eq!(ended.code, 128 + 25, "SIGXFSZ: {}", ended.stderr);
}

#[test]
fn the_time_for_which_a_server_is_stopped_is_not_that_of_its_clients() {
    let limits = "--rw --no-taste --stall-timeout 400ms --idle-timeout 800ms --threads 1";
    let limits: Vec<&str> = limits.split(' ').collect();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("nbd");
    let served = Served::start(folder, "md:1m", &limits);
    let mut idle = connect(&socket).expect("a connection");
    let kill = |signal: &str| {
        let pid = served.id().to_string();
        assert_eq!(run(process("kill", &[signal, &pid]), b"").code, 0);
    };
    kill("-STOP");
    std::thread::sleep(Duration::from_secs(2));
    kill("-CONT");
    std::thread::sleep(Duration::from_millis(100));
    let error = ask(&mut idle, command::WRITE, 0, 0, &[1; 512]);
    assert_eq!(error.expect("the connection is there"), 0);
    std::thread::sleep(Duration::from_secs(2));
    let gone = ask(&mut idle, command::WRITE, 0, 0, &[1; 512]);
    assert!(gone.is_err(), "its own time counts");
}

#[test]
fn an_idle_client_makes_room_where_descriptors_run_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let (name, socket) = (disks::text(folder.path()), folder.path().join("nbd"));
    let line = format!(
        "ulimit -n 64; \
         exec {UGEOM} serve md:1m --rw --threads 1 --control none --nbd unix:{name}/nbd"
    );
    let mut server = process("bash", &["-c", &line]);
    let server = Server(server.stdout(Stdio::null()).spawn().expect("bash"));
    wait_for("the server", || connect(&socket).is_ok());
    let write = |stream: &mut UnixStream| ask(stream, command::WRITE, 0, 0, &[0; 512]);
    let mut clients: Vec<UnixStream> = Vec::new();
    for number in 0..80 {
        let mut client = connect(&socket).unwrap_or_else(|error| panic!("{number}: {error}"));
        assert!(write(&mut client).is_ok(), "{number}");
        clients.push(client);
    }
    assert!(
        write(&mut clients[0]).is_err(),
        "the first was idle for longest"
    );
    drop(server);
}
