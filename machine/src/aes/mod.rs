//! AES for whole sectors, where the processor has instructions for four blocks at a time.
//!
//! [`XtsKey`] and [`CbcKey`] exist only on such processors ([`XtsKey::new`] answers `None`
//! elsewhere); callers keep a portable implementation beside them. Both are plain values without
//! pointers, so that a [`crate::secret::Secret`] holds all of a key.

#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vaes;

/// Round keys of AES-256, the most that there are.
const ROUND_KEYS_MAX: usize = 15;

/// Length of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyBits {
    Bits128,
    Bits192,
    Bits256,
}

impl KeyBits {
    fn of(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Some(Self::Bits128),
            24 => Some(Self::Bits192),
            32 => Some(Self::Bits256),
            _ => None,
        }
    }

    fn words(self) -> usize {
        match self {
            Self::Bits128 => 4,
            Self::Bits192 => 6,
            Self::Bits256 => 8,
        }
    }

    fn rounds(self) -> usize {
        self.words() + 6
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Encrypt,
    Decrypt,
}

/// A key, expanded for each round (FIPS 197, 5.2).
#[derive(Clone)]
#[repr(C, align(64))]
struct RoundKeys {
    keys: [[u8; 16]; ROUND_KEYS_MAX],
    rounds: usize,
}

impl RoundKeys {
    /// `None` for a key of another length, and on processors without the instructions.
    fn expand(key: &[u8], direction: Direction) -> Option<Self> {
        let bits = KeyBits::of(key)?;
        let mut keys = Self {
            keys: [[0; 16]; ROUND_KEYS_MAX],
            rounds: 0,
        };
        expand(key, bits, direction, &mut keys).then_some(keys)
    }
}

/// True when this processor has the instructions (VAES, VPCLMULQDQ and AVX-512 BW).
pub fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return vaes::is_available();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
fn expand(key: &[u8], bits: KeyBits, direction: Direction, into: &mut RoundKeys) -> bool {
    let available = vaes::is_available();
    if available {
        // SAFETY: the processor has the instructions.
        unsafe { vaes::expand(key, bits, direction, into) };
    }
    available
}

#[cfg(not(target_arch = "x86_64"))]
fn expand(_: &[u8], _: KeyBits, _: Direction, _: &mut RoundKeys) -> bool {
    false
}

/// The two keys of AES-XTS (IEEE 1619), for both directions.
#[derive(Clone)]
pub struct XtsKey {
    encrypt: RoundKeys,
    decrypt: RoundKeys,
    tweak: RoundKeys,
}

/// The input of one call: whole sectors, the first of them at an offset.
#[derive(Clone, Copy, Debug)]
pub struct Sectors {
    /// Where the first sector lies, bytes; its low 64 bits are the tweak.
    pub offset: u64,
    /// Size of a sector, bytes.
    pub sector_bytes: usize,
}

impl Sectors {
    fn check(self, from: usize, to: usize) {
        assert!(
            self.sector_bytes > 0 && self.sector_bytes.is_multiple_of(16),
            "sectors of {} bytes",
            self.sector_bytes
        );
        assert!(
            from == to && from.is_multiple_of(self.sector_bytes),
            "{from} and {to} bytes are no whole sectors of {}",
            self.sector_bytes
        );
    }
}

/// Sectors that do not lie one behind the other: pieces of data, the last of which may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Strides {
    /// The tweak of the first piece.
    pub offset: u64,
    /// From the tweak of a piece to that of the next.
    pub offset_step: u64,
    /// Length of a piece, bytes.
    pub piece_bytes: usize,
    /// From the beginning of a piece to that of the next, bytes; at least the length of a piece.
    pub from_step: usize,
    /// The same, where the result goes.
    pub to_step: usize,
}

impl Strides {
    fn check(self, length: usize, from: usize, to: usize) {
        let units = self.piece_bytes.is_multiple_of(16) && length.is_multiple_of(16);
        assert!(
            units && self.piece_bytes > 0,
            "{length} bytes in pieces of {}",
            self.piece_bytes
        );
        let Some(before_last) = length.div_ceil(self.piece_bytes).checked_sub(1) else { return };
        let last = length - before_last * self.piece_bytes;
        // The last piece ends last, as no other reaches into the next one.
        let end = |step: usize| {
            let apart = before_last == 0 || step >= self.piece_bytes;
            before_last
                .checked_mul(step)
                .filter(|_| apart)?
                .checked_add(last)
        };
        assert!(
            end(self.from_step).is_some_and(|end| end <= from)
                && end(self.to_step).is_some_and(|end| end <= to),
            "{length} bytes do not lie inside {from} and {to}: {self:?}"
        );
    }
}

impl From<Sectors> for Strides {
    fn from(sectors: Sectors) -> Self {
        Self {
            offset: sectors.offset,
            offset_step: sectors.sector_bytes as u64,
            piece_bytes: sectors.sector_bytes,
            from_step: sectors.sector_bytes,
            to_step: sectors.sector_bytes,
        }
    }
}

impl XtsKey {
    /// A key of 32 or 64 bytes: the key of the data, then the key of the tweaks. `None` for other
    /// lengths, and where the processor lacks the instructions.
    pub fn new(key: &[u8]) -> Option<Self> {
        let (data, tweak) = key.split_at(key.len() / 2);
        if KeyBits::of(data)? == KeyBits::Bits192 {
            return None;
        }
        Some(Self {
            encrypt: RoundKeys::expand(data, Direction::Encrypt)?,
            decrypt: RoundKeys::expand(data, Direction::Decrypt)?,
            tweak: RoundKeys::expand(tweak, Direction::Encrypt)?,
        })
    }

    /// Decrypts whole sectors in place.
    ///
    /// # Panics
    /// When `data` is no whole number of sectors.
    pub fn decrypt(&self, sectors: Sectors, data: &mut [u8]) {
        sectors.check(data.len(), data.len());
        let pieces = (
            data.as_mut_ptr().cast_const(),
            data.as_mut_ptr(),
            data.len(),
        );
        // SAFETY: one slice, in place.
        unsafe { self.run::<false>(sectors.into(), pieces) };
    }

    /// Encrypts whole sectors from one place to another.
    ///
    /// # Panics
    /// When the lengths differ, or are no whole number of sectors.
    pub fn encrypt(&self, sectors: Sectors, from: &[u8], to: &mut [u8]) {
        sectors.check(from.len(), to.len());
        let pieces = (from.as_ptr(), to.as_mut_ptr(), to.len());
        // SAFETY: two slices of one length, which are apart.
        unsafe { self.run::<true>(sectors.into(), pieces) };
    }

    /// Decrypts `length` bytes of data from one place to another.
    ///
    /// # Panics
    /// When the pieces are no multiples of 16 bytes, overlap, or do not lie inside the slices.
    pub fn decrypt_apart(&self, strides: Strides, length: usize, from: &[u8], to: &mut [u8]) {
        strides.check(length, from.len(), to.len());
        // SAFETY: all pieces lie inside two slices, which are apart.
        unsafe { self.run::<false>(strides, (from.as_ptr(), to.as_mut_ptr(), length)) };
    }

    /// Encrypts `length` bytes of data from one place to another.
    ///
    /// # Panics
    /// When the pieces are no multiples of 16 bytes, overlap, or do not lie inside the slices.
    pub fn encrypt_apart(&self, strides: Strides, length: usize, from: &[u8], to: &mut [u8]) {
        strides.check(length, from.len(), to.len());
        // SAFETY: all pieces lie inside two slices, which are apart.
        unsafe { self.run::<true>(strides, (from.as_ptr(), to.as_mut_ptr(), length)) };
    }

    /// # Safety
    /// The pieces are checked by [`Sectors::check`] or [`Strides::check`], and equal or apart.
    #[cfg(target_arch = "x86_64")]
    unsafe fn run<const ENCRYPT: bool>(
        &self,
        strides: Strides,
        pieces: (*const u8, *mut u8, usize),
    ) {
        let keys = match ENCRYPT {
            true => &self.encrypt,
            false => &self.decrypt,
        };
        // SAFETY: that there is a key says that the processor has the instructions; the rest is
        // the caller's promise.
        unsafe {
            match keys.rounds {
                10 => vaes::xts::<10, ENCRYPT>(keys, &self.tweak, strides, pieces),
                _ => vaes::xts::<14, ENCRYPT>(keys, &self.tweak, strides, pieces),
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    unsafe fn run<const ENCRYPT: bool>(&self, _: Strides, _: (*const u8, *mut u8, usize)) {
        unreachable!("there are no keys without the instructions");
    }
}

/// A key of AES-CBC, for both directions.
#[derive(Clone)]
pub struct CbcKey {
    encrypt: RoundKeys,
    decrypt: RoundKeys,
}

impl CbcKey {
    /// A key of 16, 24 or 32 bytes. `None` for other lengths, and where the processor lacks the
    /// instructions.
    pub fn new(key: &[u8]) -> Option<Self> {
        Some(Self {
            encrypt: RoundKeys::expand(key, Direction::Encrypt)?,
            decrypt: RoundKeys::expand(key, Direction::Decrypt)?,
        })
    }

    /// Decrypts one sector in place. A rest of less than 16 bytes is left as it is.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "no instructions")
    )]
    pub fn decrypt(&self, iv: &[u8; 16], sector: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: that there is a key says that the processor has the instructions.
        unsafe {
            match self.decrypt.rounds {
                10 => vaes::cbc_decrypt::<10>(&self.decrypt, iv, sector),
                12 => vaes::cbc_decrypt::<12>(&self.decrypt, iv, sector),
                _ => vaes::cbc_decrypt::<14>(&self.decrypt, iv, sector),
            }
        }
    }

    /// Encrypts whole sectors in place, each with its own IV.
    ///
    /// # Panics
    /// When `data` is no whole number of sectors, or there are fewer IVs than sectors.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "no instructions")
    )]
    pub fn encrypt(&self, ivs: &[[u8; 16]], sector_bytes: usize, data: &mut [u8]) {
        let sectors = Sectors {
            offset: 0,
            sector_bytes,
        };
        sectors.check(data.len(), data.len());
        assert!(
            ivs.len() >= data.len() / sector_bytes,
            "fewer IVs than sectors"
        );
        #[cfg(target_arch = "x86_64")]
        // SAFETY: that there is a key says that the processor has the instructions.
        unsafe {
            vaes::cbc_encrypt(&self.encrypt, ivs, sector_bytes, data);
        }
    }
}
