//! Data keys: one for every 2^20 sectors, made when they are first needed.
//!
//! A provider with at most [`KEPT_MAX`] of them keeps all, and finds them without a lock. A larger
//! one keeps that many in places by their number, each behind a lock of its own, as FreeBSD bounds
//! them by `kern.geom.eli.key_cache_limit`. A key takes 1 KiB of locked memory.

use super::cipher::{Backend, SectorKey};
use super::hmac_sha512::{KEY_BYTES, h};
use super::keys::MasterKey;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use ugeom_format::eli::{Cipher, EliFlags, EliLayout, Metadata};
use ugeom_machine::mutex::RwLock;
use ugeom_machine::secret::{self, Secret};

/// How many keys are kept (FreeBSD's standard).
pub(super) const KEPT_MAX: u64 = 8192;
/// log2 of the number of sectors that share a key (`G_ELI_KEY_SHIFT`).
const SECTORS_SHIFT: u32 = 20;

/// How keys are made.
struct Maker {
    cipher: Cipher,
    key_bits: u16,
    backend: Backend,
    /// The hash input, or with `single` the key itself.
    base: Secret<[u8; KEY_BYTES]>,
    /// One key for all sectors (versions before 5).
    single: bool,
}

impl Maker {
    /// A key, of which nothing stays on the stack of the thread: it may live for long.
    fn make(&self, number: u64) -> io::Result<SectorKey> {
        let made = self.make_on_stack(number);
        secret::scrub_stack();
        made
    }

    // Not inlined, so that its frame lies where the frames are that are overwritten.
    #[inline(never)]
    fn make_on_stack(&self, number: u64) -> io::Result<SectorKey> {
        let mut key = Secret::new(|| [0; KEY_BYTES])?;
        match self.single {
            true => key.copy_from_slice(&self.base[..]),
            false => h(&self.base[..], &[b"ekey", &number.to_le_bytes()], &mut key),
        }
        SectorKey::new(self.cipher, self.key_bits, &key, self.backend)
    }
}

/// A kept key with its number; there may be none yet.
type CachedKey = RwLock<Option<(u64, Arc<SectorKey>)>>;

enum Kept {
    All(Box<[OnceLock<SectorKey>]>),
    Some(Box<[CachedKey]>),
}

/// The data keys of a provider.
pub(super) struct DataKeys {
    maker: Maker,
    kept: Kept,
    /// How many there are.
    total: u64,
    /// Bytes that share a key.
    span_bytes: u64,
    /// Only number 0 is ever used (version 5 with authentication).
    first_only: bool,
}

/// A data key, in use.
pub(super) enum DataKey<'a> {
    Kept(&'a SectorKey),
    Shared(Arc<SectorKey>),
}

impl Deref for DataKey<'_> {
    type Target = SectorKey;

    #[inline]
    fn deref(&self) -> &SectorKey {
        match self {
            Self::Kept(key) => key,
            Self::Shared(key) => key,
        }
    }
}

impl DataKeys {
    /// For a provider of that layout on `below_bytes`.
    pub(super) fn new(
        metadata: &Metadata,
        cipher: Cipher,
        layout: &EliLayout,
        below_bytes: u64,
        master: &MasterKey,
        backend: Backend,
    ) -> io::Result<Self> {
        let authenticated = metadata.flags.contains(EliFlags::AUTH);
        let single = metadata.version < 5;
        let mut base = Secret::new(|| [0; KEY_BYTES])?;
        match (single, metadata.version < 7, authenticated) {
            (false, true, _) => base.copy_from_slice(&master.iv_key),
            (_, _, true) => h(&master.data_key, &[&[0x10]], &mut base),
            (_, _, false) => base.copy_from_slice(&master.data_key),
        }
        secret::scrub_stack();
        let (unit, size) = match authenticated {
            true => (layout.below_bytes, below_bytes),
            false => (layout.sector_bytes, layout.media_bytes),
        };
        let span_bytes = u64::from(unit) << SECTORS_SHIFT;
        let first_only = single || (authenticated && metadata.version < 6);
        let total = match single {
            true => 1,
            false => size.saturating_sub(1) / span_bytes + 1,
        };
        let kept = match total <= KEPT_MAX {
            true => Kept::All((0..total).map(|_| OnceLock::new()).collect()),
            false => Kept::Some((0..KEPT_MAX).map(|_| CachedKey::default()).collect()),
        };
        Ok(Self {
            maker: Maker {
                cipher,
                key_bits: metadata.key_bits,
                backend,
                base,
                single,
            },
            kept,
            total,
            span_bytes,
            first_only,
        })
    }

    /// How many there are, and how many are kept at present: `KeysTotal` and `KeysAllocated`.
    pub(super) fn counts(&self) -> (u64, usize) {
        let kept = match &self.kept {
            Kept::All(all) => all.iter().filter(|key| key.get().is_some()).count(),
            Kept::Some(some) => some.iter().filter(|place| read(place).is_some()).count(),
        };
        (self.total, kept)
    }

    /// The key of the sector at `offset`, and how many bytes from there on share it.
    #[inline]
    pub(super) fn at(&self, offset: u64) -> io::Result<(DataKey<'_>, u64)> {
        // A division takes as long as the rest of this; sector sizes are powers of two as a rule.
        let number = match self.span_bytes.is_power_of_two() {
            true => offset >> self.span_bytes.trailing_zeros(),
            false => offset / self.span_bytes,
        };
        let within = offset - number * self.span_bytes;
        let number = if self.first_only { 0 } else { number };
        Ok((self.key(number)?, self.span_bytes - within))
    }

    #[inline]
    fn key(&self, number: u64) -> io::Result<DataKey<'_>> {
        match &self.kept {
            Kept::All(all) => {
                let place = usize::try_from(number).ok().and_then(|at| all.get(at));
                let place = place.ok_or(io::ErrorKind::InvalidInput)?;
                match place.get() {
                    Some(key) => Ok(DataKey::Kept(key)),
                    None => {
                        let key = self.maker.make(number)?;
                        Ok(DataKey::Kept(place.get_or_init(|| key)))
                    }
                }
            }
            Kept::Some(some) => {
                let place = &some[(number % KEPT_MAX) as usize];
                if let Some((kept, key)) = read(place)
                    && kept == number
                {
                    return Ok(DataKey::Shared(key));
                }
                let key = Arc::new(self.maker.make(number)?);
                *place.write() = Some((number, Arc::clone(&key)));
                Ok(DataKey::Shared(key))
            }
        }
    }
}

fn read(place: &CachedKey) -> Option<(u64, Arc<SectorKey>)> {
    place.read().clone()
}
