//! Figures of documents whose costs are known.

use super::*;
use crate::layers::fixture;
use ugeom_harness::figure::Reached;
use ugeom_testkit::ends;

fn computed(rounds: usize) -> Document {
    let mut document = fixture::document(rounds);
    compute(&mut document);
    document
}

#[track_caller]
fn assert_covers(document: &Document, id: &str, truth: f64, half_width_max: f64) {
    let figure = document
        .figure(id)
        .unwrap_or_else(|| panic!("there is no figure {id}"));
    // Rounds drift by up to 4 %, 2 % in the mean, and with them every cost.
    let interval = figure.interval;
    assert!(
        interval.low / 1.04 <= truth && truth <= interval.high,
        "{id}: {truth} is not within {interval}"
    );
    assert!(
        interval.half_width() <= half_width_max,
        "{id}: {interval} is wide"
    );
}

#[test]
fn costs_are_found_within_their_intervals() {
    let document = computed(12);
    assert_covers(&document, "geom.cost", 21.0, 0.5);
    assert_covers(&document, "layer.md0s1", 3.0, 0.3);
    assert_covers(&document, "layer.md0s1c", 3.0, 0.3);
    assert_covers(&document, "layer.mean", 3.0, 0.2);
    assert_covers(&document, "slope.slicers.off", 1.5, 0.1);
    assert_covers(&document, "slope.slicers.counts", 3.0, 0.1);
    assert_covers(&document, "slope.hooks.off", 6.5, 0.2);
    assert_covers(&document, "floor.calls", 0.9, 0.05);
    assert_covers(&document, "null.read", 12.0, 0.3);
    assert_covers(&document, "null.scaling", 12.0 / 6.2, 0.02);
    assert_covers(&document, "by_cpu.null.scaling", 12.0 / 6.2, 0.02);
    assert_covers(&document, "by_cpu.slope.slicers.off", 1.5, 0.1);
    assert_covers(&document, "queued.cost", 3_970.0, 60.0);
    assert_covers(&document, "queued.scaling", 1.5, 0.02);
    assert_covers(&document, "cpu.queued.helpers", 4_000.0, 60.0);
    assert_covers(&document, "statistics.counts", 10.0, 0.3);
}

#[test]
fn shares_are_of_the_memory_disk_and_of_a_real_one() {
    let document = computed(12);
    assert_covers(&document, "geom.share", 233.3, 3.0);
    assert_covers(&document, "layer.share", 10.0, 0.6);
    assert_covers(&document, "geom.share.disk", 0.021, 0.001);
    assert_covers(&document, "layer.share.disk", 0.003, 0.000_3);
}

#[test]
fn what_is_the_same_is_not_significant_to_differ() {
    let document = computed(12);
    for id in [
        "control",
        "plain.md0s1",
        "plain.md0s1c",
        "size.4096",
        "size.65536",
    ] {
        let figure = document.figure(id).unwrap();
        assert_eq!(figure.significant, Some(false), "{id}: {}", figure.amount());
    }
    for id in [
        "geom.cost",
        "layer.md0s1",
        "layer.md0s1c",
        "queued.cost",
        "statistics.time",
    ] {
        assert_eq!(document.figure(id).unwrap().significant, Some(true), "{id}");
    }
    let noise = document.noise.unwrap();
    assert!(!noise.order_matters() && noise.percent() < 3.0, "{noise}");
}

#[test]
fn goals_are_judged_reached_and_missed() {
    let document = computed(12);
    let reached = |id: &str| document.figure(id).unwrap().reached();
    assert_eq!(reached("slope.slicers.off"), Some(Reached::Yes));
    assert_eq!(reached("slope.slicers.counts"), Some(Reached::Yes));
    assert_eq!(reached("slope.hooks.off"), Some(Reached::No));
    assert_eq!(reached("null.read"), Some(Reached::Yes));
    assert_eq!(reached("null.scaling"), Some(Reached::Yes));
    assert_eq!(reached("delay.all"), Some(Reached::Yes));
    assert_eq!(reached("geom.cost"), None);
}

#[test]
fn too_few_rounds_give_no_figure_instead_of_a_wrong_one() {
    let document = computed(2);
    for id in [
        "geom.cost",
        "layer.md0s1",
        "slope.slicers.off",
        "null.scaling",
    ] {
        assert_eq!(document.figure(id), None, "{id}");
    }
    assert_eq!(document.noise, None);
    assert!(computed(0).figures.is_empty());
}

#[test]
fn from_six_processes_on_each_process_is_one_observation() {
    let mut document = fixture::document(12);
    document.processes = (0..6)
        .map(|seed| fixture::measured(&fixture::cases(), 5, seed))
        .collect();
    compute(&mut document);
    assert_covers(&document, "geom.cost", 21.0, 1.0);
    assert_eq!(document.figure("geom.cost").unwrap().values.len(), 6);
}

#[test]
fn figures_that_no_sample_gives_are_kept() {
    let mut document = fixture::document(12);
    let bytes = Interval::exact(65_536.0, 0.95);
    document.figures.push(Figure::plain(
        "show.bytes",
        "bytes read",
        Unit::Bytes,
        bytes,
    ));
    compute(&mut document);
    compute(&mut document);
    let shown = document
        .figures
        .iter()
        .filter(|figure| figure.id == "show.bytes")
        .count();
    assert_eq!(shown, 1);
    let costs = document
        .figures
        .iter()
        .filter(|figure| figure.id == "geom.cost")
        .count();
    assert_eq!(costs, 1);
}

#[test]
fn a_document_comes_back_from_its_text() {
    let document = computed(12);
    let text = document.to_json().unwrap();
    let back = Document::from_json(&text, "layers").unwrap();
    assert_eq!(back.figures.len(), document.figures.len());
    assert!(back == document, "a number changed on the way");
    let error = Document::from_json(&text, "sweep").unwrap_err().to_string();
    assert_eq!(
        error,
        "reading a saved result: it is of the experiment layers, not sweep"
    );
    let newer = text.replacen("\"schema\": 1", "\"schema\": 2", 1);
    let error = Document::from_json(&newer, "layers")
        .unwrap_err()
        .to_string();
    ends(&error, "it has schema 2, this program reads 1");
    assert!(Document::from_json("{", "layers").is_err());
}

/// All keys of a document that are names of fields.
fn keys(value: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_and_figure_of_a_document_is_described() {
    let page = include_str!("../../../../docs/results.md");
    let words: Vec<&str> = page
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let document = computed(12);
    let mut found = std::collections::BTreeSet::new();
    keys(&serde_json::to_value(&document).unwrap(), &mut found);
    assert!(found.len() > 40);
    for key in &found {
        assert!(
            words.contains(&key.as_str()),
            "docs/results.md has no word on the field {key}"
        );
    }
    for figure in &document.figures {
        let group = figure.id.split('.').next().unwrap();
        let told = [format!("`{group}."), format!("`{group}`")];
        let is_told = told.iter().any(|word| page.contains(word.as_str()));
        assert!(is_told, "docs/results.md has no word on {}", figure.id);
    }
    for case in &document.processes[0].cases {
        let group = case.split('/').next().unwrap();
        assert!(
            page.contains(&format!("`{group}/")),
            "docs/results.md has no word on {case}"
        );
    }
}
