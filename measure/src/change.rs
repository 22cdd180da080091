//! A ratio of two sides with its interval, the claim that it allows, and the words for it.
//!
//! The claim follows from the interval alone, so that both cannot contradict each other. Speed is
//! the inverse of time: a ratio of times of 0.5 is 2 x faster, one of 1.25 is 25 % slower.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// From this factor on a change is told as a factor, below it in per cent.
const FACTOR_MIN: f64 = 2.0;

/// The direction of better values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Better {
    /// Lower is better: times and costs.
    #[default]
    Lower,
    /// Higher is better: IOPS and throughput.
    Higher,
}

/// The possible claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The changed side is significantly faster, or has the higher rate.
    Faster,
    /// The changed side is significantly slower, or has the lower rate.
    Slower,
    /// The whole interval lies within the margin of equivalence.
    Equivalent,
    /// Neither significant nor equivalent: no claim.
    Open,
}

/// The change from `base` to `changed`, as the ratio `changed / base`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The ratio of the values, not of the speeds.
    pub ratio: Interval,
    /// The direction of better values.
    pub better: Better,
    /// The share within which both count as equivalent: 0.01 for 1 %.
    pub same_within: f64,
    /// Whether the interval has the wanted confidence; where it does not, nothing is significant.
    pub covers: bool,
}

impl Change {
    /// A ratio whose interval was asked to cover `confidence`.
    pub fn new(ratio: Interval, confidence: f64, better: Better, same_within: f64) -> Self {
        Self {
            ratio,
            better,
            same_within,
            covers: ratio.confidence >= confidence * (1.0 - 1e-9),
        }
    }

    /// The claim that the interval of the change allows.
    pub fn claim(&self) -> Claim {
        let Interval { low, high, .. } = self.ratio;
        let margin = 1.0 + self.same_within;
        if !self.covers || low.is_nan() || high.is_nan() {
            return Claim::Open;
        }
        if low > 1.0 / margin && high < margin {
            return Claim::Equivalent;
        }
        match (high < 1.0, low > 1.0, self.better) {
            (true, _, Better::Lower) | (_, true, Better::Higher) => Claim::Faster,
            (true, _, Better::Higher) | (_, true, Better::Lower) => Claim::Slower,
            _ => Claim::Open,
        }
    }

    /// Whether the interval excludes 1.
    pub fn is_significant(&self) -> bool {
        self.covers && !self.ratio.contains(1.0)
    }

    /// The smallest change that an interval as wide as this one would exclude 1 with, as a share.
    pub(crate) fn detectable(&self) -> f64 {
        let Interval {
            estimate,
            low,
            high,
            ..
        } = self.ratio;
        let log = |a: f64, b: f64| (a / b).ln();
        let half = log(high, estimate).max(log(estimate, low));
        if half.is_finite() {
            half.exp() - 1.0
        } else {
            f64::INFINITY
        }
    }

    /// The words for a quantity that is no speed: `2.0 x more (1.8 to 2.2)`, `25 % less`.
    pub fn of_an_amount(&self) -> String {
        let Interval {
            estimate,
            low,
            high,
            ..
        } = self.ratio;
        match self.claim() {
            Claim::Equivalent | Claim::Open => self.to_string(),
            _ if estimate > 1.0 => {
                let ratios = [estimate, low, high];
                in_words("more", ratios, ratios.map(gain))
            }
            _ => {
                let less = [estimate, high, low];
                let percents = less.map(|ratio| (1.0 - ratio) * 100.0);
                in_words("less", less.map(|ratio| 1.0 / ratio), percents)
            }
        }
    }

    /// How many times as fast the changed side is, with the ends of the interval in that order.
    fn speeds(&self) -> [f64; 3] {
        let Interval {
            estimate,
            low,
            high,
            ..
        } = self.ratio;
        match self.better {
            Better::Higher => [estimate, low, high],
            Better::Lower => [1.0 / estimate, 1.0 / high, 1.0 / low],
        }
    }
}

/// `3.6 x faster (2.5 to 5.4)`, `12 % slower (10 to 14)`, `equivalent within 1 %`,
/// `not significant (differences below 4 % would not be seen)`.
impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speeds = self.speeds();
        match self.claim() {
            Claim::Faster => write!(out, "{}", in_words("faster", speeds, speeds.map(gain))),
            Claim::Slower => {
                let [estimate, low, high] = speeds;
                let times = [1.0 / estimate, 1.0 / high, 1.0 / low];
                write!(out, "{}", in_words("slower", times, times.map(gain)))
            }
            Claim::Equivalent => {
                let within = percent(self.same_within * 100.0, 2);
                write!(out, "equivalent within {within} %")
            }
            Claim::Open if !self.covers => {
                write!(out, "no verdict: too few observations for this confidence")
            }
            Claim::Open => {
                let detectable = self.detectable();
                let words = match detectable {
                    share if share.is_finite() && share < FACTOR_MIN => {
                        format!("{} %", percent(share * 100.0, 2))
                    }
                    share if share.is_finite() => format!("{} x", digits(share + 1.0)),
                    _ => return write!(out, "not significant (no difference would be seen)"),
                };
                write!(
                    out,
                    "not significant (differences below {words} would not be seen)"
                )
            }
        }
    }
}

/// What a factor adds, in per cent.
fn gain(factor: f64) -> f64 {
    (factor - 1.0) * 100.0
}

/// A factor from [`FACTOR_MIN`] on, else per cent, each with the ends of its interval.
fn in_words(word: &str, factors: [f64; 3], percents: [f64; 3]) -> String {
    if factors[0] >= FACTOR_MIN {
        let [estimate, low, high] = factors.map(digits);
        return format!("{estimate} x {word} ({low} to {high})");
    }
    let decimals = match (percents[2] - percents[1]).abs() {
        step if step >= 10.0 => 0,
        step if step >= 1.0 => 1,
        step if step >= 0.1 => 2,
        _ => 3,
    };
    let [estimate, low, high] = percents.map(|percent| format!("{percent:.decimals$}"));
    format!("{estimate} % {word} ({low} to {high})")
}

/// A factor with two digits that count.
fn digits(factor: f64) -> String {
    match factor {
        factor if factor < 9.95 => format!("{factor:.1}"),
        factor if factor < 999.5 => format!("{factor:.0}"),
        factor if factor.is_finite() => {
            let scale = 10_f64.powi(factor.log10().floor() as i32 - 1);
            format!("{:.0}", (factor / scale).round() * scale)
        }
        _ => "inf".to_owned(),
    }
}

/// A percentage with so many digits that count, without trailing zeros.
fn percent(value: f64, digits: i32) -> String {
    if value <= 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    let decimals = (digits - 1 - value.log10().floor() as i32).clamp(0, 4) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(estimate: f64, low: f64, high: f64, better: Better) -> Change {
        let ratio = Interval {
            estimate,
            low,
            high,
            confidence: 0.961,
        };
        Change::new(ratio, 0.95, better, 0.01)
    }

    #[test]
    fn the_words_are_those_of_speed() {
        let lower = |estimate, low, high| change(estimate, low, high, Better::Lower).to_string();
        for (words, said) in [
            (lower(0.28, 0.185, 0.4), "3.6 x faster (2.5 to 5.4)"),
            (lower(533.0, 480.0, 590.0), "533 x slower (480 to 590)"),
            (lower(1.12, 1.1, 1.14), "12.0 % slower (10.0 to 14.0)"),
            (lower(0.8, 0.7, 0.9), "25 % faster (11 to 43)"),
            (lower(1.001, 0.995, 1.005), "equivalent within 1 %"),
            (
                lower(1.02, 0.98, 1.06),
                "not significant (differences below 4.1 % would not be seen)",
            ),
        ] {
            assert_eq!(words, said);
        }
        let rate = change(2.0, 1.5, 2.5, Better::Higher);
        assert_eq!(rate.to_string(), "2.0 x faster (1.5 to 2.5)");
        let mut few = change(2.0, 1.5, 2.5, Better::Lower);
        few.covers = false;
        assert_eq!(few.claim(), Claim::Open);
        assert!(few.to_string().starts_with("no verdict"));
    }

    #[test]
    fn an_amount_is_more_or_less_and_its_percentage_is_of_the_base() {
        let lower = |estimate, low, high| change(estimate, low, high, Better::Lower);
        for (one, words) in [
            (lower(2.0, 1.8, 2.2), "2.0 x more (1.8 to 2.2)"),
            (lower(0.75, 0.7, 0.8), "25 % less (20 to 30)"),
            (lower(0.25, 0.2, 0.4), "4.0 x less (2.5 to 5.0)"),
            (lower(1.12, 1.1, 1.14), "12.0 % more (10.0 to 14.0)"),
            (lower(1.001, 0.995, 1.005), "equivalent within 1 %"),
        ] {
            assert_eq!(one.of_an_amount(), words);
        }
    }

    proptest! {
        #[test]
        fn claim_and_interval_never_contradict(
            low in 0.01_f64..10.0,
            up in 1.0_f64..5.0,
            more in 1.0_f64..5.0,
        ) {
            for better in [Better::Lower, Better::Higher] {
                let one = change(low * up, low, low * up * more, better);
                let excludes = !one.ratio.contains(1.0);
                match one.claim() {
                    Claim::Faster | Claim::Slower => prop_assert!(excludes),
                    Claim::Open => prop_assert!(!excludes),
                    Claim::Equivalent => prop_assert!(one.ratio.high < 1.0101),
                }
                prop_assert!(!one.to_string().contains("NaN"));
            }
        }
    }
}
