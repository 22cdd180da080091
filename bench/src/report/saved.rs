//! Saved results: which experiment a document is of, and the page that is made of it.
//!
//! An experiment takes part by a line in [`EXPERIMENTS`].

use super::html::html;
use super::page::Page;
use crate::BenchError;
use crate::json::{self, Document};
use crate::{ab, cached, engines, layers, scaling, sweep};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// An experiment that reports are made of.
struct Experiment {
    /// Its name in documents.
    name: &'static str,
    /// Makes the page of a document as text.
    page: fn(&str) -> Result<Page, BenchError>,
}

/// All of them.
const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: layers::EXPERIMENT,
        page: |json| {
            let document = Document::from_json(json, layers::EXPERIMENT)?;
            Ok(layers::page(&document))
        },
    },
    Experiment {
        name: scaling::EXPERIMENT,
        page: |json| {
            let document = Document::from_json(json, scaling::EXPERIMENT)?;
            Ok(scaling::report(&document))
        },
    },
    Experiment {
        name: cached::EXPERIMENT,
        page: |json| {
            let document = Document::from_json(json, cached::EXPERIMENT)?;
            Ok(cached::page(&document))
        },
    },
    Experiment {
        name: ab::EXPERIMENT,
        page: |json| {
            let document = Document::from_json(json, ab::EXPERIMENT)?;
            Ok(ab::page(&document))
        },
    },
    Experiment {
        name: sweep::EXPERIMENT,
        page: |json| Ok(sweep::page(&Document::from_json(json, sweep::EXPERIMENT)?)),
    },
    Experiment {
        name: engines::EXPERIMENT,
        page: |json| {
            let document = Document::from_json(json, engines::EXPERIMENT)?;
            Ok(engines::page(&document))
        },
    },
];

/// A result with its page.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    page: Page,
    json: String,
    details: Vec<Details>,
}

/// Names and values under a title, as the document has them.
type Details = (&'static str, Vec<(String, String)>);

/// The parts of a document that reports show as they are, and what they are.
const DETAILS: [(&str, &str); 3] = [
    ("host", "The machine, as it was saved"),
    ("target", "The target, as it was saved"),
    ("settings", "How it was measured, as it was saved"),
];

impl Saved {
    /// Reads a document that an experiment saved, and makes its page.
    ///
    /// # Errors
    /// [`BenchError::Document`] when it is no document, or one that this program does not know.
    pub fn read(json: String) -> Result<Self, BenchError> {
        let experiment = json::experiment(&json)?;
        let known = EXPERIMENTS.iter().find(|known| known.name == experiment);
        let Some(known) = known else {
            let names: Vec<&str> = EXPERIMENTS.iter().map(|known| known.name).collect();
            return Err(BenchError::Document(format!(
                "it is of the experiment {experiment:?}; reports are made of {}",
                names.join(", ")
            )));
        };
        let page = (known.page)(&json)?;
        let details = details(&json)?;
        Ok(Self {
            page,
            json,
            details,
        })
    }

    /// The same of a document that has not been saved.
    ///
    /// # Errors
    /// As [`Saved::read`].
    pub fn of<S: Serialize + DeserializeOwned>(document: &Document<S>) -> Result<Self, BenchError> {
        Self::read(document.to_json()?)
    }

    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// The document, byte for byte.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The machine, the target and the settings as the document has them.
    pub(super) fn details(&self) -> &[Details] {
        &self.details
    }
}

/// The reports of results as one HTML file that needs nothing else.
pub fn to_html(results: &[Saved]) -> String {
    html(results)
}

/// Writes the reports of results as one HTML file.
///
/// # Errors
/// [`BenchError::Os`] when the file cannot be written.
pub fn write_html(results: &[Saved], path: &Path) -> Result<(), BenchError> {
    let written = std::fs::write(path, to_html(results));
    written.map_err(BenchError::os(
        path.display().to_string(),
        "writing the report",
    ))
}

fn details(json: &str) -> Result<Vec<Details>, BenchError> {
    let document: serde_json::Value =
        serde_json::from_str(json).map_err(|error| BenchError::Document(error.to_string()))?;
    let part = |(name, title): &(&str, &'static str)| {
        let mut entries = Vec::new();
        flatten("", document.get(name)?, &mut entries);
        (!entries.is_empty()).then_some((*title, entries))
    };
    Ok(DETAILS.iter().filter_map(part).collect())
}

/// Each value with the names on the way to it.
fn flatten(name: &str, value: &serde_json::Value, entries: &mut Vec<(String, String)>) {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(&format!("{name}{dot}{field}"), value, entries);
            }
        }
        Value::Null => {}
        Value::String(text) => entries.push((name.to_owned(), super::clean::one_line(text))),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
            entries.push((name.to_owned(), super::clean::one_line(&value.to_string())));
        }
    }
}

#[cfg(test)]
impl Saved {
    /// A page without a document behind it.
    pub(super) fn alone(page: Page) -> Self {
        let (json, details) = ("{}".to_owned(), Vec::new());
        Self {
            page,
            json,
            details,
        }
    }
}
