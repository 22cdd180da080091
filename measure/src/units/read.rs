//! The grammar of sizes, rates, times, percentages and counts, the only one of the project: class
//! options, stack settings, arguments of commands and fio's options are all read here.
//!
//! ```text
//! VALUE  = NUMBER [blanks] UNIT
//! NUMBER = digits | digits "." digits | "0x" hexadecimal digits
//! ```
//!
//! Units are of either case. All values are exact: what the smallest unit cannot hold is an error,
//! never rounded. A hexadecimal number ends at the first character that is no such digit, so
//! `0x1b` is 27 and `0x10k` is 16384.

use super::duration::TimeUnit;
use super::error::UnitError;
use super::number::Decimal;
use super::size::{SUFFIXES, Size};

/// Bytes of a sector where no device says how large its sectors are.
pub const SECTOR_BYTES: u64 = 512;

const fn form(what: &'static str, help: &'static str) -> UnitError {
    UnitError::Form { what, help }
}

const SIZE: UnitError = form(
    "a size",
    "a number with k, m, g, t, p, e (powers of 1024) or s (sectors): 512, 4k, 1.5g, 8s",
);
const FIO_SIZE: UnitError = form(
    "a size",
    "a number with k, m, g, t, p, e (powers of 1024) or kib, mib, ... (of 1000): 512, 4k",
);
const SHARE: UnitError = form(
    "a size or a percentage",
    "bytes as in 512, 4k, 1.5g, or a share of the whole from 0% to 100%",
);
const RATE: UnitError = form("a rate", "a size a second: 57m/s, 1.5g/s");
const DURATION: UnitError = form(
    "a duration",
    "a number with ns, us, ms, s, m, h or d: 250us, 0.5s, 5m, 24h",
);
const PROBABILITY: UnitError = form("a probability", "from 0 to 1, or from 0% to 100%: 0.05, 5%");
const PERCENT: UnitError = form(
    "a percentage",
    "from 0 to 100, with or without a percent sign: 95, 99.5%",
);
const NUMBER: UnitError = form(
    "a whole number",
    "in decimal, or in hexadecimal with 0x: 42, 0x2a",
);
const TRUTH: UnitError = form("yes or no", "1, yes, true, on or 0, no, false, off");

/// The meaning of the units of sizes in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeUnits {
    /// Bytes of the unit `s`; `None`: there is no such unit.
    sector_bytes: Option<u64>,
    /// Bytes of the unit `kib`.
    kib_bytes: u64,
}

impl SizeUnits {
    /// `k`, `ki` and `kib` are 1024 bytes, `s` counts sectors of 512.
    pub const USUAL: Self = Self::with_sectors_of(SECTOR_BYTES);
    /// fio's: `k`, `kb` and `ki` are 1024 bytes and `kib` 1000 (its `kb_base=1024`), the reverse of
    /// IEC 80000-13, so that a job file means here what it means to fio; there are no sectors.
    pub const FIO: Self = Self {
        sector_bytes: None,
        kib_bytes: 1000,
    };

    /// The usual units, with sectors of a device.
    pub const fn with_sectors_of(sector_bytes: u64) -> Self {
        Self {
            sector_bytes: Some(sector_bytes),
            kib_bytes: 1024,
        }
    }

    /// Bytes of a unit, given in lower case.
    fn bytes(self, unit: &str) -> Option<u64> {
        let Some(first) = unit.chars().next() else {
            return Some(1);
        };
        let step = match &unit[first.len_utf8()..] {
            "" if first == 'b' => return Some(1),
            "" if first == 's' => return self.sector_bytes,
            "" | "b" | "i" => 1024,
            "ib" => self.kib_bytes,
            _ => return None,
        };
        let power = SUFFIXES.iter().position(|suffix| *suffix == first)?;
        Some(step.pow(power as u32 + 1))
    }

    const fn refusal(self) -> UnitError {
        if self.sector_bytes.is_some() {
            SIZE
        } else {
            FIO_SIZE
        }
    }
}

/// Bytes from `512`, `4k`, `1.5g`, `8s`. A bare number counts bytes; the letters k, m, g, t, p, e
/// are powers of 1024, also with `b` behind them. `units` defines `kib` and `s`.
///
/// # Errors
/// Not a number with such a unit, more than 2^64 - 1 bytes, or a fraction of a byte.
pub fn size_bytes(text: &str, units: SizeUnits) -> Result<u64, UnitError> {
    let (number, unit) = Decimal::read(text).ok_or(units.refusal())?;
    let factor = units.bytes(&unit.to_ascii_lowercase());
    number.times(factor.ok_or(units.refusal())?, "bytes")
}

/// A size as [`size_bytes`] reads it, or a share of something known later, as in `50%`.
///
/// # Errors
/// Neither of both, or a share of more than 100 %.
pub fn size_or_percent(text: &str, units: SizeUnits) -> Result<Size, UnitError> {
    if text.trim_end().ends_with('%') {
        return percent(text).map(Size::Percent).map_err(|_| SHARE);
    }
    let bytes = size_bytes(text, units).map(Size::Bytes);
    bytes.map_err(|error| match error {
        UnitError::Form { .. } => SHARE,
        other => other,
    })
}

/// Bytes a second from `57m/s`: a size followed by `/s`.
///
/// # Errors
/// As [`size_bytes`], or `/s` is missing.
pub fn rate_bytes_per_second(text: &str) -> Result<u64, UnitError> {
    let size = text.trim_end().strip_suffix("/s").ok_or(RATE)?;
    size_bytes(size, SizeUnits::USUAL).map_err(|error| if error == SIZE { RATE } else { error })
}

/// Nanoseconds from `250us`, `0.5s`, `5m`, `24h`; a bare number counts `bare` units.
///
/// # Errors
/// Not a number with such a unit, more than 2^64 - 1 ns (584 years), or a fraction of a nanosecond.
pub fn duration_ns(text: &str, bare: TimeUnit) -> Result<u64, UnitError> {
    let (number, unit) = Decimal::read(text).ok_or(DURATION)?;
    let unit = match unit {
        "" => bare,
        unit => TimeUnit::named(unit).ok_or(DURATION)?,
    };
    number.times(unit.ns(), "nanoseconds")
}

/// A percentage from `95`, `95%` or `99.5%`, from 0 to 100.
///
/// # Errors
/// Not a number, another unit, or more than 100.
pub fn percent(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = Decimal::read(text).ok_or(PERCENT)?;
    let value = number.value().ok_or(PERCENT)?;
    match unit {
        "" | "%" if value <= 100.0 => Ok(value),
        _ => Err(PERCENT),
    }
}

/// A probability from `0.05` or `5%`: without a unit from 0 to 1.
///
/// # Errors
/// Not a number, or outside 0 to 1.
pub fn probability(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = Decimal::read(text).ok_or(PROBABILITY)?;
    let value = number.value().ok_or(PROBABILITY)?;
    let value = match unit {
        "" => value,
        "%" => value / 100.0,
        _ => return Err(PROBABILITY),
    };
    if value <= 1.0 {
        Ok(value)
    } else {
        Err(PROBABILITY)
    }
}

/// A whole number from `42` or `0x2a`.
///
/// # Errors
/// Not such a number, or more than 2^64 - 1.
pub fn whole_number(text: &str) -> Result<u64, UnitError> {
    match Decimal::read(text) {
        Some((number, "")) if !text.contains('.') => number.times(1, "units"),
        _ => Err(NUMBER),
    }
}

/// Yes from `1`, `yes`, `true`, `on`; no from `0`, `no`, `false`, `off`.
///
/// # Errors
/// Any other word.
pub fn truth(text: &str) -> Result<bool, UnitError> {
    match text.trim() {
        "1" | "yes" | "true" | "on" => Ok(true),
        "0" | "no" | "false" | "off" => Ok(false),
        _ => Err(TRUTH),
    }
}

#[cfg(test)]
mod tests;
