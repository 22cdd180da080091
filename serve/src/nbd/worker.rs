//! A worker thread: its connections, its channel of the stack, and the loop that turns them.
//!
//! ```text
//!   sleep (reactor, with the channel's mailbox and engines)
//!     readable: connection.rs reads and begins requests
//!   collect: what the stack has finished becomes replies (operation.rs)
//!   send: each connection with replies, one call
//!   resume: connections that were held back go on when there is room again
//! ```

use super::connection::Connection;
use super::control::News;
use super::error::ServeError;
use super::exports::Chosen;
use super::handshake::Session;
use super::operation::Operation;
use super::{Limits, Log, Settings};
use crate::buffers::Buffers;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use ugeom_engine::reactor::{Event, Interest, Reactor, Source, Timer, Waiting, Waker};
use ugeom_machine::clock;
use ugeom_machine::patience::Patience;
use ugeom_stack::{Channel, Stack};

/// Requests that a worker has in the stack at a time; more wait.
const CHANNEL_DEPTH: usize = 512;

/// Bytes read from a socket at a time, beside the data of a WRITE that is on its way.
const SCRATCH_BYTES: usize = 64 << 10;

/// How long to wait when waiting has failed.
const PAUSE: Duration = Duration::from_millis(1);

/// How often in a row one connection is read without looking who else has sent something.
const TURNS_OF_ONE: u32 = 8;

/// A connection that has shaken hands.
pub(super) struct Admission {
    pub fd: Arc<OwnedFd>,
    pub who: String,
    pub session: Session,
    /// What it has sent already.
    pub early: Vec<u8>,
}

/// What the control thread asks of a worker.
pub(super) enum Order {
    /// Serve a connection.
    Admit(Box<Admission>),
    /// End all connections when their requests are answered, and refuse new ones.
    Drain,
}

/// A bio that could not be had yet: of which operation, task and part.
pub(super) type Starved = (u32, u32, u8);

/// Wakes a worker because a claim on a range is granted.
struct Granted(Waker);

impl std::task::Wake for Granted {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

/// What a worker does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Moves what has just come.
    Go,
    /// Looks at everything that it waits for.
    Look,
    /// Waits for it.
    Sleep,
}

/// A worker's own.
pub(super) struct Worker {
    pub number: usize,
    pub limits: Limits,
    /// This worker's share of the bytes in flight.
    pub bytes_max: usize,
    pub bytes: usize,
    /// Bytes of requests that were begun since replies were sent in the middle of a batch.
    pub begun_bytes: usize,
    pub log: Log,
    pub channel: Channel,
    pub reactor: Reactor,
    pub connections: Vec<Option<Connection>>,
    sources: HashMap<Source, usize>,
    /// Connections with replies to send, or that may have ended.
    pub touched: Vec<usize>,
    /// Connections with input that waits for room.
    pub held_back: Vec<usize>,
    pub operations: Vec<Operation>,
    pub unused: Vec<u32>,
    /// Operations whose tasks wait for a claim on a range.
    pub claiming: Vec<(u32, u32)>,
    pub starved: VecDeque<Starved>,
    pub buffers: Buffers,
    pub scratch: Vec<u8>,
    /// The moment at which the worker woke up.
    pub now_ns: u64,
    orders: Receiver<Order>,
    news: (Sender<News>, Waker),
    /// Woken when a claim is granted.
    pub own_waker: std::task::Waker,
    patience: Patience,
    /// The connection that was read last, which is likely to send again.
    hot: usize,
    hot_turns: u32,
    tick: Option<Timer>,
    draining: bool,
}

impl Worker {
    /// A worker that waits for orders, and the waker that tells it to look at them.
    pub fn new(
        number: usize,
        stack: &Stack,
        settings: &Settings,
        orders: Receiver<Order>,
        news: (Sender<News>, Waker),
    ) -> Result<(Self, Waker), ServeError> {
        let system = |source| ServeError::system("preparing a worker", source);
        let other = std::io::Error::other::<Box<dyn std::error::Error + Send + Sync>>;
        let channel = stack.channel(CHANNEL_DEPTH);
        let channel = channel.map_err(|error| system(other(error.into())))?;
        // A poll in a ring would have to be armed again after each event, and interrupts a thread
        // that is about to read the socket anyhow.
        let reactor = Reactor::open(Waiting::Epoll);
        let mut reactor = reactor.map_err(|error| system(other(error.into())))?;
        let mailbox = channel.wake_fd().map_err(system)?;
        let watched = reactor.register(Arc::new(mailbox), Interest::EDGE);
        watched.map_err(system)?;
        let (_, waker) = reactor.waker().map_err(system)?;
        let worker = Self {
            number,
            limits: settings.limits,
            bytes_max: settings.limits.bytes / settings.threads.max(1),
            bytes: 0,
            begun_bytes: 0,
            log: Arc::clone(&settings.log),
            channel,
            reactor,
            connections: Vec::new(),
            sources: HashMap::new(),
            touched: Vec::new(),
            held_back: Vec::new(),
            operations: Vec::new(),
            unused: Vec::new(),
            claiming: Vec::new(),
            starved: VecDeque::new(),
            buffers: Buffers::new(),
            scratch: vec![0; SCRATCH_BYTES],
            now_ns: clock::now_ns(),
            orders,
            news,
            own_waker: Arc::new(Granted(waker.clone())).into(),
            patience: Patience::new(u64::try_from(settings.spin.as_nanos()).unwrap_or(u64::MAX)),
            hot: 0,
            hot_turns: 0,
            tick: None,
            draining: false,
        };
        Ok((worker, waker))
    }

    /// Serves until it is told to drain and its connections have ended, or the control thread is
    /// gone.
    pub fn run(mut self) {
        let mut events = Vec::new();
        loop {
            if !self.take_orders() || (self.draining && self.sources.is_empty()) {
                break;
            }
            let next = self.look_out();
            if next == Next::Go {
                self.turn();
                continue;
            }
            let timeout = (next == Next::Look).then_some(Duration::ZERO);
            self.sleep(timeout, &mut events);
            self.now_ns = clock::now_ns();
            if !events.is_empty() {
                self.patience.came(self.now_ns);
            }
            for event in events.drain(..) {
                match event {
                    Event::Due(_) => self.look_after_silent(),
                    Event::Ready {
                        source,
                        readable,
                        writable,
                    } => {
                        if let Some(&index) = self.sources.get(&source) {
                            if readable {
                                self.hot = index;
                                self.read(index);
                            }
                            if writable {
                                self.touched.push(index);
                            }
                        }
                    }
                }
            }
            self.turn();
        }
    }

    /// Moves everything that can be moved without sleeping.
    fn turn(&mut self) {
        loop {
            self.go_on_with_claims();
            self.collect();
            while let Some(index) = self.touched.pop() {
                self.send(index);
            }
            if !self.resume() {
                return;
            }
        }
    }

    /// Looks out for more, if that has lately come sooner than a thread is woken: from the
    /// connection that was read last, and from the stack.
    fn look_out(&mut self) -> Next {
        let began_ns = clock::now_ns();
        self.patience.nothing(began_ns);
        let longest_ns = self.patience.look_out_ns();
        if longest_ns == 0 {
            return Next::Sleep;
        }
        if self.hot_turns >= TURNS_OF_ONE {
            self.hot_turns = 0;
            return Next::Look;
        }
        loop {
            self.now_ns = clock::now_ns();
            if self.read(self.hot) || self.channel.poll() > 0 {
                self.patience.came(self.now_ns);
                self.hot_turns += 1;
                return Next::Go;
            }
            if self.now_ns.saturating_sub(began_ns) >= longest_ns {
                return Next::Sleep;
            }
            // Who else wants this core, perhaps the client, gets it.
            std::thread::yield_now();
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) {
        let Self {
            channel, reactor, ..
        } = self;
        let mut failed = None;
        channel.sleep(timeout, |engines, timeout| {
            failed = reactor.wait(engines, timeout, events).err();
        });
        if let Some(error) = failed {
            (self.log)(&format!("nbd: waiting for requests failed: {error}"));
            std::thread::sleep(PAUSE);
        }
    }

    /// False when there will be no orders any more.
    fn take_orders(&mut self) -> bool {
        use std::sync::mpsc::TryRecvError;
        loop {
            match self.orders.try_recv() {
                Ok(Order::Admit(admission)) => self.admit(*admission),
                Ok(Order::Drain) => {
                    self.draining = true;
                    for index in 0..self.connections.len() {
                        self.close(index, None);
                    }
                    self.turn();
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn admit(&mut self, admission: Admission) {
        let Admission {
            fd,
            who,
            session,
            early,
        } = admission;
        let source = match self.reactor.register(Arc::clone(&fd), Interest::READ) {
            Ok(source) => source,
            Err(error) => {
                (self.log)(&format!("nbd: watching {who}: {error}"));
                return self.tell_end(session.chosen);
            }
        };
        let free = self.connections.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let connection = Connection::new(fd, source, who, session, self.now_ns);
        self.connections[index] = Some(connection);
        self.sources.insert(source, index);
        if self.tick.is_none() {
            self.wind_up();
        }
        self.take_input(index, &early);
        if self.draining {
            self.close(index, None);
        }
        self.turn();
    }

    fn tell_end(&self, chosen: Chosen) {
        let worker = self.number;
        // Without a control thread the provider is closed right here.
        let _ = self.news.0.send(News::Ended { worker, chosen });
        self.news.1.wake();
    }

    /// Lets go of a connection that has nothing in the stack any more.
    pub fn remove(&mut self, index: usize) {
        let Some(mut connection) = self.connections[index].take() else {
            return;
        };
        let left = connection.output.clear(&mut self.buffers);
        self.bytes -= left.released + connection.give_back_input(&mut self.buffers);
        self.sources.remove(&connection.source);
        self.reactor.deregister(connection.source);
        // The other side learns of it even while somebody else holds the descriptor.
        let _ = rustix::net::shutdown(&connection.fd, rustix::net::Shutdown::Both);
        self.tell_end(connection.chosen);
    }

    /// Starts the timer that looks for clients which have fallen silent.
    fn wind_up(&mut self) {
        let shortest = self.limits.idle.unwrap_or(self.limits.stall);
        let period = (shortest.min(self.limits.stall) / 4)
            .clamp(Duration::from_millis(10), Duration::from_secs(1));
        let due_ns = clock::now_ns() + period.as_nanos() as u64;
        self.tick = Some(self.reactor.timer_at(due_ns));
    }

    fn look_after_silent(&mut self) {
        self.tick = None;
        if self.sources.is_empty() {
            return;
        }
        for index in 0..self.connections.len() {
            let Some(connection) = &self.connections[index] else {
                continue;
            };
            if let Some(why) = connection.silent_too_long(self.now_ns, &self.limits) {
                self.cut(index, Some(why.to_owned()));
            }
        }
        self.wind_up();
    }
}
