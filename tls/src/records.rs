//! The records of one connection: plain bytes on one side, a socket that does not wait on the
//! other.

use super::{ClientTls, ServerTls};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The longest record, with what may be left over of one (RFC 8446, 5.2), bytes.
const RECORD_BYTES_MAX: usize = 18 << 10;

/// The least room that [`Records::read`] needs, bytes.
pub const ROOM_BYTES_MIN: usize = 2 * RECORD_BYTES_MAX;

/// Bytes of records received at a time.
const RECEIVED_BYTES: usize = 256 << 10;

/// The records of one connection.
pub struct Records {
    session: Connection,
    received: Vec<u8>,
    /// Why there can be no more.
    failure: Option<String>,
}

impl Records {
    /// Those of a server: the client's hello comes next.
    ///
    /// # Errors
    /// What the configuration does not allow.
    pub fn server(tls: &ServerTls) -> Result<Self, String> {
        let session = ServerConnection::new(Arc::clone(&tls.config));
        Self::new(session.map(Connection::from))
    }

    /// Those of a client: its hello waits to be sent.
    ///
    /// # Errors
    /// What the configuration does not allow.
    pub fn client(tls: &ClientTls) -> Result<Self, String> {
        let session = ClientConnection::new(Arc::clone(&tls.config), tls.server.clone());
        Self::new(session.map(Connection::from))
    }

    fn new(session: Result<Connection, rustls::Error>) -> Result<Self, String> {
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
    #[must_use]
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
                // The peer learns why; when it cannot be told, it only sees the end.
                let _ = self.flush(fd);
                return Err(Errno::PROTO);
            }
            filled += drain(&mut self.session, filled, data, more);
            if rest.len() == before {
                // Behind the end that the peer has announced.
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

    /// The certificate that the peer has proved to be its own, in DER.
    #[must_use]
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
    #[must_use]
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

    /// Tells the peer that nothing more comes.
    pub fn close(&mut self, fd: &OwnedFd) {
        self.session.send_close_notify();
        // A peer that does not read sees the end of the stream.
        let _ = self.flush(fd);
    }
}

/// Reads what the session has, behind the first `filled` bytes; how much that was.
fn drain(session: &mut Connection, filled: usize, data: &mut [u8], more: &mut [u8]) -> usize {
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
