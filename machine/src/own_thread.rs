//! A thread that belongs to a value and ends with it.

use std::io;
use std::thread::{self, JoinHandle};

/// A thread that is joined when this is dropped, except where the thread itself drops it: a geom
/// may go with the last request, on the thread that completes it.
#[derive(Debug)]
#[must_use = "dropping it waits for the thread"]
pub struct OwnThread(Option<JoinHandle<()>>);

impl OwnThread {
    /// Starts a thread of this name, which the system cuts after 15 bytes.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self(Some(thread)))
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}
