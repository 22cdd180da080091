//! A result as one JSON document: the machine, the settings, every raw sample, and the figures
//! that were computed from them. `docs/results.md` describes it field by field.
//!
//! A report is made from a document and nothing else, so that a saved result reads the same later.

use crate::HarnessError;
use crate::figure::Figure;
use crate::host::{Host, TargetFacts};
use crate::rounds::{Failure, Measured, Sample, Settings};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use ugeom_measure::{Blocks, Noise};

/// The version of the schema: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// From so many processes on, the mean of each process is one observation.
const PROCESSES_MIN: usize = 5;

/// A result. `S` is the experiment's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document<S> {
    /// Version of the form: [`SCHEMA`] where this program has written it.
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// The name of the experiment.
    pub experiment: String,
    /// The machine that measured.
    pub host: Host,
    /// How it was measured.
    pub settings: Settings,
    /// The file or device that was measured, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetFacts>,
    /// The description of the measurement, in the experiment's terms.
    pub subject: S,
    /// One measurement for each process that took part.
    pub processes: Vec<Measured>,
    /// The time of all of it with what was prepared and started for it, ns; none in results of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// The difference of two measurements of the same thing in one round; none with too few rounds.
    pub noise: Option<Noise>,
    /// The figures computed from them.
    pub figures: Vec<Figure>,
}

impl<S> Document<S> {
    /// The document of one measurement in this process, without noise and figures.
    pub fn new(
        experiment: &str,
        host: Host,
        settings: Settings,
        subject: S,
        measured: Measured,
    ) -> Self {
        Self {
            schema: SCHEMA,
            program: concat!("ugeom ", env!("CARGO_PKG_VERSION")).to_owned(),
            experiment: experiment.to_owned(),
            host,
            settings,
            target: None,
            subject,
            processes: vec![measured],
            took_ns: None,
            noise: None,
            figures: Vec::new(),
        }
    }

    /// The wall time of one iteration, ns, as a table for comparisons. Its rows are rounds, or
    /// the means of whole processes when there are five of them: memory is laid out
    /// anew in each process, and only processes show what that does.
    pub fn blocks(&self) -> Blocks {
        self.table(Sample::ns_per_iteration)
    }

    fn table(&self, value: impl Fn(&Sample) -> f64) -> Blocks {
        let cases = self
            .processes
            .first()
            .map(|one| one.cases.clone())
            .unwrap_or_default();
        let mut blocks = Blocks::new(cases.iter().cloned());
        for process in self
            .processes
            .iter()
            .filter(|process| process.cases == cases)
        {
            let table = process.table(&value);
            let rows = if self.by_process() {
                means(&table).into_iter().collect()
            } else {
                table.rounds().to_vec()
            };
            for row in rows {
                // Samples are finite numbers, one for each case, so that this cannot be refused.
                let _ = blocks.push_round(row);
            }
        }
        blocks
    }

    /// Whether the observations are processes and not rounds.
    pub(crate) fn by_process(&self) -> bool {
        self.processes.len() >= PROCESSES_MIN
    }

    /// All rounds of all processes.
    pub fn rounds(&self) -> u64 {
        self.processes
            .iter()
            .map(|process| process.rounds.len() as u64)
            .sum()
    }

    /// The figure of that name.
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.id == id)
    }

    /// What failed in its processes.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.processes.iter().filter_map(|one| one.failure.as_ref())
    }
}

/// The mean of each case, as one row; none when there are no rounds.
fn means(table: &Blocks) -> Option<Vec<f64>> {
    let rounds = table.rounds();
    if rounds.is_empty() {
        return None;
    }
    let mean =
        |case: usize| rounds.iter().map(|round| round[case]).sum::<f64>() / rounds.len() as f64;
    Some((0..table.cases().len()).map(mean).collect())
}

impl<S: Serialize + DeserializeOwned> Document<S> {
    /// The document as text, ending with a line feed.
    ///
    /// # Errors
    /// [`HarnessError::Document`] when a figure is not a number that JSON can hold.
    pub fn to_json(&self) -> Result<String, HarnessError> {
        let text = serde_json::to_string_pretty(self);
        Ok(text.map_err(|error| HarnessError::Document(error.to_string()))? + "\n")
    }

    /// Reads a document that [`Document::to_json`] wrote.
    ///
    /// # Errors
    /// [`HarnessError::Document`] when it is none, of another schema or of another experiment.
    pub fn from_json(text: &str, experiment: &str) -> Result<Self, HarnessError> {
        let found = self::experiment(text)?;
        if found != experiment {
            let problem = format!("it is of the experiment {found}, not {experiment}");
            return Err(HarnessError::Document(problem));
        }
        serde_json::from_str(text).map_err(refused)
    }
}

/// The name of the experiment that a document is of.
///
/// # Errors
/// [`HarnessError::Document`] when it is no document, or one of another schema.
pub fn experiment(text: &str) -> Result<String, HarnessError> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
        experiment: String,
    }
    let head: Head = serde_json::from_str(text).map_err(refused)?;
    if head.schema != SCHEMA {
        let problem = format!("it has schema {}, this program reads {SCHEMA}", head.schema);
        return Err(HarnessError::Document(problem));
    }
    Ok(head.experiment)
}

/// The results in a text, each as it stands there: one, or those of an array, as `ugeom lab --json`
/// writes it.
///
/// # Errors
/// [`HarnessError::Document`] when an array is not well formed, or empty.
pub fn results(text: &str) -> Result<Vec<&str>, HarnessError> {
    let Some(mut rest) = text.trim_start().strip_prefix('[') else {
        return Ok(vec![text]);
    };
    let wrong = |at: &str, problem: &str| {
        let line = text[..text.len() - at.len()].matches('\n').count() + 1;
        HarnessError::Document(format!("line {line}: {problem}"))
    };
    let mut results = Vec::new();
    loop {
        rest = rest.trim_start();
        if !rest.starts_with('{') {
            return Err(wrong(
                rest,
                "expected a result of the array, which begins with {",
            ));
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        // An object is followed by nothing that belongs to it, so that the parser stops behind it.
        values.next().transpose().map_err(refused)?;
        let (result, after) = rest.split_at(values.byte_offset());
        results.push(result);
        rest = after.trim_start();
        match (rest.strip_prefix(','), rest.strip_prefix(']')) {
            (Some(more), _) => rest = more,
            (_, Some(end)) if end.trim().is_empty() => return Ok(results),
            (_, Some(end)) => return Err(wrong(end, "unexpected data after the array")),
            _ => return Err(wrong(rest, "expected `,` or `]` in the array of results")),
        }
    }
}

fn refused(error: serde_json::Error) -> HarnessError {
    HarnessError::Document(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_array_is_its_results_as_they_stand_there() {
        let (a, b) = ("{\"a\": [1.50, \"]\"]}", "{ }");
        assert_eq!(results(a).unwrap(), [a]);
        assert_eq!(results(&format!(" [{a} ,\n{b}]\n")).unwrap(), [a, b]);
        for (text, reason) in [
            ("[]", "line 1: expected a result of the array"),
            ("[\n1]", "line 2: expected a result of the array"),
            ("[{}\n{}]", "line 2: expected `,` or `]`"),
            ("[{}", "line 1: expected `,` or `]`"),
            ("[{}] x", "line 1: unexpected data after the array"),
            ("[{\"a\"}]", "expected `:`"),
        ] {
            let error = results(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_split_elsewhere_than_between_results(
            text in "[\\[\\]{},:\" a1\n]{0,40}",
        ) {
            for one in results(&text).unwrap_or_default() {
                prop_assert!(text.contains(one));
            }
        }

        #[test]
        fn what_is_joined_is_split_again(
            keys in proptest::collection::vec("[a-z\\[\\],{}]{0,9}", 1..6),
        ) {
            let parts = keys.iter().map(|key| format!("{{\"{key}\": 0.10}}"));
            let parts: Vec<String> = parts.collect();
            let all = format!("[{}]", parts.join(", "));
            prop_assert_eq!(results(&all).unwrap(), parts);
        }
    }
}
