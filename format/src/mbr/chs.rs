//! Cylinder, head and sector: the 24-bit address of the old BIOS calls, kept
//! in every MBR entry beside the sector number.

/// A disk's geometry as its BIOS would report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Tracks in a cylinder, 1 to 255.
    pub heads: u8,
    /// Sectors in a track, 1 to 63.
    pub sectors: u8,
}

impl Geometry {
    /// The translation that every BIOS uses for a disk too large for anything
    /// smaller: 255 heads of 63 sectors.
    pub const LBA_ASSIST: Geometry = Geometry {
        heads: 255,
        sectors: 63,
    };
}

/// One CHS address; sectors count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chs {
    /// Cylinder, 0 to 1023 (10 bits).
    pub cylinder: u16,
    /// 0 to 255 (254 is the highest that a BIOS accepts).
    pub head: u8,
    /// 1 to 63 (0 appears in unused entries).
    pub sector: u8,
}

impl Chs {
    /// The value of an entry whose address has no CHS form: 1023, 254, 63 (bytes FE FF FF).
    pub const TOO_LARGE: Chs = Chs {
        cylinder: 1023,
        head: 254,
        sector: 63,
    };

    /// From the three bytes of an entry: head, then sector in the low six bits
    /// with the cylinder's bits 8 and 9 above it, then the cylinder's low byte.
    pub fn decode([head, sector, cylinder]: [u8; 3]) -> Chs {
        Chs {
            cylinder: u16::from(cylinder) | (u16::from(sector & 0xc0) << 2),
            head,
            sector: sector & 0x3f,
        }
    }

    /// The three bytes of an entry; bits that do not fit are dropped.
    pub fn encode(self) -> [u8; 3] {
        let high = ((self.cylinder >> 2) & 0xc0) as u8;
        [self.head, high | (self.sector & 0x3f), self.cylinder as u8]
    }

    /// The CHS address of a sector, or [`Chs::TOO_LARGE`] when its cylinder
    /// does not fit in ten bits.
    pub fn from_lba(lba: u64, geometry: Geometry) -> Chs {
        let sectors = u64::from(geometry.sectors.max(1));
        let heads = u64::from(geometry.heads.max(1));
        let (track, sector) = (lba / sectors, lba % sectors);
        let (cylinder, head) = (track / heads, track % heads);
        if cylinder > 1023 || sectors > 63 {
            return Chs::TOO_LARGE;
        }
        Chs {
            cylinder: cylinder as u16,
            head: head as u8,
            sector: sector as u8 + 1,
        }
    }

    /// The sector number of this address, `None` where the address is outside
    /// the geometry.
    pub fn lba(self, geometry: Geometry) -> Option<u64> {
        let valid = self.sector >= 1
            && self.sector <= geometry.sectors
            && self.head < geometry.heads
            && self.cylinder <= 1023;
        let track = u64::from(self.cylinder) * u64::from(geometry.heads) + u64::from(self.head);
        valid.then(|| track * u64::from(geometry.sectors) + u64::from(self.sector) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_real_entry_give_its_sector() {
        // Second entry of a 2.3 GB disk: starts at sector 4,192,965.
        let geometry = Geometry {
            heads: 255,
            sectors: 63,
        };
        let chs = Chs::decode([0x00, 0x41, 0x05]);
        assert_eq!(
            chs,
            Chs {
                cylinder: 261,
                head: 0,
                sector: 1
            }
        );
        assert_eq!(chs.lba(geometry), Some(4_192_965));
        assert_eq!(Chs::from_lba(4_192_965, geometry), chs);
    }

    #[test]
    fn an_address_past_cylinder_1023_gets_the_marker() {
        let chs = Chs::from_lba(u64::from(u32::MAX), Geometry::LBA_ASSIST);
        assert_eq!(chs.encode(), [0xfe, 0xff, 0xff]);
    }

    #[test]
    fn every_three_bytes_survive_decoding_and_encoding() {
        for raw in (0..=0xff_ffff_u32).step_by(251) {
            let bytes = [raw as u8, (raw >> 8) as u8, (raw >> 16) as u8];
            assert_eq!(Chs::decode(bytes).encode(), bytes);
        }
    }

    #[test]
    fn a_geometry_of_zeros_does_not_divide_by_zero() {
        let none = Geometry {
            heads: 0,
            sectors: 0,
        };
        assert_eq!(Chs::from_lba(5, none).sector, 1);
        assert_eq!(Chs::default().lba(none), None);
    }
}
