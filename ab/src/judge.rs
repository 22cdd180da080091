//! Judges the samples: a typical value of each candidate, and its ratio to the base with the claim
//! that follows from it.
//!
//! The value of a process is the median of its rounds' ratios, the figure the median of processes,
//! its interval comes from order statistics (`docs/statistics.md`). Each order within a round is
//! equally likely, so that the sign test behind the interval holds on a machine that drifts, too.

use super::{Candidate, Document, SHELL, Subject};
use ugeom_harness::compare::Metric;
use ugeom_harness::figure::{Figure, Unit};
use ugeom_harness::observed::Observed;
use ugeom_measure::center::observations_for;
use ugeom_measure::gate::{ALPHA, Gate, Outcome};
use ugeom_measure::{Center, Change, Interval, Spread};

/// Below this multiple of the shell's own time, differences to it would be noise, and nothing is
/// subtracted.
const SHELL_MULTIPLE: f64 = 2.0;

/// All metrics of all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// The metrics that all samples hold; the first is wall time.
    pub metrics: Vec<Judged>,
    /// The time of starting the shell, and whether it was subtracted.
    pub shell: Option<ShellCost>,
}

/// The shell that starts commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShellCost {
    /// Its wall time for a command that does nothing, ns.
    pub interval: Interval,
    /// Whether times are those without it.
    pub subtracted: bool,
}

/// A metric of all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The metric that the sides were compared in.
    pub metric: Metric,
    /// A row for each candidate, the base first.
    pub rows: Vec<Judgement>,
}

/// A metric of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Name of the side, as the page shows it.
    pub name: String,
    /// The middle of its processes, and their spread.
    pub typical: Option<Spread>,
    /// The smallest and the largest value of a run.
    pub ends: (f64, f64),
    /// Its ratio to the base, one value a process; empty for the base.
    pub ratios: Vec<f64>,
    /// The ratio with its interval and its claim; none for the base, or with too few processes.
    pub change: Option<Change>,
    /// The sign test, two-sided, by itself.
    pub p_value: Option<f64>,
}

impl Contest {
    /// The rows of a metric.
    pub fn metric(&self, metric: Metric) -> Option<&Judged> {
        self.metrics.iter().find(|judged| judged.metric == metric)
    }
}

/// Compares every candidate with the first one, metric by metric.
pub(crate) fn contest(document: &Document) -> Contest {
    let subject = &document.subject;
    let shell = shell(document);
    let metrics = match subject.printed {
        // A printed value says nothing about CPU time.
        Some(_) => vec![Metric::Time],
        None => Metric::ALL.to_vec(),
    };
    let judged = metrics.into_iter().filter_map(|metric| {
        let subtracts = shell.is_some_and(|shell| shell.subtracted);
        let rows = rows(document, metric, subtracts)?;
        Some(Judged { metric, rows })
    });
    Contest {
        metrics: judged.collect(),
        shell,
    }
}

/// The start time of the shell alone.
fn shell(document: &Document) -> Option<ShellCost> {
    let times = Observed::times(document);
    let interval = times.typical(SHELL)?.interval();
    let longer = |one: &Candidate| {
        times
            .typical(&one.name)
            .is_some_and(|it| it.estimate() >= SHELL_MULTIPLE * interval.estimate)
    };
    Some(ShellCost {
        interval,
        subtracted: document.subject.candidates.iter().all(longer),
    })
}

/// How many candidates are compared with the base.
fn family(subject: &Subject) -> usize {
    subject.candidates.len().saturating_sub(1).max(1)
}

/// The confidence of one of the intervals that hold together.
fn confidence_of_one(subject: &Subject) -> f64 {
    1.0 - (1.0 - subject.confidence) / family(subject) as f64
}

/// The observations that verdicts about all candidates need.
pub(super) fn observations_needed(subject: &Subject) -> usize {
    observations_for(confidence_of_one(subject))
}

fn rows(document: &Document, metric: Metric, subtracts: bool) -> Option<Vec<Judgement>> {
    let subject = &document.subject;
    let observed = Observed::of(document, |sample| metric.of(sample));
    let is_of_shell = subtracts && matches!(metric, Metric::Time | Metric::Cpu);
    let floor = match is_of_shell {
        true => observed.typical(SHELL).map_or(0.0, |it| it.estimate()),
        false => 0.0,
    };
    let above = |value: f64| (value - floor).max(f64::MIN_POSITIVE);
    let base = observed.position(subject.base())?;
    let confidence = confidence_of_one(subject);
    let mut rows = Vec::new();
    for (number, candidate) in subject.candidates.iter().enumerate() {
        let case = observed.position(&candidate.name)?;
        let values = runs(document, metric, case);
        if values.is_empty() {
            return None;
        }
        let own = observed.values(&[case], |one| Some(above(one[0])));
        let ratios = match number {
            0 => Vec::new(),
            _ => observed.values(&[base, case], |one| Some(above(one[1]) / above(one[0]))),
        };
        let center = Center::of(&ratios).ok();
        let change = center.as_ref().and_then(|center| {
            let ratio = center.at(confidence).ok()?;
            Some(Change::new(
                ratio,
                confidence,
                metric.better(),
                subject.same_within,
            ))
        });
        // No time is below 0.
        let least = if is_of_shell { 0.0 } else { f64::NEG_INFINITY };
        let ends = values.iter().map(|value| (value - floor).max(least));
        rows.push(Judgement {
            name: candidate.name.clone(),
            typical: Spread::of(&own).ok(),
            ends: ends.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, value| {
                (value.min(ends.0), value.max(ends.1))
            }),
            ratios,
            change,
            p_value: center.map(|center| center.p_value(1.0)),
        });
    }
    Some(rows)
}

/// The values of single runs of a case, in the order in which they ran; none when one lacks it.
fn runs(document: &Document, metric: Metric, case: usize) -> Vec<f64> {
    let rounds = document.processes.iter().flat_map(|one| &one.rounds);
    let samples = rounds.map(|round| metric.of(round.samples.get(case)?));
    samples.collect::<Option<Vec<f64>>>().unwrap_or_default()
}

/// Whether candidates are slower than the base by more than the limit: each with its name, and the
/// outcome of all. None without a limit.
pub fn gate(document: &Document) -> Option<(Outcome, Vec<(String, Gate)>)> {
    let limit = document.subject.fail_if_slower?;
    let contest = contest(document);
    let rows = contest.metric(Metric::Time).map(|judged| &judged.rows);
    let others = rows.into_iter().flatten().skip(1);
    let alpha = ALPHA / family(&document.subject) as f64;
    let gates: Vec<(String, Gate)> = others
        .map(|row| (row.name.clone(), Gate::of(&row.ratios, limit, alpha)))
        .collect();
    let outcome = match gates.is_empty() {
        true => Outcome::Undecided,
        false => Outcome::of_all(gates.iter().map(|one| one.1.outcome)),
    };
    Some((outcome, gates))
}

/// Fills in the noise and the figures of a document.
pub(super) fn compute(document: &mut Document) {
    let times = Observed::times(document);
    let (base, again) = (document.subject.base(), document.subject.again());
    document.noise = times.noise(base, &again);
    let contest = contest(document);
    let pair = document.subject.candidates.len() == 2;
    let mut figures = Vec::new();
    for judged in &contest.metrics {
        let metric = judged.metric;
        for row in judged.rows.iter().skip(1) {
            let Some(change) = row.change else { continue };
            let id = match pair {
                true => format!("ab.{}", metric.id()),
                false => format!("ab.{}.{}", metric.id(), row.name),
            };
            let what = format!("{} of {} against {base}", metric.what(), row.name);
            let mut figure = Figure::plain(&id, &what, Unit::Times, change.ratio);
            figure.p_value = row.p_value;
            figure.significant = change.covers.then(|| change.is_significant());
            figure.values.clone_from(&row.ratios);
            figure.values.sort_by(f64::total_cmp);
            figures.push(figure);
        }
        for row in &judged.rows {
            let id = format!("{}.{}", metric.id(), row.name);
            let what = format!("{} of {}", metric.what(), row.name);
            let unit = match metric {
                Metric::BytesPerSecond => Unit::BytesPerSecond,
                Metric::TransactionsPerSecond => Unit::PerSecond,
                _ => Unit::Ns,
            };
            let typical = row.typical.as_ref();
            figures.extend(typical.map(|it| Figure::absolute(&id, &what, unit, it)));
        }
    }
    if let Some(shell) = contest.shell {
        let what = "starting the shell with an empty command";
        figures.push(Figure::plain("shell", what, Unit::Ns, shell.interval));
    }
    document.figures = figures;
}
