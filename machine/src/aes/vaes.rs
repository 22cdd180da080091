//! AES by VAES and AVX-512: four blocks an instruction, eight registers in flight.
//!
//! ```text
//! XTS   sector -> tweak T = E(k2, offset)        16 sectors' tweaks in one go
//!       block i: C = E(k1, P ^ T.x^i) ^ T.x^i  32 blocks in flight, tweaks in registers
//! CBC   decryption: 32 blocks in flight; encryption: 8 sectors side by side
//! ```
//!
//! Sources: FIPS 197 (key expansion), IEEE 1619 (XTS), NIST SP 800-38A (CBC).

use super::{Direction, KeyBits, ROUND_KEYS_MAX, RoundKeys, Strides};
use std::arch::x86_64::*;
use std::hint::black_box;

/// Blocks that are in flight together.
const GROUP_BLOCKS: usize = 32;
const GROUP_BYTES: usize = GROUP_BLOCKS * BLOCK_BYTES;
const BLOCK_BYTES: usize = 16;
/// Sectors whose tweaks are made together.
const TWEAKS: usize = 16;
/// Sectors that are encrypted side by side in CBC mode.
const CBC_LANES: usize = 8;
/// x^128 + x^7 + x^2 + x + 1, without its highest term.
const POLYNOMIAL: i64 = 0x87;

/// Whether this processor has the instructions of the functions here.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("vaes")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("sse4.1")
}

/// Expands a key (FIPS 197, section 5.2); for decryption into the keys of the equivalent inverse
/// cipher, in the order in which they are used.
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn expand(key: &[u8], bits: KeyBits, direction: Direction, into: &mut RoundKeys) {
    let words_of_key = bits.words();
    let rounds = bits.rounds();
    let mut words = [0_u32; 4 * ROUND_KEYS_MAX];
    for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    let mut rcon = 1_u32;
    for at in words_of_key..4 * (rounds + 1) {
        let mut word = words[at - 1];
        if at % words_of_key == 0 {
            word = substitute::<1>(word) ^ rcon;
            rcon = (rcon << 1) ^ (0x11b * (rcon >> 7));
        } else if words_of_key > 6 && at % words_of_key == 4 {
            word = substitute::<0>(word);
        }
        words[at] = words[at - words_of_key] ^ word;
    }
    for (round, four) in words.chunks_exact(4).enumerate().take(rounds + 1) {
        let key = _mm_setr_epi32(
            four[0].cast_signed(),
            four[1].cast_signed(),
            four[2].cast_signed(),
            four[3].cast_signed(),
        );
        let (place, key) = match direction {
            Direction::Encrypt => (round, key),
            Direction::Decrypt if round == 0 || round == rounds => (rounds - round, key),
            Direction::Decrypt => (rounds - round, _mm_aesimc_si128(key)),
        };
        // SAFETY: an array of 16 bytes, written without a claim about alignment.
        unsafe { _mm_storeu_si128(into.keys[place].as_mut_ptr().cast(), key) };
    }
    into.rounds = rounds;
    crate::secret::wipe(&mut words);
}

/// SubWord (`LANE` 0), or SubWord and RotWord (`LANE` 1) of FIPS 197.
#[target_feature(enable = "aes,sse4.1")]
fn substitute<const LANE: i32>(word: u32) -> u32 {
    let both = _mm_aeskeygenassist_si128::<0>(_mm_setr_epi32(0, word.cast_signed(), 0, 0));
    _mm_extract_epi32::<LANE>(both).cast_unsigned()
}

/// A round key, four times in a register.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
fn wide(keys: &RoundKeys, round: usize) -> __m512i {
    // SAFETY: an array of 16 bytes, read without a claim about alignment.
    let key = unsafe { _mm_loadu_si128(keys.keys[round].as_ptr().cast()) };
    _mm512_broadcast_i32x4(key)
}

/// All rounds of `N` registers; `tweaks` are added before the first and after the last.
///
/// The keys are read where they are used, once for `N` registers: `black_box` keeps the compiler
/// from reading them before the loop, where it would have to spill them to the stack. Keys are to
/// be in locked memory only.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
fn rounds<const ROUNDS: usize, const ENCRYPT: bool, const N: usize>(
    mut data: [__m512i; N],
    keys: &RoundKeys,
    tweaks: [__m512i; N],
    final_tweaks: [__m512i; N],
) -> [__m512i; N] {
    let keys = black_box(keys);
    let first = wide(keys, 0);
    for (one, tweak) in data.iter_mut().zip(tweaks) {
        *one = _mm512_ternarylogic_epi64::<0x96>(*one, tweak, first);
    }
    for round in 1..ROUNDS {
        let key = wide(keys, round);
        for one in &mut data {
            *one = match ENCRYPT {
                true => _mm512_aesenc_epi128(*one, key),
                false => _mm512_aesdec_epi128(*one, key),
            };
        }
    }
    let last = wide(keys, ROUNDS);
    for (one, tweak) in data.iter_mut().zip(final_tweaks) {
        let last = _mm512_xor_si512(tweak, last);
        *one = match ENCRYPT {
            true => _mm512_aesenclast_epi128(*one, last),
            false => _mm512_aesdeclast_epi128(*one, last),
        };
    }
    data
}

/// Tweaks of four blocks, `from` powers of x and up: T.x^from, T.x^(from+1), ...
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
fn four_tweaks(tweak: __m128i, from: i64) -> __m512i {
    let tweak = _mm512_broadcast_i32x4(tweak);
    let (a, b, c, d) = (from, from + 1, from + 2, from + 3);
    let left = _mm512_setr_epi64(a, a, b, b, c, c, d, d);
    let right = _mm512_sub_epi64(_mm512_set1_epi64(64), left);
    let carried = _mm512_srlv_epi64(tweak, right);
    let shifted = _mm512_sllv_epi64(tweak, left);
    let across = _mm512_bslli_epi128::<8>(carried);
    let polynomial = _mm512_set1_epi64(POLYNOMIAL);
    let reduced = _mm512_clmulepi64_epi128::<0x01>(carried, polynomial);
    _mm512_ternarylogic_epi64::<0x96>(shifted, across, reduced)
}

/// The tweaks of eight blocks further: multiplied by x^8.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
fn eight_further(tweaks: __m512i) -> __m512i {
    let carried = _mm512_bsrli_epi128::<15>(tweaks);
    let reduced = _mm512_clmulepi64_epi128::<0x00>(carried, _mm512_set1_epi64(POLYNOMIAL));
    _mm512_xor_si512(_mm512_bslli_epi128::<1>(tweaks), reduced)
}

/// The tweaks of up to 16 sectors: their offsets, encrypted.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
fn sector_tweaks<const ROUNDS: usize>(
    keys: &RoundKeys,
    offset: u64,
    step: u64,
    into: &mut [__m128i; TWEAKS],
) {
    // Those behind the end of the media are not used.
    let at = |number: u64| offset.wrapping_add(number.wrapping_mul(step)).cast_signed();
    let nothing = [_mm512_setzero_si512(); TWEAKS / 4];
    let mut four = nothing;
    for (n, place) in (0..).step_by(4).zip(four.iter_mut()) {
        *place = _mm512_setr_epi64(at(n), 0, at(n + 1), 0, at(n + 2), 0, at(n + 3), 0);
    }
    let four = rounds::<ROUNDS, true, { TWEAKS / 4 }>(four, keys, nothing, nothing);
    for (group, tweaks) in four.into_iter().enumerate() {
        into[4 * group] = _mm512_extracti32x4_epi32::<0>(tweaks);
        into[4 * group + 1] = _mm512_extracti32x4_epi32::<1>(tweaks);
        into[4 * group + 2] = _mm512_extracti32x4_epi32::<2>(tweaks);
        into[4 * group + 3] = _mm512_extracti32x4_epi32::<3>(tweaks);
    }
}

/// One sector with its tweak.
///
/// # Safety
/// `from` and `to` are valid for `length` bytes, a multiple of 16, and equal or apart.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
unsafe fn xts_sector<const ROUNDS: usize, const ENCRYPT: bool>(
    keys: &RoundKeys,
    tweak: __m128i,
    from: *const u8,
    to: *mut u8,
    length: usize,
) {
    let mut even = four_tweaks(tweak, 0);
    let mut odd = four_tweaks(tweak, 4);
    let mut at = 0;
    while at + GROUP_BYTES <= length {
        let mut tweaks = [even; 8];
        for pair in 0..4 {
            tweaks[2 * pair] = even;
            tweaks[2 * pair + 1] = odd;
            even = eight_further(even);
            odd = eight_further(odd);
        }
        let mut data = [even; 8];
        for (n, place) in data.iter_mut().enumerate() {
            // SAFETY: inside the sector, which the caller vouches for.
            *place = unsafe { _mm512_loadu_si512(from.add(at + 64 * n).cast()) };
        }
        let data = rounds::<ROUNDS, ENCRYPT, 8>(data, keys, tweaks, tweaks);
        for (n, data) in data.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(to.add(at + 64 * n).cast(), data) };
        }
        at += GROUP_BYTES;
    }
    // Authenticated sectors come in pieces of less than a group: 480 bytes as a rule.
    // SAFETY: as above; less than a group is left.
    unsafe {
        let (from, to, left) = (from.wrapping_add(at), to.wrapping_add(at), length - at);
        match left.div_ceil(64) {
            0 => (),
            1 => xts_rest::<ROUNDS, ENCRYPT, 1>(keys, [even, odd], from, to, left),
            2..=4 => xts_rest::<ROUNDS, ENCRYPT, 4>(keys, [even, odd], from, to, left),
            _ => xts_rest::<ROUNDS, ENCRYPT, 8>(keys, [even, odd], from, to, left),
        }
    }
}

/// The rest of a sector, at most `N` registers of it.
///
/// # Safety
/// As [`xts_sector`]; `length` is below [`GROUP_BYTES`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
unsafe fn xts_rest<const ROUNDS: usize, const ENCRYPT: bool, const N: usize>(
    keys: &RoundKeys,
    [mut even, mut odd]: [__m512i; 2],
    from: *const u8,
    to: *mut u8,
    length: usize,
) {
    let words = (1_u64 << (length / 8)) - 1;
    let mut tweaks = [even; N];
    let mut data = [even; N];
    for n in 0..N {
        tweaks[n] = even;
        (even, odd) = (odd, eight_further(even));
        // SAFETY: the mask keeps to the sector, and nothing is read behind it.
        data[n] = unsafe {
            let mask = (words >> (8 * n)) as __mmask8;
            _mm512_maskz_loadu_epi64(mask, from.wrapping_add(64 * n).cast())
        };
    }
    let data = rounds::<ROUNDS, ENCRYPT, N>(data, keys, tweaks, tweaks);
    for (n, data) in data.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe {
            let mask = (words >> (8 * n)) as __mmask8;
            _mm512_mask_storeu_epi64(to.wrapping_add(64 * n).cast(), mask, data);
        }
    }
}

/// XTS of pieces, `length` bytes of data in all; the last piece may be shorter.
///
/// # Safety
/// `from` and `to` are valid for the pieces as `strides` places them, and equal or apart;
/// `piece_bytes` and `length` are multiples of 16, and `piece_bytes` is not 0.
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
pub(super) unsafe fn xts<const ROUNDS: usize, const ENCRYPT: bool>(
    data_keys: &RoundKeys,
    tweak_keys: &RoundKeys,
    strides: Strides,
    (mut from, mut to, length): (*const u8, *mut u8, usize),
) {
    let mut tweaks = [_mm_setzero_si128(); TWEAKS];
    let (mut left, mut offset) = (length, strides.offset);
    while left > 0 {
        sector_tweaks::<ROUNDS>(tweak_keys, offset, strides.offset_step, &mut tweaks);
        for tweak in tweaks.iter().take(left.div_ceil(strides.piece_bytes)) {
            let now = left.min(strides.piece_bytes);
            // SAFETY: a piece that the caller vouches for; behind the last one the addresses may
            // lie outside, and are not used.
            unsafe {
                xts_sector::<ROUNDS, ENCRYPT>(data_keys, *tweak, from, to, now);
            }
            from = from.wrapping_add(strides.from_step);
            to = to.wrapping_add(strides.to_step);
            offset = offset.wrapping_add(strides.offset_step);
            left -= now;
        }
    }
}

/// CBC decryption of one sector, in place.
#[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
pub(super) fn cbc_decrypt<const ROUNDS: usize>(keys: &RoundKeys, iv: &[u8; 16], data: &mut [u8]) {
    // SAFETY: 16 bytes, read without a claim about alignment.
    let iv = unsafe { _mm_loadu_si128(iv.as_ptr().cast()) };
    // Only its highest block counts.
    let mut before = _mm512_broadcast_i32x4(iv);
    let (base, length) = (data.as_mut_ptr(), data.len() / BLOCK_BYTES * BLOCK_BYTES);
    let nothing = [_mm512_setzero_si512(); 8];
    let mut at = 0;
    while at + GROUP_BYTES <= length {
        let mut blocks = nothing;
        let mut chained = nothing;
        for n in 0..8 {
            // SAFETY: inside the slice.
            blocks[n] = unsafe { _mm512_loadu_si512(base.add(at + 64 * n).cast()) };
            chained[n] = _mm512_alignr_epi64::<6>(blocks[n], before);
            before = blocks[n];
        }
        let blocks = rounds::<ROUNDS, false, 8>(blocks, keys, nothing, chained);
        for (n, block) in blocks.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(base.add(at + 64 * n).cast(), block) };
        }
        at += GROUP_BYTES;
    }
    while at < length {
        let words = ((length - at) / 8).min(8);
        let mask = (0xff_u32 >> (8 - words)) as __mmask8;
        // SAFETY: the mask keeps to the slice.
        let loaded = unsafe { _mm512_maskz_loadu_epi64(mask, base.add(at).cast()) };
        let chained = _mm512_alignr_epi64::<6>(loaded, before);
        before = loaded;
        let [block] = rounds::<ROUNDS, false, 1>([loaded], keys, [nothing[0]], [chained]);
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_epi64(base.add(at).cast(), mask, block) };
        at += 64;
    }
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn narrow(keys: &RoundKeys, round: usize) -> __m128i {
    // SAFETY: an array of 16 bytes, read without a claim about alignment.
    unsafe { _mm_loadu_si128(keys.keys[round].as_ptr().cast()) }
}

/// CBC encryption of sectors side by side, in place: `ivs` has one for each.
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn cbc_encrypt(
    keys: &RoundKeys,
    ivs: &[[u8; 16]],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let groups = data.chunks_mut(sector_bytes * CBC_LANES);
    for (group, ivs) in groups.zip(ivs.chunks(CBC_LANES)) {
        let lanes = (group.len() / sector_bytes).min(ivs.len());
        let mut states = [_mm_setzero_si128(); CBC_LANES];
        for (state, iv) in states.iter_mut().zip(ivs) {
            // SAFETY: 16 bytes, read without a claim about alignment.
            *state = unsafe { _mm_loadu_si128(iv.as_ptr().cast()) };
        }
        for at in (0..sector_bytes).step_by(BLOCK_BYTES) {
            // As in `rounds`.
            let keys = black_box(keys);
            let first = narrow(keys, 0);
            for (lane, state) in states.iter_mut().enumerate().take(lanes) {
                let place = &group[lane * sector_bytes + at..][..BLOCK_BYTES];
                // SAFETY: 16 bytes of the slice.
                let block = unsafe { _mm_loadu_si128(place.as_ptr().cast()) };
                *state = _mm_xor_si128(_mm_xor_si128(*state, block), first);
            }
            for round in 1..keys.rounds {
                let key = narrow(keys, round);
                for state in &mut states {
                    *state = _mm_aesenc_si128(*state, key);
                }
            }
            let last = narrow(keys, keys.rounds);
            for state in &mut states {
                *state = _mm_aesenclast_si128(*state, last);
            }
            for (lane, state) in states.iter().enumerate().take(lanes) {
                let place = &mut group[lane * sector_bytes + at..][..BLOCK_BYTES];
                // SAFETY: 16 bytes of the slice.
                unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), *state) };
            }
        }
    }
}
