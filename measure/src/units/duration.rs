//! Times, kept in nanoseconds.

use serde::{Deserialize, Serialize};

use super::error::{UnitError, UnitErrorKind};
use super::number::Number;
use super::size::three_digits;

const KNOWN: &str = "ns, us, ms, s, m, h, d";

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    /// 10^-9 s.
    Nanoseconds,
    /// 10^-6 s.
    Microseconds,
    /// 10^-3 s.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// 60 s.
    Minutes,
    /// 3,600 s.
    Hours,
    /// 86,400 s.
    Days,
}

impl TimeUnit {
    /// All units, the longest first.
    const ALL: [Self; 7] = [
        Self::Days,
        Self::Hours,
        Self::Minutes,
        Self::Seconds,
        Self::Milliseconds,
        Self::Microseconds,
        Self::Nanoseconds,
    ];

    /// Its length in nanoseconds.
    pub fn ns(self) -> u64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Hours => 3_600_000_000_000,
            Self::Days => 86_400_000_000_000,
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Minutes => "m",
            Self::Hours => "h",
            Self::Days => "d",
        }
    }

    /// fio's spellings (`nsec`, `usec`, `msec`, `sec`) and the usual ones, of either case.
    fn named(unit: &str) -> Option<Self> {
        match unit.to_lowercase().as_str() {
            "ns" | "nsec" => Some(Self::Nanoseconds),
            // The micro sign and the Greek letter are different characters.
            "us" | "usec" | "\u{b5}s" | "\u{3bc}s" => Some(Self::Microseconds),
            "ms" | "msec" => Some(Self::Milliseconds),
            "s" | "sec" => Some(Self::Seconds),
            "m" | "min" => Some(Self::Minutes),
            "h" => Some(Self::Hours),
            "d" => Some(Self::Days),
            _ => None,
        }
    }
}

/// Reads a time such as `1ms`, `10us`, `1.5s` or `2h`, in nanoseconds. A unit is needed, except
/// after 0.
///
/// # Errors
/// [`UnitError`] with the position of the first byte that is wrong.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    let number = Number::parse(text)?;
    if number.unit.is_empty() && !number.is_zero() {
        let kind = UnitErrorKind::MissingUnit { known: KNOWN };
        return Err(UnitError::new(text, number.unit_at, kind));
    }
    parse_duration_ns_in(text, TimeUnit::Nanoseconds)
}

/// Reads a time as [`parse_duration_ns`] does, where a number without a unit is meant in `unit`
/// (fio's `runtime=30` is seconds, its `thinktime=100` microseconds).
///
/// # Errors
/// [`UnitError`] with the position of the first byte that is wrong.
pub fn parse_duration_ns_in(text: &str, unit: TimeUnit) -> Result<u64, UnitError> {
    let number = Number::parse(text)?;
    let unit = if number.unit.is_empty() {
        Some(unit)
    } else {
        TimeUnit::named(number.unit)
    };
    let unit = unit.ok_or_else(|| {
        let kind = UnitErrorKind::UnknownUnit {
            unit: number.unit.to_owned(),
            known: KNOWN,
        };
        UnitError::new(text, number.unit_at, kind)
    })?;
    number.times(text, unit.ns(), "nanoseconds")
}

/// Writes a time with the longest unit that loses nothing, so that [`parse_duration_ns`] reads it
/// back: `10us`, `1500ms`, `1h`.
pub fn duration_exact(ns: u64) -> String {
    let fits = |unit: &&TimeUnit| ns.is_multiple_of(unit.ns());
    match TimeUnit::ALL.iter().find(fits) {
        Some(unit) if ns > 0 => format!("{}{}", ns / unit.ns(), unit.suffix()),
        _ => "0".to_owned(),
    }
}

/// Writes a time for people, with three digits: `0.84 ns`, `5.02 us`, `28.4 ms`, `90 s`. What is
/// not a finite number is written as such.
pub fn duration_human(ns: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let sign = if ns < 0.0 { "-" } else { "" };
    let length = ns.abs();
    // 999.5 would print as 1000.
    let unit = UNITS
        .iter()
        .find(|(_, unit)| length < 999.5 * unit)
        .unwrap_or(&UNITS[3]);
    format!("{sign}{} {}", three_digits(length / unit.1), unit.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_as_users_write_them() {
        for (text, ns) in [
            ("0", 0),
            ("1ns", 1),
            ("10us", 10_000),
            ("10 µs", 10_000),
            ("10\u{3bc}s", 10_000),
            ("1ms", 1_000_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1D", 86_400_000_000_000),
            ("100usec", 100_000),
        ] {
            assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
        }
        assert_eq!(
            parse_duration_ns_in("30", TimeUnit::Seconds),
            Ok(30_000_000_000)
        );
        assert_eq!(
            parse_duration_ns_in("30ms", TimeUnit::Seconds),
            Ok(30_000_000)
        );
    }

    #[test]
    fn a_bad_time_is_refused_at_its_byte() {
        for (text, at, message) in [
            (
                "5",
                1,
                "a unit is missing; known are ns, us, ms, s, m, h, d",
            ),
            ("5 parsecs", 2, "unknown unit `parsecs`"),
            ("0.5ns", 0, "not a whole number of nanoseconds"),
            ("ms", 0, "must begin with a digit"),
            ("300000d", 0, "too large"),
        ] {
            let error = parse_duration_ns(text).unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn times_are_written_with_three_digits() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (0.84, "0.84 ns"),
            (5020.65, "5.02 us"),
            (999.4, "999 ns"),
            (999.6, "1 us"),
            (28_436_273.3, "28.4 ms"),
            (-304.0, "-304 ns"),
            (9e10, "90 s"),
            (8.64e13, "86400 s"),
            (f64::NAN, "NaN s"),
            (f64::INFINITY, "inf s"),
        ] {
            assert_eq!(duration_human(ns), text);
        }
        assert_eq!(duration_exact(1_500_000_000), "1500ms");
        assert_eq!(
            (duration_exact(0), duration_exact(7_200_000_000_000)),
            ("0".into(), "2h".into())
        );
    }

    proptest! {
        #[test]
        fn an_exact_time_reads_back_as_itself(ns: u64, unit in 0_usize..7) {
            let ns = ns - ns % TimeUnit::ALL[unit].ns();
            prop_assert_eq!(parse_duration_ns(&duration_exact(ns)), Ok(ns));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text: String) {
            if let Err(error) = parse_duration_ns(&text) {
                prop_assert!(error.at <= text.len());
            }
        }
    }
}
