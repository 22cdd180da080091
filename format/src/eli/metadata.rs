//! The metadata struct: between 511 bytes and a value.

use super::{Authentication, Cipher, EliError, EliLayout, VERSION_MAX};
use crate::bytes;
use md5::{Digest, Md5};
use std::fmt;

/// The first bytes of the struct.
pub const MAGIC: [u8; 16] = *b"GEOM::ELI\0\0\0\0\0\0\0";
/// Length of the struct in versions 1 to 7, bytes; version 0 has 2 bytes less.
pub const METADATA_BYTES: usize = 511;
/// Length of the salt, bytes.
pub const SALT_BYTES: usize = 64;
/// Number of key slots.
pub const SLOTS: usize = 2;
/// Length of one slot, bytes: IV-Key 64, Data-Key 64, tag 64.
pub const SLOT_BYTES: usize = 192;
/// Length of all slots, bytes.
pub const MASTER_KEYS_BYTES: usize = SLOTS * SLOT_BYTES;

const MD5_BYTES: usize = 16;

/// The flags of a provider.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct EliFlags(pub u32);

impl EliFlags {
    /// A key that is never stored: the provider has no metadata.
    pub const ONETIME: Self = Self(0x1);
    /// The passphrase is asked for at boot.
    pub const BOOT: Self = Self(0x2);
    /// Detach on the last close after a write open.
    pub const WO_DETACH: Self = Self(0x4);
    /// Detach on the last close.
    pub const RW_DETACH: Self = Self(0x8);
    /// Sectors carry tags that authenticate them (`G_ELI_FLAG_AUTH`).
    pub const AUTH: Self = Self(0x10);
    /// The provider is attached read-only (`G_ELI_FLAG_RO`).
    pub const RO: Self = Self(0x20);
    /// DELETE is not passed down.
    pub const NODELETE: Self = Self(0x40);
    /// The boot loader asks for the passphrase.
    pub const GELIBOOT: Self = Self(0x80);
    /// The boot loader shows the length of the passphrase.
    pub const GELIDISPLAYPASS: Self = Self(0x100);
    /// The provider follows a new size of the one below it.
    pub const AUTORESIZE: Self = Self(0x200);

    /// The names of `geli list`, in its order.
    const NAMES: [(Self, &'static str); 10] = [
        (Self::ONETIME, "ONETIME"),
        (Self::BOOT, "BOOT"),
        (Self::WO_DETACH, "W-DETACH"),
        (Self::RW_DETACH, "RW-DETACH"),
        (Self::AUTH, "AUTH"),
        (Self::RO, "READ-ONLY"),
        (Self::NODELETE, "NODELETE"),
        (Self::GELIBOOT, "GELIBOOT"),
        (Self::GELIDISPLAYPASS, "GELIDISPLAYPASS"),
        (Self::AUTORESIZE, "AUTORESIZE"),
    ];

    /// True when all of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags with those of `other` set or cleared.
    #[must_use]
    pub const fn with(self, other: Self, set: bool) -> Self {
        match set {
            true => Self(self.0 | other.0),
            false => Self(self.0 & !other.0),
        }
    }
}

impl fmt::Display for EliFlags {
    /// As `geli list` prints them: names joined by commas, or `NONE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::NAMES.iter().filter(|(flag, _)| self.contains(*flag));
        let names: Vec<&str> = set.map(|(_, name)| *name).collect();
        match names.as_slice() {
            [] => f.write_str("NONE"),
            names => f.write_str(&names.join(", ")),
        }
    }
}

impl fmt::Debug for EliFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} ({self})", self.0)
    }
}

/// The metadata of one provider. The slots are encrypted; nothing in here is secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Version of the metadata, 0 to 7 (`md_version`).
    pub version: u32,
    /// `md_flags`: settings of the attachment.
    pub flags: EliFlags,
    /// Number of the cipher.
    pub cipher_number: u16,
    /// Key length, bits; AES-XTS has two keys of that length.
    pub key_bits: u16,
    /// Number of the authentication algorithm; means something with the flag AUTH only.
    pub authentication_number: u16,
    /// Size of the provider that the metadata was written for, bytes.
    pub provider_bytes: u64,
    /// Sector size of the provider that GELI makes, bytes.
    pub sector_bytes: u32,
    /// Bit n: slot n is in use.
    pub keys: u8,
    /// -1: no passphrase; 0: salted passphrase; above: rounds of PBKDF2.
    pub iterations: i32,
    /// Shared by both slots.
    pub salt: [u8; SALT_BYTES],
    /// Two slots, each a master key encrypted with a user key (`md_mkeys`).
    pub master_keys: [u8; MASTER_KEYS_BYTES],
}

impl Metadata {
    /// That of a provider whose key is drawn when it is attached and stored nowhere.
    pub const fn one_time(
        cipher_number: u16,
        key_bits: u16,
        provider_bytes: u64,
        sector_bytes: u32,
    ) -> Self {
        Self {
            version: VERSION_MAX,
            flags: EliFlags::ONETIME,
            cipher_number,
            key_bits,
            authentication_number: 0,
            provider_bytes,
            sector_bytes,
            keys: 0,
            iterations: -1,
            salt: [0; SALT_BYTES],
            master_keys: [0; MASTER_KEYS_BYTES],
        }
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("version", &self.version)
            .field("flags", &self.flags)
            .field("cipher", &self.cipher_number)
            .field("key_bits", &self.key_bits)
            .field("sector_bytes", &self.sector_bytes)
            .field("provider_bytes", &self.provider_bytes)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Metadata {
    /// Length of the struct of a version, bytes.
    pub const fn encoded_bytes(version: u32) -> usize {
        match version {
            0 => METADATA_BYTES - 2,
            _ => METADATA_BYTES,
        }
    }

    /// Reads the struct at the start of `sector`. Only magic, version and MD5 are checked, so
    /// that damaged settings can be shown; [`Metadata::layout`] checks the rest.
    ///
    /// # Errors
    /// `Short`, `Magic`, `TooNew` and `Checksum`, in this order.
    pub fn decode(sector: &[u8]) -> Result<Self, EliError> {
        let short = |expected| EliError::Short {
            found: sector.len(),
            expected,
        };
        if sector.len() < 20 {
            return Err(short(METADATA_BYTES));
        }
        let found = bytes::take(sector, 0);
        if found != MAGIC {
            return Err(EliError::Magic { found });
        }
        let version = bytes::u32_le(sector, 16);
        if version > VERSION_MAX {
            return Err(EliError::TooNew { version });
        }
        let length = Self::encoded_bytes(version);
        let covered = sector.get(..length).ok_or_else(|| short(length))?;
        let (body, checksum) = covered.split_at(length - MD5_BYTES);
        let (found, expected) = (bytes::take(checksum, 0), md5(body));
        if found != expected {
            return Err(EliError::Checksum { found, expected });
        }
        // Version 0 has no authentication algorithm; all behind it lies 2 bytes earlier.
        let after = if version == 0 { 28 } else { 30 };
        let authentication_number = match version {
            0 => 0,
            _ => bytes::u16_le(body, 28),
        };
        Ok(Self {
            version,
            flags: EliFlags(bytes::u32_le(body, 20)),
            cipher_number: bytes::u16_le(body, 24),
            key_bits: bytes::u16_le(body, 26),
            authentication_number,
            provider_bytes: bytes::u64_le(body, after),
            sector_bytes: bytes::u32_le(body, after + 8),
            keys: bytes::byte(body, after + 12),
            iterations: bytes::u32_le(body, after + 13).cast_signed(),
            salt: bytes::take(body, after + 17),
            master_keys: bytes::take(body, after + 81),
        })
    }

    /// The struct with its MD5.
    pub fn encode(&self) -> Vec<u8> {
        let length = Self::encoded_bytes(self.version);
        let mut out = vec![0; length];
        bytes::put(&mut out, 0, &MAGIC);
        bytes::put_u32_le(&mut out, 16, self.version);
        bytes::put_u32_le(&mut out, 20, self.flags.0);
        bytes::put_u16_le(&mut out, 24, self.cipher_number);
        bytes::put_u16_le(&mut out, 26, self.key_bits);
        let after = if self.version == 0 { 28 } else { 30 };
        if self.version > 0 {
            bytes::put_u16_le(&mut out, 28, self.authentication_number);
        }
        bytes::put_u64_le(&mut out, after, self.provider_bytes);
        bytes::put_u32_le(&mut out, after + 8, self.sector_bytes);
        bytes::put(&mut out, after + 12, &[self.keys]);
        bytes::put_u32_le(&mut out, after + 13, self.iterations.cast_unsigned());
        bytes::put(&mut out, after + 17, &self.salt);
        bytes::put(&mut out, after + 81, &self.master_keys);
        let checksum = md5(&out[..length - MD5_BYTES]);
        bytes::put(&mut out, length - MD5_BYTES, &checksum);
        out
    }

    /// The MD5 that [`Metadata::encode`] ends with.
    pub fn checksum(&self) -> [u8; MD5_BYTES] {
        let encoded = self.encode();
        bytes::take(&encoded, encoded.len() - MD5_BYTES)
    }

    /// The cipher, if this version of the metadata allows it.
    ///
    /// # Errors
    /// `Cipher` or `KeyBits`.
    pub fn cipher(&self) -> Result<Cipher, EliError> {
        let (number, version) = (self.cipher_number, self.version);
        let known = Cipher::of_number(number).filter(|one| one.since_version() <= version);
        let cipher = known.ok_or(EliError::Cipher { number, version })?;
        match cipher.allows_key_bits(self.key_bits) {
            true => Ok(cipher),
            false => Err(EliError::KeyBits {
                cipher,
                bits: self.key_bits,
            }),
        }
    }

    /// The authentication algorithm, if sectors are authenticated.
    ///
    /// # Errors
    /// `Authentication`.
    pub fn authentication(&self) -> Result<Option<Authentication>, EliError> {
        if !self.flags.contains(EliFlags::AUTH) {
            return Ok(None);
        }
        let (number, version) = (self.authentication_number, self.version);
        let known = Authentication::of_number(number).filter(|_| version > 0);
        let error = EliError::Authentication { number, version };
        known.ok_or(error).map(Some)
    }

    /// True when slot `slot` is in use.
    pub fn has_key(&self, slot: usize) -> bool {
        slot < SLOTS && self.keys & 1 << slot != 0
    }

    /// The encrypted bytes of a slot; empty when there is no such slot.
    pub fn slot(&self, slot: usize) -> &[u8] {
        self.master_keys.chunks(SLOT_BYTES).nth(slot).unwrap_or(&[])
    }

    /// The same, to be replaced.
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        let slots = self.master_keys.chunks_mut(SLOT_BYTES);
        slots.into_iter().nth(slot).unwrap_or_default()
    }

    /// Checks every field, and says where the sectors lie on a provider of `provider_bytes` with
    /// sectors of `below_bytes`. Whether the provider has the size that the metadata names is for
    /// the caller to compare.
    ///
    /// # Errors
    /// The first field that cannot be.
    pub fn layout(&self, provider_bytes: u64, below_bytes: u32) -> Result<EliLayout, EliError> {
        self.cipher()?;
        if self.iterations < -1 {
            return Err(EliError::Iterations {
                found: self.iterations,
            });
        }
        if self.keys >> SLOTS != 0 {
            return Err(EliError::Keys { found: self.keys });
        }
        let tag_bytes = self.authentication()?.map(Authentication::tag_bytes);
        let reserved_bytes = match self.flags.contains(EliFlags::ONETIME) {
            true => 0,
            false => u64::from(below_bytes),
        };
        let usable_bytes = provider_bytes.saturating_sub(reserved_bytes);
        EliLayout::new(usable_bytes, self.sector_bytes, below_bytes, tag_bytes)
    }
}

fn md5(bytes: &[u8]) -> [u8; MD5_BYTES] {
    Md5::digest(bytes).into()
}
