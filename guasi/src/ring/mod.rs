//! The other way to run a call: the kernel runs it, through an io_uring, and no worker is needed.
//!
//! ```text
//!  submit            queue of the priority        io_uring              stack of the priority
//!    |------ exchange ------>|   refill: begin       |                          |
//!    |                       |---(at most depth)---->| one io_uring_enter       |
//!    |                                               |  for the batch           |
//!    |                            reap: end          |                          |
//!    |                                  <------------|----- push -------------->|<- fetch
//! ```
//!
//! Calls wait in queues of their own, one a priority, until the kernel has fewer than `depth`: so
//! the priority decides, and what is cancelled while it waits never runs. Only the threads that use
//! the context move them on (`Shared::drive`): those that submit, fetch, cancel or ask.
//!
//! **The lock.** Both rings of an io_uring are for one thread at a time. One lock a batch is what
//! that costs; no thread sleeps with it, and threads wait for completions without it.
//!
//! **Sleep and wake-up.** A fetcher sleeps in io_uring_enter(2) while the ring has requests, else
//! where the fetchers of workers' results sleep. In the ring it counts for workers as one who
//! misses a single request, so that each result of a worker, and each that another thread reaped,
//! wakes it: by as many no-ops as completions it waits for (`nudge`).
//!
//! **Where the kernel is not like a worker.** A request whose submitter's thread ends is cancelled
//! by the kernel, one that finds a non-blocking socket not ready may fail at once: such requests go
//! to the workers after all, and are run there.

mod devices;
mod entry;
mod pair;
mod setup;

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};

use ugeom_machine::clock;

use crate::calls::IoCall;
use crate::queue::{Entry, Queue, Queues};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::slab::Slot;
use crate::state::RING;
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, Padded, fence};
use crate::work::Outcome;
use devices::{DeviceNumber, Devices};
use entry::Files;
use pair::Pair;

/// Marks the completions of entries that are no requests. No slot has this number.
const NO_REQUEST: u64 = u64::MAX;

/// The most completions that a fetcher sleeps for at a time.
const SLEEP_MAX: u32 = 128;

/// How often a batch is offered again at once while the kernel has no resources for it.
const OFFERS_MAX: u32 = 100;

/// How many submissions and fetches may pass before completions are asked for, while requests wait
/// for their device and no thread waits for them. A busy device has work for longer than that.
const CALLS_MAX: u32 = 16;

/// The largest batch of requests that are held while there are results to fetch.
const HELD_MAX: u32 = 16;
/// A batch is at most this part of the queue depth, so that the device keeps the rest.
const HELD_PART: u32 = 8;
/// The smallest queue depth with batches: at less, the device runs dry.
const HELD_DEPTH_MIN: u32 = 32;

/// Submissions that follow each other sooner than this, ns, come from a program that will soon
/// call again.
const QUICK_NS: u64 = 10_000;

/// How soon it is offered again by a fetcher that would else sleep.
const OFFER_AGAIN: Duration = Duration::from_millis(1);

pub(crate) struct Ring {
    rings: Pair,
    known: Probe,
    /// Waiting requests, by priority.
    queues: Queues,
    depth: u32,
    /// Requests in the queues and in the kernel.
    outstanding: Padded<AtomicU32>,
    /// Requests that were submitted since the last fetch.
    since_fetch: AtomicU32,
    /// Submissions and fetches since completions were last asked for.
    calls: AtomicU32,
    /// When requests were last submitted, in ticks.
    submitted: AtomicU64,
    /// [`QUICK_NS`] in ticks. Calibrating the clock takes milliseconds, which no submission pays.
    quick_ticks: u64,
    /// Submissions that wait for the next batch.
    held: AtomicU32,
    /// Something waits for completions: requests for their device, or threads.
    is_behind: AtomicBool,
    kernel: Padded<Mutex<Kernel>>,
}

/// The state of the holder of both rings.
#[derive(Default)]
struct Kernel {
    /// Requests that the kernel has.
    in_flight: u32,
    /// Those of them that are in the first ring, after the second one was made.
    left_in_first: u32,
    /// Fetchers that sleep in the kernel or are about to, and for how many completions at most.
    sleepers: u32,
    awaited: u32,
    /// The sleepers in the first ring.
    sleepers_in_first: u32,
    /// The kernel did not take all entries.
    is_stuck: bool,
    devices: Devices,
}

impl Ring {
    pub(crate) fn new(settings: &Settings, slots: usize) -> Result<Ring, setup::Refusal> {
        let depth = settings.ring_depth;
        let (rings, known) = Pair::new(settings)?;
        let Some(queues) = Queues::new(settings.priorities, slots) else {
            let error = io::Error::from_raw_os_error(libc::ENOMEM);
            return Err(("no memory for its queues".into(), error));
        };
        Ok(Ring {
            rings,
            known,
            queues,
            depth,
            outstanding: Padded(AtomicU32::new(0)),
            since_fetch: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            submitted: AtomicU64::new(0),
            quick_ticks: clock::ns_to_ticks(QUICK_NS),
            held: AtomicU32::new(0),
            is_behind: AtomicBool::new(false),
            kernel: Padded(Mutex::default()),
        })
    }

    /// Whether this ring can run the call as a worker would.
    #[inline]
    pub(crate) fn takes(&self, call: &IoCall) -> bool {
        entry::takes(&self.known, call)
    }

    /// Queues requests, all or (without room) none. Returns whether the ring was idle before.
    pub(crate) fn push(&self, priority: u32, entries: &[Entry]) -> Option<bool> {
        self.see_user();
        let count = entries.len() as u32;
        // First, so that no thread that reaps them counts below zero. SeqCst: see `is_idle`.
        let before = self.outstanding.fetch_add(count, Ordering::SeqCst);
        if self.queues.push(priority, entries) {
            self.since_fetch.fetch_add(count, Ordering::Relaxed);
            Some(before == 0)
        } else {
            self.outstanding.fetch_sub(count, Ordering::SeqCst);
            None
        }
    }

    /// Whether neither the queues nor the kernel have a request. A fetcher that finds it so after
    /// it announced that it sleeps is seen by the next submitter.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding.load(Ordering::SeqCst) == 0
    }

    /// For a thread that fetches: whether the ring needs no look at what the kernel has completed.
    #[inline]
    pub(crate) fn can_wait(&self) -> bool {
        self.see_user();
        self.since_fetch.store(0, Ordering::Relaxed);
        !self.is_behind.load(Ordering::Relaxed) || !self.is_due()
    }

    /// Counts a call of the program. Whether completions are to be asked for again.
    #[inline]
    fn is_due(&self) -> bool {
        let calls = self.calls.load(Ordering::Relaxed) + 1;
        self.calls.store(calls, Ordering::Relaxed);
        calls >= CALLS_MAX
    }

    /// Whether requests wait for the kernel to have fewer than `depth`.
    pub(crate) fn has_queue(&self, priorities: usize) -> bool {
        !self.queues.used(priorities).all(Queue::is_empty)
    }

    /// The next request that waits and whose device has room, and that device; those before it are
    /// put aside. `file` tells which file a request in the queues uses.
    fn pop(
        &self,
        devices: &mut Devices,
        priorities: usize,
        file: impl Fn(Entry) -> RawFd,
    ) -> Option<(DeviceNumber, Entry)> {
        for (priority, queue) in self.queues.used(priorities).enumerate() {
            if let Some(found) = devices.next(priority) {
                return Some(found);
            }
            while let Some(entry) = queue.pop() {
                let device = devices.of_file(file(entry));
                if devices.has_room(device) {
                    return Some((device, entry));
                }
                devices.wait(device, priority, entry);
            }
        }
        None
    }

    /// Whether a request waits that the kernel may have.
    fn has_more(&self, kernel: &Kernel, priorities: usize) -> bool {
        kernel.devices.waiting() > 0 || self.has_queue(priorities)
    }

    /// Whether requests that were queued just now may wait for the program's next call, so that one
    /// io_uring_enter(2) hands over several. The program has `results` to fetch and submits every
    /// few microseconds, so it will call again; other requests keep the device busy.
    #[inline]
    fn holds(&self, results: impl FnOnce() -> usize) -> bool {
        let now = clock::ticks();
        let since_last = now.wrapping_sub(self.submitted.load(Ordering::Relaxed));
        self.submitted.store(now, Ordering::Relaxed);
        let is_quick = since_last < self.quick_ticks;
        let held = self.held.load(Ordering::Relaxed) + 1;
        if !is_quick || held > HELD_MAX || self.since_fetch.load(Ordering::Relaxed) > HELD_MAX {
            return false;
        }
        // A second thread either is seen here, or sees these requests in the queue.
        fence(Ordering::SeqCst);
        if !self.rings.has_one_user() {
            return false;
        }
        let results = results();
        let depth = results as u32 + self.outstanding.load(Ordering::Relaxed);
        let may_hold = results > 0 && depth >= HELD_DEPTH_MIN && held <= depth / HELD_PART;
        if may_hold {
            self.held.store(held, Ordering::Relaxed);
            self.is_behind.store(true, Ordering::Relaxed);
        }
        may_hold
    }

    /// Notes whether something waits for completions that a call of the program may ask for.
    fn note_behind(&self, kernel: &Kernel, priorities: usize) {
        let is_behind = self.has_more(kernel, priorities)
            || kernel.is_stuck
            || kernel.left_in_first > 0
            || kernel.sleepers_in_first > 0;
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// Notes that this thread submits or fetches. The second one to do so makes the second ring.
    #[inline]
    fn see_user(&self) {
        if self.rings.has_new_user() {
            self.open_second();
        }
    }

    /// Continues with a ring whose completions interrupt the submitter.
    #[cold]
    fn open_second(&self) {
        let mut kernel = self.kernel.lock();
        if self.rings.open_second() {
            kernel.left_in_first = kernel.in_flight;
            self.call_from_first(&mut kernel);
        }
    }

    /// Wakes those that sleep in the first ring after the second one was made, of whose completions
    /// they would not hear. Called whenever no-ops there may have been taken, until they are awake.
    fn call_from_first(&self, kernel: &mut Kernel) {
        if kernel.sleepers_in_first > 0
            && self.rings.has_second()
            && let Some(first) = self.rings.all().next()
        {
            self.push_no_ops(kernel, first);
        }
    }

    /// As many as the sleepers wait for.
    fn push_no_ops(&self, kernel: &mut Kernel, ring: &IoUring) {
        for _ in 0..kernel.awaited {
            let no_op = opcode::Nop::new().build().user_data(NO_REQUEST);
            self.push_other(kernel, ring, &no_op);
        }
        kernel.is_stuck |= self.enter_ring(kernel, ring, Waiting::Posted);
    }

    /// Hands the entries of the submission rings to the kernel.
    fn enter(&self, kernel: &mut Kernel, waiting: Waiting) {
        kernel.is_stuck = false;
        for ring in self.rings.all() {
            kernel.is_stuck |= self.enter_ring(kernel, ring, waiting);
        }
    }

    /// Whether something is left in it.
    fn enter_ring(&self, kernel: &mut Kernel, ring: &IoUring, waiting: Waiting) -> bool {
        let posts = waiting == Waiting::Posted && self.rings.posts_for_this_thread(ring);
        for _ in 0..OFFERS_MAX {
            let submission = submission(ring, kernel);
            let to_post = submission.cq_overflow() || posts && submission.taskrun();
            let nothing = submission.is_empty() && !to_post;
            drop(submission);
            if nothing {
                return false;
            }
            self.calls.store(0, Ordering::Relaxed);
            match ring.submit() {
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // No resources now, or the completion ring has to be emptied first.
                    Some(libc::EAGAIN) => std::thread::yield_now(),
                    _ => return true,
                },
            }
        }
        true
    }

    /// Puts an entry that is no request on a submission ring, which is emptied for it if need be;
    /// false if the kernel takes none.
    fn push_other(&self, kernel: &mut Kernel, ring: &IoUring, entry: &squeue::Entry) -> bool {
        if submission(ring, kernel).is_full() {
            self.enter_ring(kernel, ring, Waiting::Posted);
        }
        // SAFETY: the entry points to no memory.
        unsafe { submission(ring, kernel).push(entry) }.is_ok()
    }

    /// Wakes the fetchers that sleep in the kernel.
    #[cold]
    pub(crate) fn nudge(&self) {
        let mut kernel = self.kernel.lock();
        if kernel.sleepers > 0 {
            self.push_no_ops(&mut kernel, self.rings.current());
        }
    }

    /// Asks the kernel to end a request early, wherever it is. It ends that one or none: its name
    /// carries its generation.
    pub(crate) fn interrupt(&self, slot: u32, generation: u32) {
        let mut kernel = self.kernel.lock();
        let name = name(Entry { slot, generation });
        let cancel = opcode::AsyncCancel::new(name).build().user_data(NO_REQUEST);
        for ring in self.rings.all() {
            if self.push_other(&mut kernel, ring, &cancel) {
                kernel.is_stuck |= self.enter_ring(&mut kernel, ring, Waiting::Posted);
            }
        }
    }

    /// A fetcher that misses `missing` results is about to sleep. `sleep` and `wake_up` follow.
    pub(crate) fn lie_down(&self, missing: usize) -> Sleeper {
        let mut kernel = self.kernel.lock();
        let waiting = self
            .outstanding
            .load(Ordering::SeqCst)
            .saturating_sub(kernel.in_flight);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let mut count = missing.min(kernel.in_flight).min(SLEEP_MAX);
        if waiting > 0 {
            // A thread has to hand on what waits long before the kernel runs dry.
            count = count.min(kernel.in_flight / 8);
        }
        let count = count.max(1);
        kernel.sleepers += 1;
        kernel.awaited = kernel.awaited.max(count);
        let is_in_first = !self.rings.has_second();
        kernel.sleepers_in_first += u32::from(is_in_first);
        Sleeper {
            count: count as usize,
            is_brief: kernel.is_stuck || kernel.left_in_first > 0,
            is_in_first,
        }
    }

    /// Sleeps until there are as many completions more than were taken, or until the time is over.
    pub(crate) fn sleep(&self, sleeper: &Sleeper, timeout: Option<Duration>) {
        let soon = |timeout: Duration| timeout.min(OFFER_AGAIN);
        let timeout = match sleeper.is_brief {
            true => Some(timeout.map_or(OFFER_AGAIN, soon)),
            false => timeout,
        };
        let timespec = timeout.map(types::Timespec::from);
        let mut arguments = types::SubmitArgs::new();
        if let Some(timespec) = &timespec {
            arguments = arguments.timespec(timespec);
        }
        // The time is over, a signal, entries that the kernel does not take: the caller looks.
        let ring = match sleeper.is_in_first {
            true => self.rings.all().next(),
            false => None,
        };
        let submitter = ring.unwrap_or(self.rings.current()).submitter();
        let _ = submitter.submit_with_args(sleeper.count, &arguments);
    }

    pub(crate) fn wake_up(&self, sleeper: &Sleeper) {
        let mut kernel = self.kernel.lock();
        kernel.sleepers_in_first -= u32::from(sleeper.is_in_first);
        kernel.sleepers -= 1;
        if kernel.sleepers == 0 {
            kernel.awaited = 0;
        }
    }

    /// Whether the kernel has completed something that was not taken.
    pub(crate) fn has_completions(&self) -> bool {
        let mut kernel = self.kernel.lock();
        let mut rings = self.rings.all();
        !self.is_idle() && rings.any(|ring| !completion(ring, &mut kernel).is_empty())
    }

    /// Lets the kernel count completions on an eventfd, for which any thread may wait.
    pub(crate) fn tell(&self, eventfd: i32) -> io::Result<()> {
        self.open_second();
        let mut rings = self.rings.all();
        rings.try_for_each(|ring| ring.submitter().register_eventfd(eventfd))
    }
}

/// What becomes of completions that wait for their submitter to enter the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Posted,
    Left,
}

/// The call of the program that moves the ring's requests on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drive {
    /// It has queued requests.
    Submit,
    /// It fetches results, and may sleep for them.
    Fetch,
    /// It asks for ended requests.
    Ask,
}

/// How a fetcher sleeps in the kernel.
pub(crate) struct Sleeper {
    /// Until so many completions came.
    count: usize,
    /// Only for a moment: something happens that no completion tells.
    is_brief: bool,
    is_in_first: bool,
}

/// The submission ring, for the holder of the lock.
fn submission<'a>(ring: &'a IoUring, _kernel: &mut Kernel) -> squeue::SubmissionQueue<'a> {
    // SAFETY: the lock's holder is the only one, and lets go of it before the lock.
    unsafe { ring.submission_shared() }
}

/// The completion ring, for the holder of the lock.
fn completion<'a>(ring: &'a IoUring, _kernel: &mut Kernel) -> cqueue::CompletionQueue<'a> {
    // SAFETY: as in `submission`.
    unsafe { ring.completion_shared() }
}

/// The value that the kernel returns with a completion.
fn name(entry: Entry) -> u64 {
    u64::from(entry.generation) << 32 | u64::from(entry.slot)
}

impl Shared {
    /// Moves the ring's requests on: takes ended ones, and hands on waiting ones.
    #[inline]
    pub(crate) fn drive(self: &Arc<Shared>, why: Drive) {
        if let Some(ring) = &self.ring
            && !ring.is_idle()
            && !self.is_orphan()
            && !(why == Drive::Submit && ring.holds(|| self.done.count(self.priorities())))
        {
            self.drive_ring(ring, why);
        }
    }

    fn drive_ring(self: &Arc<Shared>, ring: &Ring, why: Drive) {
        let priorities = self.priorities();
        // Without memory until there is one, which is rare.
        let mut returned = Vec::new();
        if why == Drive::Fetch {
            ring.see_user();
            ring.since_fetch.store(0, Ordering::Relaxed);
        }
        ring.held.store(0, Ordering::Relaxed);
        let mut kernel = ring.kernel.lock();
        let since_fetch = ring.since_fetch.load(Ordering::Relaxed);
        kernel.devices.set_since_fetch(since_fetch);
        if why != Drive::Submit || ring.is_due() && ring.has_more(&kernel, priorities) {
            ring.enter(&mut kernel, Waiting::Posted);
        }
        let mut woke = self.reap(ring, &mut kernel, &mut returned);
        while self.refill(ring, &mut kernel, priorities, &mut returned) {
            ring.enter(&mut kernel, Waiting::Left);
            // Calls that ended at once have made room.
            woke |= self.reap(ring, &mut kernel, &mut returned);
            let is_full = kernel.in_flight == ring.depth;
            if !is_full && !ring.has_more(&kernel, priorities) {
                break;
            }
        }
        ring.enter(&mut kernel, Waiting::Left);
        ring.call_from_first(&mut kernel);
        ring.note_behind(&kernel, priorities);
        drop(kernel);
        for entry in returned {
            woke |= self.hand_to_workers(entry);
        }
        if woke {
            ring.nudge();
        }
    }

    /// Puts waiting requests on the submission ring; adds those for workers to `returned`. False
    /// when there was nothing, or no room.
    fn refill(
        &self,
        ring: &Ring,
        kernel: &mut MutexGuard<'_, Kernel>,
        priorities: usize,
        returned: &mut Vec<Entry>,
    ) -> bool {
        let mut submission = submission(ring.rings.current(), kernel);
        let mut files = Files::default();
        let mut any = false;
        while kernel.in_flight < ring.depth && !submission.is_full() {
            let file = |entry: Entry| self.slab.slot(entry.slot).file();
            let Some((device, entry)) = ring.pop(&mut kernel.devices, priorities, file) else {
                break;
            };
            let slot = self.slab.slot(entry.slot);
            if !slot.state.begin(entry.generation, RING) {
                // It was withdrawn.
                ring.outstanding.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            // SAFETY: the request is active here, and was queued for its call.
            let call = unsafe { slot.call() };
            if !files.suit(call) {
                ring.outstanding.fetch_sub(1, Ordering::SeqCst);
                returned.push(entry);
                continue;
            }
            kernel.devices.begin(device, entry.slot);
            let entry = entry::entry(call).user_data(name(entry));
            // SAFETY: memory, paths and addresses are valid until the request has ended (the
            // promise of `Io::new`), which is when the kernel has completed it. There is room.
            let pushed = unsafe { submission.push(&entry) };
            debug_assert!(pushed.is_ok());
            kernel.in_flight += 1;
            any = true;
        }
        any
    }

    /// Takes completions from the kernel. Requests that workers are to run are added to
    /// `returned`. Returns whether a sleeper was called.
    fn reap(
        &self,
        ring: &Ring,
        kernel: &mut MutexGuard<'_, Kernel>,
        returned: &mut Vec<Entry>,
    ) -> bool {
        let mut woke = false;
        for (number, one) in ring.rings.all().enumerate() {
            let count = self.reap_ring(one, kernel, returned, &mut woke);
            kernel.in_flight -= count;
            if number == 0 {
                // 0 until there are two.
                kernel.left_in_first = kernel.left_in_first.saturating_sub(count);
            }
            if count > 0 {
                ring.outstanding.fetch_sub(count, Ordering::SeqCst);
            }
        }
        woke
    }

    /// How many requests of a ring ended.
    fn reap_ring(
        &self,
        ring: &IoUring,
        kernel: &mut MutexGuard<'_, Kernel>,
        returned: &mut Vec<Entry>,
        woke: &mut bool,
    ) -> u32 {
        let mut count = 0;
        for completion in completion(ring, kernel) {
            let name = completion.user_data();
            if name == NO_REQUEST {
                continue;
            }
            let entry = Entry {
                slot: name as u32,
                generation: (name >> 32) as u32,
            };
            count += 1;
            kernel.devices.end(entry.slot);
            let slot = self.slab.slot(entry.slot);
            match self.outcome(slot, completion.result()) {
                Some(outcome) => *woke |= self.end_in_ring(slot, entry, outcome),
                None => returned.push(entry),
            }
        }
        count
    }

    /// How a request ended that the kernel completed with `result`; `None` when it is for workers.
    #[inline]
    fn outcome(&self, slot: &Slot, result: i32) -> Option<Outcome> {
        if result >= 0 {
            return Some(Outcome::done(result as isize));
        }
        let error = -result;
        let asked = slot.state.is_asked() || self.closing.load(Ordering::Acquire);
        match error {
            libc::ECANCELED | libc::EINTR if asked => Some(Outcome::failed(libc::EINTR)),
            // The submitter's thread has ended.
            libc::ECANCELED | libc::EINTR | libc::EFAULT => None,
            libc::EAGAIN | libc::EINPROGRESS | libc::EALREADY => {
                // SAFETY: the request is active here, and was queued for its call.
                let waits = entry::waits_for_socket(unsafe { slot.call() });
                (!waits).then(|| Outcome::failed(error))
            }
            error => Some(Outcome::failed(error)),
        }
    }

    fn end_in_ring(&self, slot: &Slot, entry: Entry, outcome: Outcome) -> bool {
        slot.store(outcome);
        if !slot.state.end(entry.generation, RING) {
            slot.state.end_asked(entry.generation, || {});
        }
        self.finished(slot, entry.slot)
    }

    /// Ends a new request that was run while it was submitted.
    pub(crate) fn end_inline(&self, entry: Entry, outcome: Outcome) {
        let slot = self.slab.slot(entry.slot);
        // Not when the context was closed meanwhile: it has ended the request.
        if slot.state.begin(entry.generation, RING)
            && self.end_in_ring(slot, entry, outcome)
            && let Some(ring) = &self.ring
        {
            ring.nudge();
        }
    }

    /// Gives a request that the kernel did not run to the workers. Returns whether a sleeper was
    /// called.
    #[cold]
    fn hand_to_workers(self: &Arc<Shared>, entry: Entry) -> bool {
        let slot = self.slab.slot(entry.slot);
        if !slot.state.hand_back(entry.generation, RING) {
            return self.end_in_ring(slot, entry, Outcome::failed(libc::EINTR));
        }
        let priority = slot.priority.load(Ordering::Relaxed);
        let queued = self.queues.push(priority, &[entry]);
        // No room, or no thread that would come by: it ends here, unless it was taken meanwhile.
        let served = queued && self.notify().is_ok();
        !served
            && slot.state.begin(entry.generation, RING)
            && self.end_in_ring(slot, entry, Outcome::failed(libc::EAGAIN))
    }

    /// Waits until the kernel has none of our requests any more: it uses their memory until then.
    pub(crate) fn drain_ring(self: &Arc<Shared>) {
        let Some(ring) = &self.ring else { return };
        loop {
            self.drive_ring(ring, Drive::Ask);
            if ring.kernel.lock().in_flight == 0 {
                return;
            }
            let sleeper = Sleeper {
                count: 1,
                is_brief: true,
                is_in_first: false,
            };
            ring.sleep(&sleeper, None);
        }
    }
}
