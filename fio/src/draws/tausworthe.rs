//! Combined Tausworthe generators of 32 and 64 bits.
//!
//! P. L'Ecuyer, "Maximally Equidistributed Combined Tausworthe Generators", Mathematics of
//! Computation 65 (1996), and "Tables of Maximally Equidistributed Combined LFSR Generators",
//! Mathematics of Computation 68 (1999), which has the one of 64 bits and the smallest state that
//! each component may begin with. Seeds become states as by fio and the GNU Scientific Library: by
//! a multiplication each, and six numbers are left out.

/// The constants of the first state: fio writes powers of two with `^`, which C reads as XOR.
const FIRST: u64 = (2 ^ 31) + (2 ^ 17) + (2 ^ 7);

/// Numbers left out at the beginning.
const LEFT_OUT: u32 = 6;

/// The state of the generator of 32 bits, period 2^88.
#[derive(Clone, Debug)]
pub struct Taus88([u32; 3]);

impl Taus88 {
    pub(super) fn new(seed: u32) -> Self {
        let state = first_state([1, 7, 15], 69_069, u64::from(seed), u64::from(u32::MAX));
        let mut numbers = Self(state.map(|part| part as u32));
        (0..LEFT_OUT).for_each(|_| _ = numbers.next());
        numbers
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u32 {
        let [a, b, c] = &mut self.0;
        *a = ((*a & !1) << 12) ^ (((*a << 13) ^ *a) >> 19);
        *b = ((*b & !7) << 4) ^ (((*b << 2) ^ *b) >> 25);
        *c = ((*c & !15) << 17) ^ (((*c << 3) ^ *c) >> 11);
        *a ^ *b ^ *c
    }

    /// The state in the four words of fio, the last of which is zero.
    pub(super) fn state(&self) -> [u32; 4] {
        let [a, b, c] = self.0;
        [a, b, c, 0]
    }
}

/// The state of the generator of 64 bits, period 2^258.
#[derive(Clone, Debug)]
pub struct Taus258([u64; 5]);

impl Taus258 {
    pub(super) fn new(seed: u64) -> Self {
        let state = first_state([1, 7, 15, 33, 49], 6_906_969_069, seed, u64::MAX);
        let mut numbers = Self(state);
        (0..LEFT_OUT).for_each(|_| _ = numbers.next());
        numbers
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        let [a, b, c, d, e] = &mut self.0;
        *a = ((*a & !1) << 10) ^ (((*a << 1) ^ *a) >> 53);
        *b = ((*b & !0x1ff) << 5) ^ (((*b << 24) ^ *b) >> 50);
        *c = ((*c & !0xfff) << 29) ^ (((*c << 3) ^ *c) >> 23);
        *d = ((*d & !0x1_ffff) << 23) ^ (((*d << 5) ^ *d) >> 24);
        *e = ((*e & !0x7f_ffff) << 8) ^ (((*e << 3) ^ *e) >> 33);
        *a ^ *b ^ *c ^ *d ^ *e
    }

    /// The state in the six words of fio, the last of which is zero.
    pub(super) fn state(&self) -> [u64; 6] {
        let [a, b, c, d, e] = self.0;
        [a, b, c, d, e, 0]
    }
}

/// The state that follows from a seed, of components with these smallest values and bits.
fn first_state<const N: usize>(
    smallest: [u64; N],
    multiplier: u64,
    seed: u64,
    bits: u64,
) -> [u64; N] {
    let mut last = FIRST;
    smallest.map(|smallest| {
        last = (last.wrapping_mul(multiplier) ^ seed) & bits;
        if last < smallest {
            last += smallest;
        }
        last
    })
}
