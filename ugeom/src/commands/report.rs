//! `ugeom report`: saved results, of this program or of others, as one file to read, or as text to
//! paste.

use super::files::{self, Written};
use super::results::{self, ResultFile};
use crate::{failure, output};
use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use ugeom_harness::compare::Loaded;
use ugeom_harness::foreign::{self, Format};
use ugeom_harness::{document, tidy};
use ugeom_report::{Saved, to_html};

const LONG_ABOUT: &str = "\
Makes a report of saved results: those of ugeom (`lab ... --json FILE`, `ab --json`, `crash \
--json`), fio (--output-format=json), hyperfine (--export-json), criterion (a folder, or \
sample.json), Go's benchmarks (text) and iostat (-o JSON). It has the question, the answer in a \
sentence, tables, plots, the machine, and the results themselves to save again. It is one HTML \
file that needs no network.

Several results become one file, one after the other. A file that ugeom did not write is \
overwritten with --force only.";

const EXAMPLES: &str = "\
Examples:
  ugeom report layers.json                        # writes report.html
  ugeom report layers.json sweep.json -o disk.html
  ugeom report fio.json -o fio.html
  ugeom report --markdown layers.json             # for an issue or a wiki
  ugeom report --csv sweep.json > sweep.csv       # every sample";

/// Where an HTML report goes when nothing else is said.
const REPORT: &str = "report.html";
/// The path that means standard output.
const STANDARD: &str = "-";

/// Make a report of saved results
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Report {
    /// Results; `-` is standard input, a folder stands for all results in it
    #[arg(value_name = "RESULT", required = true, value_hint = ValueHint::AnyPath)]
    results: Vec<PathBuf>,

    /// Where to write it; `-` is standard output [default: report.html, and standard output for
    /// Markdown and CSV]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Markdown instead of HTML
    #[arg(long, group = "form")]
    markdown: bool,

    /// One table of all samples as CSV instead of HTML: experiment, case, metric, round, value,
    /// unit, process
    #[arg(long, group = "form")]
    csv: bool,

    /// Overwrite a file that ugeom did not write
    #[arg(long)]
    force: bool,
}

/// A result: its page with its text, and its samples.
struct Read {
    saved: Saved,
    samples: tidy::Table,
}

impl Report {
    pub fn run(&self) -> Result<()> {
        let (output, written) = self.output();
        if output != Path::new(STANDARD) {
            self.keep_results(output)?;
            files::check(Some(output), written, self.force)?;
        }
        let mut read = Vec::new();
        for path in &self.results {
            for file in results::files(path)? {
                read.extend(pages(&file)?);
            }
        }
        let text = match written {
            Written::Markdown => {
                let pages = read.iter().map(|one| one.saved.page().to_markdown());
                pages.collect::<Vec<_>>().join("\n")
            }
            Written::Csv => {
                let mut all = tidy::Table::default();
                read.into_iter().for_each(|one| all.append(one.samples));
                all.to_csv()
            }
            _ => {
                let saved: Vec<Saved> = read.into_iter().map(|one| one.saved).collect();
                to_html(&saved)
            }
        };
        if output == Path::new(STANDARD) {
            return output::print(&text);
        }
        files::write(output, text.as_bytes())
    }

    /// Where it goes, and in which form.
    fn output(&self) -> (&Path, Written) {
        let (otherwise, written) = match (self.markdown, self.csv) {
            (true, _) => (STANDARD, Written::Markdown),
            (_, true) => (STANDARD, Written::Csv),
            _ => (REPORT, Written::Report),
        };
        let output = self.output.as_deref();
        (output.unwrap_or(Path::new(otherwise)), written)
    }

    /// Refuses to write over one of the results.
    fn keep_results(&self, output: &Path) -> Result<()> {
        let Ok(output) = output.canonicalize() else { return Ok(()) };
        let same = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| path == output);
        match self.results.iter().find(same) {
            Some(path) => Err(failure::Usage(format!(
                "{}: the report would overwrite this result",
                path.display()
            ))
            .into()),
            None => Ok(()),
        }
    }
}

/// Reads the results of a file, and makes their pages.
fn pages(file: &ResultFile) -> Result<Vec<Read>> {
    let name = output::printable(&file.path.display().to_string());
    let text = results::text(&file.path)?;
    if ugeom_crash::report::is_result(&text) {
        let page = ugeom_crash::report::page(&text).map_err(anyhow::Error::msg);
        let page = page.with_context(|| name.clone())?;
        let samples = page.observations();
        let saved = Saved::new(text, page).with_context(|| name.clone())?;
        return Ok(vec![Read { saved, samples }]);
    }
    if is_ours(&text) {
        let results = document::results(&text).with_context(|| name.clone())?;
        let results = results.into_iter().map(|one| own(&name, one));
        return results.collect();
    }
    let (format, series) = foreign::read(&name, &file.case, &text)?;
    let page = ugeom_report::foreign::page(&name, format, &series);
    let samples = tidy::of_series(format.id(), &series);
    let saved = Saved::foreign(text, page);
    Ok(vec![Read { saved, samples }])
}

/// Whether a text is one of our documents or an array of such, or was meant to be.
fn is_ours(text: &str) -> bool {
    let first = text.trim_start().trim_start_matches('[').trim_start();
    let first = first.trim_start_matches('{').trim_start();
    first.starts_with("\"schema\"") || matches!(foreign::read("", "", text), Ok((Format::Ugeom, _)))
}

fn own(name: &str, text: &str) -> Result<Read> {
    let saved = ugeom_lab::registry::read(text.to_owned()).with_context(|| name.to_owned())?;
    // A trace has no rounds of cases, but tables.
    let samples = match Loaded::read(name, text) {
        Ok(loaded) => tidy::table(&loaded.document),
        Err(_) => saved.page().observations(),
    };
    Ok(Read { saved, samples })
}
