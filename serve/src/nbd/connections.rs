//! A worker's connections: from bytes to requests, and from completions to replies.
//!
//! ```text
//!   read     bytes of a socket become requests, which begin as operations or are refused
//!   answer   operations that have ended become replies
//!   send     replies of many requests with one call; a connection that is done ends here
//!   resume   connections that were held back go on when there is room again
//! ```

use super::Settings;
use super::at_once::AtOnce;
use super::budget::{Budget, REQUEST_COST_BYTES, cost};
use super::complaints::Complaints;
use super::connection::{Admission, Connection, Incoming, Refusal, Unwanted};
use super::exports::Chosen;
use super::handshake::ReplyStyle;
use super::operation::Ended;
use super::operations::Operations;
use super::reply::{put_piece, put_reply};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use ugeom_engine::reactor::{Interest, Reactor, Source, Waker};
use ugeom_format::wire::nbd::{ExtendedRequest, command};
use ugeom_machine::clock;

/// A worker's report to the control thread.
pub(super) enum News {
    /// A connection has ended; its provider is to be closed.
    Ended {
        worker: usize,
        id: u64,
        chosen: Arc<Chosen>,
    },
}

/// Bytes read from a socket at a time, beside the data of a WRITE that is on its way.
const SCRATCH_BYTES: usize = 64 << 10;

/// How often a socket is read in a row before the others get their turn.
const READS_IN_A_ROW: usize = 4;

/// After requests of so many bytes, and their heads, those of a batch that are done already are
/// answered: the client goes on meanwhile, and their data is still in the processor's caches. With
/// less, the client is woken for a part of a batch, and sleeps again before the next.
const SEND_EARLY_BYTES: usize = 256 << 10;

/// Where it is told that a connection has ended: the number of the worker, and the way there.
pub(super) struct Home {
    pub worker: usize,
    pub news: Sender<News>,
    pub waker: Waker,
    /// Where lines about clients go.
    pub complaints: Complaints,
}

impl Home {
    fn tell_end(&self, id: u64, chosen: Arc<Chosen>) {
        let worker = self.worker;
        // Without a control thread the provider is closed right here.
        let _ = self.news.send(News::Ended { worker, id, chosen });
        self.waker.wake();
    }
}

/// The connections of one worker.
pub(super) struct Connections {
    pub reactor: Reactor,
    /// The moment at which the worker woke up.
    pub now_ns: u64,
    pub(super) slots: Vec<Option<Connection>>,
    sources: HashMap<Source, usize>,
    /// Connections with replies to send, or that may have ended.
    pub(super) touched: Vec<usize>,
    /// Connections with input that waits for room.
    held_back: Vec<usize>,
    pub(super) budget: Budget,
    /// Bytes of requests that were begun since replies were sent in the middle of a batch.
    pub(super) begun_bytes: usize,
    /// Requests and parts of requests that were begun, ever.
    pub(super) begun: u64,
    scratch: Vec<u8>,
    pub(super) home: Home,
}

/// The result of reading a socket once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Nothing,
    Some,
    /// As much as there was room for: there may be more.
    Full,
}

impl Connections {
    pub fn new(reactor: Reactor, settings: &Settings, home: Home) -> Self {
        Self {
            reactor,
            now_ns: clock::now_ns(),
            slots: Vec::new(),
            sources: HashMap::new(),
            touched: Vec::new(),
            held_back: Vec::new(),
            budget: Budget::new(settings.limits, settings.threads),
            begun_bytes: 0,
            begun: 0,
            scratch: vec![0; SCRATCH_BYTES],
            home,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The connection of a source of the reactor.
    pub fn find(&self, source: Source) -> Option<usize> {
        self.sources.get(&source).copied()
    }

    /// Takes a connection, and begins the requests that it has sent already.
    pub fn admit(&mut self, mut admission: Admission, operations: &mut Operations) {
        let fd = Arc::clone(admission.stream.fd());
        let source = match self.reactor.register(fd, Interest::READ) {
            Ok(source) => source,
            Err(error) => {
                let line = format_args!("watching {}: {error}", admission.who);
                self.home.complaints.say(line);
                let chosen = Arc::new(admission.session.chosen);
                return self.home.tell_end(admission.id, chosen);
            }
        };
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let early = std::mem::take(&mut admission.early);
        let connection = Connection::new(admission, source, self.now_ns);
        self.slots[index] = Some(connection);
        self.sources.insert(source, index);
        self.take_input(index, &early, operations);
    }

    /// Reads the socket and begins the requests. True when there was anything.
    pub fn read(&mut self, index: usize, operations: &mut Operations) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut any = false;
        for _ in 0..READS_IN_A_ROW {
            let read = self.read_once(index, &mut scratch, operations);
            any |= read != Read::Nothing;
            if read != Read::Full {
                break;
            }
        }
        self.scratch = scratch;
        any
    }

    fn read_once(&mut self, index: usize, scratch: &mut [u8], operations: &mut Operations) -> Read {
        let Some(connection) = self.slots.get_mut(index).and_then(Option::as_mut) else {
            return Read::Nothing;
        };
        if connection.closing || connection.held_back {
            return Read::Nothing;
        }
        let buffers = &mut operations.buffers;
        let incoming = connection.incoming.as_mut();
        let target = incoming.map_or(&mut [][..], |it| it.target(buffers));
        let data_bytes = target.len();
        let room = data_bytes + scratch.len();
        let count = match connection.stream.read(target, scratch) {
            Ok(0) => {
                let half = connection.incoming.is_some() || !connection.leftover.is_empty();
                let why = half.then(|| "it disconnected in the middle of a message".to_owned());
                self.cut(index, why, operations);
                return Read::Some;
            }
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Read::Nothing,
            Err(_) => {
                self.cut(index, None, operations);
                return Read::Some;
            }
        };
        connection.progress_ns = self.now_ns;
        if let Some(incoming) = &mut connection.incoming {
            incoming.filled += count.min(data_bytes);
            self.finish_incoming(index, operations);
        }
        let beyond = count.saturating_sub(data_bytes);
        self.take_input(index, &scratch[..beyond], operations);
        if count == room {
            Read::Full
        } else {
            Read::Some
        }
    }

    /// Takes bytes that a client has sent, behind those that are left over.
    fn take_input(&mut self, index: usize, input: &[u8], operations: &mut Operations) {
        let Some(connection) = self.slots[index].as_mut() else { return };
        if connection.leftover.is_empty() {
            let used = self.parse(index, input, operations);
            if let Some(connection) = self.slots[index].as_mut() {
                connection.leftover.extend(&input[used..]);
            }
        } else {
            connection.leftover.extend(input);
            self.take_leftover(index, operations);
        }
        self.touched.push(index);
    }

    /// Goes on with the rest of the input. True when any of it was used.
    fn take_leftover(&mut self, index: usize, operations: &mut Operations) -> bool {
        let Some(connection) = self.slots[index].as_mut() else { return false };
        let mut leftover = std::mem::take(&mut connection.leftover);
        let used = self.parse(index, &leftover, operations);
        leftover.drain(..used);
        if let Some(connection) = self.slots[index].as_mut() {
            connection.leftover = leftover;
        }
        used > 0
    }

    /// Begins as many requests as there are and as may be; returns how many bytes that took.
    fn parse(&mut self, index: usize, input: &[u8], operations: &mut Operations) -> usize {
        let mut at = 0;
        loop {
            let Some(connection) = self.slots[index].as_mut() else {
                return input.len();
            };
            if connection.closing && connection.dividing.is_none() {
                return input.len();
            }
            let rest = &input[at..];
            if let Some(incoming) = &mut connection.incoming {
                if rest.is_empty() {
                    return at;
                }
                let target = incoming.target(&mut operations.buffers);
                let now = target.len().min(rest.len());
                target[..now].copy_from_slice(&rest[..now]);
                incoming.filled += now;
                at += now;
                self.finish_incoming(index, operations);
                continue;
            }
            if connection.unwanted.is_some() {
                at += connection.skip_unwanted(rest, &self.home.complaints);
                if connection.unwanted.is_some() {
                    return at;
                }
                continue;
            }
            if connection.dividing.is_some() {
                if !self.begin_part(index, operations) {
                    self.hold_back(index);
                    return at;
                }
            } else {
                match connection.decode(rest) {
                    Ok(None) => return at,
                    Ok(Some((request, header_bytes))) => {
                        if !self.take_request(index, request, operations) {
                            self.hold_back(index);
                            return at;
                        }
                        at += header_bytes;
                    }
                    Err(error) => {
                        self.cut(index, Some(error.to_string()), operations);
                        return input.len();
                    }
                }
            }
            if self.begun_bytes >= SEND_EARLY_BYTES {
                self.begun_bytes = 0;
                operations.collect();
                self.answer_ended(operations);
                self.send(index, operations);
            }
        }
    }

    fn hold_back(&mut self, index: usize) {
        if let Some(connection) = self.slots[index].as_mut()
            && !connection.held_back
        {
            connection.held_back = true;
            self.held_back.push(index);
        }
    }

    /// Lets connections go on that were held back. True when any of them did.
    pub fn resume(&mut self, operations: &mut Operations) -> bool {
        if self.held_back.is_empty() {
            return false;
        }
        let begun = self.begun;
        let mut waiting = std::mem::take(&mut self.held_back);
        waiting.retain(|&index| {
            let Some(connection) = self.slots[index].as_mut() else { return false };
            // Nothing of its own has ended, and there is no room for more yet. Data of a refused
            // WRITE needs none.
            if !connection.closing
                && connection.unwanted.is_none()
                && !self.budget.has_any_room(&connection.account)
            {
                return true;
            }
            connection.held_back = false;
            self.take_leftover(index, operations);
            self.touched.push(index);
            // If it waits again, it has its place at the end.
            false
        });
        waiting.append(&mut self.held_back);
        self.held_back = waiting;
        self.begun != begun
    }

    /// Begins a request, or refuses it. False when there is no room for it now.
    fn take_request(
        &mut self,
        index: usize,
        request: ExtendedRequest,
        operations: &mut Operations,
    ) -> bool {
        let Some(connection) = self.slots[index].as_mut() else { return true };
        if request.command == command::DISC {
            self.close(index, None, operations);
            return true;
        }
        if let Some((errno, why)) = connection.problem(&request) {
            let charge = REQUEST_COST_BYTES;
            if !self.budget.admits(&connection.account, charge) {
                return false;
            }
            let bytes = connection.payload_bytes(&request);
            connection.unwanted = (bytes > 0).then_some(Unwanted {
                bytes,
                of: None,
                refusal: None,
            });
            self.begun += 1;
            self.budget.charge(&mut connection.account, charge);
            let why = why.to_owned();
            let refusal = Refusal {
                request,
                errno,
                why,
                charge,
            };
            connection.refuse_when_read(refusal, None, &self.home.complaints);
            self.touched.push(index);
            return true;
        }
        let sector_bytes = connection.chosen.export.sector_bytes;
        let charge = cost(&request, sector_bytes);
        if !self.budget.admits(&connection.account, charge) {
            return self.divide_or_wait(index, request, charge, operations);
        }
        self.begun += 1;
        self.budget.charge(&mut connection.account, charge);
        self.begun_bytes += charge;
        if request.command == command::WRITE {
            connection.incoming = Some(Incoming::new(request, sector_bytes, None));
            return true;
        }
        let of = (index, &connection.chosen);
        if request.command == command::READ {
            match operations.read_at_once(of, &request) {
                AtOnce::Read(body) => {
                    let style = connection.style;
                    put_piece(&mut connection.output, &request, style, body, charge);
                    return true;
                }
                AtOnce::Begun => {
                    connection.operations += 1;
                    return true;
                }
                AtOnce::NotTried => {}
            }
        }
        self.begin_whole(index, request, operations);
        true
    }

    /// Begins a request without data, in one piece.
    pub(super) fn begin_whole(
        &mut self,
        index: usize,
        request: ExtendedRequest,
        operations: &mut Operations,
    ) {
        let Some(connection) = self.slots[index].as_mut() else { return };
        if request.command == command::FLUSH {
            // A write that ends after this is not covered: see `answer`.
            connection.dirty = false;
        }
        connection.operations += 1;
        let of = (index, &connection.chosen);
        operations.begin(
            of,
            request,
            Vec::new(),
            (connection.style != ReplyStyle::Simple, None),
        );
    }

    /// Begins a WRITE whose data has come in full.
    fn finish_incoming(&mut self, index: usize, operations: &mut Operations) {
        let Some(connection) = self.slots[index].as_mut() else { return };
        let whole = connection.incoming.as_mut().is_some_and(Incoming::step);
        if whole && let Some(incoming) = connection.incoming.take() {
            connection.operations += 1;
            let of = (index, &connection.chosen);
            let how = (false, incoming.part_of);
            operations.begin(of, incoming.request, incoming.pieces, how);
        }
    }

    /// Answers all operations that have ended.
    pub fn answer_ended(&mut self, operations: &mut Operations) {
        while let Some(mut ended) = operations.next_ended() {
            self.answer(&mut ended, operations);
            operations.recycle(ended);
        }
    }

    fn answer(&mut self, ended: &mut Ended, operations: &mut Operations) {
        let index = ended.connection;
        if self.touched.last() != Some(&index) {
            self.touched.push(index);
        }
        let Some(connection) = self.slots[index].as_mut() else { return };
        let request = ended.request;
        let failure = ended.failure.take();
        connection.operations -= 1;
        let writes = matches!(
            request.command,
            command::WRITE | command::TRIM | command::WRITE_ZEROES
        );
        let not_flushed = failure.is_some() && request.command == command::FLUSH && !ended.silent;
        connection.dirty |= writes || not_flushed;
        if ended.silent {
            if let Some((_, why)) = &failure {
                let who = &connection.who;
                let line = format_args!("{who}: the last FLUSH failed: {why}");
                self.home.complaints.say(line);
            }
            return;
        }
        let charge = cost(&request, connection.chosen.export.sector_bytes);
        if connection.dead {
            self.budget.release(&mut connection.account, 1, charge);
        } else if let Some(number) = ended.part_of {
            self.answer_part((index, number), ended, failure, charge, operations);
        } else if let Some((errno, why)) = failure {
            let refusal = Refusal {
                request,
                errno,
                why,
                charge,
            };
            connection.refuse(&refusal, &self.home.complaints);
        } else {
            let how = (connection.style, connection.contexts);
            put_reply(&mut connection.output, ended, how, charge);
        }
    }

    /// A connection may have room for replies, or have ended.
    pub fn touch(&mut self, index: usize) {
        self.touched.push(index);
    }

    /// Sends to all connections that have been touched.
    pub fn send_touched(&mut self, operations: &mut Operations) {
        while let Some(index) = self.touched.pop() {
            self.send(index, operations);
        }
    }

    /// Sends waiting replies, and ends a connection that has nothing left to do.
    fn send(&mut self, index: usize, operations: &mut Operations) {
        let Some(connection) = self.slots[index].as_mut() else { return };
        if !connection.output.is_empty() {
            match connection.send(&mut operations.buffers, self.now_ns) {
                Ok(sent) => {
                    let account = &mut connection.account;
                    self.budget.release(account, sent.ended, sent.released);
                }
                Err(_) => self.cut(index, None, operations),
            }
        }
        let Some(connection) = self.slots[index].as_mut() else { return };
        if connection.has_ended() {
            if std::mem::take(&mut connection.dirty) {
                connection.operations += 1;
                return operations.begin_last_flush(index, &connection.chosen);
            }
            return self.remove(index, operations);
        }
        connection.show();
        let interest = connection.interest();
        if interest != connection.watched {
            connection.watched = interest;
            let source = connection.source;
            if let Err(error) = self.reactor.change(source, interest) {
                self.cut(index, Some(error.to_string()), operations);
            }
        }
    }

    /// Ends the connection of that number, if it has nothing in the stack: another gets its place.
    /// Its writes are made durable as at any end.
    pub fn make_room(&mut self, id: u64, operations: &mut Operations) {
        let is_it = |it: &Option<Connection>| it.as_ref().is_some_and(|it| it.id == id);
        if let Some(index) = self.slots.iter().position(is_it) {
            let why = "the longest idle connection makes room for a new one";
            self.cut(index, Some(why.to_owned()), operations);
        }
    }

    /// Ends all connections when their requests are answered.
    pub fn close_all(&mut self, operations: &mut Operations) {
        for index in 0..self.slots.len() {
            self.close(index, None, operations);
        }
    }

    /// Reads no more, and ends the connection when all requests are answered.
    fn close(&mut self, index: usize, why: Option<&str>, operations: &mut Operations) {
        let Some(connection) = self.slots[index].as_mut() else { return };
        if let Some(why) = why {
            let who = &connection.who;
            self.home
                .complaints
                .say(format_args!("{who} is disconnected: {why}"));
        }
        connection.closing = true;
        connection.leftover = Vec::new();
        let unwanted = connection.unwanted.take();
        if let Some(refusal) = unwanted.and_then(|it| it.refusal) {
            self.budget
                .release(&mut connection.account, 1, refusal.charge);
        }
        // A READ that was read is answered; the rest of a WRITE will not come.
        connection
            .dividing
            .take_if(|it| it.request.command == command::WRITE);
        let given = connection.give_back_input(&mut operations.buffers);
        let account = &mut connection.account;
        self.budget.release(account, usize::from(given > 0), given);
        self.touched.push(index);
    }

    /// Ends the connection without answering: the client is gone, or not to be trusted.
    pub(super) fn cut(&mut self, index: usize, why: Option<String>, operations: &mut Operations) {
        self.close(index, why.as_deref(), operations);
        let Some(connection) = self.slots[index].as_mut() else { return };
        connection.dead = true;
        connection.dividing = None;
        let left = connection.output.clear(&mut operations.buffers);
        let account = &mut connection.account;
        self.budget.release(account, left.ended, left.released);
    }

    /// Lets go of a connection that has nothing in the stack any more.
    fn remove(&mut self, index: usize, operations: &mut Operations) {
        let Some(mut connection) = self.slots[index].take() else { return };
        let left = connection.output.clear(&mut operations.buffers);
        let given = connection.give_back_input(&mut operations.buffers);
        let account = &mut connection.account;
        self.budget.release(account, left.ended, left.released);
        self.budget.release(account, usize::from(given > 0), given);
        self.sources.remove(&connection.source);
        self.reactor.deregister(connection.source);
        connection.stream.shutdown();
        self.home.tell_end(connection.id, connection.chosen);
    }

    /// The server did not run for so long (SIGSTOP, a frozen cgroup, a paused machine): that time
    /// is not the clients'.
    pub fn excuse(&mut self, late_ns: u64) {
        for connection in self.slots.iter_mut().flatten() {
            connection.progress_ns = self.now_ns.min(connection.progress_ns + late_ns);
        }
    }

    /// Ends connections whose clients have not moved for too long.
    pub fn cut_silent(&mut self, operations: &mut Operations) {
        for index in 0..self.slots.len() {
            let Some(connection) = &self.slots[index] else { continue };
            if let Some(why) = connection.silent_too_long(self.now_ns, &self.budget.limits) {
                self.cut(index, Some(why.to_owned()), operations);
            }
        }
    }
}
