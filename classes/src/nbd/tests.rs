//! Disks that other programs serve, and servers that are gone, silent or mad.

mod beside;
mod crash;
mod limited;
mod loss;
mod mad;
mod model;
mod silent;

use crate::{Target, TargetOptions, open_target};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use ugeom_format::wire::nbd::{
    BASE_ALLOCATION, ExportReply, Greeting, Info, MetaContext, OptionHeader, OptionReplyHeader,
    Request, SimpleReply, command, export_flag, option, option_reply,
};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Delta, Errno, ExtentKind, Flags, Opened};
use ugeom_testkit::{Server, has, program};

/// An image of 4 MiB, the path of a socket, and qemu-nbd's option for what [`start`] waits for.
fn for_qemu(folder: &TempDir) -> [String; 3] {
    let [image, socket, pid] = ["image", "s", "pid"].map(|name| folder.path().join(name));
    std::fs::write(&image, vec![0; 4 << 20]).expect("an image");
    let ready = format!("--pid-file={}", pid.display());
    [
        image.display().to_string(),
        socket.display().to_string(),
        ready,
    ]
}

/// Starts a server that writes the file `pid` once it listens, and waits for that. Trying to
/// connect would do as well, but nbdkit 1.32 ends when a client leaves before it is greeted.
fn start(program: &Path, arguments: &[&str], folder: &TempDir) -> Server {
    let mut command = Process::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let ready = folder.path().join("pid");
    // One from before would not be waited for.
    let _ = std::fs::remove_file(&ready);
    let server = Server(command.spawn().expect("a server"));
    while std::fs::read(&ready).is_ok_and(|pid| pid.is_empty()) || !ready.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    server
}

fn nbdkit(folder: &TempDir, plugin: &[&str]) -> Option<Server> {
    let nbdkit = program("nbdkit")?;
    let socket = folder.path().join("s");
    let path = socket.display().to_string();
    let ready = folder.path().join("pid").display().to_string();
    let arguments = [&["-f", "-P", &ready, "-U", &path], plugin].concat();
    Some(start(&nbdkit, &arguments, folder))
}

fn target_of(folder: &TempDir, export: &str, more: &str) -> String {
    let socket = folder.path().join("s");
    format!("nbd+unix:///{export}?socket={}{more}", socket.display())
}

fn open(text: &str) -> Target {
    let options = TargetOptions::untasted().for_writing();
    open_target(text, &options).expect("a target")
}

fn opened(target: &Target) -> (Opened, Channel) {
    let opened = target.open(Delta::READ_WRITE).expect("open");
    (opened, target.stack.channel(64).expect("a channel"))
}

/// Requests of many kinds, against a plain copy; then many at a time.
fn behaves_as_a_disk(target: &Target, size: usize, zeroes: bool) {
    let (opened, mut channel) = opened(target);
    assert_eq!(opened.view().expect("there").mediasize_bytes, size as u64);
    let mut random = fastrand::Rng::with_seed(7);
    let mut copy = vec![0_u8; size];
    for round in 0..200 {
        let longest = [1, 16, 300, 3000][random.usize(0..4)];
        let length = 512 * random.usize(1..=longest);
        let offset = 512 * random.usize(0..=(size - length) / 512);
        let range = offset..offset + length;
        match random.u8(0..5) {
            0 | 1 => {
                copy[range.clone()].fill_with(|| random.u8(..));
                let written = channel.write(&opened, offset as u64, &copy[range]);
                assert_eq!(written.expect("written"), length);
            }
            2 if zeroes => {
                copy[range].fill(0);
                let zeroed = channel.discard(&opened, Command::Zero, offset as u64, length as u64);
                assert_eq!(zeroed.expect("zeroed"), length);
            }
            3 => channel.flush(&opened).expect("flushed"),
            _ => {
                let mut bytes = vec![0xEE; length];
                let read = channel.read(&opened, offset as u64, &mut bytes);
                assert_eq!(read.expect("read"), length);
                assert!(bytes == copy[range], "round {round}: {length} at {offset}");
            }
        }
    }
    let durable = channel.bio().expect("a bio");
    let buffer = Buffer::from_slice(&[5; 4096]);
    channel.submit(&opened, durable.write(0, buffer).flags(Flags::FUA));
    copy[..4096].fill(5);
    let mut left = 1;
    for number in 0..60 {
        let draft = channel.bio().expect("a bio");
        let (offset, buffer) = (number * 8192, Buffer::new(4096));
        channel.submit(&opened, draft.read(offset, buffer));
        left += 1;
    }
    while left > 0 {
        channel.wait(None);
        while let Some(mut finished) = channel.finished() {
            assert_eq!(finished.result(), Ok(4096));
            let at = finished.offset() as usize;
            let buffer = finished.take_buffer().expect("a buffer");
            assert!(at == 0 || buffer[..] == copy[at..at + 4096], "at {at}");
            left -= 1;
        }
    }
    let mut all = vec![0; size];
    channel.read(&opened, 0, &mut all).expect("read");
    assert!(all == copy);
}

#[test]
fn what_nbdkit_serves_is_a_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_server) = nbdkit(&folder, &["memory", "size=8M"]) else { return };
    let target = open(&target_of(&folder, "", ""));
    behaves_as_a_disk(&target, 8 << 20, true);
    assert_eq!(target.name, "nbd0");
    let (opened, mut channel) = opened(&target);
    let deletes = channel.attribute(&opened, "GEOM::candelete");
    assert_eq!(deletes.expect("asked").expect("known").to_string(), "1");
    channel
        .discard(&opened, Command::Delete, 0, 8 << 20)
        .expect("deleted");
    channel
        .write(&opened, 1 << 20, &[1; 32 << 10])
        .expect("written");
    let found = channel.extents(&opened, 0, 8 << 20, 100).expect("found");
    let found: Vec<_> = found.iter().map(|it| (it.length_bytes, it.kind)).collect();
    let expected = [
        (1 << 20, ExtentKind::Hole),
        (32 << 10, ExtentKind::Data),
        ((7 << 20) - (32 << 10), ExtentKind::Hole),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_qemu_serves_is_a_disk_over_one_connection() {
    let Some(qemu) = program("qemu-nbd") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [image, path, ready] = for_qemu(&folder);
    // Without -e qemu says that connections are not coherent.
    let arguments = [
        "-t", "-e", "3", "-f", "raw", "-x", "disk", "-k", &path, &ready, &image,
    ];
    let _server = start(&qemu, &arguments, &folder);
    let target = open(&target_of(&folder, "disk", ""));
    behaves_as_a_disk(&target, 4 << 20, true);
    let read_only = TargetOptions::default();
    let missing = open_target(&target_of(&folder, "other", ""), &read_only);
    let error = missing.err().expect("no such export").to_string();
    has(&error, "export `other`: the server refuses");
    let target = open_target(&target_of(&folder, "disk", ""), &read_only).expect("a target");
    let refused = target.open(Delta::READ_WRITE);
    assert_eq!(refused.err().expect("read-only").errno(), Errno::ROFS);
}

#[test]
fn threads_have_connections_of_their_own_where_they_may() {
    let folder = tempfile::tempdir().expect("a folder");
    for plugin in [
        &["memory", "size=4M"][..],
        &[
            "--filter=multi-conn",
            "memory",
            "size=4M",
            "multi-conn-mode=disable",
        ],
    ] {
        let Some(server) = nbdkit(&folder, plugin) else { return };
        let target = open(&target_of(&folder, "", ""));
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let target = &target;
                scope.spawn(move || {
                    let (opened, mut channel) = opened(target);
                    for round in 0..100_u64 {
                        let at = (thread << 20) + round * 4096;
                        let data = [(thread * 50 + round % 50) as u8; 4096];
                        channel.write(&opened, at, &data).expect("written");
                        let mut read = [0; 4096];
                        channel.read(&opened, at, &mut read).expect("read");
                        assert!(read == data);
                    }
                });
            }
        });
        drop((target, server));
        std::fs::remove_file(folder.path().join("s")).expect("the socket");
    }
}

#[test]
fn requests_outlive_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    std::fs::write(&image, vec![3; 1 << 20]).expect("an image");
    let plugin = ["file", &image.display().to_string()];
    let Some(server) = nbdkit(&folder, &plugin) else { return };
    let target = open(&target_of(&folder, "", "&timeout=10s"));
    let (opened, mut channel) = opened(&target);
    let mut bytes = [0; 512];
    channel.read(&opened, 0, &mut bytes).expect("read");
    drop(server);
    std::fs::remove_file(folder.path().join("s")).expect("the socket");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            // Asked while there is no server.
            let written = channel.write(&opened, 4096, &[9; 4096]);
            written.expect("written, later");
            channel.read(&opened, 4096, &mut bytes).expect("read");
            assert_eq!(bytes, [9; 512]);
        });
        std::thread::sleep(Duration::from_millis(150));
        let server = nbdkit(&folder, &plugin);
        waiting.join().expect("it was answered");
        drop(server);
    });
}

#[test]
fn requests_fail_when_the_server_stays_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = nbdkit(&folder, &["memory", "size=1M"]) else { return };
    let target = open(&target_of(&folder, "", "&retry=200ms"));
    let (opened, mut channel) = opened(&target);
    channel.read(&opened, 0, &mut [0; 512]).expect("read");
    drop(server);
    let error = channel
        .read(&opened, 0, &mut [0; 512])
        .expect_err("no server");
    assert_eq!(error.errno, Errno::NXIO);
    has(&error.to_string(), "of nbd0: the server");
}

#[test]
fn once_the_server_is_gone_requests_fail_soon_until_it_is_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = nbdkit(&folder, &["memory", "size=1M"]) else {
        return;
    };
    let target = open(&target_of(&folder, "", "&retry=1s"));
    let (opened, mut channel) = opened(&target);
    channel.read(&opened, 0, &mut [0; 512]).expect("read");
    drop(server);
    let begin = std::time::Instant::now();
    for _ in 0..20 {
        // With a connection of its own, as each look of a class at a disk has.
        let mut channel = target.stack.channel(1).expect("a channel");
        let read = channel.read(&opened, 0, &mut [0; 512]);
        assert_eq!(read.map_err(|error| error.errno), Err(Errno::NXIO));
    }
    // Not a second for each: tasting a disk alone takes some dozens of reads.
    assert!(begin.elapsed() < Duration::from_secs(10));
    std::fs::remove_file(folder.path().join("s")).expect("the socket");
    let _server = nbdkit(&folder, &["memory", "size=1M"]);
    channel.read(&opened, 0, &mut [0; 512]).expect("read");
}

#[test]
fn what_is_no_server_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let refusal = |more: &str| {
        let text = target_of(&folder, "x", more);
        let error = open_target(&text, &TargetOptions::default()).err();
        error.expect("refused").to_string()
    };
    has(&refusal(""), "No such file");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let error = refusal("&timeout=50ms");
    has(&error, "does not answer");
    let mad = std::thread::spawn(move || {
        // The one before is still in the queue.
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = stream.read(&mut [0; 1]);
        }
    });
    let error = refusal("");
    has(&error, "a server's greeting begins with");
    mad.join().expect("it ends");
    for text in ["nbd://", "nbd+unix:///x", "nbd:nothing", "nbds://h/x"] {
        assert!(
            open_target(text, &TargetOptions::default()).is_err(),
            "{text}"
        );
    }
}

/// Answers reads until the client leaves.
fn serve_until_disc(mut stream: UnixStream) {
    while let Some(request) = next_request(&mut stream)
        && request.command != command::DISC
    {
        let _ = stream.write_all(&sixes(&request));
    }
}

/// Shakes hands as a server that has only GO, and hands the connection to `then`.
fn serve_once(listener: &UnixListener, then: impl FnOnce(UnixStream)) {
    let flags = export_flag::HAS_FLAGS | export_flag::CAN_MULTI_CONN;
    serve_once_with(listener, flags, then);
}

/// The same with these flags of the export.
fn serve_once_with(listener: &UnixListener, flags: u16, then: impl FnOnce(UnixStream)) {
    serve_once_as(listener, flags, false, then);
}

/// The same, with or without replies in chunks and BLOCK_STATUS, whose context is number 1.
fn serve_once_as(listener: &UnixListener, flags: u16, chunks: bool, then: impl FnOnce(UnixStream)) {
    let (stream, _) = listener.accept().expect("a client");
    shake_hands(stream, flags, chunks, then);
}

/// The same for a client that has been accepted; one that leaves meanwhile is left.
fn shake_hands<S: Read + Write>(mut stream: S, flags: u16, chunks: bool, then: impl FnOnce(S)) {
    let greeting = Greeting { flags: 3 }.encode();
    let greeted = stream.write_all(&greeting);
    if greeted
        .and_then(|()| stream.read_exact(&mut [0; 4]))
        .is_err()
    {
        return;
    }
    loop {
        let mut header = [0; 16];
        if stream.read_exact(&mut header).is_err() {
            return;
        }
        let header = OptionHeader::decode(&header).expect("an option");
        let mut data = vec![0; header.length as usize];
        if stream.read_exact(&mut data).is_err() {
            return;
        }
        let mut reply = |reply: u32, data: &[u8]| {
            let head = OptionReplyHeader {
                option: header.option,
                reply,
                length: data.len() as u32,
            };
            let message = [&head.encode()[..], data].concat();
            // One that has left is found out with the next option.
            let _ = stream.write_all(&message);
        };
        if chunks && header.option == option::SET_META_CONTEXT {
            let (id, name) = (1, BASE_ALLOCATION.to_owned());
            let context = MetaContext { id, name }.encode();
            reply(option_reply::META_CONTEXT, &context);
        }
        if header.option != option::GO {
            let answer = [option_reply::ERR_UNSUP, option_reply::ACK];
            reply(answer[usize::from(chunks)], b"");
            continue;
        }
        let size_bytes = 1 << 20;
        reply(
            option_reply::INFO,
            &Info::Export { size_bytes, flags }.encode(),
        );
        reply(option_reply::ACK, b"");
        return then(stream);
    }
}

fn next_request(stream: &mut impl Read) -> Option<Request> {
    let mut bytes = [0; 28];
    stream.read_exact(&mut bytes).ok()?;
    Some(Request::decode(&bytes).expect("a request"))
}

/// The reply to a READ: bytes of 6.
fn sixes(request: &Request) -> Vec<u8> {
    let (error, cookie) = (0, request.cookie);
    let head = SimpleReply { error, cookie }.encode();
    [&head[..], &vec![6; request.length_bytes as usize]].concat()
}

#[test]
fn nonsense_ends_a_connection_and_requests_are_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let server = std::thread::spawn(move || {
        serve_once(&listener, drop);
        let nonsense: [&dyn Fn(Request) -> Vec<u8>; 4] = [
            &|_| vec![0x5A; 64],
            &|request| {
                let (error, cookie) = (0, request.cookie + 1);
                SimpleReply { error, cookie }.encode().to_vec()
            },
            &|_| Vec::new(),
            &|request| {
                let (error, cookie) = (108, request.cookie);
                SimpleReply { error, cookie }.encode().to_vec()
            },
        ];
        for answer in nonsense {
            serve_once(&listener, |mut stream| {
                let request = next_request(&mut stream).expect("a request");
                assert_eq!(
                    (request.command, request.offset_bytes),
                    (command::READ, 4096)
                );
                let _ = stream.write_all(&answer(request));
            });
        }
        serve_once(&listener, serve_until_disc);
    });
    let target = open(&target_of(&folder, "", ""));
    let (opened, mut channel) = opened(&target);
    let mut bytes = [0; 1024];
    channel.read(&opened, 4096, &mut bytes).expect("in the end");
    assert_eq!(bytes, [6; 1024]);
    drop((opened, channel, target));
    server.join().expect("the server");
}

#[test]
fn a_connection_that_no_request_has_used_ends_with_disc() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let server = std::thread::spawn(move || {
        let mut last = None;
        serve_once(&listener, |mut stream| last = next_request(&mut stream));
        last.map(|request| request.command)
    });
    drop(open(&target_of(&folder, "", "")));
    assert_eq!(server.join().expect("the server"), Some(command::DISC));
}

/// As qemu-nbd without `--persistent`, and nbdkit with its filter exitlast or `limit=1`.
#[test]
fn a_server_that_ends_with_its_first_client_serves_all_requests() {
    for flags in [0, export_flag::CAN_MULTI_CONN] {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
        let server = std::thread::spawn(move || {
            let flags = export_flag::HAS_FLAGS | flags;
            serve_once_with(&listener, flags, serve_until_disc);
        });
        let target = open(&target_of(&folder, "", "&retry=500ms"));
        for _ in 0..3 {
            // With a channel of its own, as each look of a class at a disk has.
            let (opened, mut channel) = opened(&target);
            let mut bytes = [0; 1024];
            channel.read(&opened, 4096, &mut bytes).expect("read");
            assert_eq!(bytes, [6; 1024]);
        }
        drop(target);
        server.join().expect("the server");
    }
}

#[test]
fn a_qemu_for_one_client_serves_it() {
    let Some(qemu) = program("qemu-nbd") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [image, path, ready] = for_qemu(&folder);
    let _server = start(&qemu, &["-f", "raw", "-k", &path, &ready, &image], &folder);
    let target = open(&target_of(&folder, "", "&retry=2s"));
    behaves_as_a_disk(&target, 4 << 20, true);
}
