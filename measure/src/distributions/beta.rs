//! The regularised incomplete beta function, by its continued fraction.

use super::gamma::{SERIES_FROM, ln_gamma, stirling_rest};

/// The fraction needs some times the square root of the larger parameter; this serves 1e8.
const TERMS_MAX: u32 = 100_000;

/// The natural logarithm of the beta function, for `a, b > 0`; else NaN.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if large < SERIES_FROM || large.is_infinite() || small.is_nan() || small <= 0.0 {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    // The two large logarithms would cancel and take the digits with them, so their difference is
    // formed from the terms of Stirling's series (DLMF 5.11.1) one by one.
    let sum = small + large;
    let difference = (large - 0.5) * (small / large).ln_1p() + small * sum.ln() - small
        + stirling_rest(sum)
        - stirling_rest(large);
    ln_gamma(small) - difference
}

/// The regularised incomplete beta function of `x` with parameters `a` and `b` (DLMF 8.17.2), for
/// `a, b > 0` and `x` within 0 to 1; else NaN.
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    incomplete_beta_with(a, b, x, 1.0 - x)
}

/// [`incomplete_beta`] for a caller that knows `y = 1 - x` without having lost its digits.
pub(super) fn incomplete_beta_with(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let parameters = a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite();
    if !parameters || !(0.0..=1.0).contains(&x) {
        return f64::NAN;
    }
    if x == 0.0 || y == 0.0 {
        return x;
    }
    // The fraction converges fast on this side of the mean only; the other is its mirror image
    // (DLMF 8.17.4).
    if x <= (a + 1.0) / (a + b + 2.0) {
        front(a, b, x, y) * fraction(a, b, x)
    } else {
        1.0 - front(b, a, y, x) * fraction(b, a, y)
    }
}

/// `x^a y^b / (a B(a, b))`.
fn front(a: f64, b: f64, x: f64, y: f64) -> f64 {
    // Near 1 the logarithm is taken of the distance, which still has all its digits.
    let ln_x = if x > 0.5 { (-y).ln_1p() } else { x.ln() };
    let ln_y = if y > 0.5 { (-x).ln_1p() } else { y.ln() };
    (a * ln_x + b * ln_y - ln_beta(a, b)).exp() / a
}

/// The continued fraction of DLMF 8.17.22, evaluated by Lentz's method as modified by Thompson and
/// Barnett (J. Comput. Phys. 64, 1986). NaN if it has not converged in the allowed terms.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    // A denominator of exactly zero is moved off zero by less than any digit that counts.
    let off_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / off_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for term in 1..=TERMS_MAX {
        let m = f64::from(term);
        let twice = 2.0 * m;
        let even = m * (b - m) * x / ((a + twice - 1.0) * (a + twice));
        d = 1.0 / off_zero(1.0 + even * d);
        c = off_zero(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + twice) * (a + twice + 1.0));
        d = 1.0 / off_zero(1.0 + odd * d);
        c = off_zero(1.0 + odd / c);
        let step = d * c;
        result *= step;
        if (step - 1.0).abs() < 2.0 * f64::EPSILON {
            return result;
        }
    }
    f64::NAN
}
