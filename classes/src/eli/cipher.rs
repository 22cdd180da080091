//! The ciphers of GELI: a slot's, and those of sectors.
//!
//! AES runs four blocks an instruction where the processor can ([`ugeom_machine::aes`]), else by
//! the crate `aes`, which uses AES-NI, the instructions of ARMv8, or constant-time code. The other
//! ciphers, for old disks, are those of RustCrypto.

use super::hmac_sha512::KEY_BYTES;
use aes::{Aes128, Aes192, Aes256};
use blowfish::Blowfish;
use camellia::{Camellia128, Camellia192, Camellia256};
use cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use des::TdesEde3;
use sha2::{Digest, Sha256};
use std::io;
use ugeom_format::eli::Cipher;
use ugeom_machine::aes::{CbcKey, Sectors, Strides, XtsKey};
use ugeom_machine::secret::{self, Secret};

/// The longest block, bytes.
const BLOCK_BYTES_MAX: usize = 16;
/// How deep the frames are that hold round keys, bytes: the crates' code and, without optimisation,
/// ours keep them in locals. Those of XTS by VAES hold none.
const FRAMES_BYTES: usize = if cfg!(debug_assertions) {
    16 << 10
} else {
    4 << 10
};
/// How many blocks are worked on together where one does not need the other's result.
const BATCH_BLOCKS: usize = 64;
/// Sectors whose IVs are made together.
const IVS: usize = 8;
/// x^128 + x^7 + x^2 + x + 1, without its highest term (IEEE 1619).
const POLYNOMIAL: u128 = 0x87;

/// A block cipher with its key, in CBC mode.
enum Cbc {
    Aes128(Secret<Aes128>),
    Aes192(Secret<Aes192>),
    Aes256(Secret<Aes256>),
    Camellia128(Secret<Camellia128>),
    Camellia192(Secret<Camellia192>),
    Camellia256(Secret<Camellia256>),
    TripleDes(Secret<TdesEde3>),
    Blowfish(Secret<Blowfish>),
}

/// Does something with the cipher, whichever it is.
macro_rules! with_cipher {
    ($cbc:expr, $cipher:ident => $body:expr) => {
        match $cbc {
            Cbc::Aes128($cipher) => $body,
            Cbc::Aes192($cipher) => $body,
            Cbc::Aes256($cipher) => $body,
            Cbc::Camellia128($cipher) => $body,
            Cbc::Camellia192($cipher) => $body,
            Cbc::Camellia256($cipher) => $body,
            Cbc::TripleDes($cipher) => $body,
            Cbc::Blowfish($cipher) => $body,
        }
    };
}

/// A cipher with its key in locked memory.
fn keyed<C: KeyInit>(key: &[u8]) -> io::Result<Secret<C>> {
    // Lengths are checked with the metadata; a wrong one is refused, not replaced.
    let cipher = C::new_from_slice(key);
    let cipher = cipher.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    Secret::new(|| cipher)
}

impl Cbc {
    /// `None` for ciphers that have no such mode.
    fn new(cipher: Cipher, key: &[u8]) -> io::Result<Option<Self>> {
        Ok(Some(match (cipher, key.len()) {
            (Cipher::AesCbc | Cipher::AesXts, 16) => Self::Aes128(keyed(key)?),
            (Cipher::AesCbc, 24) => Self::Aes192(keyed(key)?),
            (Cipher::AesCbc | Cipher::AesXts, _) => Self::Aes256(keyed(key)?),
            (Cipher::CamelliaCbc, 16) => Self::Camellia128(keyed(key)?),
            (Cipher::CamelliaCbc, 24) => Self::Camellia192(keyed(key)?),
            (Cipher::CamelliaCbc, _) => Self::Camellia256(keyed(key)?),
            (Cipher::TripleDesCbc, _) => Self::TripleDes(keyed(key)?),
            (Cipher::BlowfishCbc, _) => Self::Blowfish(keyed(key)?),
            (Cipher::Null, _) => return Ok(None),
        }))
    }

    fn encrypt(&self, iv: &[u8; BLOCK_BYTES_MAX], data: &mut [u8]) {
        with_cipher!(self, cipher => cbc_encrypt(&**cipher, iv, data));
    }

    fn decrypt(&self, iv: &[u8; BLOCK_BYTES_MAX], data: &mut [u8]) {
        with_cipher!(self, cipher => cbc_decrypt(&**cipher, iv, data));
    }
}

fn cbc_encrypt<C: BlockCipherEncrypt>(cipher: &C, iv: &[u8], data: &mut [u8]) {
    let mut before = Block::<C>::default();
    let length = before.len();
    before.copy_from_slice(&iv[..length]);
    for place in data.chunks_exact_mut(length) {
        for (before, byte) in before.iter_mut().zip(place.iter()) {
            *before ^= byte;
        }
        cipher.encrypt_block(&mut before);
        place.copy_from_slice(&before);
    }
}

fn cbc_decrypt<C: BlockCipherDecrypt>(cipher: &C, iv: &[u8], data: &mut [u8]) {
    let length = C::block_size();
    let mut before = Block::<C>::default();
    before.copy_from_slice(&iv[..length]);
    let nothing = Block::<C>::default();
    let mut blocks: [Block<C>; BATCH_BLOCKS] = std::array::from_fn(|_| nothing.clone());
    for batch in data.chunks_mut(BATCH_BLOCKS * length) {
        let count = batch.len() / length;
        for (block, place) in blocks.iter_mut().zip(batch.chunks_exact(length)) {
            block.copy_from_slice(place);
        }
        cipher.decrypt_blocks(&mut blocks[..count]);
        for (block, place) in blocks.iter().zip(batch.chunks_exact_mut(length)) {
            for ((byte, plain), before) in place.iter_mut().zip(block.iter()).zip(&mut before) {
                let encrypted = std::mem::replace(byte, plain ^ *before);
                *before = encrypted;
            }
        }
    }
}

/// AES-XTS by a block cipher.
struct Xts<C> {
    data: C,
    tweak: C,
}

impl<C> Xts<C>
where
    C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt,
{
    fn new(key: &[u8]) -> io::Result<Secret<Self>> {
        let (data, tweak) = key.split_at(key.len() / 2);
        let cipher = |key| C::new_from_slice(key).map_err(|_| io::ErrorKind::InvalidInput);
        let (data, tweak) = (cipher(data)?, cipher(tweak)?);
        Secret::new(|| Self { data, tweak })
    }

    /// Whole sectors in place.
    fn run(&self, at: Sectors, data: &mut [u8], crypt: impl Fn(&C, &mut [Block<C>])) {
        let mut tweaks = [0_u128; BATCH_BLOCKS];
        let nothing = Block::<C>::default();
        let mut blocks: [Block<C>; BATCH_BLOCKS] = std::array::from_fn(|_| nothing.clone());
        for (number, sector) in data.chunks_exact_mut(at.sector_bytes).enumerate() {
            let offset = at.offset.wrapping_add((number * at.sector_bytes) as u64);
            let mut first = Block::<C>::default();
            first[..8].copy_from_slice(&offset.to_le_bytes());
            self.tweak.encrypt_block(&mut first);
            let mut tweak = word(&first);
            for batch in sector.chunks_mut(BATCH_BLOCKS * BLOCK_BYTES_MAX) {
                let count = batch.len() / BLOCK_BYTES_MAX;
                let places = batch.chunks_exact(BLOCK_BYTES_MAX);
                for ((block, place), kept) in blocks.iter_mut().zip(places).zip(&mut tweaks) {
                    *kept = tweak;
                    block.copy_from_slice(&(word(place) ^ tweak).to_le_bytes());
                    tweak = (tweak << 1) ^ (POLYNOMIAL * (tweak >> 127));
                }
                crypt(&self.data, &mut blocks[..count]);
                let places = batch.chunks_exact_mut(BLOCK_BYTES_MAX);
                for ((block, place), tweak) in blocks.iter().zip(places).zip(&tweaks) {
                    place.copy_from_slice(&(word(block) ^ tweak).to_le_bytes());
                }
            }
        }
    }

    fn encrypt(&self, at: Sectors, data: &mut [u8]) {
        self.run(at, data, |cipher, blocks| cipher.encrypt_blocks(blocks));
    }

    fn decrypt(&self, at: Sectors, data: &mut [u8]) {
        self.run(at, data, |cipher, blocks| cipher.decrypt_blocks(blocks));
    }
}

fn word(bytes: &[u8]) -> u128 {
    let mut word = [0; 16];
    word.copy_from_slice(&bytes[..16]);
    u128::from_le_bytes(word)
}

/// Where the IVs of CBC modes come from: SHA256(IV-Key, offset).
pub(super) struct IvKey {
    /// With the IV-Key in it already.
    hash: Secret<Sha256>,
    big_endian: bool,
}

impl IvKey {
    /// For a provider whose offsets are hashed in that byte order.
    pub(super) fn new(iv_key: &[u8; KEY_BYTES], big_endian: bool) -> io::Result<Self> {
        let hash = Secret::new(|| Sha256::new_with_prefix(iv_key))?;
        Ok(Self { hash, big_endian })
    }

    fn iv(&self, offset: u64) -> [u8; BLOCK_BYTES_MAX] {
        let offset = match self.big_endian {
            true => offset.to_be_bytes(),
            false => offset.to_le_bytes(),
        };
        let hash = Sha256::clone(&self.hash).chain_update(offset).finalize();
        let mut iv = [0; BLOCK_BYTES_MAX];
        iv.copy_from_slice(&hash[..BLOCK_BYTES_MAX]);
        iv
    }
}

/// The cipher of sectors: one data key, ready to use.
pub(super) struct SectorKey(Ready);

enum Ready {
    Null,
    /// AES-XTS, four blocks an instruction.
    WideXts(Secret<XtsKey>),
    Xts128(Secret<Xts<Aes128>>),
    Xts256(Secret<Xts<Aes256>>),
    /// AES-CBC, four blocks an instruction.
    WideCbc(Secret<CbcKey>),
    Cbc(Cbc),
}

/// The implementation that a key uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The fastest that the processor has.
    #[default]
    Fastest,
    /// That of the crates, which runs everywhere.
    Portable,
}

impl SectorKey {
    /// From a data key of 64 bytes, of which as many are used as the cipher needs. It leaves keys
    /// on the stack, which the caller overwrites.
    pub(super) fn new(
        cipher: Cipher,
        key_bits: u16,
        key: &[u8; KEY_BYTES],
        backend: Backend,
    ) -> io::Result<Self> {
        let bytes = usize::from(key_bits) / 8;
        let wide = backend == Backend::Fastest && ugeom_machine::aes::is_available();
        let ready = match cipher {
            Cipher::Null => Ready::Null,
            Cipher::AesXts => {
                let key = &key[..(2 * bytes).min(KEY_BYTES)];
                let ready = match XtsKey::new(key).filter(|_| wide) {
                    Some(key) => Some(Ready::WideXts(Secret::new(|| key)?)),
                    None => None,
                };
                match ready {
                    Some(ready) => ready,
                    None if bytes == 16 => Ready::Xts128(Xts::new(key)?),
                    None => Ready::Xts256(Xts::new(key)?),
                }
            }
            Cipher::AesCbc if wide => match CbcKey::new(&key[..bytes.min(KEY_BYTES)]) {
                Some(key) => Ready::WideCbc(Secret::new(|| key)?),
                None => return Err(io::ErrorKind::InvalidInput.into()),
            },
            _ => match Cbc::new(cipher, &key[..bytes.min(KEY_BYTES)])? {
                Some(cbc) => Ready::Cbc(cbc),
                None => Ready::Null,
            },
        };
        Ok(Self(ready))
    }

    /// Decrypts whole sectors in place.
    #[inline]
    pub(super) fn decrypt(&self, ivs: &IvKey, at: Sectors, data: &mut [u8]) {
        if let Ready::WideXts(key) = &self.0 {
            return key.decrypt(at, data);
        }
        self.decrypt_in_place(ivs, at, data);
        secret::scrub_frames::<FRAMES_BYTES>();
    }

    // Not inlined, so that its frame lies where the frames are that are overwritten.
    #[inline(never)]
    fn decrypt_in_place(&self, ivs: &IvKey, at: Sectors, data: &mut [u8]) {
        match &self.0 {
            Ready::Null => {}
            Ready::WideXts(key) => key.decrypt(at, data),
            Ready::Xts128(xts) => xts.decrypt(at, data),
            Ready::Xts256(xts) => xts.decrypt(at, data),
            Ready::WideCbc(key) => each_sector(at, data, |offset, sector| {
                key.decrypt(&ivs.iv(offset), sector);
            }),
            Ready::Cbc(cbc) => each_sector(at, data, |offset, sector| {
                cbc.decrypt(&ivs.iv(offset), sector);
            }),
        }
    }

    /// Encrypts whole sectors from one place to another of the same length.
    #[inline]
    pub(super) fn encrypt(&self, ivs: &IvKey, at: Sectors, from: &[u8], to: &mut [u8]) {
        if let Ready::WideXts(key) = &self.0 {
            return key.encrypt(at, from, to);
        }
        to.copy_from_slice(from);
        self.encrypt_in_place(ivs, at, to);
        secret::scrub_frames::<FRAMES_BYTES>();
    }

    // As `decrypt_in_place`.
    #[inline(never)]
    fn encrypt_in_place(&self, ivs: &IvKey, at: Sectors, to: &mut [u8]) {
        match &self.0 {
            Ready::Null | Ready::WideXts(_) => {}
            Ready::Xts128(xts) => xts.encrypt(at, to),
            Ready::Xts256(xts) => xts.encrypt(at, to),
            Ready::WideCbc(key) => {
                let step = IVS * at.sector_bytes;
                for (number, piece) in to.chunks_mut(step).enumerate() {
                    let offset = at.offset + (number * step) as u64;
                    let place = |n: usize| offset + (n * at.sector_bytes) as u64;
                    let all: [_; IVS] = std::array::from_fn(|n| ivs.iv(place(n)));
                    key.encrypt(&all, at.sector_bytes, piece);
                }
            }
            Ready::Cbc(cbc) => each_sector(at, to, |offset, sector| {
                cbc.encrypt(&ivs.iv(offset), sector);
            }),
        }
    }

    /// Decrypts pieces. The caller overwrites the stack.
    pub(super) fn decrypt_apart(&self, ivs: &IvKey, pieces: Pieces<'_>) {
        if let Ready::WideXts(key) = &self.0 {
            return key.decrypt_apart(pieces.strides, pieces.length, pieces.from, pieces.to);
        }
        pieces.copy_each(|at, sector| self.decrypt_in_place(ivs, at, sector));
    }

    /// Encrypts pieces. The caller overwrites the stack.
    pub(super) fn encrypt_apart(&self, ivs: &IvKey, pieces: Pieces<'_>) {
        if let Ready::WideXts(key) = &self.0 {
            return key.encrypt_apart(pieces.strides, pieces.length, pieces.from, pieces.to);
        }
        pieces.copy_each(|at, sector| self.encrypt_in_place(ivs, at, sector));
    }
}

/// Pieces that lie apart, each a sector of its own, and where their result goes.
pub(super) struct Pieces<'a> {
    pub strides: Strides,
    /// Bytes of all pieces together.
    pub length: usize,
    pub from: &'a [u8],
    pub to: &'a mut [u8],
}

impl Pieces<'_> {
    /// Copies the pieces one by one, and hands over each copy.
    fn copy_each(self, mut with: impl FnMut(Sectors, &mut [u8])) {
        let Self {
            strides, length, ..
        } = self;
        let starts = (0..length).step_by(strides.piece_bytes);
        for (number, start) in starts.enumerate() {
            let bytes = strides.piece_bytes.min(length - start);
            let place = |step: usize| number * step..number * step + bytes;
            let at = Sectors {
                offset: strides.offset + number as u64 * strides.offset_step,
                sector_bytes: bytes,
            };
            let sector = &mut self.to[place(strides.to_step)];
            sector.copy_from_slice(&self.from[place(strides.from_step)]);
            with(at, sector);
        }
    }
}

fn each_sector(at: Sectors, data: &mut [u8], mut with: impl FnMut(u64, &mut [u8])) {
    for (number, sector) in data.chunks_exact_mut(at.sector_bytes).enumerate() {
        with(at.offset + (number * at.sector_bytes) as u64, sector);
    }
}

/// The cipher of slots: the provider's cipher in CBC mode, IV zero.
pub(super) struct SlotKey(Option<Cbc>);

impl SlotKey {
    /// From a key of 64 bytes, of which as many are used as the cipher needs.
    pub(super) fn new(cipher: Cipher, key_bits: u16, key: &[u8; KEY_BYTES]) -> io::Result<Self> {
        let bytes = (usize::from(key_bits) / 8).min(KEY_BYTES);
        Cbc::new(cipher, &key[..bytes]).map(Self)
    }

    /// Decrypts a slot in place.
    pub(super) fn decrypt(&self, slot: &mut [u8]) {
        if let Some(cbc) = &self.0 {
            cbc.decrypt(&[0; BLOCK_BYTES_MAX], slot);
        }
    }

    /// Encrypts a slot in place.
    pub(super) fn encrypt(&self, slot: &mut [u8]) {
        if let Some(cbc) = &self.0 {
            cbc.encrypt(&[0; BLOCK_BYTES_MAX], slot);
        }
    }
}
