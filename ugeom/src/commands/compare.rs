//! `ugeom compare`: saved results against each other. How they are judged is in
//! `ugeom_harness::compare`; here are its flags and its files.

use crate::output::{self, printable};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use ugeom_harness::compare::{Loaded, Metric, Options, compare};
use ugeom_lab::ab::other_sides;
use ugeom_report::compare::page;
use ugeom_report::text::WIDTH;

const LONG_ABOUT: &str = "\
Compares results that were saved as JSON, whatever experiment they are of: the cells that both \
have, metric by metric (time, CPU time, bytes and requests a second, latencies). With one \
result, its cells against the first of them, or against --base.

Two results were measured at different times, and whatever else changed meanwhile is in their \
difference; that is said. `ugeom ab` measures both sides in the same rounds, and so does a result \
that holds both.";

const EXAMPLES: &str = "\
Examples:
  ugeom compare before.json after.json                 what changed?
  ugeom compare --metric time --cell direct/md0 a.json b.json
  ugeom compare layers.json --base direct/md0          the cells of one result";

/// Larger files are no results.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Compare saved results: what is faster, slower, the same, or not proven?
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Compare {
    /// Results, the base first
    #[arg(value_name = "RESULT.json", required = true, value_hint = ValueHint::FilePath)]
    results: Vec<PathBuf>,

    /// The cell of a single result that its others are compared with [default: the first]
    #[arg(long, value_name = "CELL")]
    base: Option<String>,

    /// Compare this cell only; may be repeated
    #[arg(long = "cell", value_name = "CELL")]
    cells: Vec<String>,

    /// Compare this metric only; may be repeated
    #[arg(long = "metric", value_name = "METRIC", value_parser = metric)]
    metrics: Vec<Metric>,

    #[command(flatten)]
    rules: RulesArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How to judge.
#[derive(Args)]
pub struct RulesArgs {
    /// The confidence for all comparisons of a metric together, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = confidence)]
    confidence: f64,

    /// Results this close, in per cent, count as the same
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = tolerance)]
    same_within: f64,
}

impl RulesArgs {
    /// The options that say so, for everything there is.
    pub fn options(&self) -> Options {
        Options {
            confidence: self.confidence,
            same_within: self.same_within,
            ..Options::default()
        }
    }
}

fn metric(text: &str) -> Result<Metric, String> {
    let found = Metric::ALL.into_iter().find(|metric| metric.id() == text);
    found.ok_or_else(|| {
        let known = Metric::ALL.map(Metric::id).join(", ");
        format!("metrics are {known}")
    })
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

impl Compare {
    pub fn run(&self) -> Result<()> {
        let options = Options {
            base: self.base.clone(),
            cells: self.cells.clone(),
            metrics: self.metrics.clone(),
            ..self.rules.options()
        };
        let results: Vec<Loaded> = self
            .results
            .iter()
            .map(|path| read(path))
            .collect::<Result<_>>()?;
        let mut compared = compare(&results, &options)?;
        compared.confounded.extend(other_sides(&results));
        if self.json {
            return output::print_json(&compared);
        }
        output::print(&page(&compared).to_text(WIDTH))
    }
}

fn read(path: &Path) -> Result<Loaded> {
    let name = printable(&path.display().to_string());
    let file = File::open(path).with_context(|| name.clone())?;
    let mut text = String::new();
    let mut limited = file.take(FILE_BYTES_MAX + 1);
    limited
        .read_to_string(&mut text)
        .with_context(|| name.clone())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        bail!("{name}: larger than {FILE_BYTES_MAX} bytes, which no result is");
    }
    Ok(Loaded::read(&name, &text)?)
}
