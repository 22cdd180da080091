//! Published figures, certified values and other programs' output, reproduced from their own data.

mod nist;

use ugeom_measure::rank::mann_whitney;
use ugeom_measure::regression::Line;
use ugeom_measure::two_samples::{Pooled, pooled};
use ugeom_measure::{Effect, Moments, Summary};

/// A row of the GEOM benchmarks of 6 October 2002: ten runs, average and deviation in ns.
fn row(mean_ns: f64, sd_ns: f64) -> Moments {
    Moments::new(10, mean_ns, sd_ns).unwrap()
}

fn judged(base: Moments, changed: Moments) -> Effect {
    pooled(base, changed, 0.95).unwrap()
}

/// The estimate and half width, rounded as they are published.
fn rounded(effect: &Effect) -> (f64, f64) {
    (
        effect.estimate().round(),
        effect.interval.half_width().round(),
    )
}

#[test]
fn the_geom_benchmarks_of_2002_are_judged_to_the_digit() {
    let geom_zero = row(3_563.810_900, 43.855_366);
    let geom_md9 = row(26_773.133_200, 342.152_442);
    let geom_md9s1 = row(27_077.471_800, 646.937_932);
    let geom_md9s1c = row(28_436.273_300, 209.271_601);
    let plain_zero = row(3_741.171_000, 26.748_924);
    let plain_md9 = row(21_752.482_800, 181.397_713);
    let plain_md9s1 = row(21_643.089_000, 204.512_877);
    let plain_md9s1c = row(21_639.226_900, 158.514_456);

    let geom = judged(plain_md9, geom_md9);
    assert_eq!(rounded(&geom), (5021.0, 257.0));
    assert_eq!(geom.degrees_of_freedom, 18.0);
    let share = geom.interval.scaled(1.0 / plain_md9.mean);
    assert_eq!(
        format!("{share:.2}"),
        "0.23 (0.22 to 0.24)",
        "the published 23 %"
    );

    let mbr = judged(geom_md9, geom_md9s1);
    assert_eq!(rounded(&mbr), (304.0, 486.0));
    assert!(
        mbr.interval.contains(0.0) && mbr.p_value > 0.05,
        "the MBR step is not proven"
    );

    let bsd = judged(geom_md9s1, geom_md9s1c);
    assert_eq!(rounded(&bsd), (1359.0, 452.0));
    assert!(
        bsd.interval.low > 0.0 && bsd.p_value < 0.001,
        "the BSD step is proven"
    );

    // /dev/zero has no layer of GEOM in it, and yet it moved: the control did not hold.
    let control = judged(plain_zero, geom_zero);
    assert_eq!(rounded(&control), (-177.0, 34.0));
    assert!(control.interval.high < 0.0);

    // Without GEOM the three devices are one and the same path.
    for other in [plain_md9s1, plain_md9s1c] {
        assert!(judged(plain_md9, other).interval.contains(0.0));
    }
}

#[test]
fn ministats_own_example_is_reproduced() {
    let iguana = Moments::of(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]).unwrap();
    let chameleon = Moments::of(&[150.0, 400.0, 720.0, 500.0, 930.0]).unwrap();
    let both = Pooled::new(iguana, chameleon).unwrap();
    assert_eq!(format!("{:.3}", both.pooled_sd), "264.159");
    assert_eq!(both.degrees_of_freedom, 10.0);
    // ministat's table has three decimals: 1.372 for 80 % and 10 degrees of freedom.
    let printed = both.interval_with(1.372, 0.80);
    assert_eq!(format!("{:.3}", printed.half_width()), "212.215");
    assert_eq!(printed.estimate, 240.0);
    assert_eq!(
        format!("{:.4}", printed.half_width() * 100.0 / iguana.mean),
        "70.7384"
    );
    let exact = both.effect(0.80).unwrap().interval;
    assert!((exact.half_width() - 212.215).abs() < 0.05 && exact.low > 0.0);
    assert!(
        both.effect(0.95).unwrap().interval.contains(0.0),
        "no difference proven at 95 %"
    );
}

/// The number of correct digits (NIST's LRE).
fn digits(got: f64, certified: f64) -> f64 {
    -((got - certified) / certified).abs().max(1e-16).log10()
}

#[test]
fn nists_certified_means_and_deviations_are_reproduced() {
    // Numerical accuracy 1 to 4 are built as NIST describes them; from 3 on the data themselves
    // are not exact in binary, which leaves about 8 digits of the deviation.
    let alternating = |centre: f64, step: f64| {
        let mut values = vec![centre];
        (0..500).for_each(|_| values.extend([centre - step, centre + step]));
        values
    };
    for (name, values, mean, sd, sd_digits) in [
        (
            "NumAcc1",
            vec![10_000_001.0, 10_000_003.0, 10_000_002.0],
            10_000_002.0,
            1.0,
            15.0,
        ),
        ("NumAcc2", alternating(1.2, 0.1), 1.2, 0.1, 14.0),
        (
            "NumAcc3",
            alternating(1_000_000.2, 0.1),
            1_000_000.2,
            0.1,
            9.0,
        ),
        (
            "NumAcc4",
            alternating(10_000_000.2, 0.1),
            10_000_000.2,
            0.1,
            8.0,
        ),
        (
            "Lottery",
            nist::LOTTERY.to_vec(),
            518.958_715_596_330,
            291.699_727_470_969,
            14.0,
        ),
        (
            "Mavro",
            nist::MAVRO.to_vec(),
            2.001_856,
            0.000_429_123_454_003_053,
            12.0,
        ),
    ] {
        let summary = Summary::of(&values).unwrap();
        assert!(
            digits(summary.mean, mean) > 14.0,
            "{name}: mean {}",
            summary.mean
        );
        assert!(
            digits(summary.sd, sd) > sd_digits,
            "{name}: sd {}",
            summary.sd
        );
    }
}

#[test]
fn nists_certified_regression_line_is_reproduced() {
    let (y, x): (Vec<f64>, Vec<f64>) = nist::NORRIS.iter().copied().unzip();
    let line = Line::fit(&x, &y).unwrap();
    for (got, certified) in [
        (line.slope, 1.002_116_818_020_45),
        (line.intercept, -0.262_323_073_774_029),
    ] {
        assert!(
            digits(got, certified) > 11.5,
            "{got} instead of {certified}"
        );
    }
}

#[test]
fn the_rank_test_of_hollander_and_wolfe_is_reproduced() {
    // Permeability of placentas at term and in mid-pregnancy, section 4.1; in R:
    // wilcox.test(x, y, alternative = "g") gives W = 35, p = 0.1272 (one-sided).
    let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let middle = [1.15, 0.88, 0.90, 0.74, 1.21];
    let test = mann_whitney(&middle, &term, 0.95).unwrap();
    assert_eq!(test.u, 35.0);
    assert!(
        test.exact && (test.p_value / 2.0 - 0.1272).abs() < 5e-5,
        "{test:?}"
    );
    assert!((test.shift - 0.305).abs() < 1e-9, "{}", test.shift);
    assert!((test.superiority - 0.7).abs() < 1e-12);
}

#[test]
fn the_rank_test_of_ozone_in_may_and_august_is_reproduced() {
    // R: wilcox.test(Ozone ~ Month, data = airquality, subset = Month %in% c(5, 8)): W = 127.5,
    // p-value = 0.0001208, by the normal distribution with ties.
    let may = [
        41.0, 36.0, 12.0, 18.0, 28.0, 23.0, 19.0, 8.0, 7.0, 16.0, 11.0, 14.0, 18.0, 14.0, 34.0,
        6.0, 30.0, 11.0, 1.0, 11.0, 4.0, 32.0, 23.0, 45.0, 115.0, 37.0,
    ];
    let august = [
        39.0, 9.0, 16.0, 78.0, 35.0, 66.0, 122.0, 89.0, 110.0, 44.0, 28.0, 65.0, 22.0, 59.0, 23.0,
        31.0, 44.0, 21.0, 9.0, 45.0, 168.0, 73.0, 76.0, 118.0, 84.0, 85.0,
    ];
    let test = mann_whitney(&august, &may, 0.95).unwrap();
    assert_eq!(test.u, 127.5);
    assert!(
        !test.exact && (test.p_value - 0.000_120_8).abs() < 5e-8,
        "{test:?}"
    );
}
