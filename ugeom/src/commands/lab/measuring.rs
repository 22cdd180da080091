//! The frame of every experiment: a progress bar, Ctrl-C, and a place for its results.

use crate::failure::{Interrupted, Reported};
use crate::output;
use anyhow::{Context, Result};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::cell::Cell;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use ugeom_harness::HarnessError;
use ugeom_harness::document::Document;
use ugeom_harness::{Control, Ended, Failure, Measured, Phase, Progress};
use ugeom_machine::interrupt;

/// Measures while showing the progress and listening for Ctrl-C.
pub fn measured<S>(
    measure: impl FnOnce(&mut Control<'_>) -> Result<Document<S>, HarnessError>,
) -> Result<Document<S>> {
    let document = with_progress(measure)?;
    let something = |one: &Measured| !one.rounds.is_empty() || one.unfinished.is_some();
    if !document.processes.iter().any(something) {
        return Err(stopped().into());
    }
    Ok(document)
}

/// Measures anything while showing the progress and listening for Ctrl-C.
pub fn with_progress<T>(
    measure: impl FnOnce(&mut Control<'_>) -> Result<T, HarnessError>,
) -> Result<T> {
    let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
    if cfg!(debug_assertions) {
        output::warn(
            "this is a debug build, its figures are meaningless: use `cargo run --release`",
        );
    }
    let bar = Bar::new();
    let mut progress = |progress: &Progress<'_>| bar.show(progress);
    let mut control = Control {
        progress: &mut progress,
        cancelled,
    };
    let result = measure(&mut control);
    bar.clear();
    match result {
        // The message of a process that was ended is no news.
        Err(_) if cancelled.load(Ordering::Relaxed) => Err(stopped().into()),
        result => Ok(result?),
    }
}

fn stopped() -> Interrupted {
    Interrupted("stopped before anything was measured".to_owned())
}

/// Tells that a measurement failed or that the user stopped it, after its results were printed.
///
/// # Errors
/// [`Reported`] and [`Interrupted`] when that is so.
pub fn ended_early<S>(document: &Document<S>) -> Result<()> {
    let failures = failures(document);
    if failures.is_empty() {
        return ended_by_user(document);
    }
    for failure in failures {
        output::complain(&failure);
    }
    Err(Reported.into())
}

/// What failed in a measurement.
pub fn failures<S>(document: &Document<S>) -> Vec<String> {
    let text = |one: &Failure| output::printable(&format!("{} failed: {}", one.case, one.error));
    document.failures().map(text).collect()
}

/// Tells that the user stopped a measurement, after its results were printed.
///
/// # Errors
/// [`Interrupted`] when that is so.
pub fn ended_by_user<S>(document: &Document<S>) -> Result<()> {
    let stopped = |one: &Measured| one.ended == Ended::Cancelled;
    match document.processes.iter().any(stopped) {
        true => Err(stopped_early()),
        false => interrupted(),
    }
}

/// The same of a result that does not say itself that it was stopped.
///
/// # Errors
/// [`Interrupted`] when Ctrl-C was pressed.
pub fn interrupted() -> Result<()> {
    match interrupt::catch().is_ok_and(|asked| asked.load(Ordering::Relaxed)) {
        true => Err(stopped_early()),
        false => Ok(()),
    }
}

fn stopped_early() -> anyhow::Error {
    let by = match interrupt::is_by_sigterm() {
        true => "SIGTERM",
        false => "Ctrl-C",
    };
    Interrupted(format!("interrupted by {by}: these are the results so far")).into()
}

/// Progress on stderr: a bar on a terminal, else a line every ten seconds. It is drawn between
/// runs, by the thread that measures: another one would disturb the measurement.
struct Bar {
    bar: Option<ProgressBar>,
    started: Instant,
    told: Cell<Instant>,
}

/// How often the bar is drawn, in Hz.
const DRAWS_HZ: u8 = 5;

/// How often there is a line without a terminal.
const LINE: Duration = Duration::from_secs(10);

/// A terminal with fewer columns has no room for a bar beside the text.
const BAR_COLUMNS_MIN: usize = 64;

/// The columns of the terminal that stderr is; 80 where that is not known.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    size.map_or(80, |size| usize::from(size.ws_col))
}

fn template(columns: usize) -> &'static str {
    match columns >= BAR_COLUMNS_MIN {
        true => "{wide_bar} {percent}%{left}  {msg:.24}",
        false => "{percent}%{left}  {wide_msg}",
    }
}

impl Bar {
    fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(DRAWS_HZ);
            let bar = ProgressBar::with_draw_target(Some(0), target);
            match ProgressStyle::with_template(template(columns())) {
                // Before anything is done, nothing is known of the rest.
                Ok(style) => bar.with_style(style.with_key(
                    "left",
                    |state: &ProgressState, out: &mut dyn Write| {
                        if state.pos() > 0 {
                            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
                        }
                    },
                )),
                Err(_) => bar,
            }
        });
        Self {
            bar,
            started: Instant::now(),
            told: Cell::new(Instant::now()),
        }
    }

    fn show(&self, progress: &Progress<'_>) {
        let what = match progress.phase {
            Phase::Calibrating => format!("calibrating {}", progress.case),
            Phase::Measuring => progress.case.to_owned(),
        };
        let Some(bar) = &self.bar else {
            if self.told.get().elapsed() >= LINE {
                self.told.set(Instant::now());
                output::remark(&self.line(progress, &what));
            }
            return;
        };
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(what);
    }

    /// `20 s: 5 of 12 fresh processes, about 28 s left`.
    fn line(&self, progress: &Progress<'_>, what: &str) -> String {
        let spent_s = self.started.elapsed().as_secs_f64();
        let (done, total) = (progress.done, progress.total.max(progress.done));
        let left = match done {
            0 => String::new(),
            done => {
                let left_s = spent_s * (total - done) as f64 / done as f64;
                format!(", about {left_s:.0} s left")
            }
        };
        format!("{spent_s:.0} s: {done} of {total} ({what}){left}")
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_text_that_is_cut_and_no_bar() {
        assert!(template(80).contains("{wide_bar}"));
        let narrow = template(40);
        assert!(narrow.contains("{wide_msg}") && !narrow.contains("bar"));
        for columns in [40, 80] {
            assert!(ProgressStyle::with_template(template(columns)).is_ok());
        }
    }
}
