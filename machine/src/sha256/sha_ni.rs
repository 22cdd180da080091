//! SHA-256 by the instructions of x86 for it, two messages interleaved.
//!
//! Sources: FIPS 180-4, sections 4.2.2 and 6.2.2; Intel's manual for `SHA256RNDS2`, which takes the
//! state as two registers, ABEF and CDGH, and does two rounds.

use super::{BLOCK_BYTES, HASH_BYTES, INITIAL, K, State, bytes_of, ending};
use std::arch::x86_64::*;

/// Whether this processor has the instructions of the functions here.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("sha")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("sse4.1")
}

/// Four rounds of each message: row `$n` of the constants, and words for rounds to come.
macro_rules! four_rounds {
    ($lanes:ident, $($n:literal)*) => { $(
        for (state, words) in &mut $lanes {
            let [now, next, after, last] =
                [words[$n % 4], words[($n + 1) % 4], words[($n + 2) % 4], words[($n + 3) % 4]];
            // SAFETY: 16 bytes, read without a claim about alignment.
            let k = unsafe { _mm_loadu_si128(K[$n].as_ptr().cast()) };
            let low = _mm_add_epi32(now, k);
            let high = _mm_shuffle_epi32::<0x0e>(low);
            state[1] = _mm_sha256rnds2_epu32(state[1], state[0], low);
            state[0] = _mm_sha256rnds2_epu32(state[0], state[1], high);
            if $n < 12 {
                let begun = _mm_sha256msg1_epu32(now, next);
                let begun = _mm_add_epi32(begun, _mm_alignr_epi8::<4>(last, after));
                words[$n % 4] = _mm_sha256msg2_epu32(begun, last);
            }
        }
    )* };
}

/// The state of one message: ABEF and CDGH.
type Registers = [__m128i; 2];
/// The 16 words of a block.
type Words = [__m128i; 4];

/// One block of each message. A macro, as the states have to stay in registers: a call would store
/// and load them for each block.
macro_rules! compress {
    ($states:ident, $blocks:expr) => {
        let [first, second] = $blocks;
        let mut lanes = [($states[0], first), ($states[1], second)];
        four_rounds!(lanes, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for (old, (new, _)) in $states.iter_mut().zip(lanes) {
            *old = [_mm_add_epi32(old[0], new[0]), _mm_add_epi32(old[1], new[1])];
        }
    };
}

/// The words of the block at each place.
///
/// # Safety
/// Both are valid for 64 bytes.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
unsafe fn words_at(places: [*const u8; 2]) -> [Words; 2] {
    let swap = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    let mut blocks = [[swap; 4]; 2];
    for (words, place) in blocks.iter_mut().zip(places) {
        for (n, four) in words.iter_mut().enumerate() {
            // SAFETY: inside the block, which the caller vouches for; no claim about alignment.
            let bytes = unsafe { _mm_loadu_si128(place.add(16 * n).cast()) };
            *four = _mm_shuffle_epi8(bytes, swap);
        }
    }
    blocks
}

/// A block that begins with two rows of words and ends with the padding of a message of `bytes`
/// bytes, of which it holds those.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn ended([low, high]: [__m128i; 2], padding: __m128i, bytes: usize) -> Words {
    let bits = (8 * bytes) as i32;
    [low, high, padding, _mm_setr_epi32(0, 0, 0, bits)]
}

/// HMAC-SHA256 of two messages of `length` bytes; the key of each is the hash that continues
/// `before`, which is behind one block, with 8 bytes.
///
/// Pads, keys and the hash between the two passes never leave the registers, but for what the
/// compiler spills.
///
/// # Safety
/// Both messages are valid for `length` bytes.
#[target_feature(enable = "sha,ssse3,sse4.1")]
pub(super) unsafe fn hmacs(
    before: &State,
    suffixes: [[u8; 8]; 2],
    messages: [*const u8; 2],
    length: usize,
) -> [[u8; HASH_BYTES]; 2] {
    let nothing = _mm_setzero_si128();
    let end_bit = _mm_setr_epi32(i32::MIN, 0, 0, 0);
    let mut keys = [abef_cdgh(before); 2];
    let keyed = suffixes.map(|suffix| {
        let words = u64::from_be_bytes(suffix);
        let (first, second) = ((words >> 32) as i32, words as i32);
        let row = _mm_setr_epi32(first, second, i32::MIN, 0);
        ended([row, nothing], nothing, BLOCK_BYTES + suffix.len())
    });
    compress!(keys, keyed);
    let keys = keys.map(|key| abcd_efgh(key));

    let begun = |pad: i32| {
        let pad = _mm_set1_epi32(pad);
        let mut states = [abef_cdgh(&INITIAL); 2];
        let block = |key: [__m128i; 2]| {
            let [low, high] = [_mm_xor_si128(key[0], pad), _mm_xor_si128(key[1], pad)];
            [low, high, pad, pad]
        };
        compress!(states, keys.map(block));
        states
    };
    let mut outer = begun(0x5c5c_5c5c);
    let mut inner = begun(0x3636_3636);

    let rest = length % BLOCK_BYTES;
    for at in (0..length - rest).step_by(BLOCK_BYTES) {
        // SAFETY: a whole block inside the messages, which the caller vouches for.
        let blocks = unsafe { words_at(messages.map(|message| message.add(at))) };
        compress!(inner, blocks);
    }
    // SAFETY: the last bytes of the messages, which the caller vouches for.
    let ends = messages.map(|message| unsafe { ending(message, length) });
    let used = ends[0].1;
    for at in (0..used).step_by(BLOCK_BYTES) {
        let places = ends.each_ref().map(|(end, _)| end[at..].as_ptr());
        // SAFETY: `used` is one block or two, and there is room for two.
        let blocks = unsafe { words_at(places) };
        compress!(inner, blocks);
    }
    let last = inner.map(|state| ended(abcd_efgh(state), end_bit, BLOCK_BYTES + HASH_BYTES));
    compress!(outer, last);
    outer.map(|state| bytes_of(&words_of(state)))
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn abef_cdgh(state: &State) -> Registers {
    // SAFETY: twice 16 bytes of the state, read without a claim about alignment.
    let [abcd, efgh] = unsafe {
        let words = state.as_ptr();
        [
            _mm_loadu_si128(words.cast()),
            _mm_loadu_si128(words.add(4).cast()),
        ]
    };
    let badc = _mm_shuffle_epi32::<0xb1>(abcd);
    let hgfe = _mm_shuffle_epi32::<0x1b>(efgh);
    [
        _mm_alignr_epi8::<8>(badc, hgfe),
        _mm_blend_epi16::<0xf0>(hgfe, badc),
    ]
}

/// The words of a state, in their order.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn abcd_efgh([abef, cdgh]: Registers) -> [__m128i; 2] {
    let feba = _mm_shuffle_epi32::<0x1b>(abef);
    let dchg = _mm_shuffle_epi32::<0xb1>(cdgh);
    [
        _mm_blend_epi16::<0xf0>(feba, dchg),
        _mm_alignr_epi8::<8>(dchg, feba),
    ]
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn words_of(registers: Registers) -> State {
    let [abcd, efgh] = abcd_efgh(registers);
    let mut state = [0; 8];
    // SAFETY: twice 16 bytes of the state, written without a claim about alignment.
    unsafe {
        let words = state.as_mut_ptr();
        _mm_storeu_si128(words.cast(), abcd);
        _mm_storeu_si128(words.add(4).cast(), efgh);
    }
    state
}
