//! A link to the server: a connection as long as there is one, requests that wait for it or for
//! their replies, and the way back when it breaks.
//!
//! ```text
//!   submit --> queue --> out (bytes) --> socket --> replies.rs --> finished
//!                ^                                     |
//!                +---- next part, or all again when the connection is made anew
//!
//!   Down --(again_ns)--> Connecting --> Shaking --> Up
//!     ^----------------------+-------------+--------+   broken, silent for too long
//! ```
//!
//! Nothing here waits. The descriptor to sleep on is that of a reactor with the socket and with a
//! timer in it, which ticks only while requests are in flight.

mod filled;
mod replies;
mod rest;
mod sync;
mod ticks;

use super::Remote;
use super::connect::connected;
use super::durability::Durability;
use super::shake::{Facts, Shake, Step};
use super::together::{Flushed, Together};
use rustix::io::Errno;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use ugeom_engine::reactor::{Event, Interest, Reactor, Source, Waiting};
use ugeom_format::wire::nbd::{Request, command, command_flag, export_flag};
use ugeom_machine::adaptive_polling::AdaptivePolling;
use ugeom_machine::clock;
use ugeom_stack::{Bio, Command, Flags};
use ugeom_tls::{ROOM_BYTES_MIN, Stream};

use filled::Filled;
use replies::Replies;
use sync::Asked;

const NONSENSE: &str = "the server violates the protocol";

const OTHER_EXPORT: &str = "the export has another size now, or may not be written any more";
const SILENT: &str = "the server does not answer";

const NO_CONNECTION: &str = "there is no connection";

/// Bytes that may wait to be sent before no more requests are added to them.
const OUT_BYTES_MAX: usize = 4 << 20;

/// The longest part of a request without data, bytes: lengths have 32 bits.
const PART_BYTES_MAX: u64 = 1 << 30;

/// How long to poll for replies before sleeping, when they have lately come sooner, ns.
const POLL_NS: u64 = 50_000;

/// Handshakes in a row that the server breaks before its connections count as too many: one may be
/// broken by a server that ends.
const REFUSALS: u32 = 2;

/// How long to wait before connecting again, at most.
const PAUSE_NS: u64 = 100_000_000;

/// The result of a request: the bytes done, or an error with a reason.
pub(super) type Outcome = Result<u64, (Errno, &'static str)>;

/// A request on its way.
pub(super) struct Flight {
    pub bio: Bio,
    /// Tells the lives of a slot apart in cookies.
    pub serial: u32,
    /// The order in which requests were made.
    number: u64,
    /// Since when it waits for a server: since it was submitted, or its connection was lost; 0 if
    /// the server was known to be gone.
    since_ns: u64,
    /// Its connection was lost, and nothing of it was answered after that.
    pub lost: bool,
    /// The server owes an answer.
    pub asked: bool,
    /// Connections that broke while it did.
    breaks: u32,
    /// Bytes of the request that are done.
    pub done: u64,
    /// Bytes that the server was asked for now.
    pub part: u64,
    /// Bytes of these that have come.
    pub got: u64,
    /// The ranges of these bytes.
    pub filled: Filled,
    /// Chunks that brought none and ended nothing.
    pub idle_chunks: u32,
    pub failure: Option<(Errno, &'static str)>,
    /// It is written, and waits for the FLUSH that makes it durable.
    pub flushing: bool,
    /// How many writes the FLUSH covers that was sent for it.
    pub covers: u64,
    /// That FLUSH among those in flight.
    pub generation: u64,
    /// How many FLUSHes had failed when its first part was sent.
    pub failures: u64,
}

impl Flight {
    /// True for a durable write that a server without FUA makes durable with a FLUSH behind it.
    pub fn waits_for_flush(&self, remote: &Remote) -> bool {
        let writes = matches!(self.bio.command(), Command::Write | Command::Zero);
        let makes_durable = !remote.has(export_flag::SEND_FUA);
        let can = makes_durable && remote.has(export_flag::SEND_FLUSH);
        can && writes && self.bio.flags().contains(Flags::FUA)
    }
}

/// Where a link is on its way to the server.
enum Stage {
    Down { again_ns: u64 },
    Connecting,
    Shaking { shake: Box<Shake>, input: Vec<u8> },
    Up,
}

pub(super) struct Link {
    pub remote: Arc<Remote>,
    reactor: Reactor,
    timer: Arc<OwnedFd>,
    ticks: bool,
    next_tick_ns: u64,
    stage: Stage,
    stream: Option<Stream>,
    /// The connection in the reactor.
    source: Option<Source>,
    out: Vec<u8>,
    sent: usize,
    pub flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    live: usize,
    made: u64,
    /// Flights whose next part is to be sent.
    pub queue: VecDeque<u32>,
    pub replies: Replies,
    pub finished: Vec<(Bio, Outcome)>,
    /// The number of `base:allocation` on this connection.
    pub allocation: Option<u32>,
    /// When the connection was made.
    up_ns: u64,
    /// When the server last sent something of use.
    pub heard_ns: u64,
    pub now_ns: u64,
    /// The number of the address that is tried.
    address: usize,
    /// The handshake over the last connection was completed.
    shook: bool,
    /// Handshakes in a row that were not.
    refusals: u32,
    /// The last of them makes it likely that the server admits no more clients.
    refused: bool,
    /// The last try found a server that serves something else.
    is_other: bool,
    /// Something was received since that was asked last.
    pub received: bool,
    polling: AdaptivePolling,
    /// The writes over this connection.
    pub durability: Durability,
    /// FLUSHes for other threads.
    pub asked: Asked,
    /// All FLUSHes in flight, over any link: a server may report to one of them what concerns
    /// several.
    pub together: Arc<Together>,
    /// The number of this link there.
    pub number: u64,
    /// FLUSHes of this link that are answered and wait there for others.
    pub held: usize,
}

impl Link {
    /// A link that connects with its first request.
    pub fn new(remote: &Arc<Remote>) -> Result<Self, Errno> {
        let reactor = Reactor::open(Waiting::Epoll).map_err(|_| Errno::MFILE)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = Arc::new(timerfd_create(TimerfdClockId::Monotonic, flags)?);
        let mut link = Self {
            remote: Arc::clone(remote),
            reactor,
            timer: Arc::clone(&timer),
            ticks: false,
            next_tick_ns: 0,
            stage: Stage::Down { again_ns: 0 },
            stream: None,
            source: None,
            out: Vec::new(),
            sent: 0,
            flights: Vec::new(),
            free: Vec::new(),
            live: 0,
            made: 0,
            queue: VecDeque::new(),
            replies: Replies::new(),
            finished: Vec::new(),
            allocation: None,
            up_ns: 0,
            heard_ns: 0,
            now_ns: clock::now_ns(),
            address: remote.route.last(),
            shook: true,
            refusals: 0,
            refused: false,
            is_other: false,
            received: false,
            polling: AdaptivePolling::new(POLL_NS),
            durability: Durability::new(&remote.together),
            asked: Asked::default(),
            together: Arc::clone(&remote.together),
            number: remote.together.add(),
            held: 0,
        };
        let watched = link.reactor.register(timer, Interest::READ);
        watched.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
        Ok(link)
    }

    pub fn in_flight(&self) -> usize {
        self.live
    }

    /// True while the server owes something.
    pub fn is_busy(&self) -> bool {
        self.live > 0 || self.asked.is_waiting()
    }

    /// True while there are acknowledged writes that no FLUSH has covered.
    pub fn unflushed(&self) -> &Arc<AtomicBool> {
        self.durability.unflushed()
    }

    /// Readable when [`Link::poll`] has something to do.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.reactor.wait_fd()
    }

    /// Takes a request over; it is sent with the next poll.
    pub fn submit(&mut self, bio: Bio) {
        if !self.is_busy() {
            self.now_ns = clock::now_ns();
            self.heard_ns = self.now_ns;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            (self.flights.len() - 1) as u32
        });
        self.made += 1;
        self.live += 1;
        self.flights[index as usize] = Some(Flight {
            bio,
            serial: self.made as u32,
            number: self.made,
            since_ns: match self.together.is_gone() {
                true => 0,
                false => self.now_ns,
            },
            lost: false,
            asked: false,
            breaks: 0,
            done: 0,
            part: 0,
            got: 0,
            filled: Filled::default(),
            idle_chunks: 0,
            failure: None,
            flushing: false,
            covers: 0,
            generation: 0,
            failures: 0,
        });
        self.queue.push_back(index);
    }

    /// Moves everything that can be moved, and hands out completed requests.
    pub fn poll(&mut self, done: &mut dyn FnMut(Bio, Outcome)) {
        self.now_ns = clock::now_ns();
        if !matches!(self.stage, Stage::Up) {
            self.asked.end_all();
        }
        if self.is_busy() && !self.ticks {
            self.set_timer(true);
        }
        if self.ticks && self.now_ns >= self.next_tick_ns {
            self.tick();
        }
        if self.held > 0 {
            self.release_flushes();
        }
        if !self.queue.is_empty() {
            self.rest();
        }
        if self.is_busy()
            && let Err(why) = self.advance()
        {
            self.lose(why);
        }
        if std::mem::take(&mut self.received) {
            self.polling.came(self.now_ns);
        } else {
            self.polling.nothing(self.now_ns);
        }
        for (bio, outcome) in self.finished.drain(..) {
            done(bio, outcome);
        }
    }

    /// How long to poll before sleeping, ns.
    pub fn poll_ns(&self) -> u64 {
        if self.live > 0 && matches!(self.stage, Stage::Up) {
            self.polling.poll_ns()
        } else {
            0
        }
    }

    /// One flight has ended.
    pub fn finish(&mut self, index: u32, outcome: Outcome) {
        if let Some(flight) = self.flights[index as usize].take() {
            self.finished.push((flight.bio, outcome));
            self.free.push(index);
            self.live -= 1;
        }
    }

    fn advance(&mut self) -> Result<(), &'static str> {
        if let Stage::Down { again_ns } = self.stage {
            if self.now_ns < again_ns {
                return Ok(());
            }
            self.connect()?;
        }
        if !matches!(self.stage, Stage::Up) {
            self.establish()?;
        }
        if matches!(self.stage, Stage::Up) {
            self.pump()?;
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), &'static str> {
        if self.resume()? {
            return Ok(());
        }
        let begun = self.remote.route.begin(self.address);
        let stream = Stream::plain(begun.map_err(|_| "the server cannot be connected to")?.fd);
        self.adopt(stream, Interest::WRITE)?;
        self.heard_ns = self.now_ns;
        self.stage = Stage::Connecting;
        Ok(())
    }

    fn adopt(&mut self, stream: Stream, interest: Interest) -> Result<(), &'static str> {
        let fd = Arc::clone(stream.fd());
        let source = self.reactor.register(fd, interest);
        self.source = Some(source.map_err(|_| "the connection cannot be watched")?);
        self.stream = Some(stream);
        Ok(())
    }

    /// Connecting and the handshake, as far as they go now.
    fn establish(&mut self) -> Result<(), &'static str> {
        let mut events = Vec::new();
        let asked = self.reactor.wait(&[], Some(Duration::ZERO), &mut events);
        asked.map_err(|_| "the connection cannot be watched")?;
        let own = self.source;
        let ready =
            |event: &Event| matches!(event, Event::Ready { source, .. } if Some(*source) == own);
        if !events.iter().any(ready) {
            return Ok(());
        }
        if matches!(self.stage, Stage::Connecting) {
            let stream = self.stream.as_ref().ok_or(NO_CONNECTION)?;
            connected(stream.fd()).map_err(|_| "the server cannot be connected to")?;
            let shake = Shake::new(&self.remote.export, self.remote.tls.is_some());
            let (shake, input) = (Box::new(shake), Vec::new());
            self.stage = Stage::Shaking { shake, input };
            // The silence of a network before this is not the server's.
            self.heard_ns = self.now_ns;
            return self.watch(Interest::READ);
        }
        self.shake()
    }

    fn shake(&mut self) -> Result<(), &'static str> {
        let (Stage::Shaking { shake, input }, Some(stream)) = (&mut self.stage, &mut self.stream)
        else {
            return Ok(());
        };
        let mut bytes = [0; ROOM_BYTES_MIN];
        match stream.read(&mut [], &mut bytes) {
            Ok(0) => return Err("the server has left during the handshake"),
            Ok(count) => input.extend(&bytes[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) if stream.is_secure() => return Err("TLS cannot be established"),
            Err(_) => return Err("the connection broke during the handshake"),
        }
        let step = shake.advance(input, &mut self.out);
        match step.map_err(|_| "the server refuses the export, or speaks something else")? {
            Step::Done(facts) => return self.come_up(&facts),
            Step::Secure => {
                let tls = self.remote.tls.as_ref().ok_or(NONSENSE)?;
                let secured = stream.secure_client(tls);
                secured.map_err(|_| "TLS cannot be established")?;
                shake.secured(&mut self.out);
            }
            Step::More => {}
        }
        self.send()
    }

    fn come_up(&mut self, facts: &Facts) -> Result<(), &'static str> {
        let known = &self.remote.facts;
        let read_only = |facts: &Facts| facts.flags & export_flag::READ_ONLY != 0;
        if facts.size_bytes != known.size_bytes || read_only(facts) != read_only(known) {
            return Err(OTHER_EXPORT);
        }
        self.stage = Stage::Up;
        self.allocation = facts.allocation;
        self.up_ns = self.now_ns;
        self.heard_ns = self.now_ns;
        self.remote.route.has_reached(self.address);
        self.refusals = 0;
        Ok(())
    }

    fn watch(&mut self, interest: Interest) -> Result<(), &'static str> {
        let Some(source) = self.source else { return Ok(()) };
        let changed = self.reactor.change(source, interest);
        changed.map_err(|_| "the connection cannot be watched")
    }

    /// Sends queued requests and receives replies, as long as there are any.
    fn pump(&mut self) -> Result<(), &'static str> {
        loop {
            self.fill_out();
            self.send()?;
            let more = self.receive()?;
            let can_send = self.out.is_empty() && !self.queue.is_empty();
            // Completions are handed out before more replies are received: their successors are
            // then sent while the server still answers, and neither side waits for the other's
            // batch.
            let hands_out = more && !self.finished.is_empty();
            if hands_out || (!more && !can_send) {
                return Ok(());
            }
        }
    }

    /// Writes the next parts of queued requests into the bytes to be sent.
    fn fill_out(&mut self) {
        if let Some(flush) = self.next_flush() {
            self.out.extend(flush);
        }
        while self.out.len() < OUT_BYTES_MAX {
            let Some(index) = self.queue.pop_front() else { return };
            let remote = &self.remote;
            let Some(flight) = self.flights[index as usize].as_mut() else { continue };
            let request = request(remote, self.durability.covers(), index, flight);
            flight.asked = true;
            if request.command == command::FLUSH {
                flight.generation = self.together.begin();
            } else if flight.done == 0 {
                flight.failures = self.together.failures().count();
            }
            self.out.extend(request.encode());
            if request.command == command::WRITE {
                let (from, until) = (flight.done, flight.done + flight.part);
                let out = &mut self.out;
                flight.bio.each(|at, piece| {
                    let start = from.saturating_sub(at).min(piece.len() as u64) as usize;
                    let end = until.saturating_sub(at).min(piece.len() as u64) as usize;
                    out.extend(&piece[start..end]);
                });
            }
        }
    }

    fn send(&mut self) -> Result<(), &'static str> {
        let stream = self.stream.as_mut().ok_or(NO_CONNECTION)?;
        if self.out.is_empty() && !stream.waits() {
            return Ok(());
        }
        match stream.send_all(&mut self.out, &mut self.sent) {
            Ok(()) => self.watch(Interest::READ),
            Err(Errno::AGAIN) => self.watch(Interest::BOTH),
            Err(_) => Err("the connection broke"),
        }
    }

    /// The connection is gone: all that was asked over it will be asked again, and must not reach
    /// the server late, when newer data has been written.
    fn lose(&mut self, why: &'static str) {
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
        if let Some(source) = self.source.take() {
            self.reactor.deregister(source);
        }
        let was_up = matches!(self.stage, Stage::Up);
        self.shook = was_up;
        if !was_up {
            self.address += 1;
            self.remote.route.has_failed();
        }
        if matches!(self.stage, Stage::Shaking { .. }) {
            self.refusals += 1;
            self.refused = self.refusals >= REFUSALS;
        }
        self.is_other = why == OTHER_EXPORT;
        self.durability.broke();
        self.forget_flushes();
        self.asked.end_all();
        // A server that breaks every connection soon, perhaps over one request, is as good as gone.
        let spoke_ns = self.heard_ns.saturating_sub(self.up_ns);
        let was_there = was_up && u128::from(spoke_ns) >= self.remote.retry.as_nanos();
        self.stage = Stage::Down {
            again_ns: self.now_ns + self.pause_ns(),
        };
        self.out = Vec::new();
        self.sent = 0;
        self.replies = Replies::new();
        let mut again: Vec<(u64, u32)> = Vec::new();
        // A part of the extents that were asked for is an answer, too.
        let answered = |flight: &Flight| flight.bio.command() == Command::Extents && flight.got > 0;
        let known: Vec<(u32, u64)> = (0..)
            .zip(&self.flights)
            .filter_map(|(index, flight)| Some((index, flight.as_ref()?)))
            .filter(|(_, flight)| answered(flight))
            .map(|(index, flight)| (index, flight.got))
            .collect();
        for (index, got) in known {
            self.finish(index, Ok(got));
        }
        for (index, flight) in self.flights.iter_mut().enumerate() {
            if let Some(flight) = flight {
                flight.got = 0;
                flight.failure = None;
                flight.breaks += u32::from(flight.asked);
                flight.asked = false;
                if was_there || (was_up && !flight.lost && !self.together.is_gone()) {
                    flight.lost = true;
                    flight.since_ns = self.now_ns;
                }
                if flight.waits_for_flush(&self.remote) {
                    // The writes are not durable yet, and the server may have lost them.
                    flight.flushing = false;
                    flight.done = 0;
                }
                again.push((flight.number, index as u32));
            }
        }
        again.sort_unstable();
        self.queue = again.into_iter().map(|(_, index)| index).collect();
        self.give_up(why, true);
    }

    fn pause_ns(&self) -> u64 {
        let part = self.remote.retry.as_nanos() as u64 / 16;
        PAUSE_NS.min(part)
    }

    /// Fails the requests that have waited long enough for a server that is gone. Those that came
    /// when it was known to be gone wait until it was `tried` once: one that breaks connections
    /// over a bad sector is there for the next request.
    fn give_up(&mut self, why: &'static str, tried: bool) {
        let limit = self.remote.retry.as_nanos();
        // A server that shakes hands may only be unable to answer this request.
        let (errno, why) = match self.shook {
            true => (Errno::IO, why),
            false => (Errno::NXIO, self.remote.absent.unwrap_or(why)),
        };
        for index in std::mem::take(&mut self.queue) {
            let Some(flight) = &self.flights[index as usize] else { continue };
            let waited = u128::from(self.now_ns.saturating_sub(flight.since_ns));
            let is_over = waited >= limit && (tried || flight.since_ns > 0);
            if is_over || flight.breaks >= self.remote.breaks_max {
                self.together.set_gone(true);
                self.finish(index, Err((errno, why)));
            } else {
                self.queue.push_back(index);
            }
        }
    }

    /// Fails the requests that came while tries are not worth it.
    fn rest(&mut self) {
        if !self.together.is_gone() || !self.together.answer_timeout.rests(self.now_ns) {
            return;
        }
        for index in std::mem::take(&mut self.queue) {
            match &self.flights[index as usize] {
                Some(flight) if flight.since_ns == 0 => {
                    self.finish(index, Err((Errno::NXIO, SILENT)));
                }
                Some(_) => self.queue.push_back(index),
                None => {}
            }
        }
    }
}

/// The next request to the server for a flight.
fn request(remote: &Remote, covers: u64, index: u32, flight: &mut Flight) -> Request {
    let bio = &flight.bio;
    let durable = bio.flags().contains(Flags::FUA);
    let left = bio.length() - flight.done;
    let sector = u64::from(remote.sector_bytes);
    let longest = u64::from(remote.facts.maximum_bytes).max(sector);
    let (command, limit) = match bio.command() {
        _ if flight.flushing => (command::FLUSH, 0),
        Command::Read | Command::GetAttr => (command::READ, longest - longest % sector),
        Command::Write => (command::WRITE, longest - longest % sector),
        Command::Delete => (command::TRIM, PART_BYTES_MAX),
        Command::Zero => (command::WRITE_ZEROES, PART_BYTES_MAX),
        Command::Flush => (command::FLUSH, 0),
        Command::Extents => (command::BLOCK_STATUS, PART_BYTES_MAX),
    };
    let writes = matches!(command, command::WRITE | command::WRITE_ZEROES);
    let fua = writes && durable && remote.has(export_flag::SEND_FUA);
    // The export may end in the middle of the last sector.
    let at = bio.offset() + flight.done;
    let exported = remote.facts.size_bytes.saturating_sub(at);
    let part = left.min(limit).min(exported);
    let offset_bytes = if command == command::FLUSH {
        flight.covers = covers;
        0
    } else {
        at
    };
    flight.part = part;
    flight.got = 0;
    flight.filled = Filled::default();
    flight.idle_chunks = 0;
    let no_hole = command == command::WRITE_ZEROES && bio.flags().contains(Flags::NO_HOLE);
    Request {
        flags: u16::from(fua) * command_flag::FUA + u16::from(no_hole) * command_flag::NO_HOLE,
        command,
        cookie: u64::from(flight.serial) << 32 | u64::from(index),
        offset_bytes,
        length_bytes: part as u32,
    }
}
