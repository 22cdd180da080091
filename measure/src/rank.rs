//! The Mann-Whitney (Wilcoxon rank sum) test and the shift that goes with it: two independent
//! samples compared without the assumption of normal distributions, so that one stray value cannot
//! make or hide a difference.
//!
//! Sources: Mann and Whitney, *On a test of whether one of two random variables is stochastically
//! larger than the other*, Ann. Math. Statist. 18 (1947); Hollander and Wolfe, *Nonparametric
//! Statistical Methods*, sections 4.1 (ties, large samples) and 4.2 to 4.3 (Hodges and Lehmann's
//! estimate and its interval, Ann. Math. Statist. 34 (1963)). The exact distribution counts the
//! subsets of the ranks by their sums, with mid-ranks for ties: Streitberg and Roehmel, *Exact
//! distributions for permutation and rank tests*, Statistical Software Newsletter 12 (1986).

use serde::{Deserialize, Serialize};

use crate::distributions::{normal_cdf, normal_quantile};
use crate::error::{Error, require_confidence, require_count, require_finite};
use crate::interval::Interval;

/// Up to so many values together the distribution is exact: all subsets are counted, and their
/// number still is a whole number in an `f64`. Beyond it is the normal one, with corrections for
/// ties and continuity.
pub(crate) const EXACT_VALUES_MAX: usize = 50;

const WHAT: &str = "the Mann-Whitney test";

/// The outcome of a Mann-Whitney test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankTest {
    /// The number of pairs (one value of each sample) in which the changed one is larger; a tie
    /// counts one half.
    pub u: f64,
    /// `u` as a share of all pairs: how often a value of the changed sample is the larger one.
    pub superiority: f64,
    /// The two-sided probability of a `u` at least this far from the middle if both samples came
    /// from one distribution.
    pub p_value: f64,
    /// Whether that probability is exact.
    pub exact: bool,
    /// Hodges and Lehmann's shift: the median of all differences `changed - base`.
    pub shift: f64,
    /// The interval of the shift; none when the samples are too small for the confidence. With
    /// ties it is wider than it must be.
    pub interval: Option<Interval>,
}

/// Compares two independent samples by their ranks.
///
/// # Errors
/// [`Error::TooFew`] when a sample has fewer than 2 values, [`Error::NotFinite`],
/// [`Error::ZeroVariance`] when all values are equal, [`Error::OutOfRange`] for the confidence.
pub fn mann_whitney(base: &[f64], changed: &[f64], confidence: f64) -> Result<RankTest, Error> {
    require_confidence(confidence)?;
    for sample in [base, changed] {
        require_count(WHAT, 2, sample.len() as u64)?;
        require_finite(WHAT, sample)?;
    }
    if base.iter().chain(changed).all(|value| *value == base[0]) {
        let value = 0.0;
        return Err(Error::ZeroVariance { what: WHAT, value });
    }
    let ranks = Ranks::of(base, changed);
    let (n, m) = (base.len(), changed.len());
    let pairs = n as f64 * m as f64;
    // The sum of m ranks is at least 1 + ... + m, and each pair won adds one.
    let u = ranks.doubled_sum as f64 / 2.0 - m as f64 * (m as f64 + 1.0) / 2.0;
    let exact = n + m <= EXACT_VALUES_MAX;
    let p_value = if exact {
        ranks.exact_p(m)
    } else {
        let centred = ((u - pairs / 2.0).abs() - 0.5).max(0.0);
        (2.0 * normal_cdf(-centred / ranks.standard_deviation(n, m))).min(1.0)
    };
    let differences = Differences::new(base, changed);
    let beyond = pairs_beyond(n, m, confidence);
    let interval = (beyond > 0).then(|| Interval {
        estimate: differences.median(),
        low: differences.smallest(beyond),
        high: differences.smallest(n as u64 * m as u64 + 1 - beyond),
        confidence,
    });
    Ok(RankTest {
        u,
        superiority: u / pairs,
        p_value,
        exact,
        shift: differences.median(),
        interval,
    })
}

/// Mid-ranks of two samples put together, times two so that they are whole numbers.
struct Ranks {
    doubled: Vec<u64>,
    /// The sum of those of the changed sample.
    doubled_sum: u64,
    /// The sizes of the groups of equal values.
    ties: Vec<u64>,
}

impl Ranks {
    fn of(base: &[f64], changed: &[f64]) -> Self {
        let base = base.iter().map(|value| (*value, false));
        let mut all: Vec<(f64, bool)> = base
            .chain(changed.iter().map(|value| (*value, true)))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut doubled, mut doubled_sum, mut ties) = (Vec::new(), 0, Vec::new());
        // Groups by equality, so that the two zeros are one value.
        for group in all.chunk_by(|a, b| a.0 == b.0) {
            let (first, size) = (doubled.len() as u64 + 1, group.len() as u64);
            let rank = 2 * first + size - 1;
            doubled.extend(group.iter().map(|_| rank));
            doubled_sum += rank * group.iter().filter(|value| value.1).count() as u64;
            ties.push(size);
        }
        Self {
            doubled,
            doubled_sum,
            ties,
        }
    }

    /// The share of all choices of `m` ranks whose sum is at least as far from the expected one.
    fn exact_p(&self, m: usize) -> f64 {
        let counts = subsets_by_sum(&self.doubled, m);
        let expected = m as u64 * (self.doubled.len() as u64 + 1);
        let far = self.doubled_sum.abs_diff(expected);
        let (mut beyond, mut all) = (0.0, 0.0);
        for (sum, count) in counts.iter().enumerate() {
            all += count;
            if (sum as u64).abs_diff(expected) >= far {
                beyond += count;
            }
        }
        beyond / all
    }

    /// The standard deviation of U, with the correction for ties (Hollander and Wolfe, 4.13).
    fn standard_deviation(&self, n: usize, m: usize) -> f64 {
        let (n, m) = (n as f64, m as f64);
        let all = n + m;
        let cubes = |size: &u64| (*size as f64).powi(3) - *size as f64;
        let ties: f64 = self.ties.iter().map(cubes).sum();
        (n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)))).sqrt()
    }
}

/// For each sum: how many choices of `size` of these numbers have it.
fn subsets_by_sum(numbers: &[u64], size: usize) -> Vec<f64> {
    let total: u64 = numbers.iter().sum();
    let mut counts = vec![vec![0.0; total as usize + 1]; size + 1];
    counts[0][0] = 1.0;
    for number in numbers {
        let step = *number as usize;
        for chosen in (1..=size).rev() {
            let (fewer, more) = counts.split_at_mut(chosen);
            let (from, to) = (&fewer[chosen - 1], &mut more[0]);
            for sum in step..to.len() {
                to[sum] += from[sum - step];
            }
        }
    }
    counts.swap_remove(size)
}

/// How many of the smallest and of the largest differences the interval may leave out, plus one; 0
/// when there are too few for the confidence.
fn pairs_beyond(n: usize, m: usize, confidence: f64) -> u64 {
    let tail = (1.0 - confidence) / 2.0;
    let (all, pairs) = ((n + m) as f64, n as f64 * m as f64);
    if n + m > EXACT_VALUES_MAX {
        let deviation = (pairs * (all + 1.0) / 12.0).sqrt();
        let below = pairs / 2.0 + normal_quantile(tail) * deviation;
        return below.max(0.0) as u64;
    }
    let ranks: Vec<u64> = (1..=(n + m) as u64).collect();
    let counts = subsets_by_sum(&ranks, m);
    let all: f64 = counts.iter().sum();
    let least = m * (m + 1) / 2;
    let mut below = 0.0;
    let inside = counts.iter().skip(least).position(|count| {
        below += count;
        below > tail * all
    });
    inside.unwrap_or(0) as u64
}

/// All differences between a value of one sample and a value of the other, never written down:
/// there may be more of them than memory holds.
struct Differences {
    base: Vec<f64>,
    changed: Vec<f64>,
}

impl Differences {
    fn new(base: &[f64], changed: &[f64]) -> Self {
        let sorted = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        Self {
            base: sorted(base),
            changed: sorted(changed),
        }
    }

    /// How many differences are at most `limit`, in one walk through both samples.
    fn at_most(&self, limit: f64) -> u64 {
        let (mut count, mut from) = (0, 0);
        for changed in &self.changed {
            // A larger value needs a larger one below it, so that the walk never goes back.
            while from < self.base.len() && changed - self.base[from] > limit {
                from += 1;
            }
            count += (self.base.len() - from) as u64;
        }
        count
    }

    /// The `rank`-th smallest difference, from 1: halving over all numbers in their order.
    fn smallest(&self, rank: u64) -> f64 {
        let (mut low, mut high) = (ordered(f64::NEG_INFINITY), ordered(f64::INFINITY));
        while low < high {
            let middle = low.midpoint(high);
            if self.at_most(from_ordered(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        from_ordered(low)
    }

    fn median(&self) -> f64 {
        let pairs = self.base.len() as u64 * self.changed.len() as u64;
        let (low, high) = (pairs.div_ceil(2), pairs / 2 + 1);
        self.smallest(low).midpoint(self.smallest(high))
    }
}

/// The position of a number among all numbers, so that halving between two of them is exact.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

fn from_ordered(position: u64) -> f64 {
    let bits = if position >> 63 == 1 {
        position & !(1 << 63)
    } else {
        !position
    };
    f64::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to choose which values belong to the changed sample.
    fn brute_force_p(base: &[f64], changed: &[f64]) -> f64 {
        let all = [base, changed].concat();
        let pairs_won = |chosen: u32| {
            let inside = |index: &usize| chosen >> index & 1 == 1;
            let (changed, base): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(inside);
            let won = changed
                .iter()
                .flat_map(|c| base.iter().map(move |b| (c, b)));
            won.map(|(c, b)| match all[*c].total_cmp(&all[*b]) {
                std::cmp::Ordering::Greater => 2,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Less => 0,
            })
            .sum::<i64>()
        };
        let middle = (base.len() * changed.len()) as i64;
        let observed = ((1 << changed.len()) - 1) << base.len();
        let far = (pairs_won(observed) - middle).abs();
        let choices = (0..1_u32 << all.len()).filter(|c| c.count_ones() as usize == changed.len());
        let (mut beyond, mut count) = (0.0, 0.0);
        for chosen in choices {
            count += 1.0;
            beyond += f64::from(u8::from((pairs_won(chosen) - middle).abs() >= far));
        }
        beyond / count
    }

    #[test]
    fn the_exact_probability_is_that_of_counting_every_choice() {
        let mut random = fastrand::Rng::with_seed(1947);
        for round in 0..30 {
            // Every third sample has many ties.
            let ties = if round % 3 == 0 { 4 } else { 1000 };
            let (n, m) = (random.usize(2..8), random.usize(2..8));
            let mut sample =
                |size| -> Vec<f64> { (0..size).map(|_| f64::from(random.u32(0..ties))).collect() };
            let (base, changed) = (sample(n), sample(m));
            let Ok(test) = mann_whitney(&base, &changed, 0.95) else { continue };
            let expected = brute_force_p(&base, &changed);
            assert!(
                (test.p_value - expected).abs() < 1e-12,
                "{base:?} {changed:?}"
            );
        }
    }

    #[test]
    fn the_shift_and_its_interval_are_those_of_all_sorted_differences() {
        let mut random = fastrand::Rng::with_seed(1963);
        for size in [3, 6, 20, 40] {
            let mut sample = || -> Vec<f64> {
                (0..size)
                    .map(|_| f64::from(random.i32(-50..50)) / 8.0)
                    .collect()
            };
            let (base, changed) = (sample(), sample());
            let test = mann_whitney(&base, &changed, 0.95).unwrap();
            let mut all: Vec<f64> = changed
                .iter()
                .flat_map(|c| base.iter().map(move |b| c - b))
                .collect();
            all.sort_by(f64::total_cmp);
            let middle = (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0;
            assert_eq!(test.shift, middle);
            let Some(interval) = test.interval else {
                assert_eq!(size, 3, "three values against three prove nothing at 95 %");
                continue;
            };
            let beyond = pairs_beyond(size, size, 0.95) as usize;
            assert_eq!(interval.low, all[beyond - 1]);
            assert_eq!(interval.high, all[all.len() - beyond]);
        }
    }

    #[test]
    fn what_has_no_ranks_is_refused() {
        assert!(matches!(
            mann_whitney(&[1.0; 5], &[1.0; 5], 0.95),
            Err(Error::ZeroVariance { .. })
        ));
        assert!(matches!(
            mann_whitney(&[1.0], &[1.0, 2.0], 0.95),
            Err(Error::TooFew { .. })
        ));
        assert!(matches!(
            mann_whitney(&[1.0, f64::NAN], &[1.0, 2.0], 0.95),
            Err(Error::NotFinite { .. })
        ));
        assert!(mann_whitney(&[1.0, 3.0], &[1.0, 2.0], 1.0).is_err());
    }

    #[test]
    fn a_stray_value_moves_the_mean_but_not_the_shift() {
        let base: Vec<f64> = (0..20).map(f64::from).collect();
        let mut changed: Vec<f64> = base.iter().map(|value| value + 10.25).collect();
        changed[3] = -1e9;
        let test = mann_whitney(&base, &changed, 0.95).unwrap();
        let interval = test.interval.unwrap();
        assert!(interval.low > 0.0 && interval.contains(10.25) && test.p_value < 0.01);
        assert!(crate::summary::mean(&changed).unwrap() < 0.0);
    }
}
