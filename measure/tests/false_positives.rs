//! How often a thing is called faster or slower than itself: in at most 5 of 100 experiments, for
//! times as machines have them. Seeds are fixed; bounds are the exact binomial ones for 99.9 %.

use fastrand::Rng;
use ugeom_measure::Moments;
use ugeom_measure::distributions::{incomplete_beta, normal_quantile};
use ugeom_measure::interval::student_of;
use ugeom_measure::rank::mann_whitney;
use ugeom_measure::two_samples::welch;

const EXPERIMENTS: u32 = 2000;

fn normal(random: &mut Rng) -> f64 {
    normal_quantile(random.f64().clamp(1e-12, 1.0 - 1e-12))
}

/// The probability of more than `count` of [`EXPERIMENTS`] if each happens with probability 0.05.
fn probability_of_more(count: u32) -> f64 {
    incomplete_beta(f64::from(count) + 1.0, f64::from(EXPERIMENTS - count), 0.05)
}

#[track_caller]
fn at_most_five_percent(name: &str, mut claims: impl FnMut(&mut Rng) -> bool) {
    let mut random = Rng::with_seed(20);
    let claimed = (0..EXPERIMENTS).filter(|_| claims(&mut random)).count() as u32;
    assert!(
        probability_of_more(claimed) > 0.001,
        "{name}: {claimed} of {EXPERIMENTS} experiments claim a difference"
    );
}

/// Two cases of the same thing in rounds; `time` gives one time around 1 from the round's number.
fn interleaved(rounds: u32, random: &mut Rng, time: impl Fn(u32, &mut Rng) -> f64) -> bool {
    let differences: Vec<f64> = (0..rounds)
        .map(|round| time(round, random) - time(round, random))
        .collect();
    student_of(&differences, 0.95).unwrap().p_value <= 0.05
}

#[test]
fn the_same_thing_in_rounds_is_seldom_faster_than_itself() {
    at_most_five_percent("normal times", |random| {
        interleaved(10, random, |_, random| 1.0 + 0.02 * normal(random))
    });
    at_most_five_percent("a machine that drifts by half", |random| {
        interleaved(12, random, |round, random| {
            1.0 + 0.05 * f64::from(round) + 0.01 * normal(random)
        })
    });
    at_most_five_percent("now and then an interruption", |random| {
        interleaved(20, random, |_, random| {
            let stray = if random.u8(0..20) == 0 { 0.5 } else { 0.0 };
            1.0 + stray + 0.01 * normal(random)
        })
    });
    at_most_five_percent("two modes", |random| {
        interleaved(15, random, |_, random| {
            let mode = if random.bool() { 1.0 } else { 1.3 };
            mode + 0.01 * normal(random)
        })
    });
}

#[test]
fn two_results_of_the_same_thing_seldom_differ() {
    let sample = |random: &mut Rng, n: u32, sd: f64| -> Vec<f64> {
        (0..n).map(|_| 1.0 + sd * normal(random)).collect()
    };
    let differ = |base: &[f64], changed: &[f64]| {
        let (base, changed) = (Moments::of(base).unwrap(), Moments::of(changed).unwrap());
        welch(base, changed, 0.95).unwrap().p_value <= 0.05
    };
    at_most_five_percent("Welch, unequal spreads and sizes", |random| {
        differ(&sample(random, 10, 0.05), &sample(random, 30, 0.01))
    });
    at_most_five_percent("Mann-Whitney, exact", |random| {
        let (base, changed) = (sample(random, 10, 0.02), sample(random, 12, 0.02));
        mann_whitney(&base, &changed, 0.95).unwrap().p_value <= 0.05
    });
    at_most_five_percent("Mann-Whitney, many values", |random| {
        let (base, changed) = (sample(random, 40, 0.02), sample(random, 40, 0.02));
        mann_whitney(&base, &changed, 0.95).unwrap().p_value <= 0.05
    });
}
