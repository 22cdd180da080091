//! `ugeom lab` without an experiment: every one that there is, one after the other, and one file
//! with all their reports.

use super::measuring::measured;
use super::ways::WAYS;
use crate::failure::Reported;
use crate::output;
use anyhow::{Context, Result};
use std::path::Path;
use ugeom_harness::document::Document;
use ugeom_harness::{Ended, Machine};
use ugeom_lab::{cached, engines, layers, scaling, sweep};
use ugeom_report::text::WIDTH;
use ugeom_report::{Saved, write_html};

/// The time that an experiment may take, ns, unless it may take what it needs.
const BUDGET_NS: u64 = 15_000_000_000;

/// How all experiments are run.
pub struct All<'a> {
    /// Each takes the time that its precision needs.
    pub full: bool,
    /// The seed of the order of runs; none for one of the clock.
    pub seed: Option<u64>,
    /// Where the report goes; none for nowhere.
    pub report: Option<&'a Path>,
}

/// What became of an experiment.
struct Done {
    text: String,
    saved: Saved,
    stopped: bool,
}

impl All<'_> {
    /// Runs them, prints each report as soon as it is there, and writes the file. When the user
    /// stops one, the others are not begun.
    ///
    /// # Errors
    /// Why the file failed. An experiment that fails is told, and the others go on.
    pub fn run(&self) -> Result<()> {
        if let Some(path) = self.report {
            super::measuring::check_writable(Some(path))?;
        }
        let mut results = Vec::new();
        let outcome = self.experiments(&mut results);
        if let Some(path) = self.report.filter(|_| !results.is_empty()) {
            write_html(&results, path)?;
            output::remark(&format!("the report is in {}", path.display()));
        }
        outcome
    }

    fn experiments(&self, results: &mut Vec<Saved>) -> Result<()> {
        let experiments: [(&str, &dyn Fn() -> Result<Done>); 5] = [
            ("layers", &|| self.layers()),
            ("sweep", &|| self.sweep()),
            ("scaling", &|| self.scaling()),
            ("cached", &|| self.cached()),
            ("engines", &|| self.engines()),
        ];
        let mut failed = false;
        for (name, experiment) in experiments {
            let done = match experiment().with_context(|| format!("lab {name}")) {
                Ok(done) => done,
                // The others need not share the reason: a folder without O_DIRECT, say.
                Err(error) => {
                    output::complain(&output::printable(&format!("{error:#}")));
                    failed = true;
                    continue;
                }
            };
            if !results.is_empty() {
                output::print(&format!("\n{}\n\n", "=".repeat(WIDTH)))?;
            }
            output::print(&done.text)?;
            results.push(done.saved);
            if done.stopped {
                break;
            }
        }
        if failed { Err(Reported.into()) } else { Ok(()) }
    }

    fn budget_ns(&self) -> Option<u64> {
        (!self.full).then_some(BUDGET_NS)
    }

    fn layers(&self) -> Result<Done> {
        let options = layers::Options {
            full: self.full,
            seed: self.seed,
            ways: WAYS.to_vec(),
            ..layers::Options::default()
        };
        let document = measured(|control| layers::run(&options, &Machine, control))?;
        done(&document, layers::report(&document, false))
    }

    fn sweep(&self) -> Result<Done> {
        let options = sweep::Options {
            full: self.full,
            seed: self.seed,
            budget_ns: self.budget_ns(),
            ..sweep::Options::default()
        };
        let document = measured(|control| sweep::run(&options, &Machine, control))?;
        done(&document, sweep::page(&document).to_text(WIDTH))
    }

    fn scaling(&self) -> Result<Done> {
        let options = scaling::Options {
            full: self.full,
            seed: self.seed,
            budget_ns: self.budget_ns(),
            ..scaling::Options::default()
        };
        let document = measured(|control| scaling::run(&options, &Machine, control))?;
        done(&document, scaling::report(&document).to_text(WIDTH))
    }

    fn cached(&self) -> Result<Done> {
        let options = cached::Options {
            budget_ns: self.budget_ns(),
            seed: self.seed,
            ways: WAYS.to_vec(),
            ..cached::Options::default()
        };
        let document = measured(|control| cached::run(&options, &Machine, control))?;
        done(&document, cached::page(&document).to_text(WIDTH))
    }

    fn engines(&self) -> Result<Done> {
        let options = engines::Options {
            seed: self.seed,
            budget_ns: self.budget_ns(),
            ..engines::Options::default()
        };
        let document = measured(|control| engines::run(&options, &Machine, control))?;
        done(&document, engines::page(&document).to_text(WIDTH))
    }
}

fn done<S>(document: &Document<S>, text: String) -> Result<Done>
where
    S: serde::Serialize + serde::de::DeserializeOwned,
{
    let stopped = |one: &ugeom_harness::Measured| one.ended == Ended::Cancelled;
    Ok(Done {
        text,
        saved: ugeom_lab::saved::of(document)?,
        stopped: document.processes.iter().any(stopped),
    })
}
