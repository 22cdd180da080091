//! `ugeom history`: results over commits or days. The file, and how series are judged, are in
//! `ugeom_harness::history`; here are its flags.

use super::compare::limit;
use super::results;
use crate::failure::{self, Usage};
use crate::output::{self, printable};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use ugeom_ab::EXPERIMENT;
use ugeom_harness::compare::show;
use ugeom_harness::history::{self, Checked, CommitResults, History, Track};
use ugeom_harness::tidy::{Observation, Table as Tidy};
use ugeom_measure::Interval;
use ugeom_measure::change::Better;
use ugeom_measure::gate::Outcome;
use ugeom_measure::shift::{self, Confirmed};
use ugeom_report::text::counted;
use ugeom_report::{Cell, Column, Page, Table};

const LONG_ABOUT: &str = "\
Keeps results over commits or days, and finds where they changed.

`add` appends the results of a commit: files of ugeom, fio, hyperfine, criterion, Go's benchmarks \
or iostat. `show` prints the change points of each whole series; 5 of 100 histories without a \
change show one. `check` is for CI: it prints PASS (exit code 0), FAIL (3) or UNDECIDED (4), which \
names two commits: measure both again with `ugeom ab --json FILE`, the older one first, \
and give the file to --confirm. Both steps together report a false change in at most 2 of 100 \
series of 50 commits.";

const EXAMPLES: &str = "\
Examples:
  ugeom history add perf bench.json --commit $(git rev-parse --short HEAD)
  ugeom history show perf
  ugeom history check perf --fail-if-slower 3%
  ugeom ab --json again.json ./bench-old ./bench-new
  ugeom history check perf --confirm again.json
  ugeom history show perf --csv > perf.csv";

/// Results over commits: keep them, and find changes
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct HistoryCli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Append the results of a commit
    Add(Add),
    /// Print each series, and where it changed
    Show(Show),
    /// For CI: did the last commits become slower?
    Check(Check),
}

const EXAMPLES_OF_ADD: &str = "\
Examples:
  ugeom history add perf bench.json --commit $(git rev-parse --short HEAD)
  ugeom history add perf target/criterion --commit v1.2";

#[derive(Args)]
#[command(after_help = EXAMPLES_OF_ADD)]
struct Add {
    /// The folder of the history; it is made if it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,

    /// Results of any format that `ugeom compare` reads; a folder stands for all results in it
    #[arg(value_name = "RESULT", required = true, value_hint = ValueHint::AnyPath)]
    results: Vec<PathBuf>,

    /// Name of the measured state: a commit, a version, a day
    #[arg(long, value_name = "NAME", required = true)]
    commit: String,
}

#[derive(Args)]
struct Which {
    /// The folder of the history
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,

    /// This case only; may be repeated
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<String>,

    /// This metric only, such as time; may be repeated [default: time, else all, of each case]
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print the whole page, not only one screen
    #[arg(long, conflicts_with = "json")]
    all: bool,
}

const EXAMPLES_OF_SHOW: &str = "\
Examples:
  ugeom history show perf
  ugeom history show perf --case sort --metric time
  ugeom history show perf --csv > perf.csv    # every value, for a spreadsheet";

#[derive(Args)]
#[command(after_help = EXAMPLES_OF_SHOW)]
struct Show {
    #[command(flatten)]
    which: Which,

    /// Print all values as one table
    #[arg(long, conflicts_with_all = ["json", "all"])]
    csv: bool,
}

const EXAMPLES_OF_CHECK: &str = "\
Examples:
  ugeom history check perf --fail-if-slower 3%
  ugeom history check perf --confirm again.json

Exit codes: 0 PASS, 1 failed, 2 wrong usage, 3 FAIL, 4 UNDECIDED.";

#[derive(Args)]
#[command(after_help = EXAMPLES_OF_CHECK)]
struct Check {
    #[command(flatten)]
    which: Which,

    /// Largest change for the worse that passes, in %
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = limit)]
    fail_if_slower: f64,

    /// A result of `ugeom ab --json` that measured both commits of an alarm, the older one first
    #[arg(long, value_name = "AB.json", value_hint = ValueHint::FilePath)]
    confirm: Option<PathBuf>,
}

impl HistoryCli {
    pub fn run(&self) -> Result<()> {
        match &self.action {
            Action::Add(add) => add.run(),
            Action::Show(show) => show.run(),
            Action::Check(check) => check.run(),
        }
    }
}

impl Add {
    fn run(&self) -> Result<()> {
        let mut series = Vec::new();
        for path in &self.results {
            for file in results::read(path)? {
                for one in file.series {
                    ugeom_harness::foreign::merge(&mut series, one);
                }
            }
        }
        if self.commit.is_empty() || self.commit.chars().any(char::is_control) {
            return Err(
                Usage("--commit: the name is empty or has a control character".to_owned()).into(),
            );
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let entry = CommitResults {
            commit: self.commit.clone(),
            time_unix_s: now.map_or(0, |now| now.as_secs()),
            series,
        };
        if history::add(&self.folder, &entry)? {
            output::remark(&format!(
                "{} is in the history already: its values are taken together",
                printable(&self.commit)
            ));
        }
        Ok(())
    }
}

impl Which {
    fn history(&self) -> Result<History> {
        let history = history::read(&self.folder)?;
        if history.torn {
            let file = self.folder.join(history::FILE);
            output::warn(&format!(
                "{}: the last entry is incomplete (a crash) and left out; the next one replaces it",
                printable(&file.display().to_string())
            ));
        }
        Ok(history)
    }

    fn tracks(&self, history: &History) -> Result<Vec<Track>> {
        let mut tracks = history.tracks();
        let timed = tracks.iter().filter(|track| track.metric == "time");
        let timed: HashSet<String> = timed.map(|track| track.case.clone()).collect();
        tracks.retain(|track| {
            let metric = match self.metrics.is_empty() {
                true => track.metric == "time" || !timed.contains(&track.case),
                false => self.metrics.contains(&track.metric),
            };
            metric && (self.cases.is_empty() || self.cases.contains(&track.case))
        });
        if tracks.is_empty() {
            let name = printable(&self.folder.display().to_string());
            bail!("{name}: the history has no such series");
        }
        Ok(tracks)
    }

    fn checked(
        &self,
        confirmed: Option<&Confirmed>,
        limit: f64,
    ) -> Result<(History, Vec<Checked>)> {
        let history = self.history()?;
        let tracks = self.tracks(&history)?;
        let alpha = shift::ALPHA / tracks.len().max(1) as f64;
        // A permutation test cannot show less.
        let alpha = alpha.max(1.0 / (shift::PERMUTATIONS + 1) as f64);
        let checked = tracks.into_iter();
        let checked = checked
            .map(|track| track.check(alpha, confirmed, limit))
            .collect();
        Ok((history, checked))
    }
}

impl Show {
    fn run(&self) -> Result<()> {
        let (history, checked) = self.which.checked(None, 0.0)?;
        if self.csv {
            return output::print(&table(&history, &checked).to_csv());
        }
        if self.which.json {
            return output::print_json(&checked);
        }
        let page = page("show", &self.which.folder, &history, &checked);
        output::print(&output::page_or_screen(&page, self.which.all))
    }
}

/// The output of `check --json`.
#[derive(Serialize)]
struct Answer<'a> {
    outcome: Outcome,
    confirmed: Option<Confirmed>,
    series: &'a [Checked],
}

impl Check {
    fn run(&self) -> Result<()> {
        let confirmed = self.confirm.as_deref().map(again).transpose()?;
        let (history, checked) = self
            .which
            .checked(confirmed.as_ref(), self.fail_if_slower)?;
        let outcome = Checked::outcome_of(&checked);
        if self.which.json {
            let answer = Answer {
                outcome,
                confirmed,
                series: &checked,
            };
            output::print_json(&answer)?;
            return failure::gate(Some(outcome));
        }
        let mut page = page("check", &self.which.folder, &history, &checked);
        page.question = "did the last commits become slower?".to_owned();
        page.answer = self.answer(outcome, &history, &checked, confirmed.as_ref());
        page.warnings.extend(too_short(&checked));
        output::print(&output::page_or_screen(&page, self.which.all))?;
        failure::gate(Some(outcome))
    }

    fn answer(
        &self,
        outcome: Outcome,
        history: &History,
        checked: &[Checked],
        confirmed: Option<&Confirmed>,
    ) -> String {
        let alarms = checked.iter().filter_map(|one| Some((one, one.alarm?)));
        let Some((one, alarm)) = alarms.max_by(|a, b| a.1.z.abs().total_cmp(&b.1.z.abs())) else {
            let judged = checked.iter().filter(|one| one.is_judged()).count();
            return match judged {
                0 => format!(
                    "{}: no series is long enough to be judged; it needs {} commits.",
                    outcome.word(),
                    shift::BASELINE_MIN + 1
                ),
                all if all == checked.len() => {
                    format!(
                        "{}: no series moved for the worse at its end.",
                        outcome.word()
                    )
                }
                some => format!(
                    "{}: none of the {some} judged series moved for the worse at its end.",
                    outcome.word()
                ),
            };
        };
        let commit = |point: usize| {
            let entry = one.track.points.get(point).map(|point| point.0);
            let entry = entry.and_then(|entry| history.entries.get(entry));
            entry.map_or("?", |entry| &entry.commit).to_owned()
        };
        let (old, new) = (
            commit(alarm.before),
            commit(one.track.points.len().saturating_sub(1)),
        );
        let moved = format!(
            "{} of {} moved by {:+.1} % with {}, {:.1} standard deviations",
            one.track.metric,
            one.track.case,
            (alarm.ratio - 1.0) * 100.0,
            commit(alarm.at),
            alarm.z.abs()
        );
        match confirmed {
            None => format!(
                "{} ({}): {moved}. Measure {old} and {new} again: ugeom ab --json again.json OLD \
                 NEW; then ugeom history check {} --confirm again.json",
                outcome.word(),
                suspicion(one, alarm.z),
                printable(&self.which.folder.display().to_string())
            ),
            Some(again) => format!(
                "{}: {moved}. Measured again: {} ({}; limit {:+} %).",
                outcome.word(),
                step(&again.ratio),
                probability(again.p_value),
                self.fail_if_slower * 100.0
            ),
        }
    }
}

/// From so many standard deviations on, chance is an unlikely cause.
const PROBABLE_Z: f64 = 4.0;

/// The advice about an alarm that was not measured again.
fn suspicion(one: &Checked, z: f64) -> String {
    let likely = match z.abs() >= PROBABLE_Z {
        true => "probably",
        false => "possibly",
    };
    match one.track.better {
        Better::Lower if one.track.metric == "time" => format!("{likely} slower"),
        _ => format!("{likely} worse"),
    }
}

/// Series in which no move can be seen yet: PASS says nothing about them.
fn too_short(checked: &[Checked]) -> Option<String> {
    let short = checked.iter().filter(|one| !one.is_judged()).count();
    (short > 0).then(|| {
        format!(
            "{short} of {} series have fewer than {} values and are not judged: add more commits",
            checked.len(),
            shift::BASELINE_MIN + 1
        )
    })
}

fn probability(p: f64) -> String {
    match p < 0.001 {
        true => "p < 0.001".to_owned(),
        false => format!("p = {p:.3}"),
    }
}

/// `+5.1 % (+3.2 to +7.0)`.
fn step(ratio: &Interval) -> String {
    let [estimate, low, high] =
        [ratio.estimate, ratio.low, ratio.high].map(|it| (it - 1.0) * 100.0);
    format!("{estimate:+.1} % ({low:+.1} to {high:+.1})")
}

/// The result of measuring both commits again: the first two cases of a result of ab.
fn again(path: &Path) -> Result<Confirmed> {
    let name = printable(&path.display().to_string());
    let file = results::read(path)?.into_iter().next();
    let document = file.and_then(|file| file.document);
    let document = document.filter(|one| one.document.experiment == EXPERIMENT);
    let Some(document) = document else {
        bail!("{name}: expected a result of `ugeom ab --json`");
    };
    let series = ugeom_harness::foreign::series(&document.document);
    let mut times = series.iter().filter(|one| one.metric == "time");
    let confirmed = times
        .next()
        .zip(times.next())
        .and_then(|(old, new)| shift::confirm(&old.values, &new.values));
    confirmed.with_context(|| format!("{name}: too few processes of two candidates"))
}

fn table(history: &History, checked: &[Checked]) -> Tidy {
    let lines = checked.iter().flat_map(|one| {
        one.track.points.iter().map(|(entry, value)| Observation {
            experiment: history.entries[*entry].commit.clone(),
            case: one.track.case.clone(),
            metric: one.track.metric.clone(),
            round: *entry as u64 + 1,
            value: *value,
            unit: one.track.unit.clone(),
            process: 1,
        })
    });
    Tidy(lines.collect())
}

fn page(action: &str, folder: &Path, history: &History, checked: &[Checked]) -> Page {
    let folder = printable(&folder.display().to_string());
    let mut page = Page::new("history", &format!("ugeom history {action} {folder}"));
    page.manual = "docs/history.md".to_owned();
    page.question = "where did results change?".to_owned();
    let changes: usize = checked.iter().map(|one| one.changes.len()).sum();
    page.answer = format!(
        "{} in {} series of {} commits (a history without a change shows one in 5 of 100 cases).",
        counted(changes as u64, "change"),
        checked.len(),
        history.entries.len()
    );
    let columns = [
        Column::text("series"),
        Column::number("n", ""),
        Column::number("first", ""),
        Column::number("last", ""),
        Column::text("changes"),
    ];
    let mut table = Table::new("", columns);
    for one in checked {
        let track = &one.track;
        let value = |at: Option<&(usize, f64)>| {
            at.map_or_else(Cell::empty, |point| Cell::text(show(&track.unit, point.1)))
        };
        let words = one.changes.iter().map(|change| {
            let entry = track.points.get(change.at).map_or(0, |point| point.0);
            let commit = history
                .entries
                .get(entry)
                .map_or("?", |entry| &entry.commit);
            let size = match &change.ratio {
                Some(ratio) if ratio.contains(1.0) => format!("size unknown, {}", step(ratio)),
                Some(ratio) => step(ratio),
                None => format!("{:+.1} %", (change.estimate - 1.0) * 100.0),
            };
            format!("{commit}: {size}")
        });
        table.row([
            Cell::text(format!("{}, {}", track.case, track.metric)),
            Cell::count(track.points.len() as u64),
            value(track.points.first()),
            value(track.points.last()),
            Cell::text(words.collect::<Vec<_>>().join("; ")),
        ]);
    }
    page.summary = Some(table);
    page
}
