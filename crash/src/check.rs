//! The question to a state.

use crate::disk::Disk;
use crate::error::CrashError;

/// A check: examines the disk, which it may also write to, and returns its findings.
pub trait Check: Sync {
    /// The resources of one lane (servers, mounts, scratch files).
    type Lane;

    /// Prepares a lane, whose states will all be shown on `disk`.
    ///
    /// # Errors
    /// The lane cannot be made.
    fn lane(&self, number: usize, disk: &Disk) -> Result<Self::Lane, CrashError>;

    /// The keys that are there, or the defect in words.
    ///
    /// # Errors
    /// The question could not be asked.
    fn check(
        &self,
        lane: &mut Self::Lane,
        disk: &Disk,
    ) -> Result<Result<Vec<String>, String>, CrashError>;
}

struct Closure<F>(F);

impl<F> Check for Closure<F>
where
    F: Fn(&Disk) -> Result<Vec<String>, String> + Sync,
{
    type Lane = ();

    fn lane(&self, _number: usize, _disk: &Disk) -> Result<(), CrashError> {
        Ok(())
    }

    fn check(
        &self,
        _lane: &mut (),
        disk: &Disk,
    ) -> Result<Result<Vec<String>, String>, CrashError> {
        Ok((self.0)(disk))
    }
}

/// A check that is a closure: it returns the keys that it found, or the defect.
pub fn answer<F>(ask: F) -> impl Check<Lane = ()>
where
    F: Fn(&Disk) -> Result<Vec<String>, String> + Sync,
{
    Closure(ask)
}
