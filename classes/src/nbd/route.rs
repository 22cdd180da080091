//! Where a server listens, and the addresses of its host name.
//!
//! A name is looked up when the stack is built. Later, a thread looks it up again when an attempt
//! to connect has failed: behind a partition a look-up takes tens of seconds, and a thread that
//! serves requests, also those to other disks, must not wait for it.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use ugeom_format::wire::nbd::uri::ServerAddress;
use ugeom_machine::mutex::Mutex;

/// The addresses of a host; a Unix socket has none. This may take tens of seconds.
fn look_up(server: &ServerAddress) -> Result<Vec<SocketAddr>, String> {
    let ServerAddress::Tcp { host, port } = server else { return Ok(Vec::new()) };
    let found = (host.as_str(), *port).to_socket_addrs();
    let found = found.map_err(|error| format!("unknown host: {error}"))?;
    Ok(found.collect())
}

/// True if the addresses of a server may change.
fn has_name(server: &ServerAddress) -> bool {
    matches!(server, ServerAddress::Tcp { host, .. } if host.parse::<IpAddr>().is_err())
}

/// Where a server listens, and the addresses of its host.
pub(super) struct Route {
    server: ServerAddress,
    addresses: Arc<Addresses>,
    /// The number of the address that has last reached the server.
    last: AtomicUsize,
}

#[derive(Default)]
struct Addresses {
    known: Mutex<Vec<SocketAddr>>,
    /// A thread looks them up.
    asks: AtomicBool,
}

/// A connection that is being made.
pub(super) struct Begun {
    pub fd: OwnedFd,
    /// How many addresses there are to try.
    pub addresses: usize,
}

impl Route {
    /// Looks the host name up.
    ///
    /// # Errors
    /// Why that does not work, in plain words.
    pub fn find(server: ServerAddress) -> Result<Self, String> {
        let found = look_up(&server)?;
        Ok(Self::to(server, found))
    }

    fn to(server: ServerAddress, found: Vec<SocketAddr>) -> Self {
        let addresses = Arc::<Addresses>::default();
        *addresses.known.lock() = found;
        Self {
            server,
            addresses,
            last: AtomicUsize::new(0),
        }
    }

    /// A host whose addresses are known.
    #[cfg(test)]
    pub fn known(host: &str, addresses: &[SocketAddr]) -> Self {
        let (host, port) = (host.to_owned(), addresses[0].port());
        Self::to(ServerAddress::Tcp { host, port }, addresses.to_vec())
    }

    pub fn server(&self) -> &ServerAddress {
        &self.server
    }

    /// Begins to connect, without waiting; a socket that has become writable is connected, or has
    /// an error. `attempt` counts up, so that each address of a host gets its turn.
    ///
    /// # Errors
    /// Why that cannot work, in plain words.
    pub fn begin(&self, attempt: usize) -> Result<Begun, String> {
        let ServerAddress::Unix(path) = &self.server else {
            let known = self.addresses.known.lock();
            let address = known.get(attempt % known.len().max(1));
            let address = address.ok_or("the host has no address")?;
            let (fd, addresses) = (begin_to(address)?, known.len());
            return Ok(Begun { fd, addresses });
        };
        let address = SocketAddrUnix::new(path.as_path());
        let address = address.map_err(|_| "the path of the socket is too long")?;
        let fd = open(AddressFamily::UNIX)?;
        started(rustix::net::connect(&fd, &address))?;
        Ok(Begun { fd, addresses: 1 })
    }

    /// The number of the address that has last reached the server.
    pub fn last(&self) -> usize {
        self.last.load(Ordering::Relaxed)
    }

    /// The address of that number has reached the server.
    pub fn has_reached(&self, number: usize) {
        self.last.store(number, Ordering::Relaxed);
    }

    /// An attempt has failed: the name may have other addresses now.
    pub fn has_failed(&self) {
        if !has_name(&self.server) || self.addresses.asks.swap(true, Ordering::SeqCst) {
            return;
        }
        let (server, addresses) = (self.server.clone(), Arc::clone(&self.addresses));
        let thread = std::thread::Builder::new().name("ugeom-nbd-name".to_owned());
        let asks = thread.spawn(move || {
            if let Ok(found) = look_up(&server)
                && !found.is_empty()
            {
                *addresses.known.lock() = found;
            }
            addresses.asks.store(false, Ordering::SeqCst);
        });
        if asks.is_err() {
            // The known ones have to do.
            self.addresses.asks.store(false, Ordering::SeqCst);
        }
    }
}

fn begin_to(address: &SocketAddr) -> Result<OwnedFd, String> {
    let fd = match address {
        SocketAddr::V4(_) => open(AddressFamily::INET)?,
        SocketAddr::V6(_) => open(AddressFamily::INET6)?,
    };
    // Without it small requests are only slower.
    let _ = sockopt::set_tcp_nodelay(&fd, true);
    started(rustix::net::connect(&fd, address))?;
    Ok(fd)
}

fn open(family: AddressFamily) -> Result<OwnedFd, String> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    fd.map_err(|errno| errno.to_string())
}

fn started(result: Result<(), Errno>) -> Result<(), String> {
    match result {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    /// A name that no server knows, as all names behind a partition.
    #[test]
    fn a_connection_that_is_made_again_waits_for_no_look_up() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let alive = listener.local_addr().expect("an address");
        let route = Route::known("nowhere.invalid", &[alive]);
        route.begin(0).map(drop).expect("the known address");
        route.has_failed();
        route.begin(1).map(drop).expect("it is still known");
        listener.accept().expect("a connection");
    }

    #[test]
    fn a_name_is_looked_up_again_after_an_attempt_that_failed() {
        let old: SocketAddr = "192.0.2.1:10809".parse().expect("an address");
        let route = Route::known("localhost", &[old]);
        route.has_failed();
        let begin = Instant::now();
        while route.addresses.known.lock().contains(&old) {
            assert!(begin.elapsed() < Duration::from_secs(60), "it is looked up");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(
            route
                .addresses
                .known
                .lock()
                .iter()
                .all(|it| it.ip().is_loopback())
        );
    }
}
