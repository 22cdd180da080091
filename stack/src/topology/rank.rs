//! Attaching and detaching, with GEOM's rank: a geom stands above everything it consumes, and a
//! circle is refused.

use super::{ConsumerId, ConsumerObject, GeomId, ProviderId, Topology};
use crate::access::Counts;
use crate::bio::slot::MAX_DEPTH;
use crate::class::Geom;
use crate::error::StackError;
use std::sync::Arc;

impl Topology {
    /// Makes a consumer of `geom` and attaches it to `provider`.
    ///
    /// # Errors
    /// `Loop` when the provider stands on this geom already (ELOOP), `TooDeep` when a bio's path
    /// would be too short, and when either does not exist.
    pub(crate) fn attach(
        &mut self,
        geom: GeomId,
        provider: ProviderId,
    ) -> Result<ConsumerId, StackError> {
        let below = self.provider(provider)?.geom;
        let names = || -> Result<(String, String), StackError> {
            Ok((
                self.geom(geom)?.name.clone(),
                self.provider(provider)?.name.clone(),
            ))
        };
        if self.stands_on(below, geom) {
            let (geom, provider) = names()?;
            return Err(StackError::Loop { geom, provider });
        }
        let depth_below = self.depth_below(below);
        if depth_below + 1 + self.depth_above(geom) > MAX_DEPTH {
            let (geom, provider) = names()?;
            return Err(StackError::TooDeep {
                geom,
                provider,
                limit: MAX_DEPTH,
            });
        }
        let own_io = self.geom(geom)?.methods.does_own_io();
        let own_entry = own_io.then(|| self.new_entry());
        let mark = self.geom(below)?.losses.new_mark();
        let id = ConsumerId(self.next());
        let consumer = ConsumerObject {
            geom,
            provider: Some(provider),
            counts: Counts::default(),
            spoiled: false,
            orphan: false,
            stat: self.take_stat(),
            entry: None,
            own_entry,
            mark,
        };
        self.consumers.insert(id, consumer);
        if let Some(object) = self.geoms.get_mut(&geom) {
            object.consumers.push(id);
        }
        if let Some(object) = self.providers.get_mut(&provider) {
            object.consumers.push(id);
        }
        self.rank_again(geom);
        Ok(id)
    }

    /// Takes a consumer off its provider. Its counts must be zero.
    pub(crate) fn detach(&mut self, consumer: ConsumerId) -> Result<(), StackError> {
        let Some(object) = self.consumers.get_mut(&consumer) else { return Ok(()) };
        if object.counts != Counts::default() {
            let counts = object.counts.to_string();
            return Err(StackError::Busy(
                "a consumer".into(),
                format!("still open {counts}"),
            ));
        }
        let geom = object.geom;
        if let Some(provider) = object.provider.take()
            && let Some(provider) = self.providers.get_mut(&provider)
        {
            provider.consumers.retain(|id| *id != consumer);
        }
        self.rank_again(geom);
        Ok(())
    }

    /// True when `geom` is `other` or consumes, directly or not, something of `other`'s.
    fn stands_on(&self, geom: GeomId, other: GeomId) -> bool {
        geom == other
            || self
                .geoms_below(geom)
                .into_iter()
                .any(|next| self.stands_on(next, other))
    }

    fn geoms_below(&self, geom: GeomId) -> Vec<GeomId> {
        let consumers = self
            .geoms
            .get(&geom)
            .map_or(&[][..], |geom| &geom.consumers);
        let provider = |id: &ConsumerId| self.consumers.get(id)?.provider;
        let below = consumers.iter().filter_map(provider);
        below
            .filter_map(|id| Some(self.providers.get(&id)?.geom))
            .collect()
    }

    fn geoms_above(&self, geom: GeomId) -> Vec<GeomId> {
        let providers = self
            .geoms
            .get(&geom)
            .map_or(&[][..], |geom| &geom.providers);
        let consumers = providers
            .iter()
            .filter_map(|id| Some(&self.providers.get(id)?.consumers));
        consumers
            .flatten()
            .filter_map(|id| Some(self.consumers.get(id)?.geom))
            .collect()
    }

    /// The methods of a geom and of all that stand on it, from the top down.
    pub(crate) fn with_those_above(&self, geom: GeomId) -> Vec<Arc<dyn Geom>> {
        let mut all = vec![geom];
        let mut next = 0;
        while let Some(geom) = all.get(next).copied() {
            for above in self.geoms_above(geom) {
                if !all.contains(&above) {
                    all.push(above);
                }
            }
            next += 1;
        }
        self.highest_first(all)
    }

    /// The methods of geoms, the highest first.
    pub(super) fn highest_first(&self, geoms: Vec<GeomId>) -> Vec<Arc<dyn Geom>> {
        let mut geoms: Vec<_> = geoms.iter().filter_map(|id| self.geoms.get(id)).collect();
        geoms.sort_by_key(|geom| std::cmp::Reverse(geom.rank));
        let methods = geoms.into_iter().map(|geom| Arc::clone(&geom.methods));
        methods.collect()
    }

    /// Consumers on the longest way from `geom` down to the bottom.
    fn depth_below(&self, geom: GeomId) -> usize {
        let below = self.geoms_below(geom).into_iter();
        below
            .map(|next| 1 + self.depth_below(next))
            .max()
            .unwrap_or(0)
    }

    /// Consumers on the longest way from the top down to `geom`.
    fn depth_above(&self, geom: GeomId) -> usize {
        let above = self.geoms_above(geom).into_iter();
        above
            .map(|next| 1 + self.depth_above(next))
            .max()
            .unwrap_or(0)
    }

    /// GEOM's `redo_rank`: 1 without attached consumers, else one more than the highest below.
    fn rank_again(&mut self, geom: GeomId) {
        let highest = self
            .geoms_below(geom)
            .into_iter()
            .filter_map(|id| self.geoms.get(&id));
        let rank = highest.map(|below| below.rank + 1).max().unwrap_or(1);
        let Some(object) = self.geoms.get_mut(&geom) else { return };
        if object.rank != rank {
            object.rank = rank;
            for above in self.geoms_above(geom) {
                self.rank_again(above);
            }
        }
    }
}
