//! HMAC-SHA256 of several messages side by side: sixteen in the lanes of AVX-512, two by the
//! instructions for SHA-256.
//!
//! The rounds of one message wait for each other: the instructions could take in twice as much.
//! [`hmacs`] answers only on such processors; callers keep an HMAC of one message beside it. It
//! takes both passes in one call, so that no pad has to be built and wiped for each message.

#[cfg(target_arch = "x86_64")]
mod sha_ni;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;

/// Length of a block, bytes.
pub const BLOCK_BYTES: usize = 64;
/// Length of a hash, bytes.
pub(crate) const HASH_BYTES: usize = 32;
/// How many messages the widest way takes together.
pub const LANES: usize = 16;

/// The state of a hash.
pub type State = [u32; 8];

/// The state that every hash begins with (FIPS 180-4, section 5.3.3).
pub const INITIAL: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The constants of the rounds, four rounds a row.
#[rustfmt::skip]
#[cfg(target_arch = "x86_64")]
const K: [[u32; 4]; 16] = [
    [0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5],
    [0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5],
    [0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3],
    [0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174],
    [0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc],
    [0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da],
    [0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7],
    [0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967],
    [0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13],
    [0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85],
    [0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3],
    [0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070],
    [0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5],
    [0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3],
    [0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208],
    [0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2],
];

/// HMAC-SHA256 (RFC 2104) of messages of one length. The key of each is the SHA-256 of a block,
/// behind which the state is `before`, and 8 bytes of its own. How many there are is for the caller
/// to choose: [`LANES`] at a time, then 2 at a time. `None` where the processor lacks the
/// instructions for that number.
///
/// Keys may be left on the stack; see [`crate::secret::scrub_frames`].
///
/// # Panics
/// When the messages differ in length.
#[must_use]
pub fn hmacs<const N: usize>(
    before: &State,
    suffixes: &[[u8; 8]; N],
    messages: &[&[u8]; N],
) -> Option<[[u8; HASH_BYTES]; N]> {
    let length = messages.first().map_or(0, |message| message.len());
    assert!(
        messages.iter().all(|message| message.len() == length),
        "messages are not of one length"
    );
    let mut tags = [[0; HASH_BYTES]; N];
    #[cfg(target_arch = "x86_64")]
    {
        let places = messages.map(<[u8]>::as_ptr);
        if let (Some(suffixes), Some(places), Some(tags)) = (
            suffixes.as_array::<LANES>(),
            places.as_array::<LANES>(),
            tags.as_mut_array::<LANES>(),
        ) && wide::is_available()
        {
            // SAFETY: the processor has the instructions; all messages have that length.
            *tags = unsafe { wide::hmacs(before, suffixes, places, length) };
        } else if let (Some(suffixes), Some(places), Some(tags)) = (
            suffixes.as_array::<2>(),
            places.as_array::<2>(),
            tags.as_mut_array::<2>(),
        ) && sha_ni::is_available()
        {
            // SAFETY: as above.
            *tags = unsafe { sha_ni::hmacs(before, *suffixes, *places, length) };
        } else {
            return None;
        }
        Some(tags)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (before, suffixes, tags);
        None
    }
}

/// The end of a message behind one block with its padding (FIPS 180-4, section 5.1.1), and how many
/// bytes that takes: one block, or two.
///
/// # Safety
/// The message is valid for `length` bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn ending(message: *const u8, length: usize) -> ([u8; 2 * BLOCK_BYTES], usize) {
    let rest = length % BLOCK_BYTES;
    let used = match rest + 1 + size_of::<u64>() <= BLOCK_BYTES {
        true => BLOCK_BYTES,
        false => 2 * BLOCK_BYTES,
    };
    let bits = 8 * (BLOCK_BYTES + length) as u64;
    let mut end = [0; 2 * BLOCK_BYTES];
    // SAFETY: the last `rest` bytes of the message.
    let tail = unsafe { std::slice::from_raw_parts(message.add(length - rest), rest) };
    end[..rest].copy_from_slice(tail);
    end[rest] = 0x80;
    end[used - size_of::<u64>()..used].copy_from_slice(&bits.to_be_bytes());
    (end, used)
}

/// The bytes of a state: the hash, when it is the last state.
#[must_use]
pub fn bytes_of(state: &State) -> [u8; HASH_BYTES] {
    let mut bytes = [0; HASH_BYTES];
    for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_be_bytes();
    }
    bytes
}

/// True when this processor has the instructions for two messages.
pub fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return sha_ni::is_available();
    #[cfg(not(target_arch = "x86_64"))]
    false
}
