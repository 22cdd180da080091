//! The classic transport: requests are read from `/dev/fuse` and replies written to it, by several
//! threads, each with a descriptor of its own.
//!
//! A thread that has nothing in the stack sleeps in read(2), which takes one request and wakes one
//! thread. While something is in flight, it sleeps in a reactor, among others on a second
//! descriptor whose reads do not wait.

use super::dispatch::{Dispatcher, TRANSFER_BYTES_MAX};
use super::error::FuseError;
use super::link::{Link, Reply, Responder, Ticket};
use crate::buffers::Buffers;
use rustix::io::Errno;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use ugeom_engine::reactor::{Event, Interest, Reactor, Source, Waiting, Waker};
use ugeom_format::wire::fuse::{
    IN_HEADER_BYTES, InHeader, OUT_HEADER_BYTES, OutHeader, Request, argument_bytes, opcode,
};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::gather::Gather;
use ugeom_machine::lease::Lease;

/// Header and argument of a WRITE: what precedes its data, which then lies at the start of a page.
const HEAD_BYTES: usize = IN_HEADER_BYTES + argument_bytes(opcode::WRITE);

/// READs of less are copied, bytes: a lease costs more than that.
const LENT_BYTES_MIN: usize = 32 << 10;

/// How long a thread waits after the system would not let it wait.
const PAUSE: Duration = Duration::from_millis(1);

/// The descriptor whose reads wait for a request, and the one whose reads do not. A reply goes
/// where its request came from.
const WAITING: usize = 0;
const ASKING: usize = 1;

/// A thread's descriptors of the mount.
pub(super) struct Devices([Arc<OwnedFd>; 2]);

impl Devices {
    /// Two more descriptors of a mount.
    pub fn of(session: &OwnedFd) -> std::io::Result<Self> {
        let waiting = ugeom_machine::fuse::another(session, false)?;
        let asking = ugeom_machine::fuse::another(session, true)?;
        Ok(Self([Arc::new(waiting), Arc::new(asking)]))
    }

    /// Sends a reply; the kernel gets an error in place of one that it refuses.
    fn reply(&self, ticket: Ticket, result: Result<&[u8], Errno>) {
        let device = &self.0[ticket.entry as usize];
        or_error(device, ticket, send(device, ticket.unique, result));
    }

    /// Sends this part of a lease.
    fn lend(&self, ticket: Ticket, lease: &Lease, part: (usize, usize)) {
        let device = &self.0[ticket.entry as usize];
        or_error(
            device,
            ticket,
            send_lent(device, ticket.unique, lease, part),
        );
    }
}

fn or_error(device: &OwnedFd, ticket: Ticket, sent: Result<(), Errno>) {
    if sent.is_err() {
        // Nothing is left to be done about a second refusal.
        let _ = send(device, ticket.unique, Err(Errno::IO));
    }
}

/// Sends a reply. A reply to a request that was given up is no error.
pub(super) fn send(
    device: impl AsFd,
    unique: u64,
    result: Result<&[u8], Errno>,
) -> Result<(), Errno> {
    let (error, bytes) = match result {
        Ok(bytes) => (0, bytes),
        Err(errno) => (-errno.raw_os_error(), &[][..]),
    };
    let header = header(unique, error, bytes.len());
    let pieces = [IoSlice::new(&header), IoSlice::new(bytes)];
    let pieces = &pieces[..if bytes.is_empty() { 1 } else { 2 }];
    until_taken(|| rustix::io::writev(&device, pieces))
}

/// Sends a lease without a copy.
fn send_lent(
    device: impl AsFd,
    unique: u64,
    lease: &Lease,
    (start, end): (usize, usize),
) -> Result<(), Errno> {
    let header = header(unique, 0, end - start);
    let mut pieces = Gather::new();
    pieces.push(&header);
    pieces.push_lease(lease, start, end);
    until_taken(|| {
        let written = pieces.write(device.as_fd());
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })
}

fn header(unique: u64, error: i32, length: usize) -> [u8; OUT_HEADER_BYTES] {
    let header = OutHeader {
        length_bytes: (OUT_HEADER_BYTES + length) as u32,
        error,
        unique,
    };
    header.encode()
}

fn until_taken(mut write: impl FnMut() -> Result<usize, Errno>) -> Result<(), Errno> {
    loop {
        match write() {
            Err(Errno::INTR) => {}
            Ok(_) | Err(Errno::NOENT | Errno::NODEV | Errno::NOTCONN) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

impl Responder for Devices {
    fn answer(&self, ticket: Ticket, _memory: Option<Buffer>, reply: Result<Vec<u8>, Errno>) {
        self.reply(ticket, reply.as_deref().map_err(|errno| *errno));
    }
}

/// Where a thread's dispatcher answers.
struct Channel {
    devices: Arc<Devices>,
    buffers: Buffers,
}

impl Link for Channel {
    const LENT_BYTES_MIN: usize = LENT_BYTES_MIN;

    fn memory(&mut self, _ticket: Ticket, length: usize) -> Buffer {
        self.buffers.take(length)
    }

    fn answer(&mut self, ticket: Ticket, memory: Option<Buffer>, reply: Result<Reply<'_>, Errno>) {
        let devices = &self.devices;
        match (reply, &memory) {
            (Ok(Reply::Bytes(bytes)), _) => devices.reply(ticket, Ok(bytes)),
            (Ok(Reply::Data { skip, length }), Some(memory)) => {
                devices.reply(ticket, Ok(&memory[skip..skip + length]));
            }
            (
                Ok(Reply::Lent {
                    lease,
                    skip,
                    length,
                }),
                _,
            ) => devices.lend(ticket, lease, (skip, skip + length)),
            (Ok(Reply::Data { .. }), None) => devices.reply(ticket, Err(Errno::IO)),
            (Err(errno), _) => devices.reply(ticket, Err(errno)),
        }
        if let Some(memory) = memory {
            self.buffers.put(memory);
        }
    }
}

/// A thread of the classic transport.
pub(super) struct Worker {
    dispatcher: Dispatcher,
    link: Channel,
    /// Where the next request is read to, behind its header.
    inbox: Option<Buffer>,
    reactor: Reactor,
    device: Source,
    watched: bool,
    /// Sleeps in the reactor only.
    beside: bool,
    /// The mount is over.
    over: bool,
}

/// The result of a read.
enum Got {
    Request,
    Nothing,
    Over,
}

impl Worker {
    /// A worker, and its wake-up from the reactor. One that stands `beside` another transport
    /// never sleeps in read(2).
    pub fn new(
        dispatcher: Dispatcher,
        devices: Arc<Devices>,
        beside: bool,
    ) -> Result<(Self, Waker), FuseError> {
        let preparing = |source| FuseError::system("preparing a thread", source);
        let reactor = Reactor::open(Waiting::Auto);
        let mut reactor = reactor.map_err(|error| preparing(std::io::Error::other(error)))?;
        let mailbox = Arc::new(dispatcher.channel.wake_fd().map_err(preparing)?);
        reactor
            .register(mailbox, Interest::EDGE)
            .map_err(preparing)?;
        let (_, waker) = reactor.waker().map_err(preparing)?;
        let asking = Arc::clone(&devices.0[ASKING]);
        let device = reactor
            .register(asking, Interest::READ)
            .map_err(preparing)?;
        let link = Channel {
            devices,
            buffers: Buffers::new(),
        };
        let worker = Self {
            dispatcher,
            link,
            inbox: None,
            reactor,
            device,
            watched: true,
            beside,
            over: false,
        };
        Ok((worker, waker))
    }

    /// Serves until the mount is over, or the server stops.
    pub fn run(mut self) {
        let shared = Arc::clone(&self.dispatcher.shared);
        let mut events = Vec::new();
        loop {
            let stopping = self.over || shared.stopping.load(Ordering::Acquire);
            let idle = self.dispatcher.channel.in_flight() == 0;
            if stopping && idle {
                break;
            }
            if idle && !self.beside {
                self.next(WAITING);
            } else {
                self.sleep(stopping, &mut events);
            }
            self.dispatcher.collect(&mut self.link);
        }
        shared.ended(self.over);
    }

    fn sleep(&mut self, stopping: bool, events: &mut Vec<Event>) {
        let wants = !stopping && self.dispatcher.has_room();
        if wants != self.watched {
            self.watched = wants;
            // One that is not watched as it should be costs a turn, and is changed at the next.
            let changed = self.reactor.change(self.device, Interest::of(wants, false));
            self.watched = if changed.is_ok() { wants } else { !wants };
        }
        let Self {
            dispatcher,
            reactor,
            ..
        } = self;
        let mut failed = false;
        let timeout = dispatcher.interrupted.timeout();
        dispatcher.channel.sleep(timeout, |engines, timeout| {
            failed = reactor.wait(engines, timeout, events).is_err();
        });
        events.clear();
        if failed {
            std::thread::sleep(PAUSE);
        }
        self.dispatcher.collect(&mut self.link);
        while wants && self.dispatcher.has_room() && matches!(self.next(ASKING), Got::Request) {
            self.dispatcher.collect(&mut self.link);
        }
    }

    /// Reads a request and begins it.
    fn next(&mut self, from: usize) -> Got {
        let mut head = [0; HEAD_BYTES];
        let room = TRANSFER_BYTES_MAX as usize;
        let buffers = &mut self.link.buffers;
        let mut inbox = self.inbox.take().unwrap_or_else(|| buffers.take(room));
        let mut pieces = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut inbox)];
        let device = &self.link.devices.0[from];
        let got = match rustix::io::readv(device, &mut pieces) {
            Ok(length) => {
                self.begin(from, &head, inbox, length);
                return Got::Request;
            }
            // ENOENT: the asker was interrupted before we had read it.
            Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => Got::Nothing,
            Err(Errno::NODEV | Errno::NOTCONN) => Got::Over,
            Err(error) => {
                let shared = &self.dispatcher.shared;
                shared.say(&format!("reading from the kernel failed: {error}"));
                Got::Over
            }
        };
        self.over |= matches!(got, Got::Over);
        self.inbox = Some(inbox);
        got
    }

    fn begin(&mut self, from: usize, head: &[u8; HEAD_BYTES], inbox: Buffer, length: usize) {
        let (start, more) = (length.min(HEAD_BYTES), length.saturating_sub(HEAD_BYTES));
        let header = InHeader::decode(&head[..start]);
        let (parsed, data, joined);
        if header.is_ok_and(|header| header.opcode == opcode::WRITE) && start == HEAD_BYTES {
            let argument = &head[IN_HEADER_BYTES..];
            parsed = header.and_then(|it| Ok((it, Request::decode(it.opcode, argument, &[])?)));
            data = Some(inbox);
        } else {
            // Only names and changes of attributes are longer than the head.
            joined = if more > 0 {
                [&head[..], &inbox[..more]].concat()
            } else {
                Vec::new()
            };
            parsed = InHeader::message(if more > 0 { &joined } else { &head[..start] });
            data = None;
            self.inbox = Some(inbox);
        }
        let (unique, thread) = header.map_or((0, 0), |header| (header.unique, header.pid));
        let ticket = Ticket {
            unique,
            entry: from as u32,
            thread,
        };
        match parsed {
            Ok((header, request)) if holds(&request, more) => {
                let link = &mut self.link;
                self.dispatcher
                    .take(link, ticket, header.node, request, data);
            }
            Ok(_) => self.link.answer(ticket, data, Err(Errno::IO)),
            Err(error) => {
                let shared = &self.dispatcher.shared;
                shared.say(&format!("a message of the kernel is no request: {error}"));
                self.link.answer(ticket, data, Err(Errno::IO));
            }
        }
    }
}

/// False for a WRITE that says that it has more data than came with it.
fn holds(request: &Request<'_>, data_bytes: usize) -> bool {
    match request {
        Request::Write(transfer) => transfer.length_bytes as usize <= data_bytes,
        _ => true,
    }
}
