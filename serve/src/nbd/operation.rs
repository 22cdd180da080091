//! One request on its way through the stack: the tasks that it is divided into, what each of them
//! has to do one after another, and the reply.
//!
//! ```text
//!   READ          [look for holes]  read a piece of at most 1 MiB each, whole sectors
//!   WRITE         a piece each: claim the sectors; read those that change in part; write
//!   WRITE_ZEROES  the sectors at both ends as WRITE, all between with one ZERO
//!   TRIM          DELETE of the whole sectors inside
//!   CACHE         read, piece after piece, and forget
//!   BLOCK_STATUS  EXTENTS
//! ```
//!
//! Writers of whole sectors share their claims, so they wait for nobody but for those who change a
//! part of the same sector (see [`ugeom_stack::RangeLock`]).

use super::reply::statuses;
use super::worker::Worker;
use crate::span::{PIECE_BYTES, Span, whole_sectors};
use std::ops::Range;
use ugeom_format::wire::nbd::{Request, Status, command, command_flag, error};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::lease::Lease;
use ugeom_stack::{Claim, Command, Errno, Extent, ExtentKind, Finished, Flags, Share};

/// A READ of less is not worth the question where its holes are, bytes.
pub(super) const LOOK_BYTES_MIN: u32 = 64 << 10;

/// Stretches that are asked for before a READ, and for a BLOCK_STATUS.
const LOOK_EXTENTS: usize = 64;
pub(super) const STATUS_EXTENTS: usize = 1024;

/// Stretches that are looked at to find out whether a ZERO has left a hole.
const CHECK_EXTENTS: usize = 16;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Asks for holes, and then reads what is none.
    Look,
    /// Reads a piece.
    Read,
    /// A stretch that reads as zeroes; nothing is to be done.
    Hole,
    /// Writes a piece.
    Write,
    /// Zeroes whole sectors.
    Zero,
    /// Looks whether zeroing has left a hole.
    Check,
    /// Writes zeroes, piece after piece.
    Fill,
    /// Gives whole sectors back.
    Delete,
    /// Makes durable.
    Flush,
    /// Asks for a block status.
    Status,
    /// Reads piece after piece, and forgets.
    Cache,
}

/// What makes durable what a connection has written, when it has ended.
const LAST_FLUSH: Request = Request {
    flags: 0,
    command: command::FLUSH,
    cookie: 0,
    offset_bytes: 0,
    length_bytes: 0,
};

/// Parts of a task that are bios of their own.
pub(super) const MAIN: u8 = 0;
const HEAD: u8 = 1;
const TAIL: u8 = 2;

/// A part of an operation.
pub(super) struct Task {
    pub kind: Kind,
    pub span: Span,
    pub buffer: Option<Buffer>,
    /// What a layer has lent in place of filling the buffer.
    pub lease: Option<Lease>,
    claim: Option<Claim>,
    /// Bios under way.
    left: u8,
    /// Bytes done of what goes piece after piece.
    done: u64,
}

/// A request in the stack.
pub(super) struct Operation {
    pub connection: usize,
    pub request: Request,
    pub tasks: Vec<Task>,
    /// Tasks that have not ended.
    open: usize,
    pub failure: Option<(u32, String)>,
    /// The answer to a BLOCK_STATUS.
    pub status: Vec<Status>,
    /// A FLUSH follows before it is answered.
    then_flush: bool,
    /// Nobody has asked for it, so nobody is answered.
    pub silent: bool,
}

impl Worker {
    /// Begins a request that was found to be in order.
    pub fn begin(&mut self, index: usize, request: Request, pieces: Vec<(Span, Option<Buffer>)>) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        let sector = u64::from(connection.chosen.export.sector_bytes);
        let writable = connection.chosen.export.writable;
        let looks = connection.structured
            && request.length_bytes >= LOOK_BYTES_MIN
            && request.flags & command_flag::DF == 0;
        let start = request.offset_bytes;
        let range = start..start + u64::from(request.length_bytes);
        let (fast, stays) = (command_flag::FAST_ZERO, command_flag::NO_HOLE);
        if request.command == command::FLUSH {
            // What ends after this is not covered by it: see `answer`.
            connection.dirty = false;
        }
        let number = self.new_operation(index, request, false);
        match request.command {
            command::READ if looks => self.add(number, Kind::Look, Span::new(&range, sector), None),
            command::READ => {
                for span in Span::pieces(range, sector) {
                    self.add(number, Kind::Read, span, None);
                }
            }
            command::WRITE => {
                for (span, buffer) in pieces {
                    self.add(number, Kind::Write, span, buffer);
                }
            }
            command::FLUSH if writable => {
                self.add(number, Kind::Flush, Span::new(&(0..0), sector), None);
            }
            command::TRIM => {
                self.operations[number as usize].then_flush =
                    request.flags & command_flag::FUA != 0;
                if let Some(inner) = whole_sectors(&range, sector) {
                    self.add(number, Kind::Delete, Span::new(&inner, sector), None);
                }
            }
            // Whether a hole can be avoided is known only afterwards, which is not fast.
            command::WRITE_ZEROES if request.flags & (fast | stays) == fast | stays => {
                self.fail(
                    number,
                    Errno::OPNOTSUPP,
                    "zeroes without holes are not fast here",
                );
            }
            command::WRITE_ZEROES => self.add_zeroes(number, &range, sector),
            command::CACHE => self.add(number, Kind::Cache, Span::new(&range, sector), None),
            command::BLOCK_STATUS => {
                self.add(number, Kind::Status, Span::new(&range, sector), None);
            }
            _ => {}
        }
        self.start_tasks(number, 0);
    }

    /// Makes what a connection has written durable, after its end.
    pub fn begin_last_flush(&mut self, index: usize) {
        let number = self.new_operation(index, LAST_FLUSH, true);
        self.add(number, Kind::Flush, Span::new(&(0..0), 1), None);
        self.start_tasks(number, 0);
    }

    /// The number that the next operation gets.
    pub fn next_operation(&mut self) -> u32 {
        if let Some(&number) = self.unused.last() {
            return number;
        }
        self.operations.push(Operation {
            connection: 0,
            request: LAST_FLUSH,
            tasks: Vec::new(),
            open: 0,
            failure: None,
            status: Vec::new(),
            then_flush: false,
            silent: false,
        });
        let number = (self.operations.len() - 1) as u32;
        self.unused.push(number);
        number
    }

    pub fn new_operation(&mut self, index: usize, request: Request, silent: bool) -> u32 {
        if let Some(connection) = self.connections[index].as_mut() {
            connection.operations += 1;
        }
        let number = self.next_operation();
        self.unused.pop();
        let operation = &mut self.operations[number as usize];
        operation.connection = index;
        operation.request = request;
        operation.silent = silent;
        operation.then_flush = false;
        number
    }

    pub fn add(&mut self, number: u32, kind: Kind, span: Span, buffer: Option<Buffer>) {
        let operation = &mut self.operations[number as usize];
        operation.tasks.push(Task {
            kind,
            span,
            buffer,
            lease: None,
            claim: None,
            left: 0,
            done: 0,
        });
        operation.open += 1;
    }

    fn add_zeroes(&mut self, number: u32, range: &Range<u64>, sector: u64) {
        let inner = whole_sectors(range, sector);
        let edges = match &inner {
            Some(inner) => [range.start..inner.start, inner.end..range.end],
            None => {
                // Less than two sectors, which may be parts of both.
                let border = range.end - range.end % sector;
                let border = border.clamp(range.start, range.end);
                [range.start..border, border..range.end]
            }
        };
        for edge in edges.into_iter().filter(|edge| !edge.is_empty()) {
            let span = Span::new(&edge, sector);
            let mut buffer = self.buffers.take(span.sectors);
            buffer[span.skip..span.skip + span.length].fill(0);
            self.add(number, Kind::Write, span, Some(buffer));
        }
        if let Some(inner) = inner {
            self.add(number, Kind::Zero, Span::new(&inner, sector), None);
        }
    }

    /// Starts the tasks from `from` on; an operation without any is over.
    fn start_tasks(&mut self, number: u32, from: usize) {
        let count = self.operations[number as usize].tasks.len();
        // One more is open meanwhile, so that the operation does not end in between.
        self.operations[number as usize].open += 1;
        for task in from..count {
            self.start_task(number, task as u32);
        }
        self.end_task(number);
    }

    fn start_task(&mut self, number: u32, at: u32) {
        let operation = &mut self.operations[number as usize];
        let task = &mut operation.tasks[at as usize];
        let share = match task.kind {
            Kind::Write if !task.span.is_whole() => Share::Exclusive,
            Kind::Write | Kind::Zero | Kind::Delete => Share::Shared,
            Kind::Hole => return self.end_task(number),
            _ => return self.launch(number, at, MAIN),
        };
        let Some(connection) = &self.connections[operation.connection] else {
            return;
        };
        let ranges = &connection.chosen.ranges;
        let claim = ranges.claim(task.span.sector_range(), share);
        let granted = claim.is_granted_or_wakes(&self.own_waker);
        task.claim = Some(claim);
        if granted {
            self.use_claim(number, at);
        } else {
            self.claiming.push((number, at));
        }
    }

    /// Goes on with the tasks whose claims have been granted; the others wake this thread when they
    /// are.
    pub fn go_on_with_claims(&mut self) {
        for (number, at) in std::mem::take(&mut self.claiming) {
            let task = &self.operations[number as usize].tasks[at as usize];
            if task.claim.as_ref().is_none_or(Claim::is_granted) {
                self.use_claim(number, at);
            } else {
                self.claiming.push((number, at));
            }
        }
    }

    /// The sectors are claimed: reads those that change in part, or does the work.
    fn use_claim(&mut self, number: u32, at: u32) {
        let task = &mut self.operations[number as usize].tasks[at as usize];
        let span = task.span;
        if task.kind != Kind::Write || span.is_whole() {
            return self.launch(number, at, MAIN);
        }
        let head = span.skip > 0;
        let sector = self.sector_of(number);
        // A range inside one sector needs that sector once.
        let tail = span.skip + span.length < span.sectors && (!head || span.sectors > sector);
        self.operations[number as usize].tasks[at as usize].left = u8::from(head) + u8::from(tail);
        if head {
            self.launch(number, at, HEAD);
        }
        if tail {
            self.launch(number, at, TAIL);
        }
    }

    fn sector_of(&self, number: u32) -> usize {
        let index = self.operations[number as usize].connection;
        let connection = self.connections[index].as_ref();
        connection.map_or(1, |it| it.chosen.export.sector_bytes as usize)
    }

    /// Sends a bio, or notes that there was none to be had.
    fn launch(&mut self, number: u32, at: u32, part: u8) {
        let sector = self.sector_of(number);
        let operation = &mut self.operations[number as usize];
        let Some(connection) = &self.connections[operation.connection] else {
            return;
        };
        let Some(draft) = self.channel.bio() else {
            self.starved.push_back((number, at, part));
            return;
        };
        let task = &mut operation.tasks[at as usize];
        let span = task.span;
        let (start, sectors) = (span.start(), span.sectors as u64);
        let flags = if operation.request.flags & command_flag::FUA != 0 {
            Flags::FUA
        } else {
            Flags::NONE
        };
        let next = start + task.done;
        let step = (sectors - task.done).min((PIECE_BYTES / sector as u64).max(1) * sector as u64);
        let draft = match (task.kind, part) {
            (Kind::Write, HEAD) => draft
                .read(start, self.buffers.take(sector))
                .length(sector as u64),
            (Kind::Write, TAIL) => {
                let last = start + sectors - sector as u64;
                let buffer = self.buffers.take(sector);
                draft.read(last, buffer).length(sector as u64)
            }
            (Kind::Write, _) => {
                let buffer = task.buffer.take();
                let buffer = buffer.unwrap_or_else(|| self.buffers.take(span.sectors));
                draft.write(start, buffer).length(sectors).flags(flags)
            }
            (Kind::Read, _) => draft
                .read_or_lease(start, self.buffers.take(span.sectors))
                .length(sectors),
            (Kind::Cache, _) => draft
                .read(next, self.buffers.take(step as usize))
                .length(step),
            (Kind::Fill, _) => {
                let mut buffer = self.buffers.take(step as usize);
                buffer[..step as usize].fill(0);
                draft.write(next, buffer).length(step).flags(flags)
            }
            (Kind::Zero, _) => draft.discard(Command::Zero, start, sectors).flags(flags),
            (Kind::Delete, _) => draft.discard(Command::Delete, start, sectors),
            (Kind::Flush, _) => draft.flush(),
            (Kind::Check, _) => draft.extents(start, sectors, CHECK_EXTENTS),
            (Kind::Look | Kind::Hole, _) => draft.extents(start, sectors, LOOK_EXTENTS),
            (Kind::Status, _) => {
                let one = operation.request.flags & command_flag::REQ_ONE != 0;
                draft.extents(start, sectors, if one { 1 } else { STATUS_EXTENTS })
            }
        };
        let cookie = cookie_of(number, at, part);
        self.channel
            .submit(&connection.chosen.opened, draft.cookie(cookie));
    }

    /// Takes what the stack has finished, as long as there is any.
    pub fn collect(&mut self) {
        while self.channel.poll() > 0 {
            while let Some(finished) = self.channel.finished() {
                self.completed(finished);
            }
            // As many as there are now: those that find no bio again go to the end.
            for _ in 0..self.starved.len() {
                if let Some((number, at, part)) = self.starved.pop_front() {
                    self.launch(number, at, part);
                }
            }
        }
    }

    pub fn completed(&mut self, mut finished: Finished) {
        let cookie = finished.cookie();
        let (number, at, part) = (
            (cookie >> 32) as u32,
            (cookie >> 8) as u32 & 0xff_ffff,
            cookie as u8,
        );
        let asked = finished.length();
        let result = match finished.result() {
            Ok(bytes) if bytes < asked && carries(finished.command()) => Err(Errno::IO),
            Ok(_) => Ok(()),
            Err(errno) => Err(errno),
        };
        let why = result
            .is_err()
            .then(|| match self.channel.explain(&finished) {
                Some(error) => error.to_string(),
                None => "the media ends in the middle of the range".to_owned(),
            });
        let extents = finished.extents().to_vec();
        let lease = finished.take_lease();
        let buffer = finished.take_buffer();
        self.channel.recycle(finished);
        let task = &mut self.operations[number as usize].tasks[at as usize];
        task.lease = lease;
        let kind = task.kind;
        match result {
            Ok(()) => self.succeeded((number, at, part), kind, buffer, &extents),
            Err(errno) => {
                if let Some(buffer) = buffer {
                    self.buffers.put(buffer);
                }
                self.failed((number, at, part), kind, errno, why.unwrap_or_default());
            }
        }
    }

    fn succeeded(
        &mut self,
        (number, at, part): (u32, u32, u8),
        kind: Kind,
        buffer: Option<Buffer>,
        extents: &[Extent],
    ) {
        let sector = self.sector_of(number);
        let operation = &mut self.operations[number as usize];
        let stays = operation.request.flags & command_flag::NO_HOLE != 0;
        let task = &mut operation.tasks[at as usize];
        match (kind, buffer) {
            (Kind::Write, Some(edge)) if part != MAIN => {
                copy_edge(task, part, &edge[..sector]);
                self.buffers.put(edge);
                task.left -= 1;
                if task.left == 0 {
                    self.after_edges(number, at);
                }
            }
            (Kind::Read, buffer) => {
                task.buffer = buffer;
                self.end_task(number);
            }
            (Kind::Cache | Kind::Fill, buffer) => {
                let step = (PIECE_BYTES / sector as u64).max(1) * sector as u64;
                task.done = (task.done + step).min(task.span.sectors as u64);
                let more = task.done < task.span.sectors as u64;
                if let Some(buffer) = buffer {
                    self.buffers.put(buffer);
                }
                if more {
                    self.launch(number, at, MAIN);
                } else {
                    self.end_claimed(number, at);
                }
            }
            (Kind::Zero, _) if stays => {
                task.kind = Kind::Check;
                self.launch(number, at, MAIN);
            }
            (Kind::Check, _) if extents.iter().any(|it| it.kind == ExtentKind::Hole) => {
                task.kind = Kind::Fill;
                self.launch(number, at, MAIN);
            }
            (Kind::Status, _) => {
                operation.status = statuses(&task.span, extents);
                self.end_task(number);
            }
            (Kind::Look, _) => {
                let span = task.span;
                self.divide(number, &span, extents);
            }
            (_, buffer) => {
                if let Some(buffer) = buffer {
                    self.buffers.put(buffer);
                }
                self.end_claimed(number, at);
            }
        }
    }

    fn failed(
        &mut self,
        (number, at, part): (u32, u32, u8),
        kind: Kind,
        errno: Errno,
        why: String,
    ) {
        let operation = &mut self.operations[number as usize];
        let fast = operation.request.flags & command_flag::FAST_ZERO != 0;
        let task = &mut operation.tasks[at as usize];
        let lacks = errno == Errno::OPNOTSUPP;
        match kind {
            Kind::Zero if lacks && !fast => {
                task.kind = Kind::Fill;
                return self.launch(number, at, MAIN);
            }
            // Where nobody can say what is a hole, all is data.
            Kind::Look => {
                let span = task.span;
                return self.divide(number, &span, &[]);
            }
            Kind::Status if lacks => {
                operation.status = statuses(&task.span, &[]);
                return self.end_task(number);
            }
            // Advice that nobody takes is no failure; a check that cannot be made finds nothing.
            Kind::Check => return self.end_claimed(number, at),
            Kind::Delete if lacks => return self.end_claimed(number, at),
            Kind::Write if part != MAIN => {
                task.left -= 1;
                operation.failure.get_or_insert((number_of(errno), why));
                if operation.tasks[at as usize].left == 0 {
                    self.after_edges(number, at);
                }
                return;
            }
            _ => {}
        }
        operation.failure.get_or_insert((number_of(errno), why));
        self.end_claimed(number, at);
    }

    /// Both ends of a write that changes sectors in part are there, or not.
    fn after_edges(&mut self, number: u32, at: u32) {
        if self.operations[number as usize].failure.is_some() {
            self.end_claimed(number, at);
        } else {
            self.launch(number, at, MAIN);
        }
    }

    fn fail(&mut self, number: u32, errno: Errno, why: &str) {
        self.operations[number as usize].failure = Some((number_of(errno), why.to_owned()));
    }

    /// Divides a READ into what has to be read and what are zeroes anyhow.
    fn divide(&mut self, number: u32, span: &Span, extents: &[Extent]) {
        let sector = self.sector_of(number) as u64;
        let end = span.offset + span.length as u64;
        let from = self.operations[number as usize].tasks.len();
        let mut at = span.start();
        let mut stretches: Vec<(Range<u64>, bool)> = Vec::new();
        for extent in extents {
            let next = at.saturating_add(extent.length_bytes);
            let part = at.max(span.offset)..next.min(end);
            if !part.is_empty() {
                stretches.push((part, extent.kind != ExtentKind::Data));
            }
            at = next;
        }
        if at < end {
            stretches.push((at.max(span.offset)..end, false));
        }
        for (range, zeroes) in stretches {
            if zeroes {
                self.add(number, Kind::Hole, Span::new(&range, sector), None);
            } else {
                for piece in Span::pieces(range, sector) {
                    self.add(number, Kind::Read, piece, None);
                }
            }
        }
        self.start_tasks(number, from);
        self.end_task(number);
    }

    fn end_claimed(&mut self, number: u32, at: u32) {
        let task = &mut self.operations[number as usize].tasks[at as usize];
        task.claim = None;
        if let Some(buffer) = task.buffer.take() {
            self.buffers.put(buffer);
        }
        self.end_task(number);
    }

    /// A task has ended; with the last one the request is answered.
    fn end_task(&mut self, number: u32) {
        let operation = &mut self.operations[number as usize];
        operation.open -= 1;
        if operation.open > 0 {
            return;
        }
        if std::mem::take(&mut operation.then_flush) && operation.failure.is_none() {
            let from = operation.tasks.len();
            self.add(number, Kind::Flush, Span::new(&(0..0), 1), None);
            return self.start_tasks(number, from);
        }
        self.answer(number);
    }
}

/// The word that a bio carries: of which operation, task and part it is.
pub(super) fn cookie_of(number: u32, at: u32, part: u8) -> u64 {
    u64::from(number) << 32 | u64::from(at) << 8 | u64::from(part)
}

/// Puts what stays of a sector beside the data that changes.
fn copy_edge(task: &mut Task, part: u8, sector: &[u8]) {
    let span = task.span;
    let Some(buffer) = &mut task.buffer else {
        return;
    };
    let end = span.skip + span.length;
    if part == HEAD {
        buffer[..span.skip].copy_from_slice(&sector[..span.skip]);
        if end < sector.len() {
            buffer[end..sector.len()].copy_from_slice(&sector[end..]);
        }
    } else {
        let last = span.sectors - sector.len();
        buffer[end..span.sectors].copy_from_slice(&sector[end - last..]);
    }
}

fn carries(command: Command) -> bool {
    matches!(command, Command::Read | Command::Write | Command::Zero)
}

/// The protocol's number of an error.
fn number_of(errno: Errno) -> u32 {
    match errno {
        Errno::PERM | Errno::ROFS | Errno::ACCESS => error::EPERM,
        Errno::NOMEM => error::ENOMEM,
        Errno::INVAL => error::EINVAL,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => error::ENOSPC,
        Errno::OPNOTSUPP => error::ENOTSUP,
        _ => error::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_range_inside_one_sector_keep_their_neighbours() {
        let mut task = Task {
            kind: Kind::Write,
            span: Span::new(&(520..530), 512),
            buffer: Some(Buffer::from_slice(&[9; 512])),
            lease: None,
            claim: None,
            left: 1,
            done: 0,
        };
        copy_edge(&mut task, HEAD, &[1; 512]);
        let buffer = task.buffer.expect("a buffer");
        assert_eq!((buffer[7], buffer[8], buffer[17], buffer[18]), (1, 9, 9, 1));
    }
}
