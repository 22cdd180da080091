//! The bytes of a connection to the server: on a plain socket, or in records of TLS.

use rustix::io::Errno;
use rustix::net::SendFlags;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use ugeom_tls::{ClientTls, Records};

/// Room with which a read in TLS takes many records, bytes.
const SECURE_ROOM_BYTES: usize = 256 << 10;

const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// A connection, without waiting.
pub(super) struct Stream {
    fd: Arc<OwnedFd>,
    records: Option<Box<Records>>,
}

impl Stream {
    /// A socket that does not wait.
    pub fn plain(fd: OwnedFd) -> Self {
        Self {
            fd: Arc::new(fd),
            records: None,
        }
    }

    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// From now on all bytes travel in records of TLS. The hello goes out with the next send.
    ///
    /// # Errors
    /// Why not, in plain words.
    pub fn secure(&mut self, tls: &ClientTls) -> Result<(), String> {
        self.records = Some(Box::new(Records::client(tls)?));
        Ok(())
    }

    pub fn is_secure(&self) -> bool {
        self.records.is_some()
    }

    /// Room that a read needs beside what a caller keeps of an earlier one, bytes.
    pub fn room_bytes(&self) -> usize {
        if self.is_secure() {
            SECURE_ROOM_BYTES
        } else {
            0
        }
    }

    /// Why the last call failed.
    pub fn reason(&self, errno: Errno) -> String {
        let failure = self.records.as_ref().and_then(|records| records.failure());
        failure.map_or_else(|| errno.to_string(), str::to_owned)
    }

    /// Reads into `room`, which in TLS has at least `ROOM_BYTES_MIN` bytes; 0 at the end of the
    /// stream.
    ///
    /// # Errors
    /// AGAIN when there is nothing now.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.records {
            Some(records) => records.read(&self.fd, &mut [], room),
            None => rustix::io::read(&self.fd, room),
        }
    }

    /// Whether bytes that were given to it wait for room in the socket.
    pub fn waits(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.waits())
    }

    /// Sends the bytes behind the first `sent`, and empties both when all are on their way.
    ///
    /// # Errors
    /// AGAIN when there is no room for the rest.
    pub fn send(&mut self, out: &mut Vec<u8>, sent: &mut usize) -> Result<(), Errno> {
        if let Some(records) = &mut self.records {
            records.flush(&self.fd)?;
            records.seal(&out[*sent..]);
            *sent = 0;
            out.clear();
            return records.flush(&self.fd);
        }
        while *sent < out.len() {
            match rustix::net::send(&self.fd, &out[*sent..], FLAGS) {
                Ok(count) => *sent += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        *sent = 0;
        out.clear();
        Ok(())
    }

    /// Sends a last message, as far as there is room for it, and ends the stream.
    pub fn leave(mut self, mut message: Vec<u8>) {
        // The server sees the end of the connection in any case.
        let _ = self.send(&mut message, &mut 0);
        if let Some(records) = &mut self.records {
            records.close(&self.fd);
        }
    }
}
