//! Compares saved results, case by case and metric by metric, whatever experiment or program they
//! are of.

mod confounded;
mod gated;
mod judge;
mod restated;
mod side;

pub use crate::metric::Metric;
pub use confounded::confounded;
pub use gated::{Gated, gate};
pub use judge::{CompareOptions, Compared, File, Judged, Middle, Row, show};
pub use side::{Side, Source};

use crate::HarnessError;
use crate::document::{self, Document};
use restated::mark_restated;
use serde_json::Value;

/// A saved result and its name, which is that of its file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Name of the file, as the page shows it.
    pub name: String,
    /// The document, with the runs of each round.
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

    /// The names of its cases.
    pub fn cases(&self) -> &[String] {
        let first = self.document.processes.first();
        first.map_or(&[], |process| &process.cases)
    }

    /// False for the cases that `ugeom ab` measures beside its candidates: the base once more, and
    /// the shell without a command.
    fn is_candidate(&self, case: &str) -> bool {
        let candidates = self.document.subject["candidates"].as_array();
        candidates.is_none_or(|all| all.iter().any(|one| one["name"] == case))
    }
}

/// Compares results of ours: with the first one all others, or with the first case (or the one that
/// the options name) of a single one its other cases.
///
/// # Errors
/// [`HarnessError::Compare`] when there is nothing to compare.
pub fn compare(results: &[Loaded], options: &CompareOptions) -> Result<Compared, HarnessError> {
    let side = |one: &Loaded| Side {
        name: one.name.clone(),
        files: vec![Source::from(one)],
    };
    match results {
        [] => Err(HarnessError::Compare("there is no result".to_owned())),
        [one] => {
            let mut compared = judge::within(one, options)?;
            let base = Some(compared.base.as_str());
            mark_restated(&mut compared.metrics, base, &[one], options);
            Ok(compared)
        }
        [base, others @ ..] => {
            let others: Vec<Side> = others.iter().map(side).collect();
            let mut compared = between(&side(base), &others, options)?;
            compared.confounded.extend(confounded(results));
            Ok(compared)
        }
    }
}

/// Compares each case of the base with the same case of each other side.
///
/// # Errors
/// As [`compare`]; a case that the options name and the base does not have.
pub fn between(
    base: &Side,
    others: &[Side],
    options: &CompareOptions,
) -> Result<Compared, HarnessError> {
    let mut compared = judge::between(base, others, options)?;
    let sides = std::iter::once(base).chain(others);
    let documents = sides
        .flat_map(|side| &side.files)
        .map(|file| file.document.as_ref());
    if let Some(documents) = documents.collect::<Option<Vec<&Loaded>>>() {
        mark_restated(&mut compared.metrics, None, &documents, options);
    }
    Ok(compared)
}
