//! All experiments by their names: the work of a process that was started to measure one, and the
//! page of a saved result.
//!
//! An experiment takes part by a line in [`EXPERIMENTS`].

use crate::{cached, layers, scaling};
use serde::Deserialize;
use ugeom_ab as ab;
use ugeom_devices::{engines, kernel, sweep};
use ugeom_experiment::served::ServerKind;
use ugeom_experiment::{Experiment, Process, WorkerRequest};
use ugeom_harness::document::{self, Document};
use ugeom_harness::{Control, HarnessError, Meter};
use ugeom_report::{Page, Saved};

/// An experiment, of which only the name is known.
struct ListedExperiment {
    name: &'static str,
    page: fn(&str) -> Result<Page, HarnessError>,
    worker: Worker,
}

type Worker = fn(&str, &[ServerKind], &dyn Meter, &mut Control<'_>) -> Result<String, HarnessError>;

impl ListedExperiment {
    const fn of<E: Experiment>() -> Self {
        Self {
            name: E::NAME,
            page: |json| Ok((E::PAGE)(&Document::from_json(json, E::NAME)?)),
            worker: work::<E>,
        }
    }
}

fn work<E: Experiment>(
    request: &str,
    servers: &[ServerKind],
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<String, HarnessError> {
    let request: Result<WorkerRequest<E::Options>, _> = serde_json::from_str(request);
    let refused = |error: serde_json::Error| HarnessError::Document(error.to_string());
    let mut request = request.map_err(refused)?;
    E::set_servers(&mut request.options, servers);
    let process = Process::new(&request.share, meter, control);
    let document = E::measure(&request.options, process)?;
    serde_json::to_string(&document).map_err(refused)
}

/// All experiments of which reports are made; `ab` measures in a way of its own.
const EXPERIMENTS: &[ListedExperiment] = &[
    ListedExperiment::of::<layers::Layers>(),
    ListedExperiment::of::<scaling::Scaling>(),
    ListedExperiment::of::<cached::Cached>(),
    ListedExperiment::of::<sweep::Sweep>(),
    ListedExperiment::of::<engines::Engines>(),
];

/// The work of a process that `run` of the module `experiment` started: reads a request, measures,
/// and returns the document as text.
///
/// # Errors
/// As [`Experiment::measure`]; [`HarnessError::Document`] when it is no request.
pub fn worker(
    request: &str,
    servers: &[ServerKind],
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<String, HarnessError> {
    #[derive(Deserialize)]
    struct Head {
        experiment: String,
    }
    let head: Head =
        serde_json::from_str(request).map_err(|error| HarnessError::Document(error.to_string()))?;
    let entry = EXPERIMENTS.iter().find(|one| one.name == head.experiment);
    let Some(entry) = entry else {
        return Err(HarnessError::Document(format!(
            "there is no experiment {:?}",
            head.experiment
        )));
    };
    (entry.worker)(request, servers, meter, control)
}

/// Reads a document that an experiment saved, and makes its page.
///
/// # Errors
/// [`HarnessError::Document`] when it is no document, or one that this program does not know.
pub fn read(json: String) -> Result<Saved, HarnessError> {
    let experiment = document::experiment(&json)?;
    if experiment == ab::EXPERIMENT {
        let page = ab::page(&Document::from_json(&json, ab::EXPERIMENT)?);
        return Saved::new(json, page);
    }
    let refused = |error: serde_json::Error| HarnessError::Document(error.to_string());
    if experiment == kernel::EXPERIMENT {
        let page = kernel::page(&serde_json::from_str(&json).map_err(refused)?);
        return Saved::new(json, page);
    }
    if experiment == ugeom_trace::figures::EXPERIMENT {
        let page = ugeom_trace::page::page(&serde_json::from_str(&json).map_err(refused)?);
        return Saved::new(json, page);
    }
    let Some(entry) = EXPERIMENTS.iter().find(|one| one.name == experiment) else {
        let traced = ugeom_trace::figures::EXPERIMENT;
        let others = [ab::EXPERIMENT, kernel::EXPERIMENT, traced];
        let names = EXPERIMENTS.iter().map(|one| one.name);
        let names: Vec<&str> = names.chain(others).collect();
        return Err(HarnessError::Document(format!(
            "it is of the experiment {experiment:?}; reports are made of {}",
            names.join(", ")
        )));
    };
    let page = (entry.page)(&json)?;
    Saved::new(json, page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::fixture;
    use ugeom_experiment::saved;
    use ugeom_report::to_html;

    #[test]
    fn a_result_is_saved_byte_for_byte_in_its_report() {
        use base64::Engine;
        let mut document = fixture::document(12);
        layers::compute(&mut document);
        let saved = saved::<layers::Layers>(&document).unwrap();
        assert_eq!(saved.json(), document.to_json().unwrap());
        assert_eq!(read(saved.json().to_owned()).unwrap(), saved);
        let html = to_html(std::slice::from_ref(&saved));
        let (_, rest) = html
            .split_once("href=\"data:application/gzip;base64,")
            .unwrap();
        let (data, _) = rest.split_once('"').unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        // Between the head of a gzip file and its checksum.
        let packed = &bytes[10..bytes.len() - 8];
        let bytes = miniz_oxide::inflate::decompress_to_vec(packed).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), saved.json());
        let machine = "<dt>cpu_model</dt><dd>Example CPU @ 2.80GHz</dd>";
        assert!(html.contains(machine) && html.contains("<dt>run_ns</dt><dd>50000000</dd>"));
    }

    #[test]
    fn a_result_that_is_nested_deeply_is_refused_and_uses_no_stack() {
        let deep = format!(r#"{{"x": {}, "schema": 1}}"#, "[".repeat(100_000));
        assert!(read(deep).is_err());
    }

    #[test]
    fn a_request_is_measured_and_others_are_refused() {
        use ugeom_harness::Machine;
        use ugeom_harness::processes::Share;
        let mut control = Control::silent();
        let request = WorkerRequest {
            experiment: scaling::EXPERIMENT.to_owned(),
            options: scaling::ScalingOptions {
                workers: vec![1],
                ..scaling::ScalingOptions::default()
            },
            share: Share {
                number: 1,
                of: 12,
                rounds: 3,
                ..Share::alone(5, Some(1))
            },
        };
        let request = serde_json::to_string(&request).unwrap();
        let text = worker(&request, &[], &Machine, &mut control).unwrap();
        let document: scaling::Document = Document::from_json(&text, scaling::EXPERIMENT).unwrap();
        // A budget that is spent leaves one round of the three.
        assert_eq!((document.rounds(), document.settings.seed), (1, 5));
        for (text, reason) in [
            ("{}", "missing field `experiment`"),
            (r#"{"experiment": "x"}"#, "there is no experiment \"x\""),
            (r#"{"experiment": "sweep"}"#, "missing field `options`"),
        ] {
            let error = worker(text, &[], &Machine, &mut control).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
