//! Results of other programs, as series of values: fio, hyperfine, criterion, Go's benchmarks and
//! iostat; and our own documents in the same form.
//!
//! | format | recognized by | one value is |
//! |---|---|---|
//! | ugeom `--json` | `schema` and `experiment`, or an array of such | a process |
//! | fio `--output-format=json` | `fio version`, `jobs` or `client_stats` | a job of a file |
//! | hyperfine `--export-json` | `results` with a `command` each | a run |
//! | criterion | `sample.json`, `estimates.json` | a sample; an estimate |
//! | Go | lines `BenchmarkNAME N VALUE UNIT ...`, also as events of `go test -json` | a line |
//! | iostat `-o JSON` | `sysstat` | an interval |

mod criterion;
mod fio;
mod go;
mod hyperfine;
mod iostat;
mod own;
#[cfg(test)]
mod tests;

pub use own::series;

use crate::HarnessError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ugeom_measure::change::Better;

/// The values of one quantity of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The benchmark: a case, a job, a command, a device.
    pub case: String,
    /// The quantity: `time`, `iops` and so on.
    pub metric: String,
    /// The unit of the values.
    pub unit: String,
    /// The direction of better values.
    pub better: Better,
    /// The values, in the order in which they were measured.
    pub values: Vec<f64>,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A result of `ugeom lab` or `ugeom ab`.
    Ugeom,
    /// The JSON of fio (`--output-format=json`).
    Fio,
    /// The JSON of hyperfine (`--export-json`).
    Hyperfine,
    /// criterion's `sample.json` or `estimates.json`.
    Criterion,
    /// The text of Go's benchmarks.
    Go,
    /// iostat's JSON (`-o JSON`).
    Iostat,
}

/// More values than this are no result.
const VALUES_MAX: usize = 10_000_000;

impl Series {
    fn new(case: &str, metric: &str, unit: &str, better: Better, values: Vec<f64>) -> Self {
        let [case, metric, unit] = [case, metric, unit].map(str::to_owned);
        Self {
            case,
            metric,
            unit,
            better,
            values,
        }
    }
}

impl Format {
    /// Its name in words.
    pub fn what(self) -> &'static str {
        match self {
            Self::Go => "Go's benchmarks",
            other => other.id(),
        }
    }

    /// Its name in one word, as in the saved form.
    pub fn id(self) -> &'static str {
        match self {
            Self::Ugeom => "ugeom",
            Self::Fio => "fio",
            Self::Hyperfine => "hyperfine",
            Self::Criterion => "criterion",
            Self::Go => "go",
            Self::Iostat => "iostat",
        }
    }

    /// Whether values of one file are those of one process, so that what differs between processes
    /// is not among them.
    pub fn is_of_one_process(self) -> bool {
        matches!(self, Self::Criterion | Self::Go)
    }
}

/// Reads a result of any of the formats. `name` is that of its file and stands in errors; a
/// criterion result is named `case`, for its file does not hold its name.
///
/// # Errors
/// [`HarnessError::Compare`] with the name, the place and what was expected there.
pub fn read(name: &str, case: &str, text: &str) -> Result<(Format, Vec<Series>), HarnessError> {
    let named = |problem: String| HarnessError::Compare(format!("{name}: {problem}"));
    let (format, series) = parsed(case, text).map_err(named)?;
    let mut merged: Vec<Series> = Vec::new();
    for one in series {
        // Differences of ugeom's own times may be below 0, and quantities that Go's users invent.
        let is_time = format != Format::Ugeom && one.unit == "ns";
        let is_measured = |value: &f64| value.is_finite() && (*value >= 0.0 || !is_time);
        if let Some(value) = one.values.iter().find(|value| !is_measured(value)) {
            let Series {
                case, metric, unit, ..
            } = &one;
            let problem = format!("{case}, {metric}: {value} {unit} is no measured value");
            return Err(named(problem));
        }
        merge(&mut merged, one);
    }
    merged.retain(|one| !one.values.is_empty());
    if merged.is_empty() {
        return Err(named(format!(
            "a result of {} without any value",
            format.what()
        )));
    }
    if merged.iter().map(|one| one.values.len()).sum::<usize>() > VALUES_MAX {
        return Err(named(format!("more than {VALUES_MAX} values")));
    }
    Ok((format, merged))
}

/// Adds a series, to one of the same benchmark and quantity if there is one.
pub fn merge(all: &mut Vec<Series>, one: Series) {
    let same = |other: &&mut Series| {
        (&other.case, &other.metric, &other.unit) == (&one.case, &one.metric, &one.unit)
    };
    match all.iter_mut().find(same) {
        Some(other) => other.values.extend(one.values),
        None => all.push(one),
    }
}

fn parsed(case: &str, text: &str) -> Result<(Format, Vec<Series>), String> {
    let start = json_start(text);
    let Some((skipped, json)) = start else {
        return match go::is_benchmarks(text) {
            true => Ok((Format::Go, go::parse(text)?)),
            false => Err(unknown(text)),
        };
    };
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let first = values.next().unwrap_or(Ok(Value::Null));
    let value = first.map_err(|error| {
        let (line, column) = (error.line() + skipped, error.column());
        let reason = error.to_string();
        // The reason ends with the place in the JSON, which is not that in the file.
        let place = format!(" at line {} column {column}", error.line());
        let reason = reason.strip_suffix(&place).unwrap_or(&reason);
        format!("line {line}, column {column}: no JSON: {reason}")
    })?;
    let end = values.byte_offset();
    if value.get("Action").is_some() {
        let events = std::iter::once(value).chain(values.map_while(Result::ok));
        return Ok((Format::Go, go::parse_events(events)?));
    }
    if has_any(&value, &["fio version", "jobs"]) {
        // fio writes a result for each interval of its status, and may write text behind them.
        let results = values.map_while(Result::ok).take_while(Value::is_object);
        let value = results.last().unwrap_or(value);
        return Ok((Format::Fio, fio::parse(&value)?));
    }
    if let Some(at) = json[end..].find(|c: char| !c.is_whitespace()) {
        let line = json[..end + at].matches('\n').count() + 1 + skipped;
        return Err(format!("line {line}: text after the JSON"));
    }
    let first = value.get(0).unwrap_or(&Value::Null);
    if first.get("schema").is_some() && first.get("experiment").is_some() {
        return Ok((Format::Ugeom, own::parse_all(json)?));
    }
    let has = |key: &str| value.get(key).is_some();
    if has("schema") && has("experiment") {
        return Ok((Format::Ugeom, own::parse(json)?));
    }
    if has("sysstat") {
        return Ok((Format::Iostat, iostat::parse(&value)?));
    }
    if has("results") {
        return Ok((Format::Hyperfine, hyperfine::parse(&value)?));
    }
    if (has("iters") && has("times")) || has("median") {
        return Ok((Format::Criterion, criterion::parse(case, &value)?));
    }
    let keys = value.as_object().map(|fields| {
        let keys: Vec<&str> = fields.keys().take(5).map(String::as_str).collect();
        keys.join(", ")
    });
    Err(match keys {
        Some(keys) if keys.is_empty() => format!("an empty JSON object; {EXPECTED}"),
        Some(keys) => format!("JSON of an unknown kind with the keys {keys}; {EXPECTED}"),
        None => format!("JSON, but no object; {EXPECTED}"),
    })
}

const EXPECTED: &str = "expected a result of ugeom, fio (fio version, jobs), hyperfine (results), \
                        criterion (sample.json, estimates.json), iostat (sysstat), or Go's \
                        benchmarks as text";

/// The JSON in a file: programs print notes before it, as fio does. With the lines before it.
fn json_start(text: &str) -> Option<(usize, &str)> {
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.starts_with(['{', '[']) {
            return Some((number, &text[at..]));
        }
        // A text that begins with anything but a note is no JSON.
        if number > 100 {
            return None;
        }
        at += line.len();
    }
    None
}

fn unknown(text: &str) -> String {
    let line = text.lines().position(|line| !line.trim().is_empty());
    let shown = line.and_then(|at| text.lines().nth(at)).unwrap_or_default();
    let shown: String = shown.chars().filter(|c| !c.is_control()).take(40).collect();
    match line {
        Some(at) if shown.trim().is_empty() => format!("line {} is no text; {EXPECTED}", at + 1),
        Some(at) => format!("line {}, `{shown}`: {EXPECTED}", at + 1),
        None => format!("is empty; {EXPECTED}"),
    }
}

fn has_any(value: &Value, keys: &[&str]) -> bool {
    keys.iter().any(|key| value.get(key).is_some())
}

/// The field of an object, for errors with a path.
fn field<'a>(value: &'a Value, path: &str, key: &str) -> Result<&'a Value, String> {
    value
        .get(key)
        .ok_or_else(|| format!("{path}: there is no `{key}`"))
}

fn list<'a>(value: &'a Value, path: &str, key: &str) -> Result<&'a [Value], String> {
    let found = field(value, path, key)?;
    let items = found.as_array().map(Vec::as_slice);
    items.ok_or_else(|| format!("{path}.{key}: expected a list"))
}

fn text<'a>(value: &'a Value, path: &str, key: &str) -> Result<&'a str, String> {
    let found = field(value, path, key)?;
    found
        .as_str()
        .ok_or_else(|| format!("{path}.{key}: expected a text"))
}

/// A number; `key` may be a path of fields.
fn number(value: &Value, keys: &[&str]) -> Option<f64> {
    let found = keys.iter().try_fold(value, |value, key| value.get(key))?;
    found.as_f64()
}
