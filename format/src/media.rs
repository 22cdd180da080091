//! The interface of a decoder to the media: their size, and reading of sectors.

/// Size of a provider in its own sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Media {
    /// Bytes in one sector; the tables here are defined for 512 to 4096.
    pub sector_size_bytes: u32,
    /// Number of whole sectors.
    pub sectors: u64,
}

impl Media {
    /// The media of `size_bytes` bytes; a last partial sector does not count.
    ///
    /// Returns `None` when the sector size is not a power of two between 512
    /// and 65,536 bytes: no table here can be read or written then.
    pub fn new(size_bytes: u64, sector_size_bytes: u32) -> Option<Media> {
        let usable =
            sector_size_bytes.is_power_of_two() && (512..=65_536).contains(&sector_size_bytes);
        usable.then(|| Media {
            sector_size_bytes,
            sectors: size_bytes / u64::from(sector_size_bytes),
        })
    }

    /// The media of so many sectors of 512 bytes.
    pub const fn of_512(sectors: u64) -> Media {
        Media {
            sector_size_bytes: 512,
            sectors,
        }
    }

    /// Number of the last sector; 0 for an empty media.
    pub fn last_lba(&self) -> u64 {
        self.sectors.saturating_sub(1)
    }

    /// Sectors needed for `bytes` bytes, rounded up.
    pub(crate) fn sectors_for(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.sector_size_bytes.max(1)))
    }

    /// Length of a sector as an index type.
    pub(crate) fn sector_len(&self) -> usize {
        self.sector_size_bytes as usize
    }
}

/// Reads `count` sectors from sector `lba`: the only way a decoder reaches the
/// media.
///
/// A read that reaches past the end may answer with fewer bytes; the decoder
/// then reports a short table. The error text becomes part of the decoder's
/// own error.
pub type SectorRead<'a> = dyn FnMut(u64, u64) -> Result<Vec<u8>, String> + 'a;

/// Reads so many bytes from an offset of a file; zeroes past its end.
pub type ReadAt<'a> = dyn FnMut(u64, usize) -> std::io::Result<Vec<u8>> + 'a;

/// A sector that a decoder needs and cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sector {sector} cannot be read: {reason}")]
pub struct Unreadable {
    /// First sector of the request.
    pub sector: u64,
    /// The text of the [`SectorRead`], or that the sector lies behind the end.
    pub reason: String,
}

/// Bytes to be written from sector `lba`; a whole number of sectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectorWrite {
    /// The first sector that is written.
    pub lba: u64,
    /// The bytes of whole sectors.
    pub data: Vec<u8>,
}
