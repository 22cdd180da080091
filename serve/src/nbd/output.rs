//! Replies of one connection that wait to be sent, in the order in which they were finished, each
//! with its data where the stack has put it.

use crate::buffers::Buffers;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::gather::Gather;
use ugeom_machine::lease::Lease;
use ugeom_tls::Stream;

/// The longest head of a reply: an extended chunk's header and an offset, bytes.
pub(super) const HEAD_BYTES_MAX: usize = 40;

/// Bytes that are put into records of TLS at a time: what a client that does not read keeps in
/// memory.
const SEALED_BYTES: usize = 64 << 10;

/// The part of a reply after its head.
pub(super) enum Body {
    Nothing,
    /// A part of a buffer.
    Data {
        buffer: Buffer,
        start: usize,
        end: usize,
    },
    /// A part of a lease.
    Lent {
        lease: Lease,
        start: usize,
        end: usize,
    },
    /// A few bytes, such as a block status.
    Bytes(Vec<u8>),
}

impl Body {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Data { start, end, .. } | Self::Lent { start, end, .. } => end - start,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Copies the bytes from `skip` on, as far as there is room; returns their number.
    fn copy(&self, skip: usize, into: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(skip).min(into.len());
        let into = &mut into[..count];
        match self {
            _ if count == 0 => {}
            Self::Nothing => {}
            Self::Data { buffer, start, .. } => {
                into.copy_from_slice(&buffer[start + skip..start + skip + count]);
            }
            Self::Lent { lease, start, .. } => lease.copy_out(start + skip, into),
            Self::Bytes(bytes) => into.copy_from_slice(&bytes[skip..skip + count]),
        }
        count
    }

    /// Appends the bytes from `skip` on.
    #[inline]
    fn gather<'a>(&'a self, skip: usize, gather: &mut Gather<'a>) {
        if skip >= self.len() {
            return;
        }
        match self {
            Self::Nothing => {}
            Self::Data { buffer, start, end } => gather.push(&buffer[start + skip..*end]),
            Self::Lent { lease, start, end } => gather.push_lease(lease, start + skip, *end),
            Self::Bytes(bytes) => gather.push(&bytes[skip..]),
        }
    }
}

/// A message, or a part of one.
struct Message {
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: u8,
    body: Body,
    /// Bytes of the connection's budget that are free once this is sent.
    charge: usize,
    /// It is the end of the reply to a request.
    ends: bool,
}

/// The messages of one connection.
#[derive(Default)]
pub(super) struct Output {
    waiting: VecDeque<Message>,
    /// How much of the first message is sent already, bytes.
    sent: usize,
    /// How much more of the messages is in records of TLS that wait to be sent, bytes.
    sealed: usize,
}

/// The result of sending.
#[derive(Default)]
pub(super) struct Sent {
    /// Bytes of the budget that are free again.
    pub released: usize,
    /// Requests whose replies are sent.
    pub ended: usize,
    /// Anything was sent at all.
    pub progress: bool,
}

impl Output {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends a message: a head of at most [`HEAD_BYTES_MAX`] bytes, and what follows it.
    #[inline]
    pub fn push(&mut self, head: &[u8], body: Body, charge: usize, ends: bool) {
        let mut message = Message {
            head: [0; HEAD_BYTES_MAX],
            head_bytes: head.len() as u8,
            body,
            charge,
            ends,
        };
        message.head[..head.len()].copy_from_slice(head);
        self.waiting.push_back(message);
    }

    /// Forgets everything, as if it had been sent.
    pub fn clear(&mut self, buffers: &mut Buffers) -> Sent {
        self.sent = 0;
        self.sealed = 0;
        let mut done = Sent::default();
        while let Some(message) = self.waiting.pop_front() {
            done.count(message, buffers);
        }
        done
    }

    /// Sends as much as the socket takes.
    ///
    /// # Errors
    /// The error of the socket, but for "not now".
    pub fn send(&mut self, stream: &mut Stream, buffers: &mut Buffers) -> Result<Sent, Errno> {
        if stream.is_secure() {
            return self.send_sealed(stream, buffers);
        }
        let mut done = Sent::default();
        while !self.waiting.is_empty() {
            let mut gather = Gather::new();
            self.gather(&mut gather);
            let wanted = gather.bytes();
            let sent = gather.send(stream.fd().as_fd());
            match sent.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
                Ok(sent) => {
                    done.progress |= sent > 0;
                    self.advance(sent, buffers, &mut done);
                    if sent < wanted {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(done)
    }

    /// The same through TLS: one buffer after another is put into records, and counts as sent once
    /// all of them are.
    fn send_sealed(&mut self, stream: &mut Stream, buffers: &mut Buffers) -> Result<Sent, Errno> {
        let mut done = Sent::default();
        loop {
            match stream.flush() {
                Ok(()) => {}
                Err(Errno::AGAIN) => return Ok(done),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            }
            let sealed = std::mem::take(&mut self.sealed);
            done.progress |= sealed > 0;
            self.advance(sealed, buffers, &mut done);
            if self.waiting.is_empty() {
                return Ok(done);
            }
            let mut plain = buffers.take(SEALED_BYTES);
            self.sealed = self.copy(&mut plain);
            stream.seal(&plain[..self.sealed]);
            buffers.put(plain);
        }
    }

    /// Copies the next bytes to send; returns their number.
    fn copy(&self, into: &mut [u8]) -> usize {
        let mut filled = 0;
        let mut skip = self.sent;
        for message in &self.waiting {
            let head = &message.head[..usize::from(message.head_bytes)];
            let rest = head.get(skip..).unwrap_or(&[]);
            let count = rest.len().min(into.len() - filled);
            into[filled..filled + count].copy_from_slice(&rest[..count]);
            filled += count;
            let skipped = skip.saturating_sub(head.len());
            filled += message.body.copy(skipped, &mut into[filled..]);
            if filled == into.len() {
                break;
            }
            skip = 0;
        }
        filled
    }

    /// Collects the next bytes to send.
    fn gather<'a>(&'a self, gather: &mut Gather<'a>) {
        let mut skip = self.sent;
        for message in &self.waiting {
            if gather.room() < 2 {
                break;
            }
            let head = &message.head[..usize::from(message.head_bytes)];
            gather.push(head.get(skip..).unwrap_or(&[]));
            message.body.gather(skip.saturating_sub(head.len()), gather);
            // Only the first message can be sent in part.
            skip = 0;
        }
    }

    /// Notes that so many bytes are sent.
    fn advance(&mut self, sent: usize, buffers: &mut Buffers, done: &mut Sent) {
        self.sent += sent;
        while let Some(first) = self.waiting.front() {
            let length = usize::from(first.head_bytes) + first.body.len();
            if self.sent < length {
                break;
            }
            self.sent -= length;
            if let Some(message) = self.waiting.pop_front() {
                done.count(message, buffers);
            }
        }
    }
}

impl Sent {
    fn count(&mut self, message: Message, buffers: &mut Buffers) {
        self.released += message.charge;
        self.ended += usize::from(message.ends);
        if let Body::Data { buffer, .. } = message.body {
            buffers.put(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn everything_arrives_in_order_however_little_the_socket_takes() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("it can");
        let mut ours = Stream::plain(ours.into());
        let (mut output, mut buffers) = (Output::default(), Buffers::new());
        let mut expected = Vec::new();
        for number in 0..700_usize {
            let head = [number as u8; 16];
            let mut buffer = buffers.take(4096);
            buffer.fill((number >> 3) as u8);
            expected.extend(head);
            expected.extend(&buffer[96..1096]);
            let (start, end) = (96, 1096);
            output.push(&head, Body::Data { buffer, start, end }, 10, false);
            output.push(&[], Body::Bytes(vec![7; 3]), 1, true);
            expected.extend([7; 3]);
        }
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            theirs.read_to_end(&mut bytes).expect("bytes");
            bytes
        });
        let (mut released, mut ended) = (0, 0);
        while !output.is_empty() {
            let sent = output.send(&mut ours, &mut buffers).expect("sent");
            released += sent.released;
            ended += sent.ended;
            std::thread::yield_now();
        }
        drop(ours);
        assert_eq!((released, ended), (700 * 11, 700));
        assert!(reader.join().expect("a reader") == expected);
    }
}
