//! The answer: a sentence for each candidate, by the rules of `docs/statistics.md`.

use super::judge::{Contest, Judgement, contest, gate, observations_needed};
use super::{Document, SHELL, Side, Subject};
use serde::{Deserialize, Serialize};
use ugeom_harness::compare::Metric;
use ugeom_harness::figure::{Unit, amount};
use ugeom_measure::Claim;
use ugeom_measure::gate::Outcome;
use ugeom_measure::units::duration_measured;
use ugeom_report::text::counted;

/// Of more candidates than this the table has the changes, and the answer only counts them.
const TOLD_MAX: usize = 4;

/// The possible verdicts about candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The claim about the wall time of each candidate but the base; empty with too few processes.
    pub claims: Vec<Claim>,
    /// The answer in a sentence or two.
    pub sentence: String,
    /// The outcome of `--fail-if-slower`.
    pub outcome: Option<Outcome>,
}

/// The answer that a document gives.
pub fn answer(document: &Document) -> Answer {
    let contest = contest(document);
    let rows = contest.metric(Metric::Time).map(|judged| &judged.rows[..]);
    let rows = rows.unwrap_or_default();
    let others: Vec<&Judgement> = rows.iter().skip(1).collect();
    let changes: Option<Vec<_>> = others.iter().map(|row| row.change).collect();
    let (sentence, claims) = match changes.filter(|changes| !changes.is_empty()) {
        None => (alone(document, rows), Vec::new()),
        Some(changes) => {
            let claims = changes.iter().map(|change| change.claim()).collect();
            (told(document, &contest, &others), claims)
        }
    };
    let (sentence, outcome) = match gate(document) {
        None => (sentence, None),
        Some((outcome, _)) => (gated(document, sentence, outcome), Some(outcome)),
    };
    Answer {
        claims,
        sentence,
        outcome,
    }
}

/// One candidate, or too few observations for a comparison.
fn alone(document: &Document, rows: &[Judgement]) -> String {
    let base = document.subject.base();
    let row = rows.first();
    if let Some(spread) = row.and_then(|row| row.typical.as_ref()) {
        let time = amount(&spread.interval(), Unit::Ns);
        return format!("{base} takes {time}.");
    }
    let (there_are, verb, flag) = observations(document);
    let needed = observations_needed(&document.subject);
    match row {
        Some(row) if rows.len() == 1 => {
            let [least, most] = [row.ends.0, row.ends.1].map(duration_measured);
            let ends = match least == most {
                true => least,
                false => format!("{least} to {most}"),
            };
            format!("{base} takes {ends} in {there_are}.")
        }
        _ => format!(
            "No verdict: {there_are} {verb} too few, a comparison needs {needed} ({flag} {needed})."
        ),
    }
}

/// The observations that there are with the verb behind them, and the flag that sets how many.
fn observations(document: &Document) -> (String, &'static str, &'static str) {
    let (number, [one, many], flag) = match document.subject.is_of_commands() {
        true => (document.rounds(), ["round", "rounds"], "--rounds"),
        false => {
            let processes = document.processes.len() as u64;
            (processes, ["process", "processes"], "--processes")
        }
    };
    let (what, verb) = if number == 1 {
        (one, "is")
    } else {
        (many, "are")
    };
    (format!("{number} {what}"), verb, flag)
}

fn told(document: &Document, contest: &Contest, others: &[&Judgement]) -> String {
    if others
        .iter()
        .any(|row| row.change.is_some_and(|change| !change.covers))
    {
        let needed = observations_needed(&document.subject);
        let (there_are, verb, flag) = observations(document);
        let comparisons = counted(others.len() as u64, "comparison");
        return format!(
            "No verdict: {there_are} {verb} too few for {comparisons}: {needed} are needed ({flag} \
             {needed})."
        );
    }
    let base = document.subject.base();
    let mut sentences = Vec::new();
    if others.len() <= TOLD_MAX {
        for row in others {
            sentences.extend(sentence(base, row));
        }
    } else {
        sentences.push(in_all(base, others));
    }
    if let [row] = others
        && let Some(of_cpu) = contest.metric(Metric::Cpu).and_then(|one| one.rows.get(1))
        && let Some(change) = of_cpu.change
    {
        let wall = times(contest, Metric::Time, &row.name);
        let cpu = times(contest, Metric::Cpu, &row.name);
        sentences.push(format!("Wall time {wall}; CPU time {cpu}: {change}."));
        sentences.extend(of_medians(contest, row));
    }
    sentences.join(" ")
}

/// Medians whose ratio differs from the stated one by more than this factor contradict it in the
/// eyes of a reader.
const ALIKE: f64 = 1.1;

/// Where the ratio of both medians is another one than the median of the ratios within rounds.
fn of_medians(contest: &Contest, row: &Judgement) -> Option<String> {
    let times = contest.metric(Metric::Time)?;
    let base = times.rows.first()?.typical.as_ref()?.estimate();
    let (own, change) = (row.typical.as_ref()?.estimate(), row.change?);
    let is_told = matches!(change.claim(), Claim::Faster | Claim::Slower);
    let (of_medians, within) = (own / base, change.ratio.estimate);
    let apart = (of_medians / within).max(within / of_medians);
    (is_told && apart > ALIKE).then(|| {
        let factor = of_medians.max(1.0 / of_medians);
        let decimals = if factor < 10.0 { 2 } else { 0 };
        format!(
            "The verdict is the median of ratios within rounds; the medians of all rounds differ \
             by {factor:.decimals$} x, because times vary between rounds."
        )
    })
}

/// `18.2 ms against 65.4 ms`.
fn times(contest: &Contest, metric: Metric, name: &str) -> String {
    let rows = contest.metric(metric).map(|judged| &judged.rows[..]);
    let rows = rows.unwrap_or_default();
    let of = |row: &Judgement| {
        let typical = row.typical.as_ref()?;
        Some(metric.show(typical.estimate()))
    };
    let own = rows.iter().find(|row| row.name == name).and_then(of);
    let base = rows.first().and_then(of);
    match own.zip(base) {
        Some((own, base)) => format!("{own} against {base}"),
        None => "unknown".to_owned(),
    }
}

/// `B is 3.6 x faster than A (2.5 to 5.4).`
fn sentence(base: &str, row: &Judgement) -> Option<String> {
    let change = row.change?;
    let (name, words) = (&row.name, change.to_string());
    Some(match change.claim() {
        Claim::Faster | Claim::Slower => match words.split_once(" (") {
            Some((words, ends)) => format!("{name} is {words} than {base} ({ends}."),
            None => format!("{name} is {words} than {base}."),
        },
        Claim::Equivalent => format!("{name} and {base} are {words}."),
        Claim::Open => format!("{name} against {base}: {words}."),
    })
}

fn in_all(base: &str, others: &[&Judgement]) -> String {
    let claims = || others.iter().filter_map(|row| Some((row, row.change?)));
    let count = |claim: Claim| claims().filter(|one| one.1.claim() == claim).count();
    let speed = |claim: Claim| {
        let of_claim = claims().filter(move |one| one.1.claim() == claim);
        of_claim.min_by(|a, b| a.1.ratio.estimate.total_cmp(&b.1.ratio.estimate))
    };
    let best = speed(Claim::Faster)
        .and_then(|(row, _)| sentence(base, row))
        .map_or(String::new(), |best| format!(" {best}"));
    let all = others.len();
    if count(Claim::Open) == all {
        return format!("None of {all} candidates differs significantly from {base}.");
    }
    let kinds = [
        (Claim::Faster, format!("faster than {base}")),
        (Claim::Slower, format!("slower than {base}")),
        (Claim::Equivalent, format!("equivalent to {base}")),
        (Claim::Open, "not significantly different".to_owned()),
    ];
    let parts = kinds.into_iter().filter_map(|(claim, words)| {
        let verb = match count(claim) {
            0 => return None,
            1 => "is",
            _ => "are",
        };
        Some(format!("{} {verb} {words}", count(claim)))
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    format!("Of {all} candidates, {parts}.{best}")
}

/// The outcome in front, with its evidence.
fn gated(document: &Document, sentence: String, outcome: Outcome) -> String {
    let Some((_, gates)) = gate(document) else {
        return sentence;
    };
    let base = document.subject.base();
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let worst = gates.iter().max_by_key(|one| match one.1.outcome {
        Outcome::Fail => 2,
        Outcome::Undecided => 1,
        Outcome::Pass => 0,
    });
    let why = match worst {
        Some((name, gate)) => match gate.bounds {
            Some(bounds) => format!(
                "time of {name} relative to {base}: {} to {}, each bound wrong in at most {:.1} % \
                 of runs; limit +{} %",
                percent(bounds.low),
                percent(bounds.high),
                bounds.alpha * 100.0,
                gate.limit * 100.0
            ),
            None => "too few processes for bounds".to_owned(),
        },
        None => "nothing was compared".to_owned(),
    };
    format!("{}: {why}. {sentence}", outcome.word())
}

/// A target is measured by the read, a command by the run.
fn unlike(subject: &Subject) -> Option<String> {
    let first = |is: fn(&Side) -> bool| subject.candidates.iter().find(|one| is(&one.side));
    let target = first(|side| matches!(side, Side::Target(_)))?;
    let command = first(|side| matches!(side, Side::Command(_)))?;
    Some(format!(
        "{} is a target, timed by the read, and {} a command, timed from its start to its end: \
         these are not the same work",
        target.name, command.name
    ))
}

/// Limits of the answer beside the warnings of the head.
pub(super) fn warnings(document: &Document) -> Vec<String> {
    let mut warnings = Vec::new();
    let subject = &document.subject;
    for one in subject.candidates.iter().filter(|one| one.failed_runs > 0) {
        let runs = counted(one.failed_runs, "run");
        warnings.push(format!(
            "{runs} of {} ended with an exit code other than 0 (--ignore-failure): they may have \
             done less work",
            one.name
        ));
    }
    warnings.extend(unlike(subject));
    let contest = contest(document);
    if let Some(shell) = contest.shell.filter(|shell| !shell.subtracted) {
        let time = duration_measured(shell.interval.estimate);
        warnings.push(format!(
            "starting the {SHELL} takes {time}, more than half of a candidate's time: nothing was \
             subtracted (use --shell none)"
        ));
    }
    warnings
}
