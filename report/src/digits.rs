//! Numbers as text: digits that count, and intervals.

use crate::table::fixed;
use ugeom_measure::Interval;

/// The most decimals that are written.
const DECIMALS_MAX: i32 = 9;

/// A value with its interval, if it has one: all digits before the point, and behind it those that
/// the interval leaves meaning to.
pub(super) fn in_words(value: &Interval) -> String {
    let half_width = value.half_width();
    if !(half_width > 0.0 && half_width.is_finite()) {
        return exact(value.estimate);
    }
    let least = -(half_width.log10().floor() as i32) + 1;
    let decimals = least
        .min(decimals(value.estimate, 4))
        .clamp(0, DECIMALS_MAX) as usize;
    let [estimate, low, high] =
        [value.estimate, value.low, value.high].map(|one| fixed(one, decimals));
    format!("{estimate} {}", value.ends(low, high))
}

/// A number with at least four digits that count, and none of those before the point rounded away.
pub(super) fn exact(value: f64) -> String {
    significant(value, 4)
}

/// The decimals that show so many digits that count.
fn decimals(value: f64, count: i32) -> i32 {
    match value == 0.0 || !value.is_finite() {
        true => 0,
        false => (count - 1 - value.abs().log10().floor() as i32).clamp(0, DECIMALS_MAX),
    }
}

/// A number with at least so many digits that count.
pub(super) fn significant(value: f64, count: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    fixed(value, decimals(value, count) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_digit_before_the_point_is_rounded_away() {
        assert_eq!(exact(16_384.0), "16,384");
        assert_eq!(exact(0.012_345), "0.01235");
        let words = |estimate, half| in_words(&Interval::around(estimate, half, 0.95));
        assert_eq!(words(16_384.4, 120.0), "16,384 (16,264 to 16,504)");
        assert_eq!(words(10.0, 1.0), "10.0 (9.0 to 11.0)");
        assert_eq!(words(1.94, 0.04), "1.940 (1.900 to 1.980)");
        assert_eq!(words(5.0, 0.0), "5.000");
    }
}
