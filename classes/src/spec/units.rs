//! Numbers with units, as people write them in options: sizes, rates, durations, probabilities.
//! All are read exactly, in integers; a value that the unit cannot hold is an error, never
//! rounded.

use thiserror::Error;

/// Bytes of a sector where the layer has no sector size of its own to count in.
pub const SECTOR_BYTES: u64 = 512;

/// Why a value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// It is not a number, or its unit is unknown.
    #[error("this is not {what}")]
    Form {
        /// What was expected.
        what: &'static str,
        /// How such a value is written.
        help: &'static str,
    },
    /// It is larger than can be held.
    #[error("this is more than {max}")]
    TooLarge {
        /// The largest value.
        max: u64,
    },
    /// It is no whole number of the smallest unit.
    #[error("this is not a whole number of {unit}")]
    Fraction {
        /// The smallest unit.
        unit: &'static str,
    },
}

impl UnitError {
    /// How such a value is written.
    pub const fn help(&self) -> Option<&'static str> {
        match self {
            UnitError::Form { help, .. } => Some(help),
            UnitError::TooLarge { .. } | UnitError::Fraction { .. } => None,
        }
    }
}

const SIZE: UnitError = UnitError::Form {
    what: "a size",
    help: "a number with k, m, g, t, p, e (powers of 1024) or s (sectors): 512, 4k, 1.5g, 8s",
};
const RATE: UnitError = UnitError::Form {
    what: "a rate",
    help: "a size a second: 57m/s, 1.5g/s",
};
const DURATION: UnitError = UnitError::Form {
    what: "a duration",
    help: "a number with ns, us, ms or s: 250us, 1ms, 0.5s",
};
const PROBABILITY: UnitError = UnitError::Form {
    what: "a probability",
    help: "from 0 to 1, or from 0% to 100%: 0.05, 5%",
};
const NUMBER: UnitError = UnitError::Form {
    what: "a whole number",
    help: "in decimal, or in hexadecimal with 0x: 42, 0x2a",
};
const TRUTH: UnitError = UnitError::Form {
    what: "yes or no",
    help: "1, yes, true, on or 0, no, false, off",
};

/// Bytes from `512`, `4k`, `1.5g`, `8s`. The letters k, m, g, t, p, e are powers of 1024, also
/// with `b`, `i` or `ib` behind them (`4kib`), in any case; `s` counts sectors of `sector_bytes`.
///
/// # Errors
/// Not a number with such a unit, more than 2^64 - 1 bytes, or a fraction of a byte.
pub fn size_bytes(text: &str, sector_bytes: u64) -> Result<u64, UnitError> {
    let (number, unit) = Decimal::read(text).ok_or(SIZE)?;
    let unit = unit.to_ascii_lowercase();
    let factor = match unit.as_str() {
        "" | "b" => 1,
        "s" => sector_bytes,
        _ => {
            let power = "kmgtpe".find(|c| unit.starts_with(c)).ok_or(SIZE)?;
            if !matches!(&unit[1..], "" | "b" | "i" | "ib") {
                return Err(SIZE);
            }
            1 << (10 * (power + 1))
        }
    };
    number.times(factor, "bytes")
}

/// Bytes a second from `57m/s`: a size followed by `/s`.
///
/// # Errors
/// As [`size_bytes`], or `/s` is missing.
pub fn rate_bytes_per_second(text: &str) -> Result<u64, UnitError> {
    let size = text.strip_suffix("/s").ok_or(RATE)?;
    size_bytes(size, SECTOR_BYTES).map_err(|error| if error == SIZE { RATE } else { error })
}

/// Nanoseconds from `250us`, `1ms`, `0.5s`; `0` needs no unit.
///
/// # Errors
/// Not a number with such a unit, more than 2^64 - 1 ns, or a fraction of a nanosecond.
pub fn duration_ns(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = Decimal::read(text).ok_or(DURATION)?;
    let factor = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "" if number.digits == 0 => 0,
        _ => return Err(DURATION),
    };
    number.times(factor, "nanoseconds")
}

/// A probability from `0.05` or `5%`.
///
/// # Errors
/// Not a number, or outside 0 to 1.
pub fn probability(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = Decimal::read(text).ok_or(PROBABILITY)?;
    let whole = match unit {
        "" => 1,
        "%" => 100,
        _ => return Err(PROBABILITY),
    };
    let value = number.digits as f64 / (number.scale as f64 * f64::from(whole));
    if value <= 1.0 {
        Ok(value)
    } else {
        Err(PROBABILITY)
    }
}

/// A whole number, decimal or with `0x` hexadecimal.
///
/// # Errors
/// Not a number, or more than 2^64 - 1.
pub fn whole_number(text: &str) -> Result<u64, UnitError> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(NUMBER);
    }
    u64::from_str_radix(digits, radix).map_err(|_| UnitError::TooLarge { max: u64::MAX })
}

/// Yes from `1`, `yes`, `true`, `on`; no from `0`, `no`, `false`, `off`.
///
/// # Errors
/// Any other word.
pub fn truth(text: &str) -> Result<bool, UnitError> {
    match text {
        "1" | "yes" | "true" | "on" => Ok(true),
        "0" | "no" | "false" | "off" => Ok(false),
        _ => Err(TRUTH),
    }
}

/// `digits / scale`, where the scale is a power of ten.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    digits: u128,
    scale: u128,
}

impl Decimal {
    /// Reads `12` or `1.5` from the beginning of `text` and gives what follows. Nothing if there
    /// is no number, or one with more than 30 digits: with 30, `digits` stays below 2^100.
    fn read(text: &str) -> Option<(Decimal, &str)> {
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(number_end.unwrap_or(text.len()));
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return None,
            None => (number, ""),
        };
        if whole.is_empty() || fraction.contains('.') || number.len() > 30 {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes());
        let digits = digits.fold(0, |sum: u128, digit| sum * 10 + u128::from(digit - b'0'));
        let scale = fraction.bytes().fold(1, |scale: u128, _| scale * 10);
        Some((Decimal { digits, scale }, unit))
    }

    fn times(self, factor: u64, unit: &'static str) -> Result<u64, UnitError> {
        let too_large = UnitError::TooLarge { max: u64::MAX };
        let product = self
            .digits
            .checked_mul(u128::from(factor))
            .ok_or(too_large.clone())?;
        if !product.is_multiple_of(self.scale) {
            return Err(UnitError::Fraction { unit });
        }
        u64::try_from(product / self.scale).map_err(|_| too_large)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Result<u64, UnitError> {
        size_bytes(text, SECTOR_BYTES)
    }

    #[test]
    fn sizes_are_powers_of_1024_or_sectors() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512b", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4ki", 4096),
            ("4KiB", 4096),
            ("64m", 67_108_864),
            ("1.5g", 1_610_612_736),
            ("0.5k", 512),
            ("2t", 2_199_023_255_552),
            ("1p", 1 << 50),
            ("1e", 1 << 60),
            ("15e", 15 << 60),
            ("8s", 4096),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(size_bytes("8s", 4096), Ok(32768));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "k",
            "-1",
            "+1",
            "1.",
            ".5",
            "1.2.3k",
            "4kk",
            "4bi",
            "4x",
            "0x10",
            "1 k",
            "1e3",
            "4\u{131}",
            "\u{661}",
            "1_000",
            "0000000000000000000000000000001",
        ] {
            assert_eq!(size(text), Err(SIZE), "{text}");
        }
        assert_eq!(size("16e"), Err(UnitError::TooLarge { max: u64::MAX }));
        assert_eq!(
            size("999999999999999999999999999999e").unwrap_err().help(),
            None
        );
        assert_eq!(size("1.3k"), Err(UnitError::Fraction { unit: "bytes" }));
        assert_eq!(size("0.5"), Err(UnitError::Fraction { unit: "bytes" }));
    }

    #[test]
    fn rates_are_sizes_a_second() {
        assert_eq!(rate_bytes_per_second("57m/s"), Ok(57 << 20));
        assert_eq!(rate_bytes_per_second("57m"), Err(RATE));
        assert_eq!(rate_bytes_per_second("m/s"), Err(RATE));
    }

    #[test]
    fn durations_need_a_unit_unless_zero() {
        for (text, ns) in [
            ("0", 0),
            ("0s", 0),
            ("7ns", 7),
            ("250us", 250_000),
            ("250\u{b5}s", 250_000),
            ("1ms", 1_000_000),
            ("8.33ms", 8_330_000),
            ("0.5s", 500_000_000),
        ] {
            assert_eq!(duration_ns(text), Ok(ns), "{text}");
        }
        for text in ["5", "1m", "1h", "ms", "1MS", ""] {
            assert_eq!(duration_ns(text), Err(DURATION), "{text}");
        }
        assert_eq!(
            duration_ns("0.1ns"),
            Err(UnitError::Fraction {
                unit: "nanoseconds"
            })
        );
        assert!(matches!(
            duration_ns("18446744074s"),
            Err(UnitError::TooLarge { .. })
        ));
    }

    #[test]
    fn probabilities_lie_between_0_and_1() {
        for (text, value) in [
            ("0", 0.0),
            ("1", 1.0),
            ("0.05", 0.05),
            ("5%", 0.05),
            ("0.1%", 0.001),
            ("100%", 1.0),
        ] {
            assert_eq!(probability(text), Ok(value), "{text}");
        }
        for text in ["5", "1.01", "101%", "-0.1", "5 %", "NaN", "inf", ""] {
            assert_eq!(probability(text), Err(PROBABILITY), "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_decimal_or_hexadecimal() {
        assert_eq!(whole_number("42"), Ok(42));
        assert_eq!(whole_number("0x2A"), Ok(42));
        assert_eq!(whole_number("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "0x", "+1", "-1", "1.0", "0x+1", "2a"] {
            assert_eq!(whole_number(text), Err(NUMBER), "{text}");
        }
        assert!(matches!(
            whole_number("18446744073709551616"),
            Err(UnitError::TooLarge { .. })
        ));
    }

    #[test]
    fn truth_has_four_words_each_way() {
        for word in ["1", "yes", "true", "on"] {
            assert_eq!(truth(word), Ok(true));
        }
        for word in ["0", "no", "false", "off"] {
            assert_eq!(truth(word), Ok(false));
        }
        assert_eq!(truth("maybe"), Err(TRUTH));
    }
}
