//! The number in front of a unit: decimal with or without a fraction, or hexadecimal.

use super::error::UnitError;

/// `digits / scale`, where the scale is a power of ten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal {
    digits: Option<u128>,
    scale: Option<u128>,
}

impl Decimal {
    /// Reads `12`, `1.5` or `0x200` from the beginning of `text`, and gives what follows without
    /// blanks. Nothing if there is no number.
    pub(super) fn read(text: &str) -> Option<(Self, &str)> {
        let text = text.trim();
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        if let Some(text) = hexadecimal {
            let (number, unit) = split(text, |c| c.is_ascii_hexdigit());
            let digits = u128::from_str_radix(number, 16).ok();
            let scale = Some(1);
            return (!number.is_empty()).then_some((Self { digits, scale }, unit));
        }
        let (number, unit) = split(text, |c| c.is_ascii_digit() || c == '.');
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (number, ""),
        };
        if whole.is_empty() || fraction.contains('.') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}").parse().ok();
        let scale = 10_u128.checked_pow(fraction.len() as u32);
        Some((Self { digits, scale }, unit))
    }

    /// The number times `factor`, which must be a whole number of `unit` and fit in 64 bits.
    pub(super) fn times(self, factor: u64, unit: &'static str) -> Result<u64, UnitError> {
        let too_large = UnitError::TooLarge { unit };
        let digits = self.digits.ok_or(too_large.clone())?;
        let product = digits.checked_mul(u128::from(factor));
        let product = product.ok_or(too_large.clone())?;
        // A fraction with more digits than 2^128 has is smaller than any unit.
        let scale = self.scale.ok_or(UnitError::Fraction { unit })?;
        if !product.is_multiple_of(scale) {
            return Err(UnitError::Fraction { unit });
        }
        u64::try_from(product / scale).map_err(|_| too_large)
    }

    /// The nearest float to the number; nothing if it has more digits than 2^128.
    pub(super) fn value(self) -> Option<f64> {
        Some(self.digits? as f64 / self.scale? as f64)
    }
}

/// The front part, whose characters all satisfy `belongs`, and the rest without blanks.
fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}
