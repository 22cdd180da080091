//! [`Cx`]: the state of one thread that moves bios: its pool, lists, timers, statistics and the
//! state that geoms keep for it. Layers see it as the context of a decision.

use crate::bio::pool::Pool;
use crate::bio::slot::{MAX_DEPTH, Stage};
use crate::bio::{Bio, BioId};
use crate::class::{Geom, ThreadState};
use crate::error::Errno;
use crate::home::Home;
use crate::statistics::CounterBlock;
use crate::timers::Timers;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_machine::mailbox::Fifo;

/// Names the state that a geom keeps for each thread. A geom that needs such state makes one key
/// when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalKey(u64);

impl LocalKey {
    /// A key like no other.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for LocalKey {
    fn default() -> Self {
        Self::new()
    }
}

/// The state that one geom keeps for one thread.
struct Local {
    key: LocalKey,
    state: Box<dyn ThreadState>,
}

/// A thread's side of the data path.
pub struct Cx {
    pub(crate) home: Arc<Home>,
    pub(crate) pool: Pool,
    /// Bios that this thread has to move next.
    pub(crate) ready: Fifo<Bio>,
    /// Bios that a layer below had no memory for; tried again when `paced_until_ns` has passed.
    pub(crate) paced: Fifo<Bio>,
    pub(crate) paced_until_ns: u64,
    pub(crate) timers: Timers,
    pub(crate) counters: Arc<CounterBlock>,
    /// Where the request that is on its way down is to be counted, hop by hop. It stands here, and
    /// not in the function that moves one request at a time, so that no request pays for clearing
    /// it.
    pub(crate) passed: [u32; MAX_DEPTH],
    /// Requests left until the next one whose time is taken.
    pub(crate) sample_left: u32,
    pub(crate) random: fastrand::Rng,
    locals: Vec<Local>,
}

/// How long requests wait when a layer below had no memory, as GEOM's `g_down` does, ns.
const PACE_NS: u64 = 1_000_000;

impl Cx {
    pub(crate) fn new(pool: Pool, counters: Arc<CounterBlock>) -> Self {
        Self {
            home: Arc::clone(pool.home()),
            pool,
            ready: Fifo::new(),
            paced: Fifo::new(),
            paced_until_ns: 0,
            timers: Timers::new(),
            counters,
            passed: [0; MAX_DEPTH],
            sample_left: 1,
            random: fastrand::Rng::new(),
            locals: Vec::new(),
        }
    }

    /// This thread's state of a geom, made at first use. A thread has few of them, so a linear
    /// search is the fastest way.
    ///
    /// # Errors
    /// The error of making it, or ENXIO when the geom has no such state.
    pub fn local<T: ThreadState>(&mut self, geom: &impl Geom) -> Result<&mut T, Errno> {
        let key = geom.local_key().ok_or(Errno::NXIO)?;
        let index = match self.locals.iter().position(|local| local.key == key) {
            Some(index) => index,
            None => {
                let state = geom.thread_state()?;
                self.locals.push(Local { key, state });
                self.locals.len() - 1
            }
        };
        self.locals[index]
            .state
            .as_any()
            .downcast_mut()
            .ok_or(Errno::NXIO)
    }

    /// Lets go of state whose geom is gone.
    pub(crate) fn retain_locals(&mut self, lives: impl Fn(LocalKey) -> bool) {
        self.locals
            .retain(|local| local.state.in_flight() > 0 || lives(local.key));
    }

    /// Asks each geom's state for completions; they land in `ready`.
    pub(crate) fn poll_locals(&mut self) {
        for local in &mut self.locals {
            if local.state.in_flight() > 0 {
                local.state.poll(&mut Completions {
                    list: &mut self.ready,
                });
            }
        }
    }

    /// How long a geom's state that holds bios wants to be polled before the thread sleeps, ns.
    pub(crate) fn poll_ns(&self) -> u64 {
        let busy = self.locals.iter().filter(|it| it.state.in_flight() > 0);
        busy.map(|it| it.state.poll_ns()).max().unwrap_or(0)
    }

    /// Puts a bio aside because a layer below had no memory.
    #[cold]
    pub(crate) fn pace(&mut self, bio: Bio) {
        if self.paced.is_empty() {
            self.paced_until_ns = ugeom_machine::clock::now_ns() + PACE_NS;
        }
        self.paced.push(bio);
    }

    /// Moves due requests from the timers and the paced list into `ready`.
    pub(crate) fn collect_due(&mut self) {
        if self.timers.is_empty() && self.paced.is_empty() {
            return;
        }
        let now_ns = ugeom_machine::clock::now_ns();
        while let Some(bio) = self.timers.pop_due(now_ns) {
            self.ready.push(bio);
        }
        if !self.paced.is_empty() && now_ns >= self.paced_until_ns {
            let mut paced = std::mem::take(&mut self.paced);
            self.ready.append(&mut paced);
        }
    }

    /// Takes cancelled bios out of the timers and the paced list and asks the locals for theirs.
    pub(crate) fn collect_cancelled(&mut self, id: BioId) {
        let mut kept = Fifo::new();
        while let Some(bio) = self.paced.pop() {
            if bio.is_cancelled() {
                self.cancel_here(bio);
            } else {
                kept.push(bio);
            }
        }
        self.paced = kept;
        for bio in self.timers.take_cancelled() {
            self.cancel_here(bio);
        }
        for local in &mut self.locals {
            local.state.cancel(id);
        }
    }

    fn cancel_here(&mut self, mut bio: Bio) {
        let stage = bio.body().stage;
        bio.set_result(Err(Errno::CANCELED));
        if stage == Stage::Down {
            // It was about to enter a consumer: the geom above sees it come back.
            bio.body_mut().stage = Stage::Joined;
        }
        self.ready.push(bio);
    }

    /// When this thread has to wake up by itself, in clock nanoseconds; 0 means at once.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        if self
            .locals
            .iter()
            .any(|l| l.state.in_flight() > 0 && l.state.wait_fd().is_none())
        {
            return Some(0);
        }
        let paced = (!self.paced.is_empty()).then_some(self.paced_until_ns);
        match (self.timers.next_due_ns(), paced) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The descriptors that wake this thread up, beside its mailbox.
    pub(crate) fn wait_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.locals
            .iter()
            .filter(|local| local.state.in_flight() > 0)
            .filter_map(|local| local.state.wait_fd())
    }
}

/// Where a [`ThreadState`] puts the bios that are done.
pub struct Completions<'a> {
    list: &'a mut Fifo<Bio>,
}

impl Completions<'_> {
    /// One is done: so many bytes, or an error.
    pub fn push(&mut self, mut bio: Bio, result: Result<u64, Errno>) {
        bio.set_result(result);
        self.list.push(bio);
    }

    /// One is done, and the error has a better explanation than its number.
    pub fn push_failed(&mut self, mut bio: Bio, errno: Errno, reason: &'static str) {
        bio.set_failed(errno, reason);
        self.list.push(bio);
    }

    /// One should be decided again by its geom ([`Geom::resume`]).
    pub fn resume(&mut self, mut bio: Bio) {
        bio.body_mut().stage = Stage::Resume;
        self.list.push(bio);
    }
}
