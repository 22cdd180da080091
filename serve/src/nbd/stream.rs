//! The byte stream of a connection: what requests are read from, and replies are sent to.
//!
//! On a plain socket replies go out from where their data lies, in one call. The handshake and the
//! transmission phase use the same stream, so that a transport is put below both of them.

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use ugeom_machine::gather::Gather;

/// A connection's stream, without waiting.
pub(super) struct Stream {
    fd: Arc<OwnedFd>,
}

impl Stream {
    /// A socket that does not wait.
    pub fn plain(fd: OwnedFd) -> Self {
        Self { fd: Arc::new(fd) }
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
        if data.is_empty() {
            return rustix::io::read(&self.fd, more);
        }
        let mut slices = [IoSliceMut::new(data), IoSliceMut::new(more)];
        rustix::io::readv(&self.fd, &mut slices)
    }

    /// Sends what was gathered, from where it lies, as far as there is room for it now.
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
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::send(&self.fd, bytes, flags)
    }

    /// Ends it for both sides, even while another process holds the descriptor.
    pub fn shutdown(&mut self) {
        // A client that has left already has ended it.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }
}
