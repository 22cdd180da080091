//! Files: a mount with a file for each provider, so that any program can use one.
//!
//! ```text
//!   classic: threads, each with a descriptor      over io_uring: a thread and a ring a core
//!            \                                          /
//!             dispatcher, with a channel of the stack a thread
//!               READ, WRITE, FSYNC       bios
//!               all else                 `files`: names, sizes, lists
//!        slow path: opener (opens, closes, tastes), helpers (parts of sectors, holes)
//! ```
//!
//! Reads and writes go past the page cache, in pieces of up to 1 MiB. **What clients see follows
//! GEOM**: a file is its provider held open, for reading or for both, from open(2) on; a
//! refused open gets GEOM's error. Files come and go with their providers.
//!
//! A server that ends takes the mount away, also when it is in use: descriptors that are still
//! open then fail with ENOTCONN. When it is killed, a shell that waits for that does the same.
//!
//! The files: `mount` the mount point; `session` what is agreed on at the start; `files` the
//! directory; `handles` what is open; `dispatch` what is done with a request; `slow` threads for
//! what takes long, `holes` the rarest of it; `interrupts` what becomes of requests of the killed;
//! `link` what a transport has to do, `classic` the one that works everywhere, `ring` the one that
//! is fast; `passages` when requests
//! were here, for a trace; `start` begins all threads.

mod classic;
mod dispatch;
mod error;
mod files;
mod handles;
mod holes;
mod interrupts;
mod link;
mod mount;
mod passages;
mod ring;
mod session;
mod slow;
mod start;
#[cfg(test)]
mod tests;

pub use error::FuseError;
pub use passages::{Passage, Passages};
pub use start::Used;

use crate::ranges::Ranges;
use crate::shown::Shown;
use files::Files;
use handles::Tables;
use interrupts::Interrupts;
use mount::{Gone, Mount};
use session::Hello;
use start::{Hand, Start};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use ugeom_machine::{clock, interrupt};
use ugeom_stack::{Channel, Stack};

/// How kernel and server are to talk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Over io_uring where the kernel offers it, else over the classic channel.
    #[default]
    Auto,
    /// Over the classic channel: `/dev/fuse`.
    Classic,
    /// Requests come through io_uring (IORING_OP_URING_CMD).
    Ring,
}

/// A channel of the stack for `depth` bios at a time.
fn new_channel(shared: &Shared, depth: usize) -> Result<Channel, FuseError> {
    let channel = shared.files.stack.channel(depth);
    channel
        .map_err(|error| FuseError::system("making a channel", io::Error::other(error.to_string())))
}

/// Where lines for the log go.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Time between two questions of LOOKUPs whether media have grown, at least, ns.
const GROWTH_NS: u64 = 500_000_000;

/// How often threads that sleep in read(2) are nudged until they have ended.
const NUDGE: Duration = Duration::from_millis(5);

/// How to serve files.
#[derive(Clone)]
pub struct Settings {
    /// The mount point: an empty directory.
    pub directory: PathBuf,
    /// Whether the files may be opened for writing, but for those that are shown read-only.
    pub writable: bool,
    /// Other users may use the mount, too, as far as the permissions of files go.
    pub allow_other: bool,
    /// How kernel and server are to talk.
    pub transport: Transport,
    /// Threads of the classic transport, at least 1.
    pub threads: usize,
    /// Locks that servers of the same stack share.
    pub ranges: Ranges,
    /// Where lines for the log go.
    pub log: Log,
    /// Called once when the mount is over without [`Server::stop`]: it was unmounted from outside.
    pub ended: Arc<dyn Fn() + Send + Sync>,
}

/// State shared by all threads of a server.
struct Shared {
    files: Files,
    log: Log,
    /// Handles that are being closed.
    closing: AtomicUsize,
    /// When a LOOKUP last asked whether media have grown.
    asked_ns: AtomicU64,
    /// Lines that were said about failed requests.
    complaints: AtomicUsize,
    interrupts: Interrupts,
    passages: Arc<Passages>,
    stopping: AtomicBool,
    over: AtomicBool,
    ended: Arc<dyn Fn() + Send + Sync>,
}

impl Shared {
    fn say(&self, line: &str) {
        (self.log)(&format!("fuse: {line}"));
    }

    /// True when a LOOKUP is to ask whether media have grown.
    fn is_growth_due(&self) -> bool {
        let (now_ns, last_ns) = (clock::now_ns(), self.asked_ns.load(Ordering::Relaxed));
        let taken = || {
            let (new, old) = (Ordering::Relaxed, Ordering::Relaxed);
            let swapped = self.asked_ns.compare_exchange(last_ns, now_ns, new, old);
            swapped.is_ok()
        };
        now_ns.saturating_sub(last_ns) >= GROWTH_NS && taken()
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
    session: Arc<OwnedFd>,
    used: Used,
    workers: Vec<Hand>,
    slow: Vec<JoinHandle<()>>,
}

impl Server {
    /// Mounts, and serves the providers of `stack` that are `shown` as files from now on.
    ///
    /// # Errors
    /// See [`FuseError`]; nothing is mounted then.
    pub fn start(stack: &Stack, shown: &Shown, settings: &Settings) -> Result<Self, FuseError> {
        match Self::start_with(stack, shown, settings) {
            // Features agreed on with the kernel stay for this mount, but a new mount can be made.
            Err(FuseError::Transport(why)) if settings.transport == Transport::Auto => {
                let classic = Settings {
                    transport: Transport::Classic,
                    ..settings.clone()
                };
                let mut server = Self::start_with(stack, shown, &classic)?;
                server.used.why = Some(why);
                Ok(server)
            }
            started => started,
        }
    }

    fn start_with(stack: &Stack, shown: &Shown, settings: &Settings) -> Result<Self, FuseError> {
        let directory = mount::check(&settings.directory)?;
        let shared = Arc::new(Shared {
            files: Files::new(stack, shown, settings),
            log: Arc::clone(&settings.log),
            closing: AtomicUsize::new(0),
            asked_ns: AtomicU64::new(0),
            complaints: AtomicUsize::new(0),
            interrupts: Interrupts::default(),
            passages: Arc::default(),
            stopping: AtomicBool::new(false),
            over: AtomicBool::new(false),
            ended: Arc::clone(&settings.ended),
        });
        let (mount, session) = Mount::new(directory, settings.writable, settings.allow_other)?;
        let session = Arc::new(session);
        if let Some(number) = mount.connection() {
            shared.passages.of_connection(number);
        }
        let hello = Hello::receive(&session)?;
        let queues = ring::queues(settings.transport, hello.offers_ring())?;
        let threads = if queues == 0 {
            settings.threads.max(1)
        } else {
            1
        };
        let tables = (0..queues + threads).map(|_| handles::Mine::default());
        let mut tables: Vec<handles::Mine> = tables.collect();
        let mut server = Self {
            shared,
            mount,
            session,
            used: Used::new(settings.transport, queues, threads),
            workers: Vec::new(),
            slow: Vec::new(),
        };
        // Declared behind the server, which waits for the slow path's threads when it is dropped.
        let (slow, helpers) = slow::start(&server.shared, Tables::new(tables.clone()))?;
        server.slow = helpers;
        let start = Start {
            shared: &server.shared,
            session: &server.session,
            slow: &slow,
        };
        let for_threads = tables.split_off(queues);
        let waiting = start.queues(tables, &mut server.workers)?;
        hello.reply(&server.session, queues > 0)?;
        waiting.go()?;
        for table in for_threads {
            server.workers.push(start.thread(table, queues > 0)?);
        }
        Ok(server)
    }

    /// How kernel and server talk, and why so.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// When requests were in this server.
    pub fn passages(&self) -> Arc<Passages> {
        Arc::clone(&self.shared.passages)
    }

    /// The directory that is mounted on.
    pub fn directory(&self) -> &Path {
        self.mount.directory()
    }

    /// The names of the files, that of the provider on top first.
    pub fn names(&self) -> Vec<String> {
        self.shared.files.names()
    }

    /// Takes the mount away, answers the requests that were read, flushes the writes, and
    /// ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if self.workers.is_empty() && self.slow.is_empty() {
            return;
        }
        self.shared.stopping.store(true, Ordering::Release);
        if self.mount.take_away() == Gone::InUse {
            let directory = self.mount.directory().display();
            self.shared.say(&format!(
                "{directory} was still in use: open files fail from now on"
            ));
        }
        for hand in self.workers.drain(..) {
            (hand.wake)();
            while hand.reads && !hand.thread.is_finished() {
                // It may not have been in read(2) yet: then the next one finds it there.
                interrupt::nudge(&hand.thread);
                std::thread::sleep(NUDGE);
            }
            if hand.thread.join().is_err() {
                self.shared.say("a thread has ended by a panic (a defect)");
            }
        }
        // Their list ended with the last worker.
        for thread in self.slow.drain(..) {
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
