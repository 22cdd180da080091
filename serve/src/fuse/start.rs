//! How kernel and server talk, and the start of the threads that do.

use super::classic::{Devices, Worker};
use super::dispatch::{DEPTH, Dispatcher};
use super::error::FuseError;
use super::handles::Mine;
use super::link::Responder;
use super::ring::{Inbox, Queue, why_not_offered};
use super::slow::SlowPath;
use super::{Shared, Transport, new_channel};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use ugeom_machine::{cpu, interrupt};

/// How kernel and server talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The one of the two that it is.
    pub transport: Transport,
    /// How many threads there are; over io_uring these are the queues.
    pub threads: usize,
    /// Why not the other one, when that would be faster and was not excluded.
    pub why: Option<String>,
}

impl Used {
    pub(super) fn new(wanted: Transport, queues: usize, threads: usize) -> Self {
        if queues > 0 {
            return Self {
                transport: Transport::Ring,
                threads: queues,
                why: None,
            };
        }
        Self {
            transport: Transport::Classic,
            threads,
            why: (wanted == Transport::Auto).then(why_not_offered),
        }
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads;
        match self.transport {
            Transport::Ring => write!(f, "FUSE over io_uring, {threads} queues"),
            _ => write!(f, "FUSE over its classic channel, {threads} threads"),
        }?;
        match &self.why {
            Some(why) => write!(f, " ({why})"),
            None => Ok(()),
        }
    }
}

/// A thread that serves.
pub(super) struct Hand {
    pub thread: JoinHandle<()>,
    /// Lets it look whether it is to end.
    pub wake: Box<dyn Fn() + Send + Sync>,
    /// It sleeps in read(2), where that does not wake it.
    pub reads: bool,
}

/// The parameters of new threads.
pub(super) struct Start<'a> {
    pub shared: &'a Arc<Shared>,
    pub session: &'a Arc<OwnedFd>,
    pub slow: &'a SlowPath,
}

/// Threads of queues that have their rings and wait until kernel and server have agreed.
pub(super) struct Waiting {
    go: Vec<Sender<()>>,
    news: Receiver<Result<(), FuseError>>,
}

impl Waiting {
    /// Lets the threads begin; returns when each has reported.
    ///
    /// # Errors
    /// The kernel has refused a queue.
    pub fn go(self) -> Result<(), FuseError> {
        for go in &self.go {
            // One that is gone has said why, which is read next.
            let _ = go.send(());
        }
        self.hear()
    }

    /// One word of each thread.
    fn hear(&self) -> Result<(), FuseError> {
        for _ in &self.go {
            let gone = || FuseError::Transport("a thread has ended by a panic".to_owned());
            self.news.recv().map_err(|_| gone())??;
        }
        Ok(())
    }
}

impl Start<'_> {
    /// Starts the threads of the queues, as many as there are tables.
    pub fn queues(&self, tables: Vec<Mine>, into: &mut Vec<Hand>) -> Result<Waiting, FuseError> {
        let (tell, news) = channel();
        let mut waiting = Waiting {
            go: Vec::new(),
            news,
        };
        for (number, table) in tables.into_iter().enumerate() {
            let inbox = Arc::new(Inbox::new()?);
            let to = Arc::clone(&inbox);
            let dispatcher = self.dispatcher(table, to)?;
            let (device, tell) = (Arc::clone(self.session), tell.clone());
            let (go, begin) = channel();
            let theirs = Arc::clone(&inbox);
            let thread = std::thread::Builder::new().name(format!("ugeom-fuse-q{number}"));
            let thread = thread.spawn(move || {
                // A core that is not there, or not for us, has a queue, too, served elsewhere.
                let _ = cpu::pin(&[number]);
                let made = Queue::new(dispatcher, theirs, device, number as u16);
                serve(made, &tell, &begin);
            });
            let thread = thread.map_err(starting)?;
            into.push(Hand {
                thread,
                wake: Box::new(move || inbox.wake()),
                reads: false,
            });
            waiting.go.push(go);
        }
        waiting.hear()?;
        Ok(waiting)
    }

    /// Starts a thread of the classic transport.
    pub fn thread(&self, table: Mine, beside: bool) -> Result<Hand, FuseError> {
        let devices = Devices::of(self.session);
        let devices =
            devices.map_err(|error| FuseError::system("opening /dev/fuse again", error))?;
        let devices = Arc::new(devices);
        let to = Arc::clone(&devices);
        let dispatcher = self.dispatcher(table, to)?;
        if !beside {
            let allowed = interrupt::allow_nudges();
            allowed.map_err(|error| FuseError::system("preparing a thread", error))?;
        }
        let (worker, waker) = Worker::new(dispatcher, devices, beside)?;
        let thread = std::thread::Builder::new().name("ugeom-fuse".to_owned());
        Ok(Hand {
            thread: thread.spawn(move || worker.run()).map_err(starting)?,
            wake: Box::new(move || waker.wake()),
            reads: !beside,
        })
    }

    fn dispatcher(&self, table: Mine, to: Arc<dyn Responder>) -> Result<Dispatcher, FuseError> {
        let channel = new_channel(self.shared, DEPTH)?;
        let wake = channel.wake_fd();
        let wake = wake.map_err(|error| FuseError::system("preparing a thread", error))?;
        let interrupted = self.shared.interrupts.listen(wake);
        Ok(Dispatcher::new(
            self.shared,
            channel,
            table,
            self.slow,
            to,
            interrupted,
        ))
    }
}

/// The life of a queue's thread.
fn serve(made: Result<Queue, FuseError>, tell: &Sender<Result<(), FuseError>>, go: &Receiver<()>) {
    // The receiver is gone when the start has failed elsewhere; then there is no "go" either.
    let mut queue = match made {
        Ok(queue) => queue,
        Err(error) => return drop(tell.send(Err(error))),
    };
    let _ = tell.send(Ok(()));
    if go.recv().is_err() {
        return;
    }
    let registered = queue.register();
    let serves = registered.is_ok();
    let _ = tell.send(registered);
    if serves {
        queue.run();
    }
}

fn starting(source: io::Error) -> FuseError {
    FuseError::system("starting a thread", source)
}
