//! From a failing state to the smallest: the fewest writes that are lost or torn, then the earliest
//! cut. Every step is tried with the check, and kept when the state still fails.

use crate::campaign::{Ask, CampaignSettings, numbers};
use crate::check::Check;
use crate::error::CrashError;
use crate::promise::Judgement;
use crate::state::CrashState;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

pub(crate) struct Shrink<'a, C: Check> {
    ask: Ask<'a, C>,
    state: CrashState,
    judgement: Judgement,
    checks: u64,
    /// Surviving states, so that no state is checked twice.
    survived: HashSet<CrashState>,
    settings: &'a CampaignSettings,
}

impl<'a, C: Check> Shrink<'a, C> {
    pub fn new(
        ask: Ask<'a, C>,
        state: CrashState,
        judgement: Judgement,
        settings: &'a CampaignSettings,
    ) -> Self {
        Self {
            ask,
            state,
            judgement,
            checks: 0,
            survived: HashSet::new(),
            settings,
        }
    }

    pub fn into_parts(self) -> (Ask<'a, C>, CrashState, Judgement, u64) {
        (self.ask, self.state, self.judgement, self.checks)
    }

    /// Shrinks until no step helps, or the checks are used up.
    pub fn run(&mut self) -> Result<(), CrashError> {
        loop {
            let before = (self.state.damage(), self.state.cut);
            self.fewer()?;
            self.earlier()?;
            let after = (self.state.damage(), self.state.cut);
            if after == before || self.is_over() {
                return Ok(());
            }
        }
    }

    /// The checks are used up, or the user wants the end.
    fn is_over(&self) -> bool {
        self.checks >= self.settings.shrink_checks || self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.settings.stop.load(Ordering::Relaxed)
    }

    /// Takes a state over if it fails, too.
    fn attempt(&mut self, state: CrashState) -> Result<bool, CrashError> {
        if self.is_over() || self.survived.contains(&state) {
            return Ok(false);
        }
        self.checks += 1;
        // A check that was ended with the campaign says nothing.
        match self.ask.judge(&state)?.filter(|_| !self.is_stopped()) {
            Some(judgement) => {
                (self.state, self.judgement) = (state, judgement);
                Ok(true)
            }
            None => {
                self.survived.insert(state);
                Ok(false)
            }
        }
    }

    /// Delta debugging (Zeller, Hildebrandt, "Simplifying and isolating failure-inducing input",
    /// 2002) over the writes that are lost or torn: halves first, then smaller pieces.
    fn fewer(&mut self) -> Result<(), CrashError> {
        // Nothing lost at all is the best that can be.
        let clean = CrashState {
            cut: self.state.cut,
            ..CrashState::default()
        };
        if self.state.damage() > 0 && self.attempt(clean)? {
            return Ok(());
        }
        let mut piece = self.state.damage().div_ceil(2);
        while piece > 0 {
            let damaged = self.damaged();
            let mut helped = false;
            for chunk in damaged.chunks(piece) {
                let mut state = self.state.clone();
                for number in chunk {
                    state.lost.remove(number);
                    state.torn.remove(number);
                }
                if state.damage() < self.state.damage() && self.attempt(state)? {
                    helped = true;
                }
            }
            if !helped || piece > self.state.damage() {
                piece /= 2;
            }
            if self.state.damage() <= 1 || self.is_over() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn damaged(&self) -> Vec<u64> {
        let state = &self.state;
        let mut all: Vec<u64> = state
            .lost
            .iter()
            .chain(state.torn.keys())
            .copied()
            .collect();
        all.sort_unstable();
        all
    }

    /// The earliest cut at which the state still fails. Writes behind a cut were never made, so
    /// they do not count as lost.
    fn earlier(&mut self) -> Result<(), CrashError> {
        self.ask.lane.build(&self.state)?;
        let volatile = numbers(self.ask.lane.volatile());
        let first = volatile.first().copied().unwrap_or(self.state.cut);
        let least = first.saturating_sub(1).min(self.state.cut);
        let mut low = least;
        // A failure often stays from some record on, so halving comes first, single steps after.
        while low < self.state.cut && !self.is_over() {
            let middle = low + (self.state.cut - low) / 2;
            if !self.attempt(self.cut_at(middle))? {
                low = middle + 1;
            }
        }
        for _ in 0..STEPS {
            let now = self.state.cut;
            let earlier = now.saturating_sub(1);
            if earlier < least || earlier == now || !self.attempt(self.cut_at(earlier))? {
                break;
            }
        }
        Ok(())
    }

    fn cut_at(&self, cut: u64) -> CrashState {
        let mut state = self.state.clone();
        state.cut = cut;
        state.lost.retain(|number| *number <= cut);
        state.torn.retain(|number, _| *number <= cut);
        state
    }
}

/// How many single steps towards an earlier cut are tried.
const STEPS: usize = 8;
