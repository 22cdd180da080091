//! The flags that every experiment of `ugeom lab` has, with the same meaning and defaults.

use super::budget_ns;
use super::measuring::{ended_early, measured};
use crate::commands::files::{self, Output};
use crate::output;
use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::process::Command;
use ugeom_experiment::{self as experiment, Common, Experiment};
use ugeom_harness::document::Document;
use ugeom_harness::processes::PROCESSES_MAX;
use ugeom_harness::{HarnessError, Machine};
use ugeom_measure::units::duration_human;
use ugeom_report::text::in_a_shell;
use ugeom_report::{Page, to_html};

/// How long, in how many processes, and where results go.
#[derive(Args, Clone)]
pub struct Flags {
    /// Time limit of an experiment [default: 15s]
    #[arg(long, alias = "for", value_name = "TIME", value_parser = budget_ns, group = "time")]
    budget: Option<u64>,

    /// No time limit: 20 processes, and runs as long as precision needs
    #[arg(long, group = "time")]
    full: bool,

    /// Measure in N fresh processes [default: 12 in 15 s, more in more time]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(PROCESSES_MAX)))]
    processes: Option<u32>,

    /// Seed of every random order [default: the clock; it is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Save all samples and figures as JSON, of which `ugeom report` prints the whole page; `-`
    /// prints them instead of the answer
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Overwrite files that ugeom did not write
    #[arg(long)]
    pub force: bool,

    /// Print the whole page, not only the answer
    #[arg(long)]
    pub all: bool,

    /// Print the project's targets and whether they are met
    #[arg(long, conflicts_with = "all")]
    goals: bool,
}

/// The flags of one experiment.
#[derive(Args, Clone)]
pub struct ExperimentArgs {
    #[command(flatten)]
    pub flags: Flags,

    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}

/// A run longer than this announces itself, ns.
const LONG_NS: u64 = 30_000_000_000;

/// The program of a measurement's process: this program itself.
///
/// # Errors
/// The system does not say where the program is.
pub fn launch() -> Result<impl Fn() -> Command> {
    let program = std::env::current_exe().context("finding this program")?;
    Ok(move || {
        let mut command = Command::new(&program);
        command.args(["lab", "worker"]);
        command
    })
}

/// Flags whose value names a file of results.
const RESULTS: [&str; 5] = [
    "--json",
    "--export-json",
    "--csv",
    "--export-csv",
    "--report",
];

/// A saved result as a word of a shell; empty where it was printed or not asked for.
pub fn saved_to(json: Option<&PathBuf>) -> String {
    let path = json.filter(|path| path.as_os_str() != "-");
    path.map_or(String::new(), |path| {
        in_a_shell(&output::printable(&path.to_string_lossy()))
    })
}

/// The command line of this process without the files of its results, as a shell reads it.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    without_results(words.map(|word| word.to_string_lossy().into_owned()))
}

fn without_results(words: impl Iterator<Item = String>) -> String {
    let mut kept = vec!["ugeom".to_owned()];
    let mut is_value = false;
    for word in words {
        if std::mem::take(&mut is_value) {
            continue;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        match RESULTS.contains(&name) {
            true => is_value = name == word,
            false => kept.push(in_a_shell(&output::printable(&word))),
        }
    }
    kept.join(" ")
}

impl Flags {
    /// The options that all experiments share.
    pub fn common(&self) -> Common {
        Common {
            full: self.full,
            seed: self.seed,
            budget_ns: self.budget,
            processes: self.processes,
        }
    }

    /// Says how long so many experiments will take, where that is long.
    pub fn announce(&self, experiments: u64) {
        let limit_ns = self.common().limit_ns();
        let Some(limit_ns) = limit_ns else {
            output::remark("no time limit (--full): some minutes; Ctrl-C keeps the results so far");
            return;
        };
        let all_ns = limit_ns.saturating_mul(experiments);
        if all_ns > LONG_NS {
            let time = duration_human(all_ns as f64);
            output::remark(&format!(
                "measuring for about {time}; Ctrl-C keeps the results so far"
            ));
        }
    }

    /// Measures an experiment in processes of this program; one that is measured `alone` announces
    /// itself.
    pub fn measure<E: Experiment>(
        &self,
        options: &E::Options,
        alone: bool,
    ) -> Result<Document<E::Subject>> {
        let launch = launch()?;
        measured(|control| {
            if alone {
                self.announce(1);
            }
            experiment::run::<E>(
                options,
                &super::servers::SERVERS,
                &launch,
                &Machine,
                control,
            )
        })
    }

    /// The text of a page as it was asked for.
    pub fn text<S>(&self, document: &Document<S>, page: &Page) -> String {
        match self.goals {
            true => output::page(&Page::of_goals(&document.experiment, &document.figures)),
            false => output::page_or_screen(page, self.all),
        }
    }
}

impl ExperimentArgs {
    /// Refuses results over files of others.
    pub fn check(&self) -> Result<()> {
        files::check_all(&self.outputs(), self.flags.force)
    }

    pub fn outputs(&self) -> [Output<'_>; 2] {
        [
            Output::json(self.flags.json.as_ref()),
            Output::report(self.report.as_ref()),
        ]
    }

    /// Measures, prints the answer, and saves the measurements.
    ///
    /// # Errors
    /// Why it could not be measured, or not be saved; that the user stopped it.
    pub fn run<E: Experiment>(&self, options: &E::Options) -> Result<()> {
        self.run_printing::<E>(options, |document, page| {
            Ok(self.flags.text(document, page))
        })
    }

    /// The same with another way to print.
    pub fn run_printing<E: Experiment>(
        &self,
        options: &E::Options,
        text: impl FnOnce(&Document<E::Subject>, &Page) -> Result<String, HarnessError>,
    ) -> Result<()> {
        let flags = &self.flags;
        self.check()?;
        let document = flags.measure::<E>(options, true)?;
        let mut page = (E::PAGE)(&document);
        page.again = command_line();
        page.saved = saved_to(flags.json.as_ref());
        let html = || Ok(to_html(&[experiment::saved::<E>(&document)?]));
        let [json, report] = self.outputs();
        files::deliver(
            || Ok(text(&document, &page)?),
            &[(json, &|| Ok(document.to_json()?)), (report, &html)],
        )?;
        ended_early(&document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_more_has_all_flags_but_those_of_results() {
        let of = |words: &[&str]| without_results(words.iter().map(|word| (*word).to_owned()));
        let words = [
            "lab",
            "cached",
            "--budget",
            "4s",
            "--json",
            "a b",
            "--report=x",
            "--size=8m",
        ];
        assert_eq!(of(&words), "ugeom lab cached --budget 4s --size=8m");
        assert_eq!(of(&["ab", "--csv", "-", "sleep 1"]), "ugeom ab 'sleep 1'");
    }
}
