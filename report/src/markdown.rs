//! A page as Markdown (CommonMark with the tables of GitHub), for pasting into a discussion.

use super::page::{Block, Page};
use super::plot::Plot;
use super::table::Table;
use crate::text::Align;

impl Page {
    /// The page as Markdown. Plots become tables of their values.
    pub fn to_markdown(&self) -> String {
        let page = self.cleaned();
        let mut parts = vec![format!("# {}", escaped(&page.asked))];
        for (what, text) in [("Question", &page.question), ("Answer", &page.answer)] {
            if !text.is_empty() {
                parts.push(format!("**{what}:** {}", escaped(text)));
            }
        }
        let head = page.facts_and_level();
        let facts = head.iter();
        let facts = facts.map(|fact| format!("- {}: {}", escaped(&fact.name), escaped(&fact.text)));
        parts.push(facts.collect::<Vec<_>>().join("\n"));
        parts.extend(page.body().map(|one| block(&one)));
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n") + "\n"
    }
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(text) => format!("## {}", escaped(text)),
        Block::Paragraph(text) => begun(text),
        Block::List(items) => {
            let items = items.iter().map(|item| format!("- {}", begun(item)));
            items.collect::<Vec<_>>().join("\n")
        }
        Block::Table(one) => table(one),
        Block::Plot(Plot::Rows(rows)) if rows.beside_table => String::new(),
        Block::Plot(plot) => table(&plot.table()),
        Block::Preformatted(text) => fenced(text),
    }
}

fn table(table: &Table) -> String {
    let mut lines = Vec::new();
    if !table.title.is_empty() {
        lines.push(format!("**{}**\n", escaped(&table.title)));
    }
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    lines.push(line(
        table
            .columns
            .iter()
            .map(|column| escaped(&column.heading()))
            .collect(),
    ));
    let rule = |align| match align {
        Align::Left => "---".to_owned(),
        Align::Right => "---:".to_owned(),
    };
    lines.push(line(
        table
            .columns
            .iter()
            .map(|column| rule(column.align))
            .collect(),
    ));
    for row in &table.rows {
        let text = |at: usize| {
            row.get(at)
                .map_or(String::new(), |cell| escaped(&cell.text))
        };
        lines.push(line((0..table.columns.len()).map(text).collect()));
    }
    lines.join("\n")
}

/// Lines as they are, in a fence that is longer than any row of its characters inside.
fn fenced(text: &str) -> String {
    let (mut longest, mut row) = (0, 0);
    for c in text.chars() {
        row = if c == '`' { row + 1 } else { 0 };
        longest = longest.max(row);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Text that means itself where a line begins, where `1.` or `#` would not.
fn begun(text: &str) -> String {
    let mut out = escaped(text);
    let digits = out.chars().take_while(char::is_ascii_digit).count();
    if out.starts_with(['#', '+', '-', '=']) {
        out.insert(0, '\\');
    } else if digits > 0 && out[digits..].starts_with(['.', ')']) {
        out.insert(digits, '\\');
    }
    out
}

/// Text that means itself: CommonMark 0.31, 2.4 (backslash escapes), and the tables, the struck-out
/// words and the formulas of GitHub.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
    {
        if "\\`*_[]<>|~&$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
