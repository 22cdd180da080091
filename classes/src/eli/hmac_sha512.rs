//! HMAC-SHA512, as GELI makes all its keys with it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha512;

/// HMAC-SHA512, which all keys come from.
pub(super) type HmacSha512 = Hmac<Sha512>;

/// Length of a key of HMAC-SHA512 as it is used here, bytes.
pub const KEY_BYTES: usize = 64;

/// HMAC-SHA512 of the pieces, one after the other.
pub(super) fn h(key: &[u8], pieces: &[&[u8]], into: &mut [u8; KEY_BYTES]) {
    finish(keyed(key), pieces, into);
}

/// The same with a key that was taken in before.
pub(super) fn finish(mut mac: HmacSha512, pieces: &[&[u8]], into: &mut [u8; KEY_BYTES]) {
    for piece in pieces {
        mac.update(piece);
    }
    into.copy_from_slice(&mac.finalize().into_bytes());
}

/// HMAC-SHA512 with a key of any length.
pub(super) fn keyed(key: &[u8]) -> HmacSha512 {
    // Keys of HMAC may have any length, so this does not fail; an empty key is one of GELI's.
    HmacSha512::new_from_slice(key).unwrap_or_else(|_| HmacSha512::new(&Default::default()))
}
