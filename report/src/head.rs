//! The head of every report: the machine, the target, the noise, the amount of measurement,
//! reductions and failures; and the warnings, which stand below the first table.

use crate::text::{counted, too_few};
use ugeom_harness::document::Document;
use ugeom_harness::figure::{Unit, value};
use ugeom_harness::host::STEAL_PERCENT_MAX;
use ugeom_harness::observed;
use ugeom_harness::{Ended, Measured, NullFloor, total};
use ugeom_measure::center::{Center, OBSERVATIONS_MIN};
use ugeom_measure::summary::median;
use ugeom_measure::units::duration_human;

/// The thread must have had a core for this share of the time, or a warning says so.
const UNDISTURBED_SHARE: f64 = 0.97;

/// One line of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadLine {
    /// The subject, in one word.
    pub word: &'static str,
    /// The text.
    pub text: String,
}

/// The head of a document. `left_out` names the omitted measurements, with reasons.
pub fn entries<S>(document: &Document<S>, left_out: &[String]) -> Vec<HeadLine> {
    let mut entries = Vec::new();
    let mut add = |word, text: String| entries.push(HeadLine { word, text });
    add("machine", document.host.to_string());
    if let Some(target) = &document.target {
        add("target", format!("{}: {target}", target.path));
    }
    if let Some(wakeups) = &document.host.wakeups {
        let mut text = format!("round trip {wakeups}");
        if wakeups.placement_matters() && document.host.cores_allowed > 1 {
            text += "; the time of a request that waits for another thread depends on the cores \
                     that the scheduler chooses (`taskset -c 0` pins both to one)";
        }
        add("wake-ups", text);
    }
    add("noise", noise(document));
    add("measured", measured(document, left_out));
    for failure in document.failures() {
        let text = format!("{} failed: {}", failure.case, failure.error);
        add("FAILED", text + "; what was measured before is kept");
    }
    entries
}

fn noise<S>(document: &Document<S>) -> String {
    let mut text = match &document.noise {
        Some(noise) => format!("A/A: {noise}"),
        None => "A/A: too few rounds".to_owned(),
    };
    let floor = |id: &str| document.figure(id).map(|figure| figure.estimate());
    let rounds = document.processes.iter().flat_map(|one| &one.rounds);
    let floors: Vec<NullFloor> = rounds.filter_map(|round| round.null_floor).collect();
    let mean = NullFloor::mean(&floors);
    let of_rounds = |part: fn(NullFloor) -> f64| mean.map(|mean| value(part(mean), Unit::Ns));
    // Some experiments measure the floor among their cases, which is more exact.
    if let Some(cost) = floor("floor.loop").or_else(|| of_rounds(|mean| mean.loop_ns)) {
        text.push_str(&format!("; an empty loop takes {cost} per iteration"));
    }
    if let Some(cost) = floor("floor.clock").or_else(|| of_rounds(|mean| mean.clock_ns)) {
        text.push_str(&format!(", reading the clock {cost}"));
    }
    text
}

fn measured<S>(document: &Document<S>, left_out: &[String]) -> String {
    let cases = document.processes.first().map_or(0, |one| one.cases.len());
    let elapsed_ns = document.processes.iter().map(|one| one.elapsed_ns as f64);
    let processes = match document.processes.len() {
        1 => "one process".to_owned(),
        many => format!("{many} fresh processes"),
    };
    let mut text = format!(
        "{} of {} in {processes}, {}; random order in each round (seed {})",
        counted(document.rounds(), "round"),
        counted(cases as u64, "case"),
        duration_human(elapsed_ns.sum()),
        document.settings.seed
    );
    let repeated = total(document.processes.iter().map(|one| one.repeated));
    if repeated > 0 {
        let runs = counted(repeated, "run");
        text.push_str(&format!("; {runs} repeated because the core was slow"));
    }
    for process in &document.processes {
        match process.ended {
            Ended::Cancelled => text.push_str("; stopped by Ctrl-C"),
            Ended::Failed => text.push_str("; ended by a failure"),
            _ => {}
        }
    }
    for left_out in left_out {
        text.push_str(&format!("; left out: {left_out}"));
    }
    text
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

/// Whether too few processes had a core at full speed.
pub fn is_disturbed<S>(document: &Document<S>) -> bool {
    observed::is_disturbed(document)
}

/// The end of the certainty of a disturbed document.
pub(crate) const DISTURBED: &str = ", disturbed";

/// The observations behind the intervals of figures.
pub fn certainty<S>(document: &Document<S>) -> String {
    let processes = document.processes.len();
    let observations = match processes >= OBSERVATIONS_MIN {
        true => processes,
        false => document.rounds() as usize,
    };
    if observations < OBSERVATIONS_MIN {
        let is_cancelled = |one: &Measured| one.ended == Ended::Cancelled;
        return match document.processes.iter().any(is_cancelled) {
            true => "stopped early".to_owned(),
            false => too_few(observations as u64),
        };
    }
    let what = match processes {
        OBSERVATIONS_MIN.. => format!("{processes} processes"),
        0 | 1 => "one process only".to_owned(),
        few => format!("{} rounds of {few} processes", document.rounds()),
    };
    let measured = document.processes.iter().map(|one| one.elapsed_ns as f64);
    let elapsed_ns = document
        .took_ns
        .map_or_else(|| measured.sum(), |ns| ns as f64);
    let within = match elapsed_ns > 0.0 {
        true => format!(" within {}", duration_human(elapsed_ns)),
        false => String::new(),
    };
    let disturbed = if is_disturbed(document) {
        DISTURBED
    } else {
        ""
    };
    format!("{what}{within}{disturbed}")
}

/// Warnings: what limits the figures, what it affects, and what to do; most important first.
pub fn warnings<S>(document: &Document<S>) -> Vec<String> {
    let mut warnings = Vec::new();
    let (calm, all) = observed::undisturbed(document);
    if is_disturbed(document) {
        warnings.push(format!(
            "disturbed: the core was slowed in {} of {all} processes; times are too long (repeat \
             on a quiet machine)",
            all - calm
        ));
    }
    // Others than the experiments of `ugeom lab` stop by precision, in one process.
    if document.processes.len() < OBSERVATIONS_MIN
        && document.rounds() >= OBSERVATIONS_MIN as u64
        && document.settings.precision == 0.0
    {
        warnings.push(format!(
            "intervals exclude variation between processes (memory layout): use --processes \
             {OBSERVATIONS_MIN} or more"
        ));
    }
    warnings.extend(crate::drift::warning(document));
    warnings.extend(overrun(document));
    warnings.extend(document.host.warnings());
    if let Some(percent) = steal_percent(document).filter(|percent| *percent >= STEAL_PERCENT_MAX) {
        warnings.push(format!(
            "steal time was {percent:.1} % of the measuring time: the host is busy, and times are \
             too long"
        ));
    }
    if let Some(share) = thread_share(document).filter(|share| *share < UNDISTURBED_SHARE) {
        warnings.push(format!(
            "the measuring thread ran for {:.0} % of the time only: wall times are too long",
            share * 100.0
        ));
    }
    if let Some(noise) = document.noise.filter(|noise| noise.order_matters()) {
        warnings.push(format!(
            "A/A: the second of two identical runs in a round is off by {:.1} %; smaller effects \
             are uncertain",
            noise.second_off_percent()
        ));
    }
    if is_warming_up(document) {
        let words = "the first round of a process is slower than its last ones: warm-up may be \
                     unfinished (--budget 60s has longer runs)";
        warnings.push(words.to_owned());
    }
    warnings
}

/// A budget is kept within this share.
const OVERRUN_SHARE: f64 = 1.1;

/// A budget below the time of the fewest and shortest runs.
fn overrun<S>(document: &Document<S>) -> Option<String> {
    let budget_ns = document.settings.budget_ns? as f64;
    let measured_ns: f64 = document
        .processes
        .iter()
        .map(|one| one.elapsed_ns as f64)
        .sum();
    let took_ns = document.took_ns.map_or(measured_ns, |ns| ns as f64);
    if measured_ns > budget_ns * OVERRUN_SHARE {
        return took_longer(took_ns, budget_ns, TOO_FEW_RUNS);
    }
    let prepared = duration_human(took_ns - measured_ns);
    let why = format!("preparing and starting processes took {prepared} of it");
    took_longer(took_ns, budget_ns, &why)
}

/// Why a measurement that is as short as it can be exceeds its budget.
pub const TOO_FEW_RUNS: &str = "fewer or shorter runs would give no interval";

/// The warning of a measurement that took longer than its budget, ns, with the reason; nothing
/// where the budget was kept.
pub fn took_longer(took_ns: f64, budget_ns: f64, why: &str) -> Option<String> {
    (took_ns > budget_ns * OVERRUN_SHARE).then(|| {
        format!(
            "the measurement took {} instead of {}: {why}",
            duration_human(took_ns),
            duration_human(budget_ns)
        )
    })
}

/// Rounds of one process that are needed to judge their correlation.
const WARM_UP_ROUNDS_MIN: usize = 5;

/// A warm-up ends when rounds no longer become faster. In each process the first round's time over
/// the median of its last half, the middle of all its cases: unfinished where the sign test over
/// processes says that the first round is slower, and by more than 2 %.
fn is_warming_up<S>(document: &Document<S>) -> bool {
    let mut ratios = Vec::new();
    for process in &document.processes {
        let (rounds, cases) = (process.rounds.len(), process.cases.len());
        if rounds < WARM_UP_ROUNDS_MIN {
            return false;
        }
        let time = |round: usize, case: usize| {
            let sample = process.rounds[round].samples.get(case)?;
            Some(sample.ns_per_iteration()).filter(|ns| *ns > 0.0)
        };
        let of_case = |case: usize| {
            let late: Option<Vec<f64>> = (rounds / 2..rounds).map(|at| time(at, case)).collect();
            Some(time(0, case)? / median(&late?).ok()?)
        };
        let of_cases: Vec<f64> = (0..cases).filter_map(of_case).collect();
        ratios.extend(median(&of_cases).ok());
    }
    Center::of(&ratios).is_ok_and(|center| center.estimate() > 1.02 && center.p_value(1.0) < 0.01)
}

/// The share of the time in which the measuring thread had a core, of the cases that never wait
/// for anything themselves.
fn thread_share<S>(document: &Document<S>) -> Option<f64> {
    let (mut wall_ns, mut cpu_ns) = (0.0, 0.0);
    for process in &document.processes {
        for round in &process.rounds {
            let cases = process.cases.iter().zip(&round.samples);
            for (_, sample) in cases.filter(|(name, _)| name.starts_with("floor/")) {
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
    use ugeom_harness::{CpuTimes, Failure, Measured, Round, Sample, Settings};
    use ugeom_harness::{DeviceCounts, Work};
    use ugeom_testkit::{begins, ends, has};

    /// Ten rounds of one case, of whose time `stolen` per cent were taken.
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
            reference_ns: None,
            reference_cores: 1,
        };
        let round = Round {
            order: vec![0],
            samples: vec![sample],
            null_floor: None,
        };
        let measured = Measured {
            ended,
            ..Measured::of(vec!["read".to_owned()], vec![round; 10])
        };
        Document::new("sweep", Host::now(), Settings::default(), (), measured)
    }

    fn said<'a>(entries: &'a [HeadLine], word: &str) -> Option<&'a str> {
        let entry = entries.iter().find(|entry| entry.word == word)?;
        Some(&entry.text)
    }

    #[test]
    fn a_failure_is_said_beside_what_was_kept() {
        let mut broken = document(0, Ended::Failed);
        broken.processes[0].failure = Some(Failure {
            case: "512 B".to_owned(),
            error: "md0: read of 512 bytes at offset 1024: EIO".to_owned(),
        });
        let entries = entries(&broken, &["mmap: not on this file".to_owned()]);
        let failed = said(&entries, "FAILED").unwrap();
        begins(&failed, "512 B failed: md0: read of 512 bytes");
        let measured = said(&entries, "measured").unwrap();
        assert!(measured.contains("10 rounds of 1 case "), "{measured}");
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
        ends(
            &noise,
            "an empty loop takes 2.00 ns per iteration, reading the clock 20.0 ns",
        );
    }

    #[test]
    fn a_first_round_that_is_always_slower_is_an_unfinished_warm_up() {
        let mut one = document(0, Ended::RoundsMax);
        assert!(!is_warming_up(&one));
        one.processes = vec![one.processes[0].clone(); 12];
        assert!(!is_warming_up(&one));
        for process in &mut one.processes {
            process.rounds[0].samples[0].wall_ns = 60;
        }
        assert!(is_warming_up(&one));
        let warnings = warnings(&one).join("; ");
        assert!(warnings.contains("warm-up may be unfinished"), "{warnings}");
        assert!(certainty(&one).starts_with("12 processes within "));
        one.processes.truncate(3);
        one.processes.iter_mut().for_each(|one| one.elapsed_ns = 0);
        one.processes[0].elapsed_ns = 2_000_000_000;
        assert_eq!(certainty(&one), "30 rounds of 3 processes within 2 s");
        one.processes.truncate(1);
        assert_eq!(certainty(&one), "one process only within 2 s");
        one.processes[0].rounds.truncate(1);
        assert_eq!(certainty(&one), "1 round is too few");
        assert!(!super::warnings(&one).join("; ").contains("--processes"));
        one.processes[0].ended = Ended::Cancelled;
        assert_eq!(certainty(&one), "stopped early");
    }

    #[test]
    fn a_budget_that_was_too_short_is_told() {
        let mut one = document(0, Ended::Budget);
        one.processes[0].elapsed_ns = 1_200_000_000;
        one.settings.budget_ns = Some(1_150_000_000);
        assert!(!warnings(&one).join("; ").contains("instead of"));
        one.settings.budget_ns = Some(1_000_000_000);
        let warnings = warnings(&one).join("; ");
        has(&warnings, "took 1.20 s instead of 1 s: fewer");
        one.processes[0].elapsed_ns = 900_000_000;
        one.took_ns = Some(5_900_000_000);
        let warnings = super::warnings(&one).join("; ");
        has(
            &warnings,
            "took 5.90 s instead of 1 s: preparing and starting processes took 5 s",
        );
    }

    #[test]
    fn stolen_time_is_a_warning() {
        let stolen = warnings(&document(12, Ended::Precise)).join("; ");
        has(&stolen, "steal time was 12.0 % of the measuring time");
        let quiet = warnings(&document(0, Ended::Precise)).join("; ");
        assert!(!quiet.contains("steal time"), "{quiet}");
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
                .starts_with("round trip ")
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
