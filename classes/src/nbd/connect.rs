//! Makes a connection to a server: the socket is connected, and the handshake follows.

use super::route::{Begun, Route};
use super::shake::{Facts, Shake, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::os::fd::OwnedFd;
use std::time::Duration;
use ugeom_format::wire::nbd::uri::ServerAddress;
use ugeom_format::wire::nbd::{Request, command};
use ugeom_machine::clock;
use ugeom_tls::{ClientTls, ROOM_BYTES_MIN, Stream};

/// How long an address may send no answer before the next one is tried, or the same one once more,
/// ns. The kernel repeats its SYN after 1 s and after 3 s, and then ever more seldom.
pub(super) const CONNECT_NS: u64 = 5_000_000_000;

/// Attempts to find a server.
const ATTEMPTS: usize = 4;

/// Whether a socket that has become writable is connected.
pub(super) fn connected(fd: &OwnedFd) -> Result<(), String> {
    match sockopt::socket_error(fd) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(errno)) | Err(errno) => Err(errno.to_string()),
    }
}

/// The connection over which the export was described.
pub(super) struct FirstConnection {
    pub facts: Facts,
    pub stream: Stream,
    pub route: Route,
}

/// Connects to an export.
pub(super) fn first(
    server: ServerAddress,
    export: &str,
    tls: Option<&ClientTls>,
    timeout: Duration,
) -> Result<FirstConnection, String> {
    let limit_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let deadline_ns = clock::now_ns().saturating_add(limit_ns);
    let route = Route::find(server)?;
    let fd = reach(&route, deadline_ns)?;
    let mut stream = Stream::plain(fd);
    match shake(&mut stream, export, tls, deadline_ns) {
        Ok(facts) => Ok(FirstConnection {
            facts,
            stream,
            route,
        }),
        Err(why) => {
            stream.close();
            Err(why)
        }
    }
}

/// The first connection that can be made. A name may have several addresses; a few of them are
/// tried. One that sends no answer leaves time for the others.
fn reach(route: &Route, deadline_ns: u64) -> Result<OwnedFd, String> {
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        let made = route.begin(attempt).and_then(|Begun { fd, addresses }| {
            let is_last = attempt + 1 >= addresses.min(ATTEMPTS);
            let soon_ns = clock::now_ns().saturating_add(CONNECT_NS);
            let limit_ns = if is_last {
                deadline_ns
            } else {
                soon_ns.min(deadline_ns)
            };
            wait(&fd, PollFlags::OUT, limit_ns)?;
            connected(&fd)?;
            Ok(fd)
        });
        match made {
            Ok(fd) => {
                route.has_reached(attempt);
                return Ok(fd);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn shake(
    stream: &mut Stream,
    export: &str,
    tls: Option<&ClientTls>,
    deadline_ns: u64,
) -> Result<Facts, String> {
    let mut shake = Shake::new(export, tls.is_some());
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut bytes = vec![0; ROOM_BYTES_MIN];
    loop {
        match (shake.advance(&mut input, &mut out)?, tls) {
            (Step::Done(facts), _) => return Ok(facts),
            (Step::Secure, Some(tls)) => {
                stream.secure_client(tls)?;
                shake.secured(&mut out);
            }
            _ => {}
        }
        let mut sent = 0;
        loop {
            match stream.send_all(&mut out, &mut sent) {
                Ok(()) => break,
                Err(Errno::AGAIN) => wait(stream.fd(), PollFlags::OUT, deadline_ns)?,
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(closed(stream)),
                Err(errno) => return Err(stream.reason(errno)),
            }
        }
        wait(stream.fd(), PollFlags::IN, deadline_ns)?;
        match stream.read(&mut [], &mut bytes) {
            Ok(0) => return Err(closed(stream)),
            Ok(count) => input.extend(&bytes[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Err(closed(stream)),
            Err(errno) => return Err(stream.reason(errno)),
        }
    }
}

/// Ends the transmission phase. The server sees the end of the connection in any case.
pub(super) fn leave(stream: &mut Stream) {
    let leave = Request {
        flags: 0,
        command: command::DISC,
        cookie: 0,
        offset_bytes: 0,
        length_bytes: 0,
    };
    let _ = stream.send(&leave.encode());
    stream.close();
}

/// Why the server may have closed the connection. In TLS it may do so before its reason is read: a
/// client without the certificate that it asks for sees a reset.
fn closed(stream: &Stream) -> String {
    let why = if stream.is_secure() {
        " (it may ask for another client certificate: see its log)"
    } else {
        ""
    };
    format!("the server has closed the connection{why}")
}

fn wait(fd: &OwnedFd, what: PollFlags, deadline_ns: u64) -> Result<(), String> {
    loop {
        let left_ns = deadline_ns.saturating_sub(clock::now_ns());
        let left = Timespec {
            tv_sec: i64::try_from(left_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (left_ns % 1_000_000_000) as i64,
        };
        match poll(&mut [PollFd::new(fd, what)], Some(&left)) {
            Ok(0) => return Err("the server does not answer".to_owned()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A listener whose queue is full: like a host that is gone, it leaves a SYN without an answer.
    #[test]
    fn an_address_without_an_answer_leaves_time_for_the_next_one() {
        let full = TcpListener::bind("127.0.0.1:0").expect("a socket");
        rustix::net::listen(&full, 0).expect("a short queue");
        let dead = full.local_addr().expect("an address");
        let queue = Route::known("full", &[dead]);
        let queued: Vec<_> = (0..4).map(|attempt| queue.begin(attempt)).collect();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let alive = listener.local_addr().expect("an address");
        let route = Route::known("two", &[dead, alive]);
        let begin_ns = clock::now_ns();
        reach(&route, begin_ns + 60_000_000_000).expect("one of them answers");
        let took_ns = clock::now_ns() - begin_ns;
        assert!(took_ns >= CONNECT_NS, "the first one is tried");
        assert_eq!(route.last(), 1);
        drop(queued);
    }
}
