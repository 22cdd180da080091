//! TLS below the protocol: certificates, and the records of one connection.
//!
//! Source: "TLS support" of the NBD protocol (`doc/proto.md` of
//! <https://github.com/NetworkBlockDevice/nbd>); the names of files are those of nbdkit-tls(1).

use super::error::ServeError;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a folder with certificates, as nbdkit, qemu and libnbd name them.
const AUTHORITIES: &str = "ca-cert.pem";
const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";

/// The longest record, with what may be left over of one (RFC 8446, 5.2), bytes.
const RECORD_BYTES_MAX: usize = 18 << 10;

/// The least room that [`Records::read`] needs, bytes.
pub(super) const ROOM_BYTES_MIN: usize = 2 * RECORD_BYTES_MAX;

/// Bytes of records received at a time.
const RECEIVED_BYTES: usize = 256 << 10;

/// Whether clients may, or must, use TLS.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// Clients without TLS are refused.
    pub required: bool,
    /// Clients with TLS and without a certificate of the authorities are refused.
    pub verifies: bool,
}

impl Tls {
    /// TLS with the certificates of a folder: `ca-cert.pem`, `server-cert.pem`, `server-key.pem`.
    /// With `verify_peer` clients need a certificate that the authorities of the first have signed.
    ///
    /// # Errors
    /// `Certificates`: a file is missing, or is not what it should be.
    pub fn open(folder: &Path, verify_peer: bool, required: bool) -> Result<Self, ServeError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(folder, &error))?;
        let builder = if verify_peer {
            let path = folder.join(AUTHORITIES);
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&path)? {
                roots.add(certificate).map_err(|error| bad(&path, &error))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| bad(&path, &error))?)
        } else {
            builder.with_no_client_auth()
        };
        let path = folder.join(KEY);
        let key = PrivateKeyDer::from_pem_file(&path).map_err(|error| bad(&path, &error))?;
        let path = folder.join(CERTIFICATE);
        let chain = certificates(&path)?;
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| bad(&path, &error))?;
        // Connections live long: there is nothing to resume.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(Self {
            config: Arc::new(config),
            required,
            verifies: verify_peer,
        })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(path, &error))?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| bad(path, &error))?;
    if found.is_empty() {
        return Err(bad(path, &"there is no certificate in it"));
    }
    Ok(found)
}

fn bad(path: &Path, problem: &dyn std::fmt::Display) -> ServeError {
    ServeError::Certificates {
        path: PathBuf::from(path),
        problem: problem.to_string(),
    }
}

/// The records of one connection.
pub(super) struct Records {
    session: ServerConnection,
    received: Vec<u8>,
    /// Why there can be no more.
    failure: Option<String>,
}

impl Records {
    /// At their start: the client's hello comes next.
    ///
    /// # Errors
    /// What the configuration does not allow.
    pub fn new(tls: &Tls) -> Result<Self, String> {
        let session = ServerConnection::new(Arc::clone(&tls.config));
        let mut session = session.map_err(|error| error.to_string())?;
        // What is written is bounded by the caller, who waits until it is sent.
        session.set_buffer_limit(None);
        Ok(Self {
            session,
            received: Vec::new(),
            failure: None,
        })
    }

    /// Why the last call failed, if that was TLS.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Receives records and reads all that is in them, into `data` first, then into `more`, which
    /// together have at least [`ROOM_BYTES_MIN`] bytes; 0 at the end of the stream. Nothing but a
    /// part of a record is kept, so that a poll of the socket tells whether there is more.
    ///
    /// # Errors
    /// AGAIN when no data has come; PROTO when it is no TLS, or not to be trusted.
    pub fn read(&mut self, fd: &OwnedFd, data: &mut [u8], more: &mut [u8]) -> Result<usize, Errno> {
        let room = data.len() + more.len();
        let wanted = room.saturating_sub(RECORD_BYTES_MAX).min(RECEIVED_BYTES);
        if self.received.len() < wanted {
            self.received.resize(wanted, 0);
        }
        let count = rustix::io::read(fd, &mut self.received[..wanted])?;
        if count == 0 {
            return Ok(0);
        }
        let mut filled = 0;
        let mut rest = &self.received[..count];
        while !rest.is_empty() {
            let before = rest.len();
            let taken = self.session.read_tls(&mut rest);
            let state = match taken {
                Ok(_) => self.session.process_new_packets(),
                Err(_) => return Err(Errno::PROTO),
            };
            if let Err(error) = state {
                self.failure = Some(format!("TLS: {error}"));
                // The client learns why; when it cannot be told, it only sees the end.
                let _ = self.flush(fd);
                return Err(Errno::PROTO);
            }
            filled += drain(&mut self.session, filled, data, more);
            if rest.len() == before {
                // Behind the end that the client has announced.
                break;
            }
        }
        if filled > 0 {
            return Ok(filled);
        }
        match self.session.reader().read(&mut [0]) {
            Ok(0) => Ok(0),
            _ => Err(Errno::AGAIN),
        }
    }

    /// The certificate that the client has proved to be its own, in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        let chain = self.session.peer_certificates()?;
        chain.first().map(AsRef::as_ref)
    }

    /// Puts bytes into records, which [`Records::flush`] sends.
    pub fn seal(&mut self, bytes: &[u8]) {
        // There is no limit, and no other error.
        let _ = self.session.writer().write_all(bytes);
    }

    /// Whether records wait to be sent.
    pub fn waits(&self) -> bool {
        self.session.wants_write()
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// AGAIN when there is no room for the rest of it.
    pub fn flush(&mut self, fd: &OwnedFd) -> Result<(), Errno> {
        while self.session.wants_write() {
            let sent = self.session.write_tls(&mut Socket(fd));
            sent.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        Ok(())
    }

    /// Tells the client that nothing more comes.
    pub fn close(&mut self, fd: &OwnedFd) {
        self.session.send_close_notify();
        // A client that does not read sees the end of the stream.
        let _ = self.flush(fd);
    }
}

/// Reads what the session has, behind the first `filled` bytes; how much that was.
fn drain(session: &mut ServerConnection, filled: usize, data: &mut [u8], more: &mut [u8]) -> usize {
    let mut reader = session.reader();
    let mut got = 0;
    loop {
        let at = filled + got;
        let target = match at.checked_sub(data.len()) {
            None => &mut data[at..],
            Some(at) => &mut more[at..],
        };
        match reader.read(target) {
            Ok(0) | Err(_) => return got,
            Ok(count) => got += count,
        }
    }
}

/// A socket that does not wait and raises no signal.
struct Socket<'a>(&'a OwnedFd);

const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, FLAGS)?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut none = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(self.0, pieces, &mut none, FLAGS)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
