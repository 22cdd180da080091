//! The one link to a server that allows no more, and the thread that looks after it.

use super::Remote;
use super::link::Link;
use super::links::hand_out;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_machine::mailbox::Mailbox;
use ugeom_machine::own_thread::OwnThread;
use ugeom_stack::Bio;

/// The thread's side that others see.
struct Shared {
    mailbox: Mailbox<Bio>,
    stop: AtomicBool,
}

/// A link with a thread of its own. Dropping it ends the thread.
pub(super) struct Service {
    shared: Arc<Shared>,
    /// Joined after [`Drop::drop`]; requests that it held at a panic completed with EIO.
    _thread: OwnThread,
}

impl Service {
    pub fn start(remote: &Arc<Remote>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            mailbox: Mailbox::new()?,
            stop: AtomicBool::new(false),
        });
        let link = Link::new(remote).map_err(io::Error::from)?;
        let own = Arc::clone(&shared);
        let thread = OwnThread::start("ugeom-nbd", move || run(&own, link))?;
        Ok(Self {
            shared,
            _thread: thread,
        })
    }

    /// Hands a request to the thread; it completes there.
    pub fn submit(&self, bio: Bio) {
        self.shared.mailbox.post(bio);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.mailbox.wake();
    }
}

fn run(shared: &Shared, mut link: Link) {
    loop {
        let mut arrived = shared.mailbox.take();
        while let Some(bio) = arrived.pop() {
            link.submit(bio);
        }
        link.poll(&mut hand_out);
        if shared.stop.load(Ordering::Relaxed) && link.in_flight() == 0 {
            return;
        }
        // A failed sleep is a short one; what there is to do is looked for in any case.
        let _ = shared.mailbox.park(&[link.wait_fd()], None);
    }
}
