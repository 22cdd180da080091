//! Student's t distribution.

use super::beta::{incomplete_beta_with, ln_beta};
use super::normal::{normal_cdf, normal_quantile};
use crate::error::{Error, require_confidence};

/// From here on the normal approximation is exact to 4e-14 of the tail, whereas the continued
/// fraction loses ever more digits to cancellation.
const NORMAL_FROM: f64 = 1e4;

/// The probability that a Student variable with `df` degrees of freedom is at most `t`. `df` may be
/// infinite (the normal distribution); NaN unless it is above 0.
pub fn student_cdf(t: f64, df: f64) -> f64 {
    if t < 0.0 {
        upper_tail(-t, df)
    } else {
        1.0 - upper_tail(t, df)
    }
}

/// The probability that a Student variable lies at least as far from zero as `t`, on either side:
/// the two-sided p-value.
pub fn student_two_sided_p(t: f64, df: f64) -> f64 {
    2.0 * upper_tail(t.abs(), df)
}

/// The probability of more than `t`, for `t >= 0` (DLMF 8.17, Abramowitz and Stegun 26.7.1: half of
/// the incomplete beta function of `df / (df + t^2)` with parameters `df / 2` and `1 / 2`).
fn upper_tail(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if df >= NORMAL_FROM {
        return normal_cdf(-equivalent_normal(t, df));
    }
    let square = t * t / df;
    if square.is_infinite() {
        // df / (df + t^2) would be 0; the tail falls as t^-df, by the leading term of the series.
        let leading = 0.5 * df * df.ln() - df * t.ln() - ln_beta(0.5 * df, 0.5);
        return if t.is_infinite() {
            0.0
        } else {
            leading.exp() / df
        };
    }
    0.5 * incomplete_beta_with(0.5 * df, 0.5, 1.0 / (1.0 + square), square / (1.0 + square))
}

/// The normal deviate with the same tail, for many degrees of freedom: Hill, *Algorithm 395:
/// Student's t-distribution*, CACM 13 (1970), of whose series the first correction suffices here.
fn equivalent_normal(t: f64, df: f64) -> f64 {
    if t.is_infinite() || df.is_infinite() {
        return t;
    }
    let a = df - 0.5;
    // Far out the logarithm of the square is that of t, twice.
    let square = t * t / df;
    let logarithm = if square.is_finite() {
        square.ln_1p()
    } else {
        2.0 * t.ln() - df.ln()
    };
    let y = a * logarithm;
    (1.0 + (y + 3.0) / (48.0 * a * a)) * y.sqrt()
}

/// The Student density at `t`.
fn density(t: f64, df: f64) -> f64 {
    let shape = 0.5 * (df + 1.0) * (t * t / df).ln_1p();
    (-ln_beta(0.5, 0.5 * df) - 0.5 * df.ln() - shape).exp()
}

/// The value that a Student variable with `df` degrees of freedom stays below with probability `p`;
/// infinite for 0 and 1, NaN outside or unless `df` is above 0.
pub fn student_quantile(p: f64, df: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if df.is_infinite() || p == 0.0 || p == 1.0 {
        return normal_quantile(p);
    }
    if p < 0.5 {
        -upper_quantile(p, df)
    } else {
        upper_quantile(1.0 - p, df)
    }
}

/// The `t >= 0` with this upper tail (at most one half): Newton's steps inside a bracket, halved
/// when a step would leave it.
fn upper_quantile(tail: f64, df: f64) -> f64 {
    if tail >= 0.5 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, -normal_quantile(tail));
    while upper_tail(high, df) > tail {
        (low, high) = (high, high * 2.0);
        if high.is_infinite() {
            return high;
        }
    }
    let mut t = if low == 0.0 { high } else { 0.5 * (low + high) };
    for _ in 0..200 {
        let excess = upper_tail(t, df) - tail;
        if excess > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let newton = t + excess / density(t, df);
        let next = if newton > low && newton < high {
            newton
        } else {
            low + 0.5 * (high - low)
        };
        if (next - t).abs() <= 2.0 * f64::EPSILON * t {
            return next;
        }
        t = next;
    }
    t
}

/// The factor by which an interval of this confidence is wider than the standard error: the
/// two-sided critical value of Student's t, 2.101 for 95 % and 18 degrees of freedom.
///
/// # Errors
/// [`Error::OutOfRange`] unless the confidence lies strictly between 0 and 1 and `df` above 0.
pub fn student_critical(confidence: f64, df: f64) -> Result<f64, Error> {
    require_confidence(confidence)?;
    if df.is_nan() || df <= 0.0 {
        return Err(Error::OutOfRange {
            what: "the degrees of freedom",
            value: df,
            rule: "above 0",
        });
    }
    Ok(-student_quantile(0.5 * (1.0 - confidence), df))
}
