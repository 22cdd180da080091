//! How long nbdcopy takes beside clients that send READs of 1 MiB and receive nothing.

use crate::Plan;
use crate::shared::{Failure, Process, program, ugeom, words};
use crate::table::{middle, ratios};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use ugeom_format::wire::nbd::{OptionHeader, Request, command, handshake_flag, option};

/// Clients that do not receive.
const UNREAD: [usize; 2] = [12, 64];

/// The time beside them, of that without them: at most this.
const GOAL: f64 = 2.0;

/// The size of a request of each client, bytes.
const READ_BYTES: u32 = 1 << 20;

/// Requests of each: more than any server takes without an answer being received.
const REQUESTS: u64 = 4096;

pub(crate) fn measure(plan: Plan) -> Result<(), Failure> {
    if program("nbdcopy").is_none() {
        println!("SKIP clients beside those that do not receive: nbdcopy is not installed");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let bytes = plan.bytes / 4;
    let socket = folder.path().join("ours");
    let line = ugeom(&socket, &[&format!("md:{bytes}"), "--rw"]);
    let mut servers = vec![("ugeom", line, socket)];
    if plan.others && program("nbdkit").is_some() {
        let socket = folder.path().join("nbdkit");
        let (path, bytes) = (socket.display().to_string(), bytes.to_string());
        let line = words(&["nbdkit", "-f", "-U", &path, "memory", &bytes]);
        servers.push(("nbdkit memory", line, socket));
    }
    for (name, line, socket) in &servers {
        match compare(name, line, socket, (bytes, plan.rounds)) {
            // A peer may refuse so many connections; this server may not.
            Err(error) if *name != servers[0].0 => println!("{name}: {error}"),
            other => other?,
        }
    }
    Ok(())
}

/// Times of one server, printed.
fn compare(
    name: &str,
    line: &[String],
    socket: &Path,
    (bytes, rounds): (u64, usize),
) -> Result<(), Failure> {
    let (mut alone, mut beside) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..rounds {
        // The one before has left its socket.
        let _ = std::fs::remove_file(socket);
        let server = Process::start(line, socket)?;
        server.fill(bytes)?;
        alone.push(copy(&server.uri())?);
        for (count, beside) in UNREAD.into_iter().zip(&mut beside) {
            let clients = (0..count).map(|_| unread(socket, bytes));
            let clients = clients.collect::<Result<Vec<_>, Failure>>();
            let clients = clients.map_err(|error| format!("{count} clients: {error}"))?;
            beside.push(copy(&server.uri())?);
            drop(clients);
        }
    }
    let alone_ms: Vec<f64> = alone.iter().map(|it| it * 1e3).collect();
    println!(
        "{name}: nbdcopy of {} MiB alone {} ms",
        bytes >> 20,
        middle(&alone_ms, 0)?
    );
    for (count, beside) in UNREAD.into_iter().zip(&beside) {
        let times = middle(&ratios(beside, &alone), 2)?;
        println!(
            "  beside {count} clients that do not receive: {times} times as long (goal: at most \
             {GOAL})"
        );
    }
    Ok(())
}

/// Seconds that copying the whole export takes.
fn copy(uri: &str) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut copy = Command::new("nbdcopy");
    let status = copy.args([uri, "null:"]).stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("nbdcopy failed: {status}").into());
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// A connection to the default export.
pub(crate) fn connect(socket: &Path) -> Result<UnixStream, Failure> {
    let mut stream = UnixStream::connect(socket)?;
    stream.read_exact(&mut [0; 18])?;
    let (option, length) = (option::EXPORT_NAME, 0);
    let header = OptionHeader { option, length }.encode();
    let flags = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    stream.write_all(&[&u32::from(flags).to_be_bytes()[..], &header].concat())?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}

/// A connection with as many READs as the server takes, whose replies wait.
fn unread(socket: &Path, bytes: u64) -> Result<UnixStream, Failure> {
    let mut stream = connect(socket)?;
    stream.set_nonblocking(true)?;
    for cookie in 0..REQUESTS {
        let places = bytes / u64::from(READ_BYTES);
        let request = Request {
            flags: 0,
            command: command::READ,
            cookie,
            offset_bytes: cookie % places * u64::from(READ_BYTES),
            length_bytes: READ_BYTES,
        };
        match stream.write_all(&request.encode()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(stream)
}
