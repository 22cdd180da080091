//! `ugeom lab` without an experiment: all five, one after the other, one file with all their
//! reports, and their answers in one table.

use super::flags::Flags;
use super::measuring::{ended_by_user, failures};
use crate::commands::files::{self, Output};
use crate::failure::{Interrupted, Reported};
use crate::output;
use anyhow::{Context, Result};
use std::path::PathBuf;
use ugeom_devices::{engines, sweep};
use ugeom_experiment::{self as experiment, Experiment};
use ugeom_harness::document::Document;
use ugeom_lab::{cached, layers, scaling};
use ugeom_report::text::{Align, table_within};
use ugeom_report::{Saved, to_html};

/// How all experiments are run.
pub struct All<'a> {
    /// How long, in how many processes, and where results go.
    pub flags: &'a Flags,
    /// Where the report goes; none for nowhere.
    pub report: Option<&'a PathBuf>,
}

/// Runs one experiment with its options.
type ExperimentArgs<A> = fn(&A) -> Result<Done>;

/// An experiment that has ended.
struct Done {
    saved: Saved,
    text: String,
    failures: Vec<String>,
    stopped: Result<()>,
}

impl All<'_> {
    /// Runs them, prints each answer as soon as it is there, writes the file, and ends with a table
    /// of all answers. When the user stops one, the others are not begun.
    ///
    /// # Errors
    /// Why the file failed. An experiment that fails is told, and the others go on.
    pub fn run(&self) -> Result<()> {
        let flags = self.flags;
        let [json, report] = self.outputs();
        files::check_all(&[json, report], flags.force)?;
        flags.announce(5);
        let mut results = Vec::new();
        let outcome = self.experiments(&mut results);
        let report = Output {
            path: report.path.filter(|_| !results.is_empty()),
            ..report
        };
        let all = || {
            let all: Vec<_> = results.iter().map(Saved::json).collect();
            Ok(format!("[{}]\n", all.join(",")))
        };
        let html = || Ok(to_html(&results));
        files::deliver(|| Ok(answers(&results)), &[(json, &all), (report, &html)])?;
        outcome
    }

    fn outputs(&self) -> [Output<'_>; 2] {
        [
            Output::json(self.flags.json.as_ref()),
            Output::report(self.report),
        ]
    }

    /// Whether standard output is for a file alone.
    fn is_quiet(&self) -> bool {
        self.outputs().iter().any(Output::is_stdout)
    }

    fn experiments(&self, results: &mut Vec<Saved>) -> Result<()> {
        let experiments: [(&str, ExperimentArgs<Self>); 5] = [
            ("layers", Self::one::<layers::Layers>),
            ("sweep", Self::one::<sweep::Sweep>),
            ("scaling", Self::one::<scaling::Scaling>),
            ("cached", Self::one::<cached::Cached>),
            ("engines", Self::one::<engines::Engines>),
        ];
        let mut failed = false;
        for (name, experiment) in experiments {
            let done = match experiment(self).with_context(|| format!("lab {name}")) {
                Ok(done) => done,
                Err(error) if error.is::<Interrupted>() => return Err(error),
                // The others need not share the reason: a folder without O_DIRECT, say.
                Err(error) => {
                    output::complain(&output::printable(&format!("{error:#}")));
                    failed = true;
                    continue;
                }
            };
            if !self.is_quiet() {
                let gap = if results.is_empty() { "" } else { "\n" };
                output::print(&format!("{gap}{}", done.text))?;
            }
            results.push(done.saved);
            for failure in done.failures {
                output::complain(&format!("lab {name}: {failure}"));
                failed = true;
            }
            done.stopped?;
        }
        if failed { Err(Reported.into()) } else { Ok(()) }
    }

    fn one<E: Experiment>(&self) -> Result<Done>
    where
        E::Options: Default,
    {
        let mut options = E::Options::default();
        *E::common(&mut options) = self.flags.common();
        let document: Document<E::Subject> = self.flags.measure::<E>(&options, false)?;
        let saved = experiment::saved::<E>(&document)?;
        Ok(Done {
            text: self.flags.text(&document, saved.page()),
            failures: failures(&document),
            stopped: ended_by_user(&document),
            saved,
        })
    }
}

/// All answers: question, answer, and the number of observations. The level of their
/// intervals stands below each answer.
fn answers(results: &[Saved]) -> String {
    if results.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["question", "measured in", "answer"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(results.iter().map(|result| {
        let page = result.page();
        let words = [&page.experiment, &page.certainty, &page.brief];
        words.map(|text| output::printable(text)).to_vec()
    }));
    format!(
        "\n{}",
        table_within(output::width(), 0, &[Align::Left; 3], &rows)
    )
}
