//! Locks on byte ranges of a provider, shared by all its users, over NBD and FUSE.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{ProviderId, RangeLock};

/// The locks of a stack's providers. Servers of the same stack share one of these: without it a
/// client of one could undo what a client of another has written to a part of the same sector.
#[derive(Clone, Default)]
pub struct Ranges {
    locks: Arc<Mutex<HashMap<ProviderId, Arc<RangeLock>>>>,
}

impl Ranges {
    /// The lock of a provider.
    #[must_use]
    pub fn of(&self, provider: ProviderId) -> Arc<RangeLock> {
        let mut locks = self.locks.lock();
        // Unused locks of providers are dropped.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(provider).or_default())
    }
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ranges")
    }
}
