//! The lowest level of the language: characters with their quoting resolved, so that everything
//! above asks only whether a `|` is plain.

use super::error::{Origin, Span, SpecError};

/// One character of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glyph {
    pub kind: GlyphKind,
    pub start_bytes: usize,
    pub end_bytes: usize,
}

/// The class of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GlyphKind {
    /// As written; it may separate.
    Plain(char),
    /// From inside quotes or behind a backslash; it only stands for itself.
    Literal(char),
    /// A quote, which stands for nothing but shows that something empty was written.
    Quote,
}

/// Resolves quotes and backslashes. Within double quotes a backslash takes the next character
/// literally, as it does outside.
pub(super) fn glyphs(origin: &Origin, text: &str) -> Result<Vec<Glyph>, SpecError> {
    let mut out = Vec::with_capacity(text.len());
    let mut open_quote: Option<usize> = None;
    let mut chars = text.char_indices();
    while let Some((start_bytes, c)) = chars.next() {
        let mut end_bytes = start_bytes + c.len_utf8();
        let kind = match (c, open_quote) {
            ('"', Some(_)) => {
                open_quote = None;
                GlyphKind::Quote
            }
            ('"', None) => {
                open_quote = Some(start_bytes);
                GlyphKind::Quote
            }
            ('\\', _) => match chars.next() {
                Some((at, escaped)) => {
                    end_bytes = at + escaped.len_utf8();
                    GlyphKind::Literal(escaped)
                }
                None => {
                    let span = Span::new(start_bytes, end_bytes);
                    return Err(origin
                        .error(span, "nothing follows this backslash")
                        .with_help("a backslash is written `\\\\`"));
                }
            },
            (c, Some(_)) => GlyphKind::Literal(c),
            (c, None) => GlyphKind::Plain(c),
        };
        out.push(Glyph {
            kind,
            start_bytes,
            end_bytes,
        });
    }
    match open_quote {
        None => Ok(out),
        Some(at) => Err(origin
            .error(Span::new(at, at + 1), "this quote is not closed")
            .with_help("a quote that belongs to a name is written `\\\"`")),
    }
}

/// A piece of the text. It keeps its place when it is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    glyphs: &'a [Glyph],
    /// Where it begins when it has no characters.
    at_bytes: usize,
}

impl<'a> Piece<'a> {
    pub fn new(glyphs: &'a [Glyph]) -> Piece<'a> {
        Piece {
            glyphs,
            at_bytes: glyphs.first().map_or(0, |g| g.start_bytes),
        }
    }

    /// True when nothing was written, not even quotes.
    pub fn is_empty(self) -> bool {
        self.glyphs.is_empty()
    }

    pub fn span(self) -> Span {
        match (self.glyphs.first(), self.glyphs.last()) {
            (Some(first), Some(last)) => Span::new(first.start_bytes, last.end_bytes),
            _ => Span::new(self.at_bytes, self.at_bytes),
        }
    }

    /// The characters it stands for.
    pub fn text(self) -> String {
        self.glyphs
            .iter()
            .filter_map(|g| match g.kind {
                GlyphKind::Plain(c) | GlyphKind::Literal(c) => Some(c),
                GlyphKind::Quote => None,
            })
            .collect()
    }

    /// The characters, if none was quoted.
    pub fn plain_text(self) -> Option<String> {
        let is_plain = self
            .glyphs
            .iter()
            .all(|g| matches!(g.kind, GlyphKind::Plain(_)));
        is_plain.then(|| self.text())
    }

    /// Without plain white space at both ends.
    pub fn trim(self) -> Piece<'a> {
        let is_space = |g: &Glyph| matches!(g.kind, GlyphKind::Plain(c) if c.is_whitespace());
        let before = self.glyphs.iter().take_while(|g| is_space(g)).count();
        let rest = self.tail(before);
        let after = rest.glyphs.iter().rev().take_while(|g| is_space(g)).count();
        rest.head(rest.glyphs.len() - after)
    }

    /// The first plain character that `wanted` accepts.
    pub fn find(self, wanted: impl Fn(char) -> bool) -> Option<usize> {
        self.glyphs
            .iter()
            .position(|g| matches!(g.kind, GlyphKind::Plain(c) if wanted(c)))
    }

    /// The place of the plain character found at `index`.
    pub fn span_at(self, index: usize) -> Span {
        self.tail(index).head(1).span()
    }

    /// The character found at `index`.
    pub fn text_at(self, index: usize) -> String {
        self.tail(index).head(1).text()
    }

    /// The parts before and after the first plain `separator`.
    pub fn split_once(self, separator: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self.find(|c| c == separator)?;
        Some((self.head(at), self.tail(at + 1)))
    }

    /// The parts before and after the last plain `separator`.
    pub fn split_last(self, separator: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self
            .glyphs
            .iter()
            .rposition(|g| g.kind == GlyphKind::Plain(separator))?;
        Some((self.head(at), self.tail(at + 1)))
    }

    /// The pieces between plain separators: one more than there are separators.
    pub fn split(self, separator: char) -> impl Iterator<Item = Piece<'a>> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let piece = rest?;
            match piece.split_once(separator) {
                Some((first, others)) => {
                    rest = Some(others);
                    Some(first)
                }
                None => rest.take(),
            }
        })
    }

    fn head(self, count: usize) -> Piece<'a> {
        Piece {
            glyphs: &self.glyphs[..count.min(self.glyphs.len())],
            at_bytes: self.at_bytes,
        }
    }

    fn tail(self, from: usize) -> Piece<'a> {
        let (before, rest) = self.glyphs.split_at(from.min(self.glyphs.len()));
        Piece {
            glyphs: rest,
            at_bytes: before.last().map_or(self.at_bytes, |g| g.end_bytes),
        }
    }
}
