//! Sizes in bytes.

use serde::{Deserialize, Serialize};

use super::error::{UnitError, UnitErrorKind};
use super::number::Number;

/// The suffixes, each 1,024 times the one before.
const SUFFIXES: [char; 6] = ['k', 'm', 'g', 't', 'p', 'e'];

const KNOWN: &str = "b, k, m, g, t, p, e (powers of 1024)";

/// Reads a size: a decimal number, with a fraction if the result is a whole number of bytes, or a
/// hexadecimal one after `0x`, then perhaps a suffix of either case.
///
/// All suffixes are powers of 1,024, written `k`, `kb`, `ki` or `kib`, as expand_number(3) of
/// FreeBSD and fio's `k` have it. That differs from GNU dd for `kB` (1,000 there), and from dd of
/// both systems for a bare `b`, which means bytes here and blocks of 512 there.
///
/// # Errors
/// [`UnitError`] with the position of the first byte that is wrong; a percentage is refused.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let number = Number::parse(text)?;
    if number.unit == "%" {
        let kind = UnitErrorKind::Percent("a size in bytes is needed here, not a share");
        return Err(UnitError::new(text, number.unit_at, kind));
    }
    bytes(text, &number)
}

/// A size that may be a share of something known only later.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So many per cent, 0 to 100.
    Percent(f64),
}

impl Size {
    /// The size in bytes when the whole has `whole_bytes`; a share is rounded down.
    pub fn of(self, whole_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            // Whole per cents, the usual case, are exact.
            Self::Percent(percent) if percent >= 0.0 && percent.fract() == 0.0 => {
                (u128::from(whole_bytes) * u128::from(percent.min(100.0) as u64) / 100) as u64
            }
            Self::Percent(percent) => {
                (whole_bytes as f64 * percent.clamp(0.0, 100.0) / 100.0) as u64
            }
        }
    }
}

/// Reads a size as [`parse_size`] does, or a share such as `50%`.
///
/// # Errors
/// As [`parse_size`]; more than 100 % is refused.
pub fn parse_size_or_percent(text: &str) -> Result<Size, UnitError> {
    let number = Number::parse(text)?;
    if number.unit != "%" {
        return bytes(text, &number).map(Size::Bytes);
    }
    let percent = number.value();
    if percent > 100.0 {
        let kind = UnitErrorKind::Percent("a share cannot be more than 100 %");
        return Err(UnitError::new(
            text,
            text.len() - text.trim_start().len(),
            kind,
        ));
    }
    Ok(Size::Percent(percent))
}

fn bytes(text: &str, number: &Number<'_>) -> Result<u64, UnitError> {
    let unit = number.unit.to_ascii_lowercase();
    let mut letters = unit.chars();
    let factor = match (letters.next(), letters.as_str()) {
        (None | Some('b'), "") => Some(1),
        (Some(first), "" | "b" | "i" | "ib") => SUFFIXES
            .iter()
            .position(|suffix| *suffix == first)
            .map(|power| 1024_u64.pow(power as u32 + 1)),
        _ => None,
    };
    let factor = factor.ok_or_else(|| {
        let kind = UnitErrorKind::UnknownUnit {
            unit: number.unit.to_owned(),
            known: KNOWN,
        };
        UnitError::new(text, number.unit_at, kind)
    })?;
    number.times(text, factor, "bytes")
}

/// Writes a size with the largest suffix that loses nothing, so that [`parse_size`] reads it back:
/// `64m`, `1474560` as `1440k`, `513`.
pub fn size_exact(bytes: u64) -> String {
    let steps = if bytes == 0 {
        0
    } else {
        (bytes.trailing_zeros() / 10).min(6)
    };
    match steps.checked_sub(1) {
        None => bytes.to_string(),
        Some(suffix) => format!("{}{}", bytes >> (10 * steps), SUFFIXES[suffix as usize]),
    }
}

/// Writes a size for people, with three digits and a binary prefix: `512 B`, `1.41 MiB`, `931 GiB`.
pub fn size_human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.5 would print as 1024.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A number below 1,024 with three digits, or four when it has as many before the point; a fraction
/// of zeros is left out.
pub(super) fn three_digits(value: f64) -> String {
    let text = if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    };
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => text,
    }
}

/// Writes a whole number with commas: `837,344`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_as_users_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512b", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4KiB", 4096),
            ("4ki", 4096),
            ("64m", 64 << 20),
            (" 64 MiB ", 64 << 20),
            ("1.5g", 3 << 29),
            ("1.44m", 1_509_949),
            ("0x200", 512),
            ("0x10k", 16384),
            ("1t", 1 << 40),
            ("2p", 1 << 51),
            ("1e", 1 << 60),
            ("15.5E", 31 << 59),
            ("18446744073709551615", u64::MAX),
        ] {
            if text == "1.44m" {
                assert!(
                    parse_size(text).is_err(),
                    "1.44 x 2^20 is not a whole number"
                );
            } else {
                assert_eq!(parse_size(text), Ok(bytes), "{text}");
            }
        }
    }

    #[test]
    fn a_bad_size_is_refused_at_its_byte() {
        for (text, at, message) in [
            ("", 0, "a number is missing"),
            ("  ", 2, "a number is missing"),
            ("m", 0, "must begin with a digit, not with `m`"),
            ("-1", 0, "must begin with a digit, not with `-`"),
            ("64x", 2, "unknown unit `x`; known are b, k, m, g, t, p, e"),
            ("64 mbit", 3, "unknown unit `mbit`"),
            ("64µ", 2, "unknown unit `µ`"),
            ("1.", 2, "must begin with a digit"),
            ("1.k", 2, "must begin with a digit, not with `k`"),
            (".5k", 0, "must begin with a digit"),
            ("0.0001k", 0, "not a whole number of bytes"),
            ("16e", 0, "too large"),
            (" 18446744073709551616", 1, "too large"),
            (
                "99999999999999999999999999999999999999999999",
                0,
                "too large",
            ),
            ("0xfffffffffffffffffffffffffffffffffff", 0, "too large"),
            ("1.1234567890123456789k", 2, "too large"),
            ("50%", 2, "not a share"),
            ("1k1k", 1, "unknown unit `k1k`"),
        ] {
            let error = parse_size(text).unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn shares_are_read_and_taken_of_the_whole() {
        assert_eq!(parse_size_or_percent("50%").unwrap().of(1000), 500);
        assert_eq!(parse_size_or_percent("12.5 %").unwrap().of(1000), 125);
        assert_eq!(
            parse_size_or_percent("100%").unwrap().of(u64::MAX),
            u64::MAX
        );
        assert_eq!(parse_size_or_percent("4k").unwrap().of(1), 4096);
        let error = parse_size_or_percent("101%").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`101%`, at byte 0: a share cannot be more than 100 %"
        );
    }

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1_474_560, "1.41 MiB"),
            ((1 << 20) - 1, "1 MiB"),
            (1_000_204_886_016, "932 GiB"),
            (1 << 60, "1 EiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(size_human(bytes), text);
        }
        assert_eq!(
            (grouped(0), grouped(999), grouped(837_344)),
            ("0".into(), "999".into(), "837,344".into())
        );
        assert_eq!(grouped(1 << 60), "1,152,921,504,606,846,976");
        assert_eq!(
            (size_exact(1_474_560), size_exact(513)),
            ("1440k".into(), "513".into())
        );
    }

    proptest! {
        #[test]
        fn an_exact_size_reads_back_as_itself(bytes: u64, shift in 0_u32..64) {
            let bytes = bytes << shift;
            prop_assert_eq!(parse_size(&size_exact(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_makes_the_parser_panic_and_errors_point_into_it(text: String) {
            if let Err(error) = parse_size_or_percent(&text) {
                prop_assert!(error.at <= text.len());
            }
        }
    }
}
