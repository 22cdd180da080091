//! The types that partitions of a scheme may have, by gpart's names.

use super::Scheme;
use crate::{apm, bsd, bsd64, gpt, mbr, pc98, vtoc8};

/// A type with gpart's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    /// The name that gpart(8) uses, as `freebsd-ufs`.
    pub name: String,
    /// Its number, GUID or text on the media, as it may follow `!`.
    pub value: String,
}

impl Scheme {
    /// All types with a name, in gpart's spelling. Any other is given by its
    /// number, GUID or text after `!`.
    pub fn types(self) -> Vec<TypeName> {
        let entry = |name: &str, value: String| TypeName {
            name: name.to_owned(),
            value,
        };
        let pc = |extended: bool| -> Vec<TypeName> {
            mbr::PartType::names()
                .filter(|(_, kind)| *kind != mbr::PartType::PROTECTIVE)
                .filter(|(_, kind)| extended || !kind.is_extended())
                .map(|(name, kind)| entry(name, kind.0.to_string()))
                .collect()
        };
        match self {
            Scheme::Apm => apm::types()
                .map(|(value, name)| entry(name, value.to_owned()))
                .collect(),
            Scheme::Bsd => bsd::FsType::names()
                .map(|(name, kind)| entry(name, kind.0.to_string()))
                .collect(),
            Scheme::Bsd64 => bsd64::Bsd64Type::names()
                .filter_map(|name| Some((name, bsd64::Bsd64Type::parse(name)?)))
                .map(|(name, kind)| match kind.guid.is_unused() {
                    true => entry(name, kind.number.to_string()),
                    false => entry(name, kind.guid.to_string()),
                })
                .collect(),
            Scheme::Ebr => pc(false),
            Scheme::Gpt => gpt::types::all()
                .map(|(name, kind)| entry(name, kind.to_string()))
                .collect(),
            Scheme::Ldm => Vec::new(),
            Scheme::Mbr => pc(true),
            Scheme::Pc98 => vec![entry("freebsd", pc98::Pc98Type::FREEBSD.0.to_string())],
            Scheme::Vtoc8 => vtoc8::Tag::names()
                .map(|(name, tag)| entry(name, tag.0.to_string()))
                .collect(),
        }
    }
}
