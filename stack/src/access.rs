//! Access counts, and GEOM's rules for changing them (`g_access(9)`).

use crate::error::Errno;
use std::fmt;

/// How many hold a provider open: for reading, for writing, exclusively (`rRwWeE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Opens for reading that are held.
    pub read: u32,
    /// Opens for writing that are held.
    pub write: u32,
    /// Holders of exclusive access.
    pub exclusive: u32,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}w{}e{}", self.read, self.write, self.exclusive)
    }
}

/// A change of access counts; negative closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Change of the readers.
    pub read: i32,
    /// Change of the writers.
    pub write: i32,
    /// Change of the exclusive holders.
    pub exclusive: i32,
}

impl Delta {
    /// Open for reading: `r1w0e0`.
    pub const READ: Self = Self {
        read: 1,
        write: 0,
        exclusive: 0,
    };
    /// Open for reading and writing: `r1w1e0`.
    pub const READ_WRITE: Self = Self {
        read: 1,
        write: 1,
        exclusive: 0,
    };
    /// Open for reading and writing, with no other writer: `r1w1e1`.
    pub const EXCLUSIVE: Self = Self {
        read: 1,
        write: 1,
        exclusive: 1,
    };

    /// [`Delta::READ_WRITE`] for a user that writes, else [`Delta::READ`].
    pub const fn of_user(writes: bool) -> Self {
        if writes { Self::READ_WRITE } else { Self::READ }
    }

    /// The change that takes this one back.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            read: -self.read,
            write: -self.write,
            exclusive: -self.exclusive,
        }
    }

    /// True when it opens nothing.
    pub const fn only_closes(self) -> bool {
        self.read <= 0 && self.write <= 0 && self.exclusive <= 0
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}w{}e{}", self.read, self.write, self.exclusive)
    }
}

impl Counts {
    /// The counts after a change.
    ///
    /// # Errors
    /// EINVAL when one would go below zero (GEOM asserts that it does not).
    pub fn after(self, delta: Delta) -> Result<Self, Errno> {
        let add = |count: u32, change: i32| count.checked_add_signed(change).ok_or(Errno::INVAL);
        Ok(Self {
            read: add(self.read, delta.read)?,
            write: add(self.write, delta.write)?,
            exclusive: add(self.exclusive, delta.exclusive)?,
        })
    }

    /// The provider's totals without those of one consumer.
    #[must_use]
    pub fn without(self, consumer: Self) -> Self {
        Self {
            read: self.read.saturating_sub(consumer.read),
            write: self.write.saturating_sub(consumer.write),
            exclusive: self.exclusive.saturating_sub(consumer.exclusive),
        }
    }
}

/// The rules' view of the consumer and its provider.
pub(crate) struct Situation {
    /// The sum over the provider's consumers.
    pub provider: Counts,
    /// The consumer's own counts.
    pub consumer: Counts,
    /// The consumer was spoiled, and its geom does not survive that.
    pub spoiled: bool,
    /// The provider's error, if it has one.
    pub error: Option<Errno>,
}

/// Checks a change by GEOM's rules, in GEOM's order.
///
/// # Errors
/// The errno, and which rule it is in plain words.
pub(crate) fn check(now: &Situation, delta: Delta) -> Result<(), (Errno, &'static str)> {
    if now.consumer.after(delta).is_err() {
        return Err((Errno::INVAL, "closes more than was opened"));
    }
    if delta.only_closes() {
        return Ok(());
    }
    let others = now.provider.without(now.consumer);
    if now.spoiled {
        return Err((
            Errno::NXIO,
            "its metadata may have been overwritten by a writer",
        ));
    }
    if delta.exclusive > 0 && others.write > 0 {
        return Err((Errno::PERM, "exclusive access, but it is open for writing"));
    }
    if delta.write > 0 && others.exclusive > 0 {
        return Err((Errno::PERM, "write access, but it is opened exclusively"));
    }
    match now.error {
        Some(errno) => Err((errno, "the provider is destroyed or failed")),
        None => Ok(()),
    }
}
