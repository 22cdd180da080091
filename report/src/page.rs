//! The parts of a report.

use super::plot::{Curves, Plot, Rows};
use super::table::{Cell, Column, Table};
use crate::head;
use ugeom_harness::document::Document;
use ugeom_harness::figure::{Figure, Goal, Unit, value};
use ugeom_harness::host::Host;
use ugeom_measure::units::duration_human;

/// A report of one result. Its texts are plain: no markup, any character; the code that shows them
/// escapes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The name of the experiment, as documents have it.
    pub experiment: String,
    /// The command line that measured it.
    pub asked: String,
    /// The same with everything that changes how it is measured, for another page of the same
    /// measurement; empty where `asked` shows the same results again.
    pub again: String,
    /// The file that the result was saved to, of which `ugeom report` prints this page; empty if
    /// none.
    pub saved: String,
    /// The question of the experiment, for a reader without context.
    pub question: String,
    /// The answer in a sentence, with its interval.
    pub answer: String,
    /// The answer once more, in half a line, for a table of several experiments.
    pub brief: String,
    /// The observations behind the intervals, or the reason for their absence: `12 processes`.
    /// Their level is read from them ([`Page::certain`]).
    pub certainty: String,
    /// The one table of the first screen.
    pub summary: Option<Table>,
    /// The answer as a small plot, and nothing else.
    pub picture: Option<Plot>,
    /// The limits of the answer, most important first.
    pub warnings: Vec<String>,
    /// The machine, its noise, how much was measured, warnings.
    pub facts: Vec<Fact>,
    /// Everything else, in the order in which it is read.
    pub blocks: Vec<Block>,
    /// Where to read more: a file of the documentation.
    pub manual: String,
}

/// A word and its text: `machine`: `2 cores of ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The subject of the fact, such as `machine`.
    pub name: String,
    /// The fact, as running text.
    pub text: String,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// The title of the parts up to the next one.
    Heading(String),
    /// Running text, wrapped to the width of the page.
    Paragraph(String),
    /// Points, each a line or two.
    List(Vec<String>),
    /// Rows of cells under named columns.
    Table(Table),
    /// A picture of values with their intervals.
    Plot(Plot),
    /// Lines that are shown as they are.
    Preformatted(String),
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Curves> for Block {
    fn from(curves: Curves) -> Self {
        Self::Plot(Plot::Curves(curves))
    }
}

impl From<Rows> for Block {
    fn from(rows: Rows) -> Self {
        Self::Plot(Plot::Rows(rows))
    }
}

impl Page {
    /// An empty page of an experiment that was asked for with this command line.
    pub fn new(experiment: &str, asked: &str) -> Self {
        Self {
            experiment: experiment.to_owned(),
            asked: asked.to_owned(),
            again: String::new(),
            saved: String::new(),
            question: String::new(),
            answer: String::new(),
            brief: String::new(),
            certainty: String::new(),
            summary: None,
            picture: None,
            warnings: Vec::new(),
            facts: Vec::new(),
            blocks: Vec::new(),
            manual: format!("docs/lab-{experiment}.md"),
        }
    }

    /// Adds a fact of the head.
    pub fn fact(&mut self, name: &str, text: impl Into<String>) {
        let (name, text) = (name.to_owned(), text.into());
        self.facts.push(Fact { name, text });
    }

    /// Adds the facts `machine`, and `warnings` when the machine was not quiet.
    pub fn host(&mut self, host: &Host) {
        self.fact("machine", host.to_string());
        let warnings = host.warnings();
        if !warnings.is_empty() {
            self.fact("warnings", format!("{}.", warnings.join("; ")));
        }
    }

    /// Adds the head of a document: machine, target, wake-ups, noise, the amount of measurement,
    /// failures; and its warnings. `left_out` names the cases left out, with reasons.
    pub fn head<S>(&mut self, document: &Document<S>, left_out: &[String]) {
        for entry in head::entries(document, left_out) {
            self.fact(entry.word, entry.text);
        }
        self.warnings.extend(head::warnings(document));
        self.certainty = head::certainty(document);
    }

    /// Shows the answer as a small plot.
    pub fn pictured(&mut self, plot: impl Into<Block>) {
        if let Block::Plot(plot) = plot.into() {
            self.picture = Some(plot);
        }
    }

    /// Adds a plot of all rounds in the order in which they ran: warm-up, disturbances, drift.
    pub fn rounds<S>(&mut self, document: &Document<S>) {
        if let Some(plot) = crate::series::rounds(document) {
            self.heading("Rounds over time");
            self.paragraph(
                "Each point is a round: the median of its cases, each divided by the median of \
                 that case over all rounds; the line spans the middle half of the cases.",
            );
            self.push(plot);
        }
    }

    /// The blocks below the head: the table of the first screen, then everything else.
    pub(super) fn body(&self) -> impl Iterator<Item = Block> + '_ {
        let summary = self.summary.clone().map(Block::from);
        let warnings = (!self.warnings.is_empty()).then(|| Block::List(self.warnings.clone()));
        let heading = warnings
            .is_some()
            .then(|| Block::Heading("Warnings".to_owned()));
        let first = summary.into_iter().chain(heading).chain(warnings);
        first.chain(self.blocks.iter().cloned())
    }

    /// Adds a block: a [`Table`], [`Curves`], [`Rows`] or any [`Block`].
    pub fn push(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }

    /// Begins a part with this heading.
    pub fn heading(&mut self, text: &str) {
        self.push(Block::Heading(text.to_owned()));
    }

    /// Adds a paragraph of one or more sentences.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.push(Block::Paragraph(text.into()));
    }

    /// Adds a list; nothing when it is empty.
    pub fn list<T: Into<String>>(&mut self, items: impl IntoIterator<Item = T>) {
        let items: Vec<String> = items.into_iter().map(Into::into).collect();
        if !items.is_empty() {
            self.push(Block::List(items));
        }
    }

    /// Adds lines that are shown as they are.
    pub fn preformatted(&mut self, text: impl Into<String>) {
        self.push(Block::Preformatted(text.into()));
    }

    /// Judges figures against the targets of the project: a page for developers.
    pub fn of_goals(experiment: &str, figures: &[Figure]) -> Self {
        let mut page = Self::new(experiment, &format!("ugeom lab {experiment} --goals"));
        page.goals(figures);
        page
    }

    /// Adds the targets and the measured figures below a heading; nothing when no figure has
    /// a goal. Where there is a figure `by_cpu.ID` beside the figure ID, both are judged.
    pub fn goals(&mut self, figures: &[Figure]) {
        let columns = ["figure", "target", "measured", "verdict"].map(Column::text);
        let mut table = Table::new("", columns);
        for figure in figures {
            let (words, limit) = match figure.goal {
                Some(Goal::Under(limit)) => ("under", limit),
                Some(Goal::AtLeast(limit)) => ("at least", limit),
                None => continue,
            };
            let reached = figure.reached().map_or("", |reached| reached.word());
            table.row([
                Cell::text(&figure.what),
                Cell::text(format!("{words} {}", known(limit, figure.unit))),
                Cell::figure(figure),
                Cell::text(reached),
            ]);
            let by_cpu = format!("by_cpu.{}", figure.id);
            let by_cpu = figures.iter().find(|figure| figure.id == by_cpu);
            if let (Some(by_cpu), Some(goal)) = (by_cpu, figure.goal) {
                table.row([
                    Cell::text("by CPU time alone"),
                    Cell::empty(),
                    Cell::figure(by_cpu),
                    Cell::text(goal.judge(&by_cpu.interval).word()),
                ]);
            }
        }
        if !table.rows.is_empty() {
            self.heading("Targets");
            self.push(table);
        }
    }
}

/// A known value in words, with no more digits than it has.
fn known(amount: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns | Unit::NsPerLayer => duration_human(amount),
        unit => value(amount, unit),
    }
}
