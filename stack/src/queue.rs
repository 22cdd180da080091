//! Queued dispatch: `g_down` and `g_up`, GEOM's two threads.
//!
//! Every hop down is one turn of `g_down`, every hop up one turn of `g_up`, first in, first out,
//! each with a mailbox that wakes its thread only when it is parked (GEOM: when its queue was
//! empty). The caller's thread only submits and collects.

use crate::bio::pool::Pool;
use crate::bio::slot::Stage;
use crate::bio::{Bio, BioId};
use crate::cx::Cx;
use crate::drive::{self, Step};
use crate::error::Errno;
use crate::home::Home;
use crate::park;
use crate::snapshot::Snapshot;
use crate::stack::Shared;
use crate::statistics::Level;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use ugeom_machine::own_thread::OwnThread;

/// The two threads of a stack with queued dispatch.
pub(crate) struct Queues {
    pub down: Arc<Home>,
    pub up: Arc<Home>,
    /// Joined after [`Drop::drop`]. A panic there ends the process (see [`Worker::run`]).
    threads: Vec<OwnThread>,
}

impl Queues {
    /// Starts both; `spin_ns` is how long they spin before they park.
    pub(crate) fn start(shared: &Arc<Shared>, spin_ns: u64) -> std::io::Result<Self> {
        let down = Home::new(spin_ns, None)?;
        let up = Home::new(spin_ns, None)?;
        // Whole before the first thread: dropping it stops those that were started.
        let mut queues = Self {
            down,
            up,
            threads: Vec::new(),
        };
        for (name, home) in [
            ("g_down", Arc::clone(&queues.down)),
            ("g_up", Arc::clone(&queues.up)),
        ] {
            let worker = Worker::new(home, shared);
            let body = move || worker.run();
            queues.threads.push(OwnThread::start(name, body)?);
        }
        Ok(queues)
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        for home in [&self.down, &self.up] {
            home.stop.store(true, Ordering::Release);
            home.mailbox.wake();
        }
    }
}

/// Ends the process when a queue thread panics: its bios would never complete, and their callers
/// would wait for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

struct Worker {
    cx: Cx,
    shared: Weak<Shared>,
    snapshot: Option<Arc<Snapshot>>,
}

impl Worker {
    fn new(home: Arc<Home>, shared: &Arc<Shared>) -> Self {
        let pool = Pool::new(home, shared.pool.as_ref());
        Self {
            cx: Cx::new(pool, crate::statistics::new_block(0)),
            shared: Arc::downgrade(shared),
            snapshot: None,
        }
    }

    fn run(mut self) {
        let _guard = AbortOnPanic;
        loop {
            self.cx.ready.append(&mut self.cx.home.mailbox.take());
            for id in self.cx.home.cancelled() {
                self.cancel(id);
            }
            self.cx.poll_locals();
            self.cx.collect_due();
            if self.cx.ready.is_empty() {
                if self.cx.home.stop.load(Ordering::Acquire) {
                    break;
                }
                // An old generation must not live on because this thread sleeps.
                self.snapshot = None;
                park::park(&self.cx, None);
                continue;
            }
            while let Some(bio) = self.cx.ready.pop() {
                self.turn(bio);
            }
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.leave_statistics(&self.cx.counters);
        }
    }

    /// Looks for a cancelled bio. Bios that this thread has started are with their geom by now,
    /// which the caller may have asked too early; those that still wait in a queue are met as
    /// cancelled later.
    fn cancel(&mut self, id: BioId) {
        self.cx.collect_cancelled(id);
        if let Some(shared) = self.shared.upgrade() {
            for snapshot in shared.topology.live() {
                snapshot.cancel(id);
            }
        }
    }

    /// The snapshot that the bio was submitted under.
    fn snapshot_for(&mut self, bio: &Bio) -> Option<Arc<Snapshot>> {
        let generation = bio.body().generation;
        if let Some(snapshot) = &self.snapshot
            && snapshot.generation == generation
        {
            return Some(Arc::clone(snapshot));
        }
        let shared = self.shared.upgrade()?;
        let snapshot = shared.topology.of(generation)?;
        shared.grow_statistics(&mut self.cx.counters, snapshot.stats_wanted);
        self.cx
            .retain_locals(|key| snapshot.local_keys.contains(&key));
        self.snapshot = Some(Arc::clone(&snapshot));
        Some(snapshot)
    }

    fn turn(&mut self, bio: Bio) {
        // Without a snapshot its home is gone, and so is every client that could ask for it.
        let Some(snapshot) = self.snapshot_for(&bio) else { return };
        (snapshot.go_on)(&snapshot, &mut self.cx, bio);
    }
}

/// How a caller's request starts: in the queue of `g_down`.
pub(crate) fn submit(_snapshot: &Snapshot, _cx: &mut Cx, bio: Bio) -> Option<Bio> {
    let down = Arc::clone(bio.body().home.downward());
    bio.post_to(&down);
    None
}

/// Moves a bio by one hop if that is this thread's to do, and into the next queue.
pub(crate) fn turn<L: Level>(snapshot: &Snapshot, cx: &mut Cx, mut bio: Bio) -> Option<Bio> {
    if bio.body().stage == Stage::Down && bio.is_cancelled() {
        bio.set_failed(Errno::CANCELED, "cancelled on its way down");
        // The geom that sent it here, if any, sees it come back.
        bio.body_mut().stage = Stage::Joined;
    }
    let here = |towards: &Arc<Home>| Arc::ptr_eq(towards, &cx.home);
    let down = here(bio.body().home.downward());
    let up = here(bio.body().home.upward());
    let moved = match drive::first_step(snapshot, &mut bio) {
        Step::Down(edge) if down => drive::enter::<L>(snapshot, cx, bio, edge),
        Step::Resume if down => drive::resume(snapshot, cx, bio),
        Step::Up(unseen) if up => drive::leave::<L>(snapshot, cx, bio, unseen),
        step => Some((bio, step)),
    };
    let (bio, step) = moved?;
    pass_on(cx, bio, step)
}

/// Puts a bio into the queue that its next step belongs to; the end of this thread's own queue
/// when that is here.
fn pass_on(cx: &mut Cx, mut bio: Bio, step: Step) -> Option<Bio> {
    let body = bio.body_mut();
    let towards = match step {
        Step::Down(edge) => {
            body.stage = Stage::Down;
            body.edge = edge;
            Arc::clone(body.home.downward())
        }
        Step::Resume => {
            body.stage = Stage::Resume;
            Arc::clone(body.home.downward())
        }
        Step::Up(unseen) => {
            body.stage = if unseen { Stage::Joined } else { Stage::Up };
            Arc::clone(body.home.upward())
        }
        Step::Home => {
            body.stage = Stage::Deliver;
            if Arc::ptr_eq(&body.home, &cx.home) {
                return drive::deliver(cx, bio);
            }
            Arc::clone(&body.home)
        }
    };
    if Arc::ptr_eq(&towards, &cx.home) {
        cx.ready.push(bio);
    } else {
        bio.post_to(&towards);
    }
    None
}
