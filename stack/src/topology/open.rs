//! Changing access counts through the layers: all of it, or nothing.

use super::{ConsumerId, Event, GeomObject, ProviderId, Topology};
use crate::access::{self, Counts, Delta, Situation};
use crate::class::{AccessChange, Geom};
use crate::error::{Errno, StackError};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Topology {
    /// `g_access`: changes the counts of a consumer, of its provider, and of everything below that
    /// the geoms on the way ask for.
    ///
    /// # Errors
    /// The rule that forbids it; nothing is changed then.
    pub(crate) fn access(&mut self, consumer: ConsumerId, delta: Delta) -> Result<(), StackError> {
        let mut done = Vec::new();
        let result = self.access_below(consumer, delta, &mut done);
        if result.is_err() {
            for (consumer, delta) in done.into_iter().rev() {
                self.add(consumer, delta.reversed());
            }
            return result;
        }
        for (consumer, delta) in done {
            self.follow_up(consumer, delta);
        }
        Ok(())
    }

    fn access_below(
        &mut self,
        consumer: ConsumerId,
        delta: Delta,
        done: &mut Vec<(ConsumerId, Delta)>,
    ) -> Result<(), StackError> {
        let missing = || StackError::Invalid("the consumer is not attached".into());
        let object = self.consumers.get(&consumer).ok_or_else(missing)?;
        let provider_id = object.provider.ok_or_else(missing)?;
        let provider = self.provider(provider_id)?;
        let situation = Situation {
            provider: provider.counts,
            consumer: object.counts,
            spoiled: object.spoiled,
            error: provider.error,
        };
        let refused = |errno: Errno, reason: &str| StackError::Access {
            provider: provider.name.clone(),
            wanted: delta.to_string(),
            reason: reason.to_owned(),
            errno,
        };
        access::check(&situation, delta).map_err(|(errno, reason)| refused(errno, reason))?;
        let geom = self.geom(provider.geom)?;
        let (providers, consumers) = (self.provider_counts(geom), self.consumer_counts(geom));
        let methods = Arc::clone(&geom.methods);
        let below = geom.consumers.clone();
        let change = AccessChange {
            port: provider.port,
            delta,
            providers: &providers,
            consumers: &consumers,
        };
        let deltas = match methods.access(&change) {
            Ok(deltas) => deltas,
            // GEOM: a pure close must not fail.
            Err(_) if delta.only_closes() => vec![delta; below.len()],
            Err(errno) => return Err(refused(errno, "its geom does not allow it")),
        };
        for (id, delta) in below.into_iter().zip(deltas) {
            let attached = self
                .consumers
                .get(&id)
                .is_some_and(|c| c.provider.is_some());
            if attached && delta != Delta::default() {
                self.access_below(id, delta, done)?;
            }
        }
        self.add(consumer, delta);
        done.push((consumer, delta));
        Ok(())
    }

    /// The geoms with a provider whose last writer leaves when a consumer's counts change so, from
    /// the top down. Nothing is changed.
    pub(crate) fn losing_writers(&self, consumer: ConsumerId, delta: Delta) -> Vec<Arc<dyn Geom>> {
        let mut changes = BTreeMap::new();
        self.sum_writers(consumer, delta, &mut changes);
        let lost = |(id, change): (&ProviderId, &i64)| {
            let provider = self.providers.get(id)?;
            let last = *change < 0 && i64::from(provider.counts.write) + change <= 0;
            last.then_some(provider.geom)
        };
        let mut geoms: Vec<_> = changes.iter().filter_map(lost).collect();
        geoms.sort_unstable();
        geoms.dedup();
        self.highest_first(geoms)
    }

    /// Adds up how the writers of each provider would change: a provider may be reached in several
    /// ways.
    fn sum_writers(
        &self,
        consumer: ConsumerId,
        delta: Delta,
        changes: &mut BTreeMap<ProviderId, i64>,
    ) {
        let provider = self.consumers.get(&consumer).and_then(|c| c.provider);
        let Some((id, provider)) = provider.and_then(|id| Some((id, self.providers.get(&id)?)))
        else {
            return;
        };
        let Some(geom) = self.geoms.get(&provider.geom) else { return };
        if delta.write == 0 {
            return;
        }
        *changes.entry(id).or_default() += i64::from(delta.write);
        let (providers, consumers) = (self.provider_counts(geom), self.consumer_counts(geom));
        let change = AccessChange {
            port: provider.port,
            delta,
            providers: &providers,
            consumers: &consumers,
        };
        let below = geom.methods.access(&change);
        let below = below.unwrap_or_else(|_| vec![delta; geom.consumers.len()]);
        for (id, delta) in geom.consumers.iter().zip(below) {
            self.sum_writers(*id, delta, changes);
        }
    }

    fn consumer_counts(&self, geom: &GeomObject) -> Vec<Counts> {
        let counts = |id| {
            self.consumers
                .get(id)
                .map_or(Counts::default(), |c| c.counts)
        };
        geom.consumers.iter().map(counts).collect()
    }

    fn provider_counts(&self, geom: &GeomObject) -> Vec<Counts> {
        let counts = |id| {
            self.providers
                .get(id)
                .map_or(Counts::default(), |p| p.counts)
        };
        geom.providers.iter().map(counts).collect()
    }

    fn add(&mut self, consumer: ConsumerId, delta: Delta) {
        let Some(object) = self.consumers.get_mut(&consumer) else { return };
        object.counts = object.counts.after(delta).unwrap_or_default();
        if let Some(provider) = object.provider.and_then(|id| self.providers.get_mut(&id)) {
            provider.counts = provider.counts.after(delta).unwrap_or_default();
        }
    }

    /// The first writer spoils the others; when the last one leaves, all classes taste again.
    fn follow_up(&mut self, consumer: ConsumerId, delta: Delta) {
        let Some(id) = self
            .consumers
            .get(&consumer)
            .and_then(|object| object.provider)
        else {
            return;
        };
        let Some(provider) = self.providers.get(&id) else { return };
        let withers = self
            .geoms
            .get(&provider.geom)
            .is_none_or(|geom| geom.wither);
        let writers = i64::from(provider.counts.write);
        if delta.write > 0 && writers == i64::from(delta.write) {
            self.events.push_back(Event::Spoil {
                provider: id,
                writer: consumer,
            });
        }
        if delta.write < 0 && writers == 0 && provider.error.is_none() && !withers {
            self.events.push_back(Event::Taste(id));
        }
    }
}
