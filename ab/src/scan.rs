//! Parameters of a comparison: `--scan depth=1,4,16` makes one candidate of each value, with the
//! value in place of `{depth}`.

use super::{Candidate, Side};
use serde::{Deserialize, Serialize};

/// More candidates than this are not compared with each other.
const CANDIDATES_MAX: usize = 64;

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// The word between the braces.
    pub name: String,
    /// The values, in the order in which they were given.
    pub values: Vec<String>,
}

impl Scan {
    /// Reads `depth=1,4,16`, or whole numbers as `depth=1..8` and `depth=1..64:8` (every eighth).
    ///
    /// # Errors
    /// The defect.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((name, values)) = text.split_once('=') else {
            return Err("a parameter has the form NAME=VALUE,VALUE,...".to_owned());
        };
        Self::of(name, values)
    }

    /// The same of its two parts.
    ///
    /// # Errors
    /// The defect.
    pub fn of(name: &str, values: &str) -> Result<Self, String> {
        let is_word = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !is_word(name) {
            return Err(format!("`{name}` is not a parameter name"));
        }
        let values: Vec<String> = match range(values)? {
            Some(numbers) => numbers,
            None => values.split(',').map(str::to_owned).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(format!("{name}: a value is empty"));
        }
        if values.len() > CANDIDATES_MAX {
            return Err(format!(
                "{name}: {} values; at most {CANDIDATES_MAX} are compared",
                values.len()
            ));
        }
        let name = name.to_owned();
        Ok(Self { name, values })
    }

    fn placeholder(&self) -> String {
        format!("{{{}}}", self.name)
    }
}

fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let (to, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let number = |text: &str| {
        let wrong = || format!("`{text}` is not a whole number of a range FROM..TO:STEP");
        text.parse::<i64>().map_err(|_| wrong())
    };
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    if step < 1 || to < from {
        return Err(format!("`{text}` is not a range: FROM..TO:STEP counts up"));
    }
    let count = (i128::from(to) - i128::from(from)) / i128::from(step) + 1;
    if count > CANDIDATES_MAX as i128 {
        return Err(format!(
            "`{text}` has {count} values; at most {CANDIDATES_MAX} are compared"
        ));
    }
    let values = (0..count).map(|at| (i128::from(from) + at * i128::from(step)).to_string());
    Ok(Some(values.collect()))
}

/// Each candidate with each combination of values, named after those, such as `depth=4`.
///
/// # Errors
/// A parameter that no text mentions, one that is there twice, too many candidates.
pub fn scanned(candidates: Vec<Candidate>, scans: &[Scan]) -> Result<Vec<Candidate>, String> {
    let mut all = candidates;
    for (at, scan) in scans.iter().enumerate() {
        if scans[..at].iter().any(|other| other.name == scan.name) {
            return Err(format!("the parameter {} is given twice", scan.name));
        }
        let placeholder = scan.placeholder();
        if !all.iter().any(|one| one.mentions(&placeholder)) {
            return Err(format!(
                "no candidate, --prepare or --setup mentions {placeholder}"
            ));
        }
        if all.len() * scan.values.len() > CANDIDATES_MAX {
            let count = all.len() * scan.values.len();
            return Err(format!(
                "{count} candidates; at most {CANDIDATES_MAX} are compared"
            ));
        }
        all = all
            .iter()
            .flat_map(|one| {
                scan.values.iter().map(|value| {
                    let label = format!("{}={value}", scan.name);
                    one.with(&placeholder, value, &label)
                })
            })
            .collect();
    }
    Ok(all)
}

impl Candidate {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let hooks = [&self.setup, &self.prepare, &self.conclude, &self.cleanup];
        let hooks = hooks.into_iter().flatten().map(String::as_str);
        std::iter::once(self.side.text())
            .chain(hooks)
            .chain(self.set.iter().map(String::as_str))
    }

    fn mentions(&self, placeholder: &str) -> bool {
        self.texts().any(|text| text.contains(placeholder))
    }

    fn with(&self, placeholder: &str, value: &str, label: &str) -> Self {
        let put = |text: &str| text.replace(placeholder, value);
        let hook = |text: &Option<String>| text.as_deref().map(put);
        let name = match self.name.as_str() {
            "" => label.to_owned(),
            name => format!("{name} {label}"),
        };
        Self {
            name,
            side: match &self.side {
                Side::Target(text) => Side::Target(put(text)),
                Side::Job(text) => Side::Job(put(text)),
                Side::Command(text) => Side::Command(put(text)),
            },
            set: self.set.iter().map(|text| put(text)).collect(),
            setup: hook(&self.setup),
            prepare: hook(&self.prepare),
            conclude: hook(&self.conclude),
            cleanup: hook(&self.cleanup),
            failed_runs: self.failed_runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_lists_or_ranges() {
        let values = |text: &str| Scan::parse(text).map(|scan| scan.values.join(" "));
        assert_eq!(values("depth=1,4,16").unwrap(), "1 4 16");
        assert_eq!(values("n=1..4").unwrap(), "1 2 3 4");
        assert_eq!(values("n=0..10:5").unwrap(), "0 5 10");
        for wrong in [
            "n", "=1", "n=", "n=1,,2", "n=4..1", "n=1..9:0", "n=1..x", "n=1..999", "a b=1",
        ] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_combination_is_a_candidate_with_its_values_in_place() {
        let mut one = Candidate::of(Side::Command("run -d {depth} -s {size}".to_owned()));
        one.prepare = Some("echo {depth}".to_owned());
        let scans = ["depth=1,4", "size=4k,8k"].map(|text| Scan::parse(text).unwrap());
        let all = scanned(vec![one.clone()], &scans).unwrap();
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        let expected = [
            "depth=1 size=4k",
            "depth=1 size=8k",
            "depth=4 size=4k",
            "depth=4 size=8k",
        ];
        assert_eq!(names, expected);
        assert_eq!(all[2].side.text(), "run -d 4 -s 4k");
        assert_eq!(all[2].prepare.as_deref(), Some("echo 4"));
        let unknown = scanned(vec![one.clone()], &[Scan::parse("x=1").unwrap()]);
        assert!(unknown.unwrap_err().contains("{x}"));
        let twice = [&scans[0], &scans[0]].map(Clone::clone);
        assert!(scanned(vec![one], &twice).unwrap_err().contains("twice"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_parameter_of_few_values_or_refused(text in any::<String>()) {
            if let Ok(scan) = Scan::parse(&text) {
                prop_assert!((1..=CANDIDATES_MAX).contains(&scan.values.len()));
            }
        }
    }
}
