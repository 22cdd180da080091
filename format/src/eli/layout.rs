//! Where the sectors of a GELI provider lie on the provider below.
//!
//! ```text
//! without tags:   [ sector 0 ][ sector 1 ] ...                          [ metadata ]
//! with tags:      [T|data..|0][T|data..|0][T|dat|0] [T|data..|0] ...    [ metadata ]
//!                  \________ sector 0 __________/    \_ sector 1
//! ```
//! With tags each sector is divided among n sectors of the provider below ("component sectors").
//! Each begins with its tag; data follows in multiples of 16 bytes, and what is left is unused.

use super::{EliError, SECTOR_BYTES_MAX};

/// Data is carried in multiples of this, bytes (128 bits, `g_eli_create`).
const DATA_UNIT_BYTES: u32 = 16;

/// Where sectors and their tags lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EliLayout {
    /// Sector size of the provider that GELI makes, bytes.
    pub sector_bytes: u32,
    /// Size of its media, bytes.
    pub media_bytes: u64,
    /// Sector size of the provider below, bytes.
    pub below_bytes: u32,
    /// How a sector is divided, when sectors are authenticated.
    pub sub_sectors: Option<SubSectors>,
}

/// How one sector is divided among sectors of the provider below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubSectors {
    /// Length of a tag, bytes.
    pub tag_bytes: u32,
    /// Data that all but the last of them carry, bytes.
    pub data_bytes: u32,
    /// Data that the last of them carries, bytes.
    pub last_bytes: u32,
    /// How many there are.
    pub count: u32,
}

impl EliLayout {
    /// The layout on `usable_bytes` of a provider with sectors of `below_bytes`.
    ///
    /// # Errors
    /// `SectorSize`, `NoRoom` or `TooSmall`.
    pub fn new(
        usable_bytes: u64,
        sector_bytes: u32,
        below_bytes: u32,
        tag_bytes: Option<usize>,
    ) -> Result<Self, EliError> {
        let possible = below_bytes > 0
            && (1..=SECTOR_BYTES_MAX).contains(&sector_bytes)
            && sector_bytes.is_multiple_of(below_bytes)
            && sector_bytes.is_multiple_of(DATA_UNIT_BYTES);
        if !possible {
            return Err(EliError::SectorSize {
                found: sector_bytes,
                below: below_bytes,
            });
        }
        let sub_sectors = match tag_bytes {
            None => None,
            Some(tag) => Some(SubSectors::new(sector_bytes, below_bytes, tag)?),
        };
        let stride_bytes = match sub_sectors {
            None => u64::from(sector_bytes),
            Some(sub) => u64::from(sub.count) * u64::from(below_bytes),
        };
        let media_bytes = usable_bytes / stride_bytes * u64::from(sector_bytes);
        if media_bytes == 0 {
            return Err(EliError::TooSmall {
                provider_bytes: usable_bytes,
                sector_bytes,
            });
        }
        Ok(Self {
            sector_bytes,
            media_bytes,
            below_bytes,
            sub_sectors,
        })
    }

    /// The size of a sector on the provider below, bytes.
    pub fn stride_bytes(&self) -> u64 {
        match self.sub_sectors {
            None => u64::from(self.sector_bytes),
            Some(sub) => u64::from(sub.count) * u64::from(self.below_bytes),
        }
    }

    /// The range of the provider below that holds the sectors from `offset` on, `length` bytes of
    /// them: where it begins, and how long it is. Both arguments are multiples of the sector size
    /// and inside the media.
    pub fn below(&self, offset: u64, length: u64) -> (u64, u64) {
        let sector = u64::from(self.sector_bytes);
        let stride = self.stride_bytes();
        (offset / sector * stride, length / sector * stride)
    }
}

impl SubSectors {
    fn new(sector_bytes: u32, below_bytes: u32, tag: usize) -> Result<Self, EliError> {
        let no_room = EliError::NoRoom {
            tag,
            below: below_bytes,
        };
        let Some(room) = u32::try_from(tag)
            .ok()
            .and_then(|t| below_bytes.checked_sub(t))
        else {
            return Err(no_room);
        };
        let data_bytes = room - room % DATA_UNIT_BYTES;
        if data_bytes == 0 {
            return Err(no_room);
        }
        let rest = sector_bytes % data_bytes;
        Ok(Self {
            tag_bytes: below_bytes - room,
            data_bytes,
            last_bytes: if rest == 0 { data_bytes } else { rest },
            count: sector_bytes.div_ceil(data_bytes),
        })
    }

    /// Data that sub-sector `number` of a sector carries, bytes.
    pub fn carried_bytes(&self, number: u32) -> u32 {
        match number + 1 == self.count {
            true => self.last_bytes,
            false => self.data_bytes,
        }
    }
}
