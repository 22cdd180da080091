//! Series of commits with known truth: noise of 2 %, a step of 5 %.

use ugeom_measure::distributions::normal_quantile;
use ugeom_measure::shift::{ALPHA, alarm, confirm, scan};

/// The noise of a value.
const NOISE: f64 = 0.02;

const STEP: f64 = 1.05;

/// Commits before the first check.
const BASELINE: usize = 20;

/// Commits that are checked one after the other.
const CHECKS: usize = 50;

/// A step is found when it is confirmed within so many commits.
const WITHIN: usize = 5;

/// Fresh processes that measure each side of an alarm.
const PROCESSES: usize = 12;

/// The distribution of the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    Normal,
    /// Student's t with 3 degrees of freedom, of the same standard deviation.
    Tails,
    /// A logarithm of a sum of squares: skewed to the right.
    Skewed,
}

impl Noise {
    pub const ALL: [Self; 3] = [Self::Normal, Self::Tails, Self::Skewed];

    /// A value of mean 0 and standard deviation 1.
    fn unit(self, random: &mut fastrand::Rng) -> f64 {
        let mut normal = || normal_quantile(random.f64().clamp(1e-12, 1.0 - 1e-12));
        match self {
            Self::Normal => normal(),
            Self::Tails => {
                let top = normal();
                let squares: f64 = (0..3).map(|_| normal().powi(2)).sum();
                top / (squares / 3.0).sqrt() / 3_f64.sqrt()
            }
            Self::Skewed => {
                // Chi-squared with 4 degrees of freedom: mean 4, variance 8, skewness 1.4.
                let squares: f64 = (0..4).map(|_| normal().powi(2)).sum();
                (squares - 4.0) / 8_f64.sqrt()
            }
        }
    }

    fn value(self, level: f64, random: &mut fastrand::Rng) -> f64 {
        level * (NOISE * self.unit(random)).exp()
    }
}

/// How often each verdict was given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub series: usize,
    /// Series without a step in which one was claimed.
    pub false_alarms: usize,
    /// Series with a step in which it was found in time.
    pub found: usize,
    /// Measurements again, in the series without a step.
    pub repeated: usize,
}

/// Checks after each commit: an alarm, then both commits measured again.
pub fn two_stages(noise: Noise, series: usize, seed: u64) -> Counts {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut counts = Counts {
        series,
        ..Counts::default()
    };
    for _ in 0..series {
        let mut repeated = 0;
        let falsely = checked(noise, BASELINE + CHECKS, None, &mut random, &mut repeated);
        counts.false_alarms += usize::from(falsely.is_some());
        counts.repeated += repeated;
        let at = BASELINE + random.usize(0..CHECKS - WITHIN);
        let found = checked(noise, at + WITHIN, Some(at), &mut random, &mut 0);
        counts.found += usize::from(found.is_some_and(|found| found >= at));
    }
    counts
}

/// The first commit after which a step is confirmed; false ones before the true step are passed.
fn checked(
    noise: Noise,
    commits: usize,
    step_at: Option<usize>,
    random: &mut fastrand::Rng,
    repeated: &mut usize,
) -> Option<usize> {
    let level = |at: usize| match step_at {
        Some(step_at) if at >= step_at => STEP,
        _ => 1.0,
    };
    let mut values = Vec::new();
    for at in 0..commits {
        values.push(noise.value(level(at), random));
        if at < BASELINE {
            continue;
        }
        let Some(rings) = alarm(&values) else { continue };
        *repeated += 1;
        let mut fresh = |at: usize| -> Vec<f64> {
            let value = |_| noise.value(level(at), random);
            (0..PROCESSES).map(value).collect()
        };
        let (old, new) = (fresh(rings.before), fresh(at));
        let confirmed = confirm(&old, &new)
            .is_some_and(|one| one.confirmed && (one.ratio.estimate > 1.0) == (rings.ratio > 1.0));
        if confirmed && step_at.is_none_or(|step_at| at >= step_at) {
            return Some(at);
        }
    }
    None
}

/// Series of so many commits: one without a step, one with a step before its last five.
pub fn pairs(
    noise: Noise,
    commits: usize,
    series: usize,
    seed: u64,
) -> impl Iterator<Item = [Vec<f64>; 2]> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..series).map(move |_| {
        let mut made = |step_at: usize| -> Vec<f64> {
            let level = |at: usize| if at >= step_at { STEP } else { 1.0 };
            let value = |at: usize| noise.value(level(at), &mut random);
            (0..commits).map(value).collect()
        };
        [made(commits), made(commits - WITHIN)]
    })
}

/// One look at a whole series of so many commits; the step has five commits after it.
pub fn whole_series(noise: Noise, commits: usize, series: usize, seed: u64) -> Counts {
    let mut counts = Counts {
        series,
        ..Counts::default()
    };
    for (number, [calm, moved]) in pairs(noise, commits, series, seed).enumerate() {
        counts.false_alarms += usize::from(!scan(&calm, ALPHA, number as u64).is_empty());
        let found = scan(&moved, ALPHA, number as u64);
        let near = |at: usize| at.abs_diff(commits - WITHIN) <= 2;
        counts.found += usize::from(found.iter().any(|one| near(one.at)));
    }
    counts
}
