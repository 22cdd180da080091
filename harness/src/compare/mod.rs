//! Compares saved results, cell by cell and metric by metric, whatever experiment they are of.
//!
//! - Cells of one document ran in the same rounds, and are compared within them (paired).
//! - A cell of one document and that of another are independent samples (Welch), and their
//!   difference is confounded with time.
//!
//! Either way a series whose neighbours are correlated counts with as many values as it is worth,
//! and Holm's correction is made over all comparisons of a metric.

mod confounded;
mod judge;
mod metric;

pub use judge::{Compared, Judged, Options, Row, Side, Source};
pub use metric::Metric;

use crate::HarnessError;
use crate::document::{self, Document};
use serde_json::Value;

/// A saved result and its name, which is that of its file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The name.
    pub name: String,
    /// The result.
    pub document: Document<Value>,
}

impl Loaded {
    /// Reads a saved result of any experiment.
    ///
    /// # Errors
    /// [`HarnessError::Compare`] with the name: it is no result, of another schema, or holds no
    /// whole round.
    pub fn read(name: &str, text: &str) -> Result<Self, HarnessError> {
        let named = |problem: String| HarnessError::Compare(format!("{name}: {problem}"));
        let document = document::experiment(text)
            .and_then(|experiment| Document::<Value>::from_json(text, &experiment))
            .map_err(|error| named(error.to_string()))?;
        if document.rounds() == 0 {
            return Err(named("it holds no whole round".to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            document,
        })
    }

    /// The names of its cells.
    pub fn cells(&self) -> &[String] {
        let first = self.document.processes.first();
        first.map_or(&[], |process| &process.cells)
    }
}

/// Compares results: with the first one all others, or with the first cell (or the one that the
/// options name) of a single one its other cells.
///
/// # Errors
/// [`HarnessError::Compare`] when there is nothing to compare, [`HarnessError::Statistics`] for
/// options that make no sense.
pub fn compare(results: &[Loaded], options: &Options) -> Result<Compared, HarnessError> {
    match results {
        [] => Err(HarnessError::Compare("there is no result".to_owned())),
        [one] => judge::within(one, options),
        [base, others @ ..] => judge::between(base, others, options),
    }
}
