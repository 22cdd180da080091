//! How fio writes numbers: sizes, times, percentages, ranges, lists (fio(1), "Parameter types").
//!
//! Without a unit a size is in bytes. `k`, `m`, `g`, `t`, `p` are powers of 1024 and `ki`, `mi`,
//! ... powers of 1000: fio's own habit (`kb_base=1024`), the reverse of the standards, kept because
//! the same job file must mean the same.

/// A size, or a share of the target's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths.
    Percent(u8),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl Amount {
    /// The bytes that are meant when the whole is `whole_bytes`.
    #[must_use]
    pub fn of(self, whole_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole_bytes) * u128::from(percent) / 100) as u64,
        }
    }
}

/// Splits digits (with `0x` for hexadecimal) from what follows.
fn split_number(text: &str) -> Result<(u64, &str), String> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => (rest, 16),
        None => (text, 10),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() {
        return Err(format!("`{text}` is not a number"));
    }
    let number = u64::from_str_radix(number, radix)
        .map_err(|_| format!("`{text}` is larger than 2^64 - 1"))?;
    Ok((number, rest))
}

/// What a unit of size multiplies with.
fn size_unit(unit: &str) -> Option<u64> {
    let lower = unit.to_ascii_lowercase();
    let unit = lower.strip_suffix('b').unwrap_or(&lower);
    let (prefix, base) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, 1000_u64),
        None => (unit, 1024),
    };
    let power = match prefix {
        "" if base == 1024 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(base.pow(power))
}

/// A size in bytes: `512`, `4k`, `1g`, `0x1000`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, unit) = split_number(text)?;
    let factor = size_unit(unit.trim())
        .ok_or_else(|| format!("`{text}` ends with an unknown unit; write 512, 4k, 1m or 2g"))?;
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("`{text}` is larger than 2^64 - 1 bytes"))
}

/// A size or a percentage: `1g`, `50%`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn amount(text: &str) -> Result<Amount, String> {
    match text.trim().strip_suffix('%') {
        Some(percent) => percentage(percent).map(Amount::Percent),
        None => bytes(text).map(Amount::Bytes),
    }
}

/// A whole number from 0 to 100.
///
/// # Errors
/// What is wrong with it, in words.
pub fn percentage(text: &str) -> Result<u8, String> {
    let text = text.trim().trim_end_matches('%');
    match text.parse::<u8>() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(format!("`{text}` is not a percentage from 0 to 100")),
    }
}

/// A whole number; units of size are allowed, as in fio (`number_ios=10k`).
///
/// # Errors
/// What is wrong with it, in words.
pub fn number(text: &str) -> Result<u64, String> {
    bytes(text)
}

/// A number that fits into 32 bits.
///
/// # Errors
/// What is wrong with it, in words.
pub fn number32(text: &str) -> Result<u32, String> {
    u32::try_from(number(text)?).map_err(|_| format!("`{text}` is larger than 2^32 - 1"))
}

/// A time in nanoseconds; a number without a unit counts in `unit_ns`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn time_ns(text: &str, unit_ns: u64) -> Result<u64, String> {
    let text = text.trim();
    let (number, unit) = split_number(text)?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" => unit_ns,
        "d" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        "ns" | "nsec" => 1,
        _ => {
            return Err(format!(
                "`{text}` ends with an unknown unit; write 10s, 5m, 200ms, 10us"
            ));
        }
    };
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("`{text}` is too long a time"))
}

/// Yes or no: `1`, `0`, `true`, `false`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn truth(text: &str) -> Result<bool, String> {
    match text.trim() {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        other => Err(format!("`{other}` is neither 1 nor 0")),
    }
}

/// A number with a fraction.
///
/// # Errors
/// What is wrong with it, in words.
pub fn float(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is not a number")),
    }
}

/// A value for reads, writes and trims: `a`, `a,b` or `a,b,c`. What is not given is as the one
/// before it; an empty place keeps `current`.
///
/// # Errors
/// What is wrong with one of them, in words.
pub fn by_direction<T: Clone>(
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

/// The smallest and the largest of a range: `1k-4k`, or one number for both.
///
/// # Errors
/// What is wrong with it, in words.
pub fn range(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<(u64, u64), String> {
    let (low, high) = match text.split_once('-') {
        Some((low, high)) => (read(low)?, read(high)?),
        None => (read(text)?, read(text)?),
    };
    if low > high {
        return Err(format!("`{text}` ends before it begins"));
    }
    Ok((low, high))
}

/// Processors: `0`, `0,2`, `0-3`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn cores(text: &str) -> Result<Vec<usize>, String> {
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
    fn units_mean_what_they_mean_to_fio() {
        for (text, expected) in [
            ("512", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4ki", 4000),
            ("4KiB", 4000),
            ("1m", 1 << 20),
            ("2g", 2 << 30),
            ("0x1000", 4096),
            ("7b", 7),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "k",
            "4q",
            "-1",
            "1i",
            "99999999999999999999",
            "16777216t",
        ] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_count_in_the_unit_of_their_option() {
        let second = 1_000_000_000;
        assert_eq!(time_ns("3", second), Ok(3 * second));
        assert_eq!(time_ns("1200ms", second), Ok(1_200_000_000));
        assert_eq!(time_ns("2m", second), Ok(120 * second));
        assert_eq!(time_ns("10", 1000), Ok(10_000));
        assert!(time_ns("5 parsecs", second).is_err());
        assert!(time_ns("999999999999d", second).is_err());
    }

    #[test]
    fn a_list_fills_up_from_its_last_and_keeps_what_is_left_out() {
        let read = |text: &str| bytes(text);
        assert_eq!(by_direction("4k", &[0; 3], read), Ok([4096; 3]));
        assert_eq!(by_direction("4k,8k", &[0; 3], read), Ok([4096, 8192, 8192]));
        assert_eq!(by_direction(",8k", &[1; 3], read), Ok([1, 8192, 8192]));
        assert!(by_direction("1,2,3,4", &[0; 3], read).is_err());
        assert_eq!(range("1k-4k", bytes), Ok((1024, 4096)));
        assert!(range("4k-1k", bytes).is_err());
        assert_eq!(cores("0-2,1,5"), Ok(vec![0, 1, 2, 5]));
    }

    #[test]
    fn shares_are_of_the_whole() {
        assert_eq!(amount("50%").map(|a| a.of(10)), Ok(5));
        assert_eq!(amount("1k").map(|a| a.of(10)), Ok(1024));
        assert!(amount("101%").is_err());
    }
}
