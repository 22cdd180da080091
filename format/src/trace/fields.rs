//! The fields of a line, one after the other.

use super::Dialect;

/// What is left of a line.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    comma: bool,
}

impl<'a> Fields<'a> {
    /// Fields between spaces.
    pub(super) fn spaced(line: &'a [u8]) -> Self {
        Self {
            rest: line,
            comma: false,
        }
    }

    /// Fields between commas.
    pub(super) fn commas(line: &'a [u8]) -> Self {
        Self {
            rest: line,
            comma: true,
        }
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether there is nothing left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.trim_ascii().is_empty()
    }

    /// The next field as it stands; an empty one is `missing`.
    pub(super) fn text(&mut self, missing: &'static str) -> Result<&'a [u8], &'static str> {
        let (ends, line) = match self.comma {
            true => (b',', self.rest),
            false => (b' ', self.rest.trim_ascii_start()),
        };
        let is_end = |byte: &u8| *byte == ends || (!self.comma && *byte == b'\t');
        let end = line.iter().position(is_end).unwrap_or(line.len());
        self.rest = line.get(end + 1..).unwrap_or(&[]);
        match &line[..end] {
            [] => Err(missing),
            field => Ok(field),
        }
    }

    /// The next field as a decimal number.
    pub(super) fn number(&mut self, missing: &'static str) -> Result<u64, &'static str> {
        let field = self.text(missing)?.trim_ascii();
        let mut number = 0_u64;
        for digit in field {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return Err("this is no decimal number");
            }
            number = number
                .checked_mul(10)
                .and_then(|number| number.checked_add(u64::from(digit)))
                .ok_or("the number is larger than 2^64 - 1")?;
        }
        match field {
            [] => Err(missing),
            _ => Ok(number),
        }
    }
}

/// The form of a CSV, from its first line.
pub(super) fn csv_dialect(line: &[u8]) -> Option<Dialect> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    match fields.as_slice() {
        [_, _, _, b"Read" | b"Write", _, _, _] => Some(Dialect::Msr),
        [_, b"R" | b"W", _, _, _] => Some(Dialect::Alibaba),
        _ => None,
    }
}
