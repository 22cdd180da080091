//! File system types of a disklabel's partitions.
//!
//! Source: FreeBSD `sys/sys/disk/bsd.h` (`FS_*`) and gpart(8) for the names.

use crate::numbered;
use std::fmt;

/// The `p_fstype` byte of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FsType(pub u8);

/// The system that a label is of: their types differ from 13 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// FreeBSD, DragonFly, and where nothing tells.
    FreeBsd,
    /// OpenBSD, by the names of its `sys/sys/disklabel.h`.
    OpenBsd,
    /// NetBSD, by the names of its `sys/sys/bootblock.h`.
    NetBsd,
}

impl FsType {
    /// Not in use, or not said.
    pub const UNUSED: FsType = FsType(0);
    /// Swap space: `FS_SWAP` in every system.
    pub const SWAP: FsType = FsType(1);
    /// The fast file system of 4.2BSD: UFS.
    pub const UFS: FsType = FsType(7);

    /// gpart's name, if it has one.
    pub fn alias(self) -> Option<&'static str> {
        numbered::alias(TYPES, self.0.into())
    }

    /// gpart's names, in the order of their numbers.
    pub fn names() -> impl Iterator<Item = (&'static str, FsType)> {
        numbered::names(TYPES).map(|(name, number)| (name, FsType(number as u8)))
    }

    /// The name that disklabel(8) prints (`4.2BSD`, `swap`), if it has one.
    pub fn description(self) -> Option<&'static str> {
        numbered::description(TYPES, self.0.into())
    }

    /// The name in the label of that system, if it has one.
    pub fn description_on(self, system: System) -> Option<&'static str> {
        let names: &[&'static str] = match system {
            System::OpenBsd if self.0 >= FIRST_OWN_TYPE => OPENBSD,
            System::NetBsd if self.0 >= FIRST_OWN_TYPE => NETBSD,
            _ => return self.description(),
        };
        names.get(usize::from(self.0 - FIRST_OWN_TYPE)).copied()
    }

    /// gpart's form in the label of that system: a name that gpart has for
    /// another system's number means something else there.
    pub fn name_on(self, system: System) -> String {
        match system {
            System::FreeBsd => self.to_string(),
            _ if self.0 < FIRST_OWN_TYPE => self.to_string(),
            _ => format!("!{}", self.0),
        }
    }

    /// Understands gpart's names, disklabel's names, `!7` and `!0x7`.
    pub fn parse(text: &str) -> Option<FsType> {
        if let Some(number) = text.strip_prefix('!') {
            return u8::try_from(numbered::parse(number)?).ok().map(FsType);
        }
        let own = || {
            TYPES
                .iter()
                .find(|known| known.2.eq_ignore_ascii_case(text))
        };
        let number = numbered::by_name(TYPES, text).or_else(|| Some(own()?.0));
        number.map(|number| FsType(number as u8))
    }
}

/// gpart's form: the name, or `!` and the decimal number.
impl fmt::Display for FsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        numbered::write(f, TYPES, self.0.into())
    }
}

/// Number, gpart's name or nothing, disklabel's name.
const TYPES: &[numbered::Known] = &[
    (0, "", "unused"),
    (1, "freebsd-swap", "swap"),
    (2, "", "Version 6"),
    (3, "", "Version 7"),
    (4, "", "System V"),
    (5, "", "4.1BSD"),
    (6, "", "Eighth Edition"),
    (7, "freebsd-ufs", "4.2BSD"),
    (8, "", "MSDOS"),
    (9, "", "4.4LFS"),
    (10, "", "unknown"),
    (11, "", "HPFS"),
    (12, "", "ISO9660"),
    (13, "", "boot"),
    (14, "freebsd-vinum", "vinum"),
    (15, "", "raid"),
    (16, "", "Filecore"),
    (17, "", "EXT2FS"),
    (18, "", "NTFS"),
    (20, "", "ccd"),
    (21, "", "jfs"),
    (22, "", "HAMMER"),
    (23, "", "HAMMER2"),
    (24, "", "UDF"),
    (26, "", "EFS"),
    (27, "freebsd-zfs", "ZFS"),
    (30, "freebsd-nandfs", "nandfs"),
];

/// First number that means different things to different systems.
const FIRST_OWN_TYPE: u8 = 14;

/// OpenBSD's names from there on (`sys/sys/disklabel.h`).
#[rustfmt::skip]
const OPENBSD: &[&str] = &[
    "ADOS", "HFS", "ADFS", "ext2fs", "ccd", "RAID", "NTFS", "UDF",
];

/// Names from number 12 on of NetBSD (`sys/sys/bootblock.h`, `sys/sys/disklabel.h`).
#[rustfmt::skip]
const NETBSD: &[&str] = &[
    "ADOS", "HFS", "FILECORE", "Linux Ext2", "NTFS", "RAID", "ccd", "jfs", "Apple UFS", "vinum",
    "UDF", "SysVBFS", "EFS", "NiLFS", "cgd", "MINIX FSv3", "VMKCore", "VMFS",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_prints_as_something_that_parses_back() {
        for number in 0..=255 {
            let kind = FsType(number);
            assert_eq!(FsType::parse(&kind.to_string()), Some(kind));
            assert_eq!(
                kind.description().and_then(FsType::parse).unwrap_or(kind),
                kind
            );
        }
    }

    #[test]
    fn names_are_understood_in_any_case() {
        assert_eq!(FsType::parse("FreeBSD-UFS"), Some(FsType::UFS));
        assert_eq!(FsType::parse("4.2bsd"), Some(FsType::UFS));
        assert_eq!(FsType::parse("!0x1b"), Some(FsType(27)));
        assert_eq!(FsType::parse("linux-data"), None);
    }
}
