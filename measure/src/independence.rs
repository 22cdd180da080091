//! Values that follow one another and are not independent: how many independent ones they are
//! worth.
//!
//! The mean of n values with autocorrelations r_k varies like that of n / (1 + 2 sum r_k)
//! independent ones. The sum is taken over Geyer's initial monotone sequence: pairs of neighbouring
//! lags, as long as their sum is positive, and never rising. Source: Geyer, *Practical Markov chain
//! Monte Carlo*, Statistical Science 7 (1992), section 3.3. The correlations are those of ranks, so
//! that an outlier changes none, and that of times is that of their logarithms.
//!
//! In a short series such a sum is mostly noise. So a correction is made only where the correlation
//! of neighbours is significant, one-sided at 95 %: Anderson, *Distribution of the serial
//! correlation coefficient*, Ann. Math. Statist. 13 (1942).

use crate::error::{Error, require_finite};

/// Fewer values than this say nothing about their correlation.
const VALUES_MIN: usize = 8;

/// The normal quantile of one-sided 95 %.
const Z: f64 = 1.644_853_627;

/// How many independent values a series is worth, given in the order in which it was measured: all
/// of them unless neighbours are significantly correlated; at least 1.
///
/// # Errors
/// [`Error::NotFinite`].
pub fn independent(values: &[f64]) -> Result<usize, Error> {
    require_finite("the autocorrelation", values)?;
    let n = values.len();
    if n < VALUES_MIN {
        return Ok(n);
    }
    let ranks = centred_ranks(values);
    let own = covariance(&ranks, 0);
    if own == 0.0 {
        return Ok(n);
    }
    let neighbours = covariance(&ranks, 1) / own;
    let by_chance = (Z * (n as f64 - 2.0).sqrt() - 1.0) / (n as f64 - 1.0);
    if neighbours <= by_chance {
        return Ok(n);
    }
    Ok(((n as f64 / time(&ranks, own)) as usize).clamp(1, n))
}

/// The ranks of values less their mean; equal values share the mean of their ranks.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = below as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|at| ranks[*at] = rank - mean);
        below += equal.len();
    }
    ranks
}

fn covariance(centred: &[f64], lag: usize) -> f64 {
    let later = centred.iter().skip(lag);
    centred.iter().zip(later).map(|(a, b)| a * b).sum()
}

/// `1 + 2 sum r_k` over the initial monotone sequence: how many values are worth one.
fn time(centred: &[f64], own: f64) -> f64 {
    let (mut sum, mut last) = (0.0, f64::INFINITY);
    // Beyond half of the series there are too few pairs to say anything.
    for first in (0..centred.len() / 2).step_by(2) {
        let pair = (covariance(centred, first) + covariance(centred, first + 1)) / own;
        if pair <= 0.0 {
            break;
        }
        last = pair.min(last);
        sum += last;
    }
    (2.0 * sum - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::normal_quantile;

    /// x_k = rho x_(k-1) + e.
    fn autoregressive(rho: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut value = 0.0;
        let mut next = || {
            value = rho * value + normal_quantile(random.f64().clamp(1e-12, 1.0 - 1e-12));
            value
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn a_first_order_process_is_worth_what_its_theory_says() {
        for rho in [0.3_f64, 0.5, 0.8] {
            let worth = independent(&autoregressive(rho, 20_000, 7)).unwrap();
            // Ranks of normal values with correlation r have 6 / pi asin(r / 2).
            let of_ranks = |lag| 6.0 / std::f64::consts::PI * (rho.powi(lag) / 2.0).asin();
            let expected = 1.0 + 2.0 * (1..200).map(of_ranks).sum::<f64>();
            let off = 20_000.0 / worth as f64 / expected;
            assert!((off - 1.0).abs() < 0.1, "{rho}: {worth}, off by {off}");
        }
    }

    #[test]
    fn values_without_memory_are_seldom_worth_less_than_they_are() {
        let fewer = (0..1000).filter(|seed| {
            let values = autoregressive(0.0, 40, *seed);
            independent(&values).unwrap() < 40
        });
        let fewer = fewer.count();
        assert!((20..=75).contains(&fewer), "{fewer} of 1000");
    }

    #[test]
    fn short_and_constant_series_count_in_full() {
        let rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        assert_eq!(independent(&rising).unwrap(), 7);
        assert_eq!(independent(&[3.0; 50]).unwrap(), 50);
        assert_eq!(independent(&[]).unwrap(), 0);
        assert!(independent(&[1.0, f64::NAN]).is_err());
        let outlier: Vec<f64> = (0..40).map(|at| if at == 20 { 1e9 } else { 0.0 }).collect();
        assert_eq!(independent(&outlier).unwrap(), 40);
    }
}
