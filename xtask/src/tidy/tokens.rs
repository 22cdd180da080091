//! Rust source as a flat list of tokens with their lines.
//!
//! The lexer of `proc-macro2` knows strings, comments, character literals and lifetimes; on a flat
//! list a rule is a short pattern, and the bodies of macros are seen like all other code, which a
//! syntax tree would hide.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::str::FromStr;

/// An identifier, a literal, one character of punctuation, or a bracket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Inside an item that is compiled for tests only.
    pub test: bool,
}

/// The tokens of a file, or the line at which it stops being Rust.
pub fn of(text: &str) -> Result<Vec<Token>, usize> {
    let stream = TokenStream::from_str(text).map_err(|error| error.span().start().line)?;
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    // The lexer keeps each text for its spans, of which none is left; a lookup takes longer with
    // each of them.
    proc_macro2::extra::invalidate_current_thread_spans();
    mark_tests(&mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let text = match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token {
                    text: open.to_owned(),
                    line,
                    test: false,
                });
                let end = group.span_close().start().line;
                flatten(group.stream(), tokens);
                tokens.push(Token {
                    text: close.to_owned(),
                    line: end,
                    test: false,
                });
                continue;
            }
            TokenTree::Ident(ident) => ident.to_string(),
            TokenTree::Punct(punct) => punct.as_char().to_string(),
            TokenTree::Literal(literal) => literal.to_string(),
        };
        tokens.push(Token {
            text,
            line,
            test: false,
        });
    }
}

/// The index of the bracket that closes the one at `open`.
pub fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len().saturating_sub(1)
}

/// The index at which the item that starts at `start` ends: its `;`, or the end of its first block.
/// A block behind `<`, `,` or `=` is a constant argument and not the body.
pub fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut index = start;
    while index < tokens.len() {
        match tokens[index].text.as_str() {
            ";" => return index,
            "{" if !matches!(tokens[index.saturating_sub(1)].text.as_str(), "<" | ",") => {
                return closing(tokens, index);
            }
            "{" | "(" | "[" => index = closing(tokens, index),
            _ => {}
        }
        index += 1;
    }
    tokens.len().saturating_sub(1)
}

const TEST_ATTRIBUTES: &[&[&str]] = &[
    &["#", "[", "test", "]"],
    &["#", "[", "cfg", "(", "test", ")", "]"],
    &["#", "[", "cfg", "(", "all", "(", "test"],
    &["#", "[", "cfg", "(", "any", "(", "test"],
];

fn mark_tests(tokens: &mut [Token]) {
    for start in 0..tokens.len() {
        let is_test = TEST_ATTRIBUTES.iter().any(|pattern| {
            let here = tokens[start..].iter().map(|token| token.text.as_str());
            here.take(pattern.len()).eq(pattern.iter().copied())
        });
        if is_test {
            let mut item = closing(tokens, start + 1) + 1;
            while item + 1 < tokens.len() && tokens[item].text == "#" {
                item = closing(tokens, item + 1) + 1;
            }
            let end = item_end(tokens, item);
            for token in tokens.iter_mut().take(end + 1).skip(start) {
                token.test = true;
            }
        }
    }
}
