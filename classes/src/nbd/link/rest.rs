//! A link takes over the connection that the last one has left, and leaves its own to the next.

use super::{Link, Stage};
use crate::nbd::connect::leave;
use crate::nbd::spare::Resting;
use std::sync::Arc;
use ugeom_engine::reactor::Interest;

impl Link {
    /// Takes the connection over that no other link uses. False when there is none, or where the
    /// server is known to be gone: only a new connection shows that it is back.
    pub(super) fn resume(&mut self) -> Result<bool, &'static str> {
        let resting = self.remote.spare.take();
        let Some(resting) = resting.filter(|_| !self.together.is_gone()) else {
            return Ok(false);
        };
        self.adopt(resting.stream, Interest::READ)?;
        self.come_up(&Arc::clone(&self.remote).facts)?;
        self.allocation = resting.allocation;
        Ok(true)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.forget_flushes();
        if let Some(source) = self.source.take() {
            self.reactor.deregister(source);
        }
        let (Stage::Up, Some(mut stream)) = (&self.stage, self.stream.take()) else { return };
        let sends = !self.out.is_empty() || stream.waits();
        if self.is_busy() || sends || self.durability.is_unflushed() || !self.replies.is_at_rest() {
            return leave(&mut stream);
        }
        let allocation = self.allocation;
        self.remote.spare.keep(Resting { stream, allocation });
    }
}
