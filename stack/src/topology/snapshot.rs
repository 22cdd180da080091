//! Building a [`Snapshot`] from the topology.

use super::{ConsumerId, ConsumerObject, GeomId, Topology};
use crate::bio::Command;
use crate::devices::Devices;
use crate::error::Errno;
use crate::losses::{EVERYWHERE, Losses};
use crate::shift;
use crate::snapshot::{Edge, EdgeInfo, HIGHEST, NO_RUN, Snapshot};
use crate::statistics::Registry;
use crate::strategy::Strategy;
use std::collections::BTreeMap;
use std::sync::Arc;
use ugeom_machine::direct::Direct;

/// An edge that leads nowhere, for consumers that are not attached.
const NOWHERE: u32 = u32::MAX;

impl Topology {
    /// The topology as of now, for the data path. The counters of runs of layers are entered in
    /// `registry`.
    pub(crate) fn snapshot(
        &mut self,
        generation: u64,
        strategy: Strategy,
        devices: &Arc<Devices>,
        registry: &mut Registry,
    ) -> Snapshot {
        let mut first: BTreeMap<GeomId, u32> = BTreeMap::new();
        let mut order: Vec<ConsumerId> = Vec::with_capacity(self.consumers.len());
        for (id, geom) in &self.geoms {
            first.insert(*id, order.len() as u32);
            order.extend(&geom.consumers);
        }
        let mut entries = vec![NOWHERE; self.entry_count()].into_boxed_slice();
        let mut edges = Vec::with_capacity(order.len());
        let mut info = Vec::with_capacity(order.len());
        let mut clones = BTreeMap::new();
        for (index, id) in order.iter().enumerate() {
            let Some(consumer) = self.consumers.get(id) else { continue };
            if let Some(entry) = consumer
                .entry
                .or(consumer.own_entry)
                .and_then(|entry| entries.get_mut(entry as usize))
            {
                *entry = index as u32;
            }
            let (edge, cold) = self.edge(consumer, &first, &mut clones);
            edges.push(edge);
            info.push(cold);
        }
        let runs = if strategy.passes() {
            let place = |members: &[u32]| registry.run_place(members, || self.take_stat());
            shift::find(&mut edges, &mut info, place)
        } else {
            Box::default()
        };
        let way = strategy.way(!runs.is_empty());
        Snapshot {
            generation,
            edges: edges.into(),
            runs,
            info: info.into(),
            entries,
            enter: way.enter,
            go_on: way.go_on,
            sample_one_in: strategy.sample_one_in,
            devices: Arc::clone(devices),
            stats_wanted: self.stat_count(),
            local_keys: self
                .geoms
                .values()
                .filter_map(|geom| geom.methods.local_key())
                .collect(),
        }
    }

    fn edge(
        &self,
        consumer: &ConsumerObject,
        first: &BTreeMap<GeomId, u32>,
        clones: &mut BTreeMap<GeomId, usize>,
    ) -> (Edge, EdgeInfo) {
        let provider = consumer.provider.and_then(|id| self.providers.get(&id));
        let geom = provider.and_then(|provider| Some((provider, self.geoms.get(&provider.geom)?)));
        let Some((provider, geom)) = geom else {
            return self.dead_edge(consumer);
        };
        let permit = permitted(consumer);
        let usable = provider.error.is_none() && !consumer.orphan;
        let plain = usable && provider.sectorsize.is_power_of_two() && provider.mediasize > 0;
        let end = |command: Command| {
            if plain && permit & command.bit() != 0 {
                provider.mediasize
            } else {
                0
            }
        };
        let edge = Edge {
            ends: [end(Command::Read), end(Command::Write)],
            forbidden: u64::from(provider.sectorsize).wrapping_sub(1) | HIGHEST,
            geom: Direct::new(Arc::clone(&geom.methods)),
            below: first.get(&provider.geom).copied().unwrap_or(NOWHERE),
            below_count: geom.consumers.len() as u16,
            port: provider.port,
            stat: consumer.stat,
            hooked: geom.methods.wants_done(),
            run: NO_RUN,
        };
        let cold = EdgeInfo {
            provider: provider.name.clone(),
            sectorsize: provider.sectorsize,
            mediasize: provider.mediasize,
            permit,
            error: provider.error,
            orphan: consumer.orphan,
            clones: self.clones_from(provider.geom, clones),
            losses: Arc::clone(&geom.losses),
            above: self.losses_of(consumer.geom),
            window: geom
                .methods
                .position(provider.port)
                .map_or(EVERYWHERE, |at| at..at.saturating_add(provider.mediasize)),
            above_in_order: self.shows_in_order(consumer.geom),
            mark: Arc::clone(&consumer.mark),
        };
        (edge, cold)
    }

    /// True when each provider of the geom is a range of the one below.
    fn shows_in_order(&self, geom: GeomId) -> bool {
        self.geoms.get(&geom).is_some_and(|geom| {
            let mut ports = 0..geom.providers.len() as u16;
            ports.all(|port| geom.methods.position(port).is_some())
        })
    }

    /// An edge for a consumer without a provider: it refuses everything.
    fn dead_edge(&self, consumer: &ConsumerObject) -> (Edge, EdgeInfo) {
        let geom = self
            .geoms
            .get(&consumer.geom)
            .map(|geom| Arc::clone(&geom.methods));
        let edge = Edge {
            ends: [0; 2],
            forbidden: HIGHEST,
            geom: Direct::new(geom.unwrap_or_else(|| Arc::new(crate::stack::Handle))),
            below: NOWHERE,
            below_count: 0,
            port: 0,
            stat: consumer.stat,
            hooked: false,
            run: NO_RUN,
        };
        let cold = EdgeInfo {
            provider: consumer
                .provider
                .map_or_else(|| "nothing".to_owned(), |id| self.former_name(id)),
            sectorsize: 0,
            mediasize: 0,
            permit: u32::MAX,
            error: Some(Errno::NXIO),
            orphan: true,
            clones: 0,
            losses: Arc::default(),
            above: self.losses_of(consumer.geom),
            window: EVERYWHERE,
            above_in_order: false,
            mark: Arc::clone(&consumer.mark),
        };
        (edge, cold)
    }

    fn losses_of(&self, geom: GeomId) -> Arc<Losses> {
        let geom = self.geoms.get(&geom);
        geom.map_or_else(Arc::default, |geom| Arc::clone(&geom.losses))
    }

    /// The clones that one request to `geom` may need in flight at once, everything below
    /// included: its own children, and what each of them may need.
    fn clones_from(&self, geom: GeomId, known: &mut BTreeMap<GeomId, usize>) -> usize {
        if let Some(clones) = known.get(&geom) {
            return *clones;
        }
        let Some(object) = self.geoms.get(&geom) else { return 0 };
        let below = object
            .consumers
            .iter()
            .filter_map(|id| self.consumers.get(id)?.provider);
        let below = below.filter_map(|id| Some(self.providers.get(&id)?.geom));
        let widest_below = below
            .map(|id| self.clones_from(id, known))
            .max()
            .unwrap_or(0);
        let own = object.methods.widest_fan_out();
        let clones = if own == 0 {
            widest_below
        } else {
            own * (1 + widest_below)
        };
        known.insert(geom, clones);
        clones
    }
}

/// The commands that the access counts allow, a bit each.
fn permitted(consumer: &ConsumerObject) -> u32 {
    let reads = [Command::Read, Command::GetAttr, Command::Extents];
    let writes = [
        Command::Write,
        Command::Delete,
        Command::Zero,
        Command::Flush,
    ];
    let mask = |commands: &[Command]| commands.iter().fold(0, |mask, c| mask | c.bit());
    let read = if consumer.counts.read > 0 {
        mask(&reads)
    } else {
        0
    };
    let write = if consumer.counts.write > 0 {
        mask(&writes)
    } else {
        0
    };
    read | write
}
