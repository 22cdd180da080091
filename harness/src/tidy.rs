//! Samples as one table, a value a line, for programs that compute with them: `pandas.read_csv`
//! reads it without options, and so does R.
//!
//! | column | meaning |
//! |---|---|
//! | `experiment` | its name |
//! | `case` | what was measured |
//! | `metric` | what of it: `time`, `cpu`, `bytes_per_second` and so on |
//! | `round` | the round, counted from 1 over all processes |
//! | `value` | the value, in digits |
//! | `unit` | `ns`, `bytes/s`, `1/s`; `1` for a number without a unit |
//! | `process` | the process, counted from 1: the observation that the round belongs to |

use crate::document::Document;
use crate::foreign::Series;
use crate::metric::Metric;

/// First line of the file: the names of the columns.
pub const HEADER: &str = "experiment,case,metric,round,value,unit,process";

/// One value of one round, with its names.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Name of the experiment, as `layers`.
    pub experiment: String,
    /// Name of the benchmark case.
    pub case: String,
    /// Name of the metric, as in the document.
    pub metric: String,
    /// The round, from 1.
    pub round: u64,
    /// The value in `unit`.
    pub value: f64,
    /// The unit of the value.
    pub unit: String,
    /// The process, from 1.
    pub process: u64,
}

/// The samples of a document, one observation a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(pub Vec<Observation>);

/// The samples of a document, in every metric that they hold.
pub fn table<S>(document: &Document<S>) -> Table {
    let mut lines = Vec::new();
    let mut number = 0;
    for (process, measured) in document.processes.iter().enumerate() {
        for round in &measured.rounds {
            number += 1;
            for (case, sample) in measured.cases.iter().zip(&round.samples) {
                for metric in Metric::ALL {
                    let Some(value) = metric.of(sample).filter(|value| value.is_finite()) else {
                        continue;
                    };
                    lines.push(Observation {
                        experiment: document.experiment.clone(),
                        case: case.clone(),
                        metric: metric.id().to_owned(),
                        round: number,
                        value,
                        unit: metric.unit().to_owned(),
                        process: process as u64 + 1,
                    });
                }
            }
        }
    }
    Table(lines)
}

/// The values of another program's result; each stands for a round of its own.
pub fn of_series(experiment: &str, all: &[Series]) -> Table {
    let lines = all.iter().flat_map(|one| {
        one.values
            .iter()
            .zip(1..)
            .map(|(value, round)| Observation {
                experiment: experiment.to_owned(),
                case: one.case.clone(),
                metric: one.metric.clone(),
                round,
                value: *value,
                unit: one.unit.clone(),
                process: round,
            })
    });
    Table(lines.collect())
}

impl Table {
    /// Adds the lines of another table.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The table as CSV (RFC 4180), the names of the columns first.
    pub fn to_csv(&self) -> String {
        let mut out = format!("{HEADER}\n");
        for line in &self.0 {
            // An empty field is a missing value to pandas.
            let unit = match line.unit.as_str() {
                "" => "1",
                unit => unit,
            };
            let texts = [line.experiment.as_str(), &line.case, &line.metric, unit];
            let [experiment, case, metric, unit] = texts.map(field);
            out.push_str(&format!(
                "{experiment},{case},{metric},{},{},{unit},{}\n",
                line.round, line.value, line.process
            ));
        }
        out
    }
}

/// A field that no reader takes for two, and no spreadsheet for a formula, of which it would run
/// programs (CWE-1236).
pub fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']) && text.chars().count() > 1;
    let text: String = match formula {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if plain.contains([',', '"']) || plain.starts_with(' ') {
        return format!("\"{}\"", plain.replace('"', "\"\""));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_line_with_its_names_quoted() {
        let one = Observation {
            experiment: "ab".to_owned(),
            case: "sort -n \"a\", b".to_owned(),
            metric: "time".to_owned(),
            round: 1,
            value: 1.5e9,
            unit: "ns".to_owned(),
            process: 2,
        };
        let plain = Observation {
            unit: String::new(),
            ..one.clone()
        };
        let text = Table(vec![plain]).to_csv();
        assert!(text.ends_with(",time,1,1500000000,1,2\n"), "{text}");
        let text = Table(vec![one]).to_csv();
        let line = "ab,\"sort -n \"\"a\"\", b\",time,1,1500000000,ns,2";
        assert_eq!(text, format!("{HEADER}\n{line}\n"));
        assert_eq!(field("=cmd()"), "'=cmd()");
        assert_eq!(field("a\nb"), "a b");
    }
}
