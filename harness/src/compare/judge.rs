//! The comparisons and what may be claimed of them.

use super::{Loaded, Metric};
use crate::HarnessError;
use crate::rounds::Sample;
use serde::{Deserialize, Serialize};
use ugeom_measure::autocorrelation::Independence;
use ugeom_measure::holm::holm;
use ugeom_measure::rank::{RankTest, mann_whitney};
use ugeom_measure::two_samples::pooled;
use ugeom_measure::{Blocks, Comparison, Effect, Error, Interval, Moments, Rules, Verdict};

/// What to compare, and how to judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The confidence for all comparisons of a metric together.
    pub confidence: f64,
    /// The share within which two results count as the same.
    pub same_within: f64,
    /// The cell that the others of a single document are compared with; the first if none.
    pub base: Option<String>,
    /// The cells to compare; all if there is none.
    pub cells: Vec<String>,
    /// The metrics to compare; all that the samples hold if there is none.
    pub metrics: Vec<Metric>,
}

impl Default for Options {
    /// 95 %, same within 1 %, everything that there is.
    fn default() -> Self {
        let rules = Rules::default();
        Self {
            confidence: rules.confidence,
            same_within: rules.same_within,
            base: None,
            cells: Vec::new(),
            metrics: Vec::new(),
        }
    }
}

/// Everything that was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The results, the base first.
    pub sources: Vec<Source>,
    /// Whether the sides of a comparison ran in the same rounds.
    pub interleaved: bool,
    /// What is in the differences beside what was changed, in plain words.
    pub confounded: Vec<String>,
    /// The confidence for all comparisons of a metric together.
    pub confidence: f64,
    /// The share within which two results count as the same.
    pub same_within: f64,
    /// A table for each metric.
    pub metrics: Vec<Judged>,
    /// What could not be compared, and why.
    pub left_out: Vec<String>,
}

/// A result that takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// The experiment.
    pub experiment: String,
    /// The program that measured it.
    pub program: String,
    /// When it was started, seconds since 1970.
    pub started_unix_s: u64,
    /// The number of rounds in all processes.
    pub rounds: u64,
    /// Whether the observations are the means of processes and not rounds.
    pub by_process: bool,
}

/// The comparisons of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The metric.
    pub metric: Metric,
    /// The comparisons.
    pub rows: Vec<Row>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The base: a cell, and in comparisons between results the same cell of the first one.
    pub base: Side,
    /// What is compared with it.
    pub changed: Side,
    /// `changed - base`, with an interval of its own at the confidence.
    pub difference: Effect,
    /// `changed / base` at the same confidence; none where the base may be zero.
    pub ratio: Option<Interval>,
    /// The p-value after Holm's correction over all rows of the metric.
    pub adjusted_p: f64,
    /// Student's pooled difference, which takes both sides for equally spread; between results.
    pub student: Option<Effect>,
    /// The Mann-Whitney test, which takes nothing for normal; between results.
    pub ranks: Option<RankTest>,
    /// How many independent rounds the differences are worth; within one result.
    pub rounds: Option<Independence>,
    /// What may be claimed.
    pub verdict: Verdict,
    /// The same in plain words.
    pub words: String,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The name of the result.
    pub source: String,
    /// The cell.
    pub cell: String,
    /// Number, mean and deviation of its observations.
    pub sample: Moments,
    /// How many independent observations these are worth.
    pub worth: Independence,
}

/// A comparison that waits for the others of its metric.
struct Pending {
    base: Side,
    changed: Side,
    comparison: Comparison,
    student: Option<Effect>,
    ranks: Option<RankTest>,
    rounds: Option<Independence>,
}

/// The cells of one document, which ran in the same rounds.
pub(super) fn within(one: &Loaded, options: &Options) -> Result<Compared, HarnessError> {
    let cells = one.cells();
    let base = match &options.base {
        Some(name) => position(one, name)?,
        None => 0,
    };
    let mut changed = Vec::new();
    for name in &options.cells {
        changed.push(position(one, name)?);
    }
    if changed.is_empty() {
        changed = (0..cells.len()).collect();
    }
    changed.retain(|cell| *cell != base);
    if changed.is_empty() {
        return Err(refused(
            one,
            "it has one cell only, so there is nothing to compare",
        ));
    }
    let mut compared = Compared::new(std::slice::from_ref(one), true, options);
    for metric in wanted(options) {
        let mut pending = Vec::new();
        for cell in &changed {
            let Some(pair) = Pair::of(one, metric, base, *cell) else {
                continue;
            };
            match pair.compare(options.confidence) {
                Ok(row) => pending.push(row),
                Err(error) => compared.leave_out(metric, &cells[*cell], &error),
            }
        }
        compared.judge(metric, pending, options)?;
    }
    compared.with_something()
}

/// Each cell of the base with the same cell of each other result.
pub(super) fn between(
    base: &Loaded,
    others: &[Loaded],
    options: &Options,
) -> Result<Compared, HarnessError> {
    if options.base.is_some() {
        let problem = "a base cell is for a single result; of several, the first is the base";
        return Err(HarnessError::Compare(problem.to_owned()));
    }
    let mut all = vec![base.clone()];
    all.extend_from_slice(others);
    let mut compared = Compared::new(&all, false, options);
    let mut names: Vec<&String> = base.cells().iter().collect();
    for name in &options.cells {
        position(base, name)?;
    }
    if !options.cells.is_empty() {
        names.retain(|name| options.cells.contains(name));
    }
    for other in others {
        names_in_common(base, other, &names)?;
    }
    for metric in wanted(options) {
        let mut pending = Vec::new();
        for other in others {
            for name in names.iter().filter(|name| other.cells().contains(name)) {
                let sides = observed(base, metric, name).zip(observed(other, metric, name));
                let Some((below, above)) = sides else {
                    continue;
                };
                match independent((base, &below), (other, &above), name, options.confidence) {
                    Ok(row) => pending.push(row),
                    Err(error) => compared.leave_out(metric, name, &error),
                }
            }
        }
        compared.judge(metric, pending, options)?;
    }
    compared.with_something()
}

fn refused(one: &Loaded, problem: &str) -> HarnessError {
    HarnessError::Compare(format!("{}: {problem}", one.name))
}

fn position(one: &Loaded, name: &str) -> Result<usize, HarnessError> {
    let found = one.cells().iter().position(|cell| cell == name);
    found.ok_or_else(|| {
        let known = one.cells().join(", ");
        refused(one, &format!("it has no cell `{name}`, but {known}"))
    })
}

fn names_in_common(base: &Loaded, other: &Loaded, names: &[&String]) -> Result<(), HarnessError> {
    if names.iter().any(|name| other.cells().contains(name)) {
        return Ok(());
    }
    let what = |one: &Loaded| format!("{} ({})", one.name, one.document.experiment);
    let (base, other) = (what(base), what(other));
    let problem = format!("{base} and {other} have no cell in common");
    Err(HarnessError::Compare(problem))
}

fn wanted(options: &Options) -> Vec<Metric> {
    let is_wanted =
        |metric: &Metric| options.metrics.is_empty() || options.metrics.contains(metric);
    Metric::ALL.into_iter().filter(is_wanted).collect()
}

/// A metric of all cells, where every sample of these cells holds it. Where there are enough
/// processes their means are the rows, else all rounds.
fn table(one: &Loaded, metric: Metric, cells: &[usize]) -> Option<Blocks> {
    let names = one.cells();
    let of = |sample: &Sample| metric.of(sample);
    let mut blocks = Blocks::new(cells.iter().map(|cell| names[*cell].clone()));
    let processes = one.document.processes.iter();
    for process in processes.filter(|process| process.cells == names) {
        let mut rows = Vec::new();
        for round in &process.rounds {
            let values = cells.iter().map(|cell| of(round.samples.get(*cell)?));
            rows.push(values.collect::<Option<Vec<f64>>>()?);
        }
        if one.document.by_process() && !rows.is_empty() {
            let count = rows.len() as f64;
            let mean = |cell: usize| rows.iter().map(|row| row[cell]).sum::<f64>() / count;
            rows = vec![(0..cells.len()).map(mean).collect()];
        }
        for row in rows {
            blocks.push_round(row).ok()?;
        }
    }
    (!blocks.rounds().is_empty()).then_some(blocks)
}

/// The observations of one cell.
fn observed(one: &Loaded, metric: Metric, name: &str) -> Option<Vec<f64>> {
    let cell = one.cells().iter().position(|cell| cell == name)?;
    table(one, metric, &[cell])?.values(0).ok()
}

fn side(one: &Loaded, cell: &str, values: &[f64]) -> Result<Side, Error> {
    Ok(Side {
        source: one.name.clone(),
        cell: cell.to_owned(),
        sample: Moments::of(values)?,
        worth: Independence::of(values)?,
    })
}

/// Two cells of one document.
struct Pair<'a> {
    one: &'a Loaded,
    blocks: Blocks,
}

impl<'a> Pair<'a> {
    fn of(one: &'a Loaded, metric: Metric, base: usize, changed: usize) -> Option<Self> {
        let blocks = table(one, metric, &[base, changed])?;
        Some(Self { one, blocks })
    }

    fn compare(&self, confidence: f64) -> Result<Pending, Error> {
        let (comparison, rounds) = Comparison::within_correlated_rounds(&self.blocks, 0, 1)?;
        let names = self.blocks.cells();
        let difference = comparison.difference.at(confidence)?;
        Ok(Pending {
            base: side(self.one, &names[0], &self.blocks.values(0)?)?,
            changed: side(self.one, &names[1], &self.blocks.values(1)?)?,
            comparison: Comparison {
                difference,
                ..comparison
            },
            student: None,
            ranks: None,
            rounds: Some(rounds),
        })
    }
}

/// The same cell of two documents.
fn independent(
    (base, below): (&Loaded, &[f64]),
    (other, above): (&Loaded, &[f64]),
    cell: &str,
    confidence: f64,
) -> Result<Pending, Error> {
    let (lower, upper) = (side(base, cell, below)?, side(other, cell, above)?);
    let comparison =
        Comparison::independent(lower.worth.moments(below)?, upper.worth.moments(above)?)?;
    let difference = comparison.difference.at(confidence)?;
    Ok(Pending {
        student: Some(pooled(lower.sample, upper.sample, confidence)?),
        ranks: Some(mann_whitney(below, above, confidence)?),
        base: lower,
        changed: upper,
        comparison: Comparison {
            difference,
            ..comparison
        },
        rounds: None,
    })
}

impl Compared {
    fn new(results: &[Loaded], interleaved: bool, options: &Options) -> Self {
        let source = |one: &Loaded| Source {
            name: one.name.clone(),
            experiment: one.document.experiment.clone(),
            program: one.document.program.clone(),
            started_unix_s: one.document.host.started_unix_s,
            rounds: one.document.rounds(),
            by_process: one.document.by_process(),
        };
        Self {
            sources: results.iter().map(source).collect(),
            interleaved,
            confounded: super::confounded::confounded(results),
            confidence: options.confidence,
            same_within: options.same_within,
            metrics: Vec::new(),
            left_out: Vec::new(),
        }
    }

    fn leave_out(&mut self, metric: Metric, cell: &str, error: &Error) {
        self.left_out
            .push(format!("{cell}, {}: {error}", metric.what()));
    }

    fn judge(
        &mut self,
        metric: Metric,
        pending: Vec<Pending>,
        options: &Options,
    ) -> Result<(), HarnessError> {
        let rules = Rules {
            confidence: options.confidence,
            same_within: options.same_within,
            better: metric.better(),
        };
        let comparisons: Vec<Comparison> = pending.iter().map(|one| one.comparison).collect();
        let p_values: Vec<f64> = comparisons
            .iter()
            .map(|one| one.difference.p_value)
            .collect();
        let failed = |source| HarnessError::Statistics {
            what: metric.what().to_owned(),
            source,
        };
        let tested = holm(&p_values, 1.0 - options.confidence).map_err(failed)?;
        let verdicts = rules.judge_all(&comparisons).map_err(failed)?;
        let judged = pending.into_iter().zip(tested).zip(verdicts);
        let rows: Vec<Row> = judged
            .map(|((one, tested), verdict)| Row {
                base: one.base,
                changed: one.changed,
                difference: one.comparison.difference,
                ratio: one.comparison.ratio_at(options.confidence),
                adjusted_p: tested.adjusted_p,
                student: one.student,
                ranks: one.ranks,
                rounds: one.rounds,
                words: verdict.to_string(),
                verdict,
            })
            .collect();
        if !rows.is_empty() {
            self.metrics.push(Judged { metric, rows });
        }
        Ok(())
    }

    /// Refuses a comparison of nothing.
    fn with_something(self) -> Result<Self, HarnessError> {
        if !self.metrics.is_empty() {
            return Ok(self);
        }
        let why = match self.left_out.first() {
            Some(first) => format!("nothing could be compared: {first}"),
            None => "the samples hold no metric that can be compared".to_owned(),
        };
        Err(HarnessError::Compare(why))
    }

    /// The comparisons of a metric.
    pub fn metric(&self, metric: Metric) -> Option<&Judged> {
        self.metrics.iter().find(|judged| judged.metric == metric)
    }
}
