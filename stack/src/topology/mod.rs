//! The topology: geoms, providers, consumers, and how they hang together.
//!
//! Everything here is plain data changed under the topology lock; nothing does I/O. Later work
//! (tasting, spoiling, orphaning) is put into a list of events that [`crate::stack`] works off, in
//! the thread that made the change.

mod change;
mod open;
mod rank;
mod snapshot;
mod view;

pub use view::{ConsumerView, GeomView, ProviderView, Tree};

use crate::access::Counts;
use crate::class::{Fact, Geom};
use crate::error::{Errno, StackError};
use crate::losses::{Losses, Mark};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u64);

        impl $name {
            /// The number, as `conf` prints it.
            pub const fn number(self) -> u64 {
                self.0
            }
        }
    };
}

id!(/** Identifies a geom; never used again. */ GeomId);
id!(/** Identifies a provider; never used again. */ ProviderId);
id!(/** Identifies a consumer; never used again. */ ConsumerId);

/// A geom: an instance of a class.
pub(crate) struct GeomObject {
    pub class: &'static str,
    pub name: String,
    pub methods: Arc<dyn Geom>,
    pub consumers: Vec<ConsumerId>,
    pub providers: Vec<ProviderId>,
    pub rank: u32,
    pub wither: bool,
    /// Made because it was asked for: tasting does not make it again.
    pub asked_for: bool,
    /// The lost part of its acknowledged writes.
    pub losses: Arc<Losses>,
}

/// A provider: the service point of a geom for those above.
pub(crate) struct ProviderObject {
    pub name: String,
    pub geom: GeomId,
    pub port: u16,
    pub consumers: Vec<ConsumerId>,
    pub counts: Counts,
    pub error: Option<Errno>,
    pub mediasize: u64,
    pub sectorsize: u32,
    pub stripesize: u64,
    pub stripeoffset: u64,
    pub padding: u32,
    pub mark: Option<String>,
    pub config: Vec<Fact>,
    /// Figures of consumers that are gone.
    pub past: crate::statistics::Totals,
}

/// A consumer: a geom's hand on a provider.
pub(crate) struct ConsumerObject {
    pub geom: GeomId,
    pub provider: Option<ProviderId>,
    pub counts: Counts,
    pub spoiled: bool,
    pub orphan: bool,
    /// Where its statistics are counted.
    pub stat: u32,
    /// The opened handle it belongs to, for the consumers of `DEV` geoms.
    pub entry: Option<u32>,
    /// Where its geom submits requests of its own, if it does. Never used again: the geom's thread
    /// may know it for longer than the consumer lives, and must then reach nothing.
    pub own_entry: Option<u32>,
    /// Its mark in the losses of the geom below.
    pub mark: Arc<Mark>,
}

/// The work after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Let the classes taste it.
    Taste(ProviderId),
    /// Its first writer came: all other consumers of it are spoiled.
    Spoil {
        provider: ProviderId,
        writer: ConsumerId,
    },
    /// It is gone, with this error.
    Orphan(ProviderId, Errno),
    /// It has another size.
    Resize(ProviderId, u64),
}

#[derive(Default)]
pub(crate) struct Topology {
    pub geoms: BTreeMap<GeomId, GeomObject>,
    pub providers: BTreeMap<ProviderId, ProviderObject>,
    pub consumers: BTreeMap<ConsumerId, ConsumerObject>,
    pub events: VecDeque<Event>,
    next_id: u64,
    /// Consumers that are gone: their provider, and where their figures stand.
    pub gone: Vec<(Option<ProviderId>, u32)>,
    /// The last providers that are gone, by name, for errors about them.
    former: VecDeque<(ProviderId, String)>,
    free_stats: Vec<u32>,
    stats: u32,
    free_entries: Vec<u32>,
    entries: u32,
}

/// Names of providers that are gone, at most: errors come soon after their end or not at all.
const FORMER_MAX: usize = 64;

impl Topology {
    fn next(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn geom(&self, id: GeomId) -> Result<&GeomObject, StackError> {
        self.geoms
            .get(&id)
            .ok_or_else(|| StackError::NoGeom(format!("number {}", id.0)))
    }

    pub(crate) fn provider(&self, id: ProviderId) -> Result<&ProviderObject, StackError> {
        self.providers
            .get(&id)
            .ok_or_else(|| self.no_provider(&self.former_name(id)))
    }

    /// Notes the name of a provider that is about to go.
    pub(crate) fn remember(&mut self, id: ProviderId) {
        if let Some(provider) = self.providers.get(&id) {
            self.former.truncate(FORMER_MAX - 1);
            self.former.push_front((id, provider.name.clone()));
        }
    }

    /// The name of a provider that is gone.
    pub(crate) fn former_name(&self, id: ProviderId) -> String {
        let found = self.former.iter().find(|(it, _)| *it == id);
        found.map_or_else(
            || format!("number {}", id.0),
            |(_, name)| format!("{name} (destroyed)"),
        )
    }

    pub(crate) fn no_provider(&self, name: &str) -> StackError {
        let known = self
            .providers
            .values()
            .map(|provider| provider.name.clone())
            .collect();
        StackError::NoProvider {
            name: name.to_owned(),
            known,
        }
    }

    /// The provider of that name.
    pub(crate) fn find(&self, name: &str) -> Result<ProviderId, StackError> {
        let found = self
            .providers
            .iter()
            .find(|(_, provider)| provider.name == name);
        found
            .map(|(id, _)| *id)
            .ok_or_else(|| self.no_provider(name))
    }

    /// A place for statistics may be used again.
    pub(crate) fn put_stat(&mut self, stat: u32) {
        self.free_stats.push(stat);
    }

    /// A place for statistics: a free one, or a new one.
    pub(crate) fn take_stat(&mut self) -> u32 {
        self.free_stats.pop().unwrap_or_else(|| {
            self.stats += 1;
            self.stats - 1
        })
    }
}
