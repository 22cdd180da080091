//! The schemes by gpart's names.

use std::fmt;

/// The schemes that are edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Apple partition map: blocks 1 and on.
    Apm,
    /// BSD disklabel, eight to twenty partitions.
    Bsd,
    /// DragonFly's disklabel64, sixteen partitions.
    Bsd64,
    /// Logical partitions in an extended one of an MBR.
    Ebr,
    /// GUID partition table (UEFI 2.10, 5.3).
    Gpt,
    /// Windows' logical disk manager, which is only read.
    Ldm,
    /// Master boot record, four partitions.
    Mbr,
    /// NEC's table of the PC-98, sixteen partitions.
    Pc98,
    /// Sun's disk label, eight partitions.
    Vtoc8,
}

impl Scheme {
    /// All of them, in the order of their names.
    pub const ALL: [Scheme; 9] = [
        Scheme::Apm,
        Scheme::Bsd,
        Scheme::Bsd64,
        Scheme::Ebr,
        Scheme::Gpt,
        Scheme::Ldm,
        Scheme::Mbr,
        Scheme::Pc98,
        Scheme::Vtoc8,
    ];

    /// The name that gpart(8) uses: `GPT`, `MBR` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Apm => "APM",
            Scheme::Bsd => "BSD",
            Scheme::Bsd64 => "BSD64",
            Scheme::Ebr => "EBR",
            Scheme::Gpt => "GPT",
            Scheme::Ldm => "LDM",
            Scheme::Mbr => "MBR",
            Scheme::Pc98 => "PC98",
            Scheme::Vtoc8 => "VTOC8",
        }
    }
}

/// gpart's name of the scheme.
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
