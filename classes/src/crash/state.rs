//! The thread of a crashing disk, and the requests that wait for it.

use super::model::{Below, Model};
use super::options::Settings;
use super::recorder::Recorder;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use ugeom_machine::mutex::{Condvar, Mutex};
use ugeom_machine::own_thread::OwnThread;
use ugeom_stack::{Bio, BioId, Errno, Lower};

/// How long the thread keeps its channel when nothing is asked: it would keep the stack alive.
const KEPT: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Bio>,
    settling: Vec<Sender<()>>,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    lower: OnceLock<Lower>,
}

/// The thread. Dropping it ends it.
pub(super) struct Worker {
    shared: Arc<Shared>,
    _thread: OwnThread,
}

impl Worker {
    /// Starts the thread that executes the requests, by a model of a disk cache.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(settings: &Settings, recorder: Option<Arc<Recorder>>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let model = Model::new(settings.clone(), recorder);
        Ok(Self {
            shared,
            _thread: OwnThread::start("crash", move || run(&of_thread, model))?,
        })
    }

    pub fn attached(&self, lower: Lower) {
        // It is told once.
        let _ = self.shared.lower.set(lower);
    }

    pub fn add(&self, bio: Bio) {
        self.shared.waiting.lock().requests.push_back(bio);
        self.shared.changed.notify_one();
    }

    /// Lets a request go as cancelled, if it waits.
    pub fn cancel(&self, id: BioId) {
        let mut waiting = self.shared.waiting.lock();
        let found = waiting.requests.iter().position(|bio| bio.id() == id);
        let bio = found.and_then(|at| waiting.requests.remove(at));
        drop(waiting);
        if let Some(bio) = bio {
            bio.fail(Errno::CANCELED, "cancelled while it waited for the disk");
        }
    }

    /// Waits until the cache is written and the power is on.
    pub fn settle(&self) {
        let (tell, told) = channel();
        self.shared.waiting.lock().settling.push(tell);
        self.shared.changed.notify_one();
        // An error means that the thread has ended, and with it the cache.
        let _ = told.recv();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.waiting.lock().stop = true;
        self.shared.changed.notify_one();
    }
}

/// Serves requests, one at a time, until it is told to stop and none is left.
fn run(shared: &Shared, mut model: Model) {
    let mut below = None;
    let mut waiting = shared.waiting.lock();
    loop {
        if let Some(bio) = waiting.requests.pop_front() {
            drop(waiting);
            match way(&mut below, shared) {
                Some(below) => model.serve(below, bio),
                None => bio.fail(Errno::NXIO, "the device below is destroyed"),
            }
        } else if let Some(tell) = waiting.settling.pop() {
            drop(waiting);
            if model.is_dirty()
                && let Some(below) = way(&mut below, shared)
            {
                model.settle(below);
            }
            model.power_on();
            // It keeps the stack alive, which is perhaps about to go.
            below = None;
            // The submitter may have ended.
            let _ = tell.send(());
        } else if waiting.stop {
            return;
        } else {
            let idle =
                |it: &mut Waiting| !it.stop && it.requests.is_empty() && it.settling.is_empty();
            if below.is_none() {
                waiting = shared.changed.wait_while(waiting, idle);
                continue;
            }
            let (again, timed_out) = shared.changed.wait_timeout_while(waiting, KEPT, idle);
            drop(again);
            if timed_out {
                // The channel may be the last that keeps the stack.
                below = None;
            }
        }
        waiting = shared.waiting.lock();
    }
}

/// The way to the device below, which is made when it is needed.
fn way<'a>(below: &'a mut Option<Below>, shared: &Shared) -> Option<&'a mut Below> {
    if below.is_none() {
        let lower = shared.lower.get()?;
        let (channel, opened) = (lower.channel(1).ok()?, lower.consumer(0).ok()?);
        *below = Some(Below { channel, opened });
    }
    below.as_mut()
}
