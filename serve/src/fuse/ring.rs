//! FUSE over io_uring: each core has a queue of its own, with a thread on that core. A request is
//! served where it was made, and one system call both answers it and fetches the next.
//!
//! Source: `Documentation/filesystems/fuse/fuse-io-uring.rst` of Linux (6.14 and later).

use super::Transport;
use super::dispatch::{DEPTH, Dispatcher, TRANSFER_BYTES_MAX};
use super::error::FuseError;
use super::link::{Link, Reply, Responder, Ticket};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ugeom_engine::requests::RequestRing;
use ugeom_format::wire::fuse::{InHeader, Request, opcode, ring};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::cpu;
use ugeom_machine::mutex::Mutex;

/// Memory of a place for data, bytes: the longest transfer, and sectors of usual sizes on both
/// sides of it.
const MEMORY_BYTES: usize = TRANSFER_BYTES_MAX as usize + (16 << 10);

/// Requests that a queue takes at a time; more wait in the kernel.
pub(super) const PLACES: u32 = 32;
const _: () = assert!(PLACES as usize <= DEPTH);

/// Where the module says whether the transport may be used.
const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// How many queues there will be: one for each core that the system could have; none for the
/// classic transport.
pub(super) fn queues(wanted: Transport, offered: bool) -> Result<usize, FuseError> {
    match wanted {
        Transport::Classic => Ok(0),
        _ if offered => Ok(cpu::possible_cores()),
        Transport::Auto => Ok(0),
        Transport::Ring => Err(FuseError::Transport(why_not_offered())),
    }
}

/// Why a kernel does not offer the transport, and what root can do about it.
pub(super) fn why_not_offered() -> String {
    match std::fs::read_to_string(PARAMETER) {
        Ok(text) if text.trim() == "Y" => {
            "the kernel does not offer FUSE over io_uring for this mount".to_owned()
        }
        Ok(_) => {
            format!("FUSE over io_uring is disabled; root enables it with `echo Y > {PARAMETER}`")
        }
        Err(_) => "this kernel has no FUSE over io_uring (Linux 6.14 has)".to_owned(),
    }
}

/// An answer of the slow path: to what, with what memory, and what it is.
type Late = (Ticket, Option<Buffer>, Result<Vec<u8>, Errno>);

/// Answers of the slow path for the requests of one queue, and a way to wake its thread.
pub(super) struct Inbox {
    answers: Mutex<Vec<Late>>,
    event: Arc<OwnedFd>,
}

impl Inbox {
    pub fn new() -> Result<Self, FuseError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = eventfd(0, flags);
        let event = event.map_err(|error| FuseError::system("preparing a thread", error))?;
        Ok(Self {
            answers: Mutex::default(),
            event: Arc::new(event),
        })
    }

    pub fn wake(&self) {
        // It fails only when the counter is full: then it has been set and not been seen.
        while rustix::io::write(&self.event, &1_u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    fn take(&self) -> Vec<Late> {
        std::mem::take(&mut self.answers.lock())
    }
}

impl Responder for Inbox {
    fn answer(&self, ticket: Ticket, memory: Option<Buffer>, reply: Result<Vec<u8>, Errno>) {
        self.answers.lock().push((ticket, memory, reply));
        self.wake();
    }
}

/// The places of a queue.
struct Places {
    ring: RequestRing<{ ring::PLACE_BYTES }>,
    queue: u16,
    /// Why a place could not be offered again.
    trouble: Option<std::io::Error>,
}

impl Link for Places {
    /// The kernel takes data from the place's own memory only.
    const LENT_BYTES_MIN: usize = usize::MAX;

    fn memory(&mut self, ticket: Ticket, length: usize) -> Buffer {
        match self.ring.take(ticket.entry) {
            Some(memory) if memory.len() >= length => memory,
            Some(memory) => {
                // It is its own: taken a moment ago.
                let _ = self.ring.give(ticket.entry, memory);
                Buffer::new(length)
            }
            None => Buffer::new(length),
        }
    }

    fn answer(&mut self, ticket: Ticket, memory: Option<Buffer>, reply: Result<Reply<'_>, Errno>) {
        let place = ticket.entry;
        // Memory that is not the place's own holds data that is to be copied.
        let other = memory.and_then(|memory| self.ring.give(place, memory).err());
        let room = self.ring.memory_mut(place);
        let (error, length) = match (reply, room) {
            (Ok(Reply::Bytes(bytes)), Some(room)) => (0, copy(room, bytes)),
            (Ok(Reply::Data { skip, length }), Some(room)) => {
                let length = match &other {
                    Some(other) => copy(room, &other[skip..skip + length]),
                    None => {
                        if skip > 0 {
                            room.copy_within(skip..skip + length, 0);
                        }
                        length
                    }
                };
                (0, length)
            }
            (Ok(Reply::Lent { .. }), _) => (Errno::IO.raw_os_error(), 0),
            (Ok(_), None) => (Errno::IO.raw_os_error(), 0),
            (Err(errno), _) => (errno.raw_os_error(), 0),
        };
        let Some(head) = self.ring.head_mut(place) else { return };
        let commit = ring::commit_number(head);
        ring::put_reply(head, ticket.unique, -error, length as u32);
        self.offer(place, ring::COMMIT_AND_FETCH, commit);
    }
}

impl Places {
    fn offer(&mut self, place: u32, operation: u32, commit: u64) {
        let command = ring::command(self.queue, commit);
        if let Err(error) = self.ring.offer(place, operation, command) {
            self.trouble.get_or_insert(error);
        }
    }
}

/// Copies what there is room for; replies are never longer than that.
fn copy(room: &mut [u8], bytes: &[u8]) -> usize {
    let length = bytes.len().min(room.len());
    room[..length].copy_from_slice(&bytes[..length]);
    length
}

/// The thread of a queue.
pub(super) struct Queue {
    dispatcher: Dispatcher,
    places: Places,
    inbox: Arc<Inbox>,
}

impl Queue {
    /// Makes the ring of a queue, on the thread that will serve it. Nothing is offered yet.
    pub fn new(
        dispatcher: Dispatcher,
        inbox: Arc<Inbox>,
        device: Arc<OwnedFd>,
        queue: u16,
    ) -> Result<Self, FuseError> {
        let refused = |error: ugeom_engine::EngineError| FuseError::Transport(error.to_string());
        let mut ring = RequestRing::open(device, PLACES, MEMORY_BYTES).map_err(refused)?;
        ring.watch(Arc::clone(&inbox.event));
        let mailbox = dispatcher.channel.wake_fd();
        ring.watch(Arc::new(
            mailbox.map_err(|error| FuseError::system("preparing a thread", error))?,
        ));
        Ok(Self {
            dispatcher,
            places: Places {
                ring,
                queue,
                trouble: None,
            },
            inbox,
        })
    }

    /// Offers all places for the first time.
    pub fn register(&mut self) -> Result<(), FuseError> {
        for place in 0..PLACES {
            self.places.offer(place, ring::REGISTER, 0);
        }
        let waited = self.places.ring.wait(&[], Some(std::time::Duration::ZERO));
        let trouble = waited.err().or_else(|| self.places.trouble.take());
        let told = trouble.map(|error| error.to_string());
        let refusal = self.places.ring.refusal().map(ToString::to_string);
        match told.or(refusal) {
            Some(problem) => Err(FuseError::Transport(problem)),
            None => Ok(()),
        }
    }

    /// Serves until the mount is over, or the server stops.
    pub fn run(mut self) {
        let shared = Arc::clone(&self.dispatcher.shared);
        let over = loop {
            let over = self.places.ring.is_over() || self.places.trouble.is_some();
            let stopping = over || shared.stopping.load(Ordering::Acquire);
            if stopping && self.dispatcher.channel.in_flight() == 0 && self.answered() {
                break over;
            }
            if let Err(error) = self.turn() {
                self.places.trouble.get_or_insert(error);
            }
        };
        if let Some(error) = &self.places.trouble {
            shared.say(&format!("a queue has failed: {error}"));
        }
        shared.ended(over);
    }

    /// No request waits for an answer of the slow path. A place that could not be offered waits for
    /// nothing.
    fn answered(&self) -> bool {
        self.places.trouble.is_some() || self.places.ring.ours() == 0
    }

    fn turn(&mut self) -> std::io::Result<()> {
        let Self {
            dispatcher, places, ..
        } = self;
        let mut waited = Ok(());
        let timeout = dispatcher.interrupted.timeout();
        dispatcher.channel.sleep(timeout, |engines, timeout| {
            waited = places.ring.wait(engines, timeout);
        });
        waited?;
        for (ticket, memory, reply) in self.inbox.take() {
            let reply = reply.as_deref().map(Reply::Bytes).map_err(|errno| *errno);
            self.places.answer(ticket, memory, reply);
        }
        while let Some(place) = self.places.ring.next() {
            self.begin(place);
        }
        self.dispatcher.collect(&mut self.places);
        Ok(())
    }

    fn begin(&mut self, place: u32) {
        let Some(head) = self.places.ring.head(place).copied() else { return };
        let length = ring::payload_bytes(&head) as usize;
        let mut name = Vec::new();
        if InHeader::decode(&head).is_ok_and(|header| header.opcode == opcode::LOOKUP) {
            let there = self
                .places
                .ring
                .memory_mut(place)
                .and_then(|it| it.get(..length));
            name = there.unwrap_or_default().to_vec();
        }
        let mut ticket = Ticket {
            unique: 0,
            entry: place,
            thread: 0,
        };
        let (header, request) = match ring::request(&head, &name) {
            Ok(parsed) => parsed,
            Err(error) => {
                let shared = &self.dispatcher.shared;
                shared.say(&format!("a message of the kernel is no request: {error}"));
                return self.places.answer(ticket, None, Err(Errno::IO));
            }
        };
        (ticket.unique, ticket.thread) = (header.unique, header.pid);
        let data = match request {
            Request::Write(transfer) if transfer.length_bytes as usize <= length => {
                self.places.ring.take(place)
            }
            _ => None,
        };
        let places = &mut self.places;
        self.dispatcher
            .take(places, ticket, header.node, request, data);
    }
}
