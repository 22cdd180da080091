//! [`Gather`]: pieces of memory that one system call sends or writes, from wherever they lie.

use crate::buffer::Segment;
use crate::lease::Lease;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Pieces that are sent at a time: half of the kernel's limit (UIO_MAXIOV).
pub(crate) const PIECES_MAX: usize = 512;

/// Pieces of memory in the order in which they are to be sent.
///
/// It has 8 KiB. Fill it where it was made: a function that returns one may copy it.
pub struct Gather<'a> {
    /// The first `count` are set.
    pieces: [MaybeUninit<Segment>; PIECES_MAX],
    count: usize,
    bytes: usize,
    /// The pieces point into borrowed memory.
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> Gather<'a> {
    /// A list without pieces; it allocates nothing.
    #[inline]
    pub fn new() -> Self {
        Self {
            pieces: [const { MaybeUninit::uninit() }; PIECES_MAX],
            count: 0,
            bytes: 0,
            borrowed: PhantomData,
        }
    }

    /// How many more pieces there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        PIECES_MAX - self.count
    }

    /// The sum of the pieces, bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends bytes; empty ones are left out.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub fn push(&mut self, bytes: &'a [u8]) {
        self.append(Segment {
            base: bytes.as_ptr().cast_mut(),
            len: bytes.len(),
        });
    }

    /// Appends the part from `start` to `end` of a lease.
    ///
    /// # Panics
    /// When there is no room, or that leaves the lease.
    #[inline]
    pub fn push_lease(&mut self, lease: &'a Lease, start: usize, end: usize) {
        match lease {
            Lease::Still(lease) => self.push(&lease.bytes()[start..end]),
            Lease::Moving(lease) => self.append(lease.part(start, end)),
        }
    }

    #[inline]
    fn append(&mut self, piece: Segment) {
        if piece.len > 0 {
            self.pieces[self.count].write(piece);
            self.count += 1;
            self.bytes += piece.len;
        }
    }

    /// Sends as much as the socket takes now; how much that was, bytes.
    ///
    /// # Errors
    /// The error of sendmsg(2); EAGAIN when the socket takes nothing now. SIGPIPE is not raised.
    pub fn send(&self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        // SAFETY: all fields are numbers and addresses, for which zero is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = self.pieces.as_ptr().cast_mut().cast();
        message.msg_iovlen = self.count as _;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the first `count` segments are set, and are laid out as `iovec`. Each lies in
        // memory that is borrowed for `'a`, or that a lease borrowed for `'a` keeps mapped; the
        // kernel only reads it, and does not mind when leased bytes change meanwhile.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Writes all pieces with one writev(2), for descriptors that take a message at a time; how
    /// much was written, bytes.
    ///
    /// # Errors
    /// The error of writev(2).
    pub fn write(&self, to: BorrowedFd<'_>) -> io::Result<usize> {
        // SAFETY: as in `send`.
        let written = unsafe {
            let pieces = self.pieces.as_ptr().cast::<libc::iovec>();
            libc::writev(to.as_raw_fd(), pieces, self.count as libc::c_int)
        };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }
}

impl Default for Gather<'_> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no sendmsg")]
    fn pieces_arrive_in_order_also_when_the_region_is_gone() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let region = Region::new(1 << 20).expect("memory");
        region.fill(8192, 8192, 7);
        let lease = Lease::from(region.lease(9000, 100).expect("written"));
        drop(region);
        let mut gather = Gather::new();
        gather.push(b"head");
        gather.push(b"");
        gather.push_lease(&lease, 10, 20);
        gather.push(b"tail");
        assert_eq!((gather.room(), gather.bytes()), (PIECES_MAX - 3, 18));
        assert_eq!(gather.send(ours.as_fd()).expect("sent"), 18);
        drop(ours);
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).expect("bytes");
        assert_eq!(got, [&b"head"[..], &[7; 10], b"tail"].concat());
        // The reader has gone: an error, and no signal.
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        drop(theirs);
        let refused = gather.send(ours.as_fd()).expect_err("no reader");
        assert_eq!(refused.raw_os_error(), Some(libc::EPIPE));
    }

    #[test]
    fn a_lease_needs_memory_that_was_written() {
        let region = Region::new(64 << 10).expect("memory");
        region.write(4096, &[1; 20]);
        region.write(12_268, &[1; 20]);
        assert!(region.lease(4096, 8192).is_some());
        assert!(region.lease(4095, 2).is_none());
        assert!(region.lease(8192, 8192).is_none());
        assert!(region.lease(4096, 0).is_none());
        let lease = region.lease(4096, 8192).expect("written");
        region.discard(4096, 4096).expect("given back");
        assert!(region.lease(4096, 8192).is_none());
        // It shows what is there now, and is the last to keep it.
        drop(region);
        for (offset, byte) in [(0, 0), (4095, 0), (8171, 0), (8172, 1), (8191, 1)] {
            let mut found = [9];
            lease.copy_out(offset, &mut found);
            assert_eq!(found, [byte], "{offset}");
        }
    }
}
