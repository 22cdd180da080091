//! [`Crypt`]: an opened provider's sectors, between ciphertext and plaintext.

pub use super::cipher::Backend;
use super::cipher::IvKey;
use super::data_keys::DataKeys;
use super::error::EliKeyError;
use super::keys::MasterKey;
use super::tag::{TAG_BYTES_MAX, TagKey};
use std::io;
use ugeom_format::eli::{EliLayout, Metadata, SubSectors};
use ugeom_machine::aes::Sectors;
use ugeom_machine::secret;

/// How the machine that wrote the provider ordered the bytes of an offset, where its own order
/// counts (IVs of versions before 4, keys of tags).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// As x86 and ARM do.
    #[default]
    Little,
    /// As sparc64 and powerpc do.
    Big,
}

/// Why sectors cannot be decrypted or encrypted.
#[derive(Debug, thiserror::Error)]
pub enum CryptError {
    /// A sector has another tag than its bytes give: it was changed, or never written.
    #[error("Failed to authenticate {length} bytes of data at offset {offset}.")]
    Authentication {
        /// The first byte of the decrypted sector.
        offset: u64,
        /// The length of the sector, bytes.
        length: u64,
    },
    /// There is no memory for keys.
    #[error("keys: {0}")]
    Memory(#[from] io::Error),
}

/// The keys of an opened provider, and where its sectors lie.
pub struct Crypt {
    layout: EliLayout,
    keys: DataKeys,
    ivs: IvKey,
    tags: Option<TagKey>,
}

impl Crypt {
    /// For a provider of `below_bytes` with sectors of `below_sector_bytes`.
    ///
    /// # Errors
    /// `Format` or `Memory`.
    pub fn new(
        metadata: &Metadata,
        (below_bytes, below_sector_bytes): (u64, u32),
        master: &MasterKey,
        order: ByteOrder,
        backend: Backend,
    ) -> Result<Self, EliKeyError> {
        let layout = metadata.layout(below_bytes, below_sector_bytes)?;
        let cipher = metadata.cipher()?;
        let big_endian = order == ByteOrder::Big;
        let tags = match metadata.authentication()? {
            Some(algorithm) => Some(TagKey::new(algorithm, &master.data_key, big_endian)?),
            None => None,
        };
        let keys = DataKeys::new(metadata, cipher, &layout, below_bytes, master, backend)?;
        Ok(Self {
            ivs: IvKey::new(&master.iv_key, big_endian && metadata.version < 4)?,
            layout,
            keys,
            tags,
        })
    }

    /// Where sectors lie.
    #[must_use]
    pub fn layout(&self) -> &EliLayout {
        &self.layout
    }

    /// How many data keys there are, and how many have been made: `KeysTotal`, `KeysAllocated`.
    #[must_use]
    pub fn key_counts(&self) -> (u64, usize) {
        self.keys.counts()
    }

    /// Decrypts whole sectors in place, of a provider without tags.
    ///
    /// # Errors
    /// `Memory`.
    #[inline]
    pub fn decrypt(&self, mut offset: u64, mut data: &mut [u8]) -> io::Result<()> {
        let sector_bytes = self.layout.sector_bytes as usize;
        while !data.is_empty() {
            let (key, left) = self.keys.at(offset)?;
            let length = usize::try_from(left).map_or(data.len(), |left| left.min(data.len()));
            let (now, rest) = std::mem::take(&mut data).split_at_mut(length);
            let at = Sectors {
                offset,
                sector_bytes,
            };
            key.decrypt(&self.ivs, at, now);
            data = rest;
            offset += length as u64;
        }
        Ok(())
    }

    /// Encrypts whole sectors from one place to another of the same length, of a provider without
    /// tags.
    ///
    /// # Errors
    /// `Memory`.
    #[inline]
    pub fn encrypt(&self, mut offset: u64, mut from: &[u8], mut to: &mut [u8]) -> io::Result<()> {
        let sector_bytes = self.layout.sector_bytes as usize;
        while !from.is_empty() {
            let (key, left) = self.keys.at(offset)?;
            let length = usize::try_from(left).map_or(from.len(), |left| left.min(from.len()));
            let (now, rest) = from.split_at(length);
            let (place, places) = std::mem::take(&mut to).split_at_mut(length);
            let at = Sectors {
                offset,
                sector_bytes,
            };
            key.encrypt(&self.ivs, at, now, place);
            (from, to) = (rest, places);
            offset += length as u64;
        }
        Ok(())
    }

    /// Encrypts whole sectors and gives them their tags: `to` has the length that the layout says.
    ///
    /// # Errors
    /// `Memory`.
    pub fn seal(&self, offset: u64, from: &[u8], to: &mut [u8]) -> io::Result<()> {
        let Some((tags, sub)) = self.tags() else {
            return self.encrypt(offset, from, to);
        };
        let mut tag = [0; TAG_BYTES_MAX];
        for piece in self.pieces(sub, offset, from.len()) {
            let (data, place) = (&from[piece.data()], &mut to[piece.below()]);
            let (head, room) = place.split_at_mut(sub.tag_bytes as usize);
            let (sealed, unused) = room.split_at_mut(piece.length);
            let (key, _) = self.keys.at(piece.below_offset)?;
            key.encrypt(&self.ivs, piece.as_sector(), data, sealed);
            tags.tag(piece.below_offset, sealed, &mut tag);
            head.copy_from_slice(&tag[..head.len()]);
            unused.fill(0);
        }
        Ok(())
    }

    /// Checks the tags of whole sectors and decrypts them: `from` has the length that the layout
    /// says. Nothing is decrypted behind the first sector whose tag is wrong.
    ///
    /// # Errors
    /// `Authentication` or `Memory`.
    pub fn open(&self, offset: u64, from: &[u8], to: &mut [u8]) -> Result<(), CryptError> {
        let Some((tags, sub)) = self.tags() else {
            to.copy_from_slice(from);
            return Ok(self.decrypt(offset, to)?);
        };
        let sector_bytes = u64::from(self.layout.sector_bytes);
        let mut tag = [0; TAG_BYTES_MAX];
        for piece in self.pieces(sub, offset, to.len()) {
            let place = &from[piece.below()];
            let (head, room) = place.split_at(sub.tag_bytes as usize);
            let sealed = &room[..piece.length];
            tags.tag(piece.below_offset, sealed, &mut tag);
            if !secret::equal(&tag[..head.len()], head) {
                let at = offset + piece.data_start as u64;
                return Err(CryptError::Authentication {
                    offset: at - at % sector_bytes,
                    length: sector_bytes,
                });
            }
            let (key, _) = self.keys.at(piece.below_offset)?;
            let data = &mut to[piece.data()];
            data.copy_from_slice(sealed);
            key.decrypt(&self.ivs, piece.as_sector(), data);
        }
        Ok(())
    }

    fn tags(&self) -> Option<(&TagKey, SubSectors)> {
        self.tags.as_ref().zip(self.layout.sub_sectors)
    }

    /// The sectors below that hold `length` bytes from `offset` on, in their order.
    fn pieces(&self, sub: SubSectors, offset: u64, length: usize) -> impl Iterator<Item = Piece> {
        let below_bytes = self.layout.below_bytes as usize;
        let sector_bytes = self.layout.sector_bytes as usize;
        let (first, _) = self.layout.below(offset, 0);
        let sectors = length / sector_bytes;
        (0..sectors).flat_map(move |sector| {
            (0..sub.count).map(move |number| {
                let at = sector * sub.count as usize + number as usize;
                let within = number as usize * sub.data_bytes as usize;
                Piece {
                    data_start: sector * sector_bytes + within,
                    length: sub.carried_bytes(number) as usize,
                    below_start: at * below_bytes,
                    below_bytes,
                    below_offset: first + (at * below_bytes) as u64,
                }
            })
        })
    }
}

/// One sector below, and the data that it carries.
struct Piece {
    /// Where its data begins among the request's.
    data_start: usize,
    length: usize,
    /// Where it begins among the sectors below.
    below_start: usize,
    below_bytes: usize,
    /// Where it lies on the provider below.
    below_offset: u64,
}

impl Piece {
    fn data(&self) -> std::ops::Range<usize> {
        self.data_start..self.data_start + self.length
    }

    fn below(&self) -> std::ops::Range<usize> {
        self.below_start..self.below_start + self.below_bytes
    }

    /// For the cipher it is a sector of its own.
    fn as_sector(&self) -> Sectors {
        Sectors {
            offset: self.below_offset,
            sector_bytes: self.length,
        }
    }
}
