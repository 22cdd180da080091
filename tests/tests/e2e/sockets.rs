//! Sockets that `ugeom serve` does not open itself: passed by a parent process, and stdin and
//! stdout.

use crate::disks;
use crate::run::{UGEOM, command, end, has, run};
use crate::serve::noise;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use tempfile::TempDir;
use ugeom_testkit::program;

/// An image of a size that is no whole sectors; its folder, its path and its bytes.
fn image() -> (TempDir, String, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let bytes = noise(1, 300_100);
    std::fs::write(&path, &bytes).expect("an image");
    let text = disks::text(&path);
    (folder, text, bytes)
}

#[test]
fn nbdcopy_starts_the_server_and_passes_it_a_socket() {
    let (Some(copy), Some(info)) = (program("nbdcopy"), program("nbdinfo")) else { return };
    let (_folder, image, bytes) = image();
    for options in [&[][..], &["-s"], &["--stdio"]] {
        let serve = [&["--", "[", UGEOM, "serve", &image], options, &["]"]].concat();
        let ended = run(command(&copy, &[&serve[..], &["-"]].concat()), b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stdout == bytes, "{options:?}");
        let all = [&["--size"], &serve[..]].concat();
        let ended = run(command(&info, &all), b"");
        assert_eq!(ended.text().trim(), "300100", "{}", ended.stderr);
    }
}

#[test]
fn systemd_starts_the_server_with_unix_and_tcp_sockets() {
    let (Some(activate), Some(copy)) = (program("systemd-socket-activate"), program("nbdcopy"))
    else {
        return;
    };
    let (folder, image, bytes) = image();
    let socket = disks::at(&folder, "socket");
    let other = disks::at(&folder, "other");
    let all = [
        "-l",
        &socket,
        "-l",
        &other,
        "--fdname=nbd:nbd",
        UGEOM,
        "serve",
        &image,
    ];
    let mut activate = command(activate, &all);
    activate
        .stderr(Stdio::null())
        .env("XDG_RUNTIME_DIR", folder.path());
    let mut server = activate.spawn().expect("it starts");
    while !(folder.path().join("socket").exists() && folder.path().join("other").exists()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(server.try_wait().expect("its state").is_none());
    }
    for path in [&socket, &other] {
        let uri = format!("nbd+unix:///?socket={path}");
        let ended = run(command(&copy, &[&uri, "-"]), b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stdout == bytes);
    }
    let pid = server.id().to_string();
    crate::run::other("kill", &["-TERM", &pid]);
    let ended = end(server);
    assert_eq!((ended.code, ended.text().as_str()), (0, ""));
    assert!(folder.path().join("socket").exists(), "it is systemd's");
}

#[test]
fn sockets_that_were_announced_wrongly_are_an_error() {
    let (_folder, image, _) = image();
    for (variables, redirection, problem) in [
        ("LISTEN_FDS=x", "", "LISTEN_FDS is `x`"),
        (
            "LISTEN_FDS=1 LISTEN_FDNAMES=a:b",
            "",
            "2 names for 1 descriptors",
        ),
        ("LISTEN_FDS=1", "3<&-", "descriptor 3 of LISTEN_FDS"),
        ("LISTEN_FDS=1", "3</dev/null", "it is no socket"),
    ] {
        let script = format!("exec env LISTEN_PID=$$ {variables} {UGEOM} serve {image}");
        let ended = run(
            command("sh", &["-c", &format!("{script} {redirection}")]),
            b"",
        );
        let error = ended.failed(1);
        assert!(error.contains(problem), "{variables}: {error}");
    }
    // Meant for another process.
    let mut serve = command(
        UGEOM,
        &["serve", &image, "--run", "env | grep -c LISTEN_ || true"],
    );
    serve.env("LISTEN_PID", "1").env("LISTEN_FDS", "1");
    let ended = run(serve, b"");
    assert_eq!((ended.code, ended.text().trim()), (0, "0"));
}

/// Reads the image as an old client does (EXPORT_NAME, simple replies) and leaves.
fn read_all(mut stream: impl Read, mut to: impl Write, bytes: &[u8]) {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    let mut message = 3_u32.to_be_bytes().to_vec();
    message.extend(b"IHAVEOPT\0\0\0\x01\0\0\0\0");
    to.write_all(&message).expect("an option");
    let mut export = [0; 10];
    stream.read_exact(&mut export).expect("an export");
    assert_eq!(export[..8], (bytes.len() as u64).to_be_bytes());
    let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
    request.extend([0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    request.extend(0_u64.to_be_bytes());
    request.extend((bytes.len() as u32).to_be_bytes());
    to.write_all(&request).expect("a READ");
    let mut reply = vec![0; 16 + bytes.len()];
    stream.read_exact(&mut reply).expect("a reply");
    assert!(reply[4..16] == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(&reply[16..] == bytes);
}

#[test]
fn one_client_is_served_on_stdin_and_stdout() {
    let (_folder, image, bytes) = image();
    // Over pipes, as inetd's descendants and ssh do it.
    let mut child = command(UGEOM, &["serve", &image, "-s"])
        .spawn()
        .expect("it starts");
    let (input, output) = (child.stdin.take(), child.stdout.take());
    read_all(output.expect("stdout"), input.expect("stdin"), &bytes);
    assert_eq!(end(child).code, 0, "it ends with its client");
    // Over a socket, as libnbd does it.
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let theirs = OwnedFd::from(theirs);
    let mut serve = command(UGEOM, &["serve", &image, "--stdio"]);
    serve
        .stdin(theirs.try_clone().expect("a copy"))
        .stdout(theirs);
    let child = serve.spawn().expect("it starts");
    drop(serve);
    read_all(&ours, &ours, &bytes);
    ours.shutdown(Shutdown::Both).expect("the end");
    assert_eq!(end(child).code, 0, "it ends with its client");
    // A client that leaves at once.
    let ended = run(command(UGEOM, &["serve", &image, "-s"]), b"");
    assert_eq!((ended.code, &ended.stdout[..8]), (0, &b"NBDMAGIC"[..]));
    let ended = run(command(UGEOM, &["serve", &image, "-s", "--json"]), b"");
    ended.failed(2);
}

#[test]
fn the_socket_of_a_killed_server_is_replaced_and_that_of_a_live_one_is_not() {
    let (folder, image, _) = image();
    let socket = folder.path().join("socket");
    let address = format!("unix:{}", disks::text(&socket));
    let stale = UnixListener::bind(&socket).expect("a socket");
    let error = run(command(UGEOM, &["serve", &image, "--nbd", &address]), b"").failed(1);
    has(&error, "another server listens to it");
    drop(stale);
    let all = [
        "serve",
        &image,
        "--nbd",
        &address,
        "--run",
        "test -S \"${uri#*=}\"",
    ];
    let ended = run(command(UGEOM, &all), b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(!socket.exists());
}

#[test]
fn the_units_of_systemd_are_in_order() {
    let Some(analyze) = program("systemd-analyze") else { return };
    let units = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/systemd");
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str| std::fs::read_to_string(units.join(name)).expect("a unit");
    let service = read("ugeom@.service");
    // Where a package would install it; the program has to be there to be verified.
    let service = service.replace("/usr/bin/ugeom", UGEOM);
    let write = |name: &str, text: &str| disks::file(&folder, name, text);
    let service = write("ugeom@disk.service", &service);
    let socket = write("ugeom@disk.socket", &read("ugeom@.socket"));
    let ended = run(command(analyze, &["verify", &service, &socket]), b"");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}
