//! How often a thing is called faster or slower than itself: in at most 5 of 100 experiments, for
//! times as machines have them. Seeds are fixed; bounds are the exact binomial ones for 99.9 %.

use fastrand::Rng;
use ugeom_measure::autocorrelation::Independence;
use ugeom_measure::distributions::{incomplete_beta, normal_quantile};
use ugeom_measure::rank::mann_whitney;
use ugeom_measure::{Blocks, Comparison, Moments, Rules, Verdict};

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

fn is_claim(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Proven { .. })
        || matches!(
            verdict,
            Verdict::SameWithin {
                proven: Some(_),
                ..
            }
        )
}

/// Two cells of the same thing in rounds; `time` gives one time around 1 from the round's number.
fn interleaved(rounds: u32, random: &mut Rng, time: impl Fn(u32, &mut Rng) -> f64) -> bool {
    let mut blocks = Blocks::new(["A", "A again"]);
    for round in 0..rounds {
        let values = vec![time(round, random), time(round, random)];
        blocks.push_round(values).unwrap();
    }
    let comparison = Comparison::within_rounds(&blocks, 0, 1).unwrap();
    is_claim(&Rules::default().judge(&comparison).unwrap())
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
    let welch = |base: &[f64], changed: &[f64]| {
        let (base, changed) = (Moments::of(base).unwrap(), Moments::of(changed).unwrap());
        let comparison = Comparison::independent(base, changed).unwrap();
        is_claim(&Rules::default().judge(&comparison).unwrap())
    };
    at_most_five_percent("Welch, unequal spreads and sizes", |random| {
        welch(&sample(random, 10, 0.05), &sample(random, 30, 0.01))
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

#[test]
fn the_effective_size_takes_back_most_of_what_correlation_pretends() {
    // An autoregressive process of 0.6 is worth a quarter of its values. Taken for independent,
    // two such series differ in a third of the experiments.
    let series = |random: &mut Rng| -> Vec<f64> {
        let mut value = 0.0;
        let mut next = |_| {
            value = 0.6 * value + normal(random);
            100.0 + value
        };
        (0..100).map(&mut next).collect()
    };
    let mut random = Rng::with_seed(3);
    let (mut naive, mut corrected) = (0, 0);
    for _ in 0..EXPERIMENTS {
        let (base, changed) = (series(&mut random), series(&mut random));
        let plain = |values: &[f64]| Moments::of(values).unwrap();
        let worth = |values: &[f64]| Independence::of(values).unwrap().moments(values).unwrap();
        let judged = |base, changed| {
            let comparison = Comparison::independent(base, changed).unwrap();
            u32::from(comparison.difference.p_value <= 0.05)
        };
        naive += judged(plain(&base), plain(&changed));
        corrected += judged(worth(&base), worth(&changed));
    }
    assert!(naive > EXPERIMENTS / 4, "{naive}");
    // Estimated from the series themselves, it is not perfect.
    assert!(corrected < EXPERIMENTS / 10, "{corrected}");
}
