//! The requests that `delayed` holds, and the thread that lets them go.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use ugeom_machine::mutex::{Condvar, Mutex};
use ugeom_machine::own_thread::OwnThread;
use ugeom_stack::{Bio, BioId, Errno};

/// How requests are let go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// Where the random order begins.
    pub seed: u64,
    /// How many are held before all are let go.
    pub depth: usize,
    /// How long the thread waits for that many, ns.
    pub delay_ns: u64,
}

impl Order {
    /// For how many requests there is room from the start.
    fn room(&self) -> usize {
        const ROOM_MAX: usize = 4096;
        self.depth.min(ROOM_MAX)
    }
}

/// A request on its way back, and the bytes done; nothing when it failed.
struct Waiting {
    bio: Bio,
    done_bytes: Option<u64>,
}

impl Waiting {
    fn let_go(self) {
        match self.done_bytes {
            Some(bytes) => self.bio.complete(Ok(bytes)),
            None => self.bio.resume(),
        }
    }
}

#[derive(Default)]
struct List {
    waiting: Vec<Waiting>,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    list: Mutex<List>,
    changed: Condvar,
}

/// The requests that are held. Dropping it lets them go and ends the thread.
pub(super) struct HeldRequests {
    shared: Arc<Shared>,
    _thread: OwnThread,
}

impl HeldRequests {
    /// An empty list with a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(order: Order) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.list.lock().waiting = Vec::with_capacity(order.room());
        let of_thread = Arc::clone(&shared);
        Ok(Self {
            shared,
            _thread: OwnThread::start("delayed", move || run(&of_thread, order))?,
        })
    }

    pub fn add(&self, bio: Bio, done_bytes: Option<u64>) {
        self.shared
            .list
            .lock()
            .waiting
            .push(Waiting { bio, done_bytes });
        self.shared.changed.notify_one();
    }

    /// Lets a request go as cancelled, if it is held.
    pub fn cancel(&self, id: BioId) {
        let mut list = self.shared.list.lock();
        let found = list
            .waiting
            .iter()
            .position(|waiting| waiting.bio.id() == id);
        let waiting = found.map(|at| list.waiting.swap_remove(at));
        drop(list);
        if let Some(waiting) = waiting {
            waiting
                .bio
                .fail(Errno::CANCELED, "cancelled while it was delayed");
        }
    }
}

impl Drop for HeldRequests {
    fn drop(&mut self) {
        self.shared.list.lock().stop = true;
        self.shared.changed.notify_one();
    }
}

/// Lets requests go, batch by batch, until it is told to stop and none is left.
fn run(shared: &Shared, order: Order) {
    let mut random = fastrand::Rng::with_seed(order.seed);
    let delay = Duration::from_nanos(order.delay_ns);
    let mut batch = Vec::with_capacity(order.room());
    let mut list = shared.list.lock();
    loop {
        let idle = |list: &mut List| !list.stop && list.waiting.is_empty();
        list = shared.changed.wait_while(list, idle);
        let too_few = |list: &mut List| !list.stop && list.waiting.len() < order.depth;
        list = shared.changed.wait_timeout_while(list, delay, too_few).0;
        if list.stop && list.waiting.is_empty() {
            return;
        }
        mem::swap(&mut list.waiting, &mut batch);
        drop(list);
        random.shuffle(&mut batch);
        batch.drain(..).for_each(Waiting::let_go);
        list = shared.list.lock();
    }
}
