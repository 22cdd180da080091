//! The blocks of all threads: their places, their sums, and the places that count for several
//! consumers at once.

use super::{CounterBlock, Totals, new_block};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The blocks of all threads, and the sums of those that ended.
#[derive(Default)]
pub(crate) struct Registry {
    blocks: Vec<Arc<CounterBlock>>,
    ended: Vec<Totals>,
    /// Places that count for a run of layers ([`crate::shift`]), and the places of its consumers.
    runs: BTreeMap<u32, Box<[u32]>>,
    /// The runs that each consumer's place is in.
    runs_of: HashMap<u32, Vec<u32>>,
}

impl Registry {
    /// A block for a new thread.
    pub(crate) fn join(&mut self, edges: usize) -> Arc<CounterBlock> {
        let block = new_block(edges);
        self.blocks.push(Arc::clone(&block));
        block
    }

    /// Takes a thread's block back and keeps its sums.
    pub(crate) fn leave(&mut self, block: &Arc<CounterBlock>) {
        self.blocks.retain(|known| !Arc::ptr_eq(known, block));
        if self.ended.len() < block.len() {
            self.ended.resize_with(block.len(), Totals::default);
        }
        for (totals, counters) in self.ended.iter_mut().zip(block.iter()) {
            counters.add_to(totals);
        }
    }

    /// The place that counts for all these consumers at once: the one that they have, or else one
    /// that `take` gives.
    pub(crate) fn run_place(&mut self, members: &[u32], take: impl FnOnce() -> u32) -> u32 {
        let known = members.first().and_then(|first| self.runs_of.get(first));
        let mut known = known.into_iter().flatten();
        let same = |place: &&u32| self.runs.get(place).is_some_and(|it| **it == *members);
        if let Some(&place) = known.find(same) {
            return place;
        }
        let place = take();
        self.runs.insert(place, members.into());
        for member in members {
            self.runs_of.entry(*member).or_default().push(place);
        }
        place
    }

    /// Ends the life of a consumer's place: its sums, and the places that may be used again.
    pub(crate) fn retire(&mut self, stat: u32) -> (Totals, Vec<u32>) {
        let totals = self.totals(stat);
        if totals.in_flight() > 0 {
            // A thread still counts there.
            return (totals, Vec::new());
        }
        let mut free = self.runs_of.remove(&stat).unwrap_or_default();
        for &place in &free {
            self.dissolve(place, stat);
        }
        free.push(stat);
        for &place in &free {
            self.clear(place);
        }
        (totals, free)
    }

    /// Adds the sums of a run to those of each of its consumers but `gone`.
    fn dissolve(&mut self, run: u32, gone: u32) {
        let sums = self.own_totals(run);
        let members = self.runs.remove(&run).unwrap_or_default();
        for member in members.into_iter().filter(|member| *member != gone) {
            if let Some(runs) = self.runs_of.get_mut(&member) {
                runs.retain(|known| *known != run);
            }
            self.ended_at(member).add(&sums);
        }
    }

    fn clear(&mut self, place: u32) {
        let index = place as usize;
        for counters in self.blocks.iter().filter_map(|block| block.get(index)) {
            counters.clear();
        }
        *self.ended_at(place) = Totals::default();
    }

    fn ended_at(&mut self, place: u32) -> &mut Totals {
        let index = place as usize;
        if self.ended.len() <= index {
            self.ended.resize_with(index + 1, Totals::default);
        }
        &mut self.ended[index]
    }

    /// Replaces a thread's block by a larger one with the same figures. Called by its owner, so
    /// no thread counts meanwhile.
    pub(crate) fn grow(&mut self, block: &mut Arc<CounterBlock>, edges: usize) {
        if block.len() >= edges && self.blocks.iter().any(|known| Arc::ptr_eq(known, block)) {
            return;
        }
        self.leave(block);
        *block = self.join(edges.next_power_of_two());
    }

    /// The sums of the consumer that counts at `stat`, the runs that it is in included.
    pub(crate) fn totals(&self, stat: u32) -> Totals {
        let mut totals = self.own_totals(stat);
        for run in self.runs_of.get(&stat).into_iter().flatten() {
            totals.add(&self.own_totals(*run));
        }
        totals
    }

    /// The counts at this very place.
    fn own_totals(&self, place: u32) -> Totals {
        let mut totals = self.ended.get(place as usize).cloned().unwrap_or_default();
        for block in &self.blocks {
            if let Some(counters) = block.get(place as usize) {
                counters.add_to(&mut totals);
            }
        }
        totals
    }
}
