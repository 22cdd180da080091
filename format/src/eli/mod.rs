//! GELI: FreeBSD's encrypted providers, metadata versions 0 to 7.
//!
//! The metadata is one struct of 511 bytes (509 in version 0) at the start of the provider's last
//! sector: algorithms, sizes, a salt, and two slots that hold the encrypted master keys. Nothing
//! here decrypts; [`Metadata::decode`] reads the struct, [`Metadata::layout`] checks every field
//! that sizes depend on and says where data and tags lie.
//!
//! Sources: FreeBSD `sys/geom/eli/g_eli.h`, `g_eli.c` (`eli_metadata_decode`, `g_eli_create`,
//! `eli_mediasize`), `g_eli_integrity.c`. The layout stands in `docs/formats/eli.md`.

mod algorithms;
mod error;
mod layout;
mod metadata;
#[cfg(test)]
mod tests;

pub use algorithms::{Authentication, Cipher};
pub use error::EliError;
pub use layout::{EliLayout, SubSectors};
pub use metadata::{
    EliFlags, MAGIC, MASTER_KEYS_BYTES, METADATA_BYTES, Metadata, SALT_BYTES, SLOT_BYTES, SLOTS,
};

/// The newest version (`G_ELI_VERSION` of FreeBSD 14).
pub const VERSION_MAX: u32 = 7;
/// The largest sector size that is accepted, bytes. FreeBSD has no limit of its own; a request is
/// bounded by `maxphys` (1 MiB) there.
pub const SECTOR_BYTES_MAX: u32 = 1 << 20;
