//! A worker thread: the loop that turns its connections and its operations.
//!
//! ```text
//!   sleep (reactor, with the channel's mailbox and engines)
//!     readable: connections read, and begin requests
//!   collect: completed requests (operations.rs) become replies (connections.rs)
//!   send: each connection with replies, one call
//!   resume: connections that were held back go on when there is room again
//! ```

use super::connection::Admission;
use super::connections::{Connections, Home};
use super::error::ServeError;
use super::operations::Operations;
use super::{Log, Settings};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use ugeom_engine::reactor::{Event, Interest, Reactor, Waiting, Waker};
use ugeom_machine::adaptive_polling::AdaptivePolling;
use ugeom_machine::clock;
use ugeom_stack::Stack;

/// Requests that a worker has in the stack at a time; more wait.
const CHANNEL_DEPTH: usize = 512;

/// How long to wait when waiting has failed.
const PAUSE: Duration = Duration::from_millis(1);

/// Reads of one connection in a row before the others are checked.
const TURNS_OF_ONE: u32 = 8;

/// The control thread's orders to a worker.
pub(super) enum Order {
    Admit(Box<Admission>),
    /// End the connection of that number, if it is still idle: another gets its place.
    MakeRoom(u64),
    /// End all connections when their requests are answered, and refuse new ones.
    Drain,
}

/// Wakes a worker because a claim on a range is granted.
struct Granted(Waker);

impl std::task::Wake for Granted {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

/// The next step of a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Moves newly received requests.
    Go,
    /// Looks at everything that it waits for.
    Look,
    /// Waits until one of them has something.
    Sleep,
}

/// A worker: the connections that it serves, and their requests in the stack.
pub(super) struct Worker {
    connections: Connections,
    operations: Operations,
    orders: Receiver<Order>,
    log: Log,
    polling: AdaptivePolling,
    /// The connection that was read last, which is likely to send again.
    hot: usize,
    hot_turns: u32,
    /// When it is looked next, if at all.
    tick_ns: Option<u64>,
    /// How often it is looked for clients that have fallen silent.
    tick_every: Duration,
    draining: bool,
}

impl Worker {
    /// A worker that waits for orders, and the waker that tells it to look at them.
    pub fn new(
        stack: &Stack,
        settings: &Settings,
        orders: Receiver<Order>,
        home: Home,
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
        let limits = &settings.limits;
        let shortest = limits.idle.min(limits.stall);
        let granted = Arc::new(Granted(waker.clone()));
        let worker = Self {
            connections: Connections::new(reactor, settings, home),
            operations: Operations::new(channel, granted.into()),
            orders,
            log: Arc::clone(&settings.log),
            polling: AdaptivePolling::new(
                u64::try_from(settings.spin.as_nanos()).unwrap_or(u64::MAX),
            ),
            hot: 0,
            hot_turns: 0,
            tick_ns: None,
            tick_every: (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1)),
            draining: false,
        };
        Ok((worker, waker))
    }

    /// Serves until it is told to drain and its connections have ended, or the control thread is
    /// gone.
    pub fn run(mut self) {
        let mut events = Vec::new();
        loop {
            if !self.take_orders() || (self.draining && self.connections.is_empty()) {
                break;
            }
            let next = self.look_out();
            if next == Next::Go {
                self.turn();
                continue;
            }
            let timeout = (next == Next::Look).then_some(Duration::ZERO);
            self.sleep(timeout, &mut events);
            self.connections.now_ns = clock::now_ns();
            if !events.is_empty() {
                self.polling.came(self.connections.now_ns);
            }
            for event in events.drain(..) {
                self.take_event(event);
            }
            self.turn();
        }
    }

    fn take_event(&mut self, event: Event) {
        match event {
            Event::Due(_) => {
                let due_ns = self.tick_ns.take();
                if !self.connections.is_empty() {
                    let late_ns = due_ns.map(|due| self.connections.now_ns.saturating_sub(due));
                    self.connections.excuse(late_ns.unwrap_or(0));
                    self.connections.cut_silent(&mut self.operations);
                    self.wind_up();
                }
            }
            Event::Ready {
                source,
                readable,
                writable,
            } => {
                if let Some(index) = self.connections.find(source) {
                    if readable {
                        self.hot = index;
                        self.connections.read(index, &mut self.operations);
                    }
                    if writable {
                        self.connections.touch(index);
                    }
                }
            }
        }
    }

    /// Moves everything that can be moved without sleeping.
    fn turn(&mut self) {
        let Self {
            connections,
            operations,
            ..
        } = self;
        loop {
            operations.go_on_with_claims();
            operations.collect();
            connections.answer_ended(operations);
            connections.send_touched(operations);
            if !connections.resume(operations) {
                return;
            }
        }
    }

    /// Polls for more, if that has lately come sooner than a wake-up takes: from the connection
    /// that was read last, and from the stack.
    fn look_out(&mut self) -> Next {
        let began_ns = clock::now_ns();
        self.polling.nothing(began_ns);
        let longest_ns = self.polling.poll_ns();
        if longest_ns == 0 {
            return Next::Sleep;
        }
        if self.hot_turns >= TURNS_OF_ONE {
            self.hot_turns = 0;
            return Next::Look;
        }
        let Self {
            connections,
            operations,
            ..
        } = self;
        loop {
            connections.now_ns = clock::now_ns();
            if connections.read(self.hot, operations) || operations.channel.poll() > 0 {
                self.polling.came(connections.now_ns);
                self.hot_turns += 1;
                return Next::Go;
            }
            if connections.now_ns.saturating_sub(began_ns) >= longest_ns {
                return Next::Sleep;
            }
            // Yields the core to other threads, perhaps the client.
            std::thread::yield_now();
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) {
        let reactor = &mut self.connections.reactor;
        let mut failed = None;
        self.operations.channel.sleep(timeout, |engines, timeout| {
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
                Ok(Order::Admit(admission)) => {
                    self.connections.admit(*admission, &mut self.operations);
                    if self.tick_ns.is_none() {
                        self.wind_up();
                    }
                    if self.draining {
                        self.connections.close_all(&mut self.operations);
                    }
                    self.turn();
                }
                Ok(Order::MakeRoom(id)) => {
                    self.connections.make_room(id, &mut self.operations);
                    self.turn();
                }
                Ok(Order::Drain) => {
                    self.draining = true;
                    self.connections.close_all(&mut self.operations);
                    self.turn();
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Starts the timer that looks for clients which have fallen silent.
    fn wind_up(&mut self) {
        let due_ns = clock::now_ns() + self.tick_every.as_nanos() as u64;
        self.connections.reactor.timer_at(due_ns);
        self.tick_ns = Some(due_ns);
    }
}
