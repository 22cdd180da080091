//! `random_generator=lfsr`: each block once, without a map, from a linear feedback shift register.
//!
//! Taps of registers with the longest period: P. Alfke, Xilinx application note 052 (1996), and
//! where it has four taps and two are enough, those.

/// The taps of the register of so many bits, the highest first.
const TAPS: [&[u8]; 61] = [
    &[3, 2],
    &[4, 3],
    &[5, 3],
    &[6, 5],
    &[7, 6],
    &[8, 6, 5, 4],
    &[9, 5],
    &[10, 7],
    &[11, 9],
    &[12, 6, 4, 1],
    &[13, 4, 3, 1],
    &[14, 5, 3, 1],
    &[15, 14],
    &[16, 15, 13, 4],
    &[17, 14],
    &[18, 11],
    &[19, 6, 2, 1],
    &[20, 17],
    &[21, 19],
    &[22, 21],
    &[23, 18],
    &[24, 23, 22, 17],
    &[25, 22],
    &[26, 6, 2, 1],
    &[27, 5, 2, 1],
    &[28, 25],
    &[29, 27],
    &[30, 6, 4, 1],
    &[31, 28],
    &[32, 31, 29, 1],
    &[33, 20],
    &[34, 27, 2, 1],
    &[35, 33],
    &[36, 25],
    &[37, 5, 4, 3, 2, 1],
    &[38, 6, 5, 1],
    &[39, 35],
    &[40, 38, 21, 19],
    &[41, 38],
    &[42, 41, 20, 19],
    &[43, 42, 38, 37],
    &[44, 43, 18, 17],
    &[45, 44, 42, 41],
    &[46, 45, 26, 25],
    &[47, 42],
    &[48, 47, 21, 20],
    &[49, 40],
    &[50, 49, 24, 23],
    &[51, 50, 36, 35],
    &[52, 49],
    &[53, 52, 38, 37],
    &[54, 53, 18, 17],
    &[55, 31],
    &[56, 55, 35, 34],
    &[57, 50],
    &[58, 39],
    &[59, 58, 38, 37],
    &[60, 59],
    &[61, 60, 46, 45],
    &[62, 61, 6, 5],
    &[63, 62],
];

/// The smallest register, in bits.
const BITS_MIN: u32 = 3;

/// Every block of a file once.
pub struct Lfsr {
    blocks: u64,
    /// The highest bit of the register.
    top: u64,
    taps: u64,
    seed: u64,
    value: u64,
    drawn: u64,
    /// The very first number is the second of the register.
    skips: bool,
}

impl Lfsr {
    /// The blocks below `blocks`, which is not 0.
    pub fn new(blocks: u64, seed: u64) -> Self {
        let bits = (u64::BITS - blocks.leading_zeros()).clamp(BITS_MIN, u64::BITS - 1);
        let taps = TAPS[(bits - BITS_MIN) as usize];
        let top = 1 << (bits - 1);
        let mut register = Self {
            blocks,
            top,
            taps: taps.iter().map(|tap| 1_u64 << (tap - 1)).sum(),
            seed,
            value: 0,
            drawn: 0,
            skips: true,
        };
        register.restart();
        register
    }

    /// Begins anew. All ones is the state that such a register never leaves.
    pub fn restart(&mut self) {
        let mask = (self.top << 1) - 1;
        self.drawn = 0;
        self.value = match self.seed & mask {
            ones if ones == mask => mask - 1,
            value => value,
        };
    }

    /// The next block; `None` when all have been drawn.
    pub fn next(&mut self) -> Option<u64> {
        if self.drawn >= self.blocks {
            return None;
        }
        self.drawn += 1;
        if std::mem::take(&mut self.skips) {
            self.step();
        }
        loop {
            self.step();
            if self.value < self.blocks {
                return Some(self.value);
            }
        }
    }

    #[inline]
    fn step(&mut self) {
        let taps = match self.value & 1 {
            0 => self.taps,
            _ => 0,
        };
        self.value = ((self.value >> 1) | self.top) ^ taps;
    }
}
