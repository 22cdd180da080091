//! Errors of a specification and their place: spans, origins and the error that shows the line with
//! a caret below the fault, as rustc does.

use std::fmt;
use std::sync::Arc;
use ugeom_format::text::visible;

/// How many characters of a line an error shows; of a longer line it shows the part around the
/// fault.
const SHOWN_CHARS: usize = 96;
/// How many characters of a word stand in a message.
pub(super) const WORD_CHARS: usize = 40;
/// How many names are listed where none is near.
const LISTED_NAMES: usize = 20;

/// A piece of the text that a layer was read from, as byte offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start_bytes: usize,
    /// Offset behind the last byte; equal to the start for an empty piece.
    pub end_bytes: usize,
}

impl Span {
    /// The span from `start_bytes` up to, not including, `end_bytes`.
    pub const fn new(start_bytes: usize, end_bytes: usize) -> Span {
        Span {
            start_bytes,
            end_bytes,
        }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span::new(
            self.start_bytes.min(other.start_bytes),
            self.end_bytes.max(other.end_bytes),
        )
    }
}

/// A value and the place it was read from. Two of them are equal when their values are: where
/// something was written does not change its meaning.
#[derive(Clone, Debug, Default)]
pub struct Spanned<T> {
    /// The value read at that place.
    pub value: T,
    /// Where it was read, within the text of the [`Origin`].
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Joins a value with its place.
    pub const fn new(value: T, span: Span) -> Spanned<T> {
        Spanned { value, span }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Spanned<T> {}

/// The text that spans refer to: a specification from the command line, or one string inside a
/// stack file. Cheap to copy, since all layers of one text share it. All origins are equal, for
/// the reason given at [`Spanned`].
#[derive(Clone, Debug)]
pub struct Origin {
    document: Arc<Document>,
    place: SpanOrigin,
}

#[derive(Debug)]
struct Document {
    file: Option<String>,
    text: String,
}

/// How a span within a layer's text lies within the document.
#[derive(Clone, Copy, Debug)]
enum SpanOrigin {
    /// The layer's text stands in the document as it is, from this offset on.
    From(usize),
    /// The layer's text was written with escapes: only the whole literal can be pointed at.
    Whole(Span),
}

impl Origin {
    /// The text of a specification that was given by itself, as on a command line.
    pub fn command_line(text: &str) -> Origin {
        Origin::document(None, text)
    }

    /// The text of the file called `file`.
    pub fn file(file: &str, text: &str) -> Origin {
        Origin::document(Some(file.to_owned()), text)
    }

    fn document(file: Option<String>, text: &str) -> Origin {
        let document = Document {
            file,
            text: text.to_owned(),
        };
        Origin {
            document: Arc::new(document),
            place: SpanOrigin::From(0),
        }
    }

    /// The origin of a string whose literal stands at `literal` in this text, quotes included.
    pub(super) fn inside(&self, literal: Span, value: &str) -> Origin {
        let raw = self
            .document
            .text
            .get(literal.start_bytes..literal.end_bytes)
            .unwrap_or("");
        let place = match raw.get(1..raw.len().saturating_sub(1)) {
            Some(inner) if inner == value => SpanOrigin::From(literal.start_bytes + 1),
            _ => SpanOrigin::Whole(literal),
        };
        Origin {
            document: Arc::clone(&self.document),
            place,
        }
    }

    /// An error about the piece at `span` of this text.
    pub fn error(&self, span: Span, message: impl Into<String>) -> SpecError {
        let text = self.document.text.as_str();
        let (start, end) = match self.place {
            SpanOrigin::From(base) => (base + span.start_bytes, base + span.end_bytes),
            SpanOrigin::Whole(literal) => (literal.start_bytes, literal.end_bytes),
        };
        let start = floor_char(text, start);
        let end = floor_char(text, end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        SpecError {
            file: self.document.file.clone(),
            line: 1 + text[..line_start].matches('\n').count(),
            input: text[line_start..line_end].to_owned(),
            column: 1 + text[line_start..start].chars().count(),
            width: text[start..end.min(line_end)].chars().count().max(1),
            message: message.into(),
            help: None,
        }
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

/// The nearest offset at or before `at` that lies between two characters of `text`.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The defect of a specification or a stack file, with its place.
///
/// Its `Display` shows the message, the line, a caret line below it and the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The stack file, or nothing for a specification given by itself.
    pub file: Option<String>,
    /// The line of the fault, counted from 1.
    pub line: usize,
    /// The text of that line.
    pub input: String,
    /// Where the fault begins in the line, in characters, counted from 1.
    pub column: usize,
    /// How many characters the fault spans, at least 1.
    pub width: usize,
    /// The defect, without the place in the text.
    pub message: String,
    /// The correct text, if known.
    pub help: Option<String>,
}

impl SpecError {
    /// The same error with a piece of advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> SpecError {
        self.help = Some(help.into());
        self
    }

    /// The same error, advising the nearest of some names if one is near.
    #[must_use]
    pub(super) fn with_nearest(self, word: &str, names: &[&str]) -> SpecError {
        match super::nearest(word, names.iter().copied()) {
            Some(name) => self.with_help(format!("did you mean `{name}`?")),
            None if names.is_empty() => self,
            None => {
                let listed = &names[..names.len().min(LISTED_NAMES)];
                let more = if listed.len() < names.len() {
                    ", ..."
                } else {
                    ""
                };
                self.with_help(format!("there are: {}{more}", listed.join(", ")))
            }
        }
    }
}

impl std::error::Error for SpecError {}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match (&self.file, self.line) {
            (None, 1) => String::new(),
            (_, line) => line.to_string(),
        };
        let gutter = number.len();
        let (shown, before, width) = self.window();
        writeln!(f, "{}", visible(&self.message))?;
        match (&self.file, self.line) {
            (Some(file), line) => {
                writeln!(
                    f,
                    "{:gutter$}--> {}:{line}:{}",
                    "",
                    visible(file),
                    self.column
                )?;
            }
            (None, 1) => writeln!(f, "--> column {}", self.column)?,
            (None, line) => writeln!(f, "{:gutter$}--> {line}:{}", "", self.column)?,
        }
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{number} | {shown}")?;
        write!(f, "{:gutter$} | {:before$}{:^<width$}", "", "", "")?;
        if let Some(help) = &self.help {
            write!(f, "\n{:gutter$} = help: {help}", "")?;
        }
        Ok(())
    }
}

impl SpecError {
    /// The part of the line to show, the number of characters before the carets, and the number
    /// of carets.
    fn window(&self) -> (String, usize, usize) {
        let before = self.column.saturating_sub(1);
        let total = self.input.chars().count();
        // Escapes are longer than what they stand for.
        let input = self.input.chars();
        let shown_chars = |from: usize, count: usize| {
            let part: String = input.clone().skip(from).take(count).collect();
            visible(&part).chars().count() + count.saturating_sub(part.chars().count())
        };
        if total <= SHOWN_CHARS {
            let width = shown_chars(before, self.width);
            return (visible(&self.input), shown_chars(0, before), width);
        }
        let first = before.saturating_sub(SHOWN_CHARS / 2);
        let part: String = self.input.chars().skip(first).take(SHOWN_CHARS).collect();
        let left = if first > 0 { "..." } else { "" };
        let right = if first + SHOWN_CHARS < total {
            "..."
        } else {
            ""
        };
        let indent = before - first;
        let width = self.width.min(SHOWN_CHARS.saturating_sub(indent)).max(1);
        (
            format!("{left}{}{right}", visible(&part)),
            left.len() + shown_chars(first, indent),
            shown_chars(before, width),
        )
    }
}

/// The beginning of a text of any length, fit to stand in a message.
pub(super) fn shortened(text: &str, chars_max: usize) -> String {
    let start: String = text.chars().take(chars_max).collect();
    let is_whole = start.len() == text.len();
    format!("{}{}", visible(&start), if is_whole { "" } else { "..." })
}

/// The beginning of a word, in backquotes, to name it in a message.
pub(super) fn quoted(word: &str) -> String {
    format!("`{}`", shortened(word, WORD_CHARS))
}
