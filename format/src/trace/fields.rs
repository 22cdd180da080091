//! The fields of a line, one after the other.

/// The rest of a line.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    comma: bool,
}

impl<'a> Fields<'a> {
    /// Fields with one or more blanks between them.
    pub(super) fn spaced(line: &'a [u8]) -> Self {
        Self {
            rest: line,
            comma: false,
        }
    }

    /// Fields with one comma between them (CSV without quotes).
    pub(super) fn commas(line: &'a [u8]) -> Self {
        Self {
            rest: line,
            comma: true,
        }
    }

    /// The unread rest.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether there is nothing left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.trim_ascii().is_empty()
    }

    /// Whether the next field begins with this byte.
    #[inline]
    pub(super) fn next_is(&self, byte: u8) -> bool {
        match self.rest {
            [first, ..] if !first.is_ascii_whitespace() => *first == byte,
            rest => rest.trim_ascii_start().first() == Some(&byte),
        }
    }

    #[inline]
    fn skip_spaces(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// The next field as it stands; an empty one is `missing`.
    #[inline]
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
    #[inline]
    pub(super) fn number(&mut self, missing: &'static str) -> Result<u64, &'static str> {
        let ends = if self.comma { b',' } else { b' ' };
        if !self.comma {
            // blkparse aligns its columns.
            self.skip_spaces();
        }
        let (number, digits) = leading_number(self.rest);
        // Up to 19 digits fit into any case.
        if (1..=19).contains(&digits) {
            match self.rest.get(digits) {
                None => self.rest = &[],
                Some(byte) if *byte == ends => self.rest = &self.rest[digits + 1..],
                Some(_) => return self.number_by_digits(missing),
            }
            return Ok(number);
        }
        self.number_by_digits(missing)
    }

    /// Skips a field that must be a decimal number.
    #[inline]
    pub(super) fn skip_number(&mut self, missing: &'static str) -> Result<(), &'static str> {
        self.skip_spaces();
        let digits = self
            .rest
            .iter()
            .take(8)
            .take_while(|byte| byte.is_ascii_digit());
        match digits.count() {
            digits @ 1..=8 if self.rest.get(digits) == Some(&b' ') => {
                self.rest = &self.rest[digits + 1..];
                Ok(())
            }
            _ => self.number_by_digits(missing).map(drop),
        }
    }

    /// Skips a field of these bytes and the space behind it; false where another one follows.
    #[inline]
    pub(super) fn skips(&mut self, field: &[u8]) -> bool {
        self.skip_spaces();
        match self.rest.strip_prefix(field) {
            Some([b' ', rest @ ..]) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The same for fields with spaces around, of many digits, or that are no number.
    fn number_by_digits(&mut self, missing: &'static str) -> Result<u64, &'static str> {
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

/// Where the first line ends: the place of its line feed. Eight bytes at a time: in `word` a byte
/// is zero where there is one.
#[inline]
pub(super) fn line_end(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (chunks, rest) = text.as_chunks::<8>();
    for (number, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk) ^ (ONES * b'\n' as u64);
        let zeroes = word.wrapping_sub(ONES) & !word & (ONES * 0x80);
        if zeroes != 0 {
            return Some(8 * number + zeroes.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| *byte == b'\n')?;
    Some(8 * chunks.len() + at)
}

/// The number that a text begins with, if it has up to 19 digits, and how many it has.
#[inline]
pub(super) fn leading_number(text: &[u8]) -> (u64, usize) {
    let (mut number, mut digits) = (0_u64, 0);
    while digits <= 8
        && let Some(chunk) = text[digits..].first_chunk::<8>()
        && let Some(eight) = eight_digits(*chunk)
    {
        number = number * 100_000_000 + eight;
        digits += 8;
    }
    while let Some(byte) = text.get(digits) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 || digits == 20 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        digits += 1;
    }
    (number, digits)
}

/// Eight digits as a number: pairs, fours and all at once, in one word.
#[inline]
pub(super) fn eight_digits(chunk: [u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(chunk);
    let above = word.wrapping_add(0x0606_0606_0606_0606);
    let high = 0xf0f0_f0f0_f0f0_f0f0;
    if word & high != 0x3030_3030_3030_3030 || above & high != 0x3030_3030_3030_3030 {
        return None;
    }
    Some(sum_of_digits(word))
}

/// A number of blanks and then digits, which fills eight columns to the right.
#[inline]
pub(super) fn right_aligned(columns: [u8; 8]) -> Option<u64> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(columns);
    // The highest bit of each byte that is no digit, and of each that is no blank.
    let value = word ^ (ONES * b'0' as u64);
    let other = (((value & (ONES * 0x7f)) + ONES * 0x76) | value) & (ONES * 0x80);
    let value = word ^ (ONES * b' ' as u64);
    let no_blank = (((value & (ONES * 0x7f)) + ONES * 0x7f) | value) & (ONES * 0x80);
    // The first bytes are the lowest: blanks there, and none behind the first digit.
    let blanks = other | other.wrapping_sub(other >> 7);
    let is_number = other & no_blank == 0 && blanks & blanks.wrapping_add(1) == 0;
    (is_number && blanks != u64::MAX).then(|| sum_of_digits(word))
}

/// The number of eight digits; blanks count as zeros.
#[inline]
fn sum_of_digits(word: u64) -> u64 {
    let ones = word & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours * 10_000 + (fours >> 32)) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::{leading_number, line_end, right_aligned};

    #[test]
    fn a_leading_number_ends_at_the_first_other_byte() {
        for digits in 0..=21 {
            let number = &b"918273645546372819012"[..digits];
            let known = str::from_utf8(number).unwrap().parse().unwrap_or(0);
            for rest in 0..10 {
                for other in [b' ', b'/', b':', b'\n', 0, b'0' | 0x80, 0xff] {
                    let text = [number, &vec![other; rest]].concat();
                    let (found, count) = leading_number(&text);
                    assert_eq!(count, digits.min(20));
                    assert!(digits > 19 || found == known, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn right_aligned_numbers_are_blanks_and_digits_behind_them() {
        for number in [
            0_u64, 7, 10, 305, 4_096, 99_999, 123_456, 7_654_321, 87_654_321,
        ] {
            let columns = format!("{number:8}").into_bytes();
            let mut columns: [u8; 8] = columns.try_into().unwrap();
            assert_eq!(right_aligned(columns), Some(number));
            for column in 0..8 {
                let good = columns[column];
                for byte in 0..=255 {
                    columns[column] = byte;
                    let text = str::from_utf8(&columns)
                        .ok()
                        .map(|text| text.trim_start_matches(' '));
                    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                    let known = digits.and_then(|digits| digits.parse().ok());
                    assert_eq!(right_aligned(columns), known, "{columns:?}");
                }
                columns[column] = good;
            }
        }
        assert_eq!(right_aligned(*b"        "), None);
    }

    #[test]
    fn a_line_ends_at_its_first_line_feed() {
        assert_eq!(line_end(b""), None);
        for length in 0..40 {
            // Bytes beside a line feed, which differ from it in one bit, or by a borrow.
            for other in [b'\x0b', b'\x8a', b'\x09', 0, 0xff] {
                let mut text = vec![other; length];
                assert_eq!(line_end(&text), None);
                text.extend(b"\n\x0b\n");
                assert_eq!(line_end(&text), Some(length));
            }
        }
    }
}
