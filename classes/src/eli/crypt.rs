//! [`Crypt`]: an opened provider's sectors, between ciphertext and plaintext.

pub use super::cipher::Backend;
use super::cipher::IvKey;
use super::data_keys::DataKeys;
use super::error::EliKeyError;
use super::keys::MasterKey;
use super::tag::TagKey;
use std::io;
use ugeom_format::eli::{EliLayout, Metadata};
use ugeom_machine::aes::Sectors;

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
    pub(super) keys: DataKeys,
    pub(super) ivs: IvKey,
    pub(super) tags: Option<TagKey>,
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
            Some(algorithm) => Some(TagKey::new(
                algorithm,
                &master.data_key,
                big_endian,
                backend,
            )?),
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

    /// Where sectors and their tags lie on the provider below.
    pub fn layout(&self) -> &EliLayout {
        &self.layout
    }

    /// How many data keys there are, and how many have been made: `KeysTotal`, `KeysAllocated`.
    pub(crate) fn key_counts(&self) -> (u64, usize) {
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
}
