//! Where a server listens: a Unix socket, or a TCP port.

use super::error::ServeError;
use super::peers::Peer;
use crate::socket_file::{self, Occupied, SocketFile};
use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// The longest path of a Unix socket in `sockaddr_un`, bytes (unix(7)).
const PATH_BYTES_MAX: usize = 107;

/// Where the server listens: a Unix socket or a TCP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket of that path.
    Unix(PathBuf),
    /// A TCP port; 0 for one that is free.
    Tcp {
        /// A name or number of this machine.
        host: String,
        /// TCP port; 10809 is NBD's.
        port: u16,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
        }
    }
}

impl FromStr for Address {
    type Err = ServeError;

    fn from_str(text: &str) -> Result<Self, ServeError> {
        let wrong = |problem: &str| ServeError::Address {
            address: text.to_owned(),
            problem: problem.to_owned(),
        };
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(wrong("the path is missing"));
            }
            return Ok(Self::Unix(path.into()));
        }
        let Some(place) = text.strip_prefix("tcp:") else {
            return Err(wrong("the kind of socket is missing"));
        };
        let Some((host, port)) = place.rsplit_once(':') else {
            return Err(wrong("the port is missing"));
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        let port = port
            .parse()
            .map_err(|_| wrong("a port is a number from 0 to 65535"))?;
        let host = host.to_owned();
        Ok(Self::Tcp { host, port })
    }
}

/// A socket that is listened to. The file of a Unix socket is removed when it is dropped.
pub(crate) struct Listening {
    pub socket: Socket,
    /// How clients reach it.
    pub uri: String,
    /// Other hosts can reach it.
    pub open_to_others: bool,
    _file: Option<SocketFile>,
}

impl Listening {
    /// A socket whose file, if it has one, is not ours.
    pub(super) fn without_file(socket: Socket, uri: String, open_to_others: bool) -> Self {
        Self {
            socket,
            uri,
            open_to_others,
            _file: None,
        }
    }

    /// How programs that speak HTTP reach a page; of a Unix socket `unix:PATH`, since there is no
    /// URL for it.
    pub(crate) fn http_url(&self, page: &str) -> String {
        match &self.socket {
            Socket::Unix(listener) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|it| it.as_pathname());
                format!("unix:{}", path.unwrap_or(Path::new("")).display())
            }
            Socket::Tcp(_) => {
                let place = self.uri.trim_start_matches("nbd://").trim_end_matches('/');
                format!("http://{place}{page}")
            }
        }
    }
}

pub(crate) enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Address {
    pub(crate) fn listen(&self) -> Result<Listening, ServeError> {
        match self {
            Self::Unix(path) => self.listen_unix(path),
            Self::Tcp { host, port } => self.listen_tcp(host, *port),
        }
    }

    fn failed(&self, problem: String, source: Option<io::Error>) -> ServeError {
        ServeError::Listen {
            address: self.to_string(),
            problem,
            source,
        }
    }

    fn listen_unix(&self, path: &Path) -> Result<Listening, ServeError> {
        let length = path.as_os_str().len();
        if length > PATH_BYTES_MAX {
            let problem = format!(
                "the path has {length} bytes; a Unix socket's has at most {PATH_BYTES_MAX}"
            );
            return Err(self.failed(problem, None));
        }
        let found = socket_file::look(path);
        if found.map_err(|problem| self.failed(problem, None))? == Occupied::Stale {
            // Another server may have removed it meanwhile.
            let _ = std::fs::remove_file(path);
        }
        let listener = UnixListener::bind(path);
        let listener = listener.map_err(|error| self.failed(error.to_string(), Some(error)))?;
        self.unblocked(listener.set_nonblocking(true))?;
        Ok(Listening {
            socket: Socket::Unix(listener),
            uri: format!("nbd+unix:///?socket={}", escaped(path)),
            open_to_others: false,
            _file: Some(SocketFile::of(path)),
        })
    }

    fn listen_tcp(&self, host: &str, port: u16) -> Result<Listening, ServeError> {
        let found = (host, port).to_socket_addrs();
        let found = found.map_err(|error| {
            let problem = format!("unknown host: {error}");
            self.failed(problem, Some(error))
        })?;
        let found: Vec<_> = found.collect();
        let listener = TcpListener::bind(&found[..]);
        let listener = listener.map_err(|error| {
            let problem = match error.kind() {
                io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
                io::ErrorKind::AddrNotAvailable => "the host is not this machine".to_owned(),
                _ => error.to_string(),
            };
            self.failed(problem, Some(error))
        })?;
        self.unblocked(listener.set_nonblocking(true))?;
        let local = listener.local_addr().ok();
        let port = local.map_or(port, |address| address.port());
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let uri = format!("nbd://{host}:{port}/");
        // One of unknown address is taken for the worst.
        let open_to_others = local.is_none_or(|it| !it.ip().to_canonical().is_loopback());
        let socket = Socket::Tcp(listener);
        Ok(Listening::without_file(socket, uri, open_to_others))
    }

    fn unblocked(&self, set: io::Result<()>) -> Result<(), ServeError> {
        set.map_err(|error| self.failed(error.to_string(), Some(error)))
    }
}

/// Room for replies in a Unix socket, bytes; the system's limit may be less.
const SEND_BYTES: usize = 4 << 20;

impl Socket {
    /// A descriptor of its own for the listener, to be watched.
    pub(crate) fn watched(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Unix(listener) => listener.try_clone().map(OwnedFd::from),
            Self::Tcp(listener) => listener.try_clone().map(OwnedFd::from),
        }
    }

    /// Accepts a client without waiting: its socket, its name for the log, and its owner.
    pub(crate) fn accept(&self) -> io::Result<(OwnedFd, String, Peer)> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                // Many replies are sent at once; with less room it only takes more calls.
                let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BYTES);
                let uid = rustix::net::sockopt::socket_peercred(&stream)?.uid.as_raw();
                let who = format!("a local client (uid {uid})");
                Ok((stream.into(), who, Peer::User(uid)))
            }
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nonblocking(true)?;
                // Small replies must not wait for company; without it they are only slower.
                let _ = stream.set_nodelay(true);
                // A host that is gone without a word is noticed; otherwise only by the idle limit.
                let _ = keep_alive(&stream);
                let host = Peer::host(peer.ip());
                Ok((stream.into(), peer.to_string(), host))
            }
        }
    }
}

/// Lets the system look after hosts that say nothing: first after a minute, then every 10 s, six
/// times.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(stream, 6)?;
    Ok(())
}

/// A path as a URI carries it (RFC 3986, 2.1).
pub(super) fn escaped(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["unix:/run/a b.sock", "tcp:localhost:10809", "tcp:[::1]:0"] {
            let address: Address = text.parse().expect("an address");
            assert_eq!(address.to_string(), text);
        }
        for text in [
            "/run/x",
            "unix:",
            "tcp:host",
            "tcp::1",
            "tcp:h:x",
            "tcp:h:65536",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(
                error.contains(text) && error.contains("unix:PATH"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_path_is_quoted_in_a_uri_and_its_socket_goes_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a b");
        let listening = Address::Unix(path.clone()).listen().expect("a socket");
        assert!(listening.uri.ends_with("/a%20b"), "{}", listening.uri);
        drop(listening);
        assert!(!path.exists());
    }
}
