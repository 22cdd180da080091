//! SHA-256 by the instructions of x86 for it, two messages interleaved.
//!
//! Sources: FIPS 180-4, sections 4.2.2 and 6.2.2; Intel's manual for `SHA256RNDS2`, which takes the
//! state as two registers, ABEF and CDGH, and does two rounds.

use super::{BLOCK_BYTES, State};
use std::arch::x86_64::*;

/// The constants of the rounds, four rounds a row.
#[rustfmt::skip]
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

/// Whether this processor has what the functions here need.
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

/// Whole blocks of both messages.
///
/// # Safety
/// Both are valid for `length` bytes, a multiple of 64.
#[target_feature(enable = "sha,ssse3,sse4.1")]
pub(super) unsafe fn blocks(states: &mut [State; 2], messages: [*const u8; 2], length: usize) {
    let swap = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    let mut all = [abef_cdgh(&states[0]), abef_cdgh(&states[1])];
    for at in (0..length).step_by(BLOCK_BYTES) {
        let mut lanes = [(all[0], [swap; 4]), (all[1], [swap; 4])];
        for ((_, words), message) in lanes.iter_mut().zip(messages) {
            for (n, four) in words.iter_mut().enumerate() {
                // SAFETY: inside the block, which the caller vouches for.
                let bytes = unsafe { _mm_loadu_si128(message.add(at + 16 * n).cast()) };
                *four = _mm_shuffle_epi8(bytes, swap);
            }
        }
        four_rounds!(lanes, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for (old, (new, _)) in all.iter_mut().zip(lanes) {
            *old = [_mm_add_epi32(old[0], new[0]), _mm_add_epi32(old[1], new[1])];
        }
    }
    for (state, registers) in states.iter_mut().zip(all) {
        *state = words_of(registers);
    }
}

/// The registers of a state.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn abef_cdgh(state: &State) -> [__m128i; 2] {
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

/// The state of registers.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn words_of([abef, cdgh]: [__m128i; 2]) -> State {
    let feba = _mm_shuffle_epi32::<0x1b>(abef);
    let dchg = _mm_shuffle_epi32::<0xb1>(cdgh);
    let mut state = [0; 8];
    // SAFETY: twice 16 bytes of the state, written without a claim about alignment.
    unsafe {
        let words = state.as_mut_ptr();
        _mm_storeu_si128(words.cast(), _mm_blend_epi16::<0xf0>(feba, dchg));
        _mm_storeu_si128(words.add(4).cast(), _mm_alignr_epi8::<8>(dchg, feba));
    }
    state
}
