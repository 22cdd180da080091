//! The rules for tables on other tables, for tasting and writing.
//!
//! The provider below is queried itself (`PART::scheme` and related attributes), so that the answer
//! through a `nop` on a partition is that of the partition.

use super::names;
use ugeom_format::mbr::PartType;
use ugeom_stack::AttributeValue;

/// Partitions of these hold no tables: GEOM_PART's leaves, and the tables that it does not know.
const LEAVES: [&str; 6] = [
    names::BSD,
    names::BSD64,
    names::VTOC8,
    names::SGI,
    names::AMIGA,
    names::ATARI,
];
/// These are looked for on whole disks only.
const OUTERMOST: [&str; 4] = [names::LDM, names::SGI, names::AMIGA, names::ATARI];

/// The table below a provider, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Below {
    scheme: Option<String>,
    kind: Option<String>,
    mbr_type: Option<PartType>,
    /// The partition begins where its disk does.
    at_start: bool,
    /// The partition begins inside an earlier one.
    overlaps: bool,
}

impl Below {
    /// Finds out with GETATTR.
    pub(super) fn ask(mut attribute: impl FnMut(&str) -> Option<AttributeValue>) -> Self {
        let scheme = text(attribute("PART::scheme"));
        if scheme.is_none() {
            return Self::default();
        }
        let mut number = |name| match attribute(name) {
            Some(AttributeValue::Number(number)) => Some(number),
            _ => None,
        };
        let mbr_type = number("MBR::type").and_then(|kind| u8::try_from(kind).ok());
        let at_start = number("PART::offset") == Some(0);
        let overlaps = number("PART::overlaps") == Some(1);
        Self {
            scheme,
            kind: text(attribute("PART::type")),
            mbr_type: mbr_type.map(PartType),
            at_start,
            overlaps,
        }
    }

    /// Why a table of `scheme` is not looked for here; `None` when it is.
    pub(super) fn refuses(&self, scheme: &str) -> Option<String> {
        let below = self.scheme.as_deref();
        let in_mbr = matches!(below, Some(names::MBR | names::EBR));
        let is_extended = self.mbr_type.is_some_and(PartType::is_extended);
        let reason = match (scheme, below) {
            (names::EBR, Some(names::MBR)) if is_extended => return None,
            (names::EBR, _) => "logical partitions need an extended partition of an MBR".to_owned(),
            (_, None) => return None,
            (_, Some(below)) if LEAVES.contains(&below) => {
                format!("a partition of {below} holds no table")
            }
            (_, Some(below)) if OUTERMOST.contains(&scheme) => {
                format!("it is a partition of a table itself ({below})")
            }
            (names::MBR, _) if in_mbr => "an MBR is not nested in a slice of an MBR".to_owned(),
            (_, Some(names::MBR)) if is_extended => "it holds logical partitions".to_owned(),
            (names::BSD, _) if self.is_made_for_labels() => return None,
            _ if self.at_start => {
                "the partition begins where its disk does: the table would be the disk's".to_owned()
            }
            _ if self.overlaps => "the partition begins inside another one".to_owned(),
            _ => return None,
        };
        Some(reason)
    }

    /// The types that GEOM's class BSD of 2002 looked for.
    fn is_made_for_labels(&self) -> bool {
        match self.scheme.as_deref() {
            Some(names::MBR | names::EBR) => self.mbr_type == Some(PartType::FREEBSD),
            Some(names::GPT | names::PC98) => self.kind.as_deref() == Some("freebsd"),
            Some(scheme) => scheme == names::APM,
            None => false,
        }
    }
}

fn text(value: Option<AttributeValue>) -> Option<String> {
    match value? {
        AttributeValue::Text(text) => Some(text),
        AttributeValue::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(scheme: &str, kind: &str, mbr_type: Option<i64>) -> Below {
        Below::ask(|name| match name {
            "PART::scheme" => Some(AttributeValue::Text(scheme.into())),
            "PART::type" => Some(AttributeValue::Text(kind.into())),
            "MBR::type" => mbr_type.map(AttributeValue::Number),
            _ => None,
        })
    }

    const ALL: [&str; 12] = [
        names::MBR,
        names::EBR,
        names::BSD,
        names::GPT,
        names::APM,
        names::BSD64,
        names::VTOC8,
        names::PC98,
        names::LDM,
        names::SGI,
        names::AMIGA,
        names::ATARI,
    ];

    fn allowed(below: &Below) -> Vec<&'static str> {
        let all = ALL.into_iter();
        all.filter(|scheme| below.refuses(scheme).is_none())
            .collect()
    }

    #[test]
    fn a_whole_disk_may_carry_any_table_but_an_extended_one() {
        let disk = Below::ask(|_| None);
        let expected: Vec<&str> = ALL.into_iter().filter(|s| *s != names::EBR).collect();
        assert_eq!(allowed(&disk), expected);
    }

    #[test]
    fn partitions_hold_any_table_but_an_mbr_in_an_mbr() {
        let nested = ["BSD", "GPT", "APM", "BSD64", "VTOC8", "PC98"];
        let with_mbr = [&["MBR"], &nested[..]].concat();
        for (scheme, kind, number, expected) in [
            ("MBR", "freebsd", Some(165), nested.to_vec()),
            ("MBR", "ebr", Some(5), vec!["EBR"]),
            ("MBR", "!15", Some(15), vec!["EBR"]),
            ("MBR", "fat32", Some(11), nested.to_vec()),
            ("EBR", "freebsd", Some(165), nested.to_vec()),
            ("GPT", "linux-data", None, with_mbr.clone()),
            ("APM", "apple-hfs", None, with_mbr.clone()),
            ("PC98", "freebsd", None, with_mbr),
            ("BSD", "freebsd-ufs", None, vec![]),
            ("BSD", "freebsd-ufs", Some(165), vec![]),
            ("BSD64", "dragonfly-ufs", None, vec![]),
            ("VTOC8", "!2", None, vec![]),
            ("SGI", "!10", None, vec![]),
        ] {
            let found = allowed(&below(scheme, kind, number));
            assert_eq!(found, expected, "{scheme} {kind}");
        }
    }

    #[test]
    fn a_table_is_not_taken_again_through_a_partition_that_shows_it() {
        for attribute in ["PART::offset", "PART::overlaps"] {
            let seen = |kind: &'static str, number: i64| {
                Below::ask(move |name| match name {
                    "PART::scheme" => Some(AttributeValue::Text("MBR".into())),
                    "PART::type" => Some(AttributeValue::Text(kind.into())),
                    "MBR::type" => Some(AttributeValue::Number(number)),
                    "PART::offset" if attribute == name => Some(AttributeValue::Number(0)),
                    "PART::overlaps" if attribute == name => Some(AttributeValue::Number(1)),
                    _ => None,
                })
            };
            assert_eq!(allowed(&seen("linux-data", 131)), [""; 0], "{attribute}");
            assert_eq!(allowed(&seen("freebsd", 165)), ["BSD"], "{attribute}");
        }
    }
}
