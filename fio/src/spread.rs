//! How random places are spread over a file: evenly, or by Zipf's law, Pareto's, the normal one, or
//! in zones, as fio's `random_distribution` has it.
//!
//! Zipf after J. Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994.
//! The popular blocks of Zipf's and Pareto's law are scattered by multiplying the rank with an odd
//! constant modulo the number of blocks, else they would all stand at the beginning.

use super::settings::Distribution;

/// A large odd number: 2^64 divided by the golden ratio (D. Knuth, TAOCP 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The terms of the zeta sum that are added one by one; the rest is the integral.
const ZETA_TERMS: u64 = 100_000;

/// Draws blocks: those of a law, moved to its centre.
pub struct Spread {
    law: Law,
    /// How far all blocks are moved, as a share of the file, with those behind the end at the
    /// beginning.
    moved: f64,
}

/// Which blocks are drawn how often.
enum Law {
    /// Every block alike.
    Even,
    /// Zipf's law.
    Zipf {
        theta: f64,
        /// Sum of the weights of all ranks.
        zeta_n: f64,
        /// Of the first two.
        zeta_2: f64,
    },
    /// Pareto's law, with its power.
    Pareto(f64),
    /// The normal law around the middle, with its deviation as a share of the file.
    Normal(f64),
    /// Ends of the zones, as shares of accesses and of the file from the beginning.
    Zones(Vec<(f64, f64)>),
}

impl Spread {
    /// A spread over `blocks` blocks.
    #[must_use]
    pub fn new(distribution: &Distribution, blocks: u64) -> Self {
        let (law, moved) = match distribution {
            Distribution::Uniform => (Law::Even, 0.0),
            Distribution::Zipf(theta, center) => {
                let law = Law::Zipf {
                    theta: *theta,
                    zeta_n: zeta(blocks, *theta),
                    zeta_2: zeta(2.min(blocks), *theta),
                };
                (law, center.unwrap_or(0.0))
            }
            Distribution::Pareto(power, center) => {
                let law = Law::Pareto(power.ln() / (1.0 - power).ln());
                (law, center.unwrap_or(0.0))
            }
            // The law itself has its centre in the middle.
            Distribution::Normal(percent, center) => {
                let moved = center.map_or(0.0, |center| (center - 0.5).rem_euclid(1.0));
                (Law::Normal(percent / 100.0), moved)
            }
            Distribution::Zoned(zones) => {
                let ends = zones.iter().scan((0.0, 0.0), |end, zone| {
                    *end = (end.0 + zone.0 / 100.0, end.1 + zone.1 / 100.0);
                    Some(*end)
                });
                (Law::Zones(ends.collect()), 0.0)
            }
        };
        Self { law, moved }
    }

    /// Whether every block is drawn alike.
    #[must_use]
    pub fn is_even(&self) -> bool {
        matches!(self.law, Law::Even)
    }

    /// A block below `blocks`, which is not 0.
    #[inline]
    pub fn draw(&self, random: &mut fastrand::Rng, blocks: u64) -> u64 {
        let drawn = self.law.draw(random, blocks);
        if self.moved == 0.0 {
            return drawn;
        }
        let moved = (self.moved * blocks as f64) as u64;
        ((u128::from(drawn) + u128::from(moved)) % u128::from(blocks)) as u64
    }
}

impl Law {
    #[inline]
    fn draw(&self, random: &mut fastrand::Rng, blocks: u64) -> u64 {
        match self {
            Self::Even => random.u64(0..blocks),
            Self::Zipf {
                theta,
                zeta_n,
                zeta_2,
            } => {
                let rank = zipf_rank(random.f64(), blocks, *theta, *zeta_n, *zeta_2);
                scattered(rank, blocks)
            }
            Self::Pareto(power) => {
                let rank = (blocks as f64 - 1.0) * random.f64().powf(*power);
                scattered(rank as u64, blocks)
            }
            Self::Normal(deviation) => normal_block(random, *deviation, blocks),
            Self::Zones(ends) => {
                let at = random.f64();
                let index = ends
                    .iter()
                    .position(|end| at < end.0)
                    .unwrap_or(ends.len() - 1);
                let from = if index == 0 { 0.0 } else { ends[index - 1].1 };
                let share = from + (ends[index].1 - from) * random.f64();
                ((share * blocks as f64) as u64).min(blocks - 1)
            }
        }
    }
}

fn scattered(rank: u64, blocks: u64) -> u64 {
    let product = u128::from(rank.wrapping_mul(GOLDEN)) * u128::from(blocks);
    (product >> 64) as u64
}

/// The sum of 1 / i^theta for i from 1 to `n`; beyond some terms by the integral, which is within
/// a millionth of it there.
fn zeta(n: u64, theta: f64) -> f64 {
    let terms = n.min(ZETA_TERMS);
    let sum: f64 = (1..=terms).map(|i| (i as f64).powf(-theta)).sum();
    if n == terms {
        return sum;
    }
    let integral = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
    sum + integral(n as f64 + 0.5) - integral(terms as f64 + 0.5)
}

/// For theta above 1, too, where Gray's closed form does not hold: there the inverse of the
/// integral serves for all ranks but the first two.
fn zipf_rank(uniform: f64, n: u64, theta: f64, zeta_n: f64, zeta_2: f64) -> u64 {
    let weight = uniform * zeta_n;
    if weight < 1.0 {
        return 0;
    }
    if weight < zeta_2 {
        return 1.min(n - 1);
    }
    let rest = weight - zeta_2;
    let power = 1.0 - theta;
    // Sum from 3 to k of i^-theta is about the integral from 2.5 to k + 0.5.
    let base = rest * power + 2.5_f64.powf(power);
    let rank = base.max(f64::MIN_POSITIVE).powf(1.0 / power) - 0.5;
    (rank.max(2.0) as u64).min(n - 1)
}

/// By the polar method of Box, Muller and Marsaglia (TAOCP 2, 3.4.1); what falls outside of the
/// file is folded back.
fn normal_block(random: &mut fastrand::Rng, deviation: f64, blocks: u64) -> u64 {
    let normal = loop {
        let (x, y) = (2.0 * random.f64() - 1.0, 2.0 * random.f64() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            break x * (-2.0 * square.ln() / square).sqrt();
        }
    };
    let place = (0.5 + normal * deviation).rem_euclid(1.0);
    ((place * blocks as f64) as u64).min(blocks - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 1000;
    const DRAWS: usize = 200_000;

    fn counts(distribution: &Distribution) -> Vec<usize> {
        let spread = Spread::new(distribution, BLOCKS);
        let mut random = fastrand::Rng::with_seed(7);
        let mut counts = vec![0; BLOCKS as usize];
        for _ in 0..DRAWS {
            counts[spread.draw(&mut random, BLOCKS) as usize] += 1;
        }
        counts
    }

    fn share_of_the_busiest(distribution: &Distribution, blocks: usize) -> f64 {
        let mut counts = counts(distribution);
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
    fn the_normal_law_stays_around_the_middle() {
        let counts = counts(&Distribution::Normal(10.0, None));
        let middle: usize = counts[400..600].iter().sum();
        let share = middle as f64 / DRAWS as f64;
        assert!((share - 0.6827).abs() < 0.01, "{share}");
    }

    #[test]
    fn a_centre_moves_the_blocks_that_are_drawn_most() {
        let normal = counts(&Distribution::Normal(10.0, Some(0.25)));
        let around: usize = normal[150..350].iter().sum();
        assert!(
            (around as f64 / DRAWS as f64 - 0.6827).abs() < 0.01,
            "{around}"
        );
        let zipf = |center| counts(&Distribution::Zipf(1.2, center));
        let (unmoved, moved) = (zipf(None), zipf(Some(0.25)));
        let moved_back: Vec<usize> = moved[250..].iter().chain(&moved[..250]).copied().collect();
        assert_eq!(moved_back, unmoved);
    }

    #[test]
    fn zones_get_what_they_were_given() {
        let zones = vec![(60.0, 10.0), (30.0, 20.0), (10.0, 70.0)];
        let counts = counts(&Distribution::Zoned(zones));
        let share = |range: std::ops::Range<usize>| {
            counts[range].iter().sum::<usize>() as f64 / DRAWS as f64
        };
        assert!((share(0..100) - 0.6).abs() < 0.01);
        assert!((share(100..300) - 0.3).abs() < 0.01);
        assert!((share(300..1000) - 0.1).abs() < 0.01);
    }

    #[test]
    fn the_even_spread_is_even_and_one_block_is_always_itself() {
        let counts = counts(&Distribution::Uniform);
        assert!(counts.iter().all(|count| (100..300).contains(count)));
        let mut random = fastrand::Rng::with_seed(1);
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipf(1.1, None),
            Distribution::Pareto(0.2, None),
            Distribution::Normal(20.0, None),
            Distribution::Zoned(vec![(100.0, 100.0)]),
        ] {
            assert_eq!(Spread::new(&distribution, 1).draw(&mut random, 1), 0);
        }
    }
}
