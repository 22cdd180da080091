//! How anything is printed: results through one buffer to stdout, everything else to stderr,
//! colours only where a person looks, and nothing that could speak to the terminal.

use anyhow::Result;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use ugeom_format::text::{visible, visible_json};

/// Whether only errors are printed on stderr (`--quiet`).
static QUIET: AtomicBool = AtomicBool::new(false);

/// The [`Color`] of the command line.
static COLOR: AtomicU8 = AtomicU8::new(Color::Auto as u8);

/// When to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always, even into files and pipes
    Always,
    /// Never
    Never,
}

/// Sets `--quiet` and `--color`, once for the process.
pub fn set(quiet: bool, color: Color) {
    QUIET.store(quiet, Ordering::Relaxed);
    COLOR.store(color as u8, Ordering::Relaxed);
}

/// Whether stderr is for errors only.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Stdout has no reader any more.
#[derive(Debug, thiserror::Error)]
#[error("stdout is closed")]
pub struct Closed;

/// Prints a result to stdout.
///
/// # Errors
/// The error of writing to stdout; [`Closed`] when its reader has gone.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(stdout_error)
}

/// An error of writing to stdout.
pub fn stdout_error(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Closed.into();
    }
    anyhow::Error::new(error).context("writing to stdout")
}

/// Prints a result as JSON, with a line feed behind it.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(&json(value)?)
}

/// A result as JSON, with a line feed behind it.
///
/// # Errors
/// It has no form in JSON.
pub fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(format!("{}\n", visible_json(&text)))
}

/// The same in one line.
pub fn print_json_line(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value)?;
    print(&format!("{}\n", visible_json(&text)))
}

/// Stdout with a buffer. Flush it: errors of a flush on drop are lost.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Prints an error on stderr.
pub fn complain(text: &str) {
    let paint = Paint::of_stderr();
    let text = harmless(text);
    say(&format!("{} {text}", paint.alarm("ugeom:")));
}

/// Prints a note on stderr; the work goes on.
pub fn warn(text: &str) {
    if is_quiet() {
        return;
    }
    let paint = Paint::of_stderr();
    let text = harmless(text);
    say(&format!("{} {text}", paint.alarm("ugeom: warning:")));
}

/// Says on stderr how something was understood.
pub fn remark(text: &str) {
    if is_quiet() {
        return;
    }
    say(&format!("ugeom: {}", harmless(text)));
}

fn say(text: &str) {
    // Without stderr there is nowhere to report to.
    let _ = writeln!(io::stderr(), "{}", without_numbers(text));
}

/// A message without the numbers of the system's errors, whose words stand before them:
/// `No such file or directory (os error 2)`.
fn without_numbers(text: &str) -> String {
    const BEGIN: &str = " (os error ";
    let mut parts = text.split(BEGIN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match rest.strip_prefix(')') {
            Some(rest) if rest.len() + 1 < part.len() => out.push_str(rest),
            _ => out.extend([BEGIN, part]),
        }
    }
    out
}

/// Columns of pages where nothing is known of the reader's terminal.
const WIDTH: usize = 100;

/// The columns of the terminal that stdout is; else 100.
pub fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    match columns {
        0 => WIDTH,
        columns => columns.clamp(ugeom_report::WIDTH_MIN, 2 * WIDTH),
    }
}

/// A whole page: on a terminal within its columns, else with a line for each row of a table.
pub fn page(page: &ugeom_report::Page) -> String {
    match io::stdout().is_terminal() {
        true => page.to_text(width()),
        false => page.to_lines(width()),
    }
}

/// The whole page, or its first screen.
pub fn page_or_screen(page: &ugeom_report::Page, whole: bool) -> String {
    match whole {
        true => self::page(page),
        false => page.to_screen(width(), style()),
    }
}

/// How pages are printed: with colours where [`Paint::of_stdout`] has them.
pub fn style() -> ugeom_report::Style {
    match Paint::of_stdout().colours {
        true => ugeom_report::Style::Colour,
        false => ugeom_report::Style::Plain,
    }
}

/// Paints words, or leaves them as they are.
#[derive(Clone, Copy)]
pub struct Paint {
    colours: bool,
}

impl Paint {
    /// Colours where stdout is a terminal, unless `--color` or `NO_COLOR` says otherwise.
    pub fn of_stdout() -> Self {
        Self {
            colours: wanted(io::stdout().is_terminal()),
        }
    }

    fn of_stderr() -> Self {
        Self {
            colours: wanted(io::stderr().is_terminal()),
        }
    }

    /// The heading of a table.
    pub fn heading(self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    /// Text that a user must see.
    pub fn alarm(self, text: &str) -> String {
        let red = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
        self.styled(red, text)
    }

    fn styled(self, style: Style, text: &str) -> String {
        if self.colours {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// `--color`, then the rules of <https://no-color.org> and <https://bixense.com/clicolors/>.
fn wanted(terminal: bool) -> bool {
    let color = COLOR.load(Ordering::Relaxed);
    if color != Color::Auto as u8 {
        return color == Color::Always as u8;
    }
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if set("NO_COLOR") {
        return false;
    }
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0");
    forced || (terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb"))
}

/// `text` on one line, with everything escaped that would move the cursor, change colours or turn
/// the direction of writing: names and labels come from disks that are not trusted.
pub fn printable(text: &str) -> String {
    visible(text)
}

/// A message without control characters, its own lines apart: errors quote paths,
/// which hold any bytes.
fn harmless(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Whether the user's locale shows more than ASCII.
pub fn is_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL")
        .or_else(|| set("LC_CTYPE"))
        .or_else(|| set("LANG"));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Rows with their columns aligned, two blanks between them and none at the end of a line.
pub struct Table {
    right: &'static [bool],
    rows: Vec<Line>,
}

enum Line {
    Row(Vec<String>),
    Note(String),
}

impl Table {
    /// A table with these headings; those of numbers are `true` in `right` and set to the right.
    pub fn new(headings: &[&str], right: &'static [bool]) -> Self {
        let headings = headings.iter().map(|&heading| heading.to_owned()).collect();
        Self {
            right,
            rows: vec![Line::Row(headings)],
        }
    }

    /// Adds a row; its cells stand under the headings, in their order.
    pub fn row(&mut self, cells: Vec<String>) {
        let cells = cells.iter().map(|cell| visible(cell)).collect();
        self.rows.push(Line::Row(cells));
    }

    /// Adds a line that takes no part in the columns.
    pub fn note(&mut self, text: String) {
        self.rows.push(Line::Note(text));
    }

    pub fn render(&self, paint: Paint) -> String {
        let width = |column: usize| {
            let rows = self.rows.iter().filter_map(|line| match line {
                Line::Row(cells) => cells.get(column),
                Line::Note(_) => None,
            });
            rows.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut out = String::new();
        for (number, line) in self.rows.iter().enumerate() {
            let line = match line {
                Line::Note(text) => text.clone(),
                Line::Row(cells) if number == 0 => paint.heading(&self.aligned(cells, &widths)),
                Line::Row(cells) => self.aligned(cells, &widths),
            };
            out.push_str(&line);
            out.push('\n');
        }
        out
    }

    fn aligned(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let width = widths.get(column).copied().unwrap_or(0);
            let free = " ".repeat(width.saturating_sub(cell.chars().count()));
            let pieces = match self.right.get(column) {
                Some(true) => [free.as_str(), cell],
                _ => [cell.as_str(), &free],
            };
            line.extend(pieces);
            line.push_str("  ");
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_do_not_end_in_blanks() {
        let mut table = Table::new(&["NAME", "SIZE", "LABEL"], &[false, true, false]);
        table.row(vec!["md0".into(), "1.0M".into(), String::new()]);
        table.note("! a note of any length stands as it is".into());
        table.row(vec!["├─md0s1".into(), "992K".into(), "root".into()]);
        let paint = Paint { colours: false };
        let expected = "NAME     SIZE  LABEL\nmd0      1.0M\n\
                        ! a note of any length stands as it is\n├─md0s1  992K  root\n";
        assert_eq!(table.render(paint), expected);
    }

    #[test]
    fn a_label_cannot_speak_to_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[31mb\u{202e}c\n"),
            "a\\x1b[31mb\\u{202e}c\\n"
        );
    }

    #[test]
    fn a_message_has_words_and_no_numbers_of_errors() {
        let words = "a: No such file or directory (os error 2); b (os error 13)";
        let expected = "a: No such file or directory; b";
        assert_eq!(without_numbers(words), expected);
        for kept in ["a (os error ) b", "a (os error 2", "(os error 2)"] {
            assert_eq!(without_numbers(kept), kept);
        }
    }

    #[test]
    fn a_path_in_a_message_cannot_speak_to_the_terminal() {
        assert_eq!(
            harmless("a\u{1b}]0;x\u{7}b\n  at \u{202e}c"),
            "a\\x1b]0;x\\x07b\n  at \\u{202e}c"
        );
    }

    #[test]
    fn colours_surround_the_text_or_are_not_there() {
        let (on, off) = (Paint { colours: true }, Paint { colours: false });
        assert_eq!(on.alarm("x"), "\u{1b}[1m\u{1b}[31mx\u{1b}[0m");
        assert_eq!(off.alarm("x"), "x");
    }
}
