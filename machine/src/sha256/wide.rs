//! SHA-256 by AVX-512, sixteen messages in the lanes of a register.
//!
//! Source: FIPS 180-4, sections 4.1.2 and 6.2.2.

use super::{BLOCK_BYTES, HASH_BYTES, INITIAL, K, LANES, State, bytes_of};
use std::arch::x86_64::*;

/// A word of each message.
type Lanes = __m512i;

/// Whether this processor has the instructions of the functions here.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}

/// The sum of three words, bit by bit.
const XOR3: i32 = 0x96;
/// Ch: the second where the first has ones, else the third.
const CHOOSE: i32 = 0xca;
/// Maj: what at least two of the three have.
const MAJORITY: i32 = 0xe8;

macro_rules! sigma {
    ($x:expr, $a:literal, $b:literal, rotate $c:literal) => {
        _mm512_ternarylogic_epi32::<XOR3>(
            _mm512_ror_epi32::<$a>($x),
            _mm512_ror_epi32::<$b>($x),
            _mm512_ror_epi32::<$c>($x),
        )
    };
    ($x:expr, $a:literal, $b:literal, shift $c:literal) => {
        _mm512_ternarylogic_epi32::<XOR3>(
            _mm512_ror_epi32::<$a>($x),
            _mm512_ror_epi32::<$b>($x),
            _mm512_srli_epi32::<$c>($x),
        )
    };
}

/// Rounds of all messages, `$n` the number of each.
macro_rules! rounds {
    ($words:ident, $state:ident, $($n:literal)*) => { $(
        if $n >= 16 {
            let low = sigma!($words[($n + 1) % 16], 7, 18, shift 3);
            let high = sigma!($words[($n + 14) % 16], 17, 19, shift 10);
            let sum = _mm512_add_epi32($words[$n % 16], $words[($n + 9) % 16]);
            $words[$n % 16] = _mm512_add_epi32(_mm512_add_epi32(sum, low), high);
        }
        let [a, b, c, d, e, f, g, h] = $state;
        let k = _mm512_set1_epi32(K[$n / 4][$n % 4].cast_signed());
        let begun = _mm512_add_epi32(_mm512_add_epi32(h, k), $words[$n % 16]);
        let chosen = _mm512_ternarylogic_epi32::<CHOOSE>(e, f, g);
        let first = _mm512_add_epi32(begun, chosen);
        let first = _mm512_add_epi32(first, sigma!(e, 6, 11, rotate 25));
        let second = _mm512_ternarylogic_epi32::<MAJORITY>(a, b, c);
        let second = _mm512_add_epi32(second, sigma!(a, 2, 13, rotate 22));
        let new_e = _mm512_add_epi32(d, first);
        $state = [_mm512_add_epi32(first, second), a, b, c, new_e, e, f, g];
    )* };
}

/// One block of each message.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn compress(state: &mut [Lanes; 8], block: &[Lanes; 16]) {
    let (mut words, mut now) = (*block, *state);
    rounds!(words, now,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
        61 62 63);
    for (old, new) in state.iter_mut().zip(now) {
        *old = _mm512_add_epi32(*old, new);
    }
}

/// A state, the same for all messages.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn all(state: &State) -> [Lanes; 8] {
    state.map(|word| _mm512_set1_epi32(word.cast_signed()))
}

/// The words of a block of each message, or of a piece of one with zeroes behind it: word `n` of
/// message `m` is lane `m` of register `n`.
///
/// # Safety
/// All messages are valid for `length` bytes from `at` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn words_at(messages: &[*const u8; LANES], (at, length): (usize, usize)) -> [Lanes; 16] {
    let swap = _mm512_broadcast_i32x4(_mm_setr_epi8(
        3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
    ));
    let there = u64::MAX
        .checked_shr((BLOCK_BYTES - length) as u32)
        .unwrap_or(0);
    let mut rows = [swap; LANES];
    for (row, message) in rows.iter_mut().zip(messages) {
        // SAFETY: bytes that the mask leaves out are not read; no claim about alignment.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(there, message.add(at).cast()) };
        *row = _mm512_shuffle_epi8(bytes, swap);
    }
    transposed(rows)
}

/// Rows and columns of words exchanged.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn transposed(rows: [Lanes; 16]) -> [Lanes; 16] {
    let mut pairs = rows;
    for n in (0..16).step_by(2) {
        pairs[n] = _mm512_unpacklo_epi32(rows[n], rows[n + 1]);
        pairs[n + 1] = _mm512_unpackhi_epi32(rows[n], rows[n + 1]);
    }
    let mut fours = pairs;
    for n in (0..16).step_by(4) {
        fours[n] = _mm512_unpacklo_epi64(pairs[n], pairs[n + 2]);
        fours[n + 1] = _mm512_unpackhi_epi64(pairs[n], pairs[n + 2]);
        fours[n + 2] = _mm512_unpacklo_epi64(pairs[n + 1], pairs[n + 3]);
        fours[n + 3] = _mm512_unpackhi_epi64(pairs[n + 1], pairs[n + 3]);
    }
    let mut words = fours;
    for n in 0..4 {
        let low = _mm512_shuffle_i32x4::<0x88>(fours[n], fours[n + 4]);
        let high = _mm512_shuffle_i32x4::<0xdd>(fours[n], fours[n + 4]);
        let low_2 = _mm512_shuffle_i32x4::<0x88>(fours[n + 8], fours[n + 12]);
        let high_2 = _mm512_shuffle_i32x4::<0xdd>(fours[n + 8], fours[n + 12]);
        words[n] = _mm512_shuffle_i32x4::<0x88>(low, low_2);
        words[n + 8] = _mm512_shuffle_i32x4::<0xdd>(low, low_2);
        words[n + 4] = _mm512_shuffle_i32x4::<0x88>(high, high_2);
        words[n + 12] = _mm512_shuffle_i32x4::<0xdd>(high, high_2);
    }
    words
}

/// A block that begins with eight words and ends with the padding of a message of `bytes` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn ended(begin: &[Lanes], bytes: usize) -> [Lanes; 16] {
    let mut block = [_mm512_setzero_si512(); 16];
    block[..begin.len()].copy_from_slice(begin);
    block[begin.len()] = _mm512_set1_epi32(i32::MIN);
    block[15] = _mm512_set1_epi32((8 * bytes) as i32);
    block
}

/// As `sha_ni::hmacs`, of sixteen messages. The caller overwrites the remains of keys on the stack.
///
/// # Safety
/// All messages are valid for `length` bytes.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn hmacs(
    before: &State,
    suffixes: &[[u8; 8]; LANES],
    messages: &[*const u8; LANES],
    length: usize,
) -> [[u8; HASH_BYTES]; LANES] {
    let words = suffixes.map(u64::from_be_bytes);
    let [first, second] = [32, 0].map(|shift| {
        let half = words.map(|word| (word >> shift) as u32);
        // SAFETY: 64 bytes, read without a claim about alignment.
        unsafe { _mm512_loadu_si512(half.as_ptr().cast()) }
    });
    let mut key = all(before);
    compress(&mut key, &ended(&[first, second], BLOCK_BYTES + 8));

    let begun = |pad: i32| {
        let pad = _mm512_set1_epi32(pad);
        let mut block = [pad; 16];
        for (word, key) in block.iter_mut().zip(key) {
            *word = _mm512_xor_si512(key, pad);
        }
        let mut state = all(&INITIAL);
        compress(&mut state, &block);
        state
    };
    let mut outer = begun(0x5c5c_5c5c);
    let mut inner = begun(0x3636_3636);

    let rest = length % BLOCK_BYTES;
    for at in (0..length - rest).step_by(BLOCK_BYTES) {
        // SAFETY: a whole block inside the messages, which the caller vouches for.
        let block = unsafe { words_at(messages, (at, BLOCK_BYTES)) };
        compress(&mut inner, &block);
    }
    // SAFETY: the rest of the messages. FIPS 180-4, section 5.1.1: behind it a one, zeroes, and
    // the length, for which a block more may be needed.
    let mut block = unsafe { words_at(messages, (length - rest, rest)) };
    let one = _mm512_set1_epi32((0x8000_0000_u32 >> (8 * (rest % 4))).cast_signed());
    block[rest / 4] = _mm512_or_si512(block[rest / 4], one);
    if rest + 1 + size_of::<u64>() > BLOCK_BYTES {
        compress(&mut inner, &block);
        block = [_mm512_setzero_si512(); 16];
    }
    block[15] = _mm512_set1_epi32((8 * (BLOCK_BYTES + length)) as i32);
    compress(&mut inner, &block);
    compress(&mut outer, &ended(&inner, BLOCK_BYTES + HASH_BYTES));

    let mut words = [[0_u32; LANES]; 8];
    for (words, lanes) in words.iter_mut().zip(outer) {
        // SAFETY: 64 bytes, written without a claim about alignment.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), lanes) };
    }
    std::array::from_fn(|lane| bytes_of(&std::array::from_fn(|word| words[word][lane])))
}
