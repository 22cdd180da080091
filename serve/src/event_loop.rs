//! The thread of a listening socket that serves a few clients: it accepts them, waits for them and
//! their time limits, and ends when it is told to.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use ugeom_engine::reactor::{Event, Interest, Reactor, Source, Timer, Waiting, Waker};
use ugeom_machine::own_thread::OwnThread;

/// Clients accepted in a row; those that exist get their turn in between.
const ACCEPTS_IN_A_ROW: usize = 16;

/// Pause in accepting when the system has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// The answers to the events of a loop.
pub(crate) trait Handler: Send + 'static {
    /// The name in the log and, behind `ugeom-`, of the thread.
    const NAME: &'static str;

    /// Where the sources and timers of clients are registered.
    fn reactor(&mut self) -> &mut Reactor;

    /// The next client; `WouldBlock` when there is none.
    fn accept(&self) -> io::Result<OwnedFd>;

    /// A new client; an error is about watching it.
    fn begin(&mut self, client: OwnedFd) -> io::Result<()>;

    /// A client can be read from or written to.
    fn serve(&mut self, client: Source);

    fn due(&mut self, timer: Timer);

    /// The last call.
    fn end(&mut self);
}

/// A loop that runs. Dropping it ends the loop.
pub(crate) struct EventLoop {
    waker: Waker,
    _thread: OwnThread,
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        self.waker.wake();
    }
}

impl EventLoop {
    /// Serves the clients of `socket` with what `handler` makes around the reactor.
    ///
    /// # Errors
    /// The system refuses a descriptor or the thread.
    pub fn start<H: Handler>(
        socket: OwnedFd,
        log: &Arc<dyn Fn(&str) + Send + Sync>,
        handler: impl FnOnce(Reactor) -> H,
    ) -> io::Result<Self> {
        let mut reactor = Reactor::open(Waiting::Epoll).map_err(io::Error::other)?;
        let listener = reactor.register(Arc::new(socket), Interest::READ)?;
        let (stop, waker) = reactor.waker()?;
        let (handler, log) = (handler(reactor), Arc::clone(log));
        let run = move || run(handler, listener, stop, &*log);
        Ok(Self {
            waker,
            _thread: OwnThread::start(&format!("ugeom-{}", H::NAME), run)?,
        })
    }
}

fn run<H: Handler>(mut handler: H, listener: Source, stop: Source, log: &dyn Fn(&str)) {
    let mut events = Vec::new();
    let mut stopping = false;
    while !stopping {
        if let Err(error) = handler.reactor().wait(&[], None, &mut events) {
            log(&format!("{}: waiting for clients failed: {error}", H::NAME));
            break;
        }
        for event in events.drain(..) {
            match event {
                Event::Due(timer) => handler.due(timer),
                Event::Ready { source, .. } if source == stop => stopping = true,
                Event::Ready { source, .. } if source == listener => accept(&mut handler, log),
                Event::Ready { source, .. } => handler.serve(source),
            }
        }
    }
    handler.end();
}

fn accept<H: Handler>(handler: &mut H, log: &dyn Fn(&str)) {
    for _ in 0..ACCEPTS_IN_A_ROW {
        match handler.accept() {
            Ok(client) => {
                if let Err(error) = handler.begin(client) {
                    log(&format!("{}: watching a client: {error}", H::NAME));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                log(&format!("{}: accepting a client: {error}", H::NAME));
                // Clients that wait are still there afterwards.
                std::thread::sleep(PAUSE);
                return;
            }
        }
    }
}

/// Errors of accept(2) that are about one client, which is gone.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
    )
}
