//! How random places are spread over a file: evenly, by Zipf's law, Pareto's, a bell curve, or in
//! zones, as `random_distribution` has it. Formulas are those of fio, so that the same places come
//! in the same order; they are good approximations of the laws.
//!
//! Zipf after J. Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994.
//! Ranks are scattered over the file by a multiplication with an odd number modulo the number of
//! blocks, else the popular blocks would all be at the beginning.

use ugeom_load::places::Below;

use super::draws::Draws;
use ugeom_job::settings::Distribution;

/// 2^64 less 2^64 divided by the golden ratio (D. Knuth, TAOCP 3, 6.4).
const SCATTER: u64 = 0x61c8_8646_80b5_83eb;

/// How many terms of the zeta sum count, as by fio: more change the places little.
const ZETA_TERMS_MAX: u64 = 10_000_000;

/// How many numbers make one of the bell curve.
const NORMAL_DRAWS: u64 = 12;

/// The largest number of 32 bits.
const NUMBER_MAX: f64 = u32::MAX as f64;

/// The zeta sum that was computed last: files of one size share it.
#[derive(Default)]
pub struct ZetaSum(Option<(u64, f64, f64)>);

impl ZetaSum {
    /// The sum of 1 / i^theta for i from 1 to `n`, added in this order.
    fn of(&mut self, n: u64, theta: f64) -> f64 {
        let n = n.min(ZETA_TERMS_MAX);
        match self.0 {
            Some((terms, power, sum)) if (terms, power) == (n, theta) => sum,
            _ => {
                let sum = (1..=n).map(|i| (1.0 / i as f64).powf(theta)).sum();
                self.0 = Some((n, theta, sum));
                sum
            }
        }
    }
}

/// Draws blocks of a law, which has random numbers of its own.
pub struct Spread {
    law: Law,
    blocks: u64,
    /// How far all blocks are moved; those behind the end come at the beginning.
    moved: u64,
    scattered: bool,
    numbers: Draws,
}

/// The distribution of drawn blocks.
enum Law {
    Zipf(Zipf),
    /// The power of a uniform number.
    Pareto(f64),
    /// The width of a uniform number that is added to the sum, in blocks.
    Normal(u64),
}

struct Zipf {
    theta: f64,
    zeta_n: f64,
    /// 1 / (1 - theta).
    alpha: f64,
    eta: f64,
}

impl Spread {
    /// The spread of `distribution` over `blocks` blocks, of which there is at least one; `None`
    /// where blocks are drawn alike, everywhere or in zones. `scattered`: not in the order of their
    /// ranks.
    pub fn new(
        distribution: &Distribution,
        blocks: u64,
        seed: u64,
        scattered: bool,
        zeta: &mut ZetaSum,
    ) -> Option<Self> {
        let mut numbers = Draws::short(seed);
        let share = |center: f64| (blocks as f64 * center) as i64 as u64;
        let (law, moved) = match *distribution {
            Distribution::Uniform | Distribution::Zoned(_) | Distribution::ZonedBytes(_) => {
                return None;
            }
            Distribution::Zipf(theta, center) => {
                let drawn = numbers.number();
                let zeta_n = zeta.of(blocks, theta);
                let law = Law::Zipf(Zipf::new(theta, blocks, zeta_n));
                (law, center.map_or(drawn, share))
            }
            Distribution::Pareto(power, center) => {
                let drawn = numbers.number();
                let law = Law::Pareto(power.ln() / (1.0 - power).ln());
                (law, center.map_or(drawn, share))
            }
            Distribution::Normal(percent, center) => {
                let width = (blocks as f64 * percent / 100.0).ceil() as u64;
                // The law itself has its centre in the middle.
                let moved = center.map_or(0, |center| share(center - 0.5));
                (Law::Normal(width.min(blocks / 2)), moved)
            }
        };
        Some(Self {
            law,
            blocks,
            moved,
            scattered,
            numbers,
        })
    }

    /// The next block, by its index from 0.
    pub fn draw(&mut self) -> u64 {
        let rank = match &self.law {
            Law::Zipf(zipf) => zipf.rank(self.numbers.number() as f64 / NUMBER_MAX, self.blocks),
            Law::Pareto(power) => {
                let uniform = self.numbers.number() as f64 / NUMBER_MAX;
                ((self.blocks - 1) as f64 * uniform.powf(*power)) as u64
            }
            Law::Normal(width) => normal(&mut self.numbers, *width, self.blocks),
        };
        let block = match self.scattered {
            true => rank.wrapping_mul(SCATTER),
            false => rank,
        };
        block.wrapping_add(self.moved) % self.blocks
    }
}

impl Zipf {
    fn new(theta: f64, blocks: u64, zeta_n: f64) -> Self {
        let zeta_2 = 1.0 + 0.5_f64.powf(theta);
        Self {
            theta,
            zeta_n,
            alpha: 1.0 / (1.0 - theta),
            eta: (1.0 - (2.0 / blocks as f64).powf(1.0 - theta)) / (1.0 - zeta_2 / zeta_n),
        }
    }

    /// The rank of a share of all accesses, 0 to 1.
    fn rank(&self, uniform: f64, blocks: u64) -> u64 {
        let weight = uniform * self.zeta_n;
        if weight < 1.0 {
            return 0;
        }
        if weight < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        let base = self.eta * uniform - self.eta + 1.0;
        (blocks as f64 * base.powf(self.alpha)) as u64
    }
}

/// The mean of twelve blocks (the sum of uniform numbers tends to the normal law), and up to half
/// of `width` to either side of it.
fn normal(numbers: &mut Draws, width: u64, blocks: u64) -> u64 {
    let sum: u64 = (0..NORMAL_DRAWS)
        .map(|_| numbers.number() % (blocks + 1))
        .sum();
    let mean = sum.div_ceil(NORMAL_DRAWS);
    if width == 0 {
        return mean;
    }
    let mut aside = numbers.below(width) as i64 - (width / 2) as i64;
    while aside != 0
        && mean
            .checked_add_signed(aside)
            .is_none_or(|block| block >= blocks)
    {
        aside /= 2;
    }
    mean.saturating_add_signed(aside)
}

/// Zones of a file: which part of it a percentage of the accesses goes to.
pub struct Zones {
    /// Begin and end for each percentage.
    ranges: [(u64, u64); 100],
    /// They are bytes; else percent of the file.
    bytes: bool,
}

impl Zones {
    /// The zones of a distribution that has some.
    pub fn of(distribution: &Distribution) -> Option<Self> {
        let (zones, bytes): (Vec<(f64, u64)>, bool) = match distribution {
            Distribution::Zoned(zones) => {
                let zones = zones
                    .iter()
                    .map(|(accesses, share)| (*accesses, *share as u64));
                (zones.collect(), false)
            }
            Distribution::ZonedBytes(zones) => (zones.clone(), true),
            _ => return None,
        };
        let mut ranges = [(0, 0); 100];
        let (mut accesses, mut begin) = (0, 0_u64);
        for (percent, size) in zones {
            let end = begin.saturating_add(size);
            let last = (accesses + percent as usize).min(ranges.len());
            ranges[accesses..last].fill((begin, end));
            (accesses, begin) = (last, end);
        }
        // Percentages that were rounded down leave some.
        let last = ranges[accesses.saturating_sub(1)];
        ranges[accesses..].fill(last);
        Some(Self { ranges, bytes })
    }

    /// The zone of a percentage, 1 to 100, in `blocks` of so many bytes each: its first block, and
    /// how many there are; `None` where it ends behind them.
    pub fn range(&self, percentage: u8, blocks: u64, block_bytes: u64) -> Option<(u64, u64)> {
        let (begin, end) = self.ranges[usize::from(percentage) - 1];
        if self.bytes {
            let (begin, end) = (begin / block_bytes, end / block_bytes);
            return (end <= blocks).then_some((begin, end - begin));
        }
        let share = |percent: u64| (u128::from(blocks) * u128::from(percent) / 100) as u64;
        Some((share(begin), share(end - begin)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 1000;
    const DRAWS: usize = 200_000;

    fn counts(distribution: &Distribution) -> Vec<usize> {
        counts_of(distribution, true)
    }

    fn counts_of(distribution: &Distribution, scattered: bool) -> Vec<usize> {
        let zeta = &mut ZetaSum::default();
        let mut spread = Spread::new(distribution, BLOCKS, 7, scattered, zeta).unwrap();
        let mut counts = vec![0; BLOCKS as usize];
        for _ in 0..DRAWS {
            counts[spread.draw() as usize] += 1;
        }
        counts
    }

    fn share_of_the_busiest(distribution: &Distribution, blocks: usize) -> f64 {
        let mut counts = counts_of(distribution, false);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts[..blocks].iter().sum::<usize>() as f64 / DRAWS as f64
    }

    #[test]
    fn zipf_gives_the_ranks_the_shares_of_the_law() {
        for theta in [0.8, 1.2] {
            let whole: f64 = (1..=BLOCKS).map(|i| (i as f64).powf(-theta)).sum();
            let first = share_of_the_busiest(&Distribution::Zipf(theta, None), 1);
            let ten = share_of_the_busiest(&Distribution::Zipf(theta, None), 10);
            let law = |n: u64| (1..=n).map(|i| (i as f64).powf(-theta)).sum::<f64>() / whole;
            assert!(
                (first - law(1)).abs() < 0.01,
                "{theta}: {first} for {}",
                law(1)
            );
            assert!(
                (ten - law(10)).abs() < 0.03,
                "{theta}: {ten} for {}",
                law(10)
            );
        }
    }

    #[test]
    fn pareto_gives_a_share_of_the_blocks_the_rest_of_the_accesses() {
        // h = 0.2: 20 % of the blocks get 80 % of the accesses, as the law is named after.
        let share = share_of_the_busiest(&Distribution::Pareto(0.2, None), 200);
        assert!((share - 0.8).abs() < 0.05, "{share}");
    }

    #[test]
    fn the_normal_law_stays_around_its_centre() {
        let mean_and_deviation = |distribution: &Distribution| {
            let counts = counts_of(distribution, false);
            let sum = |of: fn(f64) -> f64| {
                let blocks = counts.iter().enumerate();
                let weights = blocks.map(|(block, count)| of(block as f64) * *count as f64);
                weights.sum::<f64>() / DRAWS as f64
            };
            let mean = sum(|block| block);
            (mean, (sum(|block| block * block) - mean * mean).sqrt())
        };
        // The mean of twelve uniform numbers, and another one of a tenth of the blocks.
        let expected = BLOCKS as f64 * (1.0 / 144.0 + 0.01 / 12.0_f64).sqrt();
        let (mean, deviation) = mean_and_deviation(&Distribution::Normal(10.0, None));
        assert!((mean - 500.0).abs() < 2.0, "{mean}");
        assert!((deviation - expected).abs() < 1.0, "{deviation} {expected}");
        let (mean, _) = mean_and_deviation(&Distribution::Normal(10.0, Some(0.6)));
        assert!((mean - 600.0).abs() < 2.0, "{mean}");
    }

    #[test]
    fn a_centre_moves_the_blocks_that_are_drawn_most() {
        let zipf = |center| counts(&Distribution::Zipf(1.2, center));
        let (unmoved, moved) = (zipf(Some(0.0)), zipf(Some(0.25)));
        let moved_back: Vec<usize> = moved[250..].iter().chain(&moved[..250]).copied().collect();
        assert_eq!(moved_back, unmoved);
    }

    #[test]
    fn zones_get_what_they_were_given() {
        let zones = vec![(60.0, 10.0), (30.0, 20.0), (10.0, 70.0)];
        let zones = Zones::of(&Distribution::Zoned(zones)).unwrap();
        let ranges =
            [1, 60, 61, 90, 91, 100].map(|percentage| zones.range(percentage, 1000, 512).unwrap());
        let expected = [(0, 100), (100, 200), (300, 700)].map(|range| [range; 2]);
        assert_eq!(ranges, *expected.as_flattened());
    }

    #[test]
    fn zones_of_bytes_end_with_the_file() {
        let zones = Distribution::ZonedBytes(vec![(30.0, 8 << 10), (70.0, 16 << 10)]);
        let zones = Zones::of(&zones).unwrap();
        let range = |percentage, blocks| zones.range(percentage, blocks, 4096);
        assert_eq!((range(30, 6), range(31, 6)), (Some((0, 2)), Some((2, 4))));
        assert_eq!((range(30, 5), range(31, 5)), (Some((0, 2)), None));
    }

    #[test]
    fn the_only_block_is_always_drawn() {
        for distribution in [
            Distribution::Zipf(1.1, None),
            Distribution::Pareto(0.2, None),
            Distribution::Normal(20.0, Some(0.3)),
        ] {
            let mut spread =
                Spread::new(&distribution, 1, 1, true, &mut ZetaSum::default()).unwrap();
            assert_eq!(spread.draw(), 0);
        }
    }
}
