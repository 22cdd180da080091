//! The profile: a flat table with gprof's columns, as the mail of 2006 prints it, of the cache's
//! own steps.
//!
//! gprof puts a clock into every function and so distorts its measurement (its `mcount`,
//! `mexitcount` and `cputime` took a quarter to a half of the time in 2006). Here no step is timed:
//! the same reads are run with steps left out, and a step is the difference. The clock is read
//! twice a run, which is the row `clock`.

use super::findings::Table;
use super::names::{self, HitStep};
use super::orders::Order;
use super::subject::{Document, MAIN_BLOCK_BYTES};
use std::fmt::Write as _;
use ugeom_measure::units::size_human;

/// A row before the shares are known.
struct Step {
    name: &'static str,
    calls: f64,
    self_ns: f64,
    total_ns: f64,
}

/// A profile: the reads, and its table.
pub struct Profile {
    /// The data that was read, and the way.
    pub title: String,
    steps: Vec<Step>,
}

impl Profile {
    /// The table in gprof's form, as the mail of 2006 shows it.
    pub fn text(&self) -> String {
        let ns = |step: &Step| step.calls * step.self_ns;
        let mut steps: Vec<&Step> = self.steps.iter().collect();
        steps.sort_by(|a, b| ns(b).total_cmp(&ns(a)));
        let whole: f64 = steps.iter().map(|step| ns(step)).sum();
        let mut out = String::from(
            "  %   cumulative   self              self     total\n \
             time   seconds   seconds    calls  ns/call  ns/call  name\n",
        );
        let mut cumulative = 0.0;
        for step in steps {
            let seconds = ns(step) * 1e-9;
            cumulative += seconds;
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{:5.1} {cumulative:10.3} {seconds:8.3} {:9.0} {:8.1} {:8.1}  {}",
                100.0 * ns(step) / whole.max(1e-9),
                step.calls,
                step.self_ns,
                step.total_ns,
                step.name
            );
        }
        out
    }

    /// The time of all calls of a step in itself, as a share of that of another.
    pub fn share_of(&self, name: &str, of: &str) -> Option<f64> {
        let ns = |name: &str| {
            let step = self.steps.iter().find(|step| step.name == name)?;
            Some(step.calls * step.self_ns)
        };
        Some(ns(name)? / ns(of)?).filter(|share| share.is_finite())
    }
}

/// All profiles of a document: hits and recycled buffers, both indexes, both sizes, both orders.
pub fn profiles(document: &Document) -> Vec<Profile> {
    let table = Table::of(document);
    let mut out = Vec::new();
    for &read in document.subject.reads_bytes.iter().rev() {
        for order in [Order::Shuffled, Order::Sequential] {
            for index in ["hash", "splay"] {
                let way = names::class(index, MAIN_BLOCK_BYTES);
                out.extend(hits(document, &table, &way, read, order));
                out.extend(recycled(document, &table, &way, read, order));
            }
        }
    }
    out
}

/// Iterations of a case over all rounds, and runs.
fn iterations(document: &Document, case: &str) -> Option<(f64, f64)> {
    let (mut iterations, mut runs) = (0, 0);
    for process in &document.processes {
        let index = process.cases.iter().position(|name| name == case)?;
        for round in &process.rounds {
            iterations += round.samples.get(index)?.iterations;
            runs += 1;
        }
    }
    (iterations > 0).then_some((iterations as f64, f64::from(runs)))
}

/// How often the device below was read for one read above.
fn reads_below(document: &Document, case: &str) -> Option<f64> {
    let (mut below, mut above) = (0, 0);
    for process in &document.processes {
        let index = process.cases.iter().position(|name| name == case)?;
        for round in &process.rounds {
            let sample = round.samples.get(index)?;
            below += sample.device?.reads;
            above += sample.iterations;
        }
    }
    (above > 0).then(|| below as f64 / above as f64)
}

/// Lookup, copyout and the loop around them: what a hit has whatever is around it. Differences of
/// measured times may come out below nothing, which no step is.
fn common(table: &Table, way: &str, read: u64, order: Order, calls: f64) -> Option<Vec<Step>> {
    let with_copy = names::steps(HitStep::LookupAndCopy, way, read, order);
    let without = names::steps(HitStep::Lookup, way, read, order);
    let step = |name, self_ns: f64| Step {
        name,
        calls,
        self_ns: self_ns.max(0.0),
        total_ns: self_ns.max(0.0),
    };
    Some(vec![
        step("copyout", table.difference(&with_copy, &without)?),
        step("lookup", table.difference(&without, names::LOOP)?),
        step("loop", table.typical(names::LOOP)?.estimate),
    ])
}

fn clock(table: &Table, runs: f64) -> Option<Step> {
    let cost_ns = table.typical(names::CLOCK)?.estimate;
    Some(Step {
        name: "clock",
        calls: 2.0 * runs,
        self_ns: cost_ns,
        total_ns: cost_ns,
    })
}

/// The read itself, with what no inner step took, and the clock.
fn outermost(
    table: &Table,
    (calls, runs): (f64, f64),
    total_ns: f64,
    inner_ns: f64,
) -> Option<[Step; 2]> {
    let read = Step {
        name: "read (the path of the request)",
        calls,
        self_ns: (total_ns - inner_ns).max(0.0),
        total_ns,
    };
    Some([read, clock(table, runs)?])
}

fn hits(document: &Document, table: &Table, way: &str, read: u64, order: Order) -> Option<Profile> {
    let case = names::hits(way, read, order);
    let (calls, runs) = iterations(document, &case)?;
    let total_ns = table.typical(&case)?.estimate;
    let mut steps = common(table, way, read, order, calls)?;
    let inner_ns: f64 = steps.iter().map(|step| step.self_ns).sum();
    steps.extend(outermost(table, (calls, runs), total_ns, inner_ns)?);
    let title = format!(
        "Hits, {way}, reads of {}, {}",
        size_human(read),
        order.word()
    );
    Some(Profile { title, steps })
}

fn recycled(
    document: &Document,
    table: &Table,
    way: &str,
    read: u64,
    order: Order,
) -> Option<Profile> {
    let case = names::recycled(way, read, order);
    let (calls, runs) = iterations(document, &case)?;
    let misses = reads_below(document, &case)?;
    let total_ns = table.typical(&case)?.estimate;
    // The memory disk is read a block at a time, in the order in which the blocks come.
    let below_ns = table
        .typical(&names::recycled("md", MAIN_BLOCK_BYTES, order))?
        .estimate;
    let miss_ns = table.typical(&names::miss(way))?.estimate;
    let mut steps = common(table, way, read, order, calls)?;
    let mut add = |name, self_ns, total_ns| {
        let calls = calls * misses;
        steps.push(Step {
            name,
            calls,
            self_ns,
            total_ns,
        });
    };
    add("md (the read below)", below_ns, below_ns);
    add("getnewbuf", miss_ns, miss_ns);
    let inner_ns: f64 = steps
        .iter()
        .map(|step| step.self_ns * step.calls / calls)
        .sum();
    steps.extend(outermost(table, (calls, runs), total_ns, inner_ns)?);
    let title = format!(
        "Buffers recycled ({:.0} reads below for 100), {way}, reads of {}, {}",
        misses * 100.0,
        size_human(read),
        order.word()
    );
    Some(Profile { title, steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_gprofs_columns_and_adds_up() {
        let step = |name, calls, self_ns, total_ns| Step {
            name,
            calls,
            self_ns,
            total_ns,
        };
        // The published rows of 2006.
        let profile = Profile {
            title: String::new(),
            steps: vec![
                step("getnewbuf", 21_852.0, 595.0, 3725.0),
                step("copyout", 25_643.0, 22_037.0, 22_037.0),
                step("buf_splay", 112_906.0, 715.0, 715.0),
            ],
        };
        let text = profile.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[1].ends_with("time   seconds   seconds    calls  ns/call  ns/call  name"));
        assert!(
            lines[2].ends_with("25643  22037.0  22037.0  copyout"),
            "{text}"
        );
        assert!(
            lines[3].contains("0.646    0.081    112906    715.0"),
            "{text}"
        );
        assert!(
            lines[4].contains("0.659    0.013     21852    595.0   3725.0"),
            "{text}"
        );
        let share = profile.share_of("buf_splay", "copyout").unwrap();
        assert!((share - 0.143).abs() < 0.001);
        assert_eq!(profile.share_of("vm_page_splay", "copyout"), None);
    }
}
