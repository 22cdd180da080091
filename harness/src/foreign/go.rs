//! The text of `go test -bench`: `BenchmarkNAME-CPUS ITERATIONS VALUE UNIT VALUE UNIT ...`, with
//! `key: value` lines before it. The format is that of Go's proposal 14313.

use super::Series;
use serde_json::Value;
use std::collections::BTreeMap;
use ugeom_measure::change::Better;

const PREFIX: &str = "Benchmark";

/// Whether any line is one of a benchmark.
pub(super) fn is_benchmarks(text: &str) -> bool {
    text.lines().any(|line| iterations(line).is_some())
}

/// The fields of a line of results: a name, and a number of iterations.
fn iterations(line: &str) -> Option<(&str, std::str::SplitWhitespace<'_>)> {
    let mut fields = line.split_whitespace();
    let name = fields.next()?.strip_prefix(PREFIX)?;
    // `Benchmarking` is no benchmark.
    if name.starts_with(|c: char| c.is_lowercase()) {
        return None;
    }
    fields.next()?.parse::<u64>().ok()?;
    Some((name, fields))
}

pub(super) fn parse(text: &str) -> Result<Vec<Series>, String> {
    let mut series = Vec::new();
    let mut package = "";
    for (number, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("pkg:") {
            package = name.trim();
        }
        // Tests print what they like between results.
        let Some((name, fields)) = iterations(line) else { continue };
        let case = match package {
            "" => name.to_owned(),
            package => format!("{package}.{name}"),
        };
        let fields: Vec<&str> = fields.collect();
        if fields.is_empty() || !fields.len().is_multiple_of(2) {
            return Err(format!(
                "line {}: expected pairs of a value and a unit after the iterations",
                number + 1
            ));
        }
        for pair in fields.chunks_exact(2) {
            let value: f64 = pair[0]
                .parse()
                .map_err(|_| format!("line {}: `{}` is no number", number + 1, pair[0]))?;
            super::merge(&mut series, of_unit(&case, value, pair[1]));
        }
    }
    Ok(series)
}

/// The events of `go test -json`: the output of each package, in pieces.
pub(super) fn parse_events(events: impl Iterator<Item = Value>) -> Result<Vec<Series>, String> {
    let mut outputs: BTreeMap<String, String> = BTreeMap::new();
    for event in events {
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        if let (Some("output"), Some(output)) = (text("Action"), text("Output")) {
            let package = text("Package").unwrap_or_default().to_owned();
            outputs.entry(package).or_default().push_str(output);
        }
    }
    let mut series = Vec::new();
    for output in outputs.values() {
        for one in parse(output)? {
            super::merge(&mut series, one);
        }
    }
    Ok(series)
}

fn of_unit(case: &str, value: f64, unit: &str) -> Series {
    let (metric, unit, value) = match unit {
        "ns/op" => ("time", "ns", value),
        "MB/s" => ("bytes_per_second", "bytes/s", value * 1e6),
        other => (other, other, value),
    };
    let better = match unit.ends_with("/s") {
        true => Better::Higher,
        false => Better::Lower,
    };
    Series::new(case, metric, unit, better, vec![value])
}
