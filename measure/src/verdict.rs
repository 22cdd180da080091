//! What may be claimed: faster, slower, the same within some per cent, or no difference proven.
//!
//! The rules:
//! - A difference is *proven* when its p-value, corrected for all comparisons of the table (Holm),
//!   is at most `1 - confidence`.
//! - *Same within x %* is said when the whole interval of the ratio lies inside. The interval is
//!   the one at the confidence that holds for all comparisons together (Bonferroni); that both ends
//!   lie inside is the two one-sided tests of Schuirmann, J. Pharmacokin. Biopharm. 15 (1987). It
//!   goes before faster and slower, because a difference that small is none in practice; a proven
//!   one is still told.
//! - Otherwise *no difference proven*, together with the smallest difference that would have been:
//!   the half width of the interval at the level that this comparison had to meet.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::blocks::Blocks;
use crate::error::{Error, require_confidence};
use crate::holm::{Tested, holm, simultaneous_confidence};
use crate::interval::{Effect, Interval};
use crate::ratio::RatioOfMeans;
use crate::summary::{Moments, mean};
use crate::two_samples::welch;

/// Which values are good ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Better {
    /// Times and costs.
    #[default]
    Lower,
    /// Rates.
    Higher,
}

/// A proven direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// The changed side is the better one.
    Faster,
    /// The changed side is the worse one.
    Slower,
}

/// How to judge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// The confidence for all comparisons together: 0.95 for 95 %.
    pub confidence: f64,
    /// The share within which two results count as the same: 0.01 for 1 %.
    pub same_within: f64,
    /// Which values are good ones.
    pub better: Better,
}

impl Default for Rules {
    /// 95 %, same within 1 %, lower is better.
    fn default() -> Self {
        Self {
            confidence: 0.95,
            same_within: 0.01,
            better: Better::Lower,
        }
    }
}

/// One changed side against its base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The mean of the base.
    pub base_mean: f64,
    /// `changed - base`, in the unit of the values.
    pub difference: Effect,
    /// `changed / base`; none where the base may be zero.
    pub ratio: Option<RatioOfMeans>,
}

impl Comparison {
    /// Two cells of a table, by their differences within rounds.
    ///
    /// # Errors
    /// As [`Blocks::difference`].
    pub fn within_rounds(blocks: &Blocks, base: usize, changed: usize) -> Result<Self, Error> {
        let difference = blocks.difference(base, changed, 0.95)?;
        let (base, changed) = (blocks.values(base)?, blocks.values(changed)?);
        Ok(Self {
            base_mean: mean(&base)?,
            difference,
            ratio: RatioOfMeans::paired(&changed, &base).ok(),
        })
    }

    /// Two independent samples, by Welch's interval.
    ///
    /// # Errors
    /// As [`welch`].
    pub fn independent(base: Moments, changed: Moments) -> Result<Self, Error> {
        Ok(Self {
            base_mean: base.mean,
            difference: welch(base, changed, 0.95)?,
            ratio: RatioOfMeans::independent(changed, base).ok(),
        })
    }

    /// The interval of the ratio; none where it has no bounds.
    pub(crate) fn ratio_at(&self, confidence: f64) -> Option<Interval> {
        Some(self.ratio?.at(confidence).ok()?.interval)
    }
}

/// What may be claimed about one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Verdict {
    /// The difference is proven.
    Proven {
        /// Which way.
        direction: Direction,
        /// `changed - base`, at the confidence that this comparison had to meet.
        difference: Interval,
        /// `changed / base` at the same confidence; none where the base may be zero.
        ratio: Option<Interval>,
    },
    /// The whole interval of the ratio lies within the tolerance.
    SameWithin {
        /// The tolerance in per cent.
        percent: f64,
        /// `changed / base`, at the confidence for all comparisons together.
        ratio: Interval,
        /// The direction of the small difference, if even that is proven.
        proven: Option<Direction>,
    },
    /// Neither: the measurement cannot tell.
    NoDifferenceProven {
        /// The smallest difference that would have been proven, in the unit of the values.
        smallest: f64,
        /// The same in per cent of the base; none where the base is zero.
        smallest_percent: Option<f64>,
    },
}

impl Rules {
    /// Judges one comparison that stands alone.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a confidence or tolerance that is none.
    pub fn judge(&self, comparison: &Comparison) -> Result<Verdict, Error> {
        let tested = holm(&[comparison.difference.p_value], 1.0 - self.confidence)?;
        self.verdict(comparison, &tested[0], 1)
    }

    /// Judges several comparisons of one table together, in their order.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a confidence or tolerance that is none.
    pub fn judge_all(&self, comparisons: &[Comparison]) -> Result<Vec<Verdict>, Error> {
        let p_values: Vec<f64> = comparisons
            .iter()
            .map(|comparison| comparison.difference.p_value)
            .collect();
        let tested = holm(&p_values, 1.0 - self.confidence)?;
        let pairs = comparisons.iter().zip(&tested);
        pairs
            .map(|(one, tested)| self.verdict(one, tested, comparisons.len()))
            .collect()
    }

    fn verdict(&self, one: &Comparison, tested: &Tested, family: usize) -> Result<Verdict, Error> {
        self.require_tolerance()?;
        let together = simultaneous_confidence(self.confidence, family)?;
        let direction = self.direction(one.difference.estimate());
        if let Some(ratio) = one.ratio_at(together)
            && ratio.lies_within(1.0 - self.same_within, 1.0 + self.same_within)
        {
            let percent = self.same_within * 100.0;
            return Ok(Verdict::SameWithin {
                percent,
                ratio,
                proven: tested.proven.then_some(direction),
            });
        }
        if tested.proven {
            let confidence = 1.0 - tested.level;
            return Ok(Verdict::Proven {
                direction,
                difference: one.difference.at(confidence)?.interval,
                ratio: one.ratio_at(confidence),
            });
        }
        let smallest = one.difference.smallest_provable(tested.level)?;
        let base = one.base_mean.abs();
        let smallest_percent = (base > 0.0).then(|| smallest / base * 100.0);
        Ok(Verdict::NoDifferenceProven {
            smallest,
            smallest_percent,
        })
    }

    fn direction(&self, difference: f64) -> Direction {
        match (self.better, difference < 0.0) {
            (Better::Lower, true) | (Better::Higher, false) => Direction::Faster,
            _ => Direction::Slower,
        }
    }

    fn require_tolerance(&self) -> Result<(), Error> {
        require_confidence(self.confidence)?;
        if (0.0..1.0).contains(&self.same_within) {
            return Ok(());
        }
        Err(Error::OutOfRange {
            what: "the tolerance",
            value: self.same_within,
            rule: "within 0 and 1, as 0.01 is for 1 %",
        })
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
        })
    }
}

/// Plain words: `faster, 4.2 % less (3.1 % to 5.3 %)`, where "less" and "more" speak of the
/// measured value; `same within 1 %`; `no difference proven (3.2 % would have been)`. Where there
/// is no ratio, the difference is written as a number; its unit is the caller's to add.
impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven {
                direction,
                difference,
                ratio: None,
            } => {
                write!(out, "{direction}, ")?;
                amount(out, difference, "")
            }
            Self::Proven {
                direction,
                ratio: Some(ratio),
                ..
            } => {
                write!(out, "{direction}, ")?;
                amount(out, &percent_off(ratio), " %")
            }
            Self::SameWithin {
                percent,
                ratio,
                proven,
            } => {
                write!(out, "same within {} %", digits(*percent))?;
                let Some(direction) = proven else {
                    return Ok(());
                };
                write!(out, ", though {direction}: ")?;
                amount(out, &percent_off(ratio), " %")
            }
            Self::NoDifferenceProven {
                smallest_percent: Some(percent),
                ..
            } => {
                write!(
                    out,
                    "no difference proven ({} % would have been)",
                    digits(*percent)
                )
            }
            Self::NoDifferenceProven { smallest, .. } => {
                write!(
                    out,
                    "no difference proven ({} would have been)",
                    digits(*smallest)
                )
            }
        }
    }
}

/// A ratio as the distance from 1 in per cent.
fn percent_off(ratio: &Interval) -> Interval {
    ratio.through(|value| (value - 1.0) * 100.0)
}

/// `4.2 % less (3.1 % to 5.3 %)`.
fn amount(out: &mut fmt::Formatter<'_>, change: &Interval, unit: &str) -> fmt::Result {
    let (word, size) = if change.estimate < 0.0 {
        ("less", change.scaled(-1.0))
    } else {
        ("more", *change)
    };
    let (estimate, low, high) = (digits(size.estimate), digits(size.low), digits(size.high));
    write!(out, "{estimate}{unit} {word} ({low}{unit} to {high}{unit})")
}

/// A number with two digits that count, or all digits before the point when there are more.
fn digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || !magnitude.is_finite() || magnitude >= 10.0 {
        return format!("{value:.0}");
    }
    let decimals = (1.0 - magnitude.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
