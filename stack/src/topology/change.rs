//! Making and unmaking geoms and providers: create, spoil, orphan, wither, resize.

use super::{ConsumerId, Event, GeomId, GeomObject, ProviderId, ProviderObject, Topology};
use crate::access::Counts;
use crate::class::{Geom, Plan, ProviderPlan};
use crate::error::{Errno, StackError};
use crate::losses::Mark;
use crate::lower::OwnEntry;
use crate::statistics::Totals;
use std::collections::HashSet;
use std::sync::Arc;

impl Topology {
    /// Makes a geom with a consumer on each of `lower` and the providers of its plan.
    ///
    /// # Errors
    /// As [`Topology::attach`], and when a name is taken; nothing is left behind then.
    pub(crate) fn create(
        &mut self,
        class: &'static str,
        plan: Plan,
        lower: &[ProviderId],
    ) -> Result<GeomId, StackError> {
        let mut names = HashSet::new();
        if !plan.providers.is_empty() {
            names.extend(self.providers.values().map(|other| other.name.as_str()));
        }
        for provider in &plan.providers {
            if !names.insert(&provider.name) {
                return Err(StackError::NameTaken(provider.name.clone()));
            }
            if provider.sectorsize_bytes == 0 {
                let why = format!("provider {} has a sector size of 0", provider.name);
                return Err(StackError::Invalid(why));
            }
        }
        if plan.providers.len() > usize::from(u16::MAX) {
            return Err(StackError::Invalid(format!(
                "geom {} has too many providers",
                plan.name
            )));
        }
        let id = GeomId(self.next());
        let object = GeomObject {
            class,
            losses: plan.geom.losses(),
            name: plan.name,
            methods: plan.geom,
            consumers: Vec::new(),
            providers: Vec::new(),
            rank: 1,
            wither: false,
            asked_for: false,
        };
        self.geoms.insert(id, object);
        for provider in lower {
            if let Err(error) = self.attach(id, *provider) {
                self.remove_geom(id);
                return Err(error);
            }
        }
        for (port, provider) in plan.providers.into_iter().enumerate() {
            self.add_provider(id, port as u16, provider);
        }
        Ok(id)
    }

    fn add_provider(&mut self, geom: GeomId, port: u16, plan: ProviderPlan) {
        let id = ProviderId(self.next());
        let object = ProviderObject {
            name: plan.name,
            geom,
            port,
            consumers: Vec::new(),
            counts: Counts::default(),
            error: None,
            mediasize: plan.mediasize_bytes,
            sectorsize: plan.sectorsize_bytes,
            stripesize: plan.stripesize_bytes,
            stripeoffset: plan.stripeoffset_bytes,
            padding: plan
                .padding_bytes
                .min(plan.sectorsize_bytes.saturating_sub(1)),
            mark: plan.mark,
            config: plan.config,
            past: Totals::default(),
        };
        self.providers.insert(id, object);
        if let Some(object) = self.geoms.get_mut(&geom) {
            object.providers.push(id);
        }
        self.events.push_back(Event::Taste(id));
    }

    /// Makes the geom of an opened handle: class `DEV`, one consumer.
    pub(crate) fn create_handle(
        &mut self,
        provider: ProviderId,
        methods: Arc<dyn Geom>,
    ) -> Result<(ConsumerId, u32), StackError> {
        let name = self.provider(provider)?.name.clone();
        let plan = Plan {
            name,
            geom: methods,
            providers: Vec::new(),
        };
        let geom = self.create("DEV", plan, &[provider])?;
        let free = self.free_entries.pop();
        let entry = free.unwrap_or_else(|| self.new_entry());
        let consumer = self.geom(geom)?.consumers.first().copied();
        let consumer = consumer.ok_or_else(|| StackError::Invalid("no consumer".into()))?;
        if let Some(object) = self.consumers.get_mut(&consumer) {
            object.entry = Some(entry);
        }
        Ok((consumer, entry))
    }

    /// The mark of a consumer in the losses below it.
    pub(crate) fn mark_of(&self, consumer: ConsumerId) -> Arc<Mark> {
        let consumer = self.consumers.get(&consumer);
        consumer.map_or_else(Arc::default, |consumer| Arc::clone(&consumer.mark))
    }

    pub(super) fn new_entry(&mut self) -> u32 {
        self.entries += 1;
        self.entries - 1
    }

    /// Where a geom submits requests of its own, consumer by consumer.
    pub(crate) fn own_entries(&self, geom: GeomId) -> Vec<OwnEntry> {
        let consumers = self
            .geoms
            .get(&geom)
            .map_or(&[][..], |geom| &geom.consumers);
        let own = |id: &ConsumerId| {
            let consumer = self.consumers.get(id)?;
            Some(OwnEntry {
                consumer: *id,
                entry: consumer.own_entry?,
                provider: consumer.provider?,
            })
        };
        consumers.iter().filter_map(own).collect()
    }

    /// How many entries snapshots must have room for.
    pub(crate) fn entry_count(&self) -> usize {
        self.entries as usize
    }

    /// How many places for statistics there are.
    pub(super) fn stat_count(&self) -> usize {
        self.stats as usize
    }

    /// A writer came to a provider: geoms on it that cannot stand that wither away.
    pub(crate) fn spoil(&mut self, provider: ProviderId, writer: ConsumerId) {
        let Some(object) = self.providers.get(&provider) else { return };
        for id in object.consumers.clone() {
            if id == writer {
                continue;
            }
            let Some(consumer) = self.consumers.get_mut(&id) else { continue };
            let Some(geom) = self.geoms.get(&consumer.geom) else { continue };
            if consumer.entry.is_some() || geom.methods.survives_spoil() {
                continue;
            }
            consumer.spoiled = true;
            consumer.orphan = true;
            let geom = consumer.geom;
            self.wither(geom, Errno::NXIO);
        }
        self.wash();
    }

    /// The user asked for that geom; it was not found by tasting.
    pub(crate) fn asked_for(&mut self, geom: GeomId) {
        if let Some(object) = self.geoms.get_mut(&geom) {
            object.asked_for = true;
        }
    }

    /// The first provider of a geom that a first writer would destroy for good: spoiling takes the
    /// geom, and tasting does not make it again.
    pub(crate) fn lost_to_writer(&self, provider: ProviderId) -> Option<&str> {
        let object = self.providers.get(&provider)?;
        if object.counts.write > 0 {
            return None;
        }
        let holders = |object: &ProviderObject| {
            let consumers = object
                .consumers
                .iter()
                .filter_map(|id| self.consumers.get(id));
            let geoms = consumers.filter(|consumer| consumer.entry.is_none());
            geoms.map(|consumer| consumer.geom).collect::<Vec<_>>()
        };
        let survives = |id: &GeomId| {
            self.geoms
                .get(id)
                .is_none_or(|geom| geom.methods.survives_spoil())
        };
        let mut going = holders(object);
        going.retain(|id| !survives(id));
        let mut seen = HashSet::new();
        while let Some(id) = going.pop() {
            let Some(geom) = self.geoms.get(&id).filter(|_| seen.insert(id)) else { continue };
            let providers = || {
                geom.providers
                    .iter()
                    .filter_map(|id| self.providers.get(id))
            };
            if geom.asked_for
                && let Some(lost) = providers().next()
            {
                return Some(&lost.name);
            }
            going.extend(providers().flat_map(holders));
        }
        None
    }

    /// A provider is gone: it answers with the error, and everything on it follows.
    pub(crate) fn orphan(&mut self, provider: ProviderId, errno: Errno) {
        let Some(object) = self.providers.get_mut(&provider) else { return };
        object.error.get_or_insert(errno);
        for id in object.consumers.clone() {
            let Some(consumer) = self.consumers.get_mut(&id) else { continue };
            consumer.orphan = true;
            if consumer.entry.is_none() {
                let geom = consumer.geom;
                self.wither(geom, Errno::NXIO);
            }
        }
        self.wash();
    }

    /// Begins to take a geom away; it goes when nothing of it is held any more.
    pub(crate) fn wither(&mut self, geom: GeomId, errno: Errno) {
        let Some(object) = self.geoms.get_mut(&geom) else { return };
        if std::mem::replace(&mut object.wither, true) {
            return;
        }
        for provider in object.providers.clone() {
            self.orphan(provider, errno);
        }
    }

    /// GEOM's wither washer: removes withering geoms that are not held any more.
    pub(crate) fn wash(&mut self) {
        loop {
            let withering: Vec<GeomId> = self
                .geoms
                .iter()
                .filter(|(_, geom)| geom.wither)
                .map(|(id, _)| *id)
                .collect();
            let removed = withering
                .into_iter()
                .filter(|id| self.wash_one(*id))
                .count();
            if removed == 0 {
                return;
            }
        }
    }

    fn wash_one(&mut self, geom: GeomId) -> bool {
        let Some(object) = self.geoms.get(&geom) else { return false };
        let free = |id: &ProviderId| {
            self.providers
                .get(id)
                .is_none_or(|p| p.consumers.is_empty())
        };
        let closed = |id: &ConsumerId| {
            self.consumers
                .get(id)
                .is_none_or(|c| c.counts == Counts::default())
        };
        if !object.providers.iter().all(free) || !object.consumers.iter().all(closed) {
            return false;
        }
        self.remove_geom(geom);
        true
    }

    /// Takes a geom out, with its consumers and providers.
    pub(crate) fn remove_geom(&mut self, geom: GeomId) {
        let Some(object) = self.geoms.get(&geom) else { return };
        let (consumers, providers) = (object.consumers.clone(), object.providers.clone());
        for id in consumers {
            let provider = self
                .consumers
                .get(&id)
                .and_then(|consumer| consumer.provider);
            // Counts are zero here, or the consumer was never opened.
            let _ = self.detach(id);
            if let Some(consumer) = self.consumers.remove(&id) {
                self.free_entries.extend(consumer.entry);
                self.gone.push((provider, consumer.stat));
            }
        }
        for id in providers {
            self.remember(id);
            self.providers.remove(&id);
        }
        self.geoms.remove(&geom);
    }

    /// A provider has another size. Geoms on it resize, or are orphaned when it shrank and they
    /// cannot; then all classes may taste it again.
    pub(crate) fn resize(&mut self, provider: ProviderId, mediasize: u64) {
        let Some(object) = self.providers.get_mut(&provider) else { return };
        let shrank = mediasize < object.mediasize;
        if mediasize == object.mediasize {
            return;
        }
        object.mediasize = mediasize;
        object.padding = 0;
        for id in object.consumers.clone() {
            let Some(consumer) = self.consumers.get(&id) else { continue };
            if consumer.entry.is_some() {
                continue;
            }
            let geom = consumer.geom;
            let Some(object) = self.geoms.get(&geom) else { continue };
            match object.methods.resize(mediasize) {
                Some(sizes) => {
                    for (provider, (size, mark)) in object.providers.clone().into_iter().zip(sizes)
                    {
                        if let Some(object) = self.providers.get_mut(&provider) {
                            object.mark = mark;
                        }
                        self.resize(provider, size);
                    }
                }
                None if shrank => {
                    if let Some(consumer) = self.consumers.get_mut(&id) {
                        consumer.orphan = true;
                    }
                    self.wither(geom, Errno::NXIO);
                }
                None => {}
            }
        }
        self.wash();
        self.events.push_back(Event::Taste(provider));
    }
}
