//! The cost of tracing: reads of a device with and without a trace, in turns.
//!
//! The difference is the cost of the events only where a request runs in its caller's thread from
//! beginning to end (zram). Elsewhere a trace also changes on which processor a worker wakes, and
//! may even make requests faster.

use crate::link::{Phase, Tree};
use crate::session::{Scope, Session};
use crate::source::Choice;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_measure::{Blocks, Error, Interval};
use ugeom_report::{Cell, Page, Table};

/// Bytes of a read.
const BLOCK: usize = 4096;
/// Rounds, each with one slice of reads of either kind; enough for an interval.
pub const ROUNDS: usize = 20;
/// The length of a slice, ns.
const SLICE_NS: u64 = 20_000_000;
/// Reads of a slice, at least and at most: their events fit into the ring of a processor.
const READS: (usize, usize) = (64, 4096);
const CONFIDENCE: f64 = 0.95;
/// Two times per round, and the unit of the reported differences.
pub(crate) const CASES: [&str; 3] = ["without", "with", "unit"];
/// The position of the unit.
const UNIT: usize = 2;

/// The cost of a trace for a read, from pairs of slices with a trace and without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// The program and its version.
    pub program: String,
    /// Name of the device that was read.
    pub device: String,
    /// Where the events came from.
    pub source: String,
    /// Pairs of slices, one with a trace and one without.
    pub rounds: usize,
    /// Reads of a slice.
    pub reads: usize,
    /// A read without a trace, ns.
    pub read_ns: Interval,
    /// The time that a trace adds to a read, ns; reading the events is excluded.
    pub added_ns: Interval,
    /// Events of a read.
    pub events_per_read: f64,
    /// A read runs in its caller's thread, so that `added_ns` is the cost of its events.
    pub synchronous: bool,
}

/// Why it was not measured.
#[derive(Debug, thiserror::Error)]
pub enum OverheadError {
    /// Reading the device or the events failed.
    #[error("reading: {0}")]
    Read(#[from] io::Error),
    /// No source of events works here, and why.
    #[error("{0}")]
    Source(String),
    /// The user stopped it before there were rounds for an interval.
    #[error("interrupted after {0} rounds")]
    Interrupted(usize),
}

/// Measures on a device of so many bytes.
///
/// # Errors
/// When it cannot be read past the page cache, or no source works.
pub fn measure(
    path: &Path,
    size_bytes: u64,
    (scope, choices): (&Scope, &[Choice]),
    rounds: usize,
    cancelled: &AtomicBool,
) -> Result<Overhead, OverheadError> {
    let mut reader = Reader::open(path, size_bytes)?;
    let trial_ns = reader.slice(READS.0)?;
    let reads = (SLICE_NS as f64 / trial_ns.max(1.0)) as usize;
    let reads = reads.clamp(READS.0, READS.1);
    let mut table = Blocks::new(CASES);
    let (mut events, mut source, mut seen, mut away) = (0, "", 0, 0);
    for round in 0..rounds {
        if cancelled.load(Ordering::Relaxed) {
            return Err(OverheadError::Interrupted(round));
        }
        let mut values = [0.0, 0.0, 1.0];
        for turn in 0..2 {
            let traced = (round + turn) % 2 == 1;
            let session = match traced {
                true => Some(Session::start(scope.clone(), choices)),
                false => None,
            };
            let session = session.transpose().map_err(OverheadError::Source)?;
            reader.slice(READS.0)?;
            values[usize::from(traced)] = reader.slice(reads)?;
            if let Some(session) = session {
                source = session.source();
                let ended = session.finish(&mut |_| {})?;
                events += ended.quality.events + ended.lost;
                // Other programs use the devices below.
                let is_own = |tree: &&Tree| scope.tops.contains(&tree.spans[0].dev);
                let own: Vec<&Tree> = ended.trees.iter().filter(is_own).collect();
                seen += own.len();
                away += own.iter().filter(|tree| leaves(tree)).count();
            }
        }
        let pushed = table.push_round(values.to_vec());
        pushed.map_err(|error| io::Error::other(error.to_string()))?;
    }
    let interval = |weights: &[(usize, f64)]| {
        let effect = table.contrast(weights, CONFIDENCE);
        let effect = effect.map_err(|error| io::Error::other(error.to_string()));
        effect.map(|effect| effect.interval)
    };
    let traced_reads = rounds * (reads + READS.0);
    Ok(Overhead {
        program: concat!("ugeom ", env!("CARGO_PKG_VERSION")).to_owned(),
        device: path.display().to_string(),
        source: source.to_owned(),
        rounds,
        reads,
        read_ns: typical(&table, 0).map_err(|error| io::Error::other(error.to_string()))?,
        added_ns: interval(&[(1, 1.0), (0, -1.0)])?,
        events_per_read: events as f64 / traced_reads as f64,
        // A thread that lost its processor looks as if it had waited; that is rare.
        synchronous: 2 * away < seen,
    })
}

/// The typical (geometric mean) time of a case with its interval, which is above 0 as times are.
pub(crate) fn typical(table: &Blocks, case: usize) -> Result<Interval, Error> {
    Ok(table.typical_ratio(UNIT, case, CONFIDENCE)?.interval)
}

/// Whether a request waits for another thread, or its thread for it.
fn leaves(tree: &Tree) -> bool {
    let is_wait = |phase| matches!(phase, Phase::Worker | Phase::WakeUp);
    let mut phases = tree.spans.iter().flat_map(|span| &span.phases);
    phases.any(|(_, phase)| is_wait(*phase))
}

struct Reader {
    file: std::fs::File,
    blocks: u64,
    next: u64,
    buffer: Buffer,
}

impl Reader {
    fn open(path: &Path, size_bytes: u64) -> io::Result<Self> {
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        let file = std::fs::File::options()
            .read(true)
            .custom_flags(direct)
            .open(path)
            .map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        Ok(Self {
            file,
            blocks: (size_bytes / BLOCK as u64).max(1),
            next: 0,
            buffer: Buffer::new(BLOCK),
        })
    }

    /// The times of reads, ns.
    fn slice(&mut self, reads: usize) -> io::Result<f64> {
        let start_ns = clock::now_ns();
        for _ in 0..reads {
            // Steps that no readahead follows.
            self.next = (self.next + 7919) % self.blocks;
            self.file
                .read_exact_at(&mut self.buffer, self.next * BLOCK as u64)?;
        }
        Ok((clock::now_ns() - start_ns) as f64 / reads as f64)
    }
}

impl Overhead {
    /// The cost of an event, ns, where it can be told.
    pub fn event_ns(&self) -> Option<Interval> {
        let can = self.synchronous && self.events_per_read > 0.0;
        can.then(|| self.added_ns.scaled(1.0 / self.events_per_read))
    }

    /// The result as a page, for every form of output.
    pub fn page(&self) -> Page {
        let device = &self.device;
        let mut page = Page::new("overhead", &format!("ugeom trace {device} --overhead"));
        page.question = format!("How much time does a trace add to a read of {device}?");
        let Interval {
            estimate,
            low,
            high,
            ..
        } = self.added_ns;
        let added = format!("A trace adds {estimate:.0} ns ({low:.0} to {high:.0}) to a read");
        page.answer = match self.event_ns() {
            Some(event) => format!(
                "{added}: {:.0} ns ({:.0} to {:.0}) per event.",
                event.estimate, event.low, event.high
            ),
            None => format!(
                "{added}. Requests of this device wait for other threads, so this is not the cost \
                 of events. Measure that on zram."
            ),
        };
        page.fact("source", self.source.clone());
        page.fact(
            "measured",
            format!(
                "{} rounds of {} reads with and without",
                self.rounds, self.reads
            ),
        );
        let mut table = Table::headed("", "what", "value (ns)");
        let mut row = |what: &str, interval: &Interval| {
            table.row([Cell::text(what), Cell::interval(interval, 0)]);
        };
        row("a read without a trace", &self.read_ns);
        row("added by a trace", &self.added_ns);
        if let Some(event) = self.event_ns() {
            row("an event", &event);
        }
        page.push(table);
        page.paragraph(format!("{:.1} events per read.", self.events_per_read));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_below_0() {
        let mut table = Blocks::new(CASES);
        for time in [20.0, 22.0, 21.0, 400.0] {
            table.push_round(vec![time, time, 1.0]).unwrap();
        }
        assert!(table.contrast(&[(0, 1.0)], 0.95).unwrap().interval.low < 0.0);
        let Interval { low, estimate, .. } = typical(&table, 0).unwrap();
        assert!(0.0 < low && low < estimate, "{low} {estimate}");
    }

    #[test]
    fn the_cost_of_an_event_is_told_of_synchronous_devices_only() {
        let exact = |ns| Interval::exact(ns, 0.95);
        let mut overhead = Overhead {
            program: String::new(),
            device: "/dev/zram0".to_owned(),
            source: "bpf".to_owned(),
            rounds: 20,
            reads: 1000,
            read_ns: exact(2500.0),
            added_ns: exact(300.0),
            events_per_read: 2.0,
            synchronous: true,
        };
        assert_eq!(overhead.event_ns().unwrap().estimate, 150.0);
        let text = overhead.page().to_text(100);
        assert!(text.contains("150 ns"), "{text}");
        overhead.synchronous = false;
        assert_eq!(overhead.event_ns(), None);
        let text = overhead.page().to_text(100);
        assert!(text.contains("not the cost of events"), "{text}");
    }
}
