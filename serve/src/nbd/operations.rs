//! The operations of a worker: its channel of the stack, the requests that are in it, and those
//! that wait for a claim or for a bio. It knows connections by their number only; what has ended
//! is fetched by the thread that answers it.

use super::exports::Chosen;
use super::operation::{
    CHECK_EXTENTS, Ended, FIRST_EDGE, LAST_EDGE, LAST_FLUSH, LOOK_BYTES_MIN, LOOK_EXTENTS, MAIN,
    Operation, STATUS_EXTENTS, Task, TaskKind, TaskPart, carries, cookie_of, edge_of_part,
    number_of, part_of_edge, statuses,
};
use crate::buffers::Buffers;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use ugeom_format::wire::nbd::{ExtendedRequest, command, command_flag};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::unaligned::{ClaimedSpan, PIECE_BYTES, Span, whole_sectors};
use ugeom_stack::{Channel, Command, Errno, Extent, ExtentKind, Finished, Flags};

/// A worker's requests in the stack.
pub(super) struct Operations {
    pub channel: Channel,
    pub buffers: Buffers,
    slots: Vec<Operation>,
    unused: Vec<u32>,
    /// Operations whose tasks wait for a claim on a range.
    claiming: Vec<(u32, u32)>,
    /// Bios that could not be had yet.
    starved: VecDeque<TaskPart>,
    /// Operations that are to be answered, in the order in which they ended.
    ended: VecDeque<u32>,
    /// Woken when a claim is granted.
    own_waker: std::task::Waker,
}

impl Operations {
    /// None yet, on a channel.
    pub fn new(channel: Channel, own_waker: std::task::Waker) -> Self {
        Self {
            channel,
            buffers: Buffers::new(),
            slots: Vec::new(),
            unused: Vec::new(),
            claiming: Vec::new(),
            starved: VecDeque::new(),
            ended: VecDeque::new(),
            own_waker,
        }
    }

    /// Begins a request that was found to be in order, with the data of a WRITE. In `chunks` holes
    /// of a READ need no data. It may be a part of a divided request.
    pub fn begin(
        &mut self,
        (connection, chosen): (usize, &Arc<Chosen>),
        request: ExtendedRequest,
        pieces: Vec<(Span, Option<Buffer>)>,
        (chunks, part_of): (bool, Option<u32>),
    ) {
        let sector = u64::from(chosen.export.sector_bytes);
        let writable = chosen.export.writable;
        let looks = chunks
            && request.length_bytes >= LOOK_BYTES_MIN
            && request.flags & command_flag::DF == 0;
        let start = request.offset_bytes;
        let range = start..start + request.length_bytes;
        let (fast, stays) = (command_flag::FAST_ZERO, command_flag::NO_HOLE);
        let number = self.new_operation((connection, chosen), request, false);
        self.slots[number as usize].part_of = part_of;
        match request.command {
            command::READ if looks => {
                self.add(number, TaskKind::Look, Span::new(&range, sector), None)
            }
            command::READ => {
                for span in Span::pieces(range, sector) {
                    self.add(number, TaskKind::Read, span, None);
                }
            }
            command::WRITE => {
                for (span, buffer) in pieces {
                    self.add(number, TaskKind::Write, span, buffer);
                }
            }
            command::FLUSH if writable => {
                self.add(number, TaskKind::Flush, Span::new(&(0..0), sector), None);
            }
            command::TRIM => {
                self.slots[number as usize].then_flush = request.flags & command_flag::FUA != 0;
                if let Some(inner) = whole_sectors(&range, sector) {
                    self.add(number, TaskKind::Delete, Span::new(&inner, sector), None);
                }
            }
            // Whether a hole can be avoided is known only afterwards, which is not fast.
            command::WRITE_ZEROES if request.flags & (fast | stays) == fast | stays => {
                self.fail(
                    number,
                    Errno::OPNOTSUPP,
                    "zeroes without holes (NO_HOLE) are never fast (FAST_ZERO)",
                );
            }
            command::WRITE_ZEROES => self.add_zeroes(number, &range, sector),
            command::CACHE => self.add(number, TaskKind::Cache, Span::new(&range, sector), None),
            command::BLOCK_STATUS => {
                self.add(number, TaskKind::Status, Span::new(&range, sector), None);
            }
            _ => {}
        }
        self.start_tasks(number, 0);
    }

    /// Makes the writes of a connection durable, after its end.
    pub fn begin_last_flush(&mut self, connection: usize, chosen: &Arc<Chosen>) {
        let number = self.new_operation((connection, chosen), LAST_FLUSH, true);
        self.add(number, TaskKind::Flush, Span::new(&(0..0), 1), None);
        self.start_tasks(number, 0);
    }

    /// The number that the next operation gets.
    pub fn next_operation(&mut self) -> u32 {
        if let Some(&number) = self.unused.last() {
            return number;
        }
        self.slots.push(Operation::unused());
        let number = (self.slots.len() - 1) as u32;
        self.unused.push(number);
        number
    }

    pub fn new_operation(
        &mut self,
        (connection, chosen): (usize, &Arc<Chosen>),
        request: ExtendedRequest,
        silent: bool,
    ) -> u32 {
        let number = self.next_operation();
        self.unused.pop();
        let operation = &mut self.slots[number as usize];
        operation.connection = connection;
        operation.chosen = Some(Arc::clone(chosen));
        operation.request = request;
        operation.silent = silent;
        operation.then_flush = false;
        operation.part_of = None;
        number
    }

    pub fn add(&mut self, number: u32, kind: TaskKind, span: Span, buffer: Option<Buffer>) {
        let operation = &mut self.slots[number as usize];
        operation.tasks.push(Task {
            kind,
            span,
            buffer,
            lease: None,
            claimed: None,
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
            self.add(number, TaskKind::Write, span, Some(buffer));
        }
        if let Some(inner) = inner {
            self.add(number, TaskKind::Zero, Span::new(&inner, sector), None);
        }
    }

    /// Starts the tasks from `from` on; an operation without any is over.
    fn start_tasks(&mut self, number: u32, from: usize) {
        let count = self.slots[number as usize].tasks.len();
        // One more is open meanwhile, so that the operation does not end in between.
        self.slots[number as usize].open += 1;
        for task in from..count {
            self.start_task(number, task as u32);
        }
        self.end_task(number);
    }

    fn start_task(&mut self, number: u32, at: u32) {
        let operation = &mut self.slots[number as usize];
        let task = &mut operation.tasks[at as usize];
        match task.kind {
            TaskKind::Write | TaskKind::Zero | TaskKind::Delete => {}
            TaskKind::Hole => return self.end_task(number),
            _ => return self.launch(number, at, MAIN),
        }
        let Some(chosen) = &operation.chosen else { return };
        let claimed = ClaimedSpan::new(&chosen.ranges, task.span);
        let granted = claimed.is_granted_or_wakes(&self.own_waker);
        task.claimed = Some(claimed);
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
            let task = &self.slots[number as usize].tasks[at as usize];
            if task.claimed.as_ref().is_none_or(ClaimedSpan::is_granted) {
                self.use_claim(number, at);
            } else {
                self.claiming.push((number, at));
            }
        }
    }

    /// The sectors are claimed: reads those that change in part, or does the work.
    fn use_claim(&mut self, number: u32, at: u32) {
        let sector = self.sector_of(number) as u64;
        let task = &mut self.slots[number as usize].tasks[at as usize];
        let edges = task.claimed.as_mut().map(|it| it.edges(sector));
        let mut whole = true;
        for (edge, _) in edges.into_iter().flatten() {
            whole = false;
            self.launch(number, at, part_of_edge(edge));
        }
        if whole {
            self.launch(number, at, MAIN);
        }
    }

    fn sector_of(&self, number: u32) -> usize {
        let chosen = self.slots[number as usize].chosen.as_ref();
        chosen.map_or(1, |it| it.export.sector_bytes as usize)
    }

    /// Sends a bio, or notes that there was none to be had.
    fn launch(&mut self, number: u32, at: u32, part: u8) {
        let sector = self.sector_of(number);
        let operation = &mut self.slots[number as usize];
        let Some(chosen) = &operation.chosen else { return };
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
            (TaskKind::Write, FIRST_EDGE) => draft
                .read(start, self.buffers.take(sector))
                .length(sector as u64),
            (TaskKind::Write, LAST_EDGE) => {
                let last = start + sectors - sector as u64;
                let buffer = self.buffers.take(sector);
                draft.read(last, buffer).length(sector as u64)
            }
            (TaskKind::Write, _) => {
                let buffer = task.buffer.take();
                let buffer = buffer.unwrap_or_else(|| self.buffers.take(span.sectors));
                draft.write(start, buffer).length(sectors).flags(flags)
            }
            (TaskKind::Read, _) => draft
                .read_or_lease(start, self.buffers.take(span.sectors))
                .length(sectors),
            (TaskKind::Cache, _) => draft
                .read(next, self.buffers.take(step as usize))
                .length(step),
            (TaskKind::Fill, _) => {
                let mut buffer = self.buffers.take(step as usize);
                buffer[..step as usize].fill(0);
                draft.write(next, buffer).length(step).flags(flags)
            }
            (TaskKind::Zero, _) => {
                let stays = operation.request.flags & command_flag::NO_HOLE != 0;
                let hole = if stays { Flags::NO_HOLE } else { Flags::NONE };
                let draft = draft.discard(Command::Zero, start, sectors);
                draft.flags(flags.with(hole))
            }
            (TaskKind::Delete, _) => draft.discard(Command::Delete, start, sectors),
            // The client has gone and hears of no loss; the next one does.
            (TaskKind::Flush, _) if operation.silent => draft.flush().flags(Flags::UNHEARD),
            // The error of a TRIM says nothing of the writes before it.
            (TaskKind::Flush, _) if operation.request.command == command::TRIM => {
                draft.flush().flags(Flags::FOR_REQUEST)
            }
            (TaskKind::Flush, _) => draft.flush(),
            (TaskKind::Check, _) => draft.extents(start, sectors, CHECK_EXTENTS),
            (TaskKind::Look | TaskKind::Hole, _) => draft.extents(start, sectors, LOOK_EXTENTS),
            (TaskKind::Status, _) => {
                let one = operation.request.flags & command_flag::REQ_ONE != 0;
                draft.extents(start, sectors, if one { 1 } else { STATUS_EXTENTS })
            }
        };
        let cookie = cookie_of(number, at, part);
        self.channel.submit(&chosen.opened, draft.cookie(cookie));
    }

    /// Takes completed requests from the stack, as long as there are any.
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
        let task = &mut self.slots[number as usize].tasks[at as usize];
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
        kind: TaskKind,
        buffer: Option<Buffer>,
        extents: &[Extent],
    ) {
        let sector = self.sector_of(number);
        let operation = &mut self.slots[number as usize];
        let stays = operation.request.flags & command_flag::NO_HOLE != 0;
        let task = &mut operation.tasks[at as usize];
        match (kind, buffer) {
            (TaskKind::Write, Some(read)) if part != MAIN => {
                let mut last = false;
                if let (Some(edge), Some(claimed), Some(sectors)) =
                    (edge_of_part(part), &mut task.claimed, &mut task.buffer)
                {
                    last = claimed.keep(edge, &read[..sector], sectors);
                }
                self.buffers.put(read);
                if last {
                    self.after_edges(number, at);
                }
            }
            (TaskKind::Read, buffer) => {
                task.buffer = buffer;
                self.end_task(number);
            }
            (TaskKind::Cache | TaskKind::Fill, buffer) => {
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
            (TaskKind::Zero, _) if stays => {
                task.kind = TaskKind::Check;
                self.launch(number, at, MAIN);
            }
            (TaskKind::Check, _) if extents.iter().any(|it| it.kind == ExtentKind::Hole) => {
                task.kind = TaskKind::Fill;
                self.launch(number, at, MAIN);
            }
            (TaskKind::Status, _) => {
                operation.status = statuses(&task.span, extents);
                self.end_task(number);
            }
            (TaskKind::Look, _) => {
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
        kind: TaskKind,
        errno: Errno,
        why: String,
    ) {
        let operation = &mut self.slots[number as usize];
        let fast = operation.request.flags & command_flag::FAST_ZERO != 0;
        let task = &mut operation.tasks[at as usize];
        let lacks = errno == Errno::OPNOTSUPP;
        match kind {
            TaskKind::Zero if lacks && !fast => {
                task.kind = TaskKind::Fill;
                return self.launch(number, at, MAIN);
            }
            // Where holes are unknown, all is data.
            TaskKind::Look => {
                let span = task.span;
                return self.divide(number, &span, &[]);
            }
            TaskKind::Status if lacks => {
                operation.status = statuses(&task.span, &[]);
                return self.end_task(number);
            }
            // Advice that is not taken is no failure; a check that cannot be made finds nothing.
            TaskKind::Check => return self.end_claimed(number, at),
            TaskKind::Delete if lacks => return self.end_claimed(number, at),
            TaskKind::Write if part != MAIN => {
                let last = task.claimed.as_mut().is_none_or(ClaimedSpan::edge_ended);
                operation.failure.get_or_insert((number_of(errno), why));
                if last {
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
        if self.slots[number as usize].failure.is_some() {
            self.end_claimed(number, at);
        } else {
            self.launch(number, at, MAIN);
        }
    }

    fn fail(&mut self, number: u32, errno: Errno, why: &str) {
        self.slots[number as usize].failure = Some((number_of(errno), why.to_owned()));
    }

    /// Divides a READ into data and zeroes.
    fn divide(&mut self, number: u32, span: &Span, extents: &[Extent]) {
        let sector = self.sector_of(number) as u64;
        let end = span.offset + span.length as u64;
        let from = self.slots[number as usize].tasks.len();
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
                self.add(number, TaskKind::Hole, Span::new(&range, sector), None);
            } else {
                for piece in Span::pieces(range, sector) {
                    self.add(number, TaskKind::Read, piece, None);
                }
            }
        }
        self.start_tasks(number, from);
        self.end_task(number);
    }

    fn end_claimed(&mut self, number: u32, at: u32) {
        let task = &mut self.slots[number as usize].tasks[at as usize];
        task.claimed = None;
        if let Some(buffer) = task.buffer.take() {
            self.buffers.put(buffer);
        }
        self.end_task(number);
    }

    /// A task has ended; with the last one the request is answered.
    fn end_task(&mut self, number: u32) {
        let operation = &mut self.slots[number as usize];
        operation.open -= 1;
        if operation.open > 0 {
            return;
        }
        if std::mem::take(&mut operation.then_flush) && operation.failure.is_none() {
            let from = operation.tasks.len();
            self.add(number, TaskKind::Flush, Span::new(&(0..0), 1), None);
            return self.start_tasks(number, from);
        }
        self.ended.push_back(number);
    }

    /// The next ended request to answer; see [`Self::recycle`].
    pub fn next_ended(&mut self) -> Option<Ended> {
        let number = self.ended.pop_front()?;
        let operation = &mut self.slots[number as usize];
        operation.chosen = None;
        Some(Ended {
            number,
            connection: operation.connection,
            request: operation.request,
            silent: operation.silent,
            part_of: operation.part_of,
            failure: operation.failure.take(),
            status: std::mem::take(&mut operation.status),
            tasks: std::mem::take(&mut operation.tasks),
        })
    }

    /// Takes an operation back that is answered.
    pub fn recycle(&mut self, mut ended: Ended) {
        for task in ended.tasks.drain(..) {
            if let Some(buffer) = task.buffer {
                self.buffers.put(buffer);
            }
        }
        self.slots[ended.number as usize].tasks = ended.tasks;
        self.unused.push(ended.number);
    }
}
