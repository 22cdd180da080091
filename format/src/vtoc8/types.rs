//! Tags of a Sun label's partitions (FreeBSD `sys/sys/vtoc.h`, Solaris `sys/vtoc.h`).

use crate::numbered;
use std::fmt;

/// The type of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag(pub u16);

impl Tag {
    /// Tag of the partition for the whole disk, `c`.
    pub const BACKUP: Tag = Tag(5);

    /// gpart's name, if it has one.
    pub fn alias(self) -> Option<&'static str> {
        numbered::alias(TYPES, self.0)
    }

    /// Solaris' name, if it has one.
    pub fn description(self) -> Option<&'static str> {
        numbered::description(TYPES, self.0)
    }

    /// Understands gpart's names, `!2` and `!0x902`; no tag is 0 by itself.
    pub fn parse(text: &str) -> Option<Tag> {
        if let Some(number) = text.strip_prefix('!') {
            return numbered::parse(number)
                .filter(|number| *number != 0)
                .map(Tag);
        }
        numbered::by_name(TYPES, text).map(Tag)
    }

    /// gpart's names, in the order of their numbers.
    pub fn names() -> impl Iterator<Item = (&'static str, Tag)> {
        numbered::names(TYPES).map(|(name, number)| (name, Tag(number)))
    }
}

/// gpart's form: the name, or `!` and the decimal number.
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        numbered::write(f, TYPES, self.0)
    }
}

/// Number, gpart's name or nothing, Solaris' name or nothing.
const TYPES: &[numbered::Known] = &[
    (0, "", "unassigned"),
    (1, "", "boot"),
    (2, "", "root"),
    (3, "", "swap"),
    (4, "", "usr"),
    (5, "", "backup"),
    (6, "", "stand"),
    (7, "", "var"),
    (8, "", "home"),
    (9, "", "alternates"),
    (10, "", "cache"),
    (11, "", "reserved"),
    (0x82, "", "Linux swap"),
    (0x83, "", "Linux"),
    (0x8e, "", "Linux LVM"),
    (0xfd, "", "Linux RAID"),
    (0x0901, "freebsd-swap", ""),
    (0x0902, "freebsd-ufs", ""),
    (0x0903, "freebsd-vinum", ""),
    (0x0904, "freebsd-zfs", ""),
    (0x0905, "freebsd-nandfs", ""),
];
