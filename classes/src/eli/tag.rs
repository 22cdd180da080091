//! Tags of authenticated sectors: HMAC over the ciphertext of each sector below.
//!
//! Source: FreeBSD `sys/geom/eli/g_eli_integrity.c` (`g_eli_auth_keygen`, `g_eli_auth_run`).
//!
//! Each sector has an HMAC key of its own, so nothing of an HMAC is known before. SHA-256 is done
//! for 16 or 2 sectors at a time where the processor can ([`ugeom_machine::sha256`]).

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
use ugeom_machine::sha256::{self, LANES, State};

/// The longest tag, bytes.
const TAG_BYTES_MAX: usize = 64;

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

    /// The tags of sectors below that carry data of one length; as many as there are offsets.
    pub(super) fn tags(&self, offsets: &[u64], data: &[&[u8]], into: &mut [Tag]) {
        let mut done = 0;
        if self.backend == Backend::Fastest && self.algorithm == Authentication::Sha256 {
            done += self.side_by_side::<LANES>(offsets, data, into);
            done += self.side_by_side::<2>(&offsets[done..], &data[done..], &mut into[done..]);
            // One that is left takes no longer as both of two.
            if let ([offset], [data]) = (&offsets[done..], &data[done..]) {
                let mut both = [[0; TAG_BYTES_MAX]; 2];
                if self.side_by_side::<2>(&[*offset; 2], &[*data; 2], &mut both) == 2 {
                    into[done] = both[0];
                    done += 1;
                }
            }
        }
        for ((offset, data), into) in offsets.iter().zip(data).zip(into).skip(done) {
            self.tag(*offset, data, into);
        }
    }

    /// Whether so many sectors are done two at a time, and not more.
    pub(super) fn takes_two_at_most(&self, sectors: usize) -> bool {
        let two = self.backend == Backend::Fastest && self.algorithm == Authentication::Sha256;
        two && sha256::is_available() && sectors < LANES
    }

    /// HMAC-SHA256 of `N` sectors at a time, and how many are done then.
    fn side_by_side<const N: usize>(
        &self,
        offsets: &[u64],
        data: &[&[u8]],
        into: &mut [Tag],
    ) -> usize {
        let mut done = 0;
        let (offsets, data) = (offsets.as_chunks::<N>().0, data.as_chunks::<N>().0);
        for ((offsets, data), into) in offsets.iter().zip(data).zip(into.chunks_mut(N)) {
            // The AUTH key is the block before.
            let suffixes = offsets.map(|offset| self.offset_bytes(offset));
            let Some(tags) = sha256::hmacs::<N>(&self.state, &suffixes, data) else { break };
            for (into, tag) in into.iter_mut().zip(&tags) {
                into[..tag.len()].copy_from_slice(tag);
            }
            done += N;
        }
        done
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
