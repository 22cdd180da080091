//! Partition types of an MBR: the number, gpart's name for it where gpart has
//! one, and a description for people.
//!
//! Sources: FreeBSD `sys/sys/disk/mbr.h` and gpart(8) for the names; Andries
//! Brouwer's list of partition identifiers for the rest.

use crate::numbered;
use std::fmt;

/// The type byte of an MBR entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PartType(pub u8);

impl PartType {
    /// An entry that is not used.
    pub const UNUSED: PartType = PartType(0x00);
    /// Extended partition addressed by CHS.
    pub const EXTENDED: PartType = PartType(0x05);
    /// Extended partition addressed by sector number.
    pub const EXTENDED_LBA: PartType = PartType(0x0f);
    /// Extended partition that only Linux looks into.
    pub const EXTENDED_LINUX: PartType = PartType(0x85);
    /// A Linux file system.
    pub const LINUX: PartType = PartType(0x83);
    /// A FreeBSD slice, which holds a disklabel.
    pub const FREEBSD: PartType = PartType(0xa5);
    /// The entry that covers a GPT.
    pub const PROTECTIVE: PartType = PartType(0xee);
    /// An OpenBSD slice, which holds a disklabel.
    pub const OPENBSD: PartType = PartType(0xa6);
    /// A NetBSD slice, which holds a disklabel.
    pub const NETBSD: PartType = PartType(0xa9);
    /// A volume of Windows' logical disk manager.
    pub const LDM: PartType = PartType(0x42);

    /// True for the three types whose first sector is an EBR.
    pub fn is_extended(self) -> bool {
        matches!(
            self,
            Self::EXTENDED | Self::EXTENDED_LBA | Self::EXTENDED_LINUX
        )
    }

    /// gpart's name (`freebsd`, `linux-data`, `fat32`), if it has one.
    pub fn alias(self) -> Option<&'static str> {
        numbered::alias(TYPES, self.0.into())
    }

    /// gpart's names, in the order of their numbers; each once.
    pub fn names() -> impl Iterator<Item = (&'static str, PartType)> {
        let named = numbered::names(TYPES).map(|(name, number)| (name, PartType(number as u8)));
        // The first line of a name is the one that it is parsed to.
        named.filter(|(name, kind)| PartType::parse(name) == Some(*kind))
    }

    /// A description for people; `None` for a number that is not listed.
    pub fn description(self) -> Option<&'static str> {
        numbered::description(TYPES, self.0.into())
    }

    /// Understands gpart's names in any case, and `!165` or `!0xa5`.
    ///
    /// Type 0 is refused: it means that the entry is unused.
    pub fn parse(text: &str) -> Option<PartType> {
        if let Some(number) = text.strip_prefix('!') {
            let number = u8::try_from(numbered::parse(number)?).ok()?;
            return (number != 0).then_some(PartType(number));
        }
        numbered::by_name(TYPES, text).map(|number| PartType(number as u8))
    }
}

/// gpart's form: the name, or `!` and the decimal number.
impl fmt::Display for PartType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        numbered::write(f, TYPES, self.0.into())
    }
}

/// Number, gpart's name or nothing, description. The first line of a name is
/// the number that the name is parsed to.
const TYPES: &[numbered::Known] = &[
    (0x00, "", "unused"),
    (0x01, "", "FAT12"),
    (0x04, "", "FAT16 under 32 MB"),
    (0x05, "ebr", "extended"),
    (0x06, "fat16", "FAT16"),
    (0x07, "ntfs", "NTFS, exFAT or HPFS"),
    (0x0b, "fat32", "FAT32"),
    (0x0c, "fat32lba", "FAT32 (LBA)"),
    (0x0e, "", "FAT16 (LBA)"),
    (0x0f, "ebr", "extended (LBA)"),
    (0x11, "", "hidden FAT12"),
    (0x12, "", "rescue or diagnostic"),
    (0x16, "", "hidden FAT16"),
    (0x17, "", "hidden NTFS"),
    (0x1b, "", "hidden FAT32"),
    (0x1c, "", "hidden FAT32 (LBA)"),
    (0x27, "", "Windows recovery"),
    (0x41, "prep-boot", "PReP boot"),
    (0x42, "ms-ldm-data", "Windows dynamic disk"),
    (0x63, "", "System V or Hurd"),
    (0x6c, "", "DragonFly BSD"),
    (0x81, "", "Minix"),
    (0x82, "linux-swap", "Linux swap or Solaris"),
    (0x83, "linux-data", "Linux"),
    (0x85, "", "Linux extended"),
    (0x8e, "linux-lvm", "Linux LVM"),
    (0x9f, "", "BSD/OS"),
    (0xa5, "freebsd", "FreeBSD slice"),
    (0xa6, "", "OpenBSD"),
    (0xa8, "apple-ufs", "Apple UFS"),
    (0xa9, "", "NetBSD"),
    (0xab, "apple-boot", "Apple boot"),
    (0xaf, "apple-hfs", "Apple HFS or HFS+"),
    (0xb7, "", "BSDI"),
    (0xbe, "", "Solaris boot"),
    (0xbf, "", "Solaris"),
    (0xeb, "", "BeOS"),
    (0xee, "", "GPT protective"),
    (0xef, "efi", "EFI system"),
    (0xfb, "vmware-vmfs", "VMware VMFS"),
    (0xfc, "vmware-vmkdiag", "VMware diagnostics"),
    (0xfd, "linux-raid", "Linux RAID"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_understood_as_gpart_does() {
        assert_eq!(PartType::parse("FreeBSD"), Some(PartType(0xa5)));
        assert_eq!(PartType::parse("!165"), Some(PartType(0xa5)));
        assert_eq!(PartType::parse("!0xA5"), Some(PartType(0xa5)));
        assert_eq!(PartType::parse("ebr"), Some(PartType(0x05)));
        for refused in ["", "!", "!0", "!256", "!-1", "freebsd-ufs"] {
            assert_eq!(PartType::parse(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn every_number_prints_as_something_that_parses_back_to_its_kind() {
        for number in 1..=255 {
            let kind = PartType(number);
            let back = PartType::parse(&kind.to_string()).unwrap();
            assert!(
                back == kind || back.is_extended() && kind.is_extended(),
                "{kind:?}"
            );
        }
    }
}
