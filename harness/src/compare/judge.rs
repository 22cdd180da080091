//! The comparisons and their claims.
//!
//! - Cases of one document ran in the same rounds: the ratio of each process, their median, its
//!   interval from order statistics, and the sign test.
//! - Results of different times are independent samples: Mann and Whitney's test, and the interval
//!   of Hodges and Lehmann's shift of the logarithms, which is a ratio. A change counts only where
//!   its interval lies beyond what the halves of either side differ by: a machine that changes
//!   within a measurement changes between two as well.
//!
//! The intervals of a metric hold together (Bonferroni), and the verdict follows from them.

use super::side::{Side, Source, refuse_repeated, shared};
use super::{Loaded, Metric};
use crate::HarnessError;
use crate::foreign::{Format, Series};
use crate::observed::Observed;
use serde::{Deserialize, Serialize};
use ugeom_measure::rank::mann_whitney;
use ugeom_measure::summary::median;
use ugeom_measure::units::{duration_measured, grouped};
use ugeom_measure::{Center, Change, Claim, Interval, Spread};

/// The comparisons, and their rules.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// The confidence for all comparisons of a metric together.
    pub confidence: f64,
    /// The share within which two results count as equivalent.
    pub same_within: f64,
    /// The case that the others of a single document are compared with; the first if none.
    pub base: Option<String>,
    /// The cases to compare; all if there is none.
    pub cases: Vec<String>,
    /// The metrics to compare, by their names; all if there is none.
    pub metrics: Vec<String>,
    /// Only those that changed significantly.
    pub changed: bool,
}

impl Default for CompareOptions {
    /// 95 %, equivalent within 1 %, everything that there is.
    fn default() -> Self {
        Self {
            confidence: 0.95,
            same_within: 0.01,
            base: None,
            cases: Vec::new(),
            metrics: Vec::new(),
            changed: false,
        }
    }
}

/// Everything that was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The name of the base: a side, or a case of a single document.
    pub base: String,
    /// The sides or cases that are compared with it.
    pub others: Vec<String>,
    /// The files, the base's first.
    pub sources: Vec<File>,
    /// Whether the sides of a comparison ran in the same rounds.
    pub interleaved: bool,
    /// The other changes in the differences, in plain words.
    pub confounded: Vec<String>,
    /// The confidence for all comparisons of a metric together.
    pub confidence: f64,
    /// The share within which two results count as equivalent.
    pub same_within: f64,
    /// A table for each metric.
    pub metrics: Vec<Judged>,
    /// The comparisons left out, with reasons.
    pub left_out: Vec<String>,
}

/// A file that takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// Name of the file, as the page shows it.
    pub name: String,
    /// The program that wrote it.
    pub format: Format,
    /// The side that it belongs to.
    pub side: String,
}

/// The comparisons of one metric, the largest effect first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Name of the metric in the files.
    pub metric: String,
    /// Unit of the values of both sides.
    pub unit: String,
    /// The comparisons that are shown.
    pub rows: Vec<Row>,
    /// The geometric mean of all ratios (changed to base), those that are not shown included.
    pub geometric_mean: Option<f64>,
    /// How many comparisons there were, those that are not shown included.
    pub compared: usize,
    /// A rate with the verdicts of the time: all samples do the same work, and no metric was
    /// chosen. Pages leave it out.
    #[serde(default)]
    pub restates_time: bool,
}

/// One case, of two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the benchmark case.
    pub case: String,
    /// The side that is compared with the base.
    pub side: String,
    /// The middle of the side that the other one is compared with.
    pub base: Middle,
    /// The side that is compared with it.
    pub changed: Middle,
    /// `changed / base` with its interval and the claim; none where that cannot be known.
    pub change: Option<Change>,
    /// The two-sided p-value of this comparison by itself.
    pub p_value: Option<f64>,
    /// Faster, slower or not significant.
    pub claim: Claim,
    /// The same in plain words.
    pub words: String,
}

/// The middle of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Middle {
    /// Number of values that it is the middle of.
    pub n: usize,
    /// Median of the values, in the metric's unit.
    pub median: f64,
    /// The same with the 10th and the 90th percentile; none for fewer than six values.
    pub spread: Option<Interval>,
}

impl Middle {
    fn of(values: &[f64]) -> Option<Self> {
        let middle = median(values).ok()?;
        Some(Self {
            n: values.len(),
            median: middle,
            spread: Spread::of(values).map(|spread| spread.interval()).ok(),
        })
    }
}

/// A value with its unit, for people.
pub fn show(unit: &str, value: f64) -> String {
    match unit {
        "ns" => duration_measured(value),
        "bytes/s" => {
            let mb = value / 1e6;
            let decimals = if mb >= 1000.0 { 0 } else { 2 };
            format!("{mb:.decimals$} MB/s")
        }
        "1/s" if value >= 100.0 => format!("{}/s", grouped(value.round() as u64)),
        "1/s" => format!("{value:.2}/s"),
        unit => {
            let decimals = match value.abs() {
                1000.0.. => 0,
                10.0.. => 1,
                _ => 2,
            };
            let text = format!("{value:.decimals$} {unit}");
            text.trim_end().to_owned()
        }
    }
}

/// A pair that waits for the size of its family.
struct Pending {
    case: String,
    side: String,
    unit: String,
    better: ugeom_measure::change::Better,
    base: Vec<f64>,
    changed: Vec<f64>,
    /// Ratios within processes, for cases of one document.
    ratios: Option<Vec<f64>>,
}

impl Pending {
    /// Its row, with the interval for a family of so many.
    fn row(&self, options: &CompareOptions, family: usize) -> Option<Row> {
        let confidence = 1.0 - (1.0 - options.confidence) / family.max(1) as f64;
        let (base, changed) = (Middle::of(&self.base)?, Middle::of(&self.changed)?);
        let found = match &self.ratios {
            Some(ratios) => paired(ratios, confidence),
            None => independent(&self.base, &self.changed, confidence),
        };
        let (change, p_value, mut words) = match found {
            Ok((ratio, p_value)) => {
                let change = Change::new(ratio, confidence, self.better, options.same_within);
                (Some(change), Some(p_value), self.in_words(&change))
            }
            Err((words, p_value)) => (None, p_value, words),
        };
        let mut claim = change.map_or(Claim::Open, |change| change.claim());
        let drift = self.drift();
        if change.is_some_and(|change| !exceeds(&change.ratio, drift)) {
            claim = match claim {
                Claim::Faster | Claim::Slower => {
                    let percent = (drift - 1.0) * 100.0;
                    words = format!(
                        "not significant: {words}, but halves of one side differ by {percent:.0} %"
                    );
                    Claim::Open
                }
                other => other,
            };
        }
        Some(Row {
            case: self.case.clone(),
            side: self.side.clone(),
            base,
            changed,
            claim,
            change,
            p_value,
            words,
        })
    }
}

impl Pending {
    /// A change in the words for its quantity: only times and rates are faster or slower.
    fn in_words(&self, change: &Change) -> String {
        match self.unit == "ns" || self.unit.ends_with("/s") {
            true => change.to_string(),
            false => change.of_an_amount(),
        }
    }

    /// By which factor the halves of a side differ, the larger of both sides: what differs within a
    /// measurement differs between two as well. 1 where the sides ran in the same rounds.
    fn drift(&self) -> f64 {
        if self.ratios.is_some() {
            return 1.0;
        }
        let halves = |values: &[f64]| {
            let (first, second) = values.split_at(values.len() / 2);
            let factor = median(second).ok()? / median(first).ok()?;
            Some(factor.max(1.0 / factor)).filter(|factor| factor.is_finite())
        };
        let sides = [&self.base, &self.changed].into_iter();
        let factors = sides
            .filter(|values| values.len() >= DRIFT_MIN)
            .filter_map(|it| halves(it));
        factors.fold(1.0, f64::max)
    }
}

/// Halves of fewer values differ by chance alone.
const DRIFT_MIN: usize = 8;

/// Whether all of a ratio's interval lies farther from 1 than this factor.
fn exceeds(ratio: &Interval, factor: f64) -> bool {
    ratio.low > factor || ratio.high < 1.0 / factor
}

/// An interval and a p-value; else why there is none, and the p-value where there is one.
type Found = Result<(Interval, f64), (String, Option<f64>)>;

fn paired(ratios: &[f64], confidence: f64) -> Found {
    let center = Center::of(ratios);
    let center = center.map_err(|_| (format!("no verdict: n={}", ratios.len()), None))?;
    let interval = center
        .at(confidence)
        .map_err(|error| (error.to_string(), None))?;
    Ok((interval, center.p_value(1.0)))
}

fn independent(base: &[f64], changed: &[f64], confidence: f64) -> Found {
    if base.iter().chain(changed).all(|value| *value == base[0]) {
        return Err(("all values are equal".to_owned(), None));
    }
    let few = base.len().min(changed.len()) < 2;
    if few {
        let n = (base.len(), changed.len());
        return Err((format!("no verdict: n={} and {}", n.0, n.1), None));
    }
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| value.ln()).collect() };
    let test = mann_whitney(&logs(base), &logs(changed), confidence);
    let test = test.map_err(|_| ("no ratio: a value is 0 or below".to_owned(), None))?;
    let Some(interval) = test.interval else {
        let n = (base.len(), changed.len());
        let words = format!("no verdict: n={} and {} are too few", n.0, n.1);
        return Err((words, Some(test.p_value)));
    };
    let ratio = Interval {
        estimate: interval.estimate.exp(),
        low: interval.low.exp(),
        high: interval.high.exp(),
        ..interval
    };
    Ok((ratio, test.p_value))
}

/// The cases of one document, which ran in the same rounds.
pub(super) fn within(one: &Loaded, options: &CompareOptions) -> Result<Compared, HarnessError> {
    let cases = one.cases();
    let base = match &options.base {
        Some(name) => position(one, name)?,
        None => 0,
    };
    let mut changed = Vec::new();
    for name in &options.cases {
        changed.push(position(one, name)?);
    }
    if changed.is_empty() {
        let is_compared = |case: &usize| one.is_candidate(&cases[*case]);
        changed = (0..cases.len()).filter(is_compared).collect();
    }
    changed.retain(|case| *case != base);
    if changed.is_empty() {
        let problem = format!("{}: it has one case only: nothing to compare", one.name);
        return Err(HarnessError::Compare(problem));
    }
    let mut compared = Compared::new(cases[base].clone(), options);
    compared.interleaved = true;
    compared.others = changed.iter().map(|case| cases[*case].clone()).collect();
    compared.add_files(&Side {
        name: one.name.clone(),
        files: vec![Source::from(one)],
    });
    let mut known = Vec::new();
    for metric in Metric::ALL {
        let observed = Observed::of(&one.document, |sample| metric.of(sample));
        let values = |case: usize| observed.values(&[case], |one| one.first().copied());
        let pairs = changed.iter().map(|case| Pending {
            case: cases[*case].clone(),
            side: one.name.clone(),
            unit: metric.unit().to_owned(),
            better: metric.better(),
            base: values(base),
            changed: values(*case),
            ratios: Some(observed.values(&[base, *case], |one| {
                (one[0] > 0.0).then(|| one[1] / one[0])
            })),
        });
        let pairs: Vec<Pending> = pairs.collect();
        if pairs.iter().any(|one| !one.changed.is_empty()) {
            known.push(metric.id());
        }
        compared.judge(metric.id(), pairs, options);
    }
    compared.with_something(options, &known)
}

/// Each case of the base with the same case of each other side.
pub(super) fn between(
    base: &Side,
    others: &[Side],
    options: &CompareOptions,
) -> Result<Compared, HarnessError> {
    if options.base.is_some() {
        let problem = "a base case is for a single result; of several, the first is the base";
        return Err(HarnessError::Compare(problem.to_owned()));
    }
    let mut compared = Compared::new(base.name.clone(), options);
    compared.others = others.iter().map(|side| side.name.clone()).collect();
    compared.add_files(base);
    others.iter().for_each(|side| compared.add_files(side));
    std::iter::once(base)
        .chain(others)
        .try_for_each(refuse_repeated)?;
    for other in others {
        compared.confounded.extend(confounded(base, other));
    }
    let old = base.series();
    refuse_unknown(&options.cases, &base.name, &old)?;
    let wanted = |case: &String| options.cases.is_empty() || options.cases.contains(case);
    let mut metrics: Vec<(String, Vec<Pending>)> = Vec::new();
    for side in others {
        let new = side.series();
        let mut common = 0;
        for below in old.iter().filter(|one| wanted(&one.case)) {
            let same = |above: &&Series| {
                (&above.case, &above.metric, &above.unit)
                    == (&below.case, &below.metric, &below.unit)
            };
            let Some(above) = new.iter().find(same) else { continue };
            common += 1;
            let pending = Pending {
                case: below.case.clone(),
                side: side.name.clone(),
                unit: below.unit.clone(),
                better: below.better,
                base: below.values.clone(),
                changed: above.values.clone(),
                ratios: None,
            };
            match metrics.iter_mut().find(|one| one.0 == below.metric) {
                Some(one) => one.1.push(pending),
                None => metrics.push((below.metric.clone(), vec![pending])),
            }
        }
        if common == 0 {
            let problem = format!(
                "{} and {} have no case in common: {} against {}",
                base.name,
                side.name,
                cases(&old),
                cases(&new)
            );
            return Err(HarnessError::Compare(problem));
        }
        let [base, other] = [
            (base.name.as_str(), &old[..]),
            (side.name.as_str(), &new[..]),
        ];
        let alone = [alone(base, other, wanted), alone(other, base, wanted)];
        compared.left_out.extend(alone.into_iter().flatten());
    }
    let known: Vec<String> = metrics.iter().map(|one| one.0.clone()).collect();
    for (metric, pending) in metrics {
        compared.judge(&metric, pending, options);
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    compared.with_something(options, &known)
}

/// What two sides differ in beside what is compared.
fn confounded(base: &Side, other: &Side) -> Vec<String> {
    let dated = |side: &Side| side.files.iter().any(|file| file.document.is_some());
    let shared = shared(base, other);
    if !shared.is_empty() || (dated(base) && dated(other)) {
        return shared;
    }
    vec![format!(
        "{} and {} were measured at different times: differences include all other changes in \
         between (ugeom ab interleaves both sides)",
        base.name, other.name
    )]
}

/// Refuses names of cases that a result does not have.
fn refuse_unknown(names: &[String], result: &str, series: &[Series]) -> Result<(), HarnessError> {
    for name in names {
        if !series.iter().any(|one| one.case == *name) {
            let known = cases(series);
            let problem = format!("{result}: it has no case `{name}`, but {known}");
            return Err(HarnessError::Compare(problem));
        }
    }
    Ok(())
}

/// Of more cases than this a message names the first.
const NAMED_MAX: usize = 8;

/// The cases of results, each once.
fn cases(series: &[Series]) -> String {
    in_words(&names(series))
}

fn names(series: &[Series]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for one in series {
        if !names.contains(&one.case.as_str()) {
            names.push(&one.case);
        }
    }
    names
}

/// The wanted cases that the first of two results has and the second has not, in words.
fn alone(
    (name, series): (&str, &[Series]),
    (other_name, other): (&str, &[Series]),
    wanted: impl Fn(&String) -> bool,
) -> Option<String> {
    let is_alone = |case: &&str| !other.iter().any(|one| one.case == *case);
    let mut names = names(series);
    names.retain(|case| is_alone(case) && wanted(&(*case).to_owned()));
    (!names.is_empty()).then(|| format!("in {name}, not in {other_name}: {}", in_words(&names)))
}

/// `A, B`; of many the first ones and how many more there are.
fn in_words(names: &[&str]) -> String {
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn position(one: &Loaded, name: &str) -> Result<usize, HarnessError> {
    let found = one.cases().iter().position(|case| case == name);
    found.ok_or_else(|| {
        let known = one.cases().join(", ");
        let problem = format!("{}: it has no case `{name}`, but {known}", one.name);
        HarnessError::Compare(problem)
    })
}

impl Compared {
    fn new(base: String, options: &CompareOptions) -> Self {
        Self {
            base,
            others: Vec::new(),
            sources: Vec::new(),
            interleaved: false,
            confounded: Vec::new(),
            confidence: options.confidence,
            same_within: options.same_within,
            metrics: Vec::new(),
            left_out: Vec::new(),
        }
    }

    fn add_files(&mut self, side: &Side) {
        for file in &side.files {
            self.sources.push(File {
                name: file.name.clone(),
                format: file.format,
                side: side.name.clone(),
            });
        }
        if let [file] = &side.files[..]
            && file.format.is_of_one_process()
        {
            self.confounded.push(format!(
                "all values of {} are of one process: intervals exclude variation between \
                 processes (give several files)",
                file.name
            ));
        }
    }

    fn judge(&mut self, metric: &str, pending: Vec<Pending>, options: &CompareOptions) {
        let is_wanted =
            options.metrics.is_empty() || options.metrics.iter().any(|it| is_named(metric, it));
        let complete = |one: &&Pending| !one.base.is_empty() && !one.changed.is_empty();
        let pending: Vec<&Pending> = pending.iter().filter(complete).collect();
        let Some(first) = pending.first().filter(|_| is_wanted) else { return };
        let family = pending.len();
        let all: Vec<Row> = pending
            .iter()
            .filter_map(|one| one.row(options, family))
            .collect();
        let logs = all
            .iter()
            .map(|row| (row.changed.median / row.base.median).ln());
        let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let (unit, compared) = (first.unit.clone(), all.len());
        let mut rows = all;
        if options.changed {
            rows.retain(|row| matches!(row.claim, Claim::Faster | Claim::Slower));
        }
        rows.sort_by(|a, b| effect(b).total_cmp(&effect(a)));
        self.metrics.push(Judged {
            metric: metric.to_owned(),
            unit,
            rows,
            geometric_mean: (!logs.is_empty()).then(|| mean.exp()),
            compared,
            restates_time: false,
        });
    }

    /// Refuses a comparison of nothing. There were these metrics to choose from.
    fn with_something(
        self,
        options: &CompareOptions,
        known: &[&str],
    ) -> Result<Self, HarnessError> {
        if self.metrics.iter().any(|judged| judged.compared > 0) {
            return Ok(self);
        }
        let what = match options.metrics.is_empty() {
            true => "the results hold no metric that can be compared".to_owned(),
            false => format!(
                "the results do not hold {}, but {}",
                options.metrics.join(", "),
                in_words(known)
            ),
        };
        Err(HarnessError::Compare(what))
    }

    /// The comparisons of a metric.
    pub fn metric(&self, metric: &str) -> Option<&Judged> {
        self.metrics.iter().find(|judged| judged.metric == metric)
    }
}

/// Whether a user means `metric` by `wanted`: `iops` is also the rate of ugeom's own results, whose
/// name in the files is an older one.
fn is_named(metric: &str, wanted: &str) -> bool {
    metric == wanted || (wanted == "iops" && metric == Metric::TransactionsPerSecond.id())
}

/// The order of rows: significant ones first, then by the size of the change.
fn effect(row: &Row) -> f64 {
    let log = (row.changed.median / row.base.median).ln().abs();
    let size = if log.is_finite() { log.min(1e6) } else { 0.0 };
    let first = match row.claim {
        Claim::Faster | Claim::Slower => 1e7,
        Claim::Equivalent | Claim::Open => 0.0,
    };
    first + size
}
