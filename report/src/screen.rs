//! A page on one screen: the question, the answer, one table, warnings, and where to read more.

use crate::page::Page;
use crate::table::Table;
use crate::text::{columns, counted, paragraph_within, table_within};

/// Lines of a screen; the prompt takes the last one.
const LINES: usize = 23;

/// The narrowest screen, in columns.
pub const WIDTH_MIN: usize = 60;

/// Warnings take at most so many lines.
const WARNING_LINES: usize = 5;

/// How words are set off where the terminal can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text without control sequences, for files and pipes.
    Plain,
    /// Bold and colour by control sequences (ECMA-48), for terminals.
    Colour,
}

impl Style {
    fn wrap(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }

    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn warning(self, text: &str) -> String {
        self.wrap("33", text)
    }
}

impl Page {
    /// The first screen: at most 23 lines, at most `width` columns where words allow it. Rows of
    /// the table that find no room are left to the whole page.
    pub fn to_screen(&self, width: usize, style: Style) -> String {
        let page = self.cleaned();
        let width = width.max(WIDTH_MIN);
        let head = paragraph_within(width, &format!("{}: {}", page.asked, page.question), 0, 2);
        let mut out = style.bold(head.trim_end());
        out.push('\n');
        let answer = paragraph_within(width, &page.answer, 0, 0);
        out.push_str(&style.bold(answer.trim_end()));
        out.push_str("\n\n");
        let warnings = warnings(&page.warnings, width);
        let more = page.last_lines(width);
        let lines = |text: &str| text.lines().count();
        let used = lines(&out) + lines(&warnings) + lines(&more) + 1;
        if let Some(table) = &page.summary {
            out.push_str(&summary(table, width, LINES.saturating_sub(used)));
        }
        if !warnings.is_empty() {
            out.push_str(&style.warning(warnings.trim_end()));
            out.push('\n');
        }
        out + &more
    }

    /// The level of the intervals, and where to read more: a line if it is wide enough.
    fn last_lines(&self, width: usize) -> String {
        let more = match (&*self.saved, &*self.again) {
            ("", "") => format!("More: {} --all; {}", self.asked, self.manual),
            ("", again) => format!("More: {again} --all (measures again); {}", self.manual),
            (saved, _) => format!("More: ugeom report {saved}; {}", self.manual),
        };
        let more = paragraph_within(width, &more, 0, 6);
        let level = match self.certain() {
            none if none.is_empty() => return more,
            some => format!("Intervals: {some}."),
        };
        match columns(&level) + 1 + columns(&more) <= width {
            true => format!("{level} {more}"),
            false => paragraph_within(width, &level, 0, 2) + &more,
        }
    }
}

fn warnings(warnings: &[String], width: usize) -> String {
    let text = warnings
        .iter()
        .map(|one| paragraph_within(width, &format!("Warning: {one}"), 0, 2));
    let text: String = text.collect();
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() {
        0..=WARNING_LINES => text,
        _ => lines[..WARNING_LINES - 1].join("\n") + "\n  ... (see --all)\n",
    }
}

/// The table in at most so many lines, and an empty line. The last line counts the rows for which
/// there is no room.
fn summary(table: &Table, width: usize, lines: usize) -> String {
    let mut rows: Vec<Vec<String>> = vec![table.columns.iter().map(|it| it.heading()).collect()];
    let texts = |row: &Vec<crate::Cell>| row.iter().map(|cell| cell.text.clone()).collect();
    rows.extend(table.rows.iter().map(texts));
    let aligns: Vec<_> = table.columns.iter().map(|column| column.align).collect();
    narrow(&mut rows, width);
    let all = rows.len();
    loop {
        let mut text = table_within(width, 2, &aligns, &rows);
        let left_out = all - rows.len();
        if left_out > 0 {
            let more = counted(left_out as u64, "more row");
            text.push_str(&format!("  ... {more} (--all)\n"));
        }
        if text.lines().count() < lines || rows.len() <= 2 {
            return text + "\n";
        }
        rows.pop();
    }
}

/// Leaves out the last columns that do not fit.
fn narrow(rows: &mut [Vec<String>], width: usize) {
    loop {
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let all: usize = (0..count).map(|column| widest(column) + 2).sum();
        if count <= 2 || all <= width {
            return;
        }
        rows.iter_mut().for_each(|row| row.truncate(count - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use ugeom_testkit::ends;

    fn page(rows: usize) -> Page {
        let mut page = Page::new("layers", "ugeom lab layers");
        page.question = "What do layers cost?".to_owned();
        page.answer = "GEOM adds 12.9 ns (12.5 to 13.3) to a read. ".repeat(4);
        page.warnings = vec!["other work is running".to_owned()];
        let columns = ["what", "today", "2002"].map(Column::text);
        let mut table = Table::new("", columns);
        for row in 0..rows {
            let cells = [
                format!("row {row}"),
                "1.9 ns (1.8 to 2.0)".to_owned(),
                "x".repeat(40),
            ];
            table.row(cells.map(crate::Cell::text));
        }
        page.summary = Some(table);
        page
    }

    #[test]
    fn a_screen_has_the_answer_first_and_ends_with_where_to_read_on() {
        for width in [60, 80, 100, 200] {
            let text = page(40).to_screen(width, Style::Plain);
            assert!(text.lines().count() <= LINES, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            let answer = text.lines().position(|line| line.starts_with("GEOM adds"));
            assert!(answer.is_some_and(|line| line < 3), "{text}");
            assert!(text.contains("Warning: other work is running"), "{text}");
            ends(&text, "ugeom lab layers --all; docs/lab-layers.md\n");
            assert!(text.contains("row 8"), "{text}");
            assert!(text.contains(" more rows (--all)"), "{text}");
        }
        let mut saved = page(3);
        (saved.again, saved.saved) = ("ugeom lab layers".to_owned(), "a.json".to_owned());
        let text = saved.to_screen(80, Style::Plain);
        ends(&text, "More: ugeom report a.json; docs/lab-layers.md\n");
        let narrow = page(3).to_screen(60, Style::Plain);
        assert!(!narrow.contains("more row"), "{narrow}");
        assert!(
            !narrow.contains("2002") && narrow.contains("today"),
            "{narrow}"
        );
    }

    #[test]
    fn a_terminal_gets_bold_and_colour_and_others_none() {
        assert!(!page(3).to_screen(80, Style::Plain).contains('\u{1b}'));
        let text = page(3).to_screen(80, Style::Colour);
        assert!(
            text.starts_with("\u{1b}[1mugeom lab layers") && text.contains("\u{1b}[33mWarning")
        );
    }

    #[test]
    fn many_warnings_leave_room_for_the_table() {
        let mut page = page(8);
        page.warnings = vec!["word ".repeat(30); 6];
        let text = page.to_screen(80, Style::Plain);
        assert!(
            text.lines().count() <= LINES && text.contains("... (see --all)"),
            "{text}"
        );
    }
}
