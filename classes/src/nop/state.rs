//! The mapping of `nop` onto the provider below, and the requests that it fails or delays:
//! probabilities, a countdown, and a seed that makes the choice the same in every run.

use crate::draws::{draw, happens};
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_stack::{Command, Errno, Fact};

/// The part of the provider below that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Where it begins, bytes.
    pub offset_bytes: u64,
    /// How much of it was asked for, bytes; 0 for all that there is.
    pub explicit_bytes: u64,
    /// The size of a sector, bytes.
    pub sectorsize_bytes: u32,
}

impl Window {
    /// The size of the media over one of `below_bytes`, in whole sectors.
    pub fn size_bytes(&self, below_bytes: u64) -> u64 {
        let size_bytes = match self.explicit_bytes {
            0 => below_bytes.saturating_sub(self.offset_bytes),
            explicit => explicit,
        };
        size_bytes - size_bytes % u64::from(self.sectorsize_bytes)
    }

    /// The size of the media after the one below has a new size, as `Geom::resize` defines it: a
    /// size given as an option stays, and the geom fails without room for it.
    pub fn resized(&self, below_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        let needed_bytes = self.offset_bytes.saturating_add(self.explicit_bytes);
        (needed_bytes <= below_bytes).then(|| vec![(self.size_bytes(below_bytes), None)])
    }
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is passed on.
    Pass,
    Fail(Errno),
    /// It waits so many nanoseconds, and is then passed on.
    Delay(u64),
}

/// The options that make a `nop` fail and delay requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Probability that a read fails, 0 to 1.
    pub read_fail: f64,
    /// Probability that a write fails, 0 to 1.
    pub write_fail: f64,
    /// The error code.
    pub error: Errno,
    /// Probability that a read which does not fail is delayed, 0 to 1.
    pub read_delay: f64,
    /// Probability that a write which does not fail is delayed, 0 to 1.
    pub write_delay: f64,
    /// How long a delay is, ns.
    pub delay_ns: u64,
    /// How many reads and writes pass before all fail, if that was asked for.
    pub count_until_fail: Option<u64>,
    /// Where the random decisions begin.
    pub seed: u64,
}

impl Default for Faults {
    /// None; gnop's defaults (EIO, 1 ms).
    fn default() -> Self {
        Self {
            read_fail: 0.0,
            write_fail: 0.0,
            error: Errno::IO,
            read_delay: 0.0,
            write_delay: 0.0,
            delay_ns: 1_000_000,
            count_until_fail: None,
            seed: 0,
        }
    }
}

impl Faults {
    /// True when a request may be failed or delayed at all.
    pub fn any(&self) -> bool {
        let chances = [
            self.read_fail,
            self.write_fail,
            self.read_delay,
            self.write_delay,
        ];
        self.count_until_fail.is_some() || chances.iter().any(|chance| *chance > 0.0)
    }
}

/// Decides by the options, and knows how far it has come.
#[derive(Debug)]
pub(super) struct Decider {
    faults: Faults,
    /// Reads and writes that were decided.
    decided: AtomicU64,
}

impl Decider {
    pub const fn new(faults: Faults) -> Self {
        Self {
            faults,
            decided: AtomicU64::new(0),
        }
    }

    /// True when a read may be failed or delayed.
    pub fn decides_reads(&self) -> bool {
        let faults = &self.faults;
        faults.count_until_fail.is_some() || faults.read_fail > 0.0 || faults.read_delay > 0.0
    }

    /// Decides about the next request, in gnop's order: the countdown, the failure, the delay.
    /// Only reads and writes fail or wait; the n-th of them has the same fate in every run.
    pub fn decide(&self, command: Command) -> Decision {
        let faults = &self.faults;
        let (fail, delay) = match command {
            Command::Read => (faults.read_fail, faults.read_delay),
            Command::Write => (faults.write_fail, faults.write_delay),
            _ => return Decision::Pass,
        };
        let number = self.decided.fetch_add(1, Ordering::Relaxed);
        if faults.count_until_fail.is_some_and(|count| number >= count) {
            return Decision::Fail(faults.error);
        }
        if happens(fail, draw(faults.seed, number.wrapping_mul(2))) {
            return Decision::Fail(faults.error);
        }
        if happens(
            delay,
            draw(faults.seed, number.wrapping_mul(2).wrapping_add(1)),
        ) {
            return Decision::Delay(faults.delay_ns);
        }
        Decision::Pass
    }

    /// The facts that `gnop list` shows, by its names (`g_nop_dumpconf`).
    pub fn config(&self) -> Vec<Fact> {
        let faults = &self.faults;
        let count = faults.count_until_fail.map(|count| {
            let decided = self.decided.load(Ordering::Relaxed);
            count.saturating_sub(decided)
        });
        let mut config = vec![
            ("ReadFailProb", percent(faults.read_fail)),
            ("WriteFailProb", percent(faults.write_fail)),
            ("ReadDelayedProb", percent(faults.read_delay)),
            ("WriteDelayedProb", percent(faults.write_delay)),
            ("DelayNs", faults.delay_ns.to_string()),
            ("Error", faults.error.raw_os_error().to_string()),
            ("Seed", faults.seed.to_string()),
        ];
        if let Some(count) = count {
            config.push(("CountUntilFail", count.to_string()));
        }
        config
    }
}

fn percent(probability: f64) -> String {
    format!("{}", probability * 100.0)
}
