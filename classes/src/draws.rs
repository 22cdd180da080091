//! Random numbers that can be drawn in any order and from any thread.

/// The `number`-th value of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
pub fn draw(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// True with a probability: the upper 53 bits of a random value, as a fraction, lie below it.
pub(crate) fn happens(probability: f64, random: u64) -> bool {
    const ONE: f64 = (1_u64 << 53) as f64;
    ((random >> 11) as f64) < probability * ONE
}
