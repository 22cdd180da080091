//! The byte stream of a connection: what requests are read from, and replies are sent to.
//!
//! On a plain socket replies go out from where their data lies, in one call; with TLS they go
//! through a buffer into records. The handshake and the transmission phase use the same stream, so
//! that a transport is put below both of them.

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use ugeom_machine::gather::Gather;
use ugeom_tls::{Records, ServerTls};

/// A connection's stream, without waiting.
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

    /// From now on all bytes travel in records of TLS.
    ///
    /// # Errors
    /// Why not, in plain words.
    pub fn secure(&mut self, tls: &ServerTls) -> Result<(), String> {
        self.records = Some(Box::new(Records::server(tls)?));
        Ok(())
    }

    /// Whether it is TLS.
    pub fn is_secure(&self) -> bool {
        self.records.is_some()
    }

    /// The client's certificate, in DER; with the first bytes that were read in TLS it is verified.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.records.as_ref()?.certificate()
    }

    /// Whether bytes that were given to it wait for room in the socket.
    pub fn waits(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.waits())
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// AGAIN when there is no room for the rest of it.
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

    /// Why it can be used no more, if that is known.
    pub fn failure(&self) -> Option<String> {
        let failure = self.records.as_ref()?.failure()?;
        Some(failure.to_owned())
    }

    /// What a reactor watches.
    pub fn fd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }

    /// Reads into `data` first, then into `more`; 0 at the end of the stream.
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

    /// Sends what was gathered on a plain socket, from where it lies, as far as there is room for
    /// it now.
    ///
    /// # Errors
    /// AGAIN when there is no room.
    #[inline]
    pub fn send(&mut self, gather: &Gather<'_>) -> Result<usize, Errno> {
        let sent = gather.send(self.fd.as_fd());
        sent.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Sends bytes, as far as there is room for them now.
    ///
    /// # Errors
    /// AGAIN when there is no room.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if let Some(records) = &mut self.records {
            if records.waits() {
                records.flush(&self.fd)?;
            }
            records.seal(bytes);
            return Ok(bytes.len());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::send(&self.fd, bytes, flags)
    }

    /// Ends it for both sides, even while another process holds the descriptor.
    pub fn shutdown(&mut self) {
        if let Some(records) = &mut self.records {
            records.close(&self.fd);
        }
        // A client that has left already has ended it.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }
}
