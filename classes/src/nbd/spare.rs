//! A connection that no link uses, kept for the next link that needs one: at first that over which
//! the server told of the export, later that of a link whose thread has ended.
//!
//! A server may end with its last client, as qemu-nbd does without `--persistent`, or admit one
//! client only: leaving and connecting again would find no server.

use super::connect::leave;
use ugeom_machine::mutex::Mutex;
use ugeom_tls::Stream;

/// A connection in the transmission phase, over which nothing is in flight or unflushed.
pub(super) struct Resting {
    pub stream: Stream,
    /// The number of `base:allocation` on it.
    pub allocation: Option<u32>,
}

/// A connection until a link takes it.
pub(super) struct Spare(Mutex<Option<Resting>>);

impl Spare {
    pub fn new(stream: Stream, allocation: Option<u32>) -> Self {
        Self(Mutex::new(Some(Resting { stream, allocation })))
    }

    pub fn take(&self) -> Option<Resting> {
        self.0.lock().take()
    }

    /// True while there is one.
    pub fn is_kept(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Keeps this connection, and leaves the one that was kept.
    pub fn keep(&self, resting: Resting) {
        let before = self.0.lock().replace(resting);
        if let Some(mut before) = before {
            leave(&mut before.stream);
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(mut resting) = self.take() {
            leave(&mut resting.stream);
        }
    }
}
