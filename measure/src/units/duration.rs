//! Times, kept in nanoseconds.

use super::size::{short_digits, three_digits};

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it; a day has 86,400 s")]
pub enum TimeUnit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
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

    /// The length of one unit, ns.
    pub const fn ns(self) -> u64 {
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

    /// The plural, for messages and help: `seconds`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Microseconds => "microseconds",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
            Self::Days => "days",
        }
    }

    /// fio's spellings (`nsec`, `usec`, `msec`, `sec`) and the usual ones, of either case.
    pub(super) fn named(unit: &str) -> Option<Self> {
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

/// Writes a time with the longest unit that loses nothing, so that
/// [`duration_ns`](super::duration_ns) reads it back: `10us`, `1500ms`, `1h`.
pub fn duration_exact(ns: u64) -> String {
    let fits = |unit: &&TimeUnit| ns.is_multiple_of(unit.ns());
    match TimeUnit::ALL.iter().find(fits) {
        Some(unit) if ns > 0 => format!("{}{}", ns / unit.ns(), unit.suffix()),
        _ => "0".to_owned(),
    }
}

/// Writes a known time for people, with up to three digits: `5.02 us`, `28.4 ms`, `90 s`. A value
/// that is not finite is written as such.
pub fn duration_human(ns: f64) -> String {
    written(ns, short_digits)
}

/// Writes a measured time for people, with three digits that count, zeros included: `5.00 us`,
/// `90.0 s`. So both ends of an interval have the same precision.
pub fn duration_measured(ns: f64) -> String {
    match ns.abs() < 0.005 {
        true => "0 ns".to_owned(),
        false => written(ns, three_digits),
    }
}

fn written(ns: f64, digits: fn(f64) -> String) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    // A time that rounds to 0 has no sign.
    let sign = if ns <= -0.005 { "-" } else { "" };
    let length = ns.abs();
    // 999.5 would print as 1000.
    let unit = UNITS
        .iter()
        .find(|(_, unit)| length < 999.5 * unit)
        .unwrap_or(&UNITS[3]);
    format!("{sign}{} {}", digits(length / unit.1), unit.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (-0.01, "-0.01 ns"),
            (-0.003, "0 ns"),
            (9e10, "90 s"),
            (8.64e13, "86400 s"),
            (f64::NAN, "NaN s"),
            (f64::INFINITY, "inf s"),
        ] {
            assert_eq!(duration_human(ns), text);
        }
        for (ns, text) in [
            (0.0, "0 ns"),
            (1.0, "1.00 ns"),
            (999.6, "1.00 us"),
            (27.04, "27.0 ns"),
            (-0.003, "0 ns"),
            (9e10, "90.0 s"),
            (8.64e13, "86400 s"),
        ] {
            assert_eq!(duration_measured(ns), text);
        }
        assert_eq!(duration_exact(1_500_000_000), "1500ms");
        assert_eq!(
            (duration_exact(0), duration_exact(7_200_000_000_000)),
            ("0".into(), "2h".into())
        );
    }
}
