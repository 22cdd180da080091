//! Readers of values, for the setters of declared options. The grammar of numbers with units is
//! that of [`ugeom_measure::units`]; a bare number counts bytes or seconds.

use std::convert::Infallible;
use std::ops::RangeInclusive;

use super::declared::ValueError;
use super::nearest;
use ugeom_measure::units::{self, SizeUnits, TimeUnit, UnitError};

/// The largest sector, bytes: GEOM's `maxphys`, beyond which no request goes.
pub const SECTOR_BYTES_MAX: u64 = 1 << 20;

/// Bytes, as in `64m`; `s` counts sectors of 512 bytes.
///
/// # Errors
/// The text is no size.
pub fn size(text: &str) -> Result<u64, UnitError> {
    units::size_bytes(text, SizeUnits::USUAL)
}

/// Bytes, where `s` counts sectors of `sector_bytes`.
pub(crate) fn size_in_sectors_of(sector_bytes: u64, text: &str) -> Result<u64, UnitError> {
    units::size_bytes(text, SizeUnits::with_sectors_of(sector_bytes))
}

/// Nanoseconds, as in `1ms`, `5m`, `24h`; a bare number counts seconds.
///
/// # Errors
/// The text is no duration.
pub fn duration_ns(text: &str) -> Result<u64, UnitError> {
    units::duration_ns(text, TimeUnit::Seconds)
}

/// A whole number within `range`.
///
/// # Errors
/// The text is no whole number, or lies outside.
pub(crate) fn number_in(range: RangeInclusive<u64>, text: &str) -> Result<u64, ValueError> {
    let number = units::whole_number(text)?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (range.start(), range.end());
    Err(ValueError::new(format!(
        "this is not within {least} to {most}"
    )))
}

/// The size of a sector in bytes: a power of two from 512 to [`SECTOR_BYTES_MAX`].
///
/// # Errors
/// The text is no size, or not such a size.
pub(crate) fn sector_size(text: &str) -> Result<u64, ValueError> {
    let bytes = size(text)?;
    if bytes.is_power_of_two() && (units::SECTOR_BYTES..=SECTOR_BYTES_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    Err(ValueError::new(
        "a sector size is a power of two from 512 to 1m",
    ))
}

/// The text as it is.
///
/// # Errors
/// None.
pub fn text(text: &str) -> Result<String, Infallible> {
    Ok(text.to_owned())
}

/// The name of a provider.
pub(crate) fn provider_name(text: &str) -> Result<String, ValueError> {
    if text.is_empty() {
        return Err(ValueError::new("a provider needs a name"));
    }
    Ok(text.to_owned())
}

/// The value of one word of a list.
///
/// # Errors
/// The text is none of the words.
pub fn choice<T: Copy>(choices: &[(&str, T)], text: &str) -> Result<T, ValueError> {
    if let Some((_, meaning)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*meaning);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let error = ValueError::new(format!("expected one of {}", names.join(", ")));
    Err(match nearest(text, names.iter().copied()) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error,
    })
}

/// The setter that stores the value of one of some words in a field:
/// `set_choice!(is_write_back = [("through", false), ("back", true)])`.
#[macro_export]
macro_rules! set_choice {
    ($($field:ident).+ = $words:expr) => {
        |it, text| {
            it.$($field).+ = $crate::spec::values::choice(&$words, text)?.into();
            Ok(())
        }
    };
}

impl From<Infallible> for ValueError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
