//! Looking at a stack while it works: all figures of one moment, and how much is counted from now
//! on.
//!
//! Threads that move requests are not asked and not stopped: they count in blocks of their own,
//! which a look reads and sums up. It holds the lock of the topology meanwhile, so that no consumer
//! comes or goes between two figures; a thread waits for that only when it takes a new snapshot.

use crate::stack::Stack;
use crate::statistics::{Statistics, TimeTotals, Totals};
use crate::topology::{ConsumerId, ProviderId, Tree};
use std::collections::HashMap;

/// A stack at one moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Classes, geoms, consumers and providers, as values.
    pub tree: Tree,
    /// The figures of each provider: the sums over its consumers, those that are gone included.
    pub providers: HashMap<ProviderId, Totals>,
    /// The figures of each consumer.
    pub consumers: HashMap<ConsumerId, ConsumerFigures>,
}

/// The figures of one consumer. There may be thousands (each opened handle is one), so its times
/// are sums instead of histograms.
#[derive(Clone, Debug, Default)]
pub struct ConsumerFigures {
    /// Its counts; without times.
    pub totals: Totals,
    /// Samples, and the sum of their times in ns: of READ, WRITE, DELETE and the rest.
    pub times: [(u64, u128); 4],
    /// See [`TimeTotals::exclusive_ns`].
    pub exclusive_ns: u64,
    /// See [`TimeTotals::busy_ns`].
    pub busy_ns: u64,
}

impl From<Totals> for ConsumerFigures {
    fn from(mut totals: Totals) -> Self {
        let time: TimeTotals = totals.time.take().map(|time| *time).unwrap_or_default();
        let kinds = [&time.read, &time.write, &time.delete, &time.other];
        Self {
            totals,
            times: kinds.map(|kind| (kind.count(), kind.sum())),
            exclusive_ns: time.exclusive_ns,
            busy_ns: time.busy_ns,
        }
    }
}

impl Stack {
    /// Everything as it is at this moment.
    pub fn look(&self) -> Look {
        self.shared.topology.with(|topology| {
            let registry = self.shared.registry.lock();
            let mut look = Look {
                tree: topology.tree(),
                ..Look::default()
            };
            for (id, provider) in &topology.providers {
                let mut sum = provider.past.clone();
                for id in &provider.consumers {
                    if let Some(consumer) = topology.consumers.get(id) {
                        let totals = registry.totals(consumer.stat);
                        sum.add(&totals);
                        look.consumers.insert(*id, totals.into());
                    }
                }
                look.providers.insert(*id, sum);
            }
            look
        })
    }

    /// Counts so from now on; earlier counts stay. Each thread changes over at its next request,
    /// as it does when the topology changes; requests in flight end as they began.
    pub fn set_statistics(&self, statistics: Statistics) {
        *self.shared.statistics.lock() = statistics;
        self.shared.touch(|_| ());
    }
}
