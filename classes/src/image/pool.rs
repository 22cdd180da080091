//! Threads for blocking work: each takes a request, works on it, and completes it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use ugeom_machine::mutex::{Condvar, Mutex};
use ugeom_machine::own_thread::OwnThread;
use ugeom_stack::Bio;

/// How many requests are worked on at a time.
const THREADS: usize = 8;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Bio>,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

/// The threads. Dropping it ends them after their present work.
pub(super) struct Pool {
    shared: Arc<Shared>,
    /// Joined after [`Drop::drop`]; a request that a panicking one held failed.
    threads: Vec<OwnThread>,
}

impl Pool {
    /// Starts the threads; `work` completes a request.
    pub fn start(work: impl Fn(Bio) + Send + Sync + 'static) -> io::Result<Self> {
        let work = Arc::new(work);
        let mut pool = Self {
            shared: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..THREADS {
            let (shared, work) = (Arc::clone(&pool.shared), Arc::clone(&work));
            let thread = OwnThread::start("ugeom-image", move || {
                while let Some(bio) = next(&shared) {
                    work(bio);
                }
            })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Hands a request to the threads; it completes there.
    pub fn submit(&self, bio: Bio) {
        self.shared.queue.lock().waiting.push_back(bio);
        self.shared.more.notify_one();
    }
}

fn next(shared: &Shared) -> Option<Bio> {
    let mut queue = shared.queue.lock();
    loop {
        if let Some(bio) = queue.waiting.pop_front() {
            return Some(bio);
        }
        if queue.stop {
            return None;
        }
        queue = shared.more.wait(queue);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.queue.lock().stop = true;
        self.shared.more.notify_all();
    }
}
