//! The thread that answers on the control socket.

use super::figures;
use super::message::{Answer, PROTOCOL, QUESTION_BYTES_MAX, Question, ServerFacts, Timing};
use super::place::{Listening, listen};
use super::{ControlError, place};
use crate::nbd::Log;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use ugeom_engine::reactor::{Event, Interest, Reactor, Source, Timer, Waiting, Waker};
use ugeom_machine::clock;
use ugeom_stack::{Stack, Statistics};

/// Clients at a time; others are told that there is no room.
const CLIENTS_MAX: usize = 16;

/// How long a client may be silent in the middle of a question, or leave an answer unread, ns.
const PATIENCE_NS: u64 = 10_000_000_000;

/// A look that is younger is good enough for everybody, ns.
const FRESH_NS: u64 = 20_000_000;

/// How many requests a second are timed at most, as far as the load is known.
const SAMPLES_PER_S: u64 = 4_000;

/// One request in so many is timed while the load is not known.
const ONE_IN_AT_FIRST: u32 = 16;

/// However large the load is, one request in so many is timed.
const ONE_IN_MAX: u32 = 1024;

/// How long nothing is accepted after the system had no descriptor for it.
const PAUSE: Duration = Duration::from_millis(100);

/// What the server says of itself, and where.
#[derive(Clone)]
pub struct ControlSettings {
    /// Where the socket lies; [`super::default_path`] knows a good place.
    pub path: PathBuf,
    /// The version of the program.
    pub version: String,
    /// What is served, as the command line has it.
    pub target: String,
    /// Where lines for the log go.
    pub log: Log,
}

/// A control socket that is answered. Dropping it ends that.
pub struct Control {
    path: PathBuf,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Answers questions about a stack from now on.
    ///
    /// # Errors
    /// `Place`: there can be no socket at that path; `System`.
    pub fn start(stack: &Stack, settings: &ControlSettings) -> Result<Self, ControlError> {
        let system = |what, error: std::io::Error| ControlError::System {
            what,
            source: error,
        };
        let listening = listen(&settings.path)?;
        let reactor = Reactor::open(Waiting::Auto);
        let mut reactor =
            reactor.map_err(|error| system("making a reactor", std::io::Error::other(error)))?;
        let waiting = |error| system("watching the control socket", error);
        let fd = listening.fd.try_clone().map_err(waiting)?;
        let listener = reactor.register(Arc::new(fd), Interest::READ);
        let listener = listener.map_err(waiting)?;
        let (stop, waker) = reactor.waker().map_err(waiting)?;
        let answering = Answering {
            watch: Watch::new(stack.clone()),
            facts: ServerFacts {
                protocol: PROTOCOL,
                version: settings.version.clone(),
                pid: std::process::id(),
                target: settings.target.clone(),
            },
            log: Arc::clone(&settings.log),
            listening,
            listener,
            stop,
            reactor,
            peers: HashMap::new(),
            stopping: false,
        };
        let thread = std::thread::Builder::new()
            .name("ugeom-control".to_owned())
            .spawn(move || answering.run())
            .map_err(|error| system("starting a thread", error))?;
        Ok(Self {
            path: settings.path.clone(),
            waker,
            thread: Some(thread),
        })
    }

    /// Where the socket lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.waker.wake();
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// What is counted, and what was seen last.
struct Watch {
    stack: Stack,
    /// What was counted before anybody looked.
    before: Statistics,
    clock_ns: f64,
    /// Requests that had ended at the last look, and when that was.
    seen: Option<(u64, u64)>,
    /// The last answer, and whether consumers are in it.
    last: Option<(u64, bool, Arc<str>)>,
}

impl Watch {
    fn new(stack: Stack) -> Self {
        let before = stack.options().statistics;
        Self {
            stack,
            before,
            clock_ns: clock_cost_ns(),
            seen: None,
            last: None,
        }
    }

    /// Looks, or remembers what was just seen.
    fn figures(&mut self, consumers: bool) -> Arc<str> {
        let begin_ns = clock::now_ns();
        if let Some((at_ns, with, text)) = &self.last
            && *with == consumers
            && begin_ns.saturating_sub(*at_ns) < FRESH_NS
        {
            return Arc::clone(text);
        }
        let look = self.stack.look();
        let look_ns = clock::now_ns().saturating_sub(begin_ns);
        self.follow(figures::most_ended(&look), begin_ns);
        let statistics = self.stack.options().statistics;
        let timing = Timing {
            counts: statistics != Statistics::Off,
            one_in: match statistics {
                Statistics::Time { one_in } => one_in,
                _ => 0,
            },
            clock_ns: self.clock_ns,
            look_ns,
        };
        let figures = figures::of(&look, begin_ns, timing, consumers);
        let text: Arc<str> = Answer::Figures(Box::new(figures)).line().into();
        self.last = Some((begin_ns, consumers, Arc::clone(&text)));
        text
    }

    /// Chooses how many requests are timed, by how many there were since the last look. Whoever
    /// started the server with times, or without counts, has chosen already.
    fn follow(&mut self, ended: u64, at_ns: u64) {
        if self.before != Statistics::Counts {
            return;
        }
        let one_in = match self.seen.replace((ended, at_ns)) {
            None => ONE_IN_AT_FIRST,
            Some((before, since_ns)) => {
                let ns = u128::from(at_ns.saturating_sub(since_ns).max(1));
                let rate = u128::from(ended.saturating_sub(before)) * 1_000_000_000 / ns;
                sampling(u64::try_from(rate).unwrap_or(u64::MAX))
            }
        };
        let wanted = Statistics::Time { one_in };
        if self.stack.options().statistics != wanted {
            self.stack.set_statistics(wanted);
        }
    }

    /// Nobody looks any more.
    fn rest(&mut self) {
        self.seen = None;
        self.last = None;
        if self.stack.options().statistics != self.before {
            self.stack.set_statistics(self.before);
        }
    }
}

/// Of how many requests one is timed when there are `rate` of them a second: a power of four, so
/// that it seldom changes.
fn sampling(rate: u64) -> u32 {
    let mut one_in = 1;
    while one_in < ONE_IN_MAX && rate / u64::from(one_in) > SAMPLES_PER_S {
        one_in *= 4;
    }
    one_in
}

/// What a reading of the clock costs: the least of many short loops.
fn clock_cost_ns() -> f64 {
    const READINGS: u64 = 64;
    let loops = (0..64).map(|_| {
        let begin = clock::ticks();
        let last = (0..READINGS).fold(begin, |_, _| std::hint::black_box(clock::ticks()));
        clock::ticks_to_ns(last.saturating_sub(begin))
    });
    loops.min().unwrap_or(0) as f64 / READINGS as f64
}

/// A client.
struct Peer {
    fd: Arc<OwnedFd>,
    input: Vec<u8>,
    /// The answer that is being sent, and how much of it was.
    output: Option<(Arc<str>, usize)>,
    /// When it is left, unless it goes on.
    deadline: Option<Timer>,
    /// It has asked for figures.
    watching: bool,
    /// It is left when the answer is sent.
    leaving: bool,
}

/// The thread's own.
struct Answering {
    watch: Watch,
    facts: ServerFacts,
    log: Log,
    reactor: Reactor,
    listening: Listening,
    listener: Source,
    stop: Source,
    peers: HashMap<Source, Peer>,
    stopping: bool,
}

impl Answering {
    fn run(mut self) {
        let mut events = Vec::new();
        while !self.stopping {
            if let Err(error) = self.reactor.wait(&[], None, &mut events) {
                (self.log)(&format!("control: waiting for clients failed: {error}"));
                break;
            }
            for event in events.drain(..) {
                match event {
                    Event::Due(timer) => self.due(timer),
                    Event::Ready { source, .. } if source == self.stop => self.stopping = true,
                    Event::Ready { source, .. } if source == self.listener => self.accept(),
                    Event::Ready { source, .. } => self.serve(source),
                }
            }
        }
        self.watch.rest();
    }

    fn due(&mut self, timer: Timer) {
        let late = self.peers.iter().find(|(_, it)| it.deadline == Some(timer));
        if let Some(source) = late.map(|(source, _)| *source) {
            self.leave(source);
        }
    }

    fn accept(&mut self) {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::accept_with(&self.listening.fd, flags) {
                Ok(fd) => self.greet(fd),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => {
                    (self.log)(&format!("control: accepting a client: {error}"));
                    // Descriptors are short; whoever waits is still there afterwards.
                    std::thread::sleep(PAUSE);
                    return;
                }
            }
        }
    }

    fn greet(&mut self, fd: OwnedFd) {
        let refusal = if !is_ours(&fd) {
            Some("only who started the server, or root, may look at it")
        } else if self.peers.len() >= CLIENTS_MAX {
            Some("as many clients as it serves at a time are looking already")
        } else {
            None
        };
        if let Some(reason) = refusal {
            let text = Answer::Error(reason.to_owned()).line();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            // A new socket has room for a line; and if not, the client sees that it was left.
            let _ = rustix::net::send(&fd, text.as_bytes(), flags);
            return;
        }
        let fd = Arc::new(fd);
        let registered = self.reactor.register(Arc::clone(&fd), Interest::READ);
        match registered {
            Ok(source) => {
                let peer = Peer {
                    fd,
                    input: Vec::new(),
                    output: None,
                    deadline: None,
                    watching: false,
                    leaving: false,
                };
                self.peers.insert(source, peer);
                self.serve(source);
            }
            Err(error) => (self.log)(&format!("control: watching a client: {error}")),
        }
    }

    /// Does what can be done for a client without waiting.
    fn serve(&mut self, source: Source) {
        let Some(mut peer) = self.peers.remove(&source) else {
            return;
        };
        let before = (peer.input.len(), peer.output.is_some());
        let stays = self.go_on(&mut peer);
        let after = (peer.input.len(), peer.output.is_some());
        let sending = peer.output.is_some();
        let interest = Interest::of(!sending && !peer.leaving, sending);
        if !stays || self.reactor.change(source, interest).is_err() {
            self.peers.insert(source, peer);
            return self.leave(source);
        }
        // Whoever is in the middle of something has to go on with it.
        let busy = sending || !peer.input.is_empty();
        if !busy || before != after {
            if let Some(timer) = peer.deadline.take() {
                self.reactor.cancel_timer(timer);
            }
            peer.deadline = busy.then(|| self.reactor.timer_at(clock::now_ns() + PATIENCE_NS));
        }
        self.peers.insert(source, peer);
    }

    /// Sends, reads and answers until there is nothing to do. False when the client is done with.
    fn go_on(&mut self, peer: &mut Peer) -> bool {
        loop {
            match send(peer) {
                Sent::All if peer.leaving => return false,
                Sent::All => {}
                Sent::Waits => return true,
                Sent::Gone => return false,
            }
            if let Some(end) = peer.input.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = peer.input.drain(..=end).collect();
                let text = self.answer(&line, &mut peer.watching);
                peer.output = Some((text, 0));
                continue;
            }
            if peer.input.len() >= QUESTION_BYTES_MAX {
                let reason = format!("a question has at most {QUESTION_BYTES_MAX} bytes");
                peer.output = Some((Answer::Error(reason).line().into(), 0));
                peer.input.clear();
                peer.leaving = true;
                continue;
            }
            let mut bytes = [0; QUESTION_BYTES_MAX];
            let room = QUESTION_BYTES_MAX - peer.input.len();
            match rustix::io::read(&peer.fd, &mut bytes[..room]) {
                Ok(0) => return false,
                Ok(count) => peer.input.extend(&bytes[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
    }

    fn answer(&mut self, line: &[u8], watching: &mut bool) -> Arc<str> {
        match Question::parse(line) {
            Ok(Question::Server {}) => Answer::Server(self.facts.clone()).line().into(),
            Ok(Question::Figures { consumers }) => {
                *watching = true;
                self.watch.figures(consumers)
            }
            Err(error) => Answer::Error(error.to_string()).line().into(),
        }
    }

    fn leave(&mut self, source: Source) {
        let Some(peer) = self.peers.remove(&source) else {
            return;
        };
        if let Some(timer) = peer.deadline {
            self.reactor.cancel_timer(timer);
        }
        self.reactor.deregister(source);
        if peer.watching && !self.peers.values().any(|it| it.watching) {
            self.watch.rest();
        }
    }
}

/// What became of an answer.
enum Sent {
    All,
    Waits,
    Gone,
}

fn send(peer: &mut Peer) -> Sent {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    while let Some((text, sent)) = &mut peer.output {
        let rest = text.as_bytes().get(*sent..).unwrap_or_default();
        if rest.is_empty() {
            peer.output = None;
            break;
        }
        match rustix::net::send(&peer.fd, rest, flags) {
            Ok(count) => *sent += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Sent::Waits,
            Err(_) => return Sent::Gone,
        }
    }
    Sent::All
}

/// True when the process at the other end is ours, or root's (unix(7), `SO_PEERCRED`).
fn is_ours(fd: &OwnedFd) -> bool {
    let own = rustix::process::geteuid();
    let peer = rustix::net::sockopt::socket_peercred(fd);
    peer.is_ok_and(|peer| place::may_look(peer.uid.as_raw(), own.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_follows_the_load() {
        assert_eq!(sampling(0), 1);
        assert_eq!(sampling(4_000), 1);
        assert_eq!(sampling(5_000), 4);
        assert_eq!(sampling(60_000), 16);
        assert_eq!(sampling(200_000), 64);
        assert_eq!(sampling(1_000_000), 256);
        assert_eq!(sampling(u64::MAX), ONE_IN_MAX);
        for rate in [10_000, 100_000, 1_000_000, 3_000_000] {
            let samples = rate / u64::from(sampling(rate));
            assert!((1_000..=4_000).contains(&samples), "{rate}: {samples}");
        }
    }

    #[test]
    fn a_reading_of_the_clock_costs_something_but_not_much() {
        let cost_ns = clock_cost_ns();
        assert!(cost_ns > 0.1 && cost_ns < 100_000.0, "{cost_ns}");
    }
}
