//! Numbers as text: digits that count, and intervals.

use crate::table::fixed;
use ugeom_measure::Interval;

/// A value with its interval, if it has one.
pub(super) fn in_words(value: &Interval) -> String {
    let estimate = digits(value.estimate);
    if value.half_width() == 0.0 {
        return estimate;
    }
    format!(
        "{estimate} ({} to {})",
        digits(value.low),
        digits(value.high)
    )
}

/// A number with four digits that count.
pub(super) fn digits(value: f64) -> String {
    significant(value, 4)
}

/// A number with so many digits that count.
pub(super) fn significant(value: f64, count: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = count - 1 - value.abs().log10().floor() as i32;
    if decimals >= 0 {
        return fixed(value, decimals.min(9) as usize);
    }
    let unit = 10f64.powi(-decimals);
    fixed((value / unit).round() * unit, 0)
}
