//! Read-ahead: a thread of the cache reads the next blocks of sequential readers, so that no reader
//! waits for more than it requested.
//!
//! ```text
//!   reader:  miss, or first use of a block that was read ahead
//!               |  streams: is it sequential? then a window
//!               v
//!   queue:   [ window | window | ... ]  --->  thread:  getnewbuf, READ below, publish
//! ```
//!
//! A block that was read ahead bears a mark until it is used. Its first use is not counted for
//! the policy, as the first use of a block that missed is not: a scan that is read ahead leaves
//! through the small queue like any other. One that goes unused is counted as wasted, and
//! shortens the windows. Errors are dropped: the blocks are not kept, and a reader that
//! needs them reads them itself.

pub mod streams;
#[cfg(test)]
mod tests;

use super::counts::Count;
use super::index::Index;
use super::{Buffer, Cache};
use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, OnceLock, Weak};
use std::{io, thread};
use streams::{Streams, Window};
use ugeom_machine::mutex::{Condvar, Mutex};
use ugeom_stack::{Channel, Lower, Opened};

/// Windows that may wait; further ones are left out, as the thread is slower than the readers.
const WAITING_MAX: usize = 64;
/// The most that is read at once, bytes.
const RUN_BYTES_MAX: u64 = 256 << 10;
/// Reads below at a time.
const DEPTH: usize = 8;

struct State {
    streams: Streams,
    waiting: VecDeque<Window>,
    /// The thread has something below.
    busy: bool,
    /// The cache is going, or its last writer is leaving.
    stopped: bool,
}

/// The queue of windows between readers and the thread that reads ahead.
pub struct WindowQueue {
    state: Mutex<State>,
    /// Signalled when a window was queued, or at the end.
    work: Condvar,
    /// Signalled when the queue is empty and nothing is being read.
    idle: Condvar,
}

impl WindowQueue {
    /// For windows of at most so many blocks.
    pub fn new(most: u64) -> Self {
        Self {
            state: Mutex::new(State {
                streams: Streams::new(most),
                waiting: VecDeque::new(),
                busy: false,
                stopped: false,
            }),
            work: Condvar::new(),
            idle: Condvar::new(),
        }
    }

    fn ask(&self, mut state: MutexGuard<'_, State>, window: Option<Window>) {
        let Some(window) = window else { return };
        if state.waiting.len() < WAITING_MAX && !state.stopped {
            state.waiting.push_back(window);
            drop(state);
            self.work.notify_one();
        }
    }

    /// A request has missed the blocks from `first` to `last`.
    pub(crate) fn missed(&self, first: u64, last: u64) {
        let mut state = self.state.lock();
        let window = state.streams.missed(first, last);
        self.ask(state, window);
    }

    /// A block that was read ahead is used for the first time.
    pub fn used(&self, block: u64) {
        let mut state = self.state.lock();
        let window = state.streams.used(block);
        self.ask(state, window);
    }

    /// A block that was read ahead has gone without being used.
    pub(crate) fn wasted(&self) {
        self.state.lock().streams.wasted(1);
    }

    /// Drops waiting requests, and waits until none is in flight below.
    pub fn settle(&self) {
        let mut state = self.state.lock();
        while state.busy || !state.waiting.is_empty() {
            state.waiting.clear();
            if !state.busy {
                return;
            }
            state = self.idle.wait(state);
        }
    }

    /// Ends the thread after its present work.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.waiting.clear();
        drop(state);
        self.work.notify_all();
    }

    /// Waits until all that waits has been read.
    #[cfg(test)]
    pub fn catch_up(&self) {
        let mut state = self.state.lock();
        while state.busy || !state.waiting.is_empty() {
            state = self.idle.wait(state);
        }
    }

    /// The next window; `None` when the cache is going. Without work, `rest` lets go of the way
    /// down first.
    fn next(&self, mut rest: impl FnMut()) -> Option<Window> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                state.busy = false;
                self.idle.notify_all();
                return None;
            }
            if let Some(window) = state.waiting.pop_front() {
                state.busy = true;
                return Some(window);
            }
            if state.busy {
                drop(state);
                rest();
                state = self.state.lock();
                state.busy = !state.waiting.is_empty();
                if !state.busy {
                    self.idle.notify_all();
                }
                continue;
            }
            state = self.work.wait(state);
        }
    }
}

/// The state of a cache with read-ahead.
pub(super) struct ReadAhead {
    queue: Arc<WindowQueue>,
    lower: Arc<OnceLock<Lower>>,
}

/// The thread's way down, while it needs one.
struct Way {
    channel: Channel,
    consumer: Opened,
}

impl ReadAhead {
    /// For the queue of the store.
    pub fn new(queue: &Arc<WindowQueue>) -> Self {
        Self {
            queue: Arc::clone(queue),
            lower: Arc::default(),
        }
    }

    /// Starts the thread. It holds no more than a weak reference to the cache while it waits.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn begin<I: Index>(&self, cache: &Arc<Cache<I>>) -> io::Result<()> {
        let (queue, lower) = (Arc::clone(&self.queue), Arc::clone(&self.lower));
        let cache = Arc::downgrade(cache);
        let name = thread::Builder::new().name("cache-ahead".into());
        // It ends by itself: with the cache, at the latest after the reads that it has below.
        name.spawn(move || run(&queue, &lower, &cache)).map(drop)
    }

    /// The way to the provider below.
    pub fn attached(&self, lower: Lower) {
        // A geom is attached once.
        let _ = self.lower.set(lower);
    }

    /// Lets go of everything below.
    pub fn settle(&self) {
        self.queue.settle();
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.queue.stop();
    }
}

fn run<I: Index>(queue: &WindowQueue, lower: &OnceLock<Lower>, cache: &Weak<Cache<I>>) {
    let mut way = None;
    loop {
        let Some(window) = queue.next(|| way = None) else { return };
        // While the reference is held, the cache cannot go; the last one may be this.
        let Some(cache) = cache.upgrade() else { return };
        if way.is_none() {
            way = lower.get().and_then(|lower| {
                Some(Way {
                    channel: lower.channel(DEPTH).ok()?,
                    consumer: lower.consumer(0).ok()?,
                })
            });
        }
        if let Some(way) = &mut way {
            read(&cache, way, window);
        }
    }
}

/// Reads the missing blocks of a window, and waits for them.
fn read<I: Index>(cache: &Cache<I>, way: &mut Way, window: Window) {
    let media_blocks = cache.media_blocks();
    let end = window.first.saturating_add(window.count).min(media_blocks);
    let most = (RUN_BYTES_MAX / cache.block_bytes).max(1) as usize;
    let mut runs: Vec<(u64, Vec<u32>)> = Vec::new();
    let mut block = window.first;
    let mut full = false;
    while block < end && !full {
        let (first, mut slots) = (block, Vec::new());
        while block < end && slots.len() < most {
            match cache.store.getnewbuf(block) {
                Buffer::New(slot) => slots.push(slot),
                Buffer::Present => break,
                Buffer::Full => {
                    full = true;
                    break;
                }
            }
            block += 1;
        }
        if slots.is_empty() {
            block += 1;
            continue;
        }
        while way.channel.in_flight() >= DEPTH {
            way.channel.wait(None);
            collect(cache, way, &runs);
        }
        if submit(cache, way, first, &slots, runs.len() as u64) {
            runs.push((first, slots));
            collect(cache, way, &runs);
        } else {
            give_back(cache, first, &slots);
        }
    }
    while way.channel.in_flight() > 0 {
        way.channel.wait(None);
        collect(cache, way, &runs);
    }
}

/// Sends one READ on its way; false when it cannot be.
fn submit<I: Index>(
    cache: &Cache<I>,
    way: &mut Way,
    first: u64,
    slots: &[u32],
    cookie: u64,
) -> bool {
    let last = first + slots.len() as u64 - 1;
    let held = cache.held_bytes(last) as usize;
    let fill = cache.store.slab().fill(slots, held);
    let (Some(fill), Some(draft)) = (fill, way.channel.bio()) else { return false };
    let draft = draft.transfer(false, first * cache.block_bytes, Box::new(fill));
    way.channel.submit(&way.consumer, draft.cookie(cookie));
    true
}

fn give_back<I: Index>(cache: &Cache<I>, first: u64, slots: &[u32]) {
    for (block, slot) in (first..).zip(slots) {
        cache.store.abandon(block, *slot);
    }
}

/// Publishes the blocks that have arrived.
fn collect<I: Index>(cache: &Cache<I>, way: &mut Way, runs: &[(u64, Vec<u32>)]) {
    while let Some(finished) = way.channel.finished() {
        let whole = finished.result() == Ok(finished.length());
        let run = runs.get(finished.cookie() as usize);
        // The buffers are free before a reader finds them.
        way.channel.recycle(finished);
        let Some((first, slots)) = run else { continue };
        if !whole {
            give_back(cache, *first, slots);
            continue;
        }
        cache.store.lanes.add(Count::ReadAhead, slots.len() as u64);
        for (block, slot) in (*first..).zip(slots) {
            cache.store.publish_ahead(block, *slot);
        }
    }
}
