//! The log of histograms (`write_hist_log`), as fio writes it (fio(1), "write_hist_log"): a line
//! for each window and kind of request, `time (ms), direction, block size, count of each bin ...`.
//!
//! Bins are fio's: 128 of 1 ns, then 64 for each doubling, 29 groups of 64 in all; with
//! `log_hist_coarseness=N` 2^N of them are one. A window that is not full at the end is left out.

use ugeom_load::door::Request;

use std::fmt::Write as _;

/// Groups of bins (`FIO_IO_U_PLAT_GROUP_NR`) times bins of a group.
const BINS: usize = 29 << GROUP_BITS;
const GROUP_BITS: u32 = 6;

/// The bin of a latency, ns.
fn bin(ns: u64) -> usize {
    let shift = u64::BITS - 1 - GROUP_BITS - (ns | ((2 << GROUP_BITS) - 1)).leading_zeros();
    (((shift as usize) << GROUP_BITS) + (ns >> shift) as usize).min(BINS - 1)
}

/// Latencies of one kind of request since the last line.
#[derive(Clone, Debug)]
struct Window {
    counts: Vec<u64>,
    /// When it began: with the first request.
    begin_ms: Option<u64>,
}

/// The log of a job.
#[derive(Clone, Debug)]
pub struct Histograms {
    text: String,
    windows: [Window; 3],
    window_ms: u64,
    coarseness: u32,
    epoch_ms: u64,
}

impl Histograms {
    /// A line each `window_ms`, none for 0; 2^`coarseness` bins are one. Times count from
    /// `epoch_ms`.
    pub fn new(window_ms: u64, coarseness: u32, epoch_ms: u64) -> Self {
        let window = Window {
            counts: vec![0; BINS],
            begin_ms: None,
        };
        Self {
            text: String::new(),
            windows: [window.clone(), window.clone(), window],
            window_ms,
            coarseness,
            epoch_ms,
        }
    }

    /// A request of `kind` took `clat_ns` and ended `at_ns` after the start.
    pub fn add(&mut self, at_ns: u64, kind: usize, request: &Request, clat_ns: u64) {
        let at_ms = at_ns / 1_000_000;
        let window = &mut self.windows[kind];
        window.counts[bin(clat_ns)] += 1;
        let begin_ms = *window.begin_ms.get_or_insert(at_ms);
        let length_ms = at_ms.saturating_sub(begin_ms);
        if self.window_ms == 0 || length_ms < self.window_ms {
            return;
        }
        // A delay is subtracted from the next window.
        window.begin_ms = Some(at_ms - (length_ms - self.window_ms));
        let time_ms = self.epoch_ms + at_ms;
        let _ = write!(self.text, "{time_ms}, {kind}, {}", request.length);
        for bins in window.counts.chunks_mut(1 << self.coarseness) {
            let _ = write!(self.text, ", {}", bins.iter().sum::<u64>());
            bins.fill(0);
        }
        self.text.push('\n');
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_load::door::Kind;

    #[test]
    fn bins_are_those_of_fio() {
        // plat_val_to_idx of fio's stat.c, by its own figures.
        for (ns, place) in [
            (0, 0),
            (127, 127),
            (128, 128),
            (129, 128),
            (255, 191),
            (256, 192),
        ] {
            assert_eq!(bin(ns), place, "{ns}");
        }
        assert_eq!(bin(1 << 33), 1792);
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn each_window_has_a_line_with_the_requests_since_the_last() {
        let request = Request {
            kind: Kind::Read,
            file: 0,
            offset: 0,
            length: 4096,
        };
        let mut log = Histograms::new(100, 6, 5000);
        for at_ms in [10, 60, 112, 150, 209, 300] {
            log.add(at_ms * 1_000_000, 0, &request, 3);
        }
        log.add(400_000_000, 1, &request, 200);
        let zeroes = ", 0".repeat(28);
        let lines = format!("5112, 0, 4096, 3{zeroes}\n5300, 0, 4096, 3{zeroes}\n");
        assert_eq!(log.text(), lines);
        // The second window begins at 110, when the first should have ended.
        let mut log = Histograms::new(100, 0, 0);
        for at_ms in [10, 112, 210] {
            log.add(at_ms * 1_000_000, 2, &request, 128);
        }
        let fields: Vec<Vec<&str>> = log
            .text()
            .lines()
            .map(|line| line.split(", ").collect())
            .collect();
        assert_eq!(fields.len(), 2);
        assert!(fields.iter().all(|line| line.len() == 3 + BINS));
        assert_eq!((fields[0][3 + 128], fields[1][3 + 128]), ("2", "1"));
        assert_eq!(fields[1][0], "210");
    }
}
