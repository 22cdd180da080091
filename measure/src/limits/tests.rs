//! Known answers: the published mail, and devices whose limits are set here.

use super::*;

/// M. Dillon, "ATA disk performance", 26 September 2004: block size, and the seconds that dd took
/// for 67,108,864 bytes of it.
const PUBLISHED: [(f64, f64); 11] = [
    (512.0, 8.996482),
    (1024.0, 4.563335),
    (2048.0, 2.430306),
    (4096.0, 1.538318),
    (8192.0, 1.264007),
    (16_384.0, 1.174806),
    (32_768.0, 1.208589),
    (65_536.0, 1.241938),
    (131_072.0, 1.208579),
    (262_144.0, 1.183573),
    (524_288.0, 1.200243),
];

const PUBLISHED_BYTES: f64 = 67_108_864.0;

fn sizes() -> Vec<f64> {
    PUBLISHED.iter().map(|row| row.0).collect()
}

#[test]
fn the_published_disk_has_its_published_limits() {
    let times: Vec<f64> = PUBLISHED
        .iter()
        .map(|(size, seconds)| seconds * size / PUBLISHED_BYTES)
        .collect();
    let fitted = Fitted::of(&sizes(), &times).unwrap();
    let limits = fitted.limits;
    let rate = limits.transaction_rate();
    assert!(
        (rate / 14_577.0 - 1.0).abs() < 0.005,
        "{rate} transactions a second"
    );
    assert!(
        (limits.bandwidth() / 56.0e6 - 1.0).abs() < 0.005,
        "{limits:?}"
    );
    assert!((limits.sharpness - 2.5).abs() < 0.15, "{limits:?}");
    assert!((fitted.rms - 0.015).abs() < 0.002, "{}", fitted.rms);
    assert!((limits.knee() - 3840.0).abs() < 60.0, "{}", limits.knee());
}

/// Times of a device with these limits, `rounds` times, each off by a share drawn from its seed.
fn rounds_of(limits: &Limits, rounds: usize, off: f64, seed: u64) -> Vec<Vec<f64>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut round = |_| {
        let shared = 1.0 + 3.0 * off * (random.f64() - 0.5);
        let mut time =
            |size: &f64| limits.time(*size) * shared * (1.0 + off * (random.f64() - 0.5));
        sizes().iter().map(&mut time).collect()
    };
    (0..rounds).map(&mut round).collect()
}

#[test]
fn limits_that_were_set_are_found_again() {
    for sharpness in [1.0, 1.7, 2.5, 6.0, SHARPNESS_MAX] {
        for knee in [1500.0, 3840.0, 60_000.0] {
            let unit_time = 0.02;
            let set = Limits {
                transaction_time: knee * unit_time,
                unit_time,
                sharpness,
            };
            let times: Vec<f64> = sizes().iter().map(|size| set.time(*size)).collect();
            let found = Fitted::of(&sizes(), &times).unwrap();
            let case = format!("{set:?} found as {:?}", found.limits);
            assert!((found.limits.knee() / knee - 1.0).abs() < 0.02, "{case}");
            assert!(
                (found.limits.bandwidth() * unit_time - 1.0).abs() < 0.01,
                "{case}"
            );
            assert!(
                (sharpness / found.limits.sharpness - 1.0).abs() < 0.1,
                "{case}"
            );
            assert!(found.rms < 0.003 && found.worst() < 0.01, "{case}");
        }
    }
}

#[test]
fn intervals_over_rounds_cover_the_limits_that_were_set() {
    let set = Limits {
        transaction_time: 66_000.0,
        unit_time: 1.4,
        sharpness: 2.0,
    };
    let (mut covered, runs) = (0, 60);
    for seed in 0..runs {
        let rounds = rounds_of(&set, 12, 0.06, seed);
        let bootstrap = Bootstrap {
            resamples: 300,
            seed,
            ..Bootstrap::default()
        };
        let found = BlockedLimits::of(&sizes(), &rounds, &bootstrap).unwrap();
        let rate = found.transaction_rate();
        let hit = [
            rate.contains(1.0 / 66_000.0),
            found.bandwidth.contains(1.0 / 1.4),
            found.knee.contains(66_000.0 / 1.4),
        ];
        covered += hit.iter().filter(|hit| **hit).count();
        let lack = found.lack_of_fit.unwrap();
        assert!(lack.p_value > 1e-4, "the model is the truth: {lack:?}");
        assert!(lack.scatter > 0.005 && lack.scatter < 0.03, "{lack:?}");
    }
    // 95 % intervals of the percentile bootstrap over 12 rounds cover about 90 %.
    let share = covered as f64 / (3 * runs) as f64;
    assert!(share > 0.82, "{share}");
}

#[test]
fn a_device_that_is_no_such_device_is_told_by_its_residuals() {
    // Blocks of 32 KiB and above are cut in two: a jump that no such curve has.
    let set = Limits {
        transaction_time: 50.0,
        unit_time: 0.001,
        sharpness: 2.0,
    };
    let time = |size: &f64| {
        let pieces = if *size >= 32_768.0 { 8.0 } else { 1.0 };
        set.time(*size) * pieces
    };
    let times: Vec<f64> = sizes().iter().map(time).collect();
    let fitted = Fitted::of(&sizes(), &times).unwrap();
    assert!(fitted.rms > 0.1, "{fitted:?}");
    let rounds: Vec<Vec<f64>> = [0.99, 1.0, 1.005, 1.02]
        .iter()
        .enumerate()
        .map(|(round, scale)| {
            let wobble = |(place, time): (usize, &f64)| {
                time * scale * (1.0 + 0.01 * ((place + round) % 3) as f64)
            };
            times.iter().enumerate().map(wobble).collect()
        })
        .collect();
    let found = BlockedLimits::of(&sizes(), &rounds, &Bootstrap::default()).unwrap();
    assert!(found.lack_of_fit.unwrap().p_value < 1e-6, "{found:?}");
}

#[test]
fn a_limit_that_no_size_reaches_is_far_away() {
    let flat: Vec<f64> = sizes().iter().map(|size| size * 0.25).collect();
    let fitted = Fitted::of(&sizes(), &flat).unwrap();
    assert!((fitted.limits.bandwidth() - 4.0).abs() < 0.01, "{fitted:?}");
    assert!(fitted.limits.transaction_share(512.0) < 0.05, "{fitted:?}");
    let slow = Fitted::of(&sizes(), &[7.0; 11]).unwrap();
    assert!(
        (slow.limits.transaction_time - 7.0).abs() < 0.02,
        "{slow:?}"
    );
    assert!(slow.limits.transaction_share(524_288.0) > 0.95, "{slow:?}");
}

#[test]
fn rounds_that_do_not_vary_give_exact_limits() {
    let set = Limits {
        transaction_time: 68_601.0,
        unit_time: 17.5,
        sharpness: SHARPNESS_MAX,
    };
    let round: Vec<f64> = sizes().iter().map(|size| set.time(*size)).collect();
    let found = BlockedLimits::of(&sizes(), &[&round[..]; 3], &Bootstrap::default()).unwrap();
    assert_eq!(found.lack_of_fit, None);
    assert_eq!(found.knee.half_width(), 0.0);
    assert!(
        (found.transaction_time.estimate - 68_601.0).abs() < 70.0,
        "{found:?}"
    );
}

#[test]
fn points_that_show_no_limits_are_refused() {
    let sizes = sizes();
    let few = Fitted::of(&sizes[..3], &[1.0; 3]);
    assert!(
        matches!(
            few,
            Err(Error::TooFew {
                needed: 4,
                got: 3,
                ..
            })
        ),
        "{few:?}"
    );
    assert!(matches!(
        Fitted::of(&[512.0; 6], &[1.0; 6]),
        Err(Error::TooFew { got: 1, .. })
    ));
    assert!(matches!(
        Fitted::of(&sizes, &[1.0; 3]),
        Err(Error::UnequalLengths { .. })
    ));
    let mut times = vec![1.0; 11];
    times[4] = 0.0;
    let zero = Fitted::of(&sizes, &times).unwrap_err().to_string();
    assert_eq!(
        zero,
        "the time of a transfer is 0, but it must be above zero"
    );
    times[4] = f64::NAN;
    assert!(matches!(
        Fitted::of(&sizes, &times),
        Err(Error::NotFinite { index: 4, .. })
    ));
    let two = BlockedLimits::of(&sizes, &[[1.0; 11]; 2], &Bootstrap::default());
    assert!(
        matches!(two, Err(Error::TooFew { needed: 3, .. })),
        "{two:?}"
    );
}
