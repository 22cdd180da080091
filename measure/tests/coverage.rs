//! Do the intervals keep their promise? Simulated samples with a known truth, thousands of times,
//! with a fixed seed: a 95 % interval must cover the truth in 93 to 97 % of them.
//!
//! The samples are small on purpose. With six values an interval that took the normal distribution
//! for Student's would cover 89 % only, and one that ignored the rounds nearly everything.

use std::f64::consts::PI;

use fastrand::Rng;
use ugeom_measure::change::{Better, Change, Claim};
use ugeom_measure::interval::student_of;
use ugeom_measure::ratio::log_ratio_paired;
use ugeom_measure::two_samples::{pooled, welch};
use ugeom_measure::{Bootstrap, Interval, Moments, Noise};

const TRIALS: u32 = 4000;

/// A normal deviate (Box and Muller).
fn normal(random: &mut Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (2.0 * PI * random.f64()).cos()
}

fn sample(random: &mut Rng, n: usize, mean: f64, sd: f64) -> Vec<f64> {
    (0..n).map(|_| mean + sd * normal(random)).collect()
}

fn moments(random: &mut Rng, n: usize, mean: f64, sd: f64) -> Moments {
    Moments::of(&sample(random, n, mean, sd)).unwrap()
}

/// Rounds that drift far more than their cases differ: `cases` values around a level of the round.
fn drifting(random: &mut Rng, rounds: usize, cases: &[f64], sd: f64) -> Vec<Vec<f64>> {
    (0..rounds)
        .map(|_| {
            let level = 1000.0 * random.f64();
            cases
                .iter()
                .map(|case| level + case + sd * normal(random))
                .collect()
        })
        .collect()
}

/// The share of trials whose interval covers `truth`, in per cent.
fn coverage(trials: u32, truth: f64, mut trial: impl FnMut(&mut Rng) -> Interval) -> f64 {
    let mut random = Rng::with_seed(20_021_006);
    let covered = (0..trials)
        .filter(|_| trial(&mut random).contains(truth))
        .count();
    100.0 * covered as f64 / f64::from(trials)
}

#[track_caller]
fn keeps_its_promise(truth: f64, trial: impl FnMut(&mut Rng) -> Interval) {
    let percent = coverage(TRIALS, truth, trial);
    assert!(
        (93.0..=97.0).contains(&percent),
        "95 % intervals cover {percent:.2} %"
    );
}

#[test]
fn students_interval_covers_the_mean() {
    keeps_its_promise(50.0, |random| {
        student_of(&sample(random, 6, 50.0, 4.0), 0.95)
            .unwrap()
            .interval
    });
}

#[test]
fn welchs_interval_covers_the_difference_of_unequal_samples() {
    keeps_its_promise(-3.0, |random| {
        let base = moments(random, 6, 50.0, 10.0);
        welch(base, moments(random, 15, 47.0, 2.0), 0.95)
            .unwrap()
            .interval
    });
}

#[test]
fn the_pooled_interval_covers_only_where_the_spreads_are_equal() {
    keeps_its_promise(0.0, |random| {
        let base = moments(random, 6, 50.0, 4.0);
        pooled(base, moments(random, 9, 50.0, 4.0), 0.95)
            .unwrap()
            .interval
    });
    // The reason for Welch's: the smaller sample has the larger spread.
    let unequal = coverage(TRIALS, 0.0, |random| {
        let base = moments(random, 6, 50.0, 10.0);
        pooled(base, moments(random, 15, 50.0, 2.0), 0.95)
            .unwrap()
            .interval
    });
    assert!(unequal < 85.0, "{unequal}");
}

#[test]
fn differences_within_rounds_are_covered_whatever_the_rounds_do() {
    let sides = |random: &mut Rng| -> (Vec<f64>, Vec<f64>) {
        let rounds = drifting(random, 6, &[0.0, 0.0], 3.0);
        rounds.iter().map(|round| (round[0], round[1])).unzip()
    };
    keeps_its_promise(0.0, |random| {
        let (base, changed) = sides(random);
        let differences: Vec<f64> = base.iter().zip(changed).map(|(a, b)| b - a).collect();
        student_of(&differences, 0.95).unwrap().interval
    });
    // As independent samples the drift would hide everything: nearly all intervals cover.
    let ignored = coverage(TRIALS, 0.0, |random| {
        let (base, changed) = sides(random);
        let side = |values: &[f64]| Moments::of(values).unwrap();
        welch(side(&base), side(&changed), 0.95).unwrap().interval
    });
    assert!(ignored > 99.5, "{ignored}");
}

/// One case measured twice in rounds of very different levels, as an A/A comparison does.
fn twice(random: &mut Rng, rounds: usize) -> (Vec<f64>, Vec<f64>) {
    (0..rounds)
        .map(|_| {
            let level = 100.0 + 200.0 * random.f64();
            (
                level * (1.0 + 0.05 * normal(random)),
                level * (1.0 + 0.05 * normal(random)),
            )
        })
        .unzip()
}

#[test]
fn log_ratio_intervals_cover_the_ratio() {
    keeps_its_promise(1.0, |random| {
        let (first, second) = twice(random, 6);
        log_ratio_paired(&second, &first, 0.95).unwrap().interval
    });
}

#[test]
fn bootstrap_intervals_cover_within_their_known_limits() {
    // With 20 values the bootstrap is a little narrow; that is its nature, not a defect.
    let mean = |values: &[f64]| [values.iter().sum::<f64>() / values.len() as f64];
    let percent = coverage(2000, 50.0, |random| {
        let values = sample(random, 20, 50.0, 4.0);
        let bootstrap = Bootstrap {
            resamples: 300,
            seed: random.u64(..),
            confidence: 0.95,
        };
        let [interval] = bootstrap.percentiles(&values, mean).unwrap();
        interval
    });
    assert!((90.0..=97.0).contains(&percent), "{percent:.2} %");
}

#[test]
fn the_noise_envelope_holds_the_next_round() {
    let mut random = Rng::with_seed(3);
    let mut inside = 0;
    for _ in 0..TRIALS {
        let (mut first, mut second) = twice(&mut random, 9);
        let next = second.pop().unwrap() / first.pop().unwrap();
        inside += u32::from(Noise::of(&first, &second, 0.95).unwrap().covers(next));
    }
    let percent = 100.0 * f64::from(inside) / f64::from(TRIALS);
    assert!((93.0..=97.0).contains(&percent), "{percent:.2} %");
}

#[test]
fn verdicts_on_the_same_thing_and_on_a_real_step_are_right_as_often_as_promised() {
    // Three comparisons: 95 % for all together.
    const CONFIDENCE: f64 = 1.0 - 0.05 / 3.0;
    let mut random = Rng::with_seed(5);
    let (mut false_claims, mut same_but_not, mut found) = (0, 0, 0);
    for _ in 0..1000 {
        let mut columns: [Vec<f64>; 4] = Default::default();
        for _ in 0..10 {
            let level = 100.0 + 20.0 * random.f64();
            for (column, factor) in columns.iter_mut().zip([1.0, 1.0, 1.012, 1.05]) {
                column.push(level * factor * (1.0 + 0.005 * normal(&mut random)));
            }
        }
        let [base, others @ ..] = columns;
        let [again, near, far] = others.map(|column| {
            let ratio = log_ratio_paired(&column, &base, CONFIDENCE).unwrap();
            Change::new(ratio.interval, CONFIDENCE, Better::Lower, 0.01).claim()
        });
        false_claims += u32::from(matches!(again, Claim::Faster | Claim::Slower));
        same_but_not += u32::from(near == Claim::Equivalent);
        found += u32::from(far == Claim::Slower);
    }
    assert!(
        false_claims <= 50,
        "{false_claims} of 1000 call the same thing different"
    );
    assert!(
        same_but_not <= 50,
        "{same_but_not} of 1000 call 1.2 % the same within 1 %"
    );
    assert!(found >= 990, "{found} of 1000 find 5 %");
}
