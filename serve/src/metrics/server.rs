//! The thread that answers over HTTP.

use super::http::{self, REQUEST_BYTES_MAX, Received};
use crate::control::{Exposition, Figures, ServerFacts, Watch, openmetrics};
use crate::event_loop::{EventLoop, Handler};
use crate::nbd::{Address, Listening, Log, ServeError};
use crate::shown::Shown;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use ugeom_engine::reactor::{Interest, Reactor, Source, Timer};
use ugeom_machine::clock;
use ugeom_stack::Stack;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;

/// Limit of a connection, from its begin to its end, ns.
const CONNECTION_NS_MAX: u64 = 10_000_000_000;

/// Time between two looks at the load, ns.
const LOOK_NS: u64 = 1_000_000_000;

/// Figures that are younger are sent again, ns.
const FRESH_NS: u64 = 20_000_000;

/// Bytes read behind a request, which would otherwise reset the connection before the client has
/// read the answer.
const DISCARDED_BYTES_MAX: usize = 256 << 10;

/// Metrics that are served over HTTP. Dropping it ends that.
pub struct Metrics {
    url: String,
    _running: EventLoop,
}

impl Metrics {
    /// Serves the figures of a stack, with facts about the server, from now on.
    ///
    /// # Errors
    /// `Listen`: the address cannot be listened to; `System`.
    pub fn start(
        stack: &Stack,
        shown: &Shown,
        address: &Address,
        facts: ServerFacts,
        log: &Log,
    ) -> Result<Self, ServeError> {
        let listening = address.listen()?;
        let url = listening.http_url("/metrics");
        if listening.open_to_others {
            log(&format!(
                "warning: any host that reaches {url} can read the names and the load of all \
                 providers; listen on localhost or a Unix socket"
            ));
        }
        let mut watch = Watch::new(stack.clone(), shown.clone());
        // Times are taken from the first request on.
        watch.look(false);
        let running = listening.socket.watched().and_then(|fd| {
            EventLoop::start(fd, log, |mut reactor| Serving {
                watch,
                facts,
                tick: reactor.timer_at(clock::now_ns() + LOOK_NS),
                reactor,
                listening,
                connections: HashMap::new(),
                figures: None,
            })
        });
        let failed = |error| ServeError::system("starting the thread of the metrics", error);
        Ok(Self {
            url,
            _running: running.map_err(failed)?,
        })
    }

    /// Where the metrics are; for a Unix socket a path, `unix:PATH`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

struct Connection {
    fd: Arc<OwnedFd>,
    begin_ns: u64,
    deadline: Timer,
    phase: Phase,
}

/// How far a connection is.
enum Phase {
    Request(Vec<u8>),
    Answer {
        bytes: Vec<u8>,
        sent: usize,
    },
    /// The answer is sent; the client closes the connection.
    Closing {
        discarded: usize,
    },
}

struct Serving {
    watch: Watch,
    facts: ServerFacts,
    reactor: Reactor,
    listening: Listening,
    tick: Timer,
    connections: HashMap<Source, Connection>,
    /// The last figures, and when they were taken.
    figures: Option<(u64, Figures)>,
}

impl Handler for Serving {
    const NAME: &'static str = "metrics";

    fn reactor(&mut self) -> &mut Reactor {
        &mut self.reactor
    }

    fn accept(&self) -> io::Result<OwnedFd> {
        let (fd, _, _) = self.listening.socket.accept()?;
        Ok(fd)
    }

    fn begin(&mut self, fd: OwnedFd) -> io::Result<()> {
        if self.connections.len() >= CONNECTIONS_MAX {
            let oldest = self.connections.iter().min_by_key(|(_, it)| it.begin_ns);
            if let Some(source) = oldest.map(|(source, _)| *source) {
                self.close(source);
            }
        }
        let fd = Arc::new(fd);
        let source = self.reactor.register(Arc::clone(&fd), Interest::READ)?;
        let begin_ns = clock::now_ns();
        let connection = Connection {
            fd,
            begin_ns,
            deadline: self.reactor.timer_at(begin_ns + CONNECTION_NS_MAX),
            phase: Phase::Request(Vec::new()),
        };
        self.connections.insert(source, connection);
        self.serve(source);
        Ok(())
    }

    /// Serves a client as far as possible without waiting.
    fn serve(&mut self, source: Source) {
        let Some(mut connection) = self.connections.remove(&source) else { return };
        let result = self.advance(&mut connection);
        let sending = matches!(connection.phase, Phase::Answer { .. });
        let interest = Interest::of(!sending, sending);
        let stays = result == Err(Errno::AGAIN) && self.reactor.change(source, interest).is_ok();
        self.connections.insert(source, connection);
        if !stays {
            self.close(source);
        }
    }

    fn due(&mut self, timer: Timer) {
        if timer == self.tick {
            // Adapts the share of timed requests to the load.
            self.watch.look(false);
            self.tick = self.reactor.timer_at(clock::now_ns() + LOOK_NS);
            return;
        }
        let mut all = self.connections.iter();
        let late = all.find(|(_, it)| it.deadline == timer);
        if let Some(source) = late.map(|(source, _)| *source) {
            self.close(source);
        }
    }

    fn end(&mut self) {
        self.watch.rest();
    }
}

impl Serving {
    /// Goes on until the socket has nothing, or no room (AGAIN), or the connection ends.
    fn advance(&mut self, connection: &mut Connection) -> Result<(), Errno> {
        let fd = &connection.fd;
        loop {
            match &mut connection.phase {
                Phase::Request(request) => {
                    let bytes = match http::parse(request) {
                        Received::Part => {
                            receive(fd, request)?;
                            continue;
                        }
                        Received::Page {
                            exposition,
                            head_only,
                        } => http::page(exposition, &self.page(exposition), head_only),
                        Received::Refused { refusal, head_only } => {
                            http::refusal(refusal, head_only)
                        }
                    };
                    let bytes = bytes.into_bytes();
                    connection.phase = Phase::Answer { bytes, sent: 0 };
                }
                Phase::Answer { bytes, sent } if *sent < bytes.len() => {
                    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                    let rest = &bytes[*sent..];
                    let send = || rustix::net::send(fd, rest, flags);
                    *sent += rustix::io::retry_on_intr(send)?;
                }
                Phase::Answer { .. } => {
                    rustix::net::shutdown(fd, Shutdown::Write)?;
                    connection.phase = Phase::Closing { discarded: 0 };
                }
                Phase::Closing { discarded } => {
                    let mut bytes = [0; 4096];
                    let count = rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut bytes))?;
                    *discarded += count;
                    if count == 0 || *discarded > DISCARDED_BYTES_MAX {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The page, of new figures or of some that were just taken.
    fn page(&mut self, exposition: Exposition) -> String {
        let now_ns = clock::now_ns();
        let old = self.figures.take();
        let fresh = old.filter(|(at_ns, _)| now_ns.saturating_sub(*at_ns) < FRESH_NS);
        let (_, figures) = self
            .figures
            .insert(fresh.unwrap_or_else(|| (now_ns, self.watch.look(true))));
        openmetrics(&self.facts, figures, exposition)
    }

    fn close(&mut self, source: Source) {
        if let Some(connection) = self.connections.remove(&source) {
            self.reactor.cancel_timer(connection.deadline);
            self.reactor.deregister(source);
        }
    }
}

/// Appends the received bytes; NOTCONN when the client has ended the stream.
fn receive(fd: &OwnedFd, request: &mut Vec<u8>) -> Result<(), Errno> {
    let mut bytes = [0; REQUEST_BYTES_MAX];
    let room = REQUEST_BYTES_MAX.saturating_sub(request.len());
    let read = || rustix::io::read(fd, &mut bytes[..room]);
    match rustix::io::retry_on_intr(read)? {
        0 => Err(Errno::NOTCONN),
        count => {
            request.extend(&bytes[..count]);
            Ok(())
        }
    }
}
