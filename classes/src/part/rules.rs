//! Which table may stand on which: the one place that tasting and writing ask.
//!
//! What stands below is asked of the provider itself (`PART::scheme` and its relatives), so that
//! the answer is the same through a `nop` on a partition as on the partition.

use super::names;
use ugeom_format::mbr::PartType;
use ugeom_stack::AttributeValue;

/// The table below a provider, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Below {
    scheme: Option<String>,
    kind: Option<String>,
    mbr_type: Option<PartType>,
}

impl Below {
    /// Finds out with GETATTR.
    pub(super) fn ask(mut attribute: impl FnMut(&str) -> Option<AttributeValue>) -> Self {
        let scheme = text(attribute("PART::scheme"));
        if scheme.is_none() {
            return Self::default();
        }
        let mbr_type = match attribute("MBR::type") {
            Some(AttributeValue::Number(number)) => u8::try_from(number).ok().map(PartType),
            _ => None,
        };
        Self {
            scheme,
            kind: text(attribute("PART::type")),
            mbr_type,
        }
    }

    /// Why a table of `scheme` is not looked for here; `None` when it is.
    pub(super) fn refuses(&self, scheme: &str) -> Option<String> {
        let below = self.scheme.as_deref();
        let kind = self.kind.as_deref().unwrap_or("unknown");
        let reason = match (scheme, below) {
            (names::EBR, Some(names::MBR)) if self.mbr_type.is_some_and(PartType::is_extended) => {
                return None;
            }
            (names::EBR, _) => "logical partitions stand in an extended one of an MBR".to_owned(),
            (_, None) => return None,
            (names::BSD, Some(names::MBR | names::EBR)) => match self.mbr_type {
                Some(PartType::FREEBSD) => return None,
                _ => format!("a slice with a disklabel has the type freebsd (165), not {kind}"),
            },
            (names::BSD, Some(names::GPT)) => match kind {
                "freebsd" => return None,
                _ => format!("a GPT partition with a disklabel has the type freebsd, not {kind}"),
            },
            (names::BSD, Some(names::APM)) => return None,
            (_, Some(below)) => format!("it is a partition of a table itself ({below})"),
        };
        Some(reason)
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

    fn allowed(below: &Below) -> Vec<&'static str> {
        let all = [names::MBR, names::EBR, names::BSD, names::GPT, names::APM];
        all.into_iter()
            .filter(|scheme| below.refuses(scheme).is_none())
            .collect()
    }

    #[test]
    fn a_whole_disk_may_carry_any_table_but_an_extended_one() {
        let disk = Below::ask(|_| None);
        assert_eq!(allowed(&disk), ["MBR", "BSD", "GPT", "APM"]);
    }

    #[test]
    fn only_the_right_partitions_are_looked_into() {
        for (scheme, kind, number, expected) in [
            ("MBR", "freebsd", Some(165), vec!["BSD"]),
            ("MBR", "ebr", Some(5), vec!["EBR"]),
            ("MBR", "!15", Some(15), vec!["EBR"]),
            ("MBR", "fat32", Some(11), vec![]),
            ("EBR", "freebsd", Some(165), vec!["BSD"]),
            ("EBR", "ebr", Some(5), vec![]),
            ("GPT", "freebsd", None, vec!["BSD"]),
            ("GPT", "freebsd-ufs", None, vec![]),
            ("APM", "apple-hfs", None, vec!["BSD"]),
            ("BSD", "freebsd-ufs", None, vec![]),
            ("BSD", "freebsd-ufs", Some(165), vec![]),
        ] {
            assert_eq!(
                allowed(&below(scheme, kind, number)),
                expected,
                "{scheme} {kind}"
            );
        }
    }
}
