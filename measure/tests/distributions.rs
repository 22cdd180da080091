//! The distributions against an independent implementation (`statrs`) and printed tables.

use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};
use statrs::function::{beta, erf, gamma};
use ugeom_measure::distributions::{
    erfc, fisher_upper_tail, incomplete_beta, ln_beta, ln_gamma, normal_cdf, normal_quantile,
    student_cdf, student_critical, student_quantile, student_two_sided_p,
};

#[track_caller]
fn close(got: f64, expected: f64, tolerance: f64) {
    let scale = expected.abs().max(1.0);
    assert!(
        (got - expected).abs() <= tolerance * scale,
        "{got} instead of {expected}"
    );
}

#[test]
fn printed_student_tables_are_reproduced() {
    // Two-sided critical values: NIST e-Handbook 1.3.6.7.2 and Abramowitz and Stegun, table 26.10.
    for (confidence, df, printed) in [
        (0.80, 1.0, 3.078),
        (0.80, 10.0, 1.372),
        (0.90, 5.0, 2.015),
        (0.95, 1.0, 12.706),
        (0.95, 2.0, 4.303),
        (0.95, 4.0, 2.776),
        (0.95, 9.0, 2.262),
        (0.95, 18.0, 2.101),
        (0.95, 30.0, 2.042),
        (0.95, 100.0, 1.984),
        (0.95, f64::INFINITY, 1.960),
        (0.98, 20.0, 2.528),
        (0.99, 18.0, 2.878),
        (0.999, 9.0, 4.781),
        (0.998, 1.0, 318.309),
    ] {
        let got = student_critical(confidence, df).unwrap();
        assert!((got - printed).abs() <= 5.01e-4, "{confidence} {df}: {got}");
    }
}

#[test]
fn printed_normal_values_are_reproduced() {
    // Abramowitz and Stegun, tables 26.1 and 26.5.
    close(normal_cdf(1.0), 0.841_344_746_068_543, 1e-14);
    close(normal_cdf(-2.0), 0.022_750_131_948_179, 1e-14);
    close(normal_cdf(0.0), 0.5, 0.0);
    close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-14);
    close(normal_quantile(0.999), 3.090_232_306_167_813, 1e-14);
    // A tail that no difference from 1 could hold: Q(10) = 7.619853024160527e-24.
    close(normal_cdf(-10.0) / 7.619_853_024_160_527e-24, 1.0, 1e-12);
    close(erfc(0.5), 0.479_500_122_186_953_5, 1e-15);
}

#[test]
fn printed_fisher_tables_are_reproduced() {
    // Upper 5 % points: NIST e-Handbook 1.3.6.7.3.
    for (above, below, printed) in [(1.0, 10.0, 4.965), (3.0, 20.0, 3.098), (8.0, 30.0, 2.266)] {
        let tail = fisher_upper_tail(printed, above, below);
        assert!((tail - 0.05).abs() < 5e-5, "{above} {below}: {tail}");
    }
    assert_eq!(fisher_upper_tail(0.0, 3.0, 4.0), 1.0);
    assert!(fisher_upper_tail(-1.0, 3.0, 4.0).is_nan());
    assert!(fisher_upper_tail(1.0, 0.0, 4.0).is_nan());
}

#[test]
fn students_closed_forms_hold() {
    // 1 degree of freedom is the Cauchy distribution, 2 have a closed form as well.
    for t in [0.0_f64, 1e-9, 0.1, 0.5, 1.0, 2.5, 12.706, 1e3, 1e9] {
        let cauchy = 0.5 + t.atan() / std::f64::consts::PI;
        close(student_cdf(t, 1.0), cauchy, 1e-14);
        close(student_cdf(-t, 1.0), 1.0 - cauchy, 1e-14);
        close(
            student_cdf(t, 2.0),
            0.5 + t / (2.0 * (2.0 + t * t).sqrt()),
            1e-14,
        );
    }
    // Far tails keep their digits: the Cauchy tail is 1 / (pi t).
    let tail = student_two_sided_p(1e12, 1.0) / (2.0 / (std::f64::consts::PI * 1e12));
    close(tail, 1.0, 1e-13);
    let farthest = student_two_sided_p(1e200, 1.0) / (2.0 / (std::f64::consts::PI * 1e200));
    close(farthest, 1.0, 1e-12);
}

#[test]
fn students_tails_agree_with_fifty_digit_arithmetic() {
    // Half of mpmath's betainc(df / 2, 1 / 2, 0, df / (df + t^2), regularized=True) at 50 digits.
    for (t, df, tail) in [
        (2.5, 3.0, 0.043_853_323_504_032_77),
        (2.101, 18.0, 0.024_996_181_438_981_75),
        (4.0, 0.75, 0.108_558_093_892_159_2),
        (8.0, 50.0, 8.316_483_014_160_692e-11),
        (3.0, 9999.0, 1.353_224_427_856_175e-3),
        (3.0, 10000.0, 1.353_224_094_998_833e-3),
        (3.0, 1000000.0, 1.349_931_270_710_898e-3),
        (20.0, 100000.0, 4.111_746_955_327_181e-89),
        (0.001, 1.0, 0.499_681_690_219_919_4),
    ] {
        let got: f64 = student_cdf(-t, df);
        assert!(
            (got / tail - 1.0).abs() < 2e-12,
            "{t} {df}: {got} instead of {tail}"
        );
    }
}

#[test]
fn the_normal_limit_is_joined_without_a_step() {
    for t in [0.1, 1.0, 1.96, 3.0, 6.0] {
        let (below, above) = (student_cdf(-t, 10_000.0 - 1e-6), student_cdf(-t, 10_000.0));
        assert!(
            (below / above - 1.0).abs() < 1e-11,
            "{t}: {below} and {above}"
        );
        close(student_cdf(t, f64::INFINITY), normal_cdf(t), 0.0);
    }
}

#[test]
fn outside_of_their_domain_the_functions_answer_nan() {
    for nan in [
        ln_gamma(0.0),
        ln_gamma(-1.5),
        ln_gamma(f64::NAN),
        ln_beta(-1.0, 20.0),
        ln_beta(f64::NAN, 20.0),
        incomplete_beta(1.0, 2.0, 1.1),
        incomplete_beta(0.0, 2.0, 0.5),
        incomplete_beta(1.0, f64::INFINITY, 0.5),
        normal_cdf(f64::NAN),
        normal_quantile(-0.1),
        normal_quantile(f64::NAN),
        student_cdf(f64::NAN, 3.0),
        student_cdf(1.0, 0.0),
        student_cdf(1.0, f64::NAN),
        student_quantile(1.5, 3.0),
        student_quantile(0.5, -3.0),
    ] {
        assert!(nan.is_nan(), "{nan}");
    }
    assert_eq!(student_quantile(0.0, 3.0), f64::NEG_INFINITY);
    assert_eq!(student_quantile(1.0, 3.0), f64::INFINITY);
    assert_eq!(student_quantile(0.5, 3.0), 0.0);
    assert_eq!(student_cdf(f64::INFINITY, 3.0), 1.0);
    assert_eq!(student_cdf(f64::NEG_INFINITY, 1e9), 0.0);
    assert_eq!(
        (normal_cdf(f64::NEG_INFINITY), normal_cdf(f64::INFINITY)),
        (0.0, 1.0)
    );
    assert!(student_critical(0.95, 0.0).is_err() && student_critical(1.0, 5.0).is_err());
}

proptest! {
    #[test]
    fn gamma_and_beta_agree_with_the_oracle(a in 0.01_f64..500.0, b in 0.01_f64..500.0) {
        close(ln_gamma(a), gamma::ln_gamma(a), 1e-12);
        close(ln_beta(a, b), beta::ln_beta(a, b), 1e-11);
    }

    #[test]
    fn the_incomplete_beta_function_agrees_with_the_oracle(
        a in 0.05_f64..300.0,
        b in 0.05_f64..300.0,
        x in 0.0_f64..=1.0,
    ) {
        close(incomplete_beta(a, b, x), beta::beta_reg(a, b, x), 1e-10);
        close(incomplete_beta(a, b, x) + incomplete_beta(b, a, 1.0 - x), 1.0, 1e-10);
    }

    #[test]
    fn the_normal_distribution_agrees_with_the_oracle(z in -8.0_f64..8.0, p in 1e-9_f64..1.0) {
        let oracle = Normal::new(0.0, 1.0).unwrap();
        close(normal_cdf(z), oracle.cdf(z), 1e-10);
        close(erfc(z), erf::erfc(z), 1e-10);
        prop_assert!((normal_cdf(normal_quantile(p)) - p).abs() <= 1e-14);
    }

    #[test]
    fn students_distribution_agrees_with_the_oracle(t in -50.0_f64..50.0, df in 0.5_f64..2000.0) {
        let oracle = StudentsT::new(0.0, 1.0, df).unwrap();
        close(student_cdf(t, df), oracle.cdf(t), 1e-10);
    }

    #[test]
    fn fishers_distribution_agrees_with_the_oracle(
        f in 0.0_f64..40.0,
        above in 0.5_f64..200.0,
        below in 0.5_f64..2000.0,
    ) {
        let oracle = FisherSnedecor::new(above, below).unwrap();
        close(fisher_upper_tail(f, above, below), oracle.sf(f), 1e-10);
    }

    #[test]
    fn students_quantile_inverts_its_distribution(
        p in 1e-6_f64..=0.999_999,
        df in 0.5_f64..1e8,
    ) {
        let t = student_quantile(p, df);
        let tail = p.min(1.0 - p);
        let back = student_cdf(-t.abs(), df);
        prop_assert!((back / tail - 1.0).abs() < 1e-9, "{p} {df}: {t}, back {back}");
    }
}
