//! The links of a geom together, and the thread that brings a FLUSH to all of them.
//!
//! ```text
//!   thread 1        thread 2        thread 3                    ugeom-nbd-flush
//!      |               |               | FLUSH, and others have    |
//!      |               |               | writes to be flushed ---->| mailbox
//!    link 1          link 2          link 3                        |
//!      ^               ^                                           |
//!      +---------------+---------- FLUSH over each of them --------+
//! ```
//!
//! A link belongs to a thread, which may be asleep, or busy elsewhere, for as long as it likes. So
//! links are locked, and the thread here sends and receives over those of others while a FLUSH
//! waits for them. Links whose thread has ended stay until the writes over them are durable.
//!
//! A server may declare its connections coherent and admit fewer than there are threads. When it
//! refuses one while another lives, all threads share one link, which the thread here owns: the
//! others finish their requests in flight, are flushed, and leave their connection to it.

use super::Remote;
use super::link::{Link, Outcome};
use super::together::Together;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use ugeom_machine::mailbox::Mailbox;
use ugeom_machine::mutex::Mutex;
use ugeom_machine::own_thread::OwnThread;
use ugeom_stack::{Bio, Command, Errno};

/// A link that several threads can reach.
pub(super) struct SharedLink {
    link: Mutex<Link>,
    /// It has acknowledged writes that no FLUSH has covered.
    unflushed: Arc<AtomicBool>,
    wait: OwnedFd,
    /// Its thread has ended.
    left: AtomicBool,
    /// Its number among the links of the geom.
    number: u64,
}

impl SharedLink {
    pub fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock()
    }

    fn is_unflushed(&self) -> bool {
        self.unflushed.load(Ordering::SeqCst)
    }

    /// Readable when the link has something to do.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.wait.as_fd()
    }
}

/// The links of a geom.
pub(super) struct Links {
    all: Mutex<Vec<Arc<SharedLink>>>,
    mailbox: Mailbox<Bio>,
    stop: AtomicBool,
    /// All threads use one link: the server admits no connection for each.
    shared: AtomicBool,
}

impl Links {
    fn new() -> io::Result<Self> {
        Ok(Self {
            all: Mutex::default(),
            mailbox: Mailbox::new()?,
            stop: AtomicBool::new(false),
            shared: AtomicBool::new(false),
        })
    }

    /// True when all threads use one link.
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::SeqCst)
    }

    /// The server has refused the connection of this link: if it serves another one, all threads
    /// share one from now on.
    pub fn refused(&self, remote: &Remote, own: &Arc<SharedLink>) {
        let others = self.all.lock().clone();
        let mut others = others.iter().filter(|other| !Arc::ptr_eq(other, own));
        let serves = remote.spare.is_kept() || others.any(|other| other.lock().is_connected());
        if !serves || remote.together.is_gone() {
            return;
        }
        if !self.shared.swap(true, Ordering::SeqCst) {
            let server = remote.route.server();
            log::warn!(
                "{server}: the server admits too few connections for one a thread; all threads \
                 share one (connections=1 does so from the start)"
            );
        }
        self.mailbox.wake();
    }

    /// A link for the calling thread.
    pub fn add(&self, remote: &Arc<Remote>) -> Result<Arc<SharedLink>, Errno> {
        let link = Link::new(remote)?;
        let wait = link.wait_fd().try_clone_to_owned();
        let wait = wait.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
        let (unflushed, number) = (Arc::clone(link.unflushed()), link.number);
        let shared = Arc::new(SharedLink {
            link: Mutex::new(link),
            unflushed,
            wait,
            left: AtomicBool::new(false),
            number,
        });
        self.all.lock().push(Arc::clone(&shared));
        Ok(shared)
    }

    /// True when others than `own` have acknowledged writes that no FLUSH has covered.
    pub fn others_are_unflushed(&self, own: &Arc<SharedLink>) -> bool {
        let all = self.all.lock();
        let mut others = all.iter().filter(|other| !Arc::ptr_eq(other, own));
        others.any(|other| other.is_unflushed())
    }

    /// Takes a request for the thread here: a FLUSH completes when it has been answered over all
    /// links that have something to flush, any other goes over the shared link.
    pub fn submit(&self, bio: Bio) {
        self.mailbox.post(bio);
    }

    /// The thread of a link ends.
    pub fn leave(&self, link: &Arc<SharedLink>) {
        link.left.store(true, Ordering::SeqCst);
        if !link.is_unflushed() {
            self.all.lock().retain(|other| !Arc::ptr_eq(other, link));
        }
        self.mailbox.wake();
    }

    /// A FLUSH over some link has been answered, perhaps to its own thread, or a link has something
    /// to give up.
    pub fn answered(&self) {
        self.mailbox.wake();
    }

    /// A link that has a FLUSH to hand out, which has waited for one over another link.
    fn with_released(&self, together: &Together) -> Option<Arc<SharedLink>> {
        let number = together.released_of_others(None)?;
        let all = self.all.lock();
        all.iter().find(|link| link.number == number).cloned()
    }

    fn unflushed(&self) -> Vec<Arc<SharedLink>> {
        let all = self.all.lock();
        let unflushed = all.iter().filter(|link| link.is_unflushed());
        unflushed.cloned().collect()
    }

    /// Forgets links whose thread has ended and that have nothing to flush; names those that have.
    fn left_over(&self) -> Vec<Arc<SharedLink>> {
        let left = |link: &Arc<SharedLink>| link.left.load(Ordering::SeqCst);
        let mut all = self.all.lock();
        all.retain(|link| !left(link) || link.is_unflushed());
        all.iter().filter(|link| left(link)).cloned().collect()
    }

    /// Takes the requests and the connections of all links but the shared one, as far as they can
    /// be taken; names those that have something to flush first.
    fn gather(&self, shared: &Arc<SharedLink>) -> Vec<Arc<SharedLink>> {
        let all = self.all.lock().clone();
        let others = all.into_iter().filter(|link| !Arc::ptr_eq(link, shared));
        others
            .filter(|other| {
                let mut link = other.lock();
                for bio in link.give_up_requests() {
                    self.mailbox.post(bio);
                }
                !link.leave_connection() && !link.is_busy()
            })
            .collect()
    }
}

/// The thread. Dropping it ends it.
pub(super) struct Flusher {
    pub links: Arc<Links>,
    _thread: OwnThread,
}

impl Flusher {
    pub fn start(remote: &Arc<Remote>) -> io::Result<Self> {
        let links = Arc::new(Links::new()?);
        let own = Arc::clone(&links);
        let remote = Arc::clone(remote);
        Ok(Self {
            links,
            _thread: OwnThread::start("ugeom-nbd-flush", move || run(&own, &remote))?,
        })
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.links.stop.store(true, Ordering::SeqCst);
        self.links.mailbox.wake();
    }
}

/// A FLUSH, and the links over which it is not answered yet, each with its number there.
struct Round {
    bio: Option<Bio>,
    left: Vec<(Arc<SharedLink>, u64)>,
}

impl Round {
    fn begin(bio: Option<Bio>, links: Vec<Arc<SharedLink>>) -> Self {
        let ask = |link: Arc<SharedLink>| {
            let number = link.lock().ask_flush();
            (link, number)
        };
        let left = links.into_iter().map(ask).collect();
        Self { bio, left }
    }

    /// Moves requests on. True when it is over.
    fn go_on(&mut self) -> bool {
        self.left.retain(|(link, number)| {
            let mut link = link.lock();
            link.poll(&mut hand_out);
            !link.has_flushed(*number)
        });
        self.left.is_empty()
    }
}

/// Sends a request home that another thread has made.
pub(super) fn hand_out(bio: Bio, outcome: Outcome) {
    match outcome {
        Ok(bytes) => bio.complete(Ok(bytes)),
        Err((errno, why)) => bio.fail(errno, why),
    }
}

fn run(links: &Links, remote: &Arc<Remote>) {
    let mut rounds: Vec<Round> = Vec::new();
    let mut shared: Option<Arc<SharedLink>> = None;
    loop {
        let mut arrived = links.mailbox.take();
        while let Some(bio) = arrived.pop() {
            if bio.command() == Command::Flush {
                let unflushed = links.unflushed();
                // A FLUSH covers writes of other clients, too: where this one has none, the server
                // is asked all the same, over the shared link.
                if !unflushed.is_empty() || !links.is_shared() {
                    rounds.push(Round::begin(Some(bio), unflushed));
                    continue;
                }
            }
            match share(&mut shared, links, remote) {
                Ok(link) => link.lock().submit(bio),
                Err(errno) => bio.fail(errno, "there is no connection to the server"),
            }
        }
        let stop = links.stop.load(Ordering::SeqCst);
        let mut left = if stop { Vec::new() } else { links.left_over() };
        if !stop
            && links.is_shared()
            && let Ok(shared) = share(&mut shared, links, remote)
        {
            left.extend(links.gather(shared));
        }
        begin_new(&mut rounds, left);
        rounds.retain_mut(|round| {
            let over = round.go_on();
            if over && let Some(bio) = round.bio.take() {
                // The loss is recorded, and fails a later FLUSH.
                bio.complete(Ok(0));
            }
            !over
        });
        if let Some(shared) = &shared {
            shared.lock().poll(&mut hand_out);
        }
        while let Some(link) = links.with_released(&remote.together) {
            link.lock().poll(&mut hand_out);
        }
        if stop {
            // No caller waits: the geom is gone.
            return;
        }
        let waiting = rounds.iter().flat_map(|round| &round.left);
        let waiting = waiting.map(|(link, _)| link).chain(&shared);
        let fds: Vec<_> = waiting.map(|link| link.wait_fd()).collect();
        // A failed sleep is a short one; what there is to do is looked for in any case.
        let _ = links.mailbox.park(&fds, None);
    }
}

/// The link that all threads share.
fn share<'a>(
    shared: &'a mut Option<Arc<SharedLink>>,
    links: &Links,
    remote: &Arc<Remote>,
) -> Result<&'a Arc<SharedLink>, Errno> {
    match shared {
        Some(link) => Ok(link),
        none => Ok(none.insert(links.add(remote)?)),
    }
}

/// Flushes those of these links that no round without a request flushes yet.
fn begin_new(rounds: &mut Vec<Round>, mut links: Vec<Arc<SharedLink>>) {
    links.retain(|link| {
        let known = |round: &Round| round.left.iter().any(|(it, _)| Arc::ptr_eq(it, link));
        !rounds.iter().any(known)
    });
    if !links.is_empty() {
        rounds.push(Round::begin(None, links));
    }
}
