//! Fisher's F distribution.

use super::beta::incomplete_beta;

/// The probability that a ratio of two mean squares is at least `f`, when both estimate the same
/// variance: the one above from `above` degrees of freedom, the one below from `below` (DLMF 8.17;
/// NIST e-Handbook 1.3.6.6.5). NaN for a negative `f` and for degrees of freedom that are not
/// above 0.
pub fn fisher_upper_tail(f: f64, above: f64, below: f64) -> f64 {
    if !(f >= 0.0 && above > 0.0 && below > 0.0) {
        return f64::NAN;
    }
    incomplete_beta(0.5 * below, 0.5 * above, below / (below + above * f))
}
