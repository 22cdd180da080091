//! The queue between requests and the flusher: parked requests, and the work of the flusher.
//!
//! A request is parked here until the flusher releases it. No wake-up is lost: a request that waits
//! for room checks the number of dirty buffers again under the lock, and the flusher takes the list
//! after it has made room.

use crate::cache::BackOptions;
use crate::cache::dirty::Dirty;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ugeom_machine::mailbox::Fifo;
use ugeom_machine::mutex::{Condvar, Mutex};
use ugeom_stack::{Bio, BioId, Errno, IoError};

/// The shortest pause between writes that the flusher looks for, ns.
const IDLE_NS_MIN: u64 = 1_000_000;
/// How long it waits after a failure before it tries again by itself; twice as long each time.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// The orders of the flusher.
#[derive(Default)]
pub(super) struct Order {
    /// Requests that wait until everything that is dirty now is below.
    pub drains: Fifo<Bio>,
    /// The last writer leaves; its number.
    pub settle: Option<u64>,
    /// The thread of the flusher ends.
    pub stop: bool,
}

#[derive(Default)]
struct BlockedWriters {
    order: Order,
    /// Requests that wait for a buffer that may become dirty.
    writers: Fifo<Bio>,
    /// How often a settle was asked for, and how far that has come.
    settles: u64,
    settled: u64,
    failed: Option<IoError>,
    /// The flusher is gone.
    deserted: bool,
}

/// Takes one request out of a list.
fn take_out(list: &mut Fifo<Bio>, id: BioId) -> Option<Bio> {
    let (mut kept, mut found) = (Fifo::new(), None);
    while let Some(bio) = list.pop() {
        if bio.id() == id {
            found = Some(bio);
        } else {
            kept.push(bio);
        }
    }
    *list = kept;
    found
}

/// The queue of requests that wait for the flusher, and the state that wakes it.
pub(super) struct BlockedWrites {
    state: Mutex<BlockedWriters>,
    /// The flusher waits here for an order.
    called: Condvar,
    /// Wakes the settling threads.
    answered: Condvar,
    dirty: Arc<Dirty>,
    /// The flusher begins after this long without writes: that often it looks.
    idle: Duration,
    /// How long something is dirty at the most when writes never pause.
    age: Duration,
    /// There were writes since the last time that everything was settled.
    used: AtomicBool,
    /// The last write of a dirty block failed.
    stuck: AtomicBool,
}

/// The flusher's state between two passes.
#[derive(Default)]
pub(super) struct FlushTimer {
    /// Writes that there had been.
    writes: u64,
    /// How long something has been dirty, as far as it knows, and nothing was tried.
    waited: Duration,
    /// How long to wait after the last failure; none when there was none.
    retry: Option<Duration>,
}

impl FlushTimer {
    /// A pass has ended.
    pub fn begin_again(&mut self, failed: bool) {
        let longer = |retry: Duration| (retry * 2).min(RETRY_MAX);
        self.retry = failed.then(|| self.retry.map_or(RETRY, longer));
        self.waited = Duration::ZERO;
    }

    /// After so long a wait, by when there had been so many writes: is it time to write what is
    /// dirty?
    fn is_over(&mut self, waited: Duration, writes: u64, blocked: &BlockedWrites) -> bool {
        self.waited += waited;
        let paused = mem::replace(&mut self.writes, writes) == writes && waited >= blocked.idle;
        match self.retry {
            Some(retry) => self.waited >= retry,
            None => paused || self.waited >= blocked.age,
        }
    }
}

impl BlockedWrites {
    pub fn new(dirty: &Arc<Dirty>, options: &BackOptions) -> Self {
        // A pause of no length is none: there is always something between two writes.
        let idle_ns = options.idle_ns.max(IDLE_NS_MIN);
        Self {
            idle: Duration::from_nanos(idle_ns),
            age: Duration::from_nanos(options.age_ns),
            state: Mutex::default(),
            called: Condvar::new(),
            answered: Condvar::new(),
            dirty: Arc::clone(dirty),
            used: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
        }
    }

    /// From how many dirty buffers on the flusher begins without waiting for a pause.
    fn low_water(&self) -> usize {
        (self.dirty.limit() / 2).max(1)
    }

    /// Something has been written into a block, which was clean when there were `before` dirty
    /// buffers.
    #[inline]
    pub fn written(&self, before: usize) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
            self.call();
        }
        let now = self.dirty.buffers();
        let low = self.low_water();
        if (before == 0 && now > 0) || (before < low && now >= low) {
            self.call();
        }
    }

    /// Wakes the flusher up.
    pub fn call(&self) {
        drop(self.state.lock());
        self.called.notify_one();
    }

    /// True when there may be something to settle.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed) || self.dirty.buffers() > 0
    }

    /// Waiting for room would be in vain: dirty blocks cannot be written.
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Keeps a request until everything that is dirty now is below.
    pub fn drain(&self, bio: Bio) {
        self.state.lock().order.drains.push(bio);
        self.called.notify_one();
    }

    /// Keeps a request until there is room; gives it back when there is already.
    pub fn wait_for_room(&self, bio: Bio) -> Option<Bio> {
        let mut state = self.state.lock();
        if self.dirty.buffers() < self.dirty.limit() || self.is_stuck() {
            return Some(bio);
        }
        state.writers.push(bio);
        drop(state);
        self.called.notify_one();
        None
    }

    /// There may be room: the requests that wait for it try again.
    pub fn let_writers_go(&self) {
        let mut writers = mem::take(&mut self.state.lock().writers);
        while let Some(bio) = writers.pop() {
            bio.resume();
        }
    }

    /// Lets a request go as cancelled, if it waits here.
    pub fn cancel(&self, id: BioId) {
        let mut state = self.state.lock();
        let found = take_out(&mut state.order.drains, id);
        let found = found.or_else(|| take_out(&mut state.writers, id));
        drop(state);
        if let Some(bio) = found {
            bio.fail(Errno::CANCELED, "cancelled while it waited for the flusher");
        }
    }

    /// Waits until everything is below and flushed, or could not be.
    pub fn settle(&self) -> Result<(), IoError> {
        let mut state = self.state.lock();
        state.settles += 1;
        let mine = state.settles;
        state.order.settle = Some(mine);
        self.called.notify_one();
        while state.settled < mine && !state.deserted {
            state = self.answered.wait(state);
        }
        match &state.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The flusher begins to settle: the next write is the first of the next pass.
    pub fn begin_to_settle(&self) {
        self.used.store(false, Ordering::Relaxed);
    }

    /// Reports the result to the settling threads.
    pub fn answer(&self, number: u64, result: Result<(), IoError>) {
        let mut state = self.state.lock();
        state.settled = number;
        state.failed = result.err();
        drop(state);
        self.answered.notify_all();
    }

    /// A pass could not (`stuck`), or could, write its blocks.
    pub fn set_stuck(&self, stuck: bool) {
        self.stuck.store(stuck, Ordering::Relaxed);
        self.let_writers_go();
    }

    /// The flusher is to end.
    pub fn stop(&self) {
        self.state.lock().order.stop = true;
        self.called.notify_one();
    }

    /// The flusher ends: no request waits for it any more.
    pub fn desert(&self) {
        let mut state = self.state.lock();
        state.deserted = true;
        let mut left = mem::take(&mut state.order.drains);
        left.append(&mut state.writers);
        drop(state);
        self.answered.notify_all();
        while let Some(bio) = left.pop() {
            bio.fail(Errno::IO, "the flusher of the cache has ended");
        }
    }

    /// Waits until the flusher has something to do. `writes` says how many writes there have
    /// been; `None` when the cache is gone. `rest` is called when nothing is dirty for a while.
    pub fn wait(
        &self,
        timer: &mut FlushTimer,
        writes: impl Fn() -> Option<u64>,
        mut rest: impl FnMut(),
    ) -> Order {
        let mut state = self.state.lock();
        let mut rested = false;
        loop {
            let urgent = !state.order.drains.is_empty() || !state.writers.is_empty();
            if urgent || state.order.settle.is_some() || state.order.stop {
                return mem::take(&mut state.order);
            }
            let buffers = self.dirty.buffers();
            if buffers == 0 || !self.used.load(Ordering::Relaxed) {
                timer.waited = Duration::ZERO;
                if rested {
                    state = self.called.wait(state);
                    continue;
                }
                let (again, timed_out) = self.called.wait_timeout(state, RETRY);
                drop(again);
                if timed_out {
                    // Dropping this may drop the last reference to the cache, which takes this
                    // lock.
                    rest();
                    rested = true;
                }
                state = self.state.lock();
                continue;
            }
            rested = false;
            if timer.retry.is_none() && buffers >= self.low_water() {
                return Order::default();
            }
            let time = self
                .idle
                .min(self.age)
                .min(timer.retry.unwrap_or(self.idle));
            let begun = Instant::now();
            let (again, _) = self.called.wait_timeout(state, time);
            drop(again);
            let Some(writes) = writes() else {
                return Order {
                    stop: true,
                    ..Order::default()
                };
            };
            if timer.is_over(begun.elapsed(), writes, self) {
                return Order::default();
            }
            state = self.state.lock();
        }
    }
}
