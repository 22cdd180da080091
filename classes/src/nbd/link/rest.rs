//! A link takes over the connection that the last one has left, and leaves its own to the next.

use super::{Link, Stage};
use crate::nbd::connect::leave;
use crate::nbd::spare::Resting;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use ugeom_engine::reactor::Interest;
use ugeom_stack::Bio;
use ugeom_tls::Stream;

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

    /// True once after each handshake that the server seems to refuse for want of room.
    pub fn was_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Requests or a connection are left to be given up.
    pub fn holds_any(&self) -> bool {
        self.live > 0 || self.stream.is_some()
    }

    /// True while the server serves this link.
    pub fn is_connected(&self) -> bool {
        let (Stage::Up, Some(stream)) = (&self.stage, &self.stream) else { return false };
        let mut fds = [PollFd::new(stream.fd(), PollFlags::RDHUP)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut fds, Some(&now)).is_ok_and(|closed| closed == 0)
    }

    /// The requests of a link without a connection, in their order, for another link.
    pub fn give_up_requests(&mut self) -> Vec<Bio> {
        if matches!(self.stage, Stage::Up) || self.live == 0 {
            return Vec::new();
        }
        self.disconnect();
        let mut flights: Vec<_> = self.flights.drain(..).flatten().collect();
        flights.sort_unstable_by_key(|flight| flight.number);
        self.free.clear();
        self.queue.clear();
        self.live = 0;
        flights.into_iter().map(|flight| flight.bio).collect()
    }

    /// Leaves the connection to the next link. False while that would lose something.
    pub fn leave_connection(&mut self) -> bool {
        if !matches!(self.stage, Stage::Up) {
            return true;
        }
        if self.needs_connection() {
            return false;
        }
        let stream = self.disconnect();
        if let Some(stream) = stream {
            let allocation = self.allocation;
            self.remote.spare.keep(Resting { stream, allocation });
        }
        true
    }

    /// Something is in flight, on its way, or unflushed.
    fn needs_connection(&self) -> bool {
        let waits = self.stream.as_ref().is_some_and(|stream| stream.waits());
        let sends = !self.out.is_empty() || waits;
        self.is_busy() || sends || self.durability.is_unflushed() || !self.replies.is_at_rest()
    }

    /// The connection, which is not watched any more.
    fn disconnect(&mut self) -> Option<Stream> {
        if let Some(source) = self.source.take() {
            self.reactor.deregister(source);
        }
        self.stage = Stage::Down { again_ns: 0 };
        (self.out, self.sent) = (Vec::new(), 0);
        self.stream.take()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.forget_flushes();
        if !self.leave_connection()
            && let Some(mut stream) = self.disconnect()
        {
            leave(&mut stream);
        }
    }
}
