//! From keyfiles and passphrases to the keys of sectors.
//!
//! ```text
//! keyfiles, passphrase -> user key -> slot's key, slot's tag
//! slot                 -> master key (IV-Key, Data-Key)
//! master key           -> data key number k, IVs, keys of the tags
//! ```
//! Sources: FreeBSD `sys/geom/eli/g_eli_key.c`, `g_eli_key_cache.c`, `g_eli_hmac.c`, `pkcs5v2.c`,
//! `lib/geom/eli/geom_eli.c`. Each step is described in `docs/formats/eli.md`.

use super::cipher::SlotKey;
use super::error::EliKeyError;
pub use super::hmac_sha512::KEY_BYTES;
use super::hmac_sha512::{HmacSha512, h, keyed};
use super::kdf::{self, KdfLimit};
use hmac::Mac;
use rustix::fs::FileType;
use std::io::{self, Read};
use std::os::fd::AsFd;
use ugeom_format::eli::{Metadata, SLOTS};
use ugeom_machine::secret::{self, Secret};

/// The longest passphrase, bytes (`G_ELI_MAXPASS` in FreeBSD's `geom_eli.c` is `BUFSIZ`).
pub(crate) const PASSPHRASE_BYTES_MAX: usize = 1023;
/// How much of a keyfile is read at a time, bytes.
const KEYFILE_STEP_BYTES: usize = 4096;

/// The longest keyfile that comes from a device, a pipe or a socket, bytes: far more than the
/// 64 bytes that geli(8) reads from `/dev/random`, and hashed in a fraction of a second.
const ENDLESS_BYTES_MAX: u64 = 16 << 20;
/// The error for a longer one.
const ENDLESS: &str = "more than 16 MiB from a device, pipe or socket, which may have no end; a \
                       regular file may have any size";

/// A passphrase, in an array that never grows.
pub struct Passphrase {
    bytes: [u8; PASSPHRASE_BYTES_MAX],
    length: usize,
}

impl Default for Passphrase {
    fn default() -> Self {
        Self {
            bytes: [0; PASSPHRASE_BYTES_MAX],
            length: 0,
        }
    }
}

impl Passphrase {
    /// Its bytes as they were read, without an encoding.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Adds a byte; false when there is no more room.
    pub fn push(&mut self, byte: u8) -> bool {
        let place = self.bytes.get_mut(self.length);
        let fits = place.is_some();
        if let Some(place) = place {
            *place = byte;
            self.length += 1;
        }
        fits
    }

    /// Takes the last byte away.
    pub fn pop(&mut self) {
        if self.length > 0 {
            self.length -= 1;
            self.bytes[self.length] = 0;
        }
    }

    /// Takes all of it away.
    pub fn clear(&mut self) {
        secret::wipe(&mut self.bytes);
        self.length = 0;
    }
}

/// The user's key components: keyfiles, already hashed, and a passphrase.
pub struct KeyComponents {
    keyfiles: Secret<HmacSha512>,
    has_keyfile: bool,
    passphrase: Option<Secret<Passphrase>>,
}

impl KeyComponents {
    /// No key file and no passphrase so far; key material lies in locked memory.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            keyfiles: Secret::new(|| keyed(&[]))?,
            has_keyfile: false,
            passphrase: None,
        })
    }

    /// Adds the bytes of an open keyfile, as [`Self::add_keyfile`] does. A regular file or a block
    /// device may be of any size, as for GELI; anything else need not have an end.
    ///
    /// # Errors
    /// The error of reading; `InvalidData` above 16 MiB of a device, a pipe or a socket.
    pub fn add_open_keyfile(&mut self, file: impl Read + AsFd) -> io::Result<()> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if matches!(kind, FileType::RegularFile | FileType::BlockDevice) {
            return self.add_keyfile(file);
        }
        let mut most = file.take(ENDLESS_BYTES_MAX + 1);
        self.add_keyfile(&mut most)?;
        match most.limit() {
            0 => Err(io::Error::new(io::ErrorKind::InvalidData, ENDLESS)),
            _ => Ok(()),
        }
    }

    /// Adds the bytes of a keyfile, behind those of earlier ones.
    ///
    /// # Errors
    /// The error of reading.
    pub fn add_keyfile(&mut self, mut file: impl Read) -> io::Result<()> {
        let mut step = Secret::new(|| [0_u8; KEYFILE_STEP_BYTES])?;
        loop {
            match file.read(&mut step[..]) {
                Ok(0) => break,
                Ok(length) => self.keyfiles.update(&step[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.has_keyfile = true;
        Ok(())
    }

    /// Sets the passphrase that the user key is derived from.
    pub fn set_passphrase(&mut self, passphrase: Secret<Passphrase>) {
        self.passphrase = Some(passphrase);
    }

    /// True when there is a passphrase.
    pub(crate) fn has_passphrase(&self) -> bool {
        self.passphrase.is_some()
    }

    /// True when there is neither a keyfile nor a passphrase.
    pub fn is_empty(&self) -> bool {
        !self.has_keyfile && self.passphrase.is_none()
    }

    /// The user key of a provider with that salt and so many iterations.
    ///
    /// # Errors
    /// `NoComponents`, `TooSlow`, `Cancelled`, or `Memory`.
    pub fn user_key(
        &self,
        salt: &[u8],
        iterations: i32,
        limit: &KdfLimit<'_>,
    ) -> Result<Secret<UserKey>, EliKeyError> {
        if self.is_empty() {
            return Err(EliKeyError::NoComponents);
        }
        let mut mac = Secret::new(|| (*self.keyfiles).clone())?;
        match &self.passphrase {
            Some(passphrase) if iterations == 0 => {
                mac.update(salt);
                mac.update(passphrase.bytes());
            }
            Some(passphrase) if iterations > 0 => {
                let rounds = iterations.cast_unsigned();
                let derived = kdf::pbkdf2(passphrase.bytes(), salt, rounds, limit)?;
                mac.update(&derived[..]);
            }
            _ => {}
        }
        let mut key = Secret::new(|| UserKey([0; KEY_BYTES]))?;
        key.0
            .copy_from_slice(&HmacSha512::clone(&mac).finalize().into_bytes());
        secret::scrub_stack();
        Ok(key)
    }
}

/// The key that opens slots.
pub struct UserKey(pub(super) [u8; KEY_BYTES]);

impl UserKey {
    /// The key that slots are encrypted with, of which the cipher takes as much as it needs.
    fn slot_key(&self) -> Result<Secret<[u8; KEY_BYTES]>, EliKeyError> {
        let mut key = Secret::new(|| [0; KEY_BYTES])?;
        h(&self.0, &[&[1]], &mut key);
        Ok(key)
    }

    fn tag(&self, master: &MasterKey) -> Result<[u8; KEY_BYTES], EliKeyError> {
        let mut key = Secret::new(|| [0; KEY_BYTES])?;
        h(&self.0, &[&[0]], &mut key);
        let mut tag = [0; KEY_BYTES];
        h(&key[..], &[&master.iv_key, &master.data_key], &mut tag);
        Ok(tag)
    }
}

/// The content of a slot: the source of all keys of sectors.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    /// The source of IVs; in versions 5 and 6 of the data keys, too.
    pub(super) iv_key: [u8; KEY_BYTES],
    /// The source of data keys and of the keys of tags.
    pub(super) data_key: [u8; KEY_BYTES],
}

impl MasterKey {
    /// From the 128 bytes of a slot: IV-Key, Data-Key.
    ///
    /// # Errors
    /// There is no memory.
    pub fn from_bytes(bytes: &[u8; 2 * KEY_BYTES]) -> io::Result<Secret<Self>> {
        let mut key = Secret::new(|| Self {
            iv_key: [0; KEY_BYTES],
            data_key: [0; KEY_BYTES],
        })?;
        key.iv_key.copy_from_slice(&bytes[..KEY_BYTES]);
        key.data_key.copy_from_slice(&bytes[KEY_BYTES..]);
        Ok(key)
    }

    /// A new one, from the system's random numbers (getrandom(2)).
    ///
    /// # Errors
    /// There is no memory, or there are no random numbers.
    pub fn random() -> io::Result<Secret<Self>> {
        let mut bytes = Secret::new(|| [0; 2 * KEY_BYTES])?;
        super::random::fill(&mut bytes[..])?;
        Self::from_bytes(&bytes)
    }
}

/// Opens the first slot that the user key fits, of those that are in use; only slot `only` if that
/// is given.
///
/// # Errors
/// `Format`, `WrongKey`, `NoKeys` or `Memory`.
pub fn open_slot(
    metadata: &Metadata,
    user: &UserKey,
    only: Option<usize>,
) -> Result<(usize, Secret<MasterKey>), EliKeyError> {
    let cipher = metadata.cipher()?;
    let key = user.slot_key()?;
    let slot_key = SlotKey::new(cipher, metadata.key_bits, &key)?;
    let mut tried = false;
    for slot in 0..SLOTS {
        if !metadata.has_key(slot) || only.is_some_and(|only| only != slot) {
            continue;
        }
        tried = true;
        let mut bytes = Secret::new(|| [0_u8; 3 * KEY_BYTES])?;
        bytes.copy_from_slice(metadata.slot(slot));
        slot_key.decrypt(&mut bytes[..]);
        let (keys, tag) = bytes.split_at(2 * KEY_BYTES);
        let keys: &[u8; 2 * KEY_BYTES] = keys.try_into().unwrap_or(&[0; 2 * KEY_BYTES]);
        let master = MasterKey::from_bytes(keys)?;
        let fits = secret::equal(&user.tag(&master)?, tag);
        secret::scrub_stack();
        if fits {
            return Ok((slot, master));
        }
    }
    match tried {
        true => Err(EliKeyError::WrongKey),
        false => Err(EliKeyError::NoKeys),
    }
}

/// Writes the master key into a slot, for the user key, and marks the slot as in use.
pub(crate) fn fill_slot(
    metadata: &mut Metadata,
    user: &UserKey,
    master: &MasterKey,
    slot: usize,
) -> Result<(), EliKeyError> {
    let cipher = metadata.cipher()?;
    let key = user.slot_key()?;
    let slot_key = SlotKey::new(cipher, metadata.key_bits, &key)?;
    let mut bytes = Secret::new(|| [0_u8; 3 * KEY_BYTES])?;
    bytes[..KEY_BYTES].copy_from_slice(&master.iv_key);
    bytes[KEY_BYTES..2 * KEY_BYTES].copy_from_slice(&master.data_key);
    bytes[2 * KEY_BYTES..].copy_from_slice(&user.tag(master)?);
    slot_key.encrypt(&mut bytes[..]);
    metadata.slot_mut(slot).copy_from_slice(&bytes[..]);
    metadata.keys |= 1 << slot;
    secret::scrub_stack();
    Ok(())
}
