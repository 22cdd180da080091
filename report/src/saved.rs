//! Saved results beside their pages, for reports that hold both.

use crate::Page;
use ugeom_harness::HarnessError;

/// A result with its page.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    page: Page,
    text: String,
    form: Form,
    details: Vec<Details>,
}

/// The kind of a saved text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A document of this program.
    Json,
    /// A result of another program.
    Foreign,
}

/// Names and values under a title, as the document has them.
type Details = (&'static str, Vec<(String, String)>);

/// The parts of a document that reports show as they are, and their names.
const DETAILS: [(&str, &str); 3] = [
    ("host", "The machine, as it was saved"),
    ("target", "The target, as it was saved"),
    ("settings", "How it was measured, as it was saved"),
];

impl Saved {
    /// A document as text, and the page that was made of it.
    ///
    /// # Errors
    /// [`HarnessError::Document`] when it is no JSON.
    pub fn new(json: String, page: Page) -> Result<Self, HarnessError> {
        let details = details(&json)?;
        Ok(Self {
            page,
            text: json,
            form: Form::Json,
            details,
        })
    }

    /// A result of another program, and its page.
    pub fn foreign(text: String, page: Page) -> Self {
        Self {
            page,
            text,
            form: Form::Foreign,
            details: Vec::new(),
        }
    }

    /// The kind of the text.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// The page, to be shown or written in any form.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// The document, or another program's file, byte for byte.
    pub fn json(&self) -> &str {
        &self.text
    }

    /// The machine, the target and the settings as the document has them.
    pub(super) fn details(&self) -> &[Details] {
        &self.details
    }
}

fn details(json: &str) -> Result<Vec<Details>, HarnessError> {
    let document: serde_json::Value =
        serde_json::from_str(json).map_err(|error| HarnessError::Document(error.to_string()))?;
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
        Value::String(text) => entries.push((name.to_owned(), crate::clean::one_line(text))),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
            entries.push((name.to_owned(), crate::clean::one_line(&value.to_string())));
        }
    }
}

#[cfg(test)]
impl Saved {
    /// A page without a document behind it.
    pub fn alone(page: Page) -> Self {
        Self {
            form: Form::Json,
            ..Self::foreign("{}".to_owned(), page)
        }
    }
}
