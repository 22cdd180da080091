//! Real disks of 2001 and 2002 in the DISKIMAGE format of GEOM's author: the sectors that matter,
//! as text.

use crate::shared;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A disk of which only some sectors are known; the others read as zeros.
#[derive(Debug)]
pub struct RecordedDisk {
    /// Size of a sector, bytes.
    pub sector_size_bytes: u64,
    /// Size of the disk, bytes.
    pub media_size_bytes: u64,
    /// Heads, and sectors a track, where the firmware reported them.
    pub geometry: Option<(u64, u64)>,
    /// The known sectors by their offset in bytes.
    pub sectors: BTreeMap<u64, Vec<u8>>,
    /// The lines that GEOM's diskinfo printed for it.
    pub listing: String,
}

impl RecordedDisk {
    /// A disk by its name, such as `critter.ad0`; `None`, after saying so, without the fixtures.
    ///
    /// # Panics
    /// A file is missing or is not in the format: one tag a line, numbers between tags, hexadecimal
    /// digits over several lines.
    pub fn open(name: &str) -> Option<Self> {
        let folder: PathBuf = shared("fixtures/phk-disks")?;
        let read = |suffix: &str| {
            let path = folder.join(format!("{name}.{suffix}"));
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let xml = read("xml");
        let sector_size_bytes = number(&xml, "sectorsize").expect("a sector size");
        let sectors: BTreeMap<u64, Vec<u8>> = xml.split("<sector>").skip(1).map(sector).collect();
        // A size of 0 means: ten sectors behind the beginning of the last known one.
        let media_size_bytes = number(&xml, "mediasize").filter(|&size| size > 0);
        let last = sectors.keys().last().copied().unwrap_or(0);
        let geometry = number(&xml, "fwheads").zip(number(&xml, "fwsectors"));
        Some(Self {
            sector_size_bytes,
            media_size_bytes: media_size_bytes.unwrap_or(last + 10 * sector_size_bytes),
            geometry: geometry.filter(|&(heads, sectors)| heads > 0 && sectors > 0),
            sectors,
            listing: read("ref"),
        })
    }

    /// The bytes of a sector.
    pub fn sector(&self, lba: u64) -> Vec<u8> {
        let known = self.sectors.get(&(lba * self.sector_size_bytes)).cloned();
        known.unwrap_or_else(|| vec![0; self.sector_size_bytes as usize])
    }
}

fn field<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    rest.split('<').next()
}

fn number(xml: &str, tag: &str) -> Option<u64> {
    field(xml, tag)?.trim().parse().ok()
}

fn sector(xml: &str) -> (u64, Vec<u8>) {
    let digits = field(xml, "hexdata").expect("data").chars();
    let digits: Vec<u8> = digits
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    let bytes = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
    (number(xml, "offset").expect("an offset"), bytes.collect())
}
