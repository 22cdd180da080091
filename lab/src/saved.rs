//! Saved results: which experiment a document is of, and the page that is made of it.
//!
//! An experiment takes part by a line in [`EXPERIMENTS`].

use crate::{ab, cached, engines, kernel, layers, scaling, sweep};
use serde::Serialize;
use serde::de::DeserializeOwned;
use ugeom_harness::HarnessError;
use ugeom_harness::document::{self, Document};
use ugeom_report::{Page, Saved};

/// An experiment that reports are made of.
struct Experiment {
    /// Its name in documents.
    name: &'static str,
    /// Makes the page of a document as text.
    page: fn(&str) -> Result<Page, HarnessError>,
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
        name: kernel::EXPERIMENT,
        page: |json| Ok(kernel::page(&serde_json::from_str(json).map_err(refused)?)),
    },
    Experiment {
        name: ugeom_trace::figures::EXPERIMENT,
        page: |json| {
            let traced = serde_json::from_str(json).map_err(refused)?;
            Ok(ugeom_trace::page::page(&traced))
        },
    },
    Experiment {
        name: engines::EXPERIMENT,
        page: |json| {
            let document = Document::from_json(json, engines::EXPERIMENT)?;
            Ok(engines::page(&document))
        },
    },
];

fn refused(error: serde_json::Error) -> HarnessError {
    HarnessError::Document(error.to_string())
}

/// Reads a document that an experiment saved, and makes its page.
///
/// # Errors
/// [`HarnessError::Document`] when it is no document, or one that this program does not know.
pub fn read(json: String) -> Result<Saved, HarnessError> {
    let experiment = document::experiment(&json)?;
    let known = EXPERIMENTS.iter().find(|known| known.name == experiment);
    let Some(known) = known else {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|known| known.name).collect();
        return Err(HarnessError::Document(format!(
            "it is of the experiment {experiment:?}; reports are made of {}",
            names.join(", ")
        )));
    };
    let page = (known.page)(&json)?;
    Saved::new(json, page)
}

/// The same of a document that has not been saved.
///
/// # Errors
/// As [`read`].
pub fn of<S: Serialize + DeserializeOwned>(document: &Document<S>) -> Result<Saved, HarnessError> {
    read(document.to_json()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::fixture;
    use ugeom_report::{to_html, write_html};

    #[test]
    fn a_result_is_saved_byte_for_byte_in_its_report() {
        use base64::Engine;
        let mut document = fixture::document(12);
        layers::compute(&mut document);
        let saved = of(&document).unwrap();
        assert_eq!(saved.json(), document.to_json().unwrap());
        let html = to_html(std::slice::from_ref(&saved));
        let (_, rest) = html
            .split_once("href=\"data:application/json;base64,")
            .unwrap();
        let (data, _) = rest.split_once('"').unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), saved.json());
        assert!(
            html.contains("<dt>cpu_model</dt><dd>Example CPU @ 2.80GHz</dd>"),
            "the machine"
        );
        assert!(
            html.contains("<dt>run_ns</dt><dd>50000000</dd>"),
            "the settings"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_html(std::slice::from_ref(&saved), &path).unwrap();
        assert!(std::fs::read_to_string(path).unwrap() == html);
        let nowhere = write_html(&[saved], &folder.path().join("no/report.html")).unwrap_err();
        assert!(
            nowhere
                .to_string()
                .contains("no/report.html: writing the report: "),
            "{nowhere}"
        );
    }

    #[test]
    fn what_is_no_result_is_refused_by_its_reason() {
        let refused = |json: &str| read(json.to_owned()).unwrap_err().to_string();
        let known = r#"{"schema": 1, "experiment": "layers"}"#;
        for (json, reason) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("[1, 2]", "expected a string"),
            ("{}", "missing field `schema`"),
            (
                r#"{"schema": 2, "experiment": "layers"}"#,
                "it has schema 2, this program reads 1",
            ),
            (
                r#"{"schema": 1, "experiment": "a<b"}"#,
                "it is of the experiment \"a<b\"; reports are made of layers",
            ),
            (known, "missing field `program`"),
        ] {
            let refused = refused(json);
            assert!(refused.starts_with("reading a saved result: "), "{refused}");
            assert!(refused.contains(reason), "{refused}");
        }
        // Neither is one that would use up the stack of a parser that calls itself.
        let deep = format!(r#"{{"x": {}, "schema": 1}}"#, "[".repeat(100_000));
        refused(&deep);
    }
}
