//! The number in front of a unit: decimal with or without a fraction, or hexadecimal.

use super::error::{UnitError, UnitErrorKind};

/// More digits behind the point than this are refused; 10^18 still fits.
const FRACTION_DIGITS_MAX: usize = 18;

/// A number and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number<'a> {
    /// The digits before and behind the point as one number.
    digits: u128,
    /// How often to divide by ten.
    tenths: u32,
    /// What follows, without blanks.
    pub(super) unit: &'a str,
    /// The position of the unit in the text.
    pub(super) unit_at: usize,
}

impl<'a> Number<'a> {
    /// Takes the number off the front of the text; blanks around number and unit are ignored.
    pub(super) fn parse(text: &'a str) -> Result<Self, UnitError> {
        let at = text.len() - text.trim_start().len();
        let rest = text.trim();
        let first = rest.chars().next();
        let first = first.ok_or_else(|| UnitError::new(text, at, UnitErrorKind::Empty))?;
        if !first.is_ascii_digit() {
            return Err(UnitError::new(text, at, UnitErrorKind::NotANumber(first)));
        }
        let (digits, tenths, used) = match rest.strip_prefix("0x").or(rest.strip_prefix("0X")) {
            Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => {
                let end = span(hex, |c| c.is_ascii_hexdigit());
                (u128::from_str_radix(&hex[..end], 16).ok(), 0, end + 2)
            }
            _ => Self::decimal(text, at, rest)?,
        };
        let too_large = || UnitError::new(text, at, UnitErrorKind::TooLarge);
        let digits = digits.ok_or_else(too_large)?;
        let unit = rest[used..].trim_start();
        let unit_at = at + rest.len() - unit.len();
        Ok(Self {
            digits,
            tenths,
            unit,
            unit_at,
        })
    }

    /// The digits, their number behind the point, and the bytes they take.
    fn decimal(text: &str, at: usize, rest: &str) -> Result<(Option<u128>, u32, usize), UnitError> {
        let whole = span(rest, |c| c.is_ascii_digit());
        let Some(behind) = rest[whole..].strip_prefix('.') else {
            return Ok((rest[..whole].parse().ok(), 0, whole));
        };
        let fraction = span(behind, |c| c.is_ascii_digit());
        let end = whole + 1 + fraction;
        if fraction == 0 || fraction > FRACTION_DIGITS_MAX {
            let found = behind[fraction..].chars().next().unwrap_or('.');
            let kind = match fraction {
                0 => UnitErrorKind::NotANumber(found),
                _ => UnitErrorKind::TooLarge,
            };
            return Err(UnitError::new(text, at + whole + 1, kind));
        }
        let digits = format!("{}{}", &rest[..whole], &behind[..fraction]);
        Ok((digits.parse().ok(), fraction as u32, end))
    }

    /// The number times `factor`, which must be whole (`part` names what cannot be split) and fit.
    pub(super) fn times(
        &self,
        text: &str,
        factor: u64,
        part: &'static str,
    ) -> Result<u64, UnitError> {
        let at = text.len() - text.trim_start().len();
        let refuse = |kind| UnitError::new(text, at, kind);
        let product = self.digits.checked_mul(u128::from(factor));
        let product = product.ok_or_else(|| refuse(UnitErrorKind::TooLarge))?;
        let divisor = 10_u128.pow(self.tenths);
        if !product.is_multiple_of(divisor) {
            return Err(refuse(UnitErrorKind::NotWhole(part)));
        }
        u64::try_from(product / divisor).map_err(|_| refuse(UnitErrorKind::TooLarge))
    }

    /// The number itself, rounded to the nearest float.
    pub(super) fn value(&self) -> f64 {
        self.digits as f64 / 10_f64.powi(self.tenths as i32)
    }

    /// Whether the number is 0, which needs no unit.
    pub(super) fn is_zero(&self) -> bool {
        self.digits == 0
    }
}

/// The length of the front part of which every character satisfies `which` (ASCII only).
fn span(text: &str, which: impl Fn(char) -> bool) -> usize {
    text.find(|c| !which(c)).unwrap_or(text.len())
}
