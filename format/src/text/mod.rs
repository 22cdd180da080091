//! Bytes of names and labels as text, without a loss, and text as it is shown.
//!
//! A path of Linux and a label of a disk are bytes, which need not be UTF-8. In a `String` a byte
//! that is none is one of the last 128 characters of plane 16, which is for private use: byte 0x80
//! is U+10FF80, byte 0xFF is U+10FFFF. So such names go through everything that works on text, and
//! become the same bytes again. Text that holds these characters already means bytes, too; a path
//! that really has them in UTF-8 is not reached.
//!
//! The displayed text has all of it escaped, with everything else that could control a terminal or
//! pass for another text.

use std::fmt::Write;

/// The character of byte 0.
const BASE: u32 = 0x10_ff00;

/// Why bytes are not those that a structure begins with, for a message.
pub(crate) fn begins(found: &[u8], expected: &[u8]) -> String {
    let expected = expected.escape_ascii();
    match found.iter().all(|&byte| byte == 0) {
        true => format!("it begins with zeroes, not with \"{expected}\""),
        false => format!(
            "it begins with \"{}\", not with \"{expected}\"",
            found.escape_ascii()
        ),
    }
}

/// Bytes as small hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes as text that [`to_bytes`] turns back, also where they are no UTF-8.
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        // Invalid bytes are 0x80 or above.
        out.extend(
            chunk
                .invalid()
                .iter()
                .filter_map(|byte| char::from_u32(BASE + u32::from(*byte))),
        );
    }
    out
}

/// The bytes of a text that [`from_bytes`] made.
pub fn to_bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => out.push(byte),
            None => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    out
}

/// The byte that a character stands for.
fn byte_of(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(BASE)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

/// A text as it is shown, on one line: `\n`, `\x1b`, `\xff` (a byte that is no UTF-8), `\u{202e}`.
/// Escaped are control characters, line and paragraph separators, and all that is not seen or turns
/// the direction of writing. A backslash stays as it is.
pub fn visible(text: &str) -> String {
    if !text.chars().any(is_hidden) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        // A String takes everything.
        let _ = match c {
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            c if byte_of(c).is_some() => write!(out, "\\x{:02x}", byte_of(c).unwrap_or_default()),
            c if c.is_ascii_control() => write!(out, "\\x{:02x}", u32::from(c)),
            c if is_hidden(c) => write!(out, "\\u{{{:x}}}", u32::from(c)),
            c => out.write_char(c),
        };
    }
    out
}

/// JSON with hidden characters in its text as `\u202e`: the same to a program, and harmless on a
/// terminal.
pub fn visible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// A character that is not shown as itself. Sources: Unicode 16, the classes Cc, Cf, Zl and Zp, and
/// the noncharacters.
pub(crate) fn is_hidden(c: char) -> bool {
    let code = u32::from(c);
    let format = matches!(
        c,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}'
    );
    let is_no_character = (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe;
    c.is_control() || format || is_no_character || byte_of(c).is_some()
}

#[cfg(test)]
mod tests;
