//! Our own documents: a value of each case and metric for each process. `ugeom lab --json` writes
//! an array of them.

use super::Series;
use crate::document::{self, Document};
use crate::metric::Metric;
use crate::observed::Observed;
use serde_json::Value;

/// The observations of an array of documents, each case with the name of its experiment.
pub(super) fn parse_all(text: &str) -> Result<Vec<Series>, String> {
    let words = |error: crate::HarnessError| error.to_string();
    let mut all = Vec::new();
    for one in document::results(text).map_err(words)? {
        let experiment = document::experiment(one).map_err(words)?;
        for mut series in parse(one)? {
            series.case = format!("{experiment} {}", series.case);
            all.push(series);
        }
    }
    Ok(all)
}

pub(super) fn parse(text: &str) -> Result<Vec<Series>, String> {
    let words = |error: crate::HarnessError| error.to_string();
    let experiment = document::experiment(text).map_err(words)?;
    let document = Document::<Value>::from_json(text, &experiment).map_err(words)?;
    Ok(series(&document))
}

/// The observations of a document.
pub fn series<S>(document: &Document<S>) -> Vec<Series> {
    let mut all = Vec::new();
    for metric in Metric::ALL {
        let observed = Observed::of(document, |sample| metric.of(sample));
        for (at, case) in observed.cases().iter().enumerate() {
            let values = observed.values(&[at], |one| one.first().copied());
            if !values.is_empty() {
                all.push(Series::new(
                    case,
                    metric.id(),
                    metric.unit(),
                    metric.better(),
                    values,
                ));
            }
        }
    }
    all
}
