//! A thread's own link to the server.

use super::Remote;
use super::link::Link;
use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use ugeom_stack::{Bio, Completions, Errno, ThreadState};

/// The link of one thread.
pub(super) struct ThreadLink(Link);

impl ThreadLink {
    pub fn new(remote: &Arc<Remote>) -> Result<Self, Errno> {
        Link::new(remote).map(Self)
    }

    pub fn submit(&mut self, bio: Bio) {
        self.0.submit(bio);
    }
}

impl ThreadState for ThreadLink {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn poll(&mut self, completions: &mut Completions<'_>) {
        self.0.poll(&mut |bio, result| match result {
            Ok(bytes) => completions.push(bio, Ok(bytes)),
            Err((errno, why)) => completions.push_failed(bio, errno, why),
        });
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn look_out_ns(&self) -> u64 {
        self.0.look_out_ns()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.wait_fd())
    }
}
