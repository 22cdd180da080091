//! A table of found partitions as text that other programs take.

use super::{Holds, Lost};
use crate::gpt::{Guid, types};
use std::fmt::Write;

/// The tables that can be written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptScheme {
    /// GUID partition table, `label: gpt`.
    Gpt,
    /// Master boot record: the first four partitions.
    Mbr,
}

impl ScriptScheme {
    /// The scheme that holds all offered partitions: a GPT where they leave room for its two
    /// copies, else an MBR. An end that is a guess keeps no GPT out.
    pub fn fitting(lost: &[Lost], media_sectors: u64, sector_size_bytes: u32) -> ScriptScheme {
        let (first, after) = usable(media_sectors, sector_size_bytes);
        let mut offered = lost.iter().filter(|one| one.over.is_none());
        let fits = |one: &Lost| {
            let end = match one.guessed_end {
                true => one.first + 1,
                false => one.first + one.sectors,
            };
            one.first >= first && end <= after
        };
        match offered.all(fits) {
            true => ScriptScheme::Gpt,
            false => ScriptScheme::Mbr,
        }
    }

    /// Ends that are guesses leave room for the second copy of a GPT.
    pub fn shorten(self, lost: &mut [Lost], media_sectors: u64, sector_size_bytes: u32) {
        let (_, after) = usable(media_sectors, sector_size_bytes);
        if self == ScriptScheme::Mbr {
            return;
        }
        for one in lost.iter_mut().filter(|one| one.guessed_end) {
            let room = after.saturating_sub(one.first);
            if room > 0 {
                one.sectors = one.sectors.min(room);
            }
        }
    }
}

/// The first sector that a GPT of 128 entries leaves to partitions, and the one behind the last.
fn usable(media_sectors: u64, sector_size_bytes: u32) -> (u64, u64) {
    let table = 16_384_u64.div_ceil(u64::from(sector_size_bytes.max(512)));
    (2 + table, media_sectors.saturating_sub(1 + table))
}

/// The partitions that go into a table of that scheme, in their order.
fn chosen(lost: &[Lost], scheme: ScriptScheme) -> Vec<&Lost> {
    let offered = lost.iter().filter(|one| one.over.is_none());
    match scheme {
        ScriptScheme::Gpt => offered.take(128).collect(),
        ScriptScheme::Mbr => offered
            .filter(|one| one.first > 0 && one.first + one.sectors <= u64::from(u32::MAX))
            .take(4)
            .collect(),
    }
}

/// A script for `sfdisk IMAGE`.
pub fn sfdisk_script(lost: &[Lost], scheme: ScriptScheme, sector_size_bytes: u32) -> String {
    let label = match scheme {
        ScriptScheme::Gpt => "gpt",
        ScriptScheme::Mbr => "dos",
    };
    let mut text = format!("label: {label}\nunit: sectors\nsector-size: {sector_size_bytes}\n\n");
    for one in chosen(lost, scheme) {
        let kind = match scheme {
            ScriptScheme::Gpt => type_of(one).to_string().to_uppercase(),
            ScriptScheme::Mbr => format!("{:x}", number_of(one.place.holds)),
        };
        let (first, sectors) = (one.first, one.sectors);
        let _ = writeln!(text, "start={first}, size={sectors}, type={kind}");
    }
    text
}

/// A table as `gpart backup` prints it, for `gpart restore`.
pub fn gpart_script(lost: &[Lost], scheme: ScriptScheme) -> String {
    let chosen = chosen(lost, scheme);
    let mut text = match scheme {
        ScriptScheme::Gpt => "GPT 128\n".to_owned(),
        ScriptScheme::Mbr => "MBR 4\n".to_owned(),
    };
    for (index, one) in (1..).zip(chosen) {
        let kind = match scheme {
            ScriptScheme::Gpt => types::name(type_of(one)),
            ScriptScheme::Mbr => format!("!{}", number_of(one.place.holds)),
        };
        let (first, sectors) = (one.first, one.sectors);
        let _ = writeln!(text, "{index} {kind} {first} {sectors}");
    }
    text
}

fn type_of(one: &Lost) -> Guid {
    if let Some((kind, _)) = &one.place.entry {
        return *kind;
    }
    let name = match one.place.holds {
        Holds::Fat | Holds::ExFat | Holds::Ntfs => "ms-basic-data",
        Holds::Apfs => "apple-apfs",
        Holds::Hfs | Holds::HfsPlus => "apple-hfs",
        Holds::Md => "linux-raid",
        Holds::Ufs => "freebsd-ufs",
        Holds::Swap => "linux-swap",
        Holds::Lvm2 => "linux-lvm",
        _ => "linux-data",
    };
    types::parse(name).unwrap_or(types::LINUX_DATA)
}

fn number_of(holds: Holds) -> u8 {
    match holds {
        Holds::Fat => 0x0c,
        Holds::ExFat | Holds::Ntfs => 0x07,
        Holds::Hfs | Holds::HfsPlus => 0xaf,
        Holds::Md => 0xfd,
        Holds::Ufs => 0xa5,
        Holds::Swap => 0x82,
        Holds::Lvm2 => 0x8e,
        _ => 0x83,
    }
}
