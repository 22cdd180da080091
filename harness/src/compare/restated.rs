//! Rates that restate the time. Where all samples do the same work, throughput and IOPS are that
//! work divided by the time, and have its verdict.

use super::Loaded;
use super::judge::{CompareOptions, Judged};
use crate::metric::Metric;

/// Quotients of floating-point numbers are equal within this share.
const EQUAL_WITHIN: f64 = 1e-9;

/// Marks the rates that restate the time, unless metrics were chosen. `base` is the case that
/// others of the same document are compared with.
pub(super) fn mark_restated(
    metrics: &mut [Judged],
    base: Option<&str>,
    documents: &[&Loaded],
    options: &CompareOptions,
) {
    if options.metrics.is_empty() {
        for judged in metrics {
            judged.restates_time = restates_time(judged, base, documents);
        }
    }
}

/// Whether the rows of `judged` are a constant amount of work divided by the time.
fn restates_time(judged: &Judged, base: Option<&str>, documents: &[&Loaded]) -> bool {
    let rates = [Metric::BytesPerSecond, Metric::TransactionsPerSecond];
    let Some(rate) = rates.into_iter().find(|rate| rate.id() == judged.metric) else {
        return false;
    };
    judged.rows.iter().all(|row| {
        let cases = base.into_iter().chain([row.case.as_str()]);
        let work =
            cases.flat_map(|case| documents.iter().flat_map(move |one| work(one, case, rate)));
        is_constant(work)
    })
}

/// The work of an iteration in each sample of a case: bytes or requests, times 1e9. None where a
/// sample does not hold it.
fn work<'a>(
    one: &'a Loaded,
    case: &'a str,
    rate: Metric,
) -> impl Iterator<Item = Option<f64>> + 'a {
    one.document.processes.iter().flat_map(move |process| {
        let at = process.cases.iter().position(|name| name == case);
        let samples = process
            .rounds
            .iter()
            .filter_map(move |round| round.samples.get(at?));
        samples.map(move |sample| Some(rate.of(sample)? * Metric::Time.of(sample)?))
    })
}

fn is_constant(mut values: impl Iterator<Item = Option<f64>>) -> bool {
    let Some(Some(first)) = values.next() else { return false };
    values.all(|value| value.is_some_and(|value| (value / first - 1.0).abs() <= EQUAL_WITHIN))
}
