//! The dispatcher of requests. Both transports have the same one, a thread each.
//!
//! ```text
//!   READ, WRITE, FSYNC        a bio on the thread's own channel; the answer when it has completed
//!   WRITE to parts of sectors,
//!   FALLOCATE, LSEEK          the slow path's helpers
//!   OPEN, RELEASE             the slow path's opener
//!   all else                  at once; by the opener while it is closing something, and LOOKUP
//!                             from time to time, to ask whether media have grown
//! ```

use super::Shared;
use super::handles::{Handle, Mine, Table};
use super::interrupts::{Found, Interrupted};
use super::link::{Link, Reply, Responder, Ticket};
use super::passages::Notes;
use super::slow::{HelperRequest, OpenerRequest, SlowPath};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ugeom_format::wire::fuse::{OpenReply, Request, Transfer, written_reply};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::unaligned::Span;
use ugeom_stack::{BioId, Channel, Claim, Command, Finished, Flags, Share};

/// The FLUSH of close(2).
const CLOSING: Flags = Flags::UNHEARD.with(Flags::FOR_REQUEST);

/// Requests that a thread has in the stack at a time.
pub(super) const DEPTH: usize = 64;

/// The longest READ and WRITE, bytes.
pub(super) const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Lines about failed requests that a server says at most; the rest are counted by the kernel's
/// clients anyhow.
const COMPLAINTS_MAX: usize = 100;

/// A request that is in the stack.
struct Operation {
    ticket: Ticket,
    /// The bio there, until it has completed.
    bio: Option<BioId>,
    /// The part of the sectors that was asked for, bytes.
    skip: usize,
    length: usize,
    claim: Option<Claim>,
    /// When it was taken; 0 while that is not noted.
    taken_ns: u64,
}

pub(super) struct Dispatcher {
    pub shared: Arc<Shared>,
    pub channel: Channel,
    table: Mine,
    slow: SlowPath,
    /// The way by which the slow path answers.
    to: Arc<dyn Responder>,
    operations: Vec<Operation>,
    unused: Vec<u32>,
    pub interrupted: Interrupted,
    notes: Notes,
}

impl Dispatcher {
    pub fn new(
        shared: &Arc<Shared>,
        channel: Channel,
        table: Mine,
        slow: &SlowPath,
        to: Arc<dyn Responder>,
        interrupted: Interrupted,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            channel,
            table,
            slow: slow.clone(),
            to,
            operations: Vec::new(),
            unused: Vec::new(),
            interrupted,
            notes: shared.passages.notes(),
        }
    }

    /// True while another request may be taken.
    pub fn has_room(&self) -> bool {
        self.channel.in_flight() < DEPTH
    }

    /// Does what is asked. `data` is memory that holds the data of a WRITE; what is not needed of
    /// it goes back with the answer. False when the mount is over.
    #[inline]
    pub fn take(
        &mut self,
        link: &mut impl Link,
        ticket: Ticket,
        node: u64,
        request: Request<'_>,
        data: Option<Buffer>,
    ) {
        match request {
            Request::Read(transfer) => self.read(link, ticket, &transfer),
            Request::Write(transfer) => match data {
                Some(data) => self.write(link, ticket, &transfer, data),
                None => link.answer(ticket, None, Err(Errno::IO)),
            },
            Request::Sync(handle) => self.sync(link, ticket, handle, Flags::NONE),
            Request::Flush(handle) => self.sync(link, ticket, handle, CLOSING),
            Request::Fallocate(what) => {
                self.help(
                    link,
                    ticket,
                    what.handle,
                    true,
                    HelperRequest::Fallocate(what),
                );
            }
            Request::Lseek(what) => {
                self.help(link, ticket, what.handle, false, HelperRequest::Lseek(what));
            }
            Request::Open(flags) => self.ask(ticket, OpenerRequest::Open { node, flags }),
            Request::Release(handle) => {
                // From now on questions about files wait until it is closed.
                self.shared.closing.fetch_add(1, Ordering::AcqRel);
                self.ask(ticket, OpenerRequest::Release(handle));
            }
            other => self.look(link, ticket, node, other),
        }
    }

    fn ask(&self, ticket: Ticket, request: OpenerRequest) {
        self.slow.ask(request, ticket, &self.to);
    }

    /// Questions about files, and those with no answer or always the same.
    fn look(&mut self, link: &mut impl Link, ticket: Ticket, node: u64, request: Request<'_>) {
        let later = self.shared.closing.load(Ordering::Acquire) > 0;
        let files = &self.shared.files;
        let answer = match request {
            Request::Lookup(name) if later || self.shared.is_growth_due() => {
                return self.ask(ticket, OpenerRequest::LookUp(name.to_vec()));
            }
            Request::GetAttributes if later => {
                return self.ask(ticket, OpenerRequest::Attributes(node));
            }
            Request::SetAttributes(set) if later || set.empties() => {
                return self.ask(ticket, OpenerRequest::SetAttributes(node, set));
            }
            Request::ReadDirectory(from) if later => {
                return self.ask(ticket, OpenerRequest::List(node, from));
            }
            Request::FileSystem if later => return self.ask(ticket, OpenerRequest::FileSystem),
            Request::Lookup(name) => files.look_up(name),
            Request::GetAttributes => {
                let name = files.name(node);
                let table = self.table.lock();
                if let Some(handle) = name.and_then(|name| table.of_provider(&name)) {
                    let request = HelperRequest::Attributes(node);
                    return self.slow.help(handle, request, ticket, &self.to);
                }
                files.attributes(node)
            }
            Request::SetAttributes(set) => files.set_attributes(node, &set),
            Request::ReadDirectory(from) => files.list(node, &from),
            Request::FileSystem => Ok(files.file_system()),
            Request::OpenDirectory => Ok(OpenReply {
                handle: 0,
                flags: 0,
            }
            .encode()),
            Request::ReleaseDirectory | Request::Destroy => Ok(Vec::new()),
            Request::Interrupt(unique) => return self.shared.interrupts.tell(unique),
            Request::Silent => return,
            Request::Change => Err(Errno::PERM),
            _ => Err(Errno::NOSYS),
        };
        link.answer(
            ticket,
            None,
            answer.as_deref().map(Reply::Bytes).map_err(|e| *e),
        );
    }

    fn read<L: Link>(&mut self, link: &mut L, ticket: Ticket, transfer: &Transfer) {
        let table = self.table.lock();
        let handle = match known(&table, transfer, false) {
            Ok(handle) => handle,
            Err(errno) => return link.answer(ticket, None, Err(errno)),
        };
        let range = inside(handle, transfer);
        if range.is_empty() {
            return link.answer(ticket, None, Ok(Reply::Bytes(&[])));
        }
        let span = Span::new(&range, handle.sector_bytes);
        let memory = link.memory(ticket, span.sectors);
        let Some(draft) = self.channel.bio() else {
            return link.answer(ticket, Some(memory), Err(Errno::NOMEM));
        };
        let operation = Operation {
            ticket,
            bio: None,
            skip: span.skip,
            length: span.length,
            claim: None,
            taken_ns: self.notes.begin(),
        };
        let number = keep(&mut self.operations, &mut self.unused, operation);
        let draft = if span.sectors >= L::LENT_BYTES_MIN {
            draft.read_or_lease(span.start(), memory)
        } else {
            draft.read(span.start(), memory)
        };
        let draft = draft.length(span.sectors as u64).cookie(number);
        let id = self.channel.submit(&handle.opened, draft);
        self.operations[number as usize].bio = Some(id);
    }

    fn write(&mut self, link: &mut impl Link, ticket: Ticket, transfer: &Transfer, data: Buffer) {
        let table = self.table.lock();
        let handle = match known(&table, transfer, true) {
            Ok(handle) => handle,
            Err(errno) => return link.answer(ticket, Some(data), Err(errno)),
        };
        let range = inside(handle, transfer);
        if range.is_empty() {
            let reply = if transfer.length_bytes == 0 {
                Ok(Reply::Bytes(&[0; 8]))
            } else {
                Err(Errno::NOSPC)
            };
            return link.answer(ticket, Some(data), reply);
        }
        handle.dirty.store(true, Ordering::Release);
        let durable = transfer.open_flags & OFlags::DSYNC.bits() != 0;
        let span = Span::new(&range, handle.sector_bytes);
        let claim = span
            .is_whole()
            .then(|| handle.ranges.claim(range.clone(), Share::Shared))
            .filter(Claim::is_granted);
        let Some(claim) = claim else {
            let request = HelperRequest::Write {
                offset: range.start,
                length: span.length,
                buffer: data,
                durable,
            };
            return self.slow.help(handle, request, ticket, &self.to);
        };
        let Some(draft) = self.channel.bio() else {
            return link.answer(ticket, Some(data), Err(Errno::NOMEM));
        };
        let operation = Operation {
            ticket,
            bio: None,
            skip: 0,
            length: span.length,
            claim: Some(claim),
            taken_ns: self.notes.begin(),
        };
        let number = keep(&mut self.operations, &mut self.unused, operation);
        let flags = if durable { Flags::FUA } else { Flags::NONE };
        let draft = draft.write(range.start, data).length(span.length as u64);
        let draft = draft.flags(flags).cookie(number);
        let id = self.channel.submit(&handle.opened, draft);
        self.operations[number as usize].bio = Some(id);
    }

    /// fsync(2), or close(2), also of the descriptors that a child inherits: its error takes no
    /// report from the next fsync, and it makes nothing durable that a program may rely on.
    fn sync(&mut self, link: &mut impl Link, ticket: Ticket, number: u64, flags: Flags) {
        let table = self.table.lock();
        let Some(handle) = table.get(number) else {
            return link.answer(ticket, None, Err(Errno::BADF));
        };
        let closes = flags.contains(Flags::UNHEARD);
        if !handle.writable || (closes && !handle.dirty.load(Ordering::Acquire)) {
            return link.answer(ticket, None, Ok(Reply::Bytes(&[])));
        }
        let Some(draft) = self.channel.bio() else {
            return link.answer(ticket, None, Err(Errno::NOMEM));
        };
        if !closes {
            handle.dirty.store(false, Ordering::Release);
        }
        let operation = Operation {
            ticket,
            bio: None,
            skip: 0,
            length: 0,
            claim: None,
            taken_ns: self.notes.begin(),
        };
        let number = keep(&mut self.operations, &mut self.unused, operation);
        let draft = draft.flush().flags(flags).cookie(number);
        let id = self.channel.submit(&handle.opened, draft);
        self.operations[number as usize].bio = Some(id);
    }

    fn help(
        &mut self,
        link: &mut impl Link,
        ticket: Ticket,
        number: u64,
        writes: bool,
        request: HelperRequest,
    ) {
        let table = self.table.lock();
        match table.get(number) {
            None => link.answer(ticket, None, Err(Errno::BADF)),
            Some(handle) if writes && !handle.writable => {
                link.answer(ticket, None, Err(Errno::BADF));
            }
            Some(handle) => {
                if writes {
                    handle.dirty.store(true, Ordering::Release);
                }
                self.slow.help(handle, request, ticket, &self.to);
            }
        }
    }

    /// Answers requests that the stack has completed.
    #[inline]
    pub fn collect(&mut self, link: &mut impl Link) {
        let operations = &self.operations;
        let find = |unique| match under_way(operations, unique) {
            Some((thread, _)) => Found::By(thread),
            None => Found::Unknown,
        };
        for unique in self.interrupted.killed(find) {
            if let Some((_, id)) = under_way(&self.operations, unique) {
                self.channel.cancel(id);
            }
        }
        loop {
            while let Some(finished) = self.channel.finished() {
                self.completed(link, finished);
            }
            if self.channel.in_flight() == 0 || self.channel.poll() == 0 {
                return;
            }
        }
    }

    fn completed(&mut self, link: &mut impl Link, mut finished: Finished) {
        let number = finished.cookie() as u32;
        let operation = &mut self.operations[number as usize];
        operation.claim = None;
        operation.bio = None;
        let (ticket, skip, length) = (operation.ticket, operation.skip, operation.length);
        self.notes.end(ticket.unique, operation.taken_ns);
        self.unused.push(number);
        let reply = match finished.result() {
            Ok(bytes) if finished.command() == Command::Read => {
                let there = (bytes as usize).saturating_sub(skip).min(length);
                Ok(Reply::Data {
                    skip,
                    length: there,
                })
            }
            Ok(_) if finished.command() == Command::Flush => Ok(Reply::Bytes(&[])),
            Ok(bytes) => Err(bytes),
            Err(errno) => {
                // Only those are cancelled whose asker was killed.
                let errno = if errno == Errno::CANCELED {
                    Errno::INTR
                } else {
                    self.complain(&finished);
                    errno
                };
                let memory = finished.take_buffer();
                self.channel.recycle(finished);
                return link.answer(ticket, memory, Err(errno));
            }
        };
        let lease = finished.take_lease();
        let memory = finished.take_buffer();
        self.channel.recycle(finished);
        match reply {
            Ok(Reply::Data { skip, length }) if let Some(lease) = &lease => {
                let reply = Reply::Lent {
                    lease,
                    skip,
                    length,
                };
                link.answer(ticket, memory, Ok(reply));
            }
            Ok(reply) => link.answer(ticket, memory, Ok(reply)),
            Err(written) => {
                let reply = written_reply(written as u32);
                link.answer(ticket, memory, Ok(Reply::Bytes(&reply)));
            }
        }
    }

    #[cold]
    fn complain(&self, finished: &Finished) {
        if self.shared.complaints.fetch_add(1, Ordering::Relaxed) < COMPLAINTS_MAX
            && let Some(error) = self.channel.explain(finished)
        {
            self.shared.say(&error.to_string());
        }
    }
}

/// The FUSE request of a request in the stack, and its state.
fn under_way(operations: &[Operation], unique: u64) -> Option<(u32, BioId)> {
    operations.iter().find_map(|it| {
        let id = it.bio.filter(|_| it.ticket.unique == unique)?;
        Some((it.ticket.thread, id))
    })
}

/// The handle of a request, if it is open for that.
#[inline]
fn known<'a>(
    table: &'a Table,
    transfer: &Transfer,
    writes: bool,
) -> Result<&'a Arc<Handle>, Errno> {
    let handle = table.get(transfer.handle).ok_or(Errno::BADF)?;
    if transfer.length_bytes > TRANSFER_BYTES_MAX {
        return Err(Errno::INVAL);
    }
    if writes && !handle.writable {
        return Err(Errno::BADF);
    }
    Ok(handle)
}

/// The part of a request that lies inside the file.
#[inline]
fn inside(handle: &Handle, transfer: &Transfer) -> std::ops::Range<u64> {
    let start = transfer.offset.min(handle.size_bytes);
    let end = transfer.offset.saturating_add(transfer.length_bytes.into());
    start..end.min(handle.size_bytes)
}

/// Keeps an operation until its bio has completed; the number goes with the bio.
#[inline]
fn keep(operations: &mut Vec<Operation>, unused: &mut Vec<u32>, operation: Operation) -> u64 {
    let number = match unused.pop() {
        Some(number) => {
            operations[number as usize] = operation;
            number
        }
        None => {
            operations.push(operation);
            (operations.len() - 1) as u32
        }
    };
    u64::from(number)
}
