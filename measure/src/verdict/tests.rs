//! What may be claimed about known comparisons, and in which words.

use super::*;

fn sample(mean: f64, sd: f64) -> Moments {
    Moments::new(10, mean, sd).unwrap()
}

fn compared(base: Moments, changed: Moments) -> Comparison {
    Comparison::independent(base, changed).unwrap()
}

#[test]
fn the_seeds_steps_are_told_apart() {
    let md9 = sample(26_773.133_2, 342.152_442);
    let (mbr, bsd) = (
        sample(27_077.471_8, 646.937_932),
        sample(28_436.273_3, 209.271_601),
    );
    let rules = Rules::default();
    let step = rules.judge(&compared(md9, mbr)).unwrap();
    assert_eq!(
        step.to_string(),
        "no difference proven (1.9 % would have been)"
    );
    let step = rules.judge(&compared(mbr, bsd)).unwrap();
    assert!(matches!(
        step,
        Verdict::Proven {
            direction: Direction::Slower,
            ..
        }
    ));
    assert_eq!(step.to_string(), "slower, 5 % more (3.2 % to 6.9 %)");
}

#[test]
fn a_rate_that_rises_is_faster() {
    let rules = Rules {
        better: Better::Higher,
        ..Rules::default()
    };
    let verdict = rules.judge(&compared(sample(156_205.0, 900.0), sample(837_344.0, 4e3)));
    assert_eq!(
        verdict.unwrap().to_string(),
        "faster, 436 % more (433 % to 439 %)"
    );
    let verdict = rules.judge(&compared(sample(100.0, 1.0), sample(90.0, 1.0)));
    assert_eq!(
        verdict.unwrap().to_string(),
        "slower, 10 % less (9.1 % to 11 %)"
    );
}

#[test]
fn a_whole_interval_within_the_tolerance_is_the_same() {
    let rules = Rules::default();
    let verdict = rules
        .judge(&compared(sample(1000.0, 1.0), sample(1000.2, 1.0)))
        .unwrap();
    assert!(matches!(verdict, Verdict::SameWithin { proven: None, .. }));
    assert_eq!(verdict.to_string(), "same within 1 %");
    let verdict = rules
        .judge(&compared(sample(1000.0, 1.0), sample(1003.0, 1.0)))
        .unwrap();
    assert_eq!(
        verdict.to_string(),
        "same within 1 %, though slower: 0.3 % more (0.21 % to 0.39 %)"
    );
    // The interval reaches past 1 %: proven, not the same.
    let verdict = rules
        .judge(&compared(sample(1000.0, 1.0), sample(1009.5, 1.0)))
        .unwrap();
    assert!(matches!(
        verdict,
        Verdict::Proven {
            direction: Direction::Slower,
            ..
        }
    ));
    // Too wide for either.
    let verdict = rules
        .judge(&compared(sample(1000.0, 30.0), sample(1001.0, 30.0)))
        .unwrap();
    assert!(matches!(verdict, Verdict::NoDifferenceProven { .. }));
}

#[test]
fn a_difference_that_stands_alone_may_not_stand_among_many() {
    let rules = Rules::default();
    let close = compared(sample(100.0, 5.0), sample(105.0, 5.0));
    assert!((0.0125..0.05).contains(&close.difference.p_value));
    assert!(matches!(
        rules.judge(&close).unwrap(),
        Verdict::Proven { .. }
    ));
    let nothing = compared(sample(100.0, 5.0), sample(100.1, 5.0));
    let among = rules
        .judge_all(&[close, nothing, nothing, nothing])
        .unwrap();
    let Verdict::NoDifferenceProven { smallest, .. } = among[0] else {
        panic!("{} is claimed among four", among[0]);
    };
    assert!(smallest > close.difference.smallest_provable(0.05).unwrap());
    assert!(smallest > 5.0);
}

#[test]
fn a_proven_difference_has_an_interval_that_excludes_none() {
    let rules = Rules::default();
    let step = compared(sample(100.0, 5.0), sample(106.5, 5.0));
    let clear = compared(sample(100.0, 5.0), sample(150.0, 5.0));
    for verdict in rules.judge_all(&[step, clear, clear]).unwrap() {
        let Verdict::Proven {
            difference, ratio, ..
        } = verdict
        else {
            panic!("{verdict}");
        };
        assert!(difference.low > 0.0 && ratio.unwrap().low > 1.0);
    }
}

#[test]
fn intervals_are_as_wide_as_the_number_of_comparisons_asks() {
    let rules = Rules::default();
    let clear = compared(sample(100.0, 5.0), sample(150.0, 5.0));
    let smaller = compared(sample(100.0, 5.0), sample(140.0, 5.0));
    let confidences: Vec<f64> = rules
        .judge_all(&[smaller, clear])
        .unwrap()
        .iter()
        .map(|verdict| match verdict {
            Verdict::Proven { difference, .. } => difference.confidence,
            other => panic!("{other}"),
        })
        .collect();
    assert!((confidences[0] - 0.95).abs() < 1e-12 && (confidences[1] - 0.975).abs() < 1e-12);
    // Alone it is the same within 1 %, among five the claim would be too bold.
    let near = compared(sample(1000.0, 3.0), sample(1006.7, 3.0));
    assert!(matches!(
        rules.judge(&near).unwrap(),
        Verdict::SameWithin { .. }
    ));
    let among = rules.judge_all(&[near; 5]).unwrap();
    assert!(matches!(among[0], Verdict::Proven { .. }), "{}", among[0]);
}

#[test]
fn without_a_ratio_the_difference_itself_is_told() {
    let rules = Rules::default();
    let verdict = rules
        .judge(&compared(sample(0.0, 10.0), sample(1359.0, 20.0)))
        .unwrap();
    assert!(
        matches!(verdict, Verdict::Proven { ratio: None, .. }),
        "{verdict:?}"
    );
    assert!(
        verdict.to_string().starts_with("slower, 1359 more (13"),
        "{verdict}"
    );
    let verdict = rules
        .judge(&compared(sample(0.0, 10.0), sample(1.0, 10.0)))
        .unwrap();
    assert_eq!(
        verdict.to_string(),
        "no difference proven (9.4 would have been)"
    );
}

#[test]
fn impossible_rules_are_refused_and_verdicts_can_be_saved() {
    let comparison = compared(sample(1.0, 0.1), sample(2.0, 0.1));
    for same_within in [-0.1, 1.0, f64::NAN] {
        let rules = Rules {
            same_within,
            ..Rules::default()
        };
        assert!(matches!(
            rules.judge(&comparison),
            Err(Error::OutOfRange { .. })
        ));
    }
    let rules = Rules {
        confidence: 95.0,
        ..Rules::default()
    };
    assert!(matches!(
        rules.judge(&comparison),
        Err(Error::OutOfRange { .. })
    ));
    let verdict = Rules::default().judge(&comparison).unwrap();
    let text = serde_json::to_string(&verdict).unwrap();
    let read: Verdict = serde_json::from_str(&text).unwrap();
    assert_eq!(read.to_string(), verdict.to_string());
}

#[test]
fn numbers_are_written_with_two_digits_that_count() {
    for (value, text) in [
        (0.0, "0"),
        (1.0, "1"),
        (0.5, "0.5"),
        (4.23, "4.2"),
        (0.012_34, "0.012"),
        (12.6, "13"),
        (436.04, "436"),
        (-0.31, "-0.31"),
    ] {
        assert_eq!(digits(value), text);
    }
}
