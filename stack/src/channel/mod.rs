//! [`Channel`]: a thread's way into a stack: submit bios, collect them when they complete.
//!
//! A channel belongs to one thread at a time and shares nothing with others on the data path but
//! the generation of the topology, which is read once a request. Finished bios wait in the
//! channel's own list until the caller takes them: completions are never nested in submissions.

mod sync;

use crate::bio::pool::Pool;
use crate::bio::slot::{Body, Stage};
use crate::bio::{Bio, BioId, Command, Draft, Finished, Flags};
use crate::cx::Cx;
use crate::error::{Errno, IoError, StackError};
use crate::opened::Opened;
use crate::park;
use crate::snapshot::Snapshot;
use crate::stack::Shared;
use crate::statistics::{self, new_block};
use std::os::fd::BorrowedFd;
#[cfg(not(any(loom, miri)))]
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use ugeom_machine::clock;
use ugeom_machine::mailbox::Fifo;

/// True for a barrier. GEOM flags every FLUSH as one.
#[inline(always)]
fn is_ordered(body: &Body) -> bool {
    body.flags.contains(Flags::ORDERED) || body.command == Command::Flush
}

/// Drops the memory that a bio carries.
#[inline(always)]
fn clear(bio: &mut Bio) {
    let body = bio.body_mut();
    if !matches!(body.payload, crate::bio::Payload::None) {
        body.payload = crate::bio::Payload::None;
    }
    body.asked = 0;
}

/// A thread's way into a stack.
///
/// Aligned to two cache lines (processors fetch pairs), so that channels of two threads that lie
/// side by side in memory do not slow each other down.
#[repr(align(128))]
pub struct Channel {
    shared: Arc<Shared>,
    cx: Cx,
    snapshot: Arc<Snapshot>,
    /// Older generations that still have bios in flight, and how many.
    retired: Vec<(Arc<Snapshot>, usize)>,
    /// Bios in flight under the current snapshot.
    in_flight_now: usize,
    /// Bios in flight under any.
    under_way: usize,
    finished: Fifo<Bio>,
    finished_count: usize,
    /// Bios that wait for a barrier, in order.
    held: Fifo<Bio>,
    held_count: usize,
    /// An ORDERED bio is in flight, or the first of `held` waits to be.
    barrier: bool,
    depth: usize,
    tasting: bool,
}

impl Channel {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        depth: usize,
        tasting: bool,
    ) -> Result<Self, StackError> {
        let pool = Pool::new(shared.new_home()?, shared.pool.as_ref());
        let snapshot = shared.refresh(tasting);
        let mut channel = Self {
            shared: Arc::clone(shared),
            cx: Cx::new(pool, new_block(0)),
            snapshot,
            retired: Vec::new(),
            in_flight_now: 0,
            under_way: 0,
            finished: Fifo::new(),
            finished_count: 0,
            held: Fifo::new(),
            held_count: 0,
            barrier: false,
            depth: depth.max(1),
            tasting,
        };
        channel.settle();
        Ok(channel)
    }

    /// A bio to fill in; `None` while the channel's depth is out already.
    #[inline]
    pub fn bio(&mut self) -> Option<Draft> {
        if self.under_way + self.finished_count >= self.depth {
            self.collect_strays();
            if self.under_way + self.finished_count >= self.depth {
                return None;
            }
        }
        Some(Draft::new(self.cx.pool.take()))
    }

    /// How many bios are in flight.
    pub fn in_flight(&self) -> usize {
        self.under_way
    }

    /// Sends a bio to an opened provider. Collect it with [`Channel::finished`], perhaps at once.
    ///
    /// # Panics
    /// When the draft is another channel's: it would return there, and never here.
    #[inline]
    pub fn submit(&mut self, opened: &Opened, draft: Draft) -> BioId {
        let (id, home) = self.send(opened, draft);
        if let Some(bio) = home {
            self.keep_finished(bio);
        }
        id
    }

    /// The same, for callers that go on at once with a bio that completes at once: it is given
    /// back here, and [`Channel::finished`] does not give it again. `None` when it is in flight.
    ///
    /// # Panics
    /// As [`Channel::submit`].
    #[inline]
    pub fn submit_or_finish(&mut self, opened: &Opened, draft: Draft) -> Option<Finished> {
        self.send(opened, draft).1.map(Finished::new)
    }

    /// Sends a bio; its id, and the bio when it completed at once.
    #[inline(always)]
    fn send(&mut self, opened: &Opened, draft: Draft) -> (BioId, Option<Bio>) {
        assert!(
            self.owns(&draft.bio),
            "a draft is submitted to the channel that made it"
        );
        self.keep_up();
        let ordered = is_ordered(draft.bio.body());
        let (id, bio) = self.prepare(opened, draft.bio, ordered);
        (id, bio.and_then(|bio| self.launch(bio)))
    }

    /// Looks for a newer topology.
    #[inline(always)]
    fn keep_up(&mut self) {
        if self.shared.topology.number() != self.snapshot.generation {
            self.refresh();
        }
    }

    /// True when the bio returns to this channel.
    #[inline(always)]
    fn owns(&self, bio: &Bio) -> bool {
        Arc::ptr_eq(&bio.body().home, &self.cx.home)
    }

    /// Makes a bio ready to go; `None` beside its id when it has to wait for a barrier. `ordered`
    /// says whether it is one itself.
    #[inline(always)]
    fn prepare(&mut self, opened: &Opened, mut bio: Bio, ordered: bool) -> (BioId, Option<Bio>) {
        bio.begin();
        // A handle of another stack has no entry here, whatever its number.
        let known = opened.is_of(&self.shared);
        let number = if known { opened.entry } else { u32::MAX };
        let entry = self.snapshot.entries.get(number as usize);
        let body = bio.body_mut();
        body.edge = entry.copied().unwrap_or(u32::MAX);
        body.entry = number;
        body.rearm();
        body.stage = Stage::Down;
        body.generation = self.snapshot.generation;
        if self.snapshot.sample_one_in != 0 {
            statistics::choose(&mut self.cx, self.snapshot.sample_one_in, body);
        }
        let id = bio.id();
        let others = self.under_way > self.held_count;
        if self.barrier || (ordered && others) || !self.cx.paced.is_empty() {
            bio.body_mut().lost_mark = opened.mark.get();
            self.hold(bio);
            return (id, None);
        }
        if ordered {
            bio.body_mut().lost_mark = opened.mark.get();
            self.barrier = true;
        }
        (id, Some(bio))
    }

    /// Keeps a bio back until the barrier lifts.
    #[cold]
    #[inline(never)]
    fn hold(&mut self, bio: Bio) {
        self.under_way += 1;
        self.barrier = true;
        self.held.push(bio);
        self.held_count += 1;
    }

    /// Starts a prepared bio; gives it back when it completed at once.
    ///
    /// A bio that completes at once is not counted as in flight.
    #[inline(always)]
    fn launch(&mut self, bio: Bio) -> Option<Bio> {
        let home = (self.snapshot.enter)(&self.snapshot, &mut self.cx, bio);
        if home.is_some() && !self.barrier && self.cx.ready.is_empty() {
            return home;
        }
        self.launched(home)
    }

    /// The remaining work after a start, if any.
    #[inline(never)]
    fn launched(&mut self, home: Option<Bio>) -> Option<Bio> {
        self.in_flight_now += 1;
        self.under_way += 1;
        if !self.cx.ready.is_empty() {
            self.work();
        }
        if home.is_some() {
            self.in_flight_now -= 1;
            self.under_way -= 1;
            if self.barrier {
                self.lift_barrier();
                self.work();
            }
        }
        home
    }

    /// Takes a bio that has completed, if there is one.
    #[inline]
    pub fn finished(&mut self) -> Option<Finished> {
        let bio = self.finished.pop()?;
        self.finished_count -= 1;
        Some(Finished::new(bio))
    }

    /// Gives a finished bio (and its memory) back to the pool. Dropping it does the same, slower.
    #[inline(always)]
    pub fn recycle(&mut self, finished: Finished) {
        if self.cx.pool.is_own(&finished.bio) {
            let mut bio = finished.bio;
            clear(&mut bio);
            self.cx.pool.put_own(bio);
        } else if self.owns(&finished.bio) {
            self.free(finished.bio);
        }
        // Another channel's finds its way home when it is dropped.
    }

    #[cold]
    fn free(&mut self, mut bio: Bio) {
        clear(&mut bio);
        self.cx.pool.put(bio);
    }

    fn keep_finished(&mut self, bio: Bio) {
        self.finished.push(bio);
        self.finished_count += 1;
    }

    /// Moves everything that can be moved, without waiting. Returns how many finished bios wait
    /// to be taken.
    pub fn poll(&mut self) -> usize {
        self.keep_up();
        self.collect_strays();
        for id in self.cx.home.cancelled() {
            self.cx.collect_cancelled(id);
        }
        // A round may leave requests with a geom's own state, which starts them when it is polled:
        // a round that moves nothing comes last, so that this thread can sleep then.
        loop {
            self.cx.poll_locals();
            self.cx.collect_due();
            if self.cx.ready.is_empty() {
                return self.finished_count;
            }
            self.work();
        }
    }

    /// Waits until a finished bio can be taken, nothing is in flight any more, or `timeout` is
    /// over. Returns how many finished bios wait to be taken.
    pub fn wait(&mut self, timeout: Option<Duration>) -> usize {
        let deadline_ns = timeout.map(|timeout| {
            let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            clock::now_ns().saturating_add(timeout_ns)
        });
        loop {
            if self.poll() > 0 || self.under_way == 0 {
                return self.finished_count;
            }
            if deadline_ns.is_some_and(|deadline| clock::now_ns() >= deadline) {
                return 0;
            }
            if self.look_out(deadline_ns) {
                return self.finished_count;
            }
            park::park(&self.cx, deadline_ns);
        }
    }

    /// Polls for as long as a geom's state finds that worth while. True when one more finished bio
    /// can be taken.
    fn look_out(&mut self, deadline_ns: Option<u64>) -> bool {
        let longest_ns = self.cx.poll_ns();
        if longest_ns == 0 {
            return false;
        }
        let before = self.finished_count;
        let until_ns = clock::now_ns().saturating_add(longest_ns);
        let until_ns = deadline_ns.map_or(until_ns, |deadline| deadline.min(until_ns));
        while clock::now_ns() < until_ns {
            // Yields the core to other threads, perhaps the awaited one.
            std::thread::yield_now();
            if self.poll() > before {
                return true;
            }
        }
        false
    }

    /// Sleeps, for a thread that has more to wait for than this channel: `with` gets the
    /// descriptors of engines that have something in flight, and how long it may take at most
    /// (nothing, when there is something to do already), and waits for these, for
    /// [`Channel::wake_fd`], and for whatever else the thread waits for. [`Channel::poll`] then
    /// examines the arrivals.
    pub fn sleep(
        &mut self,
        timeout: Option<Duration>,
        with: impl FnOnce(&[BorrowedFd<'_>], Option<Duration>),
    ) {
        let to_do = self.finished_count > 0 || !self.cx.ready.is_empty();
        let timeout = if to_do { Some(Duration::ZERO) } else { timeout };
        park::sleep(&self.cx, timeout, with);
    }

    /// A descriptor of its own for the eventfd by which other threads wake this channel's. Watch
    /// it for edges: it is never read. It may outlive the channel.
    ///
    /// # Errors
    /// When there is no descriptor left.
    #[cfg(not(any(loom, miri)))]
    pub fn wake_fd(&self) -> std::io::Result<OwnedFd> {
        self.cx.home.mailbox.wake_fd().try_clone_to_owned()
    }

    /// Cancels a bio if that is still possible: one that waits completes with ECANCELED; one
    /// that a layer is working on completes when that layer is done with it, either way.
    pub fn cancel(&mut self, id: BioId) {
        if !self.cx.pool.mark_cancelled(id) {
            return;
        }
        self.cancel_held();
        self.cx.collect_cancelled(id);
        let home = &self.cx.home;
        for other in [home.downward(), home.upward()] {
            if !Arc::ptr_eq(other, home) {
                other.cancel(id);
            }
        }
        for (snapshot, _) in &self.retired {
            snapshot.cancel(id);
        }
        self.snapshot.cancel(id);
        self.work();
    }

    fn cancel_held(&mut self) {
        let mut kept = Fifo::new();
        while let Some(mut bio) = self.held.pop() {
            if bio.is_cancelled() {
                bio.set_failed(Errno::CANCELED, "cancelled before it started");
                self.under_way -= 1;
                self.held_count -= 1;
                self.keep_finished(bio);
            } else {
                kept.push(bio);
            }
        }
        self.held = kept;
    }

    /// Why a finished bio failed, in full; `None` when it did not.
    pub fn explain(&self, finished: &Finished) -> Option<IoError> {
        let body = finished.bio.body();
        if body.error == 0 {
            return None;
        }
        let errno = Errno::from_raw_os_error(i32::from(body.error));
        let snapshot = self.snapshot_of(body.generation);
        let reason = body.reason.as_ref();
        let info = reason.and_then(|r| snapshot.and_then(|s| s.info.get(r.edge as usize)));
        Some(IoError {
            errno,
            command: body.command,
            provider: info.map_or_else(|| "a provider".to_owned(), |info| info.provider.clone()),
            offset_bytes: reason.map_or(body.offset, |reason| reason.offset),
            length_bytes: body.length,
            reason: reason.map_or("it failed", |reason| reason.text).to_owned(),
        })
    }

    fn snapshot_of(&self, generation: u64) -> Option<&Arc<Snapshot>> {
        if self.snapshot.generation == generation {
            return Some(&self.snapshot);
        }
        self.retired
            .iter()
            .map(|(snapshot, _)| snapshot)
            .find(|s| s.generation == generation)
    }

    /// One bio of that generation has completed.
    fn count_home(&mut self, generation: u64) {
        self.under_way -= 1;
        if self.snapshot.generation == generation {
            self.in_flight_now -= 1;
            return;
        }
        if let Some(at) = self
            .retired
            .iter()
            .position(|(s, _)| s.generation == generation)
        {
            self.retired[at].1 -= 1;
            if self.retired[at].1 == 0 {
                self.retired.swap_remove(at);
            }
        }
    }

    /// Sorts what arrived in the mailbox: strays for the pool, the rest to be moved.
    fn collect_strays(&mut self) {
        let mut arrived = self.cx.home.mailbox.take();
        while let Some(bio) = arrived.pop() {
            if bio.body().stage == Stage::Free {
                self.free(bio);
            } else {
                self.cx.ready.push(bio);
            }
        }
    }

    /// Moves the bios in `ready` until there are none.
    fn work(&mut self) {
        while let Some(bio) = self.cx.ready.pop() {
            let generation = bio.body().generation;
            let snapshot = if self.snapshot.generation == generation {
                &self.snapshot
            } else {
                let retired = self
                    .retired
                    .iter()
                    .find(|(s, _)| s.generation == generation);
                retired.map_or(&self.snapshot, |(snapshot, _)| snapshot)
            };
            if let Some(bio) = (snapshot.go_on)(snapshot, &mut self.cx, bio) {
                self.count_home(generation);
                self.keep_finished(bio);
            }
            if self.barrier {
                self.lift_barrier();
            }
        }
    }

    /// Lets held bios go when nothing is in their way any more: one that is ORDERED alone, others
    /// up to the next that is.
    #[cold]
    fn lift_barrier(&mut self) {
        if self.under_way > self.held_count || !self.cx.paced.is_empty() {
            return;
        }
        self.keep_up();
        self.barrier = false;
        let mut first = true;
        while let Some(mut bio) = self.held.pop() {
            let body = bio.body_mut();
            let ordered = is_ordered(body);
            if ordered && !first {
                let mut kept = Fifo::new();
                kept.push(bio);
                kept.append(&mut self.held);
                self.held = kept;
                self.barrier = true;
                return;
            }
            body.generation = self.snapshot.generation;
            let entry = self.snapshot.entries.get(body.entry as usize);
            body.edge = entry.copied().unwrap_or(u32::MAX);
            self.held_count -= 1;
            self.in_flight_now += 1;
            self.cx.ready.push(bio);
            first = false;
            if ordered {
                self.barrier = true;
                return;
            }
        }
    }

    /// Takes the newest snapshot; the old one lives on until its last bio has completed.
    #[cold]
    fn refresh(&mut self) {
        let newest = self.shared.refresh(self.tasting);
        if newest.generation == self.snapshot.generation {
            return;
        }
        let old = std::mem::replace(&mut self.snapshot, newest);
        if self.snapshot.sample_one_in != old.sample_one_in {
            // What was drawn for a small share would keep a larger one waiting.
            statistics::draw(&mut self.cx, self.snapshot.sample_one_in);
        }
        let count = std::mem::take(&mut self.in_flight_now);
        if count > 0 {
            self.retired.push((old, count));
        }
        self.settle();
    }

    /// Makes room for the needs of the current snapshot, so that the data path never allocates.
    fn settle(&mut self) {
        self.shared
            .grow_statistics(&mut self.cx.counters, self.snapshot.stats_wanted);
        let clones = self
            .snapshot
            .info
            .iter()
            .map(|info| info.clones)
            .max()
            .unwrap_or(0);
        self.cx.pool.reserve(self.depth.saturating_mul(1 + clones));
        let (current, retired) = (&self.snapshot, &self.retired);
        self.cx.retain_locals(|key| {
            let knows = |snapshot: &Snapshot| snapshot.local_keys.contains(&key);
            knows(current) || retired.iter().any(|(snapshot, _)| knows(snapshot))
        });
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // Layers may still hold bios of this channel; their slots live in its pool. The barrier
        // cannot keep anything from coming home, so this ends when the layers are done.
        while self.under_way > 0 {
            self.wait(None);
            while let Some(finished) = self.finished() {
                self.recycle(finished);
            }
        }
        while let Some(finished) = self.finished() {
            self.recycle(finished);
        }
        self.collect_strays();
        self.shared.leave_home(&self.cx.home);
        self.shared.leave_statistics(&self.cx.counters);
    }
}
