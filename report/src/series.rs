//! Measurements in the order in which they were made.

use crate::plot::{Axis, Curve, Curves};
use ugeom_harness::document::Document;
use ugeom_measure::Interval;
use ugeom_measure::summary::median;

/// Fewer rounds than this are no series.
const ROUNDS_MIN: usize = 5;
/// More rounds than this are not drawn one by one.
const ROUNDS_MAX: usize = 400;

/// All rounds of all processes, each as a multiple of the median round; none where they are too few
/// or too many.
pub(super) fn rounds<S>(document: &Document<S>) -> Option<Curves> {
    let cases = document.processes.first()?.cases.len();
    let same = document
        .processes
        .iter()
        .filter(|one| one.cases.len() == cases);
    let rounds: Vec<_> = same.flat_map(|one| &one.rounds).collect();
    if !(ROUNDS_MIN..=ROUNDS_MAX).contains(&rounds.len()) {
        return None;
    }
    let time = |round: usize, case: usize| {
        let sample = rounds[round].samples.get(case)?;
        Some(sample.ns_per_iteration()).filter(|ns| *ns > 0.0)
    };
    let middle = |case: usize| {
        let times: Vec<f64> = (0..rounds.len())
            .filter_map(|round| time(round, case))
            .collect();
        median(&times).ok()
    };
    let middles: Vec<Option<f64>> = (0..cases).map(middle).collect();
    let mut curve = Curve::measured("");
    for round in 0..rounds.len() {
        let ratio = |case: usize| Some(time(round, case)? / middles[case]?);
        let mut ratios: Vec<f64> = (0..cases).filter_map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let quantile = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
        if !ratios.is_empty() {
            let [low, estimate, high] = [0.25, 0.5, 0.75].map(quantile);
            let confidence = 0.5;
            let seen = Interval {
                estimate,
                low,
                high,
                confidence,
            };
            curve = curve.point(round as f64 + 1.0, seen);
        }
    }
    let x = Axis::linear("round", "");
    let y = Axis::log10("time to the median round", "x");
    let mut plot = Curves::new("Each round against the median round", x, y);
    plot.push(curve);
    plot.level("", 1.0);
    let mut before = 0;
    for process in document.processes.iter().take(ROUNDS_MAX) {
        // The place between the last round of a process and the first one of the next.
        if before > 0 {
            plot.upright("", before as f64 + 0.5);
        }
        before += process.rounds.len();
    }
    Some(plot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_harness::host::Host;
    use ugeom_harness::{Measured, Round, Sample, Settings};

    fn document(rounds: u64, slow: u64) -> Document<()> {
        let round = |number: u64| {
            let factor = if number == slow { 3 } else { 1 };
            let sample = |ns: u64| Sample {
                iterations: 10,
                wall_ns: ns * factor + number % 3,
                ..Sample::default()
            };
            Round {
                order: vec![0, 1],
                samples: vec![sample(1000), sample(5000)],
                null_floor: None,
            }
        };
        let measured = Measured::of(
            vec!["a".to_owned(), "b".to_owned()],
            (0..rounds).map(round).collect(),
        );
        Document::new("test", Host::now(), Settings::default(), (), measured)
    }

    #[test]
    fn a_slow_round_stands_above_the_others() {
        let plot = rounds(&document(12, 7)).unwrap();
        let points = &plot.curves[0].points;
        assert_eq!(points.len(), 12);
        assert!((points[7].y.interval.estimate - 3.0).abs() < 0.01);
        assert!((points[3].y.interval.estimate - 1.0).abs() < 0.01);
        assert!(rounds(&document(2, 0)).is_none());
    }
}
