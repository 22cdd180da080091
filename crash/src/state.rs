//! One state that a crash could have left, and the text that names it exactly:
//! `cut=120,lost=97+103-110,torn=112:first3`.

use crate::error::CrashError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use ugeom_classes::draws::draw;

/// The pieces of a torn write that reached the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tear {
    /// The first so many.
    First(u32),
    /// The last so many.
    Last(u32),
    /// Each or not, by the bits of this seed.
    Mixed(u32),
}

impl Tear {
    /// Whether the piece with that number, of so many, reached the media.
    pub fn keeps(self, piece: u64, pieces: u64) -> bool {
        match self {
            Self::First(count) => piece < u64::from(count),
            Self::Last(count) => piece + u64::from(count) >= pieces,
            Self::Mixed(seed) => draw(u64::from(seed), piece) & 1 == 1,
        }
    }
}

/// A state: the power went after the record `cut`; of the writes that were volatile then, these
/// were lost or torn, and all others are on the media.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrashState {
    /// The number of the last record before the cut.
    pub cut: u64,
    /// The numbers of the writes that are lost.
    pub lost: BTreeSet<u64>,
    /// The writes that are there in part.
    pub torn: BTreeMap<u64, Tear>,
}

impl CrashState {
    /// How many writes are not there as they were written.
    pub fn damage(&self) -> usize {
        self.lost.len() + self.torn.len()
    }
}

impl fmt::Display for CrashState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut={}", self.cut)?;
        let mut separator = ",lost=";
        let mut numbers = self.lost.iter().copied().peekable();
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = "+";
        }
        let mut separator = ",torn=";
        for (number, tear) in &self.torn {
            let (word, count) = match tear {
                Tear::First(count) => ("first", count),
                Tear::Last(count) => ("last", count),
                Tear::Mixed(seed) => ("mixed", seed),
            };
            write!(f, "{separator}{number}:{word}{count}")?;
            separator = "+";
        }
        Ok(())
    }
}

/// A state as a user may name it: `lost=all` stands for all that was volatile at the cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedState {
    /// The state; without its lost writes where all are.
    pub state: CrashState,
    /// Everything that was volatile is lost, as in a replay of dm-log-writes.
    pub all_lost: bool,
}

impl From<CrashState> for NamedState {
    fn from(state: CrashState) -> Self {
        Self {
            state,
            all_lost: false,
        }
    }
}

impl FromStr for NamedState {
    type Err = CrashError;

    fn from_str(text: &str) -> Result<Self, CrashError> {
        let words = text.split(',');
        let (all, others): (Vec<&str>, Vec<&str>) = words.partition(|word| *word == "lost=all");
        let (state, all_lost): (CrashState, _) = (others.join(",").parse()?, !all.is_empty());
        if all_lost && state.damage() > 0 {
            return Err(CrashError::State {
                text: text.to_owned(),
                problem: "with lost=all no other write is lost or torn".to_owned(),
            });
        }
        Ok(Self { state, all_lost })
    }
}

/// The most writes that the text of a state may name.
const NAMED_MAX: u64 = 1 << 20;

impl FromStr for CrashState {
    type Err = CrashError;

    fn from_str(text: &str) -> Result<Self, CrashError> {
        let mut state = Self::default();
        let wrong = |problem: &str| CrashError::State {
            text: text.to_owned(),
            problem: problem.to_owned(),
        };
        let number = |word: &str| {
            word.parse::<u64>()
                .map_err(|_| wrong("a number is missing"))
        };
        let mut cut = None;
        for part in text.split(',') {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| wrong("write cut=N,..."))?;
            match key {
                "cut" => cut = Some(number(value)?),
                "lost" => {
                    for range in value.split('+') {
                        let (first, last) = range.split_once('-').unwrap_or((range, range));
                        let (first, last) = (number(first)?, number(last)?);
                        if last < first || last - first >= NAMED_MAX {
                            return Err(wrong("a range of lost writes is empty or too long"));
                        }
                        state.lost.extend(first..=last);
                    }
                }
                "torn" => {
                    for one in value.split('+') {
                        let (write, how) = one.split_once(':').unwrap_or((one, ""));
                        let split = how.find(|c: char| c.is_ascii_digit()).unwrap_or(how.len());
                        let (word, count) = how.split_at(split);
                        let count = count.parse().map_err(|_| wrong("a count is missing"))?;
                        let tear = match word {
                            "first" => Tear::First(count),
                            "last" => Tear::Last(count),
                            "mixed" => Tear::Mixed(count),
                            _ => return Err(wrong("writes tear as firstN, lastN or mixedN")),
                        };
                        state.torn.insert(number(write)?, tear);
                    }
                }
                _ => return Err(wrong("the parts are cut=, lost= and torn=")),
            }
        }
        state.cut = cut.ok_or_else(|| wrong("cut=N is missing"))?;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tears() -> impl Strategy<Value = Tear> {
        (0..3, 0..9999_u32).prop_map(|(kind, count)| match kind {
            0 => Tear::First(count),
            1 => Tear::Last(count),
            _ => Tear::Mixed(count),
        })
    }

    proptest! {
        #[test]
        fn a_state_reads_as_it_is_written(
            cut in any::<u64>(),
            lost in prop::collection::btree_set(0..40_u64, 0..20),
            torn in prop::collection::btree_map(any::<u64>(), tears(), 0..4),
        ) {
            let state = CrashState { cut, lost, torn };
            let text = state.to_string();
            prop_assert_eq!(text.parse::<CrashState>().expect("reads"), state, "{}", text);
        }

        #[test]
        fn no_text_of_a_state_panics(text in "[a-z0-9=,+:-]{0,40}") {
            let _ = text.parse::<CrashState>();
        }
    }

    #[test]
    fn a_state_names_ranges() {
        let state = CrashState {
            cut: 120,
            lost: [97, 103, 104, 105].into(),
            torn: [(112, Tear::First(3))].into(),
        };
        assert_eq!(state.to_string(), "cut=120,lost=97+103-105,torn=112:first3");
    }

    #[test]
    fn all_may_be_lost() {
        let named: NamedState = "cut=7,lost=all".parse().expect("reads");
        assert!(named.all_lost && named.state.cut == 7 && named.state.damage() == 0);
        let named: NamedState = "cut=7,lost=3".parse().expect("reads");
        assert!(!named.all_lost && named.state.damage() == 1);
        for text in ["cut=7,lost=all,torn=5:first1", "lost=all"] {
            assert!(text.parse::<NamedState>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_text_is_explained() {
        for (text, problem) in [
            ("lost=1", "cut=N is missing"),
            ("cut=1,lost=5-3", "empty or too long"),
            ("cut=1,lost=0-99999999999", "empty or too long"),
            ("cut=1,torn=1:half", "a count is missing"),
            ("cut=1,torn=1:half3", "firstN, lastN or mixedN"),
            ("cut=1,kept=3", "cut=, lost= and torn="),
        ] {
            let error = text.parse::<CrashState>().expect_err("it is wrong");
            assert!(error.to_string().contains(problem), "{text}: {error}");
        }
    }
}
