//! Files: a mount with a file for each provider, so that any program can use one.
//!
//! ```text
//!   classic: threads, each with a descriptor      over io_uring: a thread and a ring a core
//!            \                                          /
//!             dispatcher, with a channel of the stack a thread
//!               READ, WRITE, FSYNC       bios
//!               all else                 `files`: names, sizes, lists
//!             desk: opener (opens, closes, tastes), helpers (parts of sectors, holes)
//! ```
//!
//! Reads and writes go past the page cache, in pieces of up to 1 MiB. **What clients see follows
//! GEOM**: a file is its provider held open, for reading or for both, from open(2) on; who is
//! refused gets GEOM's error there. Files come and go with their providers.
//!
//! A server that ends takes the mount away, also when it is in use: descriptors that are still
//! open then fail with ENOTCONN. So they do when the server is killed; the mount is then to be
//! taken away by hand, and the next server on that directory says so.
//!
//! The files: `mount` the mount point; `session` what is agreed on at the start; `files` the
//! directory; `handles` what is open; `dispatch` what is done with a request; `desk` threads for
//! what takes long, `holes` the rarest of it; `link` what a transport has to do, `classic` the one
//! that works everywhere.

mod classic;
mod desk;
mod dispatch;
mod error;
mod files;
mod handles;
mod holes;
mod link;
mod mount;
mod session;

pub use error::FuseError;

use crate::ranges::Ranges;
use classic::{Devices, Worker};
use desk::Desk;
use dispatch::{DEPTH, Dispatcher};
use files::Files;
use handles::Tables;
use mount::{Gone, Mount};
use session::Hello;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use ugeom_engine::reactor::Waker;
use ugeom_format::wire::fuse::{ROOT, Retrieve};
use ugeom_stack::Stack;

/// Where lines for the log go.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// How often threads that sleep in read(2) are woken again until they have ended.
const NUDGE: Duration = Duration::from_millis(5);

/// How to serve files.
#[derive(Clone)]
pub struct Settings {
    /// What to mount on: an empty directory.
    pub directory: PathBuf,
    /// Clients may write.
    pub writable: bool,
    /// Only the provider on top is a file, and not all that there are.
    pub only_top: bool,
    /// Threads of the classic transport, at least 1.
    pub threads: usize,
    /// Locks that servers of the same stack share.
    pub ranges: Ranges,
    /// Where lines for the log go.
    pub log: Log,
    /// Called once when the mount is over without [`Server::stop`]: somebody has taken it away.
    pub ended: Arc<dyn Fn() + Send + Sync>,
}

/// What all threads of a server share.
struct Shared {
    files: Files,
    log: Log,
    /// Handles that are being closed.
    closing: AtomicUsize,
    /// Lines that were said about failed requests.
    complaints: AtomicUsize,
    stopping: AtomicBool,
    over: AtomicBool,
    ended: Arc<dyn Fn() + Send + Sync>,
}

impl Shared {
    fn say(&self, line: &str) {
        (self.log)(&format!("fuse: {line}"));
    }

    /// A worker has ended, because the mount is over or because it was told to.
    fn ended(&self, over: bool) {
        if over && !self.stopping.load(Ordering::Acquire) && !self.over.swap(true, Ordering::AcqRel)
        {
            (self.ended)();
        }
    }
}

/// A server that runs. Dropping it stops it, as [`Server::stop`] does.
pub struct Server {
    shared: Arc<Shared>,
    mount: Mount,
    session: OwnedFd,
    workers: Vec<(JoinHandle<()>, Waker)>,
    desk: Vec<JoinHandle<()>>,
}

impl Server {
    /// Mounts, and serves the providers of `stack` as files from now on; `top` names the one on
    /// top.
    ///
    /// # Errors
    /// See [`FuseError`]; nothing is mounted then.
    pub fn start(stack: &Stack, top: &str, settings: &Settings) -> Result<Self, FuseError> {
        let directory = mount::check(&settings.directory)?;
        let shared = Arc::new(Shared {
            files: Files::new(stack, top, settings),
            log: Arc::clone(&settings.log),
            closing: AtomicUsize::new(0),
            complaints: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            over: AtomicBool::new(false),
            ended: Arc::clone(&settings.ended),
        });
        let (mount, session) = Mount::new(directory, settings.writable)?;
        let hello = Hello::receive(&session)?;
        hello.reply(&session, false)?;
        let tables = (0..settings.threads.max(1)).map(|_| handles::Mine::default());
        let tables: Vec<handles::Mine> = tables.collect();
        let mut server = Self {
            shared,
            mount,
            session,
            workers: Vec::new(),
            desk: Vec::new(),
        };
        // Declared behind the server, which waits for the desk's threads when it is dropped.
        let (desk, threads) = desk::start(&server.shared, Tables::new(tables.clone()))?;
        server.desk = threads;
        for table in tables {
            server.start_worker(table, &desk)?;
        }
        Ok(server)
    }

    fn start_worker(&mut self, table: handles::Mine, desk: &Desk) -> Result<(), FuseError> {
        let shared = &self.shared;
        let devices = Devices::of(&self.session);
        let devices =
            devices.map_err(|error| FuseError::system("opening /dev/fuse again", error))?;
        let devices = Arc::new(devices);
        let channel = shared.files.stack.channel(DEPTH).map_err(|error| {
            let source = std::io::Error::other(error.to_string());
            FuseError::system("making a channel", source)
        })?;
        let to = Arc::clone(&devices);
        let dispatcher = Dispatcher::new(shared, channel, table, desk, to);
        let (worker, waker) = Worker::new(dispatcher, devices, false)?;
        let thread = std::thread::Builder::new()
            .name(format!("ugeom-fuse-{}", self.workers.len()))
            .spawn(move || worker.run())
            .map_err(|source| FuseError::system("starting a thread", source))?;
        self.workers.push((thread, waker));
        Ok(())
    }

    /// The directory that is mounted on.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.mount.directory()
    }

    /// The names of the files, that of the provider on top first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.shared.files.names()
    }

    /// Takes the mount away, answers the requests that were read, flushes what was written, and
    /// ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if self.workers.is_empty() && self.desk.is_empty() {
            return;
        }
        self.shared.stopping.store(true, Ordering::Release);
        if self.mount.take_away() == Gone::InUse {
            let directory = self.mount.directory().display();
            self.shared.say(&format!(
                "{directory} was still in use: what is open there fails from now on"
            ));
        }
        for (worker, waker) in self.workers.drain(..) {
            waker.wake();
            while !worker.is_finished() {
                // A thread in read(2) is woken by the answer to a question. When the mount is
                // over already there is nobody to ask, and nobody who sleeps.
                let question = Retrieve { node: ROOT }.encode();
                let _ = rustix::io::write(&self.session, &question);
                std::thread::sleep(NUDGE);
            }
            if worker.join().is_err() {
                self.shared.say("a thread has ended by a panic (a defect)");
            }
        }
        // Their list ended with the last worker.
        for thread in self.desk.drain(..) {
            if thread.join().is_err() {
                self.shared.say("a thread has ended by a panic (a defect)");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
