//! Finds the three parameters, on logarithmic scales: `ln t(b)` is a softened maximum of `ln a` and
//! `ln (b/W)`, whose derivatives are the shares of the two times and the entropy of those shares.

use super::{Limits, SHARPNESS_MAX};

/// A size and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub ln_size: f64,
    pub ln_time: f64,
}

/// The parameters as they are searched for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    ln_transaction: f64,
    ln_unit: f64,
    /// `1/p`: 1 is the sum, towards 0 the maximum.
    softness: f64,
}

/// The model at one size.
pub(super) struct At {
    pub ln_time: f64,
    /// The derivative by `ln a`; that by `ln (1/W)` is what is left to 1.
    pub transaction_share: f64,
    /// The derivative by `1/p`.
    entropy: f64,
}

const SOFTNESS_MIN: f64 = 1.0 / SHARPNESS_MAX;

/// A parameter that the points do not show may wander off; not further than this, a factor of
/// 22,000 below what they show.
const LN_AWAY_MAX: f64 = 10.0;

/// Steps of the search; it needs about ten.
const STEPS_MAX: usize = 200;

/// The search ends when a step improves the sum of squares by less than this share of it.
const ENOUGH: f64 = 1e-12;

/// No residual is left but that of the rounding.
const EXACT: f64 = 1e-26;

impl Parameters {
    pub fn of(limits: &Limits) -> Self {
        Self {
            ln_transaction: limits.transaction_time.ln(),
            ln_unit: limits.unit_time.ln(),
            softness: 1.0 / limits.sharpness,
        }
    }

    pub fn limits(&self) -> Limits {
        Limits {
            transaction_time: self.ln_transaction.exp(),
            unit_time: self.ln_unit.exp(),
            sharpness: (1.0 / self.softness).clamp(1.0, SHARPNESS_MAX),
        }
    }

    /// Where to begin: the smallest time is all transaction, the slowest growth all bandwidth,
    /// with a sum, with a maximum, and with something between.
    pub fn starts(points: &[Point]) -> [Self; 3] {
        let least = |value: fn(&Point) -> f64| points.iter().map(value).fold(f64::MAX, f64::min);
        let start = |softness| Self {
            ln_transaction: least(|point| point.ln_time),
            ln_unit: least(|point| point.ln_time - point.ln_size),
            softness,
        };
        [start(1.0), start(0.4), start(0.1)]
    }

    pub fn at(&self, ln_size: f64) -> At {
        let (transaction, transfer) = (self.ln_transaction, self.ln_unit + ln_size);
        let longer = transaction.max(transfer);
        let powers = [transaction, transfer].map(|one| ((one - longer) / self.softness).exp());
        let sum = powers[0] + powers[1];
        let shares = powers.map(|power| power / sum);
        let term = |share: f64| {
            if share > 0.0 {
                -share * share.ln()
            } else {
                0.0
            }
        };
        At {
            ln_time: longer + self.softness * sum.ln(),
            transaction_share: shares[0],
            entropy: term(shares[0]) + term(shares[1]),
        }
    }

    fn squares(&self, points: &[Point]) -> f64 {
        let residual = |point: &Point| point.ln_time - self.at(point.ln_size).ln_time;
        points.iter().map(|point| residual(point).powi(2)).sum()
    }

    /// The same, moved by a step and kept where the points can tell of it.
    fn moved(&self, step: [f64; 3], floor: &Self) -> Self {
        Self {
            ln_transaction: (self.ln_transaction + step[0]).max(floor.ln_transaction),
            ln_unit: (self.ln_unit + step[1]).max(floor.ln_unit),
            softness: (self.softness + step[2]).clamp(SOFTNESS_MIN, 1.0),
        }
    }
}

/// The best of the fits that the search finds from these starts.
pub(super) fn best(points: &[Point], starts: &[Parameters]) -> Parameters {
    let mut floor = Parameters::starts(points)[0];
    floor.ln_transaction -= LN_AWAY_MAX;
    floor.ln_unit -= LN_AWAY_MAX;
    let mut found: Option<(Parameters, f64)> = None;
    for start in starts {
        let candidate = search(points, *start, &floor);
        if found.is_none_or(|(_, squares)| candidate.1 < squares) {
            found = Some(candidate);
        }
    }
    found.map_or(floor, |(parameters, _)| parameters)
}

/// Levenberg and Marquardt's search from one start; with the sum of squares.
fn search(points: &[Point], start: Parameters, floor: &Parameters) -> (Parameters, f64) {
    let mut here = start.moved([0.0; 3], floor);
    let mut squares = here.squares(points);
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let normal = Normal::at(points, &here);
        let there = here.moved(normal.step(&here, damping), floor);
        let fewer = there.squares(points);
        if fewer < squares {
            let gain = squares - fewer;
            (here, squares, damping) = (there, fewer, damping / 5.0);
            if gain < ENOUGH * squares || squares < EXACT {
                break;
            }
        } else {
            damping *= 5.0;
            if damping > 1e9 {
                break;
            }
        }
    }
    (here, squares)
}

/// The normal equations of a step.
struct Normal {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
}

impl Normal {
    fn at(points: &[Point], here: &Parameters) -> Self {
        let mut normal = Self {
            matrix: [[0.0; 3]; 3],
            right: [0.0; 3],
        };
        for point in points {
            let at = here.at(point.ln_size);
            let share = at.transaction_share;
            let slopes = [share, 1.0 - share, at.entropy];
            let residual = point.ln_time - at.ln_time;
            for (row, slope) in slopes.iter().enumerate() {
                normal.right[row] += slope * residual;
                for (column, other) in slopes.iter().enumerate() {
                    normal.matrix[row][column] += slope * other;
                }
            }
        }
        normal
    }

    /// The damped step. The softness is left alone where it stands at an end of its range and
    /// would go further.
    fn step(&self, here: &Parameters, damping: f64) -> [f64; 3] {
        let step = self.solved(damping, 3);
        let outwards = (here.softness >= 1.0 && step[2] > 0.0)
            || (here.softness <= SOFTNESS_MIN && step[2] < 0.0);
        if outwards {
            self.solved(damping, 2)
        } else {
            step
        }
    }

    /// Solves the first `count` equations by Gauss's elimination; they are positive definite
    /// thanks to the damping, so that no pivot is zero.
    fn solved(&self, damping: f64, count: usize) -> [f64; 3] {
        let (mut matrix, mut right) = (self.matrix, self.right);
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] += damping * row[index].max(1e-9);
        }
        for pivot in 0..count {
            for row in pivot + 1..count {
                let factor = matrix[row][pivot] / matrix[pivot][pivot];
                let above = matrix[pivot];
                for (value, upper) in matrix[row].iter_mut().zip(above) {
                    *value -= factor * upper;
                }
                right[row] -= factor * right[pivot];
            }
        }
        let mut step = [0.0; 3];
        for row in (0..count).rev() {
            let known: f64 = (row + 1..count)
                .map(|column| matrix[row][column] * step[column])
                .sum();
            step[row] = (right[row] - known) / matrix[row][row];
        }
        step
    }
}
