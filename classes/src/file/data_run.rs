//! The run of data that lseek(2) found last.
//!
//! A server asks before each long READ whether it lies in a hole, and SEEK_HOLE may take its time:
//! tmpfs walks all pages of the run (0.9 ms for 256 MiB), a network file system asks its server. So
//! a run is remembered for a second. A hole that another program punches into it meanwhile does no
//! harm: it counts as data, which reads as zeroes. Holes are not remembered.

use std::ops::Range;
use ugeom_machine::clock;
use ugeom_machine::mutex::Mutex;

/// How long a run is remembered, ns.
const KEPT_NS: u64 = 1_000_000_000;

/// The run that a file shares among its threads.
#[derive(Default)]
pub(super) struct DataRun(Mutex<KnownRun>);

#[derive(Default)]
struct KnownRun {
    run: Range<u64>,
    found_ns: u64,
    /// How many holes this program has made.
    changes: u64,
}

impl DataRun {
    /// Where the run ends that `at` is in; else the number of changes, for [`DataRun::keep`].
    pub fn end_of(&self, at: u64) -> Result<u64, u64> {
        let state = self.0.lock();
        let is_known =
            state.run.contains(&at) && clock::now_ns().saturating_sub(state.found_ns) < KEPT_NS;
        match is_known {
            true => Ok(state.run.end),
            false => Err(state.changes),
        }
    }

    /// Remembers a run that was looked for after so many changes.
    pub fn keep(&self, run: Range<u64>, changes: u64) {
        let mut state = self.0.lock();
        if state.changes == changes {
            state.run = run;
            state.found_ns = clock::now_ns();
        }
    }

    /// This program has made a hole.
    pub fn changed(&self) {
        let mut state = self.0.lock();
        state.changes += 1;
        state.run = 0..0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_found_before_a_change_is_not_kept() {
        let known = DataRun::default();
        let before = known.end_of(0).expect_err("nothing is known");
        known.keep(4096..8192, before);
        assert_eq!(known.end_of(4096), Ok(8192));
        assert_eq!((known.end_of(0), known.end_of(8192)), (Err(0), Err(0)));
        known.changed();
        assert_eq!(known.end_of(4096), Err(1));
        known.keep(4096..8192, before);
        assert_eq!(known.end_of(4096), Err(1));
    }
}
