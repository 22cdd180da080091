//! What every experiment needs around it: a progress bar, Ctrl-C, and a place for its results.

use crate::output;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use ugeom_harness::HarnessError;
use ugeom_harness::document::Document;
use ugeom_harness::{Control, Measured, Phase, Progress};
use ugeom_machine::interrupt;
use ugeom_report::Page;
use ugeom_report::text::WIDTH;

/// The flags of an experiment that is measured in one go, and reported on.
#[derive(Args)]
pub struct Results {
    /// Save all samples and figures as JSON; `-` prints them instead of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// The seed of the random order of runs [default: one of the clock, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl Results {
    /// Measures, saves what was measured, and prints the report of it.
    ///
    /// # Errors
    /// Why it could not be measured, or not be saved.
    pub fn of<S: Serialize + DeserializeOwned>(
        &self,
        measure: impl FnOnce(&mut Control<'_>) -> Result<Document<S>, HarnessError>,
        report: impl FnOnce(&Document<S>) -> Page,
    ) -> Result<()> {
        check_writable(self.json.as_deref())?;
        let document = measured(measure)?;
        if save(self.json.as_deref(), &document)? == Saved::Printed {
            return Ok(());
        }
        output::print(&report(&document).to_text(WIDTH))
    }
}

/// Measures while showing the progress and listening for Ctrl-C.
pub fn measured<S>(
    measure: impl FnOnce(&mut Control<'_>) -> Result<Document<S>, HarnessError>,
) -> Result<Document<S>> {
    let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
    if cfg!(debug_assertions) {
        output::warn("this is a debug build: its figures mean nothing (cargo run --release)");
    }
    let bar = Bar::new();
    let mut progress = |progress: &Progress<'_>| bar.show(progress);
    let mut control = Control {
        progress: &mut progress,
        cancelled,
    };
    let document = measure(&mut control);
    bar.clear();
    let document = document?;
    let something = |one: &Measured| !one.rounds.is_empty() || one.unfinished.is_some();
    if !document.processes.iter().any(something) {
        bail!("it was stopped before anything was measured");
    }
    Ok(document)
}

/// The path that means standard output.
const STDOUT: &str = "-";

/// Tries to open the file that results will be saved in: better now than after the measurement.
/// What is in it stays until then, and where there is none, none is left.
///
/// # Errors
/// Why it cannot be written.
pub fn check_writable(json: Option<&Path>) -> Result<()> {
    let Some(path) = json.filter(|path| *path != Path::new(STDOUT)) else {
        return Ok(());
    };
    let mut options = File::options();
    options.write(true);
    let tried = match options.clone().create_new(true).open(path) {
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path).map(drop),
        Err(error) => Err(error),
    };
    tried.with_context(|| path.display().to_string())
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// Nobody wanted it, or it is in a file: the report is still to be printed.
    Quietly,
    /// It was printed in place of the report.
    Printed,
}

/// Saves a result where `--json` says: in a file, or on standard output.
///
/// # Errors
/// Why it cannot be written.
pub fn save<S: Serialize + DeserializeOwned>(
    json: Option<&Path>,
    document: &Document<S>,
) -> Result<Saved> {
    let Some(path) = json else {
        return Ok(Saved::Quietly);
    };
    if path == Path::new(STDOUT) {
        output::print(&document.to_json()?)?;
        return Ok(Saved::Printed);
    }
    std::fs::write(path, document.to_json()?).with_context(|| path.display().to_string())?;
    Ok(Saved::Quietly)
}

/// A bar on stderr while somebody watches. It is drawn between runs, by the thread that measures:
/// another one would be in the way of what is measured.
struct Bar(Option<ProgressBar>);

/// How often it is drawn, in Hz.
const DRAWS_HZ: u8 = 5;

impl Bar {
    fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_HZ);
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{bar:30} {percent}%, {eta} left  {msg}";
        Self(Some(match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }))
    }

    fn show(&self, progress: &Progress<'_>) {
        let Some(bar) = &self.0 else {
            return;
        };
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(match progress.phase {
            Phase::Calibrating => format!("how long must runs of {} be?", progress.cell),
            Phase::Measuring => progress.cell.to_owned(),
        });
    }

    fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
