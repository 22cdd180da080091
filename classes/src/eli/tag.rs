//! Tags of authenticated sectors: HMAC over the ciphertext of each sector below.
//!
//! Source: FreeBSD `sys/geom/eli/g_eli_integrity.c` (`g_eli_auth_keygen`, `g_eli_auth_run`).

use super::hmac_sha512::{KEY_BYTES, h};
use hmac::{EagerHash, Hmac, KeyInit, Mac};
use md5::Md5;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::io;
use ugeom_format::eli::Authentication;
use ugeom_machine::secret::{self, Secret};

/// The longest tag, bytes.
pub(super) const TAG_BYTES_MAX: usize = 64;

/// Where the keys of tags come from: SHA256(AUTH key, offset).
pub(super) struct TagKey {
    algorithm: Authentication,
    /// With the AUTH key in it already.
    hash: Secret<Sha256>,
    big_endian: bool,
}

impl TagKey {
    /// From the Data-Key of the provider.
    pub(super) fn new(
        algorithm: Authentication,
        data_key: &[u8; KEY_BYTES],
        big_endian: bool,
    ) -> io::Result<Self> {
        let mut key = Secret::new(|| [0; KEY_BYTES])?;
        h(data_key, &[&[0x11]], &mut key);
        let hash = Secret::new(|| Sha256::new_with_prefix(&key[..]))?;
        secret::scrub_stack();
        Ok(Self {
            algorithm,
            hash,
            big_endian,
        })
    }

    /// The tag of the ciphertext of a sector below, which lies at `offset`; it fills the start of
    /// `into`.
    pub(super) fn tag(&self, offset: u64, data: &[u8], into: &mut [u8; TAG_BYTES_MAX]) {
        let offset = match self.big_endian {
            true => offset.to_be_bytes(),
            false => offset.to_le_bytes(),
        };
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
}

fn hmac<D: EagerHash>(key: &[u8], data: &[u8], into: &mut [u8; TAG_BYTES_MAX])
where
    Hmac<D>: KeyInit + Mac,
{
    // Keys of HMAC may have any length, so there always is one.
    if let Ok(mac) = <Hmac<D> as KeyInit>::new_from_slice(key) {
        let tag = mac.chain_update(data).finalize().into_bytes();
        into[..tag.len()].copy_from_slice(&tag);
    }
}
