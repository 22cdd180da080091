//! `ugeom compare`: saved results against each other, of ugeom and of other programs. How they are
//! judged is in `ugeom_harness::compare`; here are its flags and its files.

use super::files::{self, Output};
use super::results;
use crate::{failure, output};
use anyhow::{Result, bail};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use ugeom_ab::other_sides;
use ugeom_harness::compare::{
    CompareOptions, Loaded, Side, Source, between, compare, confounded, gate,
};
use ugeom_report::compare::{gated, page};
use ugeom_report::{Saved, to_html};

const LONG_ABOUT: &str = "\
Compares saved results: those of ugeom (--json), fio (--output-format=json), hyperfine \
(--export-json), criterion (a folder, or sample.json), Go's benchmarks (text) and iostat (-o \
JSON). A line for each benchmark, the largest significant change first.

The first file is the base, each other one is compared with it; with --against all files before it \
are one side, and those after it the other. With one result of ugeom, its cases are compared with \
the first of them, or with --base.

Results of different times are compared by the Mann-Whitney test; their difference includes every \
other change in between. `ugeom ab` measures candidates in the same rounds.

Exit codes: 0 done, or PASS; 1 failed; 2 wrong usage; 3 FAIL and 4 UNDECIDED of --fail-if-slower.";

const EXAMPLES: &str = "\
Examples:
  ugeom compare before.json after.json           # what changed?
  ugeom compare old1.json old2.json --against new1.json new2.json
  ugeom compare --changed --metric time old.txt new.txt
  ugeom compare target/criterion.old target/criterion
  ugeom compare --report change.html before.json after.json
  ugeom compare --fail-if-slower 5% before.json after.json    # for CI
  ugeom compare layers.json --base direct/md0    # the cases of one result";

/// Compare saved results: what is faster, slower, equivalent, or not significant?
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Compare {
    /// Results, the base first; a folder stands for all results in it
    #[arg(value_name = "RESULT", required = true, value_hint = ValueHint::AnyPath)]
    results: Vec<PathBuf>,

    /// Results of the other side
    #[arg(long, value_name = "RESULT", num_args = 1.., value_hint = ValueHint::AnyPath)]
    against: Vec<PathBuf>,

    /// The base case of a single result [default: the first]
    #[arg(long, value_name = "CASE")]
    base: Option<String>,

    /// Compare this case only; may be repeated
    #[arg(long = "case", alias = "cell", value_name = "CASE")]
    cases: Vec<String>,

    /// Compare this metric only, such as time, cpu, iops, bytes_per_second; may be repeated
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<String>,

    /// Show significant changes only
    #[arg(long)]
    changed: bool,

    #[command(flatten)]
    rules: RulesArgs,

    /// For CI: fail if a case is more than this slower than the base, by its time (or by all
    /// metrics without one). Prints PASS, FAIL (exit code 3) or UNDECIDED (4)
    #[arg(long, value_name = "PERCENT", value_parser = limit, conflicts_with = "changed")]
    fail_if_slower: Option<f64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write the comparison, with a plot of all changes, as one HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// Overwrite a report that ugeom did not write
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct RulesArgs {
    /// Confidence of all comparisons of a metric together, in %
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = confidence)]
    confidence: f64,

    /// Results within this difference, in %, count as equivalent
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = tolerance)]
    same_within: f64,
}

impl RulesArgs {
    /// The options that say so, for everything there is.
    pub fn options(&self) -> CompareOptions {
        CompareOptions {
            confidence: self.confidence,
            same_within: self.same_within,
            ..CompareOptions::default()
        }
    }
}

fn percent(text: &str) -> Option<f64> {
    text.trim_end_matches('%').trim_end().parse().ok()
}

fn confidence(text: &str) -> Result<f64, String> {
    let share = percent(text).map(|percent: f64| percent / 100.0);
    let within = share.filter(|share| (0.5..1.0).contains(share));
    within.ok_or_else(|| "a confidence is at least 50 and below 100".to_owned())
}

fn tolerance(text: &str) -> Result<f64, String> {
    let share = percent(text).map(|percent: f64| percent / 100.0);
    let within = share.filter(|share| *share > 0.0 && *share < 1.0);
    within.ok_or_else(|| "a tolerance is above 0 and below 100".to_owned())
}

/// Reads a limit such as `5%`, as a share.
pub(super) fn limit(text: &str) -> Result<f64, String> {
    let share = percent(text).map(|percent: f64| percent / 100.0);
    let within = share.filter(|share| (0.0..=100.0).contains(share));
    within.ok_or_else(|| "a limit is a percentage from 0 on, such as 5%".to_owned())
}

impl Compare {
    pub fn run(&self) -> Result<()> {
        let options = CompareOptions {
            base: self.base.clone(),
            cases: self.cases.clone(),
            metrics: self.metrics.clone(),
            changed: self.changed,
            ..self.rules.options()
        };
        let report = Output::report(self.report.as_ref());
        files::check_all(&[report], self.force)?;
        let compared = self.compared(&options)?;
        let mut page = page(&compared);
        let gate = self
            .fail_if_slower
            .map(|limit| (gate(&compared, limit), limit));
        if let Some((answer, limit)) = &gate {
            gated(&mut page, answer, *limit);
        }
        let answer = || match self.json {
            true => output::json(&compared),
            false => Ok(output::page(&page)),
        };
        let html = || {
            let json = serde_json::to_string_pretty(&compared)?;
            Ok(to_html(&[Saved::new(json, page.clone())?]))
        };
        files::deliver(answer, &[(report, &html)])?;
        failure::gate(gate.map(|(answer, _)| answer.outcome))
    }

    fn compared(&self, options: &CompareOptions) -> Result<ugeom_harness::compare::Compared> {
        let sides = self.sides()?;
        let Some((base, others)) = sides.split_first() else {
            bail!("there is no result");
        };
        if others.is_empty() {
            let [file] = &base.files[..] else {
                bail!(
                    "{}: several results of one side: --against names the other",
                    base.name
                );
            };
            return match &file.document {
                Some(document) => Ok(compare(std::slice::from_ref(document), options)?),
                None => bail!(
                    "{}: a single result of {} has nothing to compare with",
                    file.name,
                    file.format.what()
                ),
            };
        }
        let mut compared = between(base, others, options)?;
        let documents = |side: &Side| side.files.iter().find_map(|file| file.document.clone());
        let documents: Vec<Loaded> = sides.iter().filter_map(documents).collect();
        compared.confounded.extend(confounded(&documents));
        compared.confounded.extend(other_sides(&documents));
        Ok(compared)
    }

    /// Each file alone, or with `--against` two sides.
    fn sides(&self) -> Result<Vec<Side>> {
        let read = |paths: &[PathBuf]| -> Result<Vec<Source>> {
            let mut files = Vec::new();
            for path in paths {
                files.extend(results::read(path)?);
            }
            Ok(files)
        };
        if self.against.is_empty() {
            return self
                .results
                .iter()
                .map(|path| {
                    let name = output::printable(&path.display().to_string());
                    let files = read(std::slice::from_ref(path))?;
                    Ok(Side { name, files })
                })
                .collect();
        }
        let side = |name: &str, paths: &[PathBuf]| -> Result<Side> {
            let name = match paths {
                [one] => output::printable(&one.display().to_string()),
                _ => name.to_owned(),
            };
            let files = read(paths)?;
            Ok(Side { name, files })
        };
        Ok(vec![
            side("base", &self.results)?,
            side("changed", &self.against)?,
        ])
    }
}
