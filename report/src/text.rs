//! Text for a terminal of 100 columns: wrapped paragraphs and aligned tables.

/// The widest line of a report, in columns.
pub const WIDTH: usize = 100;

/// A paragraph wrapped at [`WIDTH`], its first line indented by `indent` columns and its other
/// lines by `hanging`. Words longer than a line stand alone. Ends with a line feed.
pub fn paragraph(text: &str, indent: usize, hanging: usize) -> String {
    paragraph_within(WIDTH, text, indent, hanging)
}

/// As [`paragraph`], wrapped at `width` columns.
pub(crate) fn paragraph_within(width: usize, text: &str, indent: usize, hanging: usize) -> String {
    let mut out = String::new();
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && columns(&line) + 1 + columns(word) > width {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(hanging);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}

/// A word as it has to be written on a command line.
pub fn in_a_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `1 round`, `2 rounds`.
pub fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// `1 round is too few`, `2 rounds are too few`.
pub fn too_few(rounds: u64) -> String {
    let verb = if rounds == 1 { "is" } else { "are" };
    format!("{} {verb} too few", counted(rounds, "round"))
}

/// A last column with less room than this goes on a line of its own.
const LAST_COLUMN_MIN: usize = 24;

/// How a column of a table is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Blanks on the right, for words.
    Left,
    /// Blanks on the left, for numbers.
    Right,
}

/// Rows with aligned columns, two blanks between them, indented by `indent`; the first row is the
/// heading. A row may be shorter than the others. Text that does not fit into [`WIDTH`] goes on
/// below, in the last column, or under the whole row where that column has hardly any room.
pub fn table(indent: usize, aligns: &[Align], rows: &[Vec<String>]) -> String {
    table_within(WIDTH, indent, aligns, rows)
}

/// As [`table`], for lines of `width` columns.
pub fn table_within(width: usize, indent: usize, aligns: &[Align], rows: &[Vec<String>]) -> String {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| columns(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..aligns.len()).map(widest).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == row.len() && columns(&line) + columns(cell) > width {
                let mut hanging = columns(&line);
                if hanging + LAST_COLUMN_MIN > width {
                    hanging = indent + 4;
                    line.truncate(line.trim_end().len());
                    line.push('\n');
                    line.push_str(&" ".repeat(hanging));
                }
                line.push_str(paragraph_within(width, cell, hanging, hanging).trim());
                continue;
            }
            let free = " ".repeat(widths.get(column).map_or(0, |w| w - columns(cell)));
            match aligns.get(column) {
                Some(Align::Right) => line.extend([free.as_str(), cell]),
                _ => line.extend([cell.as_str(), &free]),
            }
            line.push_str("  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Columns that a text takes: every character of ours takes one.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_keeps_to_the_width_and_hangs() {
        let text = "word ".repeat(60);
        let wrapped = paragraph(&text, 2, 4);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert!(lines.len() == 4 && lines.iter().all(|line| line.len() <= WIDTH));
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("    word"));
        assert_eq!(wrapped.split_whitespace().count(), 60);
        let long = "x".repeat(150);
        assert_eq!(
            paragraph(&format!("a {long}"), 0, 1),
            format!("a\n {long}\n")
        );
        assert_eq!(paragraph("", 0, 0), "\n");
    }

    #[test]
    fn a_table_that_is_too_wide_goes_on_below() {
        let rows = vec![vec![
            "first".to_owned(),
            "word ".repeat(30).trim().to_owned(),
        ]];
        let text = table(2, &[Align::Left; 2], &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.len() == 2 && lines.iter().all(|line| line.len() <= WIDTH),
            "{text}"
        );
        assert!(lines[1].starts_with("         word"), "{text}");
    }

    #[test]
    fn a_last_column_without_room_goes_under_its_row() {
        let wide = |cell: &str| vec!["x".repeat(80), cell.to_owned()];
        let rows = vec![wide("verdict"), wide(&"word ".repeat(10))];
        let text = table(2, &[Align::Left; 2], &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].ends_with("verdict"), "{text}");
        assert!(lines[2].starts_with("      word word"), "{text}");
    }

    #[test]
    fn columns_of_a_table_are_aligned() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows: Vec<Vec<String>> = vec![
            row(&["what", "ns"]),
            row(&["md0", "12.50"]),
            row(&["(one line)"]),
        ];
        assert_eq!(
            table(1, &[Align::Left, Align::Right], &rows),
            " what           ns\n md0         12.50\n (one line)\n"
        );
    }
}
