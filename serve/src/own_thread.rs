//! The thread of a server: named, stopped through its waker, joined on drop.

use std::io;
use std::thread::{Builder, JoinHandle};
use ugeom_engine::reactor::Waker;

/// A thread that ends when `waker` wakes it. Dropping this wakes and joins it.
pub(crate) struct OwnThread {
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl OwnThread {
    /// Runs `run` in a thread of this name, which the system cuts after 15 bytes.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(
        name: &str,
        waker: Waker,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let thread = Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self {
            waker,
            thread: Some(thread),
        })
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.waker.wake();
            // A panic of the thread is on stderr already.
            let _ = thread.join();
        }
    }
}
