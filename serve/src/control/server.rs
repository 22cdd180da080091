//! The thread that answers on the control socket.

use super::message::{Answer, PROTOCOL, QUESTION_BYTES_MAX, Question, ServerFacts};
use super::place::{Listening, listen};
use super::watch::Watch;
use super::{ControlError, place};
use crate::event_loop::{EventLoop, Handler};
use crate::fuse::Passages;
use crate::nbd::Log;
use crate::shown::Shown;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ugeom_engine::reactor::{Interest, Reactor, Source, Timer};
use ugeom_machine::clock;
use ugeom_stack::Stack;

/// Clients at a time; others are told that there is no room.
const CLIENTS_MAX: usize = 16;

/// How long a client may be silent in the middle of a question, or leave an answer unread, ns.
const SILENCE_MAX_NS: u64 = 10_000_000_000;

/// The facts of the server.
#[derive(Clone)]
pub struct ControlSettings {
    /// Where the socket lies; [`super::default_path`] knows a good place.
    pub path: PathBuf,
    /// The version of the program.
    pub version: String,
    /// The targets, as on the command line.
    pub target: String,
    /// The passages of the FUSE mount, if there is one.
    pub passages: Option<Arc<Passages>>,
    /// Where lines for the log go.
    pub log: Log,
}

/// A control socket that is answered. Dropping it ends that.
pub struct Control {
    path: PathBuf,
    _running: EventLoop,
}

impl Control {
    /// Answers questions about a stack, of which clients see what is shown, from now on.
    ///
    /// # Errors
    /// `Place`: there can be no socket at that path; `System`.
    pub fn start(
        stack: &Stack,
        shown: &Shown,
        settings: &ControlSettings,
    ) -> Result<Self, ControlError> {
        let listening = listen(&settings.path)?;
        let running = listening.fd.try_clone().and_then(|fd| {
            EventLoop::start(fd, &settings.log, |reactor| Answering {
                watch: Watch::new(stack.clone(), shown.clone()),
                facts: ServerFacts {
                    protocol: PROTOCOL,
                    version: settings.version.clone(),
                    pid: std::process::id(),
                    target: settings.target.clone(),
                    connection: settings.passages.as_ref().and_then(|it| it.connection()),
                },
                passages: settings.passages.clone(),
                listening,
                reactor,
                peers: HashMap::new(),
            })
        });
        let failed = |source| ControlError::System {
            what: "starting the thread of the control socket",
            source,
        };
        Ok(Self {
            path: settings.path.clone(),
            _running: running.map_err(failed)?,
        })
    }

    /// Where the socket lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

struct Peer {
    fd: Arc<OwnedFd>,
    input: Vec<u8>,
    /// The answer that is being sent, and how much of it was.
    output: Option<(Arc<str>, usize)>,
    /// When it is left, unless it goes on.
    deadline: Option<Timer>,
    /// It has asked for figures.
    watching: bool,
    /// It has asked for passages.
    tracing: bool,
    /// It is left when the answer is sent.
    leaving: bool,
}

struct Answering {
    watch: Watch,
    facts: ServerFacts,
    passages: Option<Arc<Passages>>,
    reactor: Reactor,
    listening: Listening,
    peers: HashMap<Source, Peer>,
}

impl Handler for Answering {
    const NAME: &'static str = "control";

    fn reactor(&mut self) -> &mut Reactor {
        &mut self.reactor
    }

    fn accept(&self) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(rustix::net::accept_with(&self.listening.fd, flags)?)
    }

    fn begin(&mut self, fd: OwnedFd) -> io::Result<()> {
        let refusal = if !is_ours(&fd) {
            Some("only root and the user who started the server may query it")
        } else if self.peers.len() >= CLIENTS_MAX {
            Some("too many clients are connected")
        } else {
            None
        };
        if let Some(reason) = refusal {
            let text = Answer::Error(reason.to_owned()).line();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            // A new socket has room for a line; and if not, the client sees that it was left.
            let _ = rustix::net::send(&fd, text.as_bytes(), flags);
            return Ok(());
        }
        let fd = Arc::new(fd);
        let source = self.reactor.register(Arc::clone(&fd), Interest::READ)?;
        let peer = Peer {
            fd,
            input: Vec::new(),
            output: None,
            deadline: None,
            watching: false,
            tracing: false,
            leaving: false,
        };
        self.peers.insert(source, peer);
        self.serve(source);
        Ok(())
    }

    /// Serves a client as far as possible without waiting.
    fn serve(&mut self, source: Source) {
        let Some(mut peer) = self.peers.remove(&source) else { return };
        let before = (peer.input.len(), peer.output.is_some());
        let stays = self.go_on(&mut peer);
        let after = (peer.input.len(), peer.output.is_some());
        let sending = peer.output.is_some();
        let interest = Interest::of(!sending && !peer.leaving, sending);
        if !stays || self.reactor.change(source, interest).is_err() {
            self.peers.insert(source, peer);
            return self.leave(source);
        }
        // A client in the middle of an exchange has to go on with it.
        let busy = sending || !peer.input.is_empty();
        if !busy || before != after {
            if let Some(timer) = peer.deadline.take() {
                self.reactor.cancel_timer(timer);
            }
            peer.deadline = busy.then(|| self.reactor.timer_at(clock::now_ns() + SILENCE_MAX_NS));
        }
        self.peers.insert(source, peer);
    }

    fn due(&mut self, timer: Timer) {
        let late = self.peers.iter().find(|(_, it)| it.deadline == Some(timer));
        if let Some(source) = late.map(|(source, _)| *source) {
            self.leave(source);
        }
    }

    fn end(&mut self) {
        self.watch.rest();
    }
}

impl Answering {
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
                let text = self.answer(&line, peer);
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

    fn answer(&mut self, line: &[u8], peer: &mut Peer) -> Arc<str> {
        match Question::parse(line) {
            Ok(Question::Server {}) => Answer::Server(self.facts.clone()).line().into(),
            Ok(Question::Figures { consumers }) => {
                peer.watching = true;
                self.watch.figures(consumers)
            }
            Ok(Question::Passages {}) => {
                let Some(passages) = &self.passages else {
                    let none = "there is no FUSE mount".to_owned();
                    return Answer::Error(none).line().into();
                };
                if !std::mem::replace(&mut peer.tracing, true) {
                    passages.begin();
                }
                let (each, lost) = passages.take();
                Answer::Passages { each, lost }.line().into()
            }
            Err(error) => Answer::Error(error.to_string()).line().into(),
        }
    }

    fn leave(&mut self, source: Source) {
        let Some(peer) = self.peers.remove(&source) else { return };
        if let Some(timer) = peer.deadline {
            self.reactor.cancel_timer(timer);
        }
        self.reactor.deregister(source);
        if peer.watching && !self.peers.values().any(|it| it.watching) {
            self.watch.rest();
        }
        if let Some(passages) = &self.passages
            && peer.tracing
            && !self.peers.values().any(|it| it.tracing)
        {
            passages.end();
        }
    }
}

/// The result of sending an answer.
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
