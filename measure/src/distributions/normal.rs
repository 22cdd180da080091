//! The normal distribution and the error function.

use std::f64::consts::{PI, SQRT_2};

/// Above this the continued fraction of the complement is used, below it the series.
const SERIES_BELOW: f64 = 2.0;

/// The error function (DLMF 7.2.1).
pub fn erf(x: f64) -> f64 {
    if x.abs() < SERIES_BELOW {
        erf_series(x)
    } else {
        x.signum() * (1.0 - erfc_tail(x.abs()))
    }
}

/// The complementary error function, `1 - erf(x)`, without loss of digits for large `x`.
pub fn erfc(x: f64) -> f64 {
    if x.abs() < SERIES_BELOW {
        1.0 - erf_series(x)
    } else if x > 0.0 {
        erfc_tail(x)
    } else {
        2.0 - erfc_tail(-x)
    }
}

/// DLMF 7.6.2, all of whose terms have one sign: `2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1)/(2n+1)!!`.
fn erf_series(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while n < 200.0 && term.abs() > sum.abs() * f64::EPSILON / 4.0 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

/// The continued fraction of DLMF 7.9.1, from its far end; 120 terms are exact from 2 upwards.
fn erfc_tail(x: f64) -> f64 {
    let mut rest = x;
    for k in (1..=120).rev() {
        rest = x + f64::from(k) / 2.0 / rest;
    }
    (-x * x).exp() / PI.sqrt() / rest
}

/// The standard normal distribution function: the probability of a value of at most `z`.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// The standard normal density.
fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// The value that a standard normal variable stays below with probability `p`; infinite for 0 and
/// 1, NaN outside.
///
/// Abramowitz and Stegun 26.2.23 gives three digits, Halley's iteration on [`normal_cdf`] the rest.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let tail = p.min(1.0 - p);
    if tail == 0.0 {
        return if p == 0.0 {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
    }
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    // The lower tail is negative; working there keeps the digits of small probabilities.
    let mut z = above / below - t;
    for _ in 0..4 {
        let step = (normal_cdf(z) - tail) / density(z);
        if !step.is_finite() {
            break;
        }
        z -= step / (1.0 + 0.5 * z * step);
    }
    if p < 0.5 { z } else { -z }
}
