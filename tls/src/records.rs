//! The records of one connection: plain bytes on one side, a socket that does not wait on the
//! other.

use super::{ClientTls, ServerTls};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustls::CommonState;
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
    WriteTraffic,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The longest record, with what may be left over of one (RFC 8446, 5.2), bytes.
const RECORD_BYTES_MAX: usize = 18 << 10;

/// The least room that [`Records::read`] needs, bytes.
pub const ROOM_BYTES_MIN: usize = 2 * RECORD_BYTES_MAX;

/// Bytes of records received at a time.
const RECEIVED_BYTES: usize = 256 << 10;

/// The maximum size of an incomplete handshake message, bytes.
const KEPT_BYTES_MAX: usize = 128 << 10;

/// Room for records that wait to be sent that is kept while none wait, bytes.
const UNUSED_BYTES_MAX: usize = 128 << 10;

/// Either side of a connection. Their buffers are here and not in rustls, which would copy each
/// record to the same place and from there to another: twice as slow on processors whose copies
/// of many bytes depend on where in a page both sides begin.
enum Session {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

impl Session {
    fn common(&self) -> &CommonState {
        match self {
            Self::Server(it) => it,
            Self::Client(it) => it,
        }
    }
}

/// Records that wait to be sent.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    /// They are the bytes from here on.
    sent: usize,
    /// And up to here.
    filled: usize,
}

impl Outgoing {
    fn is_empty(&self) -> bool {
        self.sent == self.filled
    }

    /// Appends what `encode` writes, which says how much it needs if the room is too small.
    fn append(
        &mut self,
        guess_bytes: usize,
        mut encode: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
    ) {
        let mut room = guess_bytes;
        loop {
            let end = self.filled + room;
            if self.bytes.len() < end {
                self.bytes.resize(end, 0);
            }
            match encode(&mut self.bytes[self.filled..]) {
                Ok(count) => return self.filled += count,
                Err(Some(error)) if error.required_size > room => room = error.required_size,
                // There is nothing to be sent, or no more may be encrypted.
                Err(_) => return,
            }
        }
    }

    /// Sends as much as the socket takes.
    fn send(&mut self, fd: &OwnedFd) -> Result<(), Errno> {
        while !self.is_empty() {
            let waiting = &self.bytes[self.sent..self.filled];
            self.sent += rustix::net::send(fd, waiting, FLAGS)?;
        }
        (self.sent, self.filled) = (0, 0);
        if self.bytes.len() > UNUSED_BYTES_MAX {
            self.bytes = Vec::new();
        }
        Ok(())
    }
}

const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// The records of one connection.
pub struct Records {
    session: Session,
    received: Vec<u8>,
    /// The first bytes of `received`: a part of a record.
    kept: usize,
    outgoing: Outgoing,
    /// Data to seal once the handshake is done.
    unsealed: Vec<u8>,
    /// The peer sends no more.
    ended: bool,
    /// Why there can be no more.
    failure: Option<String>,
}

/// The task after the handshake.
#[derive(Clone, Copy)]
enum Wish<'a> {
    Seal(&'a [u8]),
    Close,
}

/// The next step of a session.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    /// The wish was granted.
    Granted,
    /// More has to be received.
    Stop,
}

/// Where plaintext goes: into `data` first, then into `more`.
struct Plain<'a> {
    data: &'a mut [u8],
    more: &'a mut [u8],
    filled: usize,
}

impl Plain<'_> {
    /// Room for no record.
    fn none() -> Self {
        Self {
            data: &mut [],
            more: &mut [],
            filled: 0,
        }
    }

    /// False when there is no room for all of it.
    fn put(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let target = match self.filled.checked_sub(self.data.len()) {
                None => &mut self.data[self.filled..],
                Some(at) => &mut self.more[at..],
            };
            let count = bytes.len().min(target.len());
            if count == 0 {
                return false;
            }
            target[..count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
        }
        true
    }
}

impl Records {
    /// Those of a server: the client's hello comes next.
    ///
    /// # Errors
    /// The reason why the configuration is refused.
    pub fn server(tls: &ServerTls) -> Result<Self, String> {
        let session = UnbufferedServerConnection::new(Arc::clone(&tls.config));
        Self::new(session.map(Session::Server))
    }

    /// Those of a client: its hello waits to be sent.
    ///
    /// # Errors
    /// The reason why the configuration is refused.
    pub fn client(tls: &ClientTls) -> Result<Self, String> {
        let config = Arc::clone(&tls.config);
        let session = UnbufferedClientConnection::new(config, tls.server.clone());
        Self::new(session.map(Session::Client))
    }

    fn new(session: Result<Session, rustls::Error>) -> Result<Self, String> {
        let mut records = Self {
            session: session.map_err(|error| error.to_string())?,
            received: Vec::new(),
            kept: 0,
            outgoing: Outgoing::default(),
            unsealed: Vec::new(),
            ended: false,
            failure: None,
        };
        match records.process(0, &mut Plain::none(), Wish::Seal(&[])) {
            Ok(_) => Ok(records),
            Err(_) => Err(records.failure.unwrap_or_default()),
        }
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
        let end = self.kept + wanted;
        if self.received.len() < end {
            self.received.resize(end, 0);
        }
        let count = rustix::io::read(fd, &mut self.received[self.kept..end])?;
        if count == 0 {
            return Ok(0);
        }
        let mut plain = Plain {
            data,
            more,
            filled: 0,
        };
        let unsealed = std::mem::take(&mut self.unsealed);
        let processed = self.process(self.kept + count, &mut plain, Wish::Seal(&unsealed));
        if matches!(processed, Ok(false)) {
            self.unsealed = unsealed;
        }
        let filled = plain.filled;
        if let Err(errno) = processed {
            // The peer learns why; when it cannot be told, it only sees the end.
            let _ = self.flush(fd);
            return Err(errno);
        }
        match filled {
            0 if self.ended => Ok(0),
            0 => Err(Errno::AGAIN),
            filled => Ok(filled),
        }
    }

    /// Takes what was received, the first bytes of `received` up to `end`. Whether the wish was
    /// granted.
    fn process(
        &mut self,
        end: usize,
        plain: &mut Plain<'_>,
        wish: Wish<'_>,
    ) -> Result<bool, Errno> {
        if self.failure.is_some() {
            return Err(Errno::PROTO);
        }
        let mut start = 0;
        let granted = loop {
            // After an error rustls must not look at the same bytes again; it only hands out what
            // it has to send, the alert for the peer.
            if self.failure.is_some() && !self.session.common().wants_write() {
                break false;
            }
            let received = &mut self.received[start..end];
            let (outgoing, ended) = (&mut self.outgoing, &mut self.ended);
            let (discard, next) = match &mut self.session {
                Session::Server(it) => step(
                    it.process_tls_records(received),
                    outgoing,
                    ended,
                    plain,
                    wish,
                ),
                Session::Client(it) => step(
                    it.process_tls_records(received),
                    outgoing,
                    ended,
                    plain,
                    wish,
                ),
            };
            start += discard;
            match next {
                Ok(Next::Go) => {}
                Ok(next) => break next == Next::Granted,
                Err(why) if self.failure.is_none() => self.failure = Some(format!("TLS: {why}")),
                Err(_) => break false,
            }
        };
        self.received.copy_within(start..end, 0);
        self.kept = end - start;
        match self.failure.is_some() || self.kept > KEPT_BYTES_MAX {
            true => Err(Errno::PROTO),
            false => Ok(granted),
        }
    }

    /// The certificate that the peer has proved to be its own, in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        let chain = self.session.common().peer_certificates()?;
        chain.first().map(AsRef::as_ref)
    }

    /// Puts bytes into records, which [`Records::flush`] sends.
    pub fn seal(&mut self, bytes: &[u8]) {
        let early = !self.unsealed.is_empty();
        // After a failure there is no peer that would take them.
        if early || self.process(self.kept, &mut Plain::none(), Wish::Seal(bytes)) == Ok(false) {
            self.unsealed.extend_from_slice(bytes);
        }
    }

    /// Whether records wait to be sent.
    pub fn waits(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Sends the records that wait for room in the socket.
    ///
    /// # Errors
    /// AGAIN when there is no room for the rest of it.
    pub fn flush(&mut self, fd: &OwnedFd) -> Result<(), Errno> {
        self.outgoing.send(fd)
    }

    /// Tells the peer that nothing more comes.
    pub fn close(&mut self, fd: &OwnedFd) {
        // A peer that does not read, or has not shaken hands, sees the end of the stream.
        let _ = self.process(self.kept, &mut Plain::none(), Wish::Close);
        let _ = self.flush(fd);
    }
}

/// One step of a session: how many bytes of what was received are done, and what comes next.
fn step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    outgoing: &mut Outgoing,
    ended: &mut bool,
    plain: &mut Plain<'_>,
    wish: Wish<'_>,
) -> (usize, Result<Next, String>) {
    let next = match status.state {
        Err(error) => Err(error.to_string()),
        Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
            match traffic.next_record() {
                None => break Ok(Next::Go),
                Some(Err(error)) => break Err(error.to_string()),
                Some(Ok(record)) if plain.put(record.payload) => {}
                Some(Ok(_)) => break Err("more data than was received".to_owned()),
            }
        },
        Ok(ConnectionState::EncodeTlsData(mut message)) => {
            outgoing.append(RECORD_BYTES_MAX, |into| {
                message.encode(into).map_err(|error| match error {
                    EncodeError::InsufficientSize(size) => Some(size),
                    EncodeError::AlreadyEncoded => None,
                })
            });
            Ok(Next::Go)
        }
        Ok(ConnectionState::TransmitTlsData(message)) => {
            message.done();
            Ok(Next::Go)
        }
        Ok(ConnectionState::PeerClosed) => {
            *ended = true;
            Ok(Next::Go)
        }
        Ok(ConnectionState::WriteTraffic(traffic)) => {
            grant(traffic, outgoing, wish);
            Ok(Next::Granted)
        }
        // The handshake waits for the peer, or all has ended.
        Ok(_) => Ok(Next::Stop),
    };
    (status.discard, next)
}

fn grant<Data>(mut traffic: WriteTraffic<'_, Data>, outgoing: &mut Outgoing, wish: Wish<'_>) {
    let size = |error| match error {
        EncryptError::InsufficientSize(size) => Some(size),
        EncryptError::EncryptExhausted => None,
    };
    match wish {
        Wish::Seal([]) => {}
        Wish::Seal(bytes) => {
            // Each record adds its header, a byte and a tag.
            let guess_bytes = bytes.len() + bytes.len() / 128 + 64;
            outgoing.append(guess_bytes, |into| {
                traffic.encrypt(bytes, into).map_err(size)
            });
        }
        Wish::Close => outgoing.append(64, |into| traffic.queue_close_notify(into).map_err(size)),
    }
}
