//! The dispatcher's view of a transport: memory for the data of a request, and a way to answer.

use rustix::io::Errno;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::lease::Lease;

/// The answered request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    /// The number that the kernel gave the request.
    pub unique: u64,
    /// Where the transport keeps the request, if it does.
    pub entry: u32,
    /// The thread that asked, as the kernel tells it; 0 when it does not.
    pub thread: u32,
}

/// The reply to a successful request.
pub(super) enum Reply<'a> {
    /// A reply in these bytes.
    Bytes(&'a [u8]),
    /// This part of the memory that comes with the answer.
    Data {
        /// Bytes that are left out at its start.
        skip: usize,
        /// Length of the data that follows, bytes.
        length: usize,
    },
    /// A part of a lease, as [`Reply::Data`] of memory.
    Lent {
        /// The memory of the layer.
        lease: &'a Lease,
        /// Bytes that are left out at its start.
        skip: usize,
        /// Length of the data that follows, bytes.
        length: usize,
    },
}

/// A transport, as its own thread uses it.
pub(super) trait Link {
    /// READs of so many bytes and more may be answered with a lease.
    const LENT_BYTES_MIN: usize;

    /// Memory of at least `length` bytes to read data into.
    fn memory(&mut self, ticket: Ticket, length: usize) -> Buffer;

    /// Answers, and gives back memory that was taken or came with the request.
    fn answer(&mut self, ticket: Ticket, memory: Option<Buffer>, reply: Result<Reply<'_>, Errno>);
}

/// The way by which any thread answers.
pub(super) trait Responder: Send + Sync {
    /// As [`Link::answer`], from any thread.
    fn answer(&self, ticket: Ticket, memory: Option<Buffer>, reply: Result<Vec<u8>, Errno>);
}
