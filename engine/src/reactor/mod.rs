//! The reactor: the wait of a thread for several kinds of events. It waits for completions of
//! engines, for sockets, for timers and for mailboxes, all together.
//!
//! ```text
//!   sockets, listeners   register -> Source -------+
//!   mailboxes, wakers    register (edge) -> Source |    io_uring: polls in a ring, one system
//!   timers               timer_at -> Timer --------+--> wait  call arms them again and sleeps
//!   engines in flight    `also`, at each wait -----+    epoll: one system call sleeps
//! ```
//!
//! The reactor reports readiness and does no I/O: a thread that has just read all that a socket had
//! can answer it with one more system call, without having announced either.
//!
//! **Registered descriptors are kept open** by the reactor until they are removed, so that their
//! numbers cannot come to mean something else. An event that was on its way when its source was
//! removed, or changed, never arrives: sources carry serial numbers that are used once.
//!
//! **Engines and mailboxes of others** come and go without the reactor's knowledge, so their
//! descriptors are lent for one wait only (`also`). With any of them, a wait is poll(2) on these
//! and on the reactor's own descriptor, one more system call; without them the reactor sleeps in
//! its own way. A mailbox that stays for as long as the thread is better registered, with
//! [`Interest::EDGE`]: each post then wakes once, and the descriptor need not be read.
//!
//! A home thread of the stack waits with it like this (`Channel::sleep` of the stack says when):
//!
//! ```text
//!   channel.sleep(timeout, |engines, timeout| reactor.wait(engines, timeout, &mut events))
//! ```

mod epoll;
mod ring;
#[cfg(all(test, not(miri)))]
mod tests;
mod timers;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use ugeom_machine::clock;

pub use timers::Timer;

use crate::choice::EngineError;
use timers::Timers;

/// Lent descriptors that fit beside the reactor's own without an allocation.
const USUAL_ALSO: usize = 7;

/// How a reactor waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// With io_uring where the kernel allows it, else with epoll.
    #[default]
    Auto,
    /// With polls in a ring of io_uring.
    IoUring,
    /// With epoll(7), also where the kernel has io_uring.
    Epoll,
}

/// The events that a source is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) edge: bool,
}

impl Interest {
    /// Nothing: the source stays registered and silent, even when the other side hangs up.
    pub const NONE: Interest = Interest::of(false, false);
    /// There is something to read, or the other side has closed or failed.
    pub const READ: Interest = Interest::of(true, false);
    /// There is room to write, or writing would fail.
    pub const WRITE: Interest = Interest::of(false, true);
    /// Ready for reading, or ready for writing, or both.
    pub const BOTH: Interest = Interest::of(true, true);
    /// Each time that something arrives, once, whether or not it is read: for eventfds, which then
    /// never have to be read.
    pub const EDGE: Interest = Interest {
        read: true,
        write: false,
        edge: true,
    };

    /// Reading, writing, both or nothing, reported for as long as it holds.
    pub const fn of(read: bool, write: bool) -> Interest {
        let edge = false;
        Interest { read, write, edge }
    }

    fn is_none(self) -> bool {
        !self.read && !self.write
    }
}

/// Names a registered descriptor. Never used again after it was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    index: u32,
    serial: u32,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A source is ready. One that has failed, or whose other side is gone, is ready for all that
    /// it is watched for: the next call says what is wrong.
    Ready {
        /// The source, as [`Reactor::register`] has named it.
        source: Source,
        /// Reading would not wait.
        readable: bool,
        /// Writing would not wait.
        writable: bool,
    },
    /// A timer is due. It is gone now.
    Due(Timer),
}

pub(crate) struct Watched {
    fd: Arc<OwnedFd>,
    interest: Interest,
    serial: u32,
}

/// The ways to wait.
enum Back {
    Ring(Box<ring::Ring>),
    Epoll(epoll::Epoll),
}

/// Wakes a reactor from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    fd: Arc<OwnedFd>,
}

impl Waker {
    /// Lets the current or the next wait return with an event of the waker's source.
    pub fn wake(&self) {
        // It fails only when the counter is full: then it has been set and not been seen.
        while rustix::io::write(&self.fd, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }
}

/// Waits for everything that a thread has to wait for. See the head of this file.
pub struct Reactor {
    back: Back,
    watched: Vec<Option<Watched>>,
    serials: u32,
    timers: Timers,
}

impl Reactor {
    /// A reactor that watches nothing.
    ///
    /// # Errors
    /// When io_uring was asked for by name and is refused, or nothing is left to make a descriptor
    /// of.
    pub fn open(waiting: Waiting) -> Result<Reactor, EngineError> {
        let back = match waiting {
            Waiting::IoUring => Back::Ring(Box::new(ring::Ring::open()?)),
            Waiting::Epoll => Back::Epoll(epoll::Epoll::open()?),
            Waiting::Auto => match ring::Ring::open() {
                Ok(ring) => Back::Ring(Box::new(ring)),
                Err(_) => Back::Epoll(epoll::Epoll::open()?),
            },
        };
        Ok(Reactor {
            back,
            watched: Vec::new(),
            serials: 0,
            timers: Timers::default(),
        })
    }

    /// How it waits: `io_uring` or `epoll`.
    pub fn name(&self) -> &'static str {
        match self.back {
            Back::Ring(_) => "io_uring",
            Back::Epoll(_) => "epoll",
        }
    }

    /// Watches a descriptor, which is kept open until it is removed again.
    ///
    /// # Errors
    /// The error of the system: EPERM for regular files with epoll, ENOSPC and ENOMEM when there is
    /// no room.
    pub fn register(&mut self, fd: Arc<OwnedFd>, interest: Interest) -> io::Result<Source> {
        let free = self.watched.iter().position(Option::is_none);
        let index = free.unwrap_or(self.watched.len());
        let number = u32::try_from(index).map_err(|_| Errno::NFILE)?;
        let serial = self.next_serial();
        let source = Source {
            index: number,
            serial,
        };
        self.arm(source, &fd, Interest::NONE, interest)?;
        let watched = Some(Watched {
            fd,
            interest,
            serial,
        });
        match free {
            Some(index) => self.watched[index] = watched,
            None => self.watched.push(watched),
        }
        Ok(source)
    }

    /// Watches a source for something else from now on. Does nothing for one that is gone.
    ///
    /// # Errors
    /// As [`Reactor::register`].
    pub fn change(&mut self, source: Source, interest: Interest) -> io::Result<()> {
        let Some(watched) = self.find(source) else { return Ok(()) };
        if watched.interest == interest {
            return Ok(());
        }
        let (fd, before) = (Arc::clone(&watched.fd), watched.interest);
        self.arm(source, &fd, before, interest)?;
        if let Some(watched) = self.find(source) {
            watched.interest = interest;
        }
        Ok(())
    }

    /// Stops watching a source, and lets go of its descriptor. Events of it that were not handed
    /// out yet never will be. Does nothing for one that is gone.
    pub fn deregister(&mut self, source: Source) {
        let Some(watched) = self.find(source) else { return };
        let (fd, before) = (Arc::clone(&watched.fd), watched.interest);
        // Reports of a source that cannot be removed are ignored: its serial is void.
        let _ = self.arm(source, &fd, before, Interest::NONE);
        self.watched[source.index as usize] = None;
        if let Back::Ring(ring) = &mut self.back {
            ring.forget(source.index);
        }
    }

    /// A waker, and the source under which it is reported.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn waker(&mut self) -> io::Result<(Source, Waker)> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = Arc::new(eventfd(0, flags)?);
        let source = self.register(Arc::clone(&fd), Interest::EDGE)?;
        Ok((source, Waker { fd }))
    }

    /// A timer that is due at `due_ns`, in nanoseconds of [`clock::now_ns`].
    pub fn timer_at(&mut self, due_ns: u64) -> Timer {
        self.timers.add(due_ns)
    }

    /// Takes a timer away. Does nothing for one that was due already.
    pub fn cancel_timer(&mut self, timer: Timer) {
        self.timers.cancel(timer);
    }

    /// Sleeps until a source is ready, a timer is due, a descriptor of `also` is readable (or in
    /// error), or `timeout` has passed; then appends the events to `events`. It may return
    /// without any event, as when a Unix signal arrives. Of `also`, nothing is reported: the caller
    /// that lent them looks for himself.
    ///
    /// # Errors
    /// When the system cannot be asked any more (ENOMEM).
    pub fn wait(
        &mut self,
        also: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        let timeout = self.until_next_timer(timeout);
        let own_timeout = if also.is_empty() || timeout == Some(Duration::ZERO) {
            timeout
        } else {
            if let Back::Ring(ring) = &mut self.back {
                ring.submit()?;
            }
            poll_together(self.wait_fd(), also, timeout)?;
            Some(Duration::ZERO)
        };
        let watched = &self.watched;
        let found = EventSink { watched, events };
        match &mut self.back {
            Back::Ring(ring) => ring.wait(own_timeout, found)?,
            Back::Epoll(epoll) => epoll.wait(own_timeout, found)?,
        }
        if !self.timers.is_empty() {
            self.timers.collect_due(clock::now_ns(), events);
        }
        Ok(())
    }

    /// A descriptor that is readable when a wait would find a source ready: for those who wait for
    /// the whole reactor among other things. Timers do not make it readable.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        match &self.back {
            Back::Ring(ring) => ring.wait_fd(),
            Back::Epoll(epoll) => epoll.wait_fd(),
        }
    }

    /// Hands registrations and changes to the kernel, for those who sleep on
    /// [`Reactor::wait_fd`] without calling [`Reactor::wait`] first.
    ///
    /// # Errors
    /// As [`Reactor::wait`].
    pub fn submit(&mut self) -> io::Result<()> {
        match &mut self.back {
            Back::Ring(ring) => ring.submit(),
            Back::Epoll(_) => Ok(()),
        }
    }

    fn next_serial(&mut self) -> u32 {
        self.serials = self.serials.wrapping_add(1);
        self.serials
    }

    fn find(&mut self, source: Source) -> Option<&mut Watched> {
        let watched = self.watched.get_mut(source.index as usize)?.as_mut()?;
        (watched.serial == source.serial).then_some(watched)
    }

    fn arm(
        &mut self,
        source: Source,
        fd: &Arc<OwnedFd>,
        before: Interest,
        after: Interest,
    ) -> io::Result<()> {
        match &mut self.back {
            Back::Ring(ring) => ring.arm(source, fd.as_fd(), after),
            Back::Epoll(epoll) => epoll.arm(source, fd.as_fd(), before, after),
        }
    }

    fn until_next_timer(&self, timeout: Option<Duration>) -> Option<Duration> {
        let Some(due_ns) = self.timers.next_due_ns() else {
            return timeout;
        };
        let left = Duration::from_nanos(due_ns.saturating_sub(clock::now_ns()));
        Some(timeout.map_or(left, |timeout| timeout.min(left)))
    }
}

/// Where a wait puts its findings.
struct EventSink<'a> {
    watched: &'a [Option<Watched>],
    events: &'a mut Vec<Event>,
}

impl EventSink<'_> {
    /// Reports a source, if it is still there, as far as it is watched for that.
    fn ready(&mut self, source: Source, readable: bool, writable: bool) {
        if let Some((interest, _)) = current(self.watched, source) {
            self.events.push(Event::Ready {
                source,
                readable: interest.read && readable,
                writable: interest.write && writable,
            });
        }
    }
}

/// The interest of a source that is still there, by its slot and serial.
pub(crate) fn current(
    watched: &[Option<Watched>],
    source: Source,
) -> Option<(Interest, BorrowedFd<'_>)> {
    let watched = watched.get(source.index as usize)?.as_ref()?;
    (watched.serial == source.serial).then(|| (watched.interest, watched.fd.as_fd()))
}

/// poll(2) on the reactor's own descriptor and on lent ones.
fn poll_together(
    own: BorrowedFd<'_>,
    also: &[BorrowedFd<'_>],
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map(timespec);
    let entry = |i: usize| {
        let fd = if i == 0 {
            own
        } else {
            also.get(i - 1).copied().unwrap_or(own)
        };
        PollFd::from_borrowed_fd(fd, PollFlags::IN)
    };
    let polled = if also.len() <= USUAL_ALSO {
        let mut few: [PollFd<'_>; USUAL_ALSO + 1] = std::array::from_fn(entry);
        poll(&mut few[..=also.len()], timeout.as_ref())
    } else {
        let mut many: Vec<PollFd<'_>> = (0..=also.len()).map(entry).collect();
        poll(&mut many, timeout.as_ref())
    };
    match polled {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timespec(timeout: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    }
}
