//! Patterns of bytes: `verify_pattern` and `buffer_pattern`.

use std::io::{self, Read};

use crate::settings::Piece;

/// The longest pattern (fio's `MAX_PATTERN_SIZE`), bytes.
const PATTERN_BYTES_MAX: usize = 512;

/// `0xdeadbeef`, `"text"`, `-12`, `%o`, `'file'`, and their concatenations.
pub fn bytes_pattern(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    let mut length = 0;
    while !rest.is_empty() {
        let (piece, behind) = next_piece(rest)?;
        length += match &piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Offset => 8,
        };
        pieces.push(piece);
        rest = behind;
    }
    if length == 0 || length > PATTERN_BYTES_MAX {
        return Err(format!("a pattern has 1 to {PATTERN_BYTES_MAX} bytes"));
    }
    Ok(pieces)
}

fn next_piece(text: &str) -> Result<(Piece, &str), String> {
    if let Some(rest) = text.strip_prefix("%o") {
        return Ok((Piece::Offset, rest));
    }
    if let Some(rest) = text.strip_prefix('"') {
        let (inside, rest) = rest
            .split_once('"')
            .ok_or_else(|| format!("`{text}` has no closing quotation mark"))?;
        return Ok((Piece::Bytes(inside.as_bytes().to_vec()), rest));
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let (path, rest) = rest
            .split_once('\'')
            .ok_or_else(|| format!("`{text}` has no closing quotation mark"))?;
        let bytes = pattern_file(path).map_err(|error| format!("{path}: {error}"))?;
        return Ok((Piece::Bytes(bytes), rest));
    }
    if let Some(rest) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = rest
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(rest.len());
        return Ok((Piece::Bytes(hex_bytes(&rest[..end])?), &rest[end..]));
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let whole = &text[..text.len() - digits.len() + end];
    let number: i64 = whole.parse().map_err(|_| {
        format!("`{text}` is no pattern: write 0xdeadbeef, \"text\", a number, %o, or 'file'")
    })?;
    let bytes = (number as i32).to_le_bytes();
    let used = match u32::try_from(number) {
        Ok(number) if number < 1 << 8 => 1,
        Ok(number) if number < 1 << 16 => 2,
        Ok(number) if number < 1 << 24 => 3,
        _ => 4,
    };
    Ok((Piece::Bytes(bytes[..used].to_vec()), &text[whole.len()..]))
}

/// The beginning of a file: as much as a pattern may have, as fio takes it.
fn pattern_file(path: &str) -> io::Result<Vec<u8>> {
    // Reading a pipe could wait for ever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(PATTERN_BYTES_MAX as u64)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Two digits a byte, in the order in which they are written.
fn hex_bytes(digits: &str) -> Result<Vec<u8>, String> {
    if digits.is_empty() {
        return Err("0x without digits is no pattern".to_owned());
    }
    let padded = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits.to_owned()
    };
    let pairs = (0..padded.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&padded[at..at + 2], 16).map_err(|error| error.to_string()))
        .collect()
}
