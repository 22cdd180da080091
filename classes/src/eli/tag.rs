//! Tags of authenticated sectors: HMAC over the ciphertext of each sector below.
//!
//! Source: FreeBSD `sys/geom/eli/g_eli_integrity.c` (`g_eli_auth_keygen`, `g_eli_auth_run`).
//!
//! Each sector has an HMAC key of its own, so nothing of an HMAC is known before. SHA-256 is done
//! for two sectors at a time where the processor can ([`ugeom_machine::sha256`]).

use super::cipher::Backend;
use super::hmac_sha512::{KEY_BYTES, h};
use hmac::{EagerHash, Hmac, KeyInit, Mac};
use md5::Md5;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::block_api::compress256;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::io;
use ugeom_format::eli::Authentication;
use ugeom_machine::secret::{self, Secret};
use ugeom_machine::sha256::{self, BLOCK_BYTES, Pair, State, bytes_of};

/// The longest tag, bytes.
const TAG_BYTES_MAX: usize = 64;
/// Where the last block of a message has its length.
const LENGTH_PLACE: usize = BLOCK_BYTES - 8;

/// A tag, which fills the start of it.
pub(super) type Tag = [u8; TAG_BYTES_MAX];

/// Where the keys of tags come from: SHA256(AUTH key, offset).
pub(super) struct TagKey {
    algorithm: Authentication,
    /// With the AUTH key in it already.
    hash: Secret<Sha256>,
    /// The same, as the state behind that block, for two sectors at a time.
    state: Secret<State>,
    backend: Backend,
    big_endian: bool,
}

impl TagKey {
    /// From the Data-Key of the provider.
    pub(super) fn new(
        algorithm: Authentication,
        data_key: &[u8; KEY_BYTES],
        big_endian: bool,
        backend: Backend,
    ) -> io::Result<Self> {
        let mut key = Secret::new(|| [0; KEY_BYTES])?;
        h(data_key, &[&[0x11]], &mut key);
        let hash = Secret::new(|| Sha256::new_with_prefix(&key[..]))?;
        let mut state = Secret::new(|| sha256::INITIAL)?;
        compress256(&mut state, std::slice::from_ref(&*key));
        secret::scrub_stack();
        Ok(Self {
            algorithm,
            hash,
            state,
            backend,
            big_endian,
        })
    }

    /// The tag of the ciphertext of a sector below, which lies at `offset`; it fills the start of
    /// `into`.
    pub(super) fn tag(&self, offset: u64, data: &[u8], into: &mut Tag) {
        let offset = self.offset_bytes(offset);
        let key = Sha256::clone(&self.hash).chain_update(offset).finalize();
        match self.algorithm {
            Authentication::Md5 => hmac::<Md5>(&key, data, into),
            Authentication::Sha1 => hmac::<Sha1>(&key, data, into),
            Authentication::Ripemd160 => hmac::<Ripemd160>(&key, data, into),
            Authentication::Sha256 => hmac::<Sha256>(&key, data, into),
            Authentication::Sha384 => hmac::<Sha384>(&key, data, into),
            Authentication::Sha512 => hmac::<Sha512>(&key, data, into),
        }
    }

    fn offset_bytes(&self, offset: u64) -> [u8; 8] {
        match self.big_endian {
            true => offset.to_be_bytes(),
            false => offset.to_le_bytes(),
        }
    }

    /// The tags of two sectors below that carry data of one length.
    pub(super) fn tags(&self, offsets: [u64; 2], data: [&[u8]; 2], into: &mut [Tag; 2]) {
        let together = self.backend == Backend::Fastest && self.algorithm == Authentication::Sha256;
        if together && self.hmac_sha256_of_two(offsets, data, into).is_some() {
            return;
        }
        for ((offset, data), into) in offsets.into_iter().zip(data).zip(into) {
            self.tag(offset, data, into);
        }
    }

    /// HMAC-SHA256 (RFC 2104) of two sectors side by side; `None` where the processor cannot.
    fn hmac_sha256_of_two(
        &self,
        offsets: [u64; 2],
        data: [&[u8]; 2],
        into: &mut [Tag; 2],
    ) -> Option<()> {
        // The AUTH key is the block before.
        let ends = offsets.map(|offset| End::of(&self.offset_bytes(offset), BLOCK_BYTES));
        let mut keyed = Pair::from_state(&self.state)?;
        keyed.absorb(ends.each_ref().map(End::blocks));
        let mut keys = keyed.states().map(|state| bytes_of(&state));
        let begin = |pad: u8| {
            let mut pads = [[pad; BLOCK_BYTES]; 2];
            for (pad, key) in pads.iter_mut().zip(&keys) {
                pad.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            }
            let mut hash = Pair::from_state(&sha256::INITIAL)?;
            hash.absorb([&pads[0], &pads[1]]);
            secret::wipe(pads.as_flattened_mut());
            Some(hash)
        };
        let (mut inner, mut outer) = (begin(0x36)?, begin(0x5c)?);
        secret::wipe(keys.as_flattened_mut());

        let whole = data[0].len() / BLOCK_BYTES * BLOCK_BYTES;
        inner.absorb(data.map(|data| &data[..whole]));
        let ends = data.map(|data| End::of(&data[whole..], BLOCK_BYTES + whole));
        inner.absorb(ends.each_ref().map(End::blocks));
        let hashes = inner.states().map(|state| bytes_of(&state));
        let ends = hashes.map(|hash| End::of(&hash, BLOCK_BYTES));
        outer.absorb(ends.each_ref().map(End::blocks));
        for (into, state) in into.iter_mut().zip(outer.states()) {
            let hash = bytes_of(state);
            into[..hash.len()].copy_from_slice(&hash);
        }
        Some(())
    }
}

/// The end of a message of SHA-256 with its padding (FIPS 180-4, section 5.1.1): one block or two.
struct End {
    bytes: [u8; 2 * BLOCK_BYTES],
    start: usize,
}

impl End {
    /// Of a message that has `before` bytes in whole blocks before this rest.
    fn of(rest: &[u8], before: usize) -> Self {
        let mut bytes = [0; 2 * BLOCK_BYTES];
        let start = match rest.len() < LENGTH_PLACE {
            true => BLOCK_BYTES,
            false => 0,
        };
        let bits = 8 * (before + rest.len()) as u64;
        bytes[start..start + rest.len()].copy_from_slice(rest);
        bytes[start + rest.len()] = 0x80;
        bytes[BLOCK_BYTES + LENGTH_PLACE..].copy_from_slice(&bits.to_be_bytes());
        Self { bytes, start }
    }

    fn blocks(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

fn hmac<D: EagerHash>(key: &[u8], data: &[u8], into: &mut Tag)
where
    Hmac<D>: KeyInit + Mac,
{
    // Keys of HMAC may have any length, so there always is one.
    if let Ok(mac) = <Hmac<D> as KeyInit>::new_from_slice(key) {
        let tag = mac.chain_update(data).finalize().into_bytes();
        into[..tag.len()].copy_from_slice(&tag);
    }
}
