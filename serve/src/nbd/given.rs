//! Sockets that the server does not open itself: listeners of a service manager, and the connection
//! of a parent process.

use super::address::{Listening, Socket, escaped};
use super::error::ServeError;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, sockopt};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

/// Sockets that another process has opened and passed on.
#[derive(Clone, Default)]
pub struct Given {
    /// Sockets that listen already: Unix or TCP.
    pub listening: Vec<Arc<OwnedFd>>,
    /// A client that is connected already. The server ends with it.
    pub client: Option<OnlyClient>,
}

/// The one client of a server.
#[derive(Clone)]
pub struct OnlyClient {
    /// Its connection, a stream socket.
    pub socket: Arc<OwnedFd>,
    /// Called once when its connection has ended.
    pub ended: Arc<dyn Fn() + Send + Sync>,
}

impl Listening {
    /// A socket passed by another program; its file stays when the server ends.
    pub(super) fn given(fd: &Arc<OwnedFd>) -> Result<Self, ServeError> {
        let refused = |problem: &str| ServeError::Given {
            problem: problem.to_owned(),
        };
        let system = |source| ServeError::system("examining an inherited socket", source);
        let kind = sockopt::socket_type(fd).map_err(|_| refused("it is no socket"))?;
        if kind != SocketType::STREAM {
            return Err(refused("it is no stream socket (ListenStream= of systemd)"));
        }
        if !sockopt::socket_acceptconn(fd).unwrap_or(false) {
            return Err(refused("it does not listen (Accept=no of systemd)"));
        }
        let own = fd.try_clone().map_err(system)?;
        let address = rustix::net::getsockname(fd).map_err(|errno| system(errno.into()))?;
        let open_to_others = !is_local(&address);
        let (socket, uri) = match address.address_family() {
            AddressFamily::UNIX => {
                let listener = UnixListener::from(own);
                listener.set_nonblocking(true).map_err(system)?;
                (Socket::Unix(listener), uri_of_unix(address))
            }
            AddressFamily::INET | AddressFamily::INET6 => {
                let listener = TcpListener::from(own);
                listener.set_nonblocking(true).map_err(system)?;
                (Socket::Tcp(listener), uri_of_tcp(address))
            }
            _ => return Err(refused("it is neither a Unix nor a TCP socket")),
        };
        Ok(Self::without_file(socket, uri, open_to_others))
    }
}

/// Whether only this machine can reach it.
fn is_local(address: &SocketAddrAny) -> bool {
    match SocketAddr::try_from(address.clone()) {
        Ok(address) => address.ip().to_canonical().is_loopback(),
        Err(_) => address.address_family() == AddressFamily::UNIX,
    }
}

fn uri_of_unix(address: SocketAddrAny) -> String {
    use std::os::unix::ffi::OsStrExt;
    let address = SocketAddrUnix::try_from(address).ok();
    let path = address.as_ref().and_then(SocketAddrUnix::path_bytes);
    let path = path.map(|path| escaped(Path::new(std::ffi::OsStr::from_bytes(path))));
    format!("nbd+unix:///?socket={}", path.unwrap_or_default())
}

fn uri_of_tcp(address: SocketAddrAny) -> String {
    let address = SocketAddr::try_from(address);
    address.map_or_else(|_| "nbd:///".to_owned(), |it| format!("nbd://{it}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_taken_and_others_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a b");
        let unix = UnixListener::bind(&path).expect("a socket");
        let fd = Arc::new(OwnedFd::from(unix));
        let listening = Listening::given(&fd).expect("it listens");
        assert!(listening.uri.ends_with("/a%20b"), "{}", listening.uri);
        drop(listening);
        assert!(path.exists(), "it belongs to the service manager");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = tcp.local_addr().expect("an address").port();
        let listening = Listening::given(&Arc::new(tcp.into())).expect("it listens");
        assert_eq!(listening.uri, format!("nbd://127.0.0.1:{port}/"));
        let refused = |fd: OwnedFd| {
            let refused = Listening::given(&Arc::new(fd)).err().expect("refused");
            refused.to_string()
        };
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert!(refused(one.into()).contains("does not listen"));
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert!(refused(file.into()).contains("no socket"));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        assert!(refused(udp.into()).contains("stream"));
    }
}
