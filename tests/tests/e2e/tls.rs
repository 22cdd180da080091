//! `ugeom serve --tls` beside the clients that speak TLS: libnbd's, qemu's, openssl, and some that
//! keep no rules.

use crate::disks;
use crate::pki::certificates;
use crate::run::{Ended, UGEOM, command, has, other, run};
use crate::serve::noise;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use ugeom_testkit::{Server, program};

/// A server that runs over TCP and a Unix socket.
struct Served {
    _server: Server,
    port: String,
    socket: PathBuf,
    image: PathBuf,
    folder: TempDir,
}

impl Served {
    fn start(folder: TempDir, arguments: &[&str]) -> Self {
        let image = folder.path().join("disk.img");
        std::fs::write(&image, noise(1, 3 << 20)).expect("an image");
        let socket = folder.path().join("socket");
        let (target, address) = (
            disks::text(&image),
            format!("unix:{}", disks::text(&socket)),
        );
        let pki = disks::at(&folder, "pki");
        let mut all = vec![
            "serve",
            &target,
            "--rw",
            "--nbd",
            "tcp:localhost:0",
            "--nbd",
            &address,
        ];
        if arguments != ["--tls", "off"] {
            all.extend(["--tls-certificates", &pki]);
        }
        all.extend(arguments);
        let mut serve = command(UGEOM, &all);
        serve.env("XDG_RUNTIME_DIR", folder.path());
        let mut child = serve.stderr(Stdio::null()).spawn().expect("a server");
        let stdout = child.stdout.take().expect("stdout");
        let mut lines = BufReader::new(stdout).lines();
        let uri = lines.next().expect("a line").expect("text");
        assert_eq!(uri.starts_with("nbds:"), arguments.contains(&"require"));
        let port = uri.rsplit(':').next().expect("a port");
        let port = port.trim_end_matches('/').to_owned();
        lines.next().expect("a line").expect("the socket's");
        Self {
            _server: Server(child),
            port,
            socket,
            image,
            folder,
        }
    }

    /// A URI for libnbd's programs: plain, or with the certificates of a folder.
    fn uris(&self, certificates: Option<&str>) -> [String; 2] {
        let (port, socket) = (&self.port, self.socket.display());
        match certificates.map(|name| self.folder.path().join(name)) {
            None => [
                format!("nbd://localhost:{port}/"),
                format!("nbd+unix:///?socket={socket}"),
            ],
            Some(pki) => {
                let pki = pki.display();
                [
                    format!("nbds://localhost:{port}/?tls-certificates={pki}"),
                    format!(
                        "nbds+unix:///?socket={socket}&tls-certificates={pki}&\
                         tls-hostname=localhost"
                    ),
                ]
            }
        }
    }
}

/// The export that qemu-img finds at an address, with certificates or without.
fn qemu_info(qemu: &Path, served: &Served, certificates: Option<&str>) -> Ended {
    let port = &served.port;
    let mut image = format!("driver=nbd,host=localhost,port={port}");
    let mut all = vec!["info".to_owned(), "--image-opts".to_owned()];
    if let Some(name) = certificates {
        let pki = served.folder.path().join(name);
        all.push("--object".to_owned());
        all.push(format!(
            "tls-creds-x509,id=t,endpoint=client,dir={}",
            pki.display()
        ));
        image.push_str(",tls-creds=t,tls-hostname=localhost");
    }
    all.push(image);
    run(command(qemu, &all), b"")
}

#[test]
fn who_is_served_follows_the_mode_and_the_certificates() {
    let (Some(info), Some(qemu)) = (program("nbdinfo"), program("qemu-img")) else { return };
    // The server's options, then the clients that are served: without TLS, with TLS and no
    // certificate, with one, with one of another authority.
    for (options, served) in [
        (&["--tls", "off"][..], [true, false, false, false]),
        (&["--tls", "on"], [true, true, true, false]),
        (&["--tls", "require"], [false, true, true, false]),
        (
            &["--tls", "on", "--tls-verify-peer"],
            [true, false, true, false],
        ),
        (
            &["--tls", "require", "--tls-verify-peer"],
            [false, false, true, false],
        ),
    ] {
        let Some(folder) = certificates() else { return };
        let server = Served::start(folder, options);
        let clients = [None, Some("bare"), Some("pki"), Some("stranger")];
        for (client, is_served) in clients.into_iter().zip(served) {
            let [tcp, unix] = server.uris(client);
            // libnbd does not look at the server's certificate over a Unix socket.
            let verifies = options.contains(&"--tls-verify-peer");
            let trusts = client == Some("stranger") && served[1] && !verifies;
            for (uri, is_served) in [(tcp, is_served), (unix, is_served || trusts)] {
                let ended = run(command(&info, &["--size", &uri]), b"");
                assert_eq!(
                    ended.code == 0,
                    is_served,
                    "{options:?} {uri}: {}",
                    ended.stderr
                );
                if is_served {
                    assert_eq!(ended.text().trim(), "3145728");
                }
            }
            let ended = qemu_info(&qemu, &server, client);
            assert_eq!(
                ended.code == 0,
                is_served,
                "{options:?} {client:?}: {}",
                ended.stderr
            );
        }
    }
}

#[test]
fn data_travels_both_ways_through_tls() {
    let (Some(copy), Some(nbdsh)) = (program("nbdcopy"), program("nbdsh")) else { return };
    let Some(folder) = certificates() else { return };
    let served = Served::start(folder, &["--tls", "require", "--tls-verify-peer"]);
    let bytes = noise(7, 3 << 20);
    let source = served.folder.path().join("source");
    std::fs::write(&source, &bytes).expect("data");
    let back = served.folder.path().join("back");
    for uri in served.uris(Some("pki")) {
        for options in [&[][..], &["--synchronous", "--request-size=4096"]] {
            let (from, to) = (disks::text(&source), disks::text(&back));
            other(&copy, &[options, &["--flush", &from, &uri]].concat());
            assert!(std::fs::read(&served.image).expect("the image") == bytes);
            other(&copy, &[options, &[&uri, &to]].concat());
            assert!(
                std::fs::read(&back).expect("a copy") == bytes,
                "{uri} {options:?}"
            );
        }
    }
    // Requests of every size, beside each other.
    let script = "\
import random
random.seed(5)
want = bytearray(h.pread(3 << 20, 0))
for _ in range(300):
    size = random.choice([1, 511, 4096, 70000, 1 << 20])
    at = random.randrange((3 << 20) - size)
    if random.random() < 0.5:
        data = random.randbytes(size)
        h.pwrite(data, at)
        want[at:at + size] = data
    else:
        assert h.pread(size, at) == want[at:at + size]
bufs = [(at, nbd.Buffer(65536)) for at in range(0, 3 << 20, 65536)]
cookies = [h.aio_pread(b, at) for at, b in bufs]
for c in cookies:
    while not h.aio_command_completed(c):
        h.poll(-1)
assert b''.join(b.to_bytearray() for _, b in bufs) == want
";
    for uri in served.uris(Some("pki")) {
        // The module belongs to Debian's python3, whatever else comes first.
        let connect = format!("h.set_uri_allow_local_file(True); h.connect_uri('{uri}')");
        let mut shell = command(&nbdsh, &["-c", &connect, "-c", script]);
        shell
            .env("PATH", "/usr/bin:/bin")
            .env_remove("PYENV_VERSION");
        let ended = run(shell, b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
}

#[test]
fn what_is_wrong_with_tls_is_said() {
    let Some(folder) = certificates() else { return };
    let pki = disks::at(&folder, "pki");
    let serve = |arguments: &[&str]| {
        let all = [&["serve", "md:1m", "--run", "true"], arguments].concat();
        run(command(UGEOM, &all), b"")
    };
    let usage = serve(&["--tls", "on"]).failed(2);
    has(&usage, "--tls-certificates DIR");
    let usage = serve(&["--tls-certificates", &pki]).failed(2);
    has(&usage, "--tls on");
    let usage = serve(&["--tls", "on", "--tls-psk", "keys"]).failed(2);
    has(&usage, "pre-shared keys are not supported");
    let all = ["--tls", "require", "--tls-certificates"];
    let missing = serve(&[&all[..], &["/nowhere"]].concat()).failed(1);
    has(&missing, "/nowhere/server-key.pem");
    let empty = disks::at(&folder, "empty");
    std::fs::create_dir(&empty).expect("a folder");
    for name in ["server-key.pem", "ca-cert.pem"] {
        std::fs::copy(format!("{pki}/{name}"), format!("{empty}/{name}")).expect("a copy");
    }
    std::fs::write(format!("{empty}/server-cert.pem"), "nothing").expect("a file");
    let nothing = serve(&[&all[..], &[&empty]].concat()).failed(1);
    has(&nothing, "server-cert.pem: there is no certificate");
    // A key that belongs to another certificate.
    let from = folder.path().join("stranger/server-cert.pem");
    std::fs::copy(from, format!("{empty}/server-cert.pem")).expect("a copy");
    let wrong = serve(&[&all[..], &[&empty]].concat()).failed(1);
    has(&wrong, "server-cert.pem");
}

/// A client that has sent its flags.
fn raw(served: &Served) -> UnixStream {
    let mut stream = UnixStream::connect(&served.socket).expect("a connection");
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a limit");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("a greeting");
    stream.write_all(&3_u32.to_be_bytes()).expect("flags");
    stream
}

fn option(number: u32) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend([0; 4]);
    bytes
}

/// The kind of the reply to an option; 1 is ACK.
fn reply(stream: &mut UnixStream) -> u32 {
    let mut head = [0; 20];
    stream.read_exact(&mut head).expect("a reply");
    let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let mut data = vec![0; word(16) as usize];
    stream.read_exact(&mut data).expect("its data");
    word(12)
}

const STARTTLS: u32 = 5;
const LIST: u32 = 3;
const STRUCTURED_REPLY: u32 = 8;
const ERR_TLS_REQD: u32 = 1 << 31 | 5;

#[test]
fn what_is_sent_in_the_clear_never_counts() {
    let (Some(info), Some(folder)) = (program("nbdinfo"), certificates()) else { return };
    let served = Served::start(folder, &["--tls", "require"]);
    // Without TLS there is nothing but TLS.
    let mut stream = raw(&served);
    for number in [LIST, STRUCTURED_REPLY, 6, 7, 9, 10, 77] {
        stream.write_all(&option(number)).expect("an option");
        assert_eq!(reply(&mut stream), ERR_TLS_REQD, "option {number}");
    }
    stream.write_all(&option(1)).expect("EXPORT_NAME");
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    // An option that was put behind STARTTLS by a third party: the connection ends, and the
    // option has no answer.
    let mut stream = raw(&served);
    stream
        .write_all(&[option(STARTTLS), option(LIST)].concat())
        .expect("options");
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(all.len() <= 20, "nothing but the ACK: {all:?}");
    // No TLS behind STARTTLS, and a beginning of it that never ends or is too long.
    for noise in [
        vec![0x16, 3, 1, 0xff, 0xff],
        noise(3, 5000),
        option(LIST),
        [&[0x16, 3, 1, 0x40, 0][..], &vec![1; 0x4000]].concat(),
    ] {
        let mut stream = raw(&served);
        stream.write_all(&option(STARTTLS)).expect("an option");
        assert_eq!(reply(&mut stream), 1);
        let _ = stream.write_all(&noise);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        assert!(all.len() < 100, "an alert at most: {all:?}");
    }
    let [_, uri] = served.uris(Some("bare"));
    let ended = run(command(info, &["--size", &uri]), b"");
    assert_eq!(ended.code, 0, "the server goes on: {}", ended.stderr);
}
