//! Types of a disklabel64's partitions: a number, or a UUID beside the number for "other"
//! (FreeBSD `sys/geom/part/g_part_bsd64.c`, DragonFly `sys/sys/dtype.h`).

use crate::gpt::{Guid, types};
use std::fmt;

/// The number that says: look at the UUID.
pub const FS_OTHER: u8 = 10;

/// The type of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bsd64Type {
    /// The number in the label (`p_fstype`).
    pub number: u8,
    /// The UUID, all zeros for none.
    pub guid: Guid,
}

impl Bsd64Type {
    /// gpart's name, if it has one.
    pub fn alias(&self) -> Option<&'static str> {
        if self.number != FS_OTHER {
            let known = NUMBERS.iter().find(|known| known.0 == self.number);
            return known.map(|known| known.1);
        }
        let name = types::alias(self.guid)?;
        UUIDS.contains(&name).then_some(name)
    }

    /// Understands gpart's names, `!7` and `!` with a UUID.
    pub fn parse(text: &str) -> Option<Bsd64Type> {
        let numbered = |number| Bsd64Type {
            number,
            guid: Guid::UNUSED,
        };
        if let Some(raw) = text.strip_prefix('!') {
            if let Some(number) = crate::numbered::parse(raw) {
                let number = u8::try_from(number).ok()?;
                return (number != 0).then(|| numbered(number));
            }
            let guid: Guid = raw.parse().ok()?;
            let known = types::alias(guid).and_then(by_name);
            return (!guid.is_unused()).then(|| match known {
                Some(number) => numbered(number),
                None => Bsd64Type {
                    number: FS_OTHER,
                    guid,
                },
            });
        }
        let lower = text.to_ascii_lowercase();
        if let Some(number) = by_name(&lower) {
            return Some(numbered(number));
        }
        let guid = UUIDS
            .contains(&lower.as_str())
            .then(|| types::parse(&lower))??;
        Some(Bsd64Type {
            number: FS_OTHER,
            guid,
        })
    }

    /// gpart's names of the types, in the order of their UUIDs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        UUIDS
            .iter()
            .copied()
            .chain(NUMBERS.iter().map(|known| known.1))
    }
}

fn by_name(name: &str) -> Option<u8> {
    let known = NUMBERS.iter().find(|known| known.1 == name);
    known.map(|known| known.0)
}

/// gpart's form: the name, or `!` and the UUID or number.
impl fmt::Display for Bsd64Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.alias() {
            Some(alias) => f.pad(alias),
            None if self.guid.is_unused() => f.pad(&format!("!{}", self.number)),
            None => f.pad(&format!("!{}", self.guid)),
        }
    }
}

/// DragonFly's types have numbers.
const NUMBERS: &[(u8, &str)] = &[
    (1, "dragonfly-swap"),
    (7, "dragonfly-ufs"),
    (14, "dragonfly-vinum"),
    (20, "dragonfly-ccd"),
    (22, "dragonfly-hammer"),
    (23, "dragonfly-hammer2"),
];

/// FreeBSD's types, which have UUIDs and no number.
const UUIDS: &[&str] = &[
    "freebsd-boot",
    "freebsd-swap",
    "freebsd-ufs",
    "freebsd-zfs",
    "freebsd-vinum",
    "freebsd-nandfs",
    "dragonfly-legacy",
];
