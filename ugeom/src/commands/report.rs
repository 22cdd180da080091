//! `ugeom report`: saved results as one file to read, or as text to paste.

use crate::{failure, output};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueHint};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use ugeom_report::{Saved, to_html, write_html};

const LONG_ABOUT: &str = "\
Makes a report of results that `ugeom lab ... --json FILE` or `ugeom crash --json` saved: what was \
asked, the answer in a sentence, tables, plots, the machine, and the results themselves to save \
again. It is one HTML file that needs nothing else: no network, no scripts.

Several results become one file, one after the other.";

const EXAMPLES: &str = "\
Examples:
  ugeom report layers.json                        writes report.html
  ugeom report layers.json sweep.json -o disk.html
  ugeom report --markdown layers.json             for pasting into a discussion
  ugeom report --csv sweep.json > sweep.csv       for a spreadsheet";

/// Where an HTML report goes when nothing else is said.
const REPORT: &str = "report.html";
/// The path that means standard input, or standard output.
const STANDARD: &str = "-";
/// A result that is longer than this is none.
const RESULT_BYTES_MAX: u64 = 1 << 30;

/// Make a report of saved results
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Report {
    /// Results as `--json` saved them; `-` is standard input
    #[arg(value_name = "RESULT", required = true, value_hint = ValueHint::FilePath)]
    results: Vec<PathBuf>,

    /// Where to write it; `-` is standard output [default: report.html, and standard output for
    /// Markdown and CSV]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Markdown instead of HTML
    #[arg(long, group = "form")]
    markdown: bool,

    /// The tables and the values of the plots as CSV instead of HTML
    #[arg(long, group = "form")]
    csv: bool,
}

impl Report {
    pub fn run(&self) -> Result<()> {
        let results = self.results.iter().map(|path| read(path));
        let results = results.collect::<Result<Vec<Saved>>>()?;
        let pages = results.iter().map(Saved::page);
        let text = match (self.markdown, self.csv) {
            (true, _) => Some(pages.map(|page| page.to_markdown()).collect::<Vec<_>>()),
            (_, true) => Some(pages.map(|page| page.to_csv()).collect()),
            _ => None,
        };
        let text = text.map(|parts| parts.join("\n"));
        let output = match (&self.output, &text) {
            (Some(path), _) => path.as_path(),
            (None, None) => Path::new(REPORT),
            (None, Some(_)) => Path::new(STANDARD),
        };
        let to_stdout = output == Path::new(STANDARD);
        match text {
            Some(text) if to_stdout => output::print(&text),
            None if to_stdout => output::print(&to_html(&results)),
            Some(text) => std::fs::write(output, text)
                .with_context(|| format!("{}: writing the report", output.display())),
            None => {
                self.keep_results(output)?;
                Ok(write_html(&results, output)?)
            }
        }
    }

    /// Refuses to write over one of the results.
    fn keep_results(&self, output: &Path) -> Result<()> {
        let Ok(output) = output.canonicalize() else {
            return Ok(());
        };
        let same = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| path == output);
        match self.results.iter().find(same) {
            Some(path) => Err(failure::Usage(format!(
                "{}: the report would be written over this result",
                path.display()
            ))
            .into()),
            None => Ok(()),
        }
    }
}

/// Reads a result and makes its page.
fn read(path: &Path) -> Result<Saved> {
    let json = text(path).with_context(|| format!("reading {}", path.display()))?;
    if ugeom_crash::report::is_result(&json) {
        let page = ugeom_crash::report::page(&json).map_err(anyhow::Error::msg);
        let page = page.with_context(|| path.display().to_string())?;
        return Saved::new(json, page).with_context(|| path.display().to_string());
    }
    ugeom_lab::registry::read(json).with_context(|| path.display().to_string())
}

fn text(path: &Path) -> Result<String> {
    let source: Box<dyn Read> = match path == Path::new(STANDARD) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path)?),
    };
    let mut text = String::new();
    source
        .take(RESULT_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    ensure!(
        text.len() as u64 <= RESULT_BYTES_MAX,
        "it is longer than {RESULT_BYTES_MAX} bytes, which no result is"
    );
    Ok(text)
}
