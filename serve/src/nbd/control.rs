//! The control thread: listeners, handshakes, time-outs; it opens and closes providers.

use super::address::{Address, Listening};
use super::allow::{CertificateNames, Identity, Rule};
use super::complaints::Complaints;
use super::connection::Admission;
use super::connections::{Home, News};
use super::error::ServeError;
use super::exports::Exports;
use super::given::OnlyClient;
use super::handshake::{Handshake, Security, Session, Step};
use super::peers::{Census, Peer, Presence, SeatDecision};
use super::worker::{Order, Worker};
use super::{Limits, Log, Settings, Tls};
use crate::event_loop::is_passing;
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use ugeom_engine::reactor::{Event, Interest, Reactor, Source, Timer, Waiting, Waker};
use ugeom_machine::clock;
use ugeom_tls::{ROOM_BYTES_MIN, Stream};

/// Bytes of a handshake read at a time.
const READ_BYTES: usize = ROOM_BYTES_MIN;

/// Bytes of answers that may wait for a client that does not read them, beyond which it is left.
const UNREAD_BYTES_MAX: usize = 1 << 20;

/// How soon it is looked again for a place for those that wait.
const SEAT_EVERY: Duration = Duration::from_millis(20);

/// Connections accepted in a row before others get their turn.
const ACCEPTS_IN_A_ROW: usize = 64;

/// Connections that wait for a place; beyond that those of the peer with most of them are refused.
const WAITING_MAX: usize = 256;

/// How long nothing is accepted after the system had no descriptor for it.
const PAUSE: Duration = Duration::from_millis(100);

/// A client that was accepted, and has no place yet.
struct Arrival {
    stream: Stream,
    who: String,
    peer: Peer,
}

/// How long a handshake, and each question in it, may take.
fn limit_ns(limits: &Limits) -> u64 {
    u64::try_from(limits.handshake.as_nanos()).unwrap_or(u64::MAX)
}

/// A client that shakes hands.
struct Pending {
    /// Its number in the census.
    id: u64,
    presence: Arc<Presence>,
    stream: Stream,
    who: String,
    client: Identity,
    handshake: Handshake,
    input: Vec<u8>,
    output: Vec<u8>,
    deadline: Timer,
    deadline_ns: u64,
    /// The agreed session, once the last answer is on its way.
    session: Option<Box<Session>>,
    /// TLS begins when the last answer is sent.
    securing: bool,
    /// The names in its certificate are known, or no rule asks for them.
    named: bool,
    /// Nothing more is read; it is left when the last answer is sent.
    leaving: bool,
}

impl Pending {
    /// Reads the client's certificate once it is verified, that is, before anything that the client
    /// says in TLS is believed.
    fn learn_names(&mut self) -> Option<Result<(), String>> {
        if self.named {
            return None;
        }
        let names = CertificateNames::decode(self.stream.certificate()?);
        self.named = true;
        Some(names.map(|names| self.client.names = names))
    }
}

/// A worker as the control thread sees it.
struct Hand {
    orders: Sender<Order>,
    waker: Waker,
    thread: JoinHandle<()>,
    connections: usize,
}

/// The control thread's own.
pub(super) struct Control {
    exports: Exports,
    limits: Limits,
    log: Log,
    complaints: Complaints,
    reactor: Reactor,
    listeners: Vec<(Source, Listening)>,
    stop: Source,
    news: Receiver<News>,
    census: Census,
    /// Clients that wait for a place, in the order of their arrival.
    waiting: VecDeque<Arrival>,
    seat_again: Option<Timer>,
    pending: HashMap<Source, Pending>,
    /// By their numbers, the workers of those that have shaken hands.
    served: HashMap<u64, usize>,
    workers: Vec<Hand>,
    accepting: bool,
    pause: Option<Timer>,
    stopping: bool,
    /// The client with which the server ends.
    only: Option<OnlyClient>,
    tls: Option<Tls>,
}

impl Control {
    /// Listens, and starts the workers. The waker stops the server.
    pub fn new(
        exports: Exports,
        settings: &Settings,
    ) -> Result<(Self, Waker, Vec<String>), ServeError> {
        let waiting = |source| ServeError::System {
            what: "making a reactor",
            source,
        };
        let open = Reactor::open(Waiting::Epoll);
        let mut reactor = open.map_err(|error| waiting(std::io::Error::other(error)))?;
        let mut listeners = Vec::new();
        let given = settings.given.listening.iter().map(Listening::given);
        let own = settings.addresses.iter().map(Address::listen);
        for listening in given.chain(own) {
            let listening = listening?;
            warn_if_open(&listening, settings);
            let fd = listening.socket.watched().map_err(waiting)?;
            let source = reactor.register(Arc::new(fd), Interest::READ);
            listeners.push((source.map_err(waiting)?, listening));
        }
        let (stop, stop_waker) = reactor.waker().map_err(waiting)?;
        let (_, news_waker) = reactor.waker().map_err(waiting)?;
        let (tell, news) = mpsc::channel();
        let complaints = Complaints::new(&settings.log);
        let mut workers = Vec::new();
        for number in 0..settings.threads.max(1) {
            let (orders, inbox) = mpsc::channel();
            let tell = tell.clone();
            let home = Home {
                worker: number,
                news: tell,
                waker: news_waker.clone(),
                complaints: complaints.clone(),
            };
            let (worker, waker) = Worker::new(exports.stack(), settings, inbox, home)?;
            let thread = std::thread::Builder::new()
                .name(format!("ugeom-nbd-{number}"))
                .spawn(move || worker.run())
                .map_err(|source| ServeError::system("starting a thread", source))?;
            workers.push(Hand {
                orders,
                waker,
                thread,
                connections: 0,
            });
        }
        let uris = uris_of(&listeners, settings);
        let control = Self {
            exports,
            limits: settings.limits,
            log: Arc::clone(&settings.log),
            complaints,
            reactor,
            listeners,
            stop,
            news,
            census: Census::new(&settings.limits),
            waiting: VecDeque::new(),
            seat_again: None,
            pending: HashMap::new(),
            served: HashMap::new(),
            workers,
            accepting: true,
            pause: None,
            stopping: false,
            only: settings.given.client.clone(),
            tls: settings.tls.clone(),
        };
        Ok((control, stop_waker, uris))
    }

    /// Serves until the server is stopped and every connection has ended.
    pub fn run(mut self) {
        let mut events = Vec::new();
        self.greet_the_only_client();
        self.end_with_the_only_client();
        while !(self.stopping && self.connections() == 0) {
            if let Err(error) = self.reactor.wait(&[], None, &mut events) {
                (self.log)(&format!("nbd: waiting for clients failed: {error}"));
                self.begin_stop();
                // Workers end by themselves; what they say is only waited for.
                std::thread::sleep(PAUSE);
            }
            for event in events.drain(..) {
                match event {
                    Event::Due(timer) => self.due(timer),
                    Event::Ready { source, .. } if source == self.stop => self.begin_stop(),
                    Event::Ready {
                        source, readable, ..
                    } => self.ready(source, readable),
                }
            }
            self.hear();
            self.end_with_the_only_client();
        }
        for worker in self.workers.drain(..) {
            drop(worker.orders);
            worker.waker.wake();
            if worker.thread.join().is_err() {
                (self.log)("nbd: a worker has ended by a panic (a defect)");
            }
        }
        self.hear();
    }

    fn greet_the_only_client(&mut self) {
        let Some(only) = &self.only else { return };
        match only.socket.try_clone() {
            Ok(fd) => self.greet(Arrival {
                stream: Stream::plain(fd),
                who: "the client on stdin".to_owned(),
                peer: Peer::User(rustix::process::geteuid().as_raw()),
            }),
            Err(error) => (self.log)(&format!("nbd: taking the client on stdin: {error}")),
        }
    }

    fn end_with_the_only_client(&mut self) {
        if self.pending.is_empty()
            && self.connections() == 0
            && let Some(only) = self.only.take()
        {
            (only.ended)();
            self.begin_stop();
        }
    }

    fn connections(&self) -> usize {
        self.workers.iter().map(|worker| worker.connections).sum()
    }

    /// Closes the providers of connections that have ended; classes may taste them again.
    fn hear(&mut self) {
        while let Ok(News::Ended { worker, id, chosen }) = self.news.try_recv() {
            drop(chosen);
            self.census.remove(id);
            self.served.remove(&id);
            self.workers[worker].connections -= 1;
        }
        // A worker that is gone without a word has dropped its connections.
        for (number, worker) in self.workers.iter_mut().enumerate() {
            if worker.connections > 0 && worker.thread.is_finished() {
                worker.connections = 0;
                for (id, _) in self.served.extract_if(|_, of| *of == number) {
                    self.census.remove(id);
                }
            }
        }
        self.seat();
        self.accept_or_not();
    }

    /// Accepts while the system has descriptors.
    fn accept_or_not(&mut self) {
        let room = self.pause.is_none() && !self.stopping;
        if room == self.accepting {
            return;
        }
        self.accepting = room;
        for (source, _) in &self.listeners {
            let interest = Interest::of(room, false);
            if let Err(error) = self.reactor.change(*source, interest) {
                (self.log)(&format!("nbd: watching a listener failed: {error}"));
            }
        }
    }

    fn begin_stop(&mut self) {
        self.stopping = true;
        self.waiting.clear();
        for (source, _) in self.listeners.drain(..) {
            self.reactor.deregister(source);
        }
        for source in self.pending.keys().copied().collect::<Vec<_>>() {
            self.leave(source, None);
        }
        for worker in &self.workers {
            // One that is gone has nothing to drain.
            let _ = worker.orders.send(Order::Drain);
            worker.waker.wake();
        }
    }

    fn due(&mut self, timer: Timer) {
        if self.pause == Some(timer) {
            self.pause = None;
            return;
        }
        if self.seat_again == Some(timer) {
            self.seat_again = None;
            return;
        }
        let late = self.pending.iter_mut().find(|(_, it)| it.deadline == timer);
        if let Some((source, pending)) = late {
            let now_ns = clock::now_ns();
            let late_ns = now_ns.saturating_sub(pending.deadline_ns);
            if u128::from(late_ns) > PAUSE.as_nanos() {
                // The server did not run (SIGSTOP): that time is not the client's.
                pending.deadline_ns = now_ns.saturating_add(late_ns);
                pending.deadline = self.reactor.timer_at(pending.deadline_ns);
                return;
            }
            let source = *source;
            let seconds = self.limits.handshake.as_secs_f64();
            self.leave(
                source,
                Some(format!("the handshake is not complete after {seconds} s")),
            );
        }
    }

    fn ready(&mut self, source: Source, readable: bool) {
        if let Some(at) = self.listeners.iter().position(|(it, _)| *it == source) {
            return self.accept(at);
        }
        if readable {
            self.read(source);
        }
        self.write(source);
    }

    fn accept(&mut self, at: usize) {
        for _ in 0..ACCEPTS_IN_A_ROW {
            match self.listeners[at].1.socket.accept() {
                Ok((fd, who, peer)) => {
                    let stream = Stream::plain(fd);
                    self.waiting.push_back(Arrival { stream, who, peer });
                    self.seat();
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    let now_ns = clock::now_ns();
                    let idle = match error.raw_os_error().map(Errno::from_raw_os_error) {
                        Some(Errno::MFILE | Errno::NFILE) => self.census.dispensable(now_ns),
                        _ => None,
                    };
                    match idle {
                        Some(id) => self.make_room(id),
                        None => self
                            .complaints
                            .say(format_args!("accepting a client: {error}; trying again")),
                    }
                    let until_ns = now_ns + PAUSE.as_nanos() as u64;
                    self.pause = Some(self.reactor.timer_at(until_ns));
                    return;
                }
            }
        }
    }

    /// Gives places to those that wait for one.
    fn seat(&mut self) {
        let mut without = VecDeque::new();
        while let Some(arrival) = self.waiting.pop_front() {
            match self.census.place(arrival.peer, clock::now_ns()) {
                SeatDecision::Free => self.greet(arrival),
                SeatDecision::Instead(id) => {
                    self.make_room(id);
                    self.greet(arrival);
                }
                SeatDecision::Wait => without.push_back(arrival),
            }
        }
        self.waiting = without;
        if self.waiting.len() > WAITING_MAX {
            self.refuse_one();
        }
        if !self.waiting.is_empty() && self.seat_again.is_none() {
            let due_ns = clock::now_ns() + SEAT_EVERY.as_nanos() as u64;
            self.seat_again = Some(self.reactor.timer_at(due_ns));
        }
    }

    /// Refuses the youngest of the peer with most connections that wait.
    fn refuse_one(&mut self) {
        let mut counts: HashMap<Peer, usize> = HashMap::new();
        for arrival in &self.waiting {
            *counts.entry(arrival.peer).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let at = most.and_then(|(most, _)| self.waiting.iter().rposition(|it| it.peer == most));
        if let Some(arrival) = at.and_then(|at| self.waiting.remove(at)) {
            let Arrival { who, peer, .. } = arrival;
            let line = format_args!("{who} is refused: too many connections of {peer} wait");
            self.complaints.say(line);
        }
    }

    /// Lets a connection go, so that another has its place.
    fn make_room(&mut self, id: u64) {
        let pending = self.pending.iter().find(|(_, it)| it.id == id);
        if let Some(source) = pending.map(|(source, _)| *source) {
            let why = "the longest idle connection makes room for a new one";
            return self.leave(source, Some(why.to_owned()));
        }
        self.census.leaves(id);
        let worker = self.served.get(&id).and_then(|at| self.workers.get(*at));
        // One that is gone has dropped its connections.
        if let Some(worker) = worker
            && worker.orders.send(Order::MakeRoom(id)).is_ok()
        {
            worker.waker.wake();
        }
    }

    fn greet(&mut self, arrival: Arrival) {
        let Arrival { stream, who, peer } = arrival;
        let source = match self
            .reactor
            .register(Arc::clone(stream.fd()), Interest::READ)
        {
            Ok(source) => source,
            Err(error) => return (self.log)(&format!("nbd: watching {who}: {error}")),
        };
        let deadline_ns = clock::now_ns().saturating_add(limit_ns(&self.limits));
        let deadline = self.reactor.timer_at(deadline_ns);
        let security = match &self.tls {
            None => Security::None,
            Some(tls) if tls.required => Security::Required,
            Some(_) => Security::Offered,
        };
        let (handshake, output) = Handshake::new(security);
        let presence = Presence::new(clock::now_ns());
        let pending = Pending {
            id: self.census.add(peer, Arc::clone(&presence)),
            presence,
            stream,
            who,
            client: Identity {
                user: peer.user(),
                ..Identity::default()
            },
            handshake,
            input: Vec::new(),
            output,
            deadline,
            deadline_ns,
            session: None,
            securing: false,
            named: !self.exports.ask_for_names(),
            leaving: false,
        };
        self.pending.insert(source, pending);
        // As nbdkit's plugin `file`: a client learns the size when it connects.
        self.exports.stack().notice_growth();
        self.write(source);
    }

    fn read(&mut self, source: Source) {
        let Some(pending) = self.pending.get_mut(&source) else { return };
        let mut bytes = [0; READ_BYTES];
        match pending.stream.read(&mut [], &mut bytes) {
            Ok(0) => return self.leave(source, None),
            Ok(count) => {
                pending.presence.note(clock::now_ns(), false);
                pending.input.extend(&bytes[..count]);
            }
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => {
                let why = pending.stream.failure().map(str::to_owned);
                return self.leave(source, why);
            }
        }
        if let Some(Err(why)) = pending.learn_names() {
            return self.leave(source, Some(why));
        }
        let Pending {
            client,
            handshake,
            input,
            output,
            deadline,
            deadline_ns,
            ..
        } = pending;
        let unsent = output.len();
        let step = handshake.advance(input, &self.exports.seen_by(client), output);
        if output.len() > unsent {
            // A client may ask for a thousand exports: the limit is that of each question.
            self.reactor.cancel_timer(*deadline);
            *deadline_ns = clock::now_ns().saturating_add(limit_ns(&self.limits));
            *deadline = self.reactor.timer_at(*deadline_ns);
        }
        match step {
            Step::More if output.len() > UNREAD_BYTES_MAX => {
                self.leave(source, Some("it does not read its replies".to_owned()));
            }
            Step::More => {}
            Step::Leave(Some(why)) => self.leave(source, Some(why)),
            Step::Leave(None) => pending.leaving = true,
            Step::Secure if !input.is_empty() => {
                let why = "it sent unencrypted data after STARTTLS";
                self.leave(source, Some(why.to_owned()));
            }
            Step::Secure => pending.securing = true,
            Step::Start(session) => pending.session = Some(session),
        }
    }

    /// Sends waiting bytes; a handshake that is over ends here.
    fn write(&mut self, source: Source) {
        let Some(pending) = self.pending.get_mut(&source) else { return };
        while !pending.output.is_empty() {
            match pending.stream.send(&pending.output) {
                Ok(sent) => drop(pending.output.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return self.leave(source, None),
            }
        }
        if pending.output.is_empty() && std::mem::take(&mut pending.securing) {
            let secured = self
                .tls
                .as_ref()
                .map(|tls| pending.stream.secure_server(&tls.server));
            if let Some(Err(why)) = secured {
                return self.leave(source, Some(format!("TLS: {why}")));
            }
            pending.handshake.secured();
        }
        match pending.stream.flush() {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return self.leave(source, None),
        }
        let unsent = !pending.output.is_empty() || pending.stream.waits();
        if !unsent {
            if pending.session.is_some() {
                return self.hand_over(source);
            }
            if pending.leaving {
                return self.leave(source, None);
            }
        }
        let reads = pending.session.is_none() && !pending.leaving && !pending.securing;
        let interest = Interest::of(reads, unsent);
        if self.reactor.change(source, interest).is_err() {
            self.leave(source, None);
        }
    }

    /// The transmission phase begins, on the worker with the fewest connections.
    fn hand_over(&mut self, source: Source) {
        let Some(pending) = self.forget(source) else { return };
        let Some(session) = pending.session else { return };
        let workers = self.workers.iter_mut().enumerate();
        let Some((number, worker)) = workers.min_by_key(|(_, it)| it.connections) else { return };
        let admission = Admission {
            id: pending.id,
            presence: pending.presence,
            stream: pending.stream,
            who: pending.who,
            session: *session,
            early: pending.input,
        };
        if worker
            .orders
            .send(Order::Admit(Box::new(admission)))
            .is_ok()
        {
            worker.connections += 1;
            worker.waker.wake();
            self.served.insert(pending.id, number);
        } else {
            self.census.remove(pending.id);
        }
    }

    fn leave(&mut self, source: Source, why: Option<String>) {
        let Some(pending) = self.forget(source) else { return };
        self.census.remove(pending.id);
        if let Some(why) = why {
            let who = pending.who;
            self.complaints
                .say(format_args!("{who} is disconnected: {why}"));
        }
    }

    fn forget(&mut self, source: Source) -> Option<Pending> {
        let pending = self.pending.remove(&source)?;
        self.reactor.cancel_timer(pending.deadline);
        self.reactor.deregister(source);
        Some(pending)
    }
}

/// Warns when other hosts can write.
fn warn_if_open(listening: &Listening, settings: &Settings) {
    let tls = settings.tls.as_ref();
    let known = tls.is_some_and(|tls| tls.required && tls.server.verifies)
        || (!settings.allow.is_empty() && !settings.allow.iter().any(Rule::is_for_any));
    if settings.writable && listening.open_to_others && !known {
        (settings.log)(&format!(
            "warning: any host that reaches {} can write without a password; listen on \
             localhost, or omit --rw",
            listening.uri
        ));
    }
}

/// How clients reach the listeners: with TLS where they have to.
fn uris_of(listeners: &[(Source, Listening)], settings: &Settings) -> Vec<String> {
    let required = settings.tls.as_ref().is_some_and(|tls| tls.required);
    let uri = |listening: &Listening| match listening.uri.strip_prefix("nbd") {
        Some(rest) if required => format!("nbds{rest}"),
        _ => listening.uri.clone(),
    };
    let listeners = listeners.iter();
    listeners.map(|(_, listening)| uri(listening)).collect()
}
