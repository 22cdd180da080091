//! The class `nbd` over TLS, beside the servers that speak it: nbdkit, qemu-nbd and ugeom.

use crate::disks;
use crate::pki::certificates;
use crate::run::{UGEOM, command, has, run, ugeom, ugeom_with, words_of};
use crate::serve::noise;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use ugeom_testkit::{Server, program};

const BYTES: usize = 3 << 20;

/// A server over TLS on a Unix socket.
struct TlsServer {
    _server: Server,
    folder: TempDir,
}

impl TlsServer {
    /// Starts a program, which listens to `socket` in the folder.
    fn start(folder: TempDir, mut program: Command) -> Self {
        program.stdin(Stdio::null()).stdout(Stdio::null());
        let child = program.stderr(Stdio::null()).spawn();
        let mut server = Server(child.expect("a server"));
        while std::os::unix::net::UnixStream::connect(folder.path().join("socket")).is_err() {
            assert!(server.try_wait().expect("its state").is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self {
            _server: server,
            folder,
        }
    }

    fn path(&self, name: &str) -> String {
        disks::at(&self.folder, name)
    }

    /// The target with the certificates of a folder, and with more options.
    fn target(&self, pki: &str, more: &str) -> String {
        let (socket, pki) = (self.path("socket"), self.path(pki));
        format!("nbds+unix:///?socket={socket}&tls-certificates={pki}&retry=2s{more}")
    }

    fn refused(&self, target: &str) -> String {
        let ended = ugeom(&["read", target]);
        assert!(ended.code != 0 && ended.stdout.is_empty(), "{target}");
        ended.stderr
    }
}

fn nbdkit(options: &[&str]) -> Option<TlsServer> {
    let (nbdkit, folder) = (program("nbdkit")?, certificates()?);
    let path = |name: &str| disks::at(&folder, name);
    let certificates = format!("--tls-certificates={}", path("pki"));
    let (size, socket) = (BYTES.to_string(), path("socket"));
    let all = ["-f", "-U", &socket, &certificates, "memory", &size];
    let command = command(nbdkit, &[options, &all].concat());
    Some(TlsServer::start(folder, command))
}

fn qemu() -> Option<TlsServer> {
    let (qemu, folder) = (program("qemu-nbd")?, certificates()?);
    let path = |name: &str| disks::at(&folder, name);
    std::fs::write(path("disk.img"), vec![0; BYTES]).expect("an image");
    let credentials = format!(
        "tls-creds-x509,id=t,endpoint=server,verify-peer=yes,dir={}",
        path("pki")
    );
    let (socket, image) = (path("socket"), path("disk.img"));
    let all = format!(
        "--object {credentials} --tls-creds t --persistent --shared=8 -f raw -k {socket} {image}"
    );
    let all = words_of(&all);
    let command = command(qemu, &all);
    Some(TlsServer::start(folder, command))
}

fn own(mode: &str) -> Option<TlsServer> {
    let folder = certificates()?;
    let path = |name: &str| disks::at(&folder, name);
    let (address, pki) = (format!("unix:{}", path("socket")), path("pki"));
    let all = format!(
        "serve md:3m --rw --nbd {address} --tls {mode} --tls-certificates {pki} --tls-verify-peer"
    );
    let all = words_of(&all);
    let mut serve = command(UGEOM, &all);
    serve.env("XDG_RUNTIME_DIR", folder.path());
    Some(TlsServer::start(folder, serve))
}

/// Writes everything, reads it back in several ways, and refuses to be served by others.
fn data_travels(server: &TlsServer) {
    let target = server.target("pki", "");
    let bytes = noise(3, BYTES);
    ugeom_with(&["write", &target], &bytes).quiet();
    let read = |target: &str, more: &[&str]| {
        let ended = ugeom(&[&["read", target], more].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{target}");
        ended.stdout
    };
    assert!(read(&target, &[]) == bytes);
    let piece = read(&target, &["--offset", "70001", "--length", "1000003"]);
    assert!(piece == bytes[70_001..][..1_000_003]);
    let cached = format!("{target} | cache:1m");
    assert!(read(&cached, &[]) == bytes);
    // Many requests in flight of several threads, both ways.
    let Some(copy) = program("nbdcopy") else { return };
    let (source, back) = (server.path("source"), server.path("back"));
    let bytes = noise(9, BYTES);
    std::fs::write(&source, &bytes).expect("data");
    let copy = copy.display();
    let both = format!("{copy} {source} $uri && {copy} --request-size=8192 $uri {back}");
    let all = ["serve", &target, "--rw", "--no-taste", "--run", &both];
    let mut serve = command(UGEOM, &all);
    serve.env("XDG_RUNTIME_DIR", server.folder.path());
    let ended = run(serve, b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(std::fs::read(&back).expect("a copy") == bytes);
    let trust = server.refused(&server.target("stranger", ""));
    has(&trust, "invalid peer certificate");
    let name = server.refused(&server.target("pki", "&tls-hostname=example.org"));
    has(&name, "not valid for name");
    let own = server.refused(&server.target("bare", ""));
    assert!(
        own.contains("TLS") || own.contains("client certificate"),
        "{own}"
    );
}

#[test]
fn data_travels_to_nbdkit_over_tls() {
    let Some(server) = nbdkit(&["--tls=require", "--tls-verify-peer"]) else { return };
    data_travels(&server);
    let plain = format!("nbd+unix:///?socket={}", server.path("socket"));
    let refused = server.refused(&plain);
    has(&refused, "TLS only: nbds://");
}

#[test]
fn data_travels_to_qemu_nbd_over_tls() {
    if let Some(server) = qemu() {
        data_travels(&server);
    }
}

#[test]
fn data_travels_to_ugeom_over_tls() {
    for mode in ["on", "require"] {
        let Some(server) = own(mode) else { return };
        data_travels(&server);
    }
}

#[test]
fn a_server_without_tls_is_not_used_with_it() {
    let Some(server) = nbdkit(&["--tls=off"]) else { return };
    let refused = server.refused(&server.target("pki", ""));
    has(&refused, "the server offers no TLS");
}

#[test]
fn a_server_over_tcp_needs_a_certificate_for_its_host() {
    let Some(folder) = certificates() else { return };
    let path = |name: &str| disks::at(&folder, name);
    let pki = path("pki");
    // The certificate is for localhost and 127.0.0.1.
    for (host, good) in [
        ("localhost", true),
        ("127.0.0.1", true),
        ("127.0.0.2", false),
    ] {
        let read = format!(
            "port=${{uri##*:}}; port=${{port%/}}; {UGEOM} read \
             \"nbds://{host}:$port/?tls-certificates={pki}\" --length 512 | wc -c"
        );
        let all =
            format!("serve md:1m --nbd tcp:0.0.0.0:0 --tls require --tls-certificates {pki} --run");
        let all = [words_of(&all), vec![&*read]].concat();
        let mut serve = command(UGEOM, &all);
        serve.env("XDG_RUNTIME_DIR", folder.path());
        let ended = run(serve, b"");
        let expected = if good { "512" } else { "0" };
        assert_eq!(ended.text().trim(), expected, "{host}: {}", ended.stderr);
        assert!(
            good || ended.stderr.contains("not valid for name"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn wrong_options_are_usage() {
    let no_folder = Path::new("/nowhere");
    for (target, part) in [
        (
            "nbds://h/?tls-psk-file=keys",
            "pre-shared keys are not supported",
        ),
        ("nbd:\"nbds://me@h/\"", "pre-shared keys"),
        ("nbd://h/?tls-certificates=/x", "it belongs to nbds://"),
        (
            "nbd+unix:///?socket=/x&tls-hostname=a",
            "it belongs to nbds://",
        ),
    ] {
        let usage = ugeom(&["show", target]).failed(2);
        assert!(usage.contains(part), "{target}: {usage}");
    }
    let target = format!("nbds://h/?tls-certificates={}", no_folder.display());
    let missing = ugeom(&["show", &target]).failed(1);
    has(&missing, "/nowhere/ca-cert.pem");
}
