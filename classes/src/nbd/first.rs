//! The connection over which the server told of the export, kept for the first link that needs one.
//!
//! A server may end with its first client, as qemu-nbd does without `--persistent`, or admit one
//! client only: leaving and connecting again would find no server.

use super::connect::leave;
use std::sync::{Mutex, PoisonError};
use ugeom_tls::Stream;

/// A connection in the transmission phase, until a link takes it.
pub(super) struct First(Mutex<Option<Stream>>);

impl First {
    pub fn new(stream: Stream) -> Self {
        Self(Mutex::new(Some(stream)))
    }

    pub fn take(&self) -> Option<Stream> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if let Some(mut stream) = self.take() {
            leave(&mut stream);
        }
    }
}
