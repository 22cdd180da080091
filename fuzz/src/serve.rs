//! Clients that send anything to a running NBD server, and to the HTTP server of the metrics.

use std::io::{Read, Write, copy, sink};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_format::wire::nbd::{OptionHeader, option};
use ugeom_serve::control::ServerFacts;
use ugeom_serve::metrics::Metrics;
use ugeom_serve::nbd::{Address, CertificateNames, Log, Server, ServerTls, Settings, Tls};
use ugeom_serve::shown::Shown;

/// Certificates of the server's tests.
const CERTIFICATES: &str = "../serve/src/nbd/tests/tls";

/// A server that runs for as long as the process, kept where a search for leaks finds it.
struct Running {
    path: PathBuf,
    _kept: Mutex<(Server, Target)>,
}

/// The socket of a server, one that requires TLS or one without it.
fn socket(secure: bool) -> &'static PathBuf {
    static RUNNING: [OnceLock<Running>; 2] = [OnceLock::new(), OnceLock::new()];
    let running = RUNNING[usize::from(secure)].get_or_init(|| {
        let name = format!("ugeom-fuzz-{}-{secure}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let options = TargetOptions::default().for_writing();
        let target = open_target("md:1m", &options).expect("a target");
        let tls = secure.then(|| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(CERTIFICATES);
            Tls {
                server: ServerTls::open(&folder, true).expect("certificates"),
                required: true,
            }
        });
        let settings = Settings {
            addresses: vec![Address::Unix(path.clone())],
            tls,
            writable: true,
            ..Settings::default()
        };
        let server =
            Server::start(&target.stack, &Shown::all(&*target.name), &settings).expect("a server");
        Running {
            path,
            _kept: Mutex::new((server, target)),
        }
    });
    &running.path
}

fn connect(secure: bool) -> UnixStream {
    let stream = UnixStream::connect(socket(secure)).expect("the server listens");
    let long = Some(Duration::from_secs(20));
    stream.set_read_timeout(long).expect("a time-out");
    stream
}

/// The flags, and an option EXPORT_NAME for the default export.
fn shaken() -> Vec<u8> {
    let (option, length) = (option::EXPORT_NAME, 0);
    let option = OptionHeader { option, length }.encode();
    [&3_u32.to_be_bytes()[..], &option].concat()
}

/// The first byte says whether the rest is said from the beginning or after a handshake. The
/// server must close the connection that its client has ended, and greet the next one.
pub fn serve_nbd(data: &[u8]) {
    let Some((first, said)) = data.split_first() else { return };
    let mut stream = connect(false);
    if first & 1 != 0 {
        stream.write_all(&shaken()).expect("a handshake");
    }
    // It may be sent away before it has said everything.
    let _ = stream.write_all(said);
    let _ = stream.shutdown(Shutdown::Write);
    let ended = copy(&mut stream, &mut sink());
    let late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!late, "the server keeps a client that has left");
    let mut next = connect(false);
    next.write_all(&shaken()).expect("a handshake");
    next.read_exact(&mut [0; 28])
        .expect("a greeting and the size");
}

/// Bytes before STARTTLS when the first byte is odd, else behind it: options and anything else, or
/// a hello.
pub fn serve_tls(data: &[u8]) {
    let Some((first, said)) = data.split_first() else { return };
    let before = first & 1 != 0;
    let (option, length) = (option::STARTTLS, 0);
    let option = OptionHeader { option, length }.encode();
    let flags = 3_u32.to_be_bytes();
    let begin = || {
        let mut stream = connect(true);
        let start = [&flags[..], &option].concat();
        stream.write_all(&start).expect("STARTTLS");
        let mut answer = [0; 38];
        stream
            .read_exact(&mut answer)
            .expect("a greeting and an answer");
        assert_eq!(answer[30..34], [0, 0, 0, 1], "ACK");
        stream
    };
    let mut stream = if before { connect(true) } else { begin() };
    // It may be sent away before it has said everything.
    if before {
        let _ = stream.write_all(&[&flags[..], said, &option].concat());
    } else {
        let _ = stream.write_all(said);
    }
    let _ = stream.shutdown(Shutdown::Write);
    let ended = copy(&mut stream, &mut sink());
    let late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!late, "the server keeps a client that has left");
    begin();
}

/// Metrics that are served for as long as the process.
fn metrics() -> &'static PathBuf {
    static RUNNING: OnceLock<(PathBuf, Mutex<(Metrics, Target)>)> = OnceLock::new();
    let running = RUNNING.get_or_init(|| {
        let name = format!("ugeom-fuzz-metrics-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let target = open_target("md:1m", &TargetOptions::default()).expect("a target");
        let facts = ServerFacts {
            protocol: 1,
            version: "1".to_owned(),
            pid: 1,
            target: "md:1m".to_owned(),
            connection: None,
        };
        let log: Log = Arc::new(|_| {});
        let address = Address::Unix(path.clone());
        let metrics = Metrics::start(
            &target.stack,
            &Shown::all(&*target.name),
            &address,
            facts,
            &log,
        )
        .expect("metrics");
        (path, Mutex::new((metrics, target)))
    });
    &running.0
}

/// The server must close a connection whatever it has sent, and answer the next one.
pub fn serve_metrics(data: &[u8]) {
    let connect = || {
        let stream = UnixStream::connect(metrics()).expect("the server listens");
        let long = Some(Duration::from_secs(20));
        stream.set_read_timeout(long).expect("a time-out");
        stream
    };
    let mut stream = connect();
    // The answer may come before the end of the request.
    let _ = stream.write_all(data);
    let _ = stream.shutdown(Shutdown::Write);
    let ended = copy(&mut stream, &mut sink());
    let late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(
        !late,
        "the server keeps a connection that its client has ended"
    );
    let mut next = connect();
    let request = b"HEAD /metrics HTTP/1.0\r\n\r\n";
    next.write_all(request).expect("a request");
    let mut answer = [0; 15];
    next.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
}

/// The names in a certificate: a malformed one is an error, and no name comes from nowhere.
pub fn certificate(data: &[u8]) {
    if let Ok(names) = CertificateNames::decode(data) {
        let text = [names.common, names.alternative].concat().concat();
        assert!(
            text.len() <= 8 * data.len(),
            "names longer than the certificate"
        );
    }
}
