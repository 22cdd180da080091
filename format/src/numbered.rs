//! Types of partitions that are numbers: their names, and gpart's forms of them (gpart(8)).

use std::fmt;

/// A number, gpart's name of it or nothing, and the system's name or nothing.
pub(crate) type Known = (u16, &'static str, &'static str);

/// gpart's name of a number.
pub(crate) fn alias(types: &[Known], number: u16) -> Option<&'static str> {
    let known = types.iter().find(|known| known.0 == number)?;
    (!known.1.is_empty()).then_some(known.1)
}

/// The system's name of a number.
pub(crate) fn description(types: &[Known], number: u16) -> Option<&'static str> {
    let known = types.iter().find(|known| known.0 == number)?;
    (!known.2.is_empty()).then_some(known.2)
}

/// gpart's names with their numbers, in the order of the numbers.
pub(crate) fn names(types: &'static [Known]) -> impl Iterator<Item = (&'static str, u16)> {
    let named = types.iter().filter(|known| !known.1.is_empty());
    named.map(|known| (known.1, known.0))
}

/// The number that one of gpart's names means, in any case; of several the first.
pub(crate) fn by_name(types: &'static [Known], text: &str) -> Option<u16> {
    let found = names(types).find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, number)| number)
}

/// The number behind `!`, decimal or hexadecimal: `165`, `0xa5`.
pub(crate) fn parse(text: &str) -> Option<u16> {
    let value = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u16::from_str_radix(hex, 16),
        None => text.parse(),
    };
    value.ok()
}

/// Writes gpart's form: the name, or `!` and the decimal number.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, types: &[Known], number: u16) -> fmt::Result {
    match alias(types, number) {
        Some(alias) => f.pad(alias),
        None => f.pad(&format!("!{number}")),
    }
}
