//! The NBD server: each provider of a stack is an export by its name, the one on top the default.
//!
//! ```text
//!   control thread                         worker threads, one a core
//!     listeners, handshakes, time-outs       connections: requests in, replies out
//!     opens the provider (access, spoil)     a channel of the stack, a reactor
//!        |                                       ^          |
//!        |  admission: socket, handle, session   |          |  the connection has ended:
//!        +---------------------------------------+          |  its handle comes back
//!        ^                                                  |
//!        +---- closes the provider (taste again) <----------+
//! ```
//!
//! Opening and closing may make classes taste, which does I/O, so they happen on the control
//! thread; workers never wait. A worker reads all that a socket has with one call, gives every
//! request to the stack, and sends what is finished with one call, replies and data of many
//! requests together.
//!
//! **Limits push back.** A connection whose requests or bytes in flight reach their limit is not
//! read from until some are answered; a server with as many connections as it may have accepts no
//! more. Nothing is buffered beyond that, whatever a client does: one that never reads its replies,
//! or falls silent in the middle of a message, is closed after a while, and holds up no other
//! client until then.
//!
//! **What clients see follows GEOM.** A provider is opened when its export is chosen: for reading,
//! or with `writable` for reading and writing. A client that is refused (a partition is in use,
//! the disk is held exclusively) gets the protocol's error at that moment, with GEOM's reason.
//! Opening for writing spoils what was found on the provider, closing lets classes taste again, so
//! exports come and go.
//!
//! The files: `address` where to listen, `given` sockets that are there already; `exports` what
//! there is, `allow` which client sees it; `handshake` the options, as a function from bytes to
//! bytes; `control` and `worker` the threads; `connection` one
//! client, `connections` those of a worker, `budget` what they may have in flight; `operation` one
//! request on its way through the stack, `operations` those of a worker, `at_once` READs that need
//! none; `reply` the answers, `output` those that wait to be sent.

mod address;
mod allow;
mod at_once;
mod budget;
mod complaints;
mod connection;
mod connections;
mod control;
mod divided;
mod error;
mod exports;
mod given;
mod handshake;
mod operation;
mod operations;
mod output;
mod parts;
mod peers;
mod reply;
#[cfg(test)]
mod tests;
mod worker;

pub use address::Address;
pub(crate) use address::Listening;
pub use allow::{CertificateNames, Rule};
pub use error::ServeError;
pub use given::{Given, OnlyClient};
pub use ugeom_tls::ServerTls;

use crate::ranges::Ranges;
use crate::shown::Shown;
use control::Control;
use exports::Exports;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use ugeom_engine::reactor::Waker;
use ugeom_stack::Stack;

/// Where lines for the log go.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. When there are more, the longest idle one of the peer with most of
    /// them makes room; when none is idle, new ones wait.
    pub connections: usize,
    /// The same for the connections of one peer: a user of this machine, or another host.
    pub connections_per_peer: usize,
    /// Requests in flight of one connection.
    pub requests: usize,
    /// Bytes in flight of one connection: data of requests, and replies that were not sent.
    pub bytes_per_connection: usize,
    /// Bytes in flight of all connections.
    pub bytes: usize,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a client may be silent in the middle of a message, or leave replies unread.
    pub stall: Duration,
    /// How long a client may ask for nothing.
    pub idle: Duration,
}

impl Default for Limits {
    /// The defaults: 1024 connections, 512 of one peer, 1024 requests and 64 MiB each, 256 MiB in
    /// all, 10 s for a handshake, 30 s of silence, 24 h without a request.
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_peer: 512,
            requests: 1024,
            bytes_per_connection: 64 << 20,
            bytes: 256 << 20,
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(24 * 3600),
        }
    }
}

/// Whether clients may, or must, use TLS.
#[derive(Clone)]
pub struct Tls {
    /// Certificates and key of the server.
    pub server: ServerTls,
    /// Clients without TLS are refused.
    pub required: bool,
}

/// The addresses of a server, its exports for each client, and its limits.
#[derive(Clone)]
pub struct Settings {
    /// Sockets to listen on, all with the same exports.
    pub addresses: Vec<Address>,
    /// Sockets that are there already.
    pub given: Given,
    /// TLS for clients, if there is any.
    pub tls: Option<Tls>,
    /// The rules of export permissions; without rules every client sees all.
    pub allow: Vec<Rule>,
    /// Whether exports are opened for writing, but for those that are shown read-only.
    pub writable: bool,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// How long a worker polls for more requests before it sleeps, which takes a core and saves
    /// clients that wait for each answer the time of a wake-up.
    pub spin: Duration,
    /// The limits.
    pub limits: Limits,
    /// Locks that servers of the same stack share.
    pub ranges: Ranges,
    /// Where lines for the log go.
    pub log: Log,
}

impl Default for Settings {
    /// One worker, no address yet, reads only, every client sees all, nothing is logged.
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            given: Given::default(),
            tls: None,
            allow: Vec::new(),
            writable: false,
            threads: 1,
            spin: Duration::ZERO,
            limits: Limits::default(),
            ranges: Ranges::default(),
            log: Arc::new(|_| {}),
        }
    }
}

/// A server that runs. Dropping it stops it, as [`Server::stop`] does.
pub struct Server {
    uris: Vec<String>,
    waker: Waker,
    control: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and serves the providers of `stack` that are `shown` from now on.
    ///
    /// # Errors
    /// See [`ServeError`]; nothing is listened to then.
    pub fn start(stack: &Stack, shown: &Shown, settings: &Settings) -> Result<Self, ServeError> {
        let exports = Exports::new(stack, shown, settings);
        let verifies = settings.tls.as_ref().is_some_and(|tls| tls.server.verifies);
        if let Some(rule) = settings.allow.iter().find(|rule| rule.needs_certificate())
            && !verifies
        {
            return Err(ServeError::Rule {
                rule: rule.to_string(),
                problem: "names need verified certificates: --tls-verify-peer".to_owned(),
            });
        }
        for name in exports.missing() {
            (settings.log)(&format!(
                "warning: --allow names the export `{name}`, which does not exist yet"
            ));
        }
        let (control, waker, uris) = Control::new(exports, settings)?;
        let control = std::thread::Builder::new()
            .name("ugeom-nbd".to_owned())
            .spawn(move || control.run())
            .map_err(|source| ServeError::system("starting a thread", source))?;
        Ok(Self {
            uris,
            waker,
            control: Some(control),
        })
    }

    /// How clients reach the default export, one URI an address.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Stops accepting, answers the requests that were read, flushes the writes, and ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(control) = self.control.take() {
            self.waker.wake();
            // A thread that panicked has said so; there is nothing left to stop.
            let _ = control.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
