//! Lines of the log about clients that do wrong: as many as a person can read, and then how many
//! there were more.

use super::Log;
use std::fmt;
use std::sync::Arc;
use ugeom_machine::clock;
use ugeom_machine::mutex::Mutex;

/// Lines in a row before the limit counts.
const BURST: u64 = 20;

/// One line more after so many nanoseconds.
const PER_LINE_NS: u64 = 1_000_000_000;

/// The log of one server, for all its threads.
#[derive(Clone)]
pub(super) struct Complaints {
    log: Log,
    bucket: Arc<Mutex<Bucket>>,
}

/// How many lines may be written.
struct Bucket {
    lines: u64,
    since_ns: u64,
    left_out: u64,
}

impl Bucket {
    fn new(now_ns: u64) -> Self {
        Self {
            lines: BURST,
            since_ns: now_ns,
            left_out: 0,
        }
    }

    /// Whether a line may be written now: if so, how many were left out before it.
    fn take(&mut self, now_ns: u64) -> Option<u64> {
        let more = now_ns.saturating_sub(self.since_ns) / PER_LINE_NS;
        self.since_ns += more * PER_LINE_NS;
        self.lines = (self.lines + more).min(BURST);
        if self.lines == 0 {
            self.left_out += 1;
            return None;
        }
        self.lines -= 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Complaints {
    pub fn new(log: &Log) -> Self {
        Self {
            log: Arc::clone(log),
            bucket: Arc::new(Mutex::new(Bucket::new(clock::now_ns()))),
        }
    }

    /// Writes a line about a client, if there is room for it.
    pub fn say(&self, line: fmt::Arguments<'_>) {
        let now_ns = clock::now_ns();
        let taken = self.bucket.lock().take(now_ns);
        let Some(left_out) = taken else { return };
        if left_out > 0 {
            let lines = if left_out == 1 { "line" } else { "lines" };
            (self.log)(&format!("nbd: {left_out} {lines} like these left out"));
        }
        (self.log)(&format!("nbd: {line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_and_counted() {
        let mut bucket = Bucket::new(0);
        let written = (0..1000).filter(|_| bucket.take(0).is_some()).count();
        assert_eq!(written as u64, BURST);
        assert_eq!(bucket.take(PER_LINE_NS - 1), None);
        assert_eq!(bucket.take(PER_LINE_NS), Some(1000 - BURST + 1));
        assert_eq!(bucket.take(PER_LINE_NS), None);
        assert_eq!(bucket.take(3 * PER_LINE_NS), Some(1));
        assert_eq!(bucket.take(3 * PER_LINE_NS), Some(0));
    }
}
