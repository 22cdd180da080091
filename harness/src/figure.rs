//! A figure of a result: the quantity, its interval, and its target.

use serde::{Deserialize, Serialize};
use ugeom_measure::units::duration_measured;
use ugeom_measure::{Center, Interval, Spread};

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the others are names of units")]
pub enum Unit {
    /// A time in nanoseconds.
    Ns,
    /// Nanoseconds for each layer.
    NsPerLayer,
    /// A ratio without a unit, printed with `x`.
    Times,
    Percent,
    Bytes,
    /// So many a second.
    PerSecond,
    BytesPerSecond,
}

/// A figure with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// A stable name, such as `geom.cost`.
    pub id: String,
    /// The quantity, in plain words.
    pub what: String,
    /// The unit of the interval.
    pub unit: Unit,
    /// The estimate and its interval.
    pub interval: Interval,
    /// The probability of an estimate this far from zero if the truth were zero; for differences.
    pub p_value: Option<f64>,
    /// Whether the interval, which holds for all differences of the result together, excludes 0.
    #[serde(rename = "proven")]
    pub significant: Option<bool>,
    /// The target value.
    pub goal: Option<Goal>,
    /// The observations behind it, smallest first: one for each process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
}

/// The least confidence of an interval that is printed, and that of every family of claims.
pub const CONFIDENCE: f64 = 0.95;

/// The target value of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The whole interval has to lie below this value.
    Under(f64),
    /// The whole interval has to lie at this value or above it.
    AtLeast(f64),
}

/// Whether a goal is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// The whole interval lies on the right side.
    Yes,
    /// The whole interval lies on the wrong side.
    No,
    /// The goal lies inside the interval.
    Open,
}

impl Reached {
    /// The word in a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "reached",
            Self::No => "not met",
            Self::Open => "undecided",
        }
    }
}

impl Goal {
    /// Whether the interval reaches the goal, misses it or does neither.
    pub fn judge(self, interval: &Interval) -> Reached {
        let (good, bad) = match self {
            Self::Under(limit) => (interval.high < limit, interval.low >= limit),
            Self::AtLeast(limit) => (interval.low >= limit, interval.high < limit),
        };
        match (good, bad) {
            (true, _) => Reached::Yes,
            (_, true) => Reached::No,
            _ => Reached::Open,
        }
    }
}

impl Figure {
    /// A figure that is no difference: a mean, a ratio.
    pub fn plain(id: &str, what: &str, unit: Unit, interval: Interval) -> Self {
        let (id, what) = (id.to_owned(), what.to_owned());
        Self {
            id,
            what,
            unit,
            interval,
            p_value: None,
            significant: None,
            goal: None,
            values: Vec::new(),
        }
    }

    /// A quantity that moves with the machine, a time or a rate, with its spread.
    pub fn absolute(id: &str, what: &str, unit: Unit, spread: &Spread) -> Self {
        Self {
            values: spread.sorted().to_vec(),
            ..Self::plain(id, what, unit, spread.interval())
        }
    }

    /// The middle of contrasts within rounds that claims nothing: a ratio, a share.
    pub fn typical(id: &str, what: &str, unit: Unit, center: &Center) -> Option<Self> {
        let interval = center.at(CONFIDENCE).ok()?;
        Some(Self {
            values: center.sorted().to_vec(),
            ..Self::plain(id, what, unit, interval)
        })
    }

    /// A difference, or a ratio, that is judged: significant when its interval excludes 0, or 1
    /// for a ratio. Of a `family` of so many comparisons the interval is that of all together
    /// (Bonferroni), so that interval and verdict say the same. Where there are too few
    /// observations for that, and the interval excludes 0 all the same, there is no verdict.
    pub fn judged(
        id: &str,
        what: &str,
        unit: Unit,
        center: &Center,
        family: usize,
    ) -> Option<Self> {
        let confidence = 1.0 - (1.0 - CONFIDENCE) / family.max(1) as f64;
        let interval = center.at(confidence).ok()?;
        let null = if unit == Unit::Times { 1.0 } else { 0.0 };
        Some(Self {
            p_value: Some(center.p_value(null)),
            significant: match (interval.contains(null), interval.confidence >= confidence) {
                (true, _) => Some(false),
                (false, enough) => enough.then_some(true),
            },
            values: center.sorted().to_vec(),
            ..Self::plain(id, what, unit, interval)
        })
    }

    /// Whether it is significant and further from 0 than `margin`, so that it may be called an
    /// effect.
    pub fn is_effect(&self, margin: f64) -> bool {
        self.significant == Some(true)
            && (self.interval.low > margin || self.interval.high < -margin)
    }

    /// The farther end of the interval from 0: "no more than".
    pub fn at_most(&self) -> String {
        value(
            self.interval.low.abs().max(self.interval.high.abs()),
            self.unit,
        )
    }

    /// The same figure with a goal.
    #[must_use]
    pub fn with_goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    /// Whether the goal is reached; none without a goal.
    pub fn reached(&self) -> Option<Reached> {
        Some(self.goal?.judge(&self.interval))
    }

    /// `1.94 ns (1.9 to 1.98)`: the estimate and its interval.
    pub fn amount(&self) -> String {
        amount(&self.interval, self.unit)
    }

    /// The estimate with its unit, without the interval.
    pub fn estimate(&self) -> String {
        value(self.interval.estimate, self.unit)
    }

    /// Whether it is a difference that was not significant.
    pub fn is_not_significant(&self) -> bool {
        self.significant == Some(false)
    }
}

/// An interval as text, a spread in square brackets; a unit that all values share stands once.
pub fn amount(interval: &Interval, unit: Unit) -> String {
    let values = [interval.estimate, interval.low, interval.high];
    let [estimate, low, high] = values.map(|one| value(one, unit));
    let ends = |low: &str, high: &str| interval.ends(low, high);
    let split = |text: &'_ str| {
        text.split_once(' ')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    if interval.low == interval.high {
        // A sum or a known value: there is no interval.
        return estimate;
    }
    match (split(&low), split(&high), split(&estimate)) {
        (Some((low, a)), Some((high, b)), Some((_, c))) if a == b && b == c => {
            format!("{estimate} {}", ends(&low, &high))
        }
        _ => format!("{estimate} {}", ends(&low, &high)),
    }
}

/// A value in words.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns | Unit::NsPerLayer => duration_measured(value),
        Unit::Times => format!("{value:.*} x", digits(value)),
        Unit::Percent => percent(value),
        Unit::Bytes => ugeom_measure::units::size_human(value.max(0.0).round() as u64),
        Unit::PerSecond => iops(value),
        Unit::BytesPerSecond => rate(value),
    }
}

/// Requests per second, with three digits that count.
fn iops(value: f64) -> String {
    let (scaled, prefix) = match value.abs() {
        1e9.. => (value / 1e9, "G "),
        1e6.. => (value / 1e6, "M "),
        1e3.. => (value / 1e3, "k "),
        _ => (value, ""),
    };
    format!("{scaled:.*} {prefix}IOPS", digits(scaled))
}

/// Digits behind the point of a value with three digits that count.
fn digits(value: f64) -> usize {
    match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    }
}

/// Three digits that count, in the decimal units that rates of devices are published in.
fn rate(bytes_per_second: f64) -> String {
    let units = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    let fits = |unit: &&(f64, &str)| bytes_per_second >= 0.9995 * unit.0;
    let (scale, unit) = units.iter().find(fits).copied().unwrap_or((1.0, "B/s"));
    let value = bytes_per_second / scale;
    let digits = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.digits$} {unit}")
}

/// A percentage with two digits that count, so that a small share does not become 0.
fn percent(value: f64) -> String {
    let magnitude = value.abs();
    let digits = if magnitude >= 10.0 || magnitude == 0.0 {
        0
    } else {
        (1.0 - magnitude.log10().floor()).clamp(0.0, 6.0) as usize
    };
    format!("{value:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_judged_by_the_whole_interval() {
        let interval = |low, high| Interval {
            estimate: 1.5,
            low,
            high,
            confidence: 0.95,
        };
        let under = Goal::Under(2.0);
        assert_eq!(under.judge(&interval(1.0, 1.9)), Reached::Yes);
        assert_eq!(under.judge(&interval(1.0, 2.0)), Reached::Open);
        assert_eq!(under.judge(&interval(2.0, 3.0)), Reached::No);
        let at_least = Goal::AtLeast(1.9);
        assert_eq!(at_least.judge(&interval(1.9, 2.0)), Reached::Yes);
        assert_eq!(at_least.judge(&interval(1.8, 2.0)), Reached::Open);
        assert_eq!(at_least.judge(&interval(1.2, 1.8)), Reached::No);
    }

    #[test]
    fn amounts_are_written_for_people() {
        let figure = |unit, estimate: f64| {
            Figure::plain(
                "a",
                "b",
                unit,
                Interval::around(estimate, estimate / 10.0, 0.95),
            )
        };
        assert_eq!(figure(Unit::Ns, 5021.0).amount(), "5.02 us (4.52 to 5.52)");
        assert_eq!(
            figure(Unit::NsPerLayer, 1.94).amount(),
            "1.94 ns (1.75 to 2.13)"
        );
        let times = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let time = Figure::absolute("a", "b", Unit::Ns, &times);
        assert_eq!(time.amount(), "3.50 ns [1.50 to 5.50]");
        let sum = Figure::plain("a", "b", Unit::Ns, Interval::exact(1670.0, 0.95));
        assert_eq!(sum.amount(), "1.67 us");
        assert_eq!(figure(Unit::Times, 1.93).amount(), "1.93 x (1.74 to 2.12)");
        assert_eq!(figure(Unit::Times, 151.5).amount(), "152 x (136 to 167)");
        assert_eq!(figure(Unit::Percent, 23.08).amount(), "23 % (21 to 25)");
        assert_eq!(figure(Unit::Percent, 0.0123).estimate(), "0.012 %");
        assert_eq!(figure(Unit::Bytes, 65_536.0).estimate(), "64 KiB");
        let rates = [837_344.0, 23_456_789.0, 42.0, 7.1472e10];
        let rates = rates.map(|it| figure(Unit::PerSecond, it).estimate());
        assert_eq!(
            rates,
            ["837 k IOPS", "23.5 M IOPS", "42.0 IOPS", "71.5 G IOPS"]
        );
        let rates = [23_456_789.0, 1e6].map(|it| figure(Unit::PerSecond, it).amount());
        assert_eq!(rates[0], "23.5 M IOPS (21.1 to 25.8)");
        assert_eq!(rates[1], "1.00 M IOPS (900 k IOPS to 1.10 M IOPS)");
        let rates = [56.0e6, 999.6e6, 7.459e6, 123e6, 12.0]
            .map(|rate| figure(Unit::BytesPerSecond, rate).estimate());
        assert_eq!(
            rates,
            [
                "56.0 MB/s",
                "1.00 GB/s",
                "7.46 MB/s",
                "123 MB/s",
                "12.0 B/s"
            ]
        );
    }

    #[test]
    fn a_claim_and_its_interval_say_the_same() {
        let center = |values: &[f64]| Center::of(values).unwrap();
        let apart: Vec<f64> = (1..=12).map(f64::from).collect();
        let apart = center(&apart);
        let alone = Figure::judged("a", "b", Unit::Ns, &apart, 1).unwrap();
        assert_eq!((alone.interval.low, alone.interval.high), (3.0, 10.0));
        assert!(alone.significant == Some(true) && alone.is_effect(2.9) && !alone.is_effect(3.0));
        assert_eq!(alone.at_most(), "10.0 ns");
        let of_ten = Figure::judged("a", "b", Unit::Ns, &apart, 10).unwrap();
        assert_eq!((of_ten.interval.low, of_ten.interval.high), (1.0, 12.0));
        assert_eq!(of_ten.significant, Some(true));
        // Six processes can show one difference, but not one of two.
        let six: Vec<f64> = (1..=6).map(f64::from).collect();
        let judged = |family| Figure::judged("a", "b", Unit::Ns, &center(&six), family).unwrap();
        assert_eq!(judged(1).significant, Some(true));
        assert_eq!(judged(2).significant, None);
        let ratio = center(&[0.9, 0.95, 1.0, 1.1, 1.2, 1.3]);
        let ratio = Figure::judged("a", "b", Unit::Times, &ratio, 1).unwrap();
        assert_eq!(ratio.significant, Some(false));
    }
}
