//! The bytes of a connection: on a plain socket, or in records of TLS.
//!
//! A protocol that negotiates TLS uses one stream for both halves, so that the transport changes
//! below it. On a plain socket a caller may also send to [`Stream::fd`], from where its data lies.

use crate::{ClientTls, Records, ServerTls};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, sockopt};
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Room with which a read in TLS takes many records, bytes.
const SECURE_ROOM_BYTES: usize = 256 << 10;

const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// A connection's stream. No call waits.
pub struct Stream {
    fd: Arc<OwnedFd>,
    records: Option<Box<Records>>,
}

impl Stream {
    /// On a socket that does not wait.
    pub fn plain(fd: OwnedFd) -> Self {
        Self {
            fd: Arc::new(fd),
            records: None,
        }
    }

    /// As a server: from now on all bytes travel in records of TLS.
    ///
    /// # Errors
    /// Why not, in plain words.
    pub fn secure_server(&mut self, tls: &ServerTls) -> Result<(), String> {
        self.records = Some(Box::new(Records::server(tls)?));
        Ok(())
    }

    /// As a client. The hello goes out with the next bytes.
    ///
    /// # Errors
    /// Why not, in plain words.
    pub fn secure_client(&mut self, tls: &ClientTls) -> Result<(), String> {
        self.records = Some(Box::new(Records::client(tls)?));
        Ok(())
    }

    /// Whether it is TLS.
    #[inline]
    pub fn is_secure(&self) -> bool {
        self.records.is_some()
    }

    /// The client's certificate, in DER; with the first bytes that were read in TLS it is verified.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.records.as_ref()?.certificate()
    }

    /// The socket: what a reactor watches.
    #[must_use]
    #[inline]
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Room that a read needs beside what a caller keeps of an earlier one, bytes.
    pub fn room_bytes(&self) -> usize {
        if self.is_secure() {
            SECURE_ROOM_BYTES
        } else {
            0
        }
    }

    /// Why TLS failed, where it was TLS.
    pub fn failure(&self) -> Option<&str> {
        self.records.as_ref()?.failure()
    }

    /// Why the last call failed, by TLS or with `errno`.
    pub fn reason(&self, errno: Errno) -> String {
        self.failure()
            .map_or_else(|| errno.to_string(), str::to_owned)
    }

    /// Reads into `data` first, then into `more`, which in TLS have at least
    /// [`ROOM_BYTES_MIN`](crate::ROOM_BYTES_MIN) bytes together; 0 at the end of the stream.
    ///
    /// # Errors
    /// AGAIN when there is nothing now.
    #[inline]
    pub fn read(&mut self, data: &mut [u8], more: &mut [u8]) -> Result<usize, Errno> {
        if let Some(records) = &mut self.records {
            return records.read(&self.fd, data, more);
        }
        if data.is_empty() {
            return rustix::io::read(&self.fd, more);
        }
        let mut slices = [IoSliceMut::new(data), IoSliceMut::new(more)];
        rustix::io::readv(&self.fd, &mut slices)
    }

    /// Whether bytes that were given to it wait for room in the socket.
    #[inline]
    pub fn waits(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.waits())
    }

    /// Sends the bytes that wait for room in the socket.
    ///
    /// # Errors
    /// AGAIN when there is no room for the rest of it.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Errno> {
        match &mut self.records {
            Some(records) => records.flush(&self.fd),
            None => Ok(()),
        }
    }

    /// Puts bytes into records, to be sent by [`Stream::flush`]; on a plain socket nothing.
    pub fn seal(&mut self, bytes: &[u8]) {
        if let Some(records) = &mut self.records {
            records.seal(bytes);
        }
    }

    /// Sends bytes, as far as there is room for them now; how many.
    ///
    /// # Errors
    /// AGAIN when there is no room.
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if let Some(records) = &mut self.records {
            if records.waits() {
                records.flush(&self.fd)?;
            }
            records.seal(bytes);
            return Ok(bytes.len());
        }
        rustix::net::send(&self.fd, bytes, FLAGS)
    }

    /// Sends the bytes behind the first `sent`, and empties both when all are on their way.
    ///
    /// # Errors
    /// AGAIN when there is no room for the rest.
    pub fn send_all(&mut self, out: &mut Vec<u8>, sent: &mut usize) -> Result<(), Errno> {
        while *sent < out.len() {
            match self.send(&out[*sent..]) {
                Ok(count) => *sent += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        *sent = 0;
        out.clear();
        self.flush()
    }

    /// Tells a peer in TLS that no more bytes follow; the socket stays open.
    pub fn close(&mut self) {
        if let Some(records) = &mut self.records {
            records.close(&self.fd);
        }
    }

    /// Closes it and drops the bytes that the peer has not acknowledged. A close alone leaves them
    /// to the kernel, which goes on sending them over TCP for minutes, past the end of a partition.
    pub fn abort(self) {
        // A Unix socket has none: its peer has received all bytes already.
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }

    /// Ends it for both sides, even while another process holds the descriptor.
    pub fn shutdown(&mut self) {
        self.close();
        // A peer that has left already has ended it.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }
}
