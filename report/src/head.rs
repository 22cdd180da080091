//! The head of every report: on what machine, of what target, with what noise, how much was
//! measured, what was shortened or failed, and what makes the figures doubtful.

use crate::text::{counted, paragraph};
use ugeom_harness::document::Document;
use ugeom_harness::figure::{Unit, value};
use ugeom_harness::{Ended, NullFloor};
use ugeom_measure::units::duration_human;

/// The column at which the head's words begin.
const INDENT: usize = 10;

/// The thread must have had a core for this share of the time, or the figures are doubtful.
const UNDISTURBED_SHARE: f64 = 0.97;

/// Cores that were taken away for more than this share of the time make figures doubtful, per cent.
const STEAL_PERCENT_MAX: f64 = 1.0;

/// One line of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is about, in one word.
    pub word: &'static str,
    /// What there is to say.
    pub text: String,
}

/// The head of a document. `left_out` names what was not measured, and why.
pub fn entries<S>(document: &Document<S>, left_out: &[String]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut add = |word, text: String| entries.push(Entry { word, text });
    add("machine", document.host.to_string());
    if let Some(target) = &document.target {
        add("target", format!("{}: {target}", target.path));
    }
    if let Some(wakeups) = &document.host.wakeups {
        let mut text = format!("there and back {wakeups}");
        if wakeups.placement_matters() && document.host.cores_allowed > 1 {
            text += "; where one request waits for another thread or a device, its time depends \
                     on the cores that the system chooses (`taskset -c 0` binds both to one)";
        }
        add("wake-ups", text);
    }
    add("noise", noise(document));
    add("measured", measured(document, left_out));
    let failures = document
        .processes
        .iter()
        .filter_map(|one| one.failure.as_ref());
    for failure in failures {
        let text = format!("{} failed: {}", failure.cell, failure.error);
        add("FAILED", text + "; what was measured before is kept");
    }
    let doubts = doubts(document);
    if !doubts.is_empty() {
        add("doubtful", format!("{}.", doubts.join("; ")));
    }
    entries
}

/// The head as text.
pub fn text<S>(document: &Document<S>, left_out: &[String]) -> String {
    let entries = entries(document, left_out);
    entries
        .iter()
        .map(|one| entry(one.word, &one.text))
        .collect()
}

/// A word, and what it says, in a column of its own.
fn entry(word: &str, text: &str) -> String {
    let column = paragraph(text, INDENT, INDENT);
    format!("{word:INDENT$}{}", column.trim_start())
}

fn noise<S>(document: &Document<S>) -> String {
    let mut text = match &document.noise {
        Some(noise) => format!("A/A: {noise}"),
        None => "A/A: too few rounds to say".to_owned(),
    };
    let floor = |id: &str| document.figure(id).map(|figure| figure.estimate());
    let rounds = document.processes.iter().flat_map(|one| &one.rounds);
    let floors: Vec<NullFloor> = rounds.filter_map(|round| round.null_floor).collect();
    let mean = NullFloor::mean(&floors);
    let of_rounds = |part: fn(NullFloor) -> f64| mean.map(|mean| value(part(mean), Unit::Ns));
    // Some experiments measure the floor among their cells, which is more exact.
    if let Some(cost) = floor("floor.loop").or_else(|| of_rounds(|mean| mean.loop_ns)) {
        text.push_str(&format!("; an empty loop takes {cost} a turn"));
    }
    if let Some(cost) = floor("floor.clock").or_else(|| of_rounds(|mean| mean.clock_ns)) {
        text.push_str(&format!(", reading the clock {cost}"));
    }
    text
}

fn measured<S>(document: &Document<S>, left_out: &[String]) -> String {
    let cells = document.processes.first().map_or(0, |one| one.cells.len());
    let elapsed_ns = document.processes.iter().map(|one| one.elapsed_ns as f64);
    let processes = match document.processes.len() {
        1 => "one process".to_owned(),
        many => format!("{many} processes"),
    };
    let mut text = format!(
        "{} of {} in {processes} and {}; each round in a random order of its own (seed {})",
        counted(document.rounds(), "round"),
        counted(cells as u64, "cell"),
        duration_human(elapsed_ns.sum()),
        document.settings.seed
    );
    let Some(first) = document.processes.first() else {
        return text;
    };
    match (first.ended, &first.precision) {
        (Ended::Cancelled, _) => text.push_str("; stopped by you"),
        (Ended::Failed, _) => text.push_str("; ended by a failure"),
        (Ended::Precise, Some(worst)) => {
            let percent = value(worst.relative * 100.0, Unit::Percent);
            text.push_str(&format!("; every mean is known to {percent} or better"));
        }
        (_, Some(worst)) => {
            let percent = value(worst.relative * 100.0, Unit::Percent);
            text.push_str(&format!(
                "; the mean known least, of {}, is known to {percent}",
                worst.cell
            ));
        }
        _ => {}
    }
    if let Some(shortened) = shortened(document) {
        text.push_str(&shortened);
    }
    for left_out in left_out {
        text.push_str(&format!("; left out: {left_out}"));
    }
    text
}

/// What was shortened to fit the budget.
fn shortened<S>(document: &Document<S>) -> Option<String> {
    let cut = |one: &&ugeom_harness::Measured| one.shortened.any();
    let shortened = document.processes.iter().find(cut)?.shortened;
    let budget = document
        .settings
        .budget_ns
        .map(|ns| duration_human(ns as f64));
    let mut what = Vec::new();
    if shortened.rounds {
        let wanted = document.settings.precision * 100.0;
        what.push(format!(
            "rounds, which {wanted} % for every mean would have needed"
        ));
    }
    if shortened.run_ns < shortened.run_ns_wanted {
        what.push(format!(
            "runs, of {} instead of {}",
            duration_human(shortened.run_ns as f64),
            duration_human(shortened.run_ns_wanted as f64)
        ));
    }
    let budget = budget.unwrap_or_else(|| "the time".to_owned());
    Some(format!(". Shortened to fit {budget}: {}", what.join("; ")))
}

/// The share of the cores' time that the hypervisor took while it was measured, per cent.
fn steal_percent<S>(document: &Document<S>) -> Option<f64> {
    let rounds = document.processes.iter().flat_map(|one| &one.rounds);
    let samples = rounds.flat_map(|round| &round.samples);
    // A saved result may hold any numbers: added up as such they could be too large.
    let (stolen_ns, all_ns) = samples.fold((0.0, 0.0), |(stolen, all), sample| {
        let steal_ns = sample.cpu.steal_ns as f64;
        let all_ns = steal_ns + sample.cpu.shares.total_ns() as f64;
        (stolen + steal_ns, all + all_ns)
    });
    (all_ns > 0.0).then(|| stolen_ns * 100.0 / all_ns)
}

/// Whether the measuring thread had to share its core.
pub fn is_disturbed<S>(document: &Document<S>) -> bool {
    thread_share(document).is_some_and(|share| share < UNDISTURBED_SHARE)
}

/// What makes the figures doubtful.
pub fn doubts<S>(document: &Document<S>) -> Vec<String> {
    let mut doubts = document.host.doubts();
    if let Some(percent) = steal_percent(document).filter(|percent| *percent >= STEAL_PERCENT_MAX) {
        doubts.push(format!(
            "while it was measured the hypervisor took the cores for {percent:.1} % of the time"
        ));
    }
    if let Some(share) = thread_share(document).filter(|_| is_disturbed(document)) {
        doubts.push(format!(
            "the measuring thread had a core for {:.0} % of the time only, so that times are too \
             long and uncertain",
            share * 100.0
        ));
    }
    if document.noise.is_some_and(|noise| noise.order_matters()) {
        let words = "two cells that do the same differ, so that as much of any difference may be \
                     an accident";
        doubts.push(words.to_owned());
    }
    doubts
}

/// The share of the time in which the measuring thread had a core, of the cells that never wait
/// for anything themselves.
fn thread_share<S>(document: &Document<S>) -> Option<f64> {
    let (mut wall_ns, mut cpu_ns) = (0.0, 0.0);
    for process in &document.processes {
        for round in &process.rounds {
            let cells = process.cells.iter().zip(&round.samples);
            for (_, sample) in cells.filter(|(name, _)| name.starts_with("floor/")) {
                wall_ns += sample.wall_ns as f64;
                cpu_ns += sample.cpu.thread_ns as f64;
            }
        }
    }
    (wall_ns > 0.0 && cpu_ns > 0.0).then(|| cpu_ns / wall_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_harness::host::{Host, TargetFacts, Trips, Wakeups};
    use ugeom_harness::{CpuTimes, Failure, Measured, Round, Sample, Settings, Shortened};
    use ugeom_harness::{DeviceCounts, Work};

    /// Ten rounds of one cell, of whose time `stolen` per cent were taken.
    fn document(stolen: u64, ended: Ended) -> Document<()> {
        let mut cpu = CpuTimes {
            steal_ns: stolen,
            ..CpuTimes::default()
        };
        cpu.shares.user_ns = 100 - stolen;
        let sample = Sample {
            iterations: 1,
            wall_ns: 50,
            cpu,
            work: Work::of(512, 1),
            device: Some(DeviceCounts::default()),
            core: Some(0),
        };
        let round = Round {
            order: vec![0],
            samples: vec![sample],
            null_floor: None,
        };
        let measured = Measured {
            cells: vec!["read".to_owned()],
            rounds: vec![round; 10],
            ended,
            shortened: Shortened {
                run_ns_wanted: 50,
                run_ns: 50,
                rounds: false,
            },
            precision: None,
            elapsed_ns: 1000,
            unfinished: None,
            failure: None,
        };
        Document::new("sweep", Host::now(), Settings::default(), (), measured)
    }

    fn said<'a>(entries: &'a [Entry], word: &str) -> Option<&'a str> {
        let entry = entries.iter().find(|entry| entry.word == word)?;
        Some(&entry.text)
    }

    #[test]
    fn a_failure_is_said_beside_what_was_kept() {
        let mut broken = document(0, Ended::Failed);
        broken.processes[0].failure = Some(Failure {
            cell: "512 B".to_owned(),
            error: "md0: read of 512 bytes at offset 1024: EIO".to_owned(),
        });
        let entries = entries(&broken, &["mmap: not on this file".to_owned()]);
        let failed = said(&entries, "FAILED").unwrap();
        assert!(
            failed.starts_with("512 B failed: md0: read of 512 bytes"),
            "{failed}"
        );
        let measured = said(&entries, "measured").unwrap();
        assert!(measured.contains("10 rounds of 1 cell "), "{measured}");
        assert!(measured.contains("ended by a failure"), "{measured}");
        assert!(measured.contains("left out: mmap"), "{measured}");
    }

    #[test]
    fn the_null_floor_of_the_rounds_stands_beside_the_noise() {
        let mut one = document(0, Ended::Precise);
        for (round, loop_ns) in one.processes[0].rounds.iter_mut().zip([1.0, 3.0]) {
            round.null_floor = Some(NullFloor {
                loop_ns,
                clock_ns: 20.0,
            });
        }
        let entries = entries(&one, &[]);
        let noise = said(&entries, "noise").unwrap();
        assert!(
            noise.ends_with("an empty loop takes 2 ns a turn, reading the clock 20 ns"),
            "{noise}"
        );
    }

    #[test]
    fn stolen_time_makes_figures_doubtful() {
        let doubtful = doubts(&document(12, Ended::Precise)).join("; ");
        assert!(
            doubtful.contains("took the cores for 12.0 % of the time"),
            "{doubtful}"
        );
        let quiet = doubts(&document(0, Ended::Precise)).join("; ");
        assert!(!quiet.contains("took the cores for"), "{quiet}");
    }

    #[test]
    fn the_target_and_wakeups_are_told_where_they_are_known() {
        let mut one = document(0, Ended::Budget);
        assert_eq!(said(&entries(&one, &[]), "target"), None);
        one.target = TargetFacts::of(std::path::Path::new("/dev/zero"));
        one.host = one.host.with_wakeups();
        let entries = entries(&one, &[]);
        assert_eq!(
            said(&entries, "target"),
            Some("/dev/zero: character device")
        );
        assert!(
            said(&entries, "wake-ups")
                .unwrap()
                .starts_with("there and back ")
        );
        let trips = |median_ns| Trips {
            median_ns,
            quartile_low_ns: median_ns,
            quartile_high_ns: median_ns,
            trips: 9,
        };
        for (across_ns, told) in [(30_000, true), (4_000, false)] {
            one.host.cores_allowed = 2;
            one.host.wakeups = Some(Wakeups {
                same_core: Some(trips(4_000)),
                across_cores: Some(trips(across_ns)),
                spinning: None,
            });
            let entries = super::entries(&one, &[]);
            let words = said(&entries, "wake-ups").unwrap();
            assert_eq!(words.contains("taskset"), told, "{words}");
        }
    }
}
