//! How fio writes numbers: sizes, times, percentages, ranges, lists (fio(1), "Parameter types").
//!
//! Sizes and times are read by the grammar of the whole project, with fio's meaning of `kib`, and
//! of a bare number; lists and ranges are fio's own.

use crate::calculate::calculate;
use std::borrow::Cow;
use ugeom_measure::units::{self, Size, SizeUnits, TimeUnit};

/// A number, calculated where it stands in parentheses: `(4k*2)`.
///
/// # Errors
/// The part that cannot be calculated.
fn calculated(text: &str) -> Result<Cow<'_, str>, String> {
    match calculate(text).filter(|_| text.trim_start().starts_with('(')) {
        Some(sum) => Ok(sum?.to_string().into()),
        None => Ok(text.into()),
    }
}

/// A size in bytes: `512`, `4k`, `1g`, `0x1000`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    units::size_bytes(&calculated(text)?, SizeUnits::FIO).map_err(|error| error.with_help())
}

/// A size or a percentage: `1g`, `50%`.
pub(crate) fn amount(text: &str) -> Result<Size, String> {
    units::size_or_percent(&calculated(text)?, SizeUnits::FIO).map_err(|error| error.with_help())
}

/// A whole number from 0 to 100.
pub(crate) fn percentage(text: &str) -> Result<u8, String> {
    match units::percent(text) {
        Ok(percent) if percent.fract() == 0.0 => Ok(percent as u8),
        _ => Err(format!("`{text}` is not a percentage from 0 to 100")),
    }
}

/// A whole number; units of size are allowed, as in fio (`number_ios=10k`).
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a whole number: 64, 10k");
    units::size_bytes(&calculated(text)?, SizeUnits::FIO).map_err(|_| wrong())
}

/// A number that fits into 32 bits.
pub(crate) fn number32(text: &str) -> Result<u32, String> {
    u32::try_from(number(text)?).map_err(|_| format!("`{text}` is larger than 2^32 - 1"))
}

/// A time in nanoseconds; a bare number counts `bare` units, which differ between options.
fn time_ns(text: &str, bare: TimeUnit) -> Result<u64, String> {
    units::duration_ns(text, bare).map_err(|error| error.with_help())
}

/// Nanoseconds, where a bare number counts seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    time_ns(text, TimeUnit::Seconds)
}

/// Nanoseconds, where a bare number counts milliseconds.
pub(crate) fn milliseconds(text: &str) -> Result<u64, String> {
    time_ns(text, TimeUnit::Milliseconds)
}

/// Nanoseconds, where a bare number counts microseconds.
pub(crate) fn microseconds(text: &str) -> Result<u64, String> {
    time_ns(text, TimeUnit::Microseconds)
}

/// Yes or no: `1`, `0`, `true`, `false`.
pub(crate) fn truth(text: &str) -> Result<bool, String> {
    units::truth(text).map_err(|error| error.with_help())
}

/// Yes or no for what fio has as a mere word: any number but 0 is yes.
pub(crate) fn nonzero(text: &str) -> Result<bool, String> {
    match text.trim().parse::<i64>() {
        Ok(number) => Ok(number != 0),
        Err(_) => truth(text),
    }
}

/// A number with a fraction.
pub(crate) fn float(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is not a number")),
    }
}

/// A value for reads, writes and trims: `a`, `a,b` or `a,b,c`. A missing value is that of the one
/// before it; an empty place keeps `current`.
///
/// # Errors
/// The reason for one of them, in words.
pub(crate) fn by_direction<T: Clone>(
    text: &str,
    current: &[T; 3],
    mut read: impl FnMut(&str) -> Result<T, String>,
) -> Result<[T; 3], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(format!(
            "`{text}` has more than three values (read,write,trim)"
        ));
    }
    let mut all = current.clone();
    for (index, value) in all.iter_mut().enumerate() {
        let part = parts[index.min(parts.len() - 1)];
        if !part.is_empty() {
            *value = read(part)?;
        }
    }
    Ok(all)
}

/// The same for numbers, whose list may have other separators than commas: fio looks for commas,
/// then for colons, then for dashes (`4k:8k` and `4k-8k` are for reads and writes).
///
/// # Errors
/// The reason for one of them, in words.
pub(crate) fn numbers_by_direction<T: Clone>(
    text: &str,
    current: &[T; 3],
    read: impl FnMut(&str) -> Result<T, String>,
) -> Result<[T; 3], String> {
    // A dash in front is a sign, which sizes do not have.
    let listed = text.trim().trim_start_matches('-').len() == text.trim().len();
    let separator = [',', ':', '-'].into_iter().find(|c| text.contains(*c));
    let separator = separator.filter(|c| listed || *c != '-');
    by_direction(&text.replace(separator.unwrap_or(','), ","), current, read)
}

/// The smallest and the largest of a range: `1k-4k`, `4k-1k`, `1k:4k`, or one number for both.
pub(crate) fn range(
    text: &str,
    read: impl Fn(&str) -> Result<u64, String>,
) -> Result<(u64, u64), String> {
    let parts = text.split_once('-').or_else(|| text.split_once(':'));
    let (one, other) = match parts {
        Some((one, other)) => (read(one)?, read(other)?),
        None => (read(text)?, read(text)?),
    };
    Ok((one.min(other), one.max(other)))
}

/// Processors: `0`, `0,2`, `0-3`.
pub(crate) fn cores(text: &str) -> Result<Vec<usize>, String> {
    const CORES_MAX: u64 = 4096;
    let mut cores = Vec::new();
    for part in text.split([',', ':']) {
        let (low, high) = range(part.trim(), number)?;
        if high >= CORES_MAX {
            return Err(format!("there is no processor {high}"));
        }
        cores.extend((low..=high).map(|core| core as usize));
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_the_units_of_fio() {
        assert_eq!((bytes("4k"), bytes("4kib")), (Ok(4096), Ok(4000)));
        let second = 1_000_000_000;
        assert_eq!(time_ns("3", TimeUnit::Seconds), Ok(3 * second));
        assert_eq!(time_ns("1200ms", TimeUnit::Seconds), Ok(1_200_000_000));
        assert_eq!(time_ns("10", TimeUnit::Microseconds), Ok(10_000));
        for wrong in ["", "4q", "-1", "99999999999999999999", "8s"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_fills_up_from_its_last_and_keeps_what_is_left_out() {
        let read = |text: &str| bytes(text);
        assert_eq!(by_direction("4k", &[0; 3], read), Ok([4096; 3]));
        assert_eq!(by_direction("4k,8k", &[0; 3], read), Ok([4096, 8192, 8192]));
        assert_eq!(by_direction(",8k", &[1; 3], read), Ok([1, 8192, 8192]));
        assert!(by_direction("1,2,3,4", &[0; 3], read).is_err());
        for list in ["1k,2k,3k", "1k:2k:3k", "1k-2k-3k"] {
            let numbers = numbers_by_direction(list, &[0; 3], read);
            assert_eq!(numbers, Ok([1024, 2048, 3072]), "{list}");
        }
        assert_eq!(range("1k-4k", bytes), Ok((1024, 4096)));
        assert_eq!(range("4k-1k", bytes), Ok((1024, 4096)));
        assert!(numbers_by_direction("-4k", &[0; 3], read).is_err());
        assert_eq!(cores("0-2,1,5"), Ok(vec![0, 1, 2, 5]));
    }

    #[test]
    fn shares_are_of_the_whole() {
        assert_eq!(amount("50%").map(|a| a.of(10)), Ok(5));
        assert_eq!(amount("1k").map(|a| a.of(10)), Ok(1024));
        assert!(amount("101%").is_err());
    }
}
