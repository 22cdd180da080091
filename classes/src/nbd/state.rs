//! A thread's own link to the server.

use super::Remote;
use super::links::{Links, SharedLink};
use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use ugeom_stack::{Bio, Command, Completions, Errno, ThreadState};

/// The link of one thread.
pub(super) struct ThreadLink {
    own: Arc<SharedLink>,
    links: Arc<Links>,
    remote: Arc<Remote>,
}

impl ThreadLink {
    pub fn new(remote: &Arc<Remote>, links: &Arc<Links>) -> Result<Self, Errno> {
        let own = links.add(remote)?;
        let (links, remote) = (Arc::clone(links), Arc::clone(remote));
        Ok(Self { own, links, remote })
    }

    pub fn submit(&mut self, bio: Bio) {
        let flushes = bio.command() == Command::Flush;
        let all = flushes && self.links.others_are_unflushed(&self.own);
        if all || self.links.is_shared() {
            self.links.submit(bio);
        } else {
            self.own.lock().submit(bio);
        }
    }
}

impl ThreadState for ThreadLink {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn poll(&mut self, completions: &mut Completions<'_>) {
        let mut link = self.own.lock();
        link.poll(&mut |bio, result| match result {
            Ok(bytes) => completions.push(bio, Ok(bytes)),
            Err((errno, why)) => completions.push_failed(bio, errno, why),
        });
        let refused = link.was_refused();
        let answered = link.flush_has_ended();
        let gives = link.holds_any() && self.links.is_shared();
        drop(link);
        if refused {
            self.links.refused(&self.remote, &self.own);
        }
        if answered || gives {
            self.links.answered();
        }
    }

    fn in_flight(&self) -> usize {
        self.own.lock().in_flight()
    }

    fn poll_ns(&self) -> u64 {
        self.own.lock().poll_ns()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.own.wait_fd())
    }
}

impl Drop for ThreadLink {
    fn drop(&mut self) {
        self.links.leave(&self.own);
    }
}
