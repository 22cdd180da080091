//! What the integration tests share: sparse disk images from XML.

use std::collections::BTreeMap;

/// A disk of which only some sectors are known; the others read as zeros.
#[derive(Debug, Default)]
pub struct XmlDisk {
    pub sector_size_bytes: u32,
    pub media_size_bytes: u64,
    /// Cylinders, heads and sectors as the firmware reported them.
    pub firmware: Option<(u64, u64, u64)>,
    sectors: BTreeMap<u64, Vec<u8>>,
}

impl XmlDisk {
    /// Reads the DISKIMAGE format: plain text with one tag a line, numbers
    /// between tags, hexadecimal digits over several lines.
    pub fn parse(xml: &str) -> XmlDisk {
        let number = |tag: &str, text: &str| -> Option<u64> {
            let (_, rest) = text.split_once(&format!("<{tag}>"))?;
            rest.split_once('<')?.0.trim().parse().ok()
        };
        let mut disk = XmlDisk {
            sector_size_bytes: number("sectorsize", xml).expect("a sector size") as u32,
            ..Default::default()
        };
        for sector in xml.split("<sector>").skip(1) {
            let offset = number("offset", sector).expect("an offset");
            let (_, rest) = sector.split_once("<hexdata>").expect("data");
            let digits: Vec<u8> = rest
                .split_once('<')
                .expect("an end of the data")
                .0
                .bytes()
                .filter_map(|c| char::from(c).to_digit(16).map(|digit| digit as u8))
                .collect();
            let bytes = digits
                .chunks_exact(2)
                .map(|pair| pair[0] << 4 | pair[1])
                .collect();
            disk.sectors.insert(offset, bytes);
        }
        // A size of 0 means: the last known sector and ten more.
        let unit = u64::from(disk.sector_size_bytes);
        let implied = disk
            .sectors
            .keys()
            .last()
            .map_or(0, |last| last + 10 * unit);
        disk.media_size_bytes = match number("mediasize", xml) {
            Some(size) if size != 0 => size,
            _ => implied,
        };
        let firmware = ["fwcylinders", "fwheads", "fwsectors"].map(|tag| number(tag, xml));
        if let [Some(cylinders), Some(heads), Some(sectors)] = firmware
            && sectors != 0
        {
            disk.firmware = Some((cylinders, heads, sectors));
        }
        disk
    }

    pub fn sector(&self, lba: u64) -> Vec<u8> {
        let unit = u64::from(self.sector_size_bytes);
        let zeros = || vec![0; unit as usize];
        self.sectors
            .get(&(lba * unit))
            .cloned()
            .unwrap_or_else(zeros)
    }
}
