//! A number as strtod(3) reads it.

/// The number that all of `token` spells, perhaps an infinity or a NaN; none when it is no number.
pub(super) fn parse(token: &[u8]) -> Option<f64> {
    // strtod skips white space in front; behind the number it stops and the caller complains.
    let start = token.iter().position(|byte| !is_space(*byte))?;
    let text = std::str::from_utf8(&token[start..]).ok()?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hexadecimal = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => {
            let magnitude = parse_hexadecimal(digits)?;
            Some(if text.starts_with('-') {
                -magnitude
            } else {
                magnitude
            })
        }
        // Rust reads the same decimal numbers and names as strtod does in the C locale.
        None => text.parse().ok(),
    }
}

/// The white space of isspace(3) in the C locale.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Digits that fit into the mantissa with room to spare; more only decide how it is rounded.
const DIGITS_KEPT: u32 = 15;

/// `1f`, `1.8`, `.8p-3`: the digits behind `0x`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, parse_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut mantissa, mut kept, mut dropped) = (0_u64, 0, 0_i64);
    for digit in whole.chars().chain(fraction.chars()) {
        let value = u64::from(digit.to_digit(16)?);
        if kept < DIGITS_KEPT {
            mantissa = mantissa << 4 | value;
            kept += u32::from(mantissa != 0);
        } else {
            mantissa |= u64::from(value != 0);
            dropped += 1;
        }
    }
    let places = dropped - fraction.len() as i64;
    let exponent = exponent.saturating_add(4 * places);
    // In steps, because 2^exponent alone may be out of range where the product is not.
    let mut value = mantissa as f64;
    let mut left = exponent.clamp(-4000, 4000) as i32;
    while left != 0 && value != 0.0 && value.is_finite() {
        let step = left.clamp(-1000, 1000);
        value *= 2_f64.powi(step);
        left -= step;
    }
    Some(value)
}

/// A decimal exponent of two; one out of range becomes the largest.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>().unwrap_or(i64::from(i32::MAX));
    Some(if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtod_does() {
        for (text, value) in [
            ("5", 5.0),
            ("+.5e1", 5.0),
            ("-5.", -5.0),
            ("\t 1e3", 1000.0),
            ("0x10", 16.0),
            ("-0X1.8p3", -12.0),
            ("0x.8p-1", 0.25),
            ("0x1p-1074", 5e-324),
            ("0x1fffffffffffffffff", 0x1f_ffff_ffff_ffff_ffff_u128 as f64),
            ("0x1.fffffffffffff8p0", 2.0),
            // A tie that one digit far behind decides.
            ("0x1000000000000080000", 2_f64.powi(72)),
            (
                "0x1000000000000080001",
                (2_f64.powi(56) + 16.0) * 2_f64.powi(16),
            ),
            ("1e999", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x1p999999999999999999999", f64::INFINITY),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(value), "{text}");
        }
        assert!(parse(b"nan").is_some_and(f64::is_nan));
        for text in [
            "", " ", "five", "5 ", "4,5", "1e", "0x", "0x.", "0xg", "0x1p", "0x1p+", "1_000",
            "--5", "5\u{e9}", "0x-1",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"5\xff"), None);
    }
}
