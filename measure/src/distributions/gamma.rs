//! The logarithm of the gamma function, by Stirling's series.

use std::f64::consts::PI;

/// From here on seven terms of the series are exact to the last bit.
pub(super) const SERIES_FROM: f64 = 15.0;

/// The natural logarithm of the gamma function of `x`, for `x > 0`; else NaN.
///
/// Small arguments climb by the recurrence `gamma(x + 1) = x gamma(x)` to where Stirling's series
/// (DLMF 5.11.1) converges.
pub fn ln_gamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    if x.is_infinite() {
        return f64::INFINITY;
    }
    let (mut x, mut product) = (x, 1.0);
    while x < SERIES_FROM {
        product *= x;
        x += 1.0;
    }
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + stirling_rest(x) - product.ln()
}

/// The sum in Stirling's series, `B(2k) / (2k (2k - 1) x^(2k - 1))` for k from 1 to 7.
pub(super) fn stirling_rest(x: f64) -> f64 {
    const TERMS: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let inverse_square = 1.0 / (x * x);
    TERMS
        .iter()
        .rev()
        .fold(0.0, |sum, term| sum * inverse_square + term)
        / x
}
