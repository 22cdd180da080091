//! The observations of a result, from which statistics are computed.
//!
//! **The process is the unit of observation.** Rounds of one process share its addresses and its
//! luck, so they are no independent observations of a cost. A process has one value of each
//! quantity: the median over its valid rounds of a contrast within a round. The figure is the
//! middle of these values with its interval from order statistics ([`Center`]). Where there are
//! fewer than [`OBSERVATIONS_MIN`] processes, rounds stand in for them, and intervals do not cover
//! what differs between processes; reports warn of that.

use crate::document::Document;
use crate::figure::CONFIDENCE;
use crate::rounds::{Judge, Reference, Sample};
use ugeom_measure::center::{Center, OBSERVATIONS_MIN};
use ugeom_measure::summary::median;
use ugeom_measure::{Noise, Spread};

/// A process whose valid rounds are fewer is disturbed, and all its rounds count.
const VALID_ROUNDS_MIN: usize = 3;

/// A result with a smaller share of undisturbed processes is disturbed.
const UNDISTURBED_SHARE: f64 = 0.75;

/// A value for each case in each round of each process.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    cases: Vec<String>,
    processes: Vec<Vec<Row>>,
}

/// The cases of one round.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    values: Vec<Option<f64>>,
    valid: Vec<bool>,
}

/// The judge of a document's runs: the reference loops of all processes together.
pub fn judge<S>(document: &Document<S>) -> Judge {
    let rounds = document.processes.iter().flat_map(|one| &one.rounds);
    Reference::of(rounds.flat_map(|round| &round.samples)).judge()
}

/// How many processes had a core at full speed in at least half of their runs, and how many there
/// are.
pub fn undisturbed<S>(document: &Document<S>) -> (usize, usize) {
    let judge = judge(document);
    let calm = document.processes.iter().filter(|process| {
        let samples = process.rounds.iter().flat_map(|round| &round.samples);
        let (valid, all) = samples.fold((0_u64, 0_u64), |(valid, all), sample| {
            (valid + u64::from(judge.is_valid(sample)), all + 1)
        });
        2 * valid >= all
    });
    (calm.count(), document.processes.len())
}

/// Whether too many processes were disturbed for absolute times to mean much.
pub fn is_disturbed<S>(document: &Document<S>) -> bool {
    let (calm, all) = undisturbed(document);
    (calm as f64) < UNDISTURBED_SHARE * all as f64
}

impl Observed {
    /// The wall time of an iteration, ns.
    pub fn times<S>(document: &Document<S>) -> Self {
        Self::of(document, |sample| Some(sample.ns_per_iteration()))
    }

    /// Any value of the samples; none where a sample does not hold it.
    pub fn of<S>(document: &Document<S>, value: impl Fn(&Sample) -> Option<f64>) -> Self {
        let judge = judge(document);
        let cases = document.processes.first().map(|one| one.cases.clone());
        let cases = cases.unwrap_or_default();
        let same = document.processes.iter().filter(|one| one.cases == cases);
        let processes = same.map(|process| {
            let rows = process.rounds.iter().map(|round| Row {
                values: round.samples.iter().map(&value).collect(),
                valid: round
                    .samples
                    .iter()
                    .map(|sample| judge.is_valid(sample))
                    .collect(),
            });
            rows.collect()
        });
        let processes = processes.collect();
        Self { cases, processes }
    }

    /// The names of the cases.
    pub fn cases(&self) -> &[String] {
        &self.cases
    }

    /// The index of a case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.cases.iter().position(|case| case == name)
    }

    /// One value of a quantity for each process (or for each round, where processes are few).
    /// `quantity` computes it from the values of the cases `used` in one round.
    pub fn values(&self, used: &[usize], quantity: impl Fn(&[f64]) -> Option<f64>) -> Vec<f64> {
        let of_row = |row: &Row| {
            let values = used.iter().map(|case| row.values.get(*case).copied()?);
            let values: Option<Vec<f64>> = values.collect();
            let found = quantity(&values?).filter(|value| value.is_finite())?;
            let valid = used.iter().all(|case| row.valid.get(*case) == Some(&true));
            Some((found, valid))
        };
        let by_process = self.processes.len() >= OBSERVATIONS_MIN;
        let enough = match by_process {
            true => VALID_ROUNDS_MIN,
            false => OBSERVATIONS_MIN,
        };
        let mut out = Vec::new();
        for process in &self.processes {
            let rows: Vec<(f64, bool)> = process.iter().filter_map(of_row).collect();
            let valid = rows.iter().filter(|row| row.1).map(|row| row.0);
            let mut kept: Vec<f64> = valid.collect();
            if kept.len() < enough {
                kept = rows.iter().map(|row| row.0).collect();
            }
            match by_process {
                true => out.extend(median(&kept)),
                false => out.extend(kept),
            }
        }
        out
    }

    /// The difference of two identical cases in the same rounds; none when one was not measured, or
    /// not often enough.
    pub fn noise(&self, first: &str, second: &str) -> Option<Noise> {
        let used = [self.position(first)?, self.position(second)?];
        let values = |at: usize| self.values(&used, |one| one.get(at).copied());
        Noise::of(&values(0), &values(1), CONFIDENCE).ok()
    }

    fn center(&self, names: &[&str], quantity: impl Fn(&[f64]) -> Option<f64>) -> Option<Center> {
        let used: Option<Vec<usize>> = names.iter().map(|name| self.position(name)).collect();
        Center::of(&self.values(&used?, quantity)).ok()
    }

    /// A case by itself; none when it was not measured, or not often enough. Unlike contrasts
    /// within rounds it moves with the machine from one measurement to the next, so it has a spread
    /// and no confidence interval.
    pub fn typical(&self, name: &str) -> Option<Spread> {
        let case = self.position(name)?;
        Spread::of(&self.values(&[case], |values| values.first().copied())).ok()
    }

    /// The median of a case, however often it was measured: what an interrupted measurement has to
    /// show. None when it was not measured.
    pub fn middle(&self, name: &str) -> Option<f64> {
        let case = self.position(name)?;
        median(&self.values(&[case], |values| values.first().copied())).ok()
    }

    /// A weighted sum of cases within rounds.
    pub fn contrast(&self, weights: &[(&str, f64)]) -> Option<Center> {
        let names: Vec<&str> = weights.iter().map(|one| one.0).collect();
        self.center(&names, |values| {
            Some(
                values
                    .iter()
                    .zip(weights)
                    .map(|(value, one)| value * one.1)
                    .sum(),
            )
        })
    }

    /// `changed - base` within rounds, one value per process.
    pub fn difference(&self, base: &str, changed: &str) -> Option<Center> {
        self.contrast(&[(changed, 1.0), (base, -1.0)])
    }

    /// `numerator / denominator`. Its interval has no end below 0.
    pub fn ratio(&self, numerator: &str, denominator: &str) -> Option<Center> {
        self.center(&[numerator, denominator], |values| {
            (values[1] > 0.0).then(|| values[0] / values[1])
        })
    }

    /// [`Observed::ratio`] of cases with different numbers of threads. It depends on the cores that
    /// other programs leave, which are others in the next measurement: a spread.
    pub fn ratio_of_threads(&self, numerator: &str, denominator: &str) -> Option<Spread> {
        Spread::of(self.ratio(numerator, denominator)?.sorted()).ok()
    }

    /// The slope of the line of least squares through cases over their x, within rounds.
    pub fn slope(&self, points: &[(&str, f64)]) -> Option<Center> {
        let names: Vec<&str> = points.iter().map(|one| one.0).collect();
        let mean = points.iter().map(|one| one.1).sum::<f64>() / points.len() as f64;
        let spread: f64 = points.iter().map(|one| (one.1 - mean).powi(2)).sum();
        if points.len() < 2 || spread == 0.0 {
            return None;
        }
        self.center(&names, |values| {
            let moved = values
                .iter()
                .zip(points)
                .map(|(value, one)| value * (one.1 - mean));
            Some(moved.sum::<f64>() / spread)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::rounds::{Measured, Round, Settings};

    /// Processes of rounds of two cases, with the reference loop beside each.
    fn document(processes: &[Vec<(f64, f64, u64)>]) -> Document<()> {
        let measured = |rounds: &Vec<(f64, f64, u64)>| {
            Measured::of(
                vec!["a".to_owned(), "b".to_owned()],
                rounds
                    .iter()
                    .map(|(a, b, reference_ns)| Round {
                        order: vec![0, 1],
                        samples: [a, b]
                            .map(|ns| Sample {
                                iterations: 1000,
                                wall_ns: (ns * 1000.0) as u64,
                                reference_ns: Some([*reference_ns; 2]),
                                ..Sample::default()
                            })
                            .to_vec(),
                        null_floor: None,
                    })
                    .collect(),
            )
        };
        let first = measured(&processes[0]);
        let mut document = Document::new("test", Host::now(), Settings::default(), (), first);
        document.processes = processes.iter().map(measured).collect();
        document
    }

    #[test]
    fn a_process_is_one_observation_and_its_value_a_median() {
        let process = |shift: f64| {
            // The last round is an outlier, which the median leaves alone.
            let mut rounds = vec![(10.0 + shift, 12.0 + 2.0 * shift, 100); 4];
            rounds.push((10.0, 900.0, 100));
            rounds
        };
        let shifts = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5];
        let observed = Observed::times(&document(&shifts.map(process)));
        let difference = observed.difference("a", "b").unwrap();
        let interval = difference.at(0.95).unwrap();
        assert!((interval.low - 2.0).abs() < 1e-9 && (interval.high - 2.5).abs() < 1e-9);
        assert!((interval.estimate - 2.25).abs() < 1e-9);
        let slope = observed.slope(&[("a", 0.0), ("b", 2.0)]).unwrap();
        assert!((slope.estimate() - 1.125).abs() < 1e-9);
        assert!(observed.ratio("a", "c").is_none());
    }

    #[test]
    fn rounds_in_a_slow_phase_do_not_count_unless_there_are_no_others() {
        let calm = vec![(10.0, 12.0, 100); 5];
        let mut half = calm.clone();
        half[3] = (17.0, 20.4, 170);
        half[4] = (17.0, 20.4, 170);
        let slow = vec![(17.0, 20.4, 170); 5];
        let mut processes = vec![calm; 4];
        processes.push(half);
        processes.push(slow);
        let document = document(&processes);
        let values = Observed::times(&document).values(&[0, 1], |one| Some(one[1] - one[0]));
        let expected = [2.0, 2.0, 2.0, 2.0, 2.0, 3.4];
        assert!(
            values
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-9),
            "{values:?}"
        );
        assert_eq!(undisturbed(&document), (5, 6));
        assert!(!is_disturbed(&document));
    }

    /// A machine whose speed differs by 10 % from one measurement to the next, and by 1 % within
    /// one: no interval of a time that is called 95 % covers the time of all, those of ratios do.
    #[test]
    fn only_ratios_claim_to_hold_for_another_measurement() {
        let mut random = fastrand::Rng::with_seed(2026);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let (mut claimed, mut covered, experiments) = (0, 0, 200);
        for _ in 0..experiments {
            let speed = 1.0 + 0.1 * normal();
            let mut process = || {
                let level = 100.0 * speed * (1.0 + 0.01 * normal());
                let ratio = 1.2 * (1.0 + 0.01 * normal());
                vec![(level, level * ratio, 100); 5]
            };
            let processes: Vec<_> = (0..12).map(|_| process()).collect();
            let observed = Observed::times(&document(&processes));
            let time = observed.typical("a").unwrap().interval();
            claimed += u32::from(!time.is_spread());
            let ratio = observed.ratio("b", "a").unwrap().at(CONFIDENCE).unwrap();
            covered += u32::from(ratio.contains(1.2));
        }
        assert_eq!(claimed, 0);
        assert!(covered >= 186, "{covered} of {experiments}");
    }

    #[test]
    fn few_processes_give_rounds() {
        let observed = Observed::times(&document(&[vec![(1.0, 2.0, 100); 7]]));
        assert_eq!(observed.values(&[0], |one| Some(one[0])).len(), 7);
        let observed = Observed::times(&document(&[vec![(1.0, 2.0, 100); 5]]));
        assert!(observed.typical("a").is_none(), "five say nothing");
        assert_eq!(observed.middle("a"), Some(1.0));
        assert_eq!(observed.middle("c"), None);
    }
}
