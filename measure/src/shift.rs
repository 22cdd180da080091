//! Change points of a series, such as the results of one commit after another: where it moved to
//! another level, and by how much.
//!
//! Two questions, two methods:
//! - [`scan`] looks at a whole saved series once: the largest t over all splits, judged by
//!   permutations, which keep the stated rate of false alarms for any distribution of independent
//!   values. Its segments are scanned in turn.
//! - [`alarm`] looks at the end of a series after each new value, in CI. It rings easily, because
//!   what it finds is measured again before it counts ([`confirm`]): no method on saved values
//!   alone finds a step of 5 % at noise of 2 % within 5 values in 95 of 100 cases and rings falsely
//!   in at most 5 of 100 series of 50.
//!
//! Both work on logarithms, so that a step is a ratio. Autocorrelated series ring more often.
//!
//! Sources: Matteson and James, *A nonparametric approach for multiple change point analysis*, JASA
//! 109 (2014), for permutations and segments; Siegmund and Venkatraman, *Using the generalized
//! likelihood ratio statistic for sequential detection of a change-point*, Ann. Statist. 23 (1995).

use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::rank::mann_whitney;

/// A change shows only with so many values on each side of a split.
pub(crate) const SEGMENT_MIN: usize = 5;

/// A place with fewer values on a side must separate them better by this factor: a single outlier
/// at the end seldom does.
const BEYOND: f64 = 2.0;

/// So many permutations stand for all of them.
pub const PERMUTATIONS: usize = 999;

/// The rate of false alarms of one look at a series that does not change.
pub const ALPHA: f64 = 0.05;

/// More values than this at the end of a series are not scanned: older ones are left out.
pub const VALUES_MAX: usize = 2000;

/// A series moved to another level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// The index of the first value on the new level.
    pub at: usize,
    /// p value of the permutation test: how often shuffled values show a step as large.
    pub p_value: f64,
    /// The new level over the old one, with its 95 % interval (Hodges and Lehmann, of the values of
    /// both segments); none where there are too few values for one.
    pub ratio: Option<Interval>,
    /// The same as a number.
    pub estimate: f64,
}

/// All change points of a series of values above 0, in order. `alpha` is the rate of false alarms
/// of a series that does not change; `seed` that of the permutations.
pub fn scan(values: &[f64], alpha: f64, seed: u64) -> Vec<ChangePoint> {
    let skipped = values.len().saturating_sub(VALUES_MAX);
    let Some(logs) = logarithms(&values[skipped..]) else { return Vec::new() };
    let mut random = fastrand::Rng::with_seed(seed);
    let mut found = Vec::new();
    segment(&logs, 0, alpha, &mut random, &mut found);
    found.sort_by_key(|one: &(usize, f64)| one.0);
    let mut ends: Vec<usize> = found.iter().map(|one| one.0).collect();
    ends.push(logs.len());
    let mut begin = 0;
    let mut points = Vec::new();
    for (number, (at, p_value)) in found.iter().enumerate() {
        let (old, new) = (&logs[begin..*at], &logs[*at..ends[number + 1]]);
        points.push(ChangePoint {
            at: at + skipped,
            p_value: *p_value,
            ratio: step(old, new),
            estimate: (middle(new) - middle(old)).exp(),
        });
        begin = *at;
    }
    points
}

/// Finds the strongest split of a segment, then those of both halves.
fn segment(
    logs: &[f64],
    offset: usize,
    alpha: f64,
    random: &mut fastrand::Rng,
    found: &mut Vec<(usize, f64)>,
) {
    let Some((at, statistic)) = strongest(logs, SEGMENT_MIN) else { return };
    let mut shuffled = logs.to_vec();
    let mut as_strong = 0_usize;
    // Once the rate is exceeded, the rest of the permutations cannot bring it back.
    let most = (alpha * (PERMUTATIONS + 1) as f64) as usize;
    for _ in 0..PERMUTATIONS {
        random.shuffle(&mut shuffled);
        let by_chance = strongest(&shuffled, SEGMENT_MIN).is_some_and(|one| one.1 >= statistic);
        as_strong += usize::from(by_chance);
        if as_strong > most {
            return;
        }
    }
    let p_value = (as_strong + 1) as f64 / (PERMUTATIONS + 1) as f64;
    if p_value > alpha {
        return;
    }
    // At the border of what is judged, the true place may lie nearer to the end.
    let at = match at == SEGMENT_MIN || at == logs.len() - SEGMENT_MIN {
        true => strongest(logs, 1)
            .filter(|one| one.1 > BEYOND * statistic)
            .map_or(at, |one| one.0),
        false => at,
    };
    found.push((offset + at, p_value));
    // Both halves together have the rate of the whole.
    segment(&logs[..at], offset, alpha / 2.0, random, found);
    segment(&logs[at..], offset + at, alpha / 2.0, random, found);
}

/// The split with the largest t of a difference of means, and its square as a share: the sum of
/// squares between the parts over that within. Each part has at least `part_min` values.
fn strongest(logs: &[f64], part_min: usize) -> Option<(usize, f64)> {
    let n = logs.len();
    if n < 2 * part_min {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / n as f64;
    let all: f64 = logs.iter().map(|value| (value - mean).powi(2)).sum();
    let mut left = 0.0;
    let mut best = None;
    for (at, value) in logs.iter().enumerate() {
        if at >= part_min && n - at >= part_min {
            let (k, rest) = (at as f64, (n - at) as f64);
            // `left` is a sum of deviations, and that of the right part its opposite.
            let between = left * left * (1.0 / k + 1.0 / rest);
            let within = (all - between).max(f64::MIN_POSITIVE);
            let statistic = between / within;
            if best.is_none_or(|(_, most)| statistic > most) {
                best = Some((at, statistic));
            }
        }
        left += value - mean;
    }
    best.filter(|one| one.1 > 0.0)
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    logs.iter().all(|log| log.is_finite()).then_some(logs)
}

fn middle(logs: &[f64]) -> f64 {
    crate::summary::median(logs).unwrap_or(0.0)
}

/// The ratio of two levels.
fn step(old: &[f64], new: &[f64]) -> Option<Interval> {
    Some(ratio(mann_whitney(old, new, 0.95).ok()?.interval?))
}

/// A shift of logarithms as a ratio.
fn ratio(shift: Interval) -> Interval {
    Interval {
        estimate: shift.estimate.exp(),
        low: shift.low.exp(),
        high: shift.high.exp(),
        ..shift
    }
}

/// The values at the end of a series that may be a new level.
pub(crate) const LAST_MAX: usize = 10;

/// The values before them that the level and the noise are estimated from.
pub(crate) const BASELINE_MAX: usize = 30;

/// Fewer of those say nothing.
pub const BASELINE_MIN: usize = 8;

/// An alarm rings from here on, in standard deviations.
pub(crate) const ALARM_Z: f64 = 2.4;

/// Noise below this is the rounding of logarithms.
const ROUNDING: f64 = 1e-12;

/// The end of a series may have moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// The index of the first value on the new level.
    pub at: usize,
    /// How far it moved, in standard deviations; above 0 for larger values.
    pub z: f64,
    /// The new level over the old one.
    pub ratio: f64,
    /// The index of the value to measure again beside the last one: the newest that is older than
    /// any place where the change may be, since `at` may be wrong by some values.
    pub before: usize,
}

/// Whether the last 1 to [`LAST_MAX`] values lie on another level than those before: the
/// generalized likelihood ratio, with the standard deviation of the values before. None where they
/// do not, or where too few values are before.
pub fn alarm(values: &[f64]) -> Option<Alarm> {
    let logs = logarithms(values)?;
    let mut best: Option<Alarm> = None;
    for last in 1..=LAST_MAX {
        let Some(at) = logs.len().checked_sub(last) else { break };
        let old = &logs[at.saturating_sub(BASELINE_MAX)..at];
        if old.len() < BASELINE_MIN {
            break;
        }
        let n = old.len() as f64;
        let mean = old.iter().sum::<f64>() / n;
        let variance = old.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let difference = logs[at..].iter().sum::<f64>() / last as f64 - mean;
        let error = (variance * (1.0 / n + 1.0 / last as f64)).sqrt();
        let z = difference / error.max(ROUNDING);
        if best.is_none_or(|best| z.abs() > best.z.abs()) {
            let ratio = difference.exp();
            let before = (logs.len() - 1).saturating_sub(LAST_MAX);
            best = Some(Alarm {
                at,
                z,
                ratio,
                before,
            });
        }
    }
    let best = best.filter(|best| best.z.abs() >= ALARM_Z)?;
    let (at, ratio) = place(&logs).unwrap_or((best.at, best.ratio));
    Some(Alarm { at, ratio, ..best })
}

/// Where the end of a series most likely moved, and to which ratio: the split with the largest sum
/// of squares between both sides. The z of single splits rest on different noises, and may be
/// largest beside it.
fn place(logs: &[f64]) -> Option<(usize, f64)> {
    let mut best: Option<(f64, usize, f64)> = None;
    for last in 1..=LAST_MAX {
        let Some(at) = logs.len().checked_sub(last) else { break };
        if at < BASELINE_MIN {
            break;
        }
        let (old, new) = (&logs[at.saturating_sub(BASELINE_MAX)..at], &logs[at..]);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let difference = mean(new) - mean(old);
        let weight = 1.0 / (1.0 / old.len() as f64 + 1.0 / last as f64);
        let between = difference * difference * weight;
        if best.is_none_or(|best| between > best.0) {
            best = Some((between, at, difference.exp()));
        }
    }
    best.map(|(_, at, ratio)| (at, ratio))
}

/// An alarm is confirmed below this probability.
pub(crate) const CONFIRM_P: f64 = 0.005;

/// The result of measuring both sides of an alarm again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    /// Mann and Whitney's test of both sides.
    pub p_value: f64,
    /// New over old, with its 95 % interval.
    pub ratio: Interval,
    /// Whether the probability is below [`CONFIRM_P`].
    pub confirmed: bool,
}

/// Judges fresh measurements of the old and of the new state, one value a process; none with too
/// few of them.
pub fn confirm(old: &[f64], new: &[f64]) -> Option<Confirmed> {
    let (old, new) = (logarithms(old)?, logarithms(new)?);
    let test = mann_whitney(&old, &new, 0.95).ok()?;
    Some(Confirmed {
        p_value: test.p_value,
        ratio: ratio(test.interval?),
        confirmed: test.p_value < CONFIRM_P,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(lengths: &[(usize, f64)], noise: f64, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut values = Vec::new();
        for (length, level) in lengths {
            for _ in 0..*length {
                let uniform: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                values.push(level * (uniform * noise).exp());
            }
        }
        values
    }

    #[test]
    fn every_step_is_found_where_it_is_with_its_size() {
        let values = series(&[(30, 100.0), (20, 105.0), (25, 95.0)], 0.01, 3);
        let points = scan(&values, ALPHA, 1);
        let places: Vec<usize> = points.iter().map(|one| one.at).collect();
        assert!(places.len() == 2, "{points:?}");
        assert!(places[0].abs_diff(30) <= 1 && places[1].abs_diff(50) <= 1);
        let ratio = points[0].ratio.unwrap();
        assert!(ratio.contains(1.05) && !ratio.contains(1.0), "{ratio:?}");
        assert!(points[1].ratio.unwrap().contains(95.0 / 105.0));
    }

    #[test]
    fn a_step_near_an_end_is_found_where_it_is() {
        for (old, new) in [(15, 5), (17, 3), (16, 4), (3, 17)] {
            let values = series(&[(old, 100.0), (new, 150.0)], 0.005, 9);
            let points = scan(&values, ALPHA, 1);
            assert_eq!(points.len(), 1, "{old}+{new}: {points:?}");
            assert_eq!(points[0].at, old, "{old}+{new}: {points:?}");
            let ratio = points[0].ratio.unwrap();
            assert!(
                ratio.low > 1.4 && ratio.high < 1.6,
                "{old}+{new}: {ratio:?}"
            );
        }
    }

    #[test]
    fn an_alarm_names_the_first_value_of_the_new_level() {
        for (old, new) in [(12, 1), (12, 2), (17, 3)] {
            let values = series(&[(old, 100.0), (new, 150.0)], 0.02, 10);
            assert_eq!(alarm(&values).unwrap().at, old, "{old}+{new}");
        }
    }

    #[test]
    fn an_alarm_rings_for_the_last_values_only() {
        let calm = series(&[(25, 100.0)], 0.002, 4);
        assert!(alarm(&calm[..7]).is_none(), "too few to say");
        let mut moved = calm.clone();
        moved.extend(series(&[(3, 105.0)], 0.002, 5));
        let rings = alarm(&moved).unwrap();
        assert_eq!(rings.at, 25);
        assert!((1.04..1.06).contains(&rings.ratio) && rings.z > 10.0);
        // Exact values, of which any change is one.
        let mut exact = vec![5.0; 12];
        assert!(alarm(&exact).is_none());
        exact.push(6.0);
        assert_eq!(alarm(&exact).unwrap().at, 12);
    }

    #[test]
    fn fresh_measurements_confirm_a_step_or_do_not() {
        let old = series(&[(12, 100.0)], 0.02, 6);
        let new = series(&[(12, 105.0)], 0.02, 7);
        let confirmed = confirm(&old, &new).unwrap();
        assert!(confirmed.confirmed && confirmed.ratio.low > 1.0);
        let same = confirm(&old, &series(&[(12, 100.0)], 0.02, 8)).unwrap();
        assert!(!same.confirmed);
        assert!(confirm(&old[..1], &new).is_none());
    }

    proptest! {
        #[test]
        fn any_series_is_scanned_without_a_panic(
            values in prop::collection::vec(prop::num::f64::ANY, 0..40),
        ) {
            for point in scan(&values, ALPHA, 1) {
                prop_assert!(point.at >= 1 && point.at < values.len());
            }
            if let Some(one) = alarm(&values) {
                prop_assert!(one.at < values.len());
            }
        }
    }
}
