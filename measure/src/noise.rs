//! The floor under every claim: the difference of two measurements of the *same* thing (an A/A
//! comparison).
//!
//! Each round measures one case twice. The mean of the two ratios' logarithms must not differ from
//! zero (else the position within the round matters); their spread says how far a single round can
//! be off. Source of the envelope: the prediction interval of one further value, NIST/SEMATECH
//! e-Handbook 7.2.6.4 and Hahn and Meeker, *Statistical Intervals*, section 4.8, of the logarithms.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::distributions::student_critical;
use crate::error::Error;
use crate::interval::Interval;
use crate::ratio::{Ratio, log_ratio_paired};

/// The contribution of the bench itself to a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The number of rounds.
    pub rounds: u64,
    /// The typical ratio of the second measurement to the first; 1 lies inside its interval unless
    /// the order within a round matters.
    pub ratio: Ratio,
    /// The lower end of the envelope.
    pub envelope_low: f64,
    /// The upper end of the envelope: with the confidence of the ratio's interval, the next round's
    /// ratio lies between the two.
    pub envelope_high: f64,
}

impl Noise {
    /// From the first and the second measurement of the same case in each of at least 3 rounds.
    ///
    /// # Errors
    /// [`Error::TooFew`], [`Error::UnequalLengths`], [`Error::NotFinite`], [`Error::ZeroVariance`]
    /// when both always have the same ratio, [`Error::OutOfRange`] for a value that is not above 0
    /// or for the confidence.
    pub fn of(first: &[f64], second: &[f64], confidence: f64) -> Result<Self, Error> {
        let ratio = log_ratio_paired(second, first, confidence)?;
        let rounds = first.len() as f64;
        let critical = student_critical(confidence, rounds - 1.0)?;
        // The interval of the mean is t sd / sqrt(n); that of one more value t sd sqrt(1 + 1/n).
        let half_width = (ratio.interval.high / ratio.interval.low).ln() / 2.0;
        let sd = half_width / critical * rounds.sqrt();
        let reach = critical * sd * (1.0 + 1.0 / rounds).sqrt();
        Ok(Self {
            rounds: first.len() as u64,
            ratio,
            envelope_low: ratio.interval.estimate * (-reach).exp(),
            envelope_high: ratio.interval.estimate * reach.exp(),
        })
    }

    /// How far a single round's ratio may lie from 1, in per cent: the wider side of the envelope.
    pub fn percent(&self) -> f64 {
        (self.envelope_high - 1.0).max(1.0 - self.envelope_low) * 100.0
    }

    /// Whether the second measurement of a round differs from the first for certain: then the
    /// cases' order matters, and only random order makes their comparison fair.
    pub fn order_matters(&self) -> bool {
        !self.ratio.interval.contains(1.0)
    }

    /// By how much the second measurement of a round exceeds the first, per cent; negative where
    /// it is less.
    pub fn second_off_percent(&self) -> Interval {
        self.ratio.interval.through(|ratio| (ratio - 1.0) * 100.0)
    }

    /// Whether a single round with this ratio might be noise alone.
    pub fn covers(&self, ratio: f64) -> bool {
        (self.envelope_low..=self.envelope_high).contains(&ratio)
    }
}

/// `the same thing measured twice in a round differs by up to 2.3 %`.
impl fmt::Display for Noise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.percent();
        write!(
            out,
            "the same thing measured twice in a round differs by up to {percent:.1} %"
        )?;
        if self.order_matters() {
            let off = self.second_off_percent();
            write!(out, ", and the second is off by {off:.1} %")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_told_from_an_order_that_matters() {
        let first = [100.0, 120.0, 90.0, 105.0, 99.0, 101.0];
        let wobble = [1.01, 0.99, 1.02, 0.98, 1.0, 1.005];
        let second: Vec<f64> = first
            .iter()
            .zip(wobble)
            .map(|(value, off)| value * off)
            .collect();
        let noise = Noise::of(&first, &second, 0.95).unwrap();
        assert!(!noise.order_matters() && noise.covers(1.02) && !noise.covers(1.1));
        assert!((3.0..5.0).contains(&noise.percent()), "{noise}");
        let later: Vec<f64> = second.iter().map(|value| value * 1.1).collect();
        let noise = Noise::of(&first, &later, 0.95).unwrap();
        assert!(noise.order_matters());
        assert!(
            noise
                .to_string()
                .contains("and the second is off by 10.1 (8.4 to"),
            "{noise}"
        );
    }

    #[test]
    fn the_envelope_is_the_prediction_interval_of_the_logarithms() {
        // Logarithms of the ratios: -1, 0, 1: mean 0, sd 1; t(2) = 4.302653 at 95 %.
        let second = [(-1.0_f64).exp(), 1.0, 1.0_f64.exp()];
        let noise = Noise::of(&[1.0; 3], &second, 0.95).unwrap();
        let reach = 4.302_652_729_749_46 * (4.0_f64 / 3.0).sqrt();
        assert!((noise.envelope_high.ln() - reach).abs() < 1e-12);
        assert!((noise.envelope_low.ln() + reach).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_noise_or_no_ratio_is_refused() {
        let flat = Noise::of(&[2.0; 5], &[2.0; 5], 0.95);
        assert!(matches!(flat, Err(Error::ZeroVariance { value: 1.0, .. })));
        assert!(matches!(
            Noise::of(&[1.0; 2], &[1.0; 2], 0.95),
            Err(Error::TooFew { .. })
        ));
        let zero = Noise::of(&[1.0, 2.0, 3.0], &[0.0, 1.0, 2.0], 0.95);
        assert!(matches!(zero, Err(Error::OutOfRange { value: 0.0, .. })));
    }
}
