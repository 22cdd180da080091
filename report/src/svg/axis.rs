//! Where a value lies on an axis, and which values are written beside it.

use crate::plot::{Axis, Fitting, Scale};
use ugeom_measure::units::{duration_human, grouped, size_exact, size_human};

/// The fewest and the most ticks of an axis of any length.
const TICKS_MIN: usize = 3;
const TICKS_MAX: usize = 12;
/// A linear axis goes on behind its last value for this share of its length.
const BEHIND: f64 = 0.06;
/// An axis follows the ends of intervals beyond the estimates for this share of the length that the
/// estimates take, or for so many places of a logarithmic one; an interval that goes farther leaves
/// it. One value that is hardly known does not flatten all others.
const BEYOND: f64 = 1.0;
const BEYOND_PLACES: f64 = 1.0;

/// An axis with its ends. Places are values after the scale: on a logarithmic axis the logarithm.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    axis: Axis,
    /// The unit in which values are written.
    pub fitting: Fitting,
    /// The place of the lower end.
    pub low: f64,
    /// The place of the upper end; above the lower one.
    pub high: f64,
    /// The values that are written, from the lower end.
    pub ticks: Vec<Tick>,
    /// The text beside the axis.
    pub title: String,
}

/// A value that is written beside an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Position on the axis.
    pub place: f64,
    pub label: String,
}

impl Spread {
    /// An axis of at most so many ticks, on which all these values have a place, as far as the
    /// scale has one for them, and the ends of their intervals where they are near; none when it
    /// has for none, or when they are too far apart for the arithmetic.
    pub fn of(
        axis: &Axis,
        values: impl IntoIterator<Item = f64>,
        ends: impl IntoIterator<Item = f64>,
        ticks_max: usize,
    ) -> Option<Self> {
        let scale = axis.scale;
        let values: Vec<f64> = values.into_iter().filter(|at| at.is_finite()).collect();
        let places = values.iter().filter_map(|value| place(scale, *value));
        let (low, high) = range(places)?;
        let (from, to) = match scale {
            Scale::Linear => (low.min(0.0), high.max(0.0)),
            _ => (low, high),
        };
        let beyond = match scale {
            // Estimates that are all zero take no length.
            Scale::Linear if from == to => f64::INFINITY,
            Scale::Linear => (to - from) * BEYOND,
            _ => BEYOND_PLACES.max(to - from),
        };
        let ends = ends.into_iter().filter_map(|value| place(scale, value));
        let near = ends.map(|end| end.clamp(from - beyond, to + beyond));
        let whole = range(near.chain([low, high]).filter(|end| end.is_finite()))?;
        let (low, high) = padded(scale, whole);
        let length = high - low;
        if !(length.is_finite() && length > 0.0) {
            return None;
        }
        let fitting = match scale {
            Scale::Linear => Fitting::of(axis, [low, high]),
            _ => Fitting::of(axis, values),
        };
        let ticks_max = ticks_max.clamp(TICKS_MIN, TICKS_MAX);
        let ticks = ticks(axis, low, high, &fitting, ticks_max);
        let title = match (unit_in_label(axis), fitting.unit.as_str()) {
            (true, _) | (_, "") => axis.title.clone(),
            (false, unit) => format!("{} ({unit})", axis.title),
        };
        Some(Self {
            axis: axis.clone(),
            fitting,
            low,
            high,
            ticks,
            title,
        })
    }

    /// The place of a value; none where it has none.
    pub fn place(&self, value: f64) -> Option<f64> {
        place(self.axis.scale, value)
    }

    /// The place of a value, or the end of the axis that is nearer to it.
    pub fn nearest(&self, value: f64) -> f64 {
        let place = self.place(value).unwrap_or(match value > 0.0 {
            true => self.high,
            false => self.low,
        });
        place.clamp(self.low, self.high)
    }

    /// Whether a value lies behind an end of the axis.
    pub fn leaves(&self, value: f64) -> bool {
        let place = self.place(value);
        !place.is_some_and(|place| (self.low..=self.high).contains(&place))
    }

    /// Where a place is between two pixels, those of the ends.
    pub fn pixel(&self, place: f64, (from, to): (f64, f64)) -> f64 {
        from + (place - self.low) / (self.high - self.low) * (to - from)
    }

    /// A value of the axis in words, with its unit.
    pub fn words(&self, value: f64) -> String {
        match self.axis.unit.as_str() {
            "bytes" if value >= 0.0 => size_exact(value.round() as u64),
            "ns" => duration_human(value),
            "" => crate::digits::exact(value),
            unit => format!("{} {unit}", crate::digits::exact(value)),
        }
    }
}

/// The least and the largest of places.
fn range(places: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    places.fold(None, |ends, place| match ends {
        None => Some((place, place)),
        Some((low, high)) => Some((f64::min(low, place), f64::max(high, place))),
    })
}

fn place(scale: Scale, value: f64) -> Option<f64> {
    let place = match scale {
        Scale::Linear => value,
        Scale::Log2 => value.log2(),
        Scale::Log10 => value.log10(),
        Scale::Nines if value >= 0.0 => -(1.0 - value).log10(),
        Scale::Nines => return None,
    };
    // The logarithm of zero is infinite, that of less no number.
    place.is_finite().then_some(place)
}

fn padded(scale: Scale, (low, high): (f64, f64)) -> (f64, f64) {
    match scale {
        Scale::Linear => {
            let (low, high) = (low.min(0.0), high.max(0.0));
            let length = high - low;
            let behind = if length > 0.0 { length * BEHIND } else { 1.0 };
            let before = if low < 0.0 { behind } else { 0.0 };
            let behind = if high > 0.0 || low == 0.0 {
                behind
            } else {
                0.0
            };
            (low - before, high + behind)
        }
        Scale::Log2 | Scale::Log10 => {
            let margin = ((high - low) * 0.04).max(0.05);
            (low - margin, high + margin)
        }
        Scale::Nines => (0.0, high.max(0.5) * 1.02),
    }
}

/// Whether each tick is written with its unit, so that the title need not have it.
fn unit_in_label(axis: &Axis) -> bool {
    axis.scale != Scale::Linear && matches!(axis.unit.as_str(), "ns" | "bytes")
}

fn ticks(axis: &Axis, low: f64, high: f64, fitting: &Fitting, most: usize) -> Vec<Tick> {
    match axis.scale {
        Scale::Linear => {
            let least = if axis.counts { 1.0 } else { 0.0 };
            linear((low, high), fitting.size, most, least)
        }
        Scale::Log2 => {
            let places = thinned(low, high, most);
            let tick = |place: f64| Tick {
                place,
                label: labelled(axis, place.exp2()),
            };
            places.into_iter().map(tick).collect()
        }
        Scale::Log10 => tens(axis, low, high, fitting, most),
        Scale::Nines => nines(high),
    }
}

/// The whole places from end to end; every second or third where they are many.
fn thinned(low: f64, high: f64, most: usize) -> Vec<f64> {
    let count = (high.floor() - low.ceil()).max(0.0) as usize + 1;
    let every = count.div_ceil(most);
    (0..count)
        .step_by(every)
        .map(|step| low.ceil() + step as f64)
        .filter(|place| *place <= high)
        .collect()
}

/// [`nice`] of this share of a nice step is the nice step below it.
const SMALLER: f64 = 0.39;

/// Steps of 1, 2 or 5 times a power of ten, none below `least`.
fn linear((low, high): (f64, f64), unit: f64, most: usize, least: f64) -> Vec<Tick> {
    let (low, high) = (low / unit, high / unit);
    let least = least / unit;
    let mut step = nice((high - low) / most.saturating_sub(2).max(2) as f64).max(least);
    let behind_first = |step: f64| (high / step).floor() - (low / step).ceil();
    // One tick is no scale: an axis around zero may have no other multiple of its step.
    while behind_first(step) < 1.0 && SMALLER * step >= least {
        step = nice(SMALLER * step);
    }
    let first = (low / step).ceil();
    let count = behind_first(step).clamp(0.0, TICKS_MAX as f64) as usize + 1;
    let places: Vec<f64> = (0..count).map(|n| (first + n as f64) * step).collect();
    let largest = places
        .iter()
        .fold(0.0_f64, |most, place| most.max(place.abs()));
    places
        .into_iter()
        .map(|place| Tick {
            place: place * unit,
            label: number(place, step, largest),
        })
        .collect()
}

fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= step);
    factor.unwrap_or(10.0) * power
}

/// Powers of ten; with 2 and 5 times them where the axis is short, and other values where it is
/// shorter.
fn tens(axis: &Axis, low: f64, high: f64, fitting: &Fitting, most: usize) -> Vec<Tick> {
    let decades = high - low;
    if decades < 0.7 {
        let (from, to) = (10f64.powf(low), 10f64.powf(high));
        let inside = |tick: &Tick| tick.place >= from;
        let ticks = linear((from, to), fitting.size, most, 0.0)
            .into_iter()
            .filter(inside);
        return ticks
            .map(|tick| {
                let label = if unit_in_label(axis) {
                    labelled(axis, tick.place)
                } else {
                    tick.label
                };
                Tick {
                    place: tick.place.log10(),
                    label,
                }
            })
            .collect();
    }
    let is_short = decades <= most as f64 / 3.0;
    let factors: &[f64] = if is_short { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = match is_short {
        true => (low.floor() as i64..=high.floor() as i64)
            .map(|power| power as f64)
            .collect(),
        false => thinned(low, high, most),
    };
    let mut ticks = Vec::new();
    for power in powers {
        for factor in factors {
            let place = power + factor.log10();
            if (low..=high).contains(&place) {
                let value = factor * 10f64.powf(power);
                let label = match unit_in_label(axis) {
                    true => labelled(axis, value),
                    false => number(
                        value / fitting.size,
                        value / fitting.size,
                        value / fitting.size,
                    ),
                };
                ticks.push(Tick { place, label });
            }
        }
    }
    ticks
}

/// The median, and then 0.9, 0.99, 0.999.
fn nines(high: f64) -> Vec<Tick> {
    let mut ticks = vec![
        Tick {
            place: 0.0,
            label: "0 %".to_owned(),
        },
        Tick {
            place: 2f64.log10(),
            label: "50 %".to_owned(),
        },
    ];
    // Beyond so many nines a double has no more.
    for count in 1..=(high.min(16.0) as usize) {
        let nines = "9".repeat(count);
        let label = match count {
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            _ => format!("{}.{} %", &nines[..2], &nines[2..]),
        };
        ticks.push(Tick {
            place: count as f64,
            label,
        });
    }
    ticks
}

/// A value of a logarithmic axis.
fn labelled(axis: &Axis, value: f64) -> String {
    match axis.unit.as_str() {
        "ns" => duration_human(value),
        "bytes" => size_human(value.round() as u64),
        _ => number(value, value, value),
    }
}

/// A number with as many decimals as steps of `step` need, in thousands, millions and so on where
/// the largest of its axis is long.
fn number(value: f64, step: f64, largest: f64) -> String {
    const PREFIXES: [(f64, &str); 3] = [(1e12, " T"), (1e9, " G"), (1e6, " M")];
    if value == 0.0 {
        return "0".to_owned();
    }
    if largest >= 1e15 || step.abs() < 1e-6 {
        return format!("{value:.1e}");
    }
    let prefix = PREFIXES.into_iter().find(|(size, _)| largest >= *size);
    let (size, prefix) = prefix.unwrap_or((1.0, ""));
    let (value, step) = (value / size, step.abs() / size);
    let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let whole = whole.parse::<u64>().map_or(whole.to_owned(), grouped);
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{whole}{rest}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let spread = Spread::of(axis, values.iter().copied(), [], 10).unwrap();
        spread.ticks.iter().map(|tick| tick.label.clone()).collect()
    }

    #[test]
    fn an_axis_around_zero_has_more_than_one_tick() {
        for (low, high) in [(-16.0, 31.0), (-1e-9, 2e-9), (-0.3, 0.9), (-49.0, 49.0)] {
            let ticks = linear((low, high), 1.0, 3, 0.0);
            let labels: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
            assert!(
                (2..=5).contains(&ticks.len()),
                "{low} to {high}: {labels:?}"
            );
        }
    }

    #[test]
    fn ticks_are_round_numbers_from_end_to_end() {
        let linear = Axis::linear("time", "ns");
        assert_eq!(
            labels(&linear, &[12.0, 26.5]),
            ["0", "5", "10", "15", "20", "25"]
        );
        assert_eq!(
            labels(&linear, &[-0.3, 0.4]),
            ["-0.3", "-0.2", "-0.1", "0", "0.1", "0.2", "0.3", "0.4"]
        );
        assert_eq!(
            labels(&linear, &[2.5e6]),
            ["0", "500", "1,000", "1,500", "2,000", "2,500"],
            "microseconds"
        );
        let records = Axis::linear("records", "").of_counts();
        assert_eq!(labels(&records, &[-1.0]), ["-1", "0"]);
        let plain = Axis::linear("requests", "");
        assert_eq!(
            labels(&plain, &[2.5e6]),
            ["0", "0.5 M", "1.0 M", "1.5 M", "2.0 M", "2.5 M"]
        );
        assert_eq!(
            labels(&plain, &[14_577.0]),
            [
                "0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000", "14,000"
            ]
        );
        let bytes = Axis::bytes("block size");
        assert_eq!(
            labels(&bytes, &[512.0, 2048.0]),
            ["512 B", "1 KiB", "2 KiB"]
        );
        let log = Axis::log10("time", "ns");
        assert_eq!(
            labels(&log, &[1.0, 1e4]),
            ["1 ns", "10 ns", "100 ns", "1 us", "10 us"]
        );
        assert_eq!(
            labels(&log, &[90.0, 1000.0]),
            ["100 ns", "200 ns", "500 ns", "1 us"]
        );
        let zero = Spread::of(&linear, [0.0, 0.0], [-30.0, 40.0], 10).unwrap();
        assert!(!zero.leaves(-30.0) && !zero.leaves(40.0), "{zero:?}");
        let rate = Axis::log10("rate", "MB/s");
        assert_eq!(labels(&rate, &[50.0, 60.0]), ["45", "50", "55", "60", "65"]);
        let nines = Axis::quantiles("share of reads");
        let expected = ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"];
        assert_eq!(labels(&nines, &[0.0, 0.99995]), expected);
    }

    #[test]
    fn a_title_has_the_unit_unless_every_tick_has_it() {
        let title = |axis: &Axis| Spread::of(axis, [1.0, 10.0], [], 10).unwrap().title;
        assert_eq!(title(&Axis::linear("time", "ns")), "time (ns)");
        let long = Spread::of(&Axis::linear("time", "ns"), [333e6], [], 10);
        assert_eq!(long.unwrap().title, "time (ms)");
        assert_eq!(title(&Axis::log10("time", "ns")), "time");
        assert_eq!(title(&Axis::log10("rate", "MB/s")), "rate (MB/s)");
    }

    #[test]
    fn values_without_a_place_are_left_out() {
        let log = Axis::log10("rate", "MB/s");
        assert_eq!(
            Spread::of(&log, [0.0, -1.0, f64::NAN, f64::INFINITY], [], 10),
            None
        );
        let spread = Spread::of(&log, [0.0, 1.0, 100.0], [], 10).unwrap();
        assert_eq!((spread.place(0.0), spread.place(10.0)), (None, Some(1.0)));
        assert_eq!(spread.nearest(-3.0), spread.low);
        assert_eq!(spread.nearest(1e9), spread.high);
        assert_eq!(
            Spread::of(&Axis::linear("x", ""), [-1e308, 1e308], [], 10),
            None
        );
        let quantiles = Spread::of(&Axis::quantiles("q"), [0.5, 1.0, -0.5], [], 10).unwrap();
        assert_eq!((quantiles.place(1.0), quantiles.place(-0.5)), (None, None));
    }

    proptest::proptest! {
        #[test]
        fn any_values_have_an_axis_or_none(values in proptest::collection::vec(
            proptest::num::f64::ANY, 0..5)) {
            for axis in [Axis::linear("a", "ns"), Axis::log10("a", "ns"), Axis::log10("a", ""),
                         Axis::bytes("a"), Axis::quantiles("a")] {
                let all = || values.iter().copied();
                let Some(spread) = Spread::of(&axis, all(), all(), 10) else { continue };
                proptest::prop_assert!(spread.ticks.len() <= 40);
                for value in &values {
                    if spread.place(*value).is_some() {
                        proptest::prop_assert!(!spread.leaves(*value), "{value} on {spread:?}");
                    }
                    let place = spread.nearest(*value);
                    proptest::prop_assert!((spread.low..=spread.high).contains(&place));
                }
            }
        }
    }
}
