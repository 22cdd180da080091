//! The choice of states.
//!
//! Before each barrier, and at the end, some writes are volatile. Each subset of them may be lost.
//! Where there are few, all subsets are tried; where there are many, a sample by a seed: nothing
//! lost, everything lost, a few lost or kept near the ends, the first ones, the last ones, halves.
//! The rest of a share goes to torn writes.

use crate::error::CrashError;
use crate::log::LogReader;
use crate::state::{CrashState, Tear};
use crate::tracker::{Change, Tracker};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use ugeom_classes::draws::draw;
use ugeom_format::crash_log::Entry;

/// How many states to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// At each barrier all subsets of up to six volatile writes, and 64 of more.
    All,
    /// About so many, spread over all barriers.
    Count(u64),
}

/// How many states a barrier can have before others have had as many.
const STATES_MAX: u64 = 64;
/// The largest number of subsets that are counted out.
const SUBSETS_MAX_BITS: usize = 16;

/// How a campaign derives states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Derivation {
    pub points: Points,
    pub seed: u64,
    pub tear_bytes: u64,
    pub cache_bytes: u64,
    /// Crashes begin at the mark in the log, not with its first record.
    pub from_mark: bool,
}

impl Derivation {
    /// Calls `with` for each state, in the order of the log, until it answers false.
    pub fn each(
        &self,
        log: &Path,
        mut with: impl FnMut(CrashState) -> bool,
    ) -> Result<(), CrashError> {
        let mut total = 0_u64;
        let count = |changes: &[Change]| weight(changes.len()) + tears(changes, self.tear_bytes);
        if matches!(self.points, Points::Count(_)) {
            self.windows(log, |_, changes| {
                total = total.saturating_add(count(changes));
                true
            })?;
        }
        let mut before = 0_u64;
        self.windows(log, |cut, changes| {
            let share = match self.points {
                Points::All => count(changes),
                Points::Count(states) => {
                    let part =
                        |sum: u64| u128::from(sum) * u128::from(states) / total.max(1) as u128;
                    let after = before.saturating_add(count(changes));
                    let share = part(after) - part(before);
                    before = after;
                    share as u64
                }
            };
            self.window(cut, changes, share, &mut with)
        })
    }

    /// Calls `with` before each barrier after which something is promised or written, and at the
    /// end: the record before it, and the volatile changes.
    fn windows(
        &self,
        log: &Path,
        mut with: impl FnMut(u64, &[Change]) -> bool,
    ) -> Result<(), CrashError> {
        let mut log = LogReader::open(log)?;
        let mut tracker = Tracker::new(self.cache_bytes);
        let (mut begun, mut news, mut last) = (!self.from_mark, false, 0);
        let mut changes = Vec::new();
        while let Some(entry) = log.next()? {
            if begun && news && Tracker::is_barrier(&entry.record) {
                changes.clear();
                changes.extend(tracker.volatile().copied());
                if !with(last, &changes) {
                    return Ok(());
                }
                news = false;
            }
            begun |= entry.record.entry == Entry::Begin;
            news |= !Tracker::is_barrier(&entry.record) || entry.record.entry == Entry::Begin;
            tracker.feed(&entry, || log.data(&entry), |_| Ok(()))?;
            last = entry.number;
        }
        if begun {
            changes.clear();
            changes.extend(tracker.volatile().copied());
            with(last, &changes);
        }
        Ok(())
    }

    /// The states of one cut: `share` of them at the most, none twice.
    fn window(
        &self,
        cut: u64,
        changes: &[Change],
        share: u64,
        with: &mut impl FnMut(CrashState) -> bool,
    ) -> bool {
        // Hashes, since a state may name thousands of writes. One that has the hash of another is
        // left out, which a sample may.
        let mut seen = HashSet::new();
        for index in 0..share {
            let state = self.state(cut, changes, share, index);
            let mut hasher = DefaultHasher::new();
            state.hash(&mut hasher);
            if seen.insert(hasher.finish()) && !with(state) {
                return false;
            }
        }
        true
    }

    fn state(&self, cut: u64, changes: &[Change], share: u64, index: u64) -> CrashState {
        let mut state = CrashState {
            cut,
            ..CrashState::default()
        };
        let few = changes.len() <= SUBSETS_MAX_BITS && 1 << changes.len() <= share;
        if few && index < 1 << changes.len() {
            let bits = changes.iter().enumerate();
            let lost = bits.filter(|(bit, _)| index >> bit & 1 == 1);
            state.lost = lost.map(|(_, change)| change.number).collect();
            return state;
        }
        let mut random = Draws {
            seed: draw(self.seed, cut),
            number: index << 8,
        };
        if changes.is_empty() {
            return state;
        }
        let lost = match index {
            // All subsets have been counted out: a torn write, and at times others lost beside it.
            _ if few => Choice::scarcely(changes.len(), &mut random),
            0 => Choice::Range(0, changes.len()),
            1 => Choice::Range(0, 0),
            _ => Choice::draw(changes.len(), &mut random),
        };
        let numbers = changes.iter().enumerate();
        let lost = numbers.filter(|(at, _)| lost.takes(*at));
        state.lost = lost.map(|(_, change)| change.number).collect();
        if few || (index > 1 && random.below(3) == 0) {
            self.tear(&mut state, changes, &mut random);
        }
        state
    }

    /// Tears one of the writes that are not lost, if one has several pieces.
    fn tear(&self, state: &mut CrashState, changes: &[Change], random: &mut Draws) {
        let pieces = |change: &Change| {
            let length = change.record.range().map_or(0, |(_, length)| length);
            length.div_ceil(self.tear_bytes)
        };
        let whole = |change: &&Change| !state.lost.contains(&change.number) && pieces(change) > 1;
        let candidates: Vec<&Change> = changes.iter().filter(whole).collect();
        if candidates.is_empty() {
            return;
        }
        let torn = candidates[random.below(candidates.len() as u64) as usize];
        let count = 1 + random.below(pieces(torn) - 1) as u32;
        let tear = match random.below(3) {
            0 => Tear::First(count),
            1 => Tear::Last(count),
            _ => Tear::Mixed(random.next() as u32),
        };
        state.torn.insert(torn.number, tear);
    }
}

/// How much of all states a cut with so many volatile writes gets.
fn weight(changes: usize) -> u64 {
    if changes >= STATES_MAX.ilog2() as usize {
        STATES_MAX
    } else {
        1 << changes
    }
}

/// How many states more a cut gets for writes that can tear.
fn tears(changes: &[Change], tear_bytes: u64) -> u64 {
    let long = |change: &&Change| {
        let range = change.record.range();
        range.is_some_and(|(_, length)| length > tear_bytes)
    };
    4 * changes.iter().filter(long).count().min(4) as u64
}

/// Random values of one state.
struct Draws {
    seed: u64,
    number: u64,
}

impl Draws {
    fn next(&mut self) -> u64 {
        self.number += 1;
        draw(self.seed, self.number)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// 1, 2, 3, ... with halving probability.
    fn few(&mut self) -> usize {
        1 + self.next().trailing_ones().min(7) as usize
    }
}

/// The choice of lost volatile writes.
enum Choice {
    /// Those from the first to before the second.
    Range(usize, usize),
    Those(BTreeSet<usize>),
    AllBut(BTreeSet<usize>),
}

impl Choice {
    fn draw(count: usize, random: &mut Draws) -> Self {
        match random.below(8) {
            0..=2 => Self::Those(near_an_end(count, random)),
            3 => Self::AllBut(near_an_end(count, random)),
            4 | 5 => Self::Range(random.below(count as u64) as usize, count),
            6 => Self::Range(0, random.below(count as u64) as usize),
            _ => Self::Those((0..count).filter(|_| random.below(2) == 0).collect()),
        }
    }

    /// Each with a probability of 1/4, but half of the times none.
    fn scarcely(count: usize, random: &mut Draws) -> Self {
        if random.below(2) == 0 {
            return Self::Range(0, 0);
        }
        Self::Those((0..count).filter(|_| random.below(4) == 0).collect())
    }

    fn takes(&self, at: usize) -> bool {
        match self {
            Self::Range(start, end) => (*start..*end).contains(&at),
            Self::Those(those) => those.contains(&at),
            Self::AllBut(those) => !those.contains(&at),
        }
    }
}

/// A few writes, most of them near the first or the last.
fn near_an_end(count: usize, random: &mut Draws) -> BTreeSet<usize> {
    let picks = random.few();
    let pick = |random: &mut Draws| {
        let step = random.few() - 1;
        match random.below(3) {
            0 => step.min(count - 1),
            1 => count - 1 - step.min(count - 1),
            _ => random.below(count as u64) as usize,
        }
    };
    (0..picks).map(|_| pick(random)).collect()
}
