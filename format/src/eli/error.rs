//! Why metadata cannot be used.

use super::{SECTOR_BYTES_MAX, VERSION_MAX};
use crate::text::hex;

/// Why metadata of GELI cannot be decoded or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum EliError {
    #[error("{found} bytes cannot hold GELI metadata of {expected} bytes")]
    Short { found: usize, expected: usize },
    /// The sector does not begin with "GEOM::ELI".
    #[error("no GELI metadata: not encrypted with GELI, or of another size than before")]
    Magic {
        /// The first bytes of the sector.
        found: [u8; 16],
    },
    /// A version that does not exist yet.
    #[error("metadata version {version} is too new; versions 0 to {VERSION_MAX} are known")]
    TooNew { version: u32 },
    /// The MD5 over the struct is another one.
    #[error(
        "inconsistent metadata: its MD5 is {}, its bytes give {}",
        hex(.found),
        hex(.expected)
    )]
    Checksum { found: [u8; 16], expected: [u8; 16] },
    #[error("metadata version {version} has no encryption algorithm {number}")]
    Cipher { number: u16, version: u32 },
    #[error("{cipher} has no keys of {bits} bits")]
    KeyBits {
        cipher: super::Cipher,
        /// The key length, bits.
        bits: u16,
    },
    #[error("metadata version {version} has no authentication algorithm {number}")]
    Authentication { number: u16, version: u32 },
    #[error(
        "sector size {found} is not possible: it must be a multiple of {below} and of 16, \
         at most {SECTOR_BYTES_MAX}"
    )]
    SectorSize {
        /// The sector size, bytes.
        found: u32,
        /// That of the provider below, bytes.
        below: u32,
    },
    #[error("a tag of {tag} bytes leaves no room for data in a sector of {below} bytes")]
    NoRoom {
        /// Length of a tag, bytes.
        tag: usize,
        /// Sector size of the provider below, bytes.
        below: u32,
    },
    #[error("a provider of {provider_bytes} bytes has no room for a sector of {sector_bytes}")]
    TooSmall {
        /// Size of the provider below, bytes.
        provider_bytes: u64,
        sector_bytes: u32,
    },
    /// A passphrase setting that cannot be.
    #[error("iteration count {found} is not possible: it is -1, 0, or positive")]
    Iterations { found: i32 },
    #[error("key mask {found:#04x} names slots that do not exist")]
    Keys { found: u8 },
}
