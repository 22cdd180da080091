//! Sizes in bytes.

/// The suffixes, each 1,024 times the one before.
pub(super) const SUFFIXES: [char; 6] = ['k', 'm', 'g', 't', 'p', 'e'];

/// A size that may be a share of something known only later.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// So many per cent, 0 to 100.
    Percent(f64),
}

impl Default for Size {
    fn default() -> Self {
        Self::Bytes(0)
    }
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

/// Writes a size with the largest suffix that loses nothing, so that
/// [`size_bytes`](super::size_bytes) reads it back: `64m`, `1474560` as `1440k`, `513`.
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
    format!("{} {}", short_digits(value), UNITS[unit])
}

/// [`three_digits`] without a fraction of zeros.
pub(super) fn short_digits(value: f64) -> String {
    let text = three_digits(value);
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => text,
    }
}

/// A number below 1,024 with three digits, or four when it has as many before the point.
pub(super) fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
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
    use super::*;

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
}
