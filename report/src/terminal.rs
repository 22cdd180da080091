//! A page as text for a terminal.

use super::digits::{exact, in_words};
use super::page::{Block, Page};
use super::plot::{Plot, RowShape, Rows, Scale};
use super::table::Table;
use crate::text::{Align, columns, paragraph_within, table_within};

/// The column at which the words of a fact begin.
const FACT_INDENT: usize = 10;
/// The widest bar, in columns.
const BAR_COLUMNS: usize = 30;

impl Page {
    /// The page as text, lines of at most `width` columns where words and cells allow it. Rows are
    /// drawn as bars; for curves, which need more room, stands their title.
    pub fn to_text(&self, width: usize) -> String {
        self.text(width, width)
    }

    /// The same for programs that read lines: each row of a table is one, however long.
    pub fn to_lines(&self, width: usize) -> String {
        self.text(width, usize::MAX)
    }

    fn text(&self, width: usize, table_width: usize) -> String {
        let page = self.cleaned();
        let asked = match page.question.is_empty() {
            true => page.asked.clone(),
            false => format!("{}: {}", page.asked, page.question),
        };
        let mut sections = vec![paragraph_within(width, &asked, 0, 2)];
        if !page.answer.is_empty() {
            sections.push(paragraph_within(width, &page.answer, 0, 0));
        }
        let head = page.facts_and_level();
        let facts = head.iter().map(|fact| {
            let indent = FACT_INDENT.max(columns(&fact.name) + 2);
            let words = paragraph_within(width, &fact.text, indent, FACT_INDENT);
            format!("{:indent$}{}", fact.name, words.trim_start())
        });
        sections.push(facts.collect());
        let mut under_heading = false;
        for block in &page.body().collect::<Vec<_>>() {
            let text = block_text(block, width, table_width);
            match sections.last_mut().filter(|_| under_heading) {
                Some(heading) => heading.push_str(&text),
                None => sections.push(text),
            }
            under_heading = matches!(block, Block::Heading(_));
        }
        sections.retain(|section| !section.is_empty());
        sections.join("\n")
    }
}

fn block_text(block: &Block, width: usize, table_width: usize) -> String {
    match block {
        Block::Heading(text) => format!("{}\n", text.to_uppercase()),
        Block::Paragraph(text) => paragraph_within(width, text, 0, 0),
        Block::List(items) => items
            .iter()
            .map(|item| paragraph_within(width, &format!("- {item}"), 2, 4))
            .collect(),
        Block::Table(table) => table_text(table, width, table_width),
        Block::Plot(Plot::Rows(rows)) if rows.beside_table => String::new(),
        Block::Plot(Plot::Rows(rows)) => rows_text(rows, width, table_width),
        Block::Plot(Plot::Curves(curves)) => {
            let text = format!(
                "Plot: {}; {} over {}. It is drawn in the HTML report.",
                curves.title,
                curves.y.heading(),
                curves.x.heading()
            );
            paragraph_within(width, &text, 0, 2)
        }
        Block::Preformatted(text) => format!("{}\n", text.trim_end_matches('\n')),
    }
}

fn table_text(table: &Table, width: usize, table_width: usize) -> String {
    let mut out = titled(&table.title, width);
    let mut rows = vec![table.columns.iter().map(|one| one.heading()).collect()];
    let texts = |row: &Vec<super::Cell>| row.iter().map(|cell| cell.text.clone()).collect();
    rows.extend(table.rows.iter().map(texts));
    let aligns: Vec<Align> = table.columns.iter().map(|column| column.align).collect();
    out.push_str(&table_within(table_width, 2, &aligns, &rows));
    out
}

fn titled(title: &str, width: usize) -> String {
    if title.is_empty() {
        return String::new();
    }
    paragraph_within(width, title, 0, 2)
}

/// Each value with a bar beside it, in proportion to the largest. Amounts on a logarithmic axis
/// and points, whose differences count, have no bars.
fn rows_text(plot: &Rows, width: usize, table_width: usize) -> String {
    let mut out = titled(&plot.title, width);
    let with_bars = plot.shape == RowShape::Bars && plot.axis.scale == Scale::Linear;
    let values = || plot.rows.iter().flat_map(|row| row.values.iter().flatten());
    let largest = values()
        .map(|value| value.interval.estimate)
        .fold(0.0, f64::max);
    let mut rows = vec![vec![String::new(), String::new(), plot.axis.heading()]];
    let short = |name: &str| name.chars().take(width / 3).collect::<String>();
    for row in &plot.rows {
        for (position, (series, value)) in plot.series.iter().zip(&row.values).enumerate() {
            let Some(value) = value else { continue };
            let name = if position == 0 { &row.name } else { "" };
            let series = if plot.series.len() > 1 { series } else { "" };
            let mut cells = vec![short(name), short(series), in_words(&value.interval)];
            if with_bars && largest > 0.0 {
                let share = (value.interval.estimate / largest).clamp(0.0, 1.0);
                cells.push("#".repeat((share * BAR_COLUMNS as f64).round() as usize));
            }
            rows.push(cells);
        }
    }
    let aligns = [Align::Left, Align::Left, Align::Left, Align::Left];
    out.push_str(&table_within(table_width, 2, &aligns, &rows));
    for mark in &plot.marks {
        let text = format!("{}: {}", mark.name, exact(mark.at));
        out.push_str(&paragraph_within(width, &text, 2, 2));
    }
    out
}
