//! The topology as values to look at, for `show`, `diskinfo` and the configuration dumps.

use super::{ConsumerId, GeomId, GeomObject, ProviderId, Topology};
use crate::access::Counts;
use crate::class::Fact;
use crate::error::Errno;

/// All geoms, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// All geoms of the topology.
    pub geoms: Vec<GeomView>,
}

/// One instance of a class, with its consumers and providers.
#[derive(Clone, Debug)]
pub struct GeomView {
    /// Number of the geom, unique in the stack.
    pub id: GeomId,
    /// Its class, upper case; `DEV` for an opened handle.
    pub class: &'static str,
    /// Name of the geom; by custom that of the provider below it.
    pub name: String,
    /// Its rank: 1 at the bottom.
    pub rank: u32,
    /// It is going away.
    pub wither: bool,
    /// Facts that its class states, as keys and values.
    pub config: Vec<Fact>,
    /// Its connections to providers below.
    pub consumers: Vec<ConsumerView>,
    /// The providers for the layers above.
    pub providers: Vec<ProviderView>,
}

/// A geom's connection to a provider below.
#[derive(Clone, Debug)]
pub struct ConsumerView {
    /// Number of the consumer, unique in the stack.
    pub id: ConsumerId,
    /// The provider that it is attached to.
    pub provider: Option<ProviderId>,
    /// How often it is open: r, w and e of GEOM.
    pub mode: Counts,
}

/// A device that a geom offers, for consumers to open.
#[derive(Clone, Debug)]
pub struct ProviderView {
    /// Number of the provider, unique in the stack.
    pub id: ProviderId,
    /// The geom that it belongs to.
    pub geom: GeomId,
    /// Name of the provider, as `md0s1`.
    pub name: String,
    /// The sums of its consumers' access counts.
    pub mode: Counts,
    /// Its error, when it is gone or broken.
    pub error: Option<Errno>,
    /// The size of its media, bytes.
    pub mediasize_bytes: u64,
    /// The size of a sector, bytes.
    pub sectorsize_bytes: u32,
    /// The size of a stripe, bytes; 0 for none.
    pub stripesize_bytes: u64,
    /// Where the first stripe boundary lies, bytes.
    pub stripeoffset_bytes: u64,
    /// Where byte 0 lies in the provider below, if all bytes lie there in order
    /// ([`crate::Geom::position`]).
    pub position_bytes: Option<u64>,
    /// Bytes at the end of the media that are no part of the image: zeroes that fill up the last
    /// sector.
    pub padding_bytes: u32,
    /// A fault that a user must see.
    pub mark: Option<String>,
    /// Facts that its class states, as keys and values.
    pub config: Vec<Fact>,
}

fn fact<'a>(config: &'a [Fact], name: &str) -> Option<&'a str> {
    let found = config.iter().find(|(key, _)| *key == name);
    found.map(|(_, value)| value.as_str())
}

impl GeomView {
    /// A fact of [`GeomView::config`] by its key.
    pub fn fact(&self, name: &str) -> Option<&str> {
        fact(&self.config, name)
    }
}

impl ProviderView {
    /// A fact of [`ProviderView::config`] by its key.
    pub fn fact(&self, name: &str) -> Option<&str> {
        fact(&self.config, name)
    }

    /// The size without the padding of the last sector, bytes: what a program sees that knows no
    /// sectors. Without padding, whole sectors.
    pub fn content_bytes(&self) -> u64 {
        let sector_bytes = u64::from(self.sectorsize_bytes.max(1));
        let whole_bytes = self.mediasize_bytes - self.mediasize_bytes % sector_bytes;
        whole_bytes.saturating_sub(u64::from(self.padding_bytes))
    }

    /// The padding of a layer that shows `size_bytes` of this provider from `offset_bytes` on: the
    /// same if it shows the end of the media.
    pub fn padding_within(&self, offset_bytes: u64, size_bytes: u64) -> u32 {
        let shows_end = offset_bytes.checked_add(size_bytes) == Some(self.mediasize_bytes);
        if shows_end { self.padding_bytes } else { 0 }
    }
}

impl Tree {
    /// All providers, geom by geom.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderView> {
        self.geoms.iter().flat_map(|geom| &geom.providers)
    }

    /// The provider of that name.
    pub fn provider(&self, name: &str) -> Option<&ProviderView> {
        self.providers().find(|provider| provider.name == name)
    }

    /// The geom of that number.
    pub fn geom(&self, id: GeomId) -> Option<&GeomView> {
        self.geoms.iter().find(|geom| geom.id == id)
    }

    /// The geoms that consume a provider.
    pub fn above(&self, provider: ProviderId) -> impl Iterator<Item = &GeomView> {
        self.geoms.iter().filter(move |geom| {
            geom.consumers
                .iter()
                .any(|consumer| consumer.provider == Some(provider))
        })
    }
}

impl Topology {
    /// The geom of a provider; one without a class when it is gone.
    pub(crate) fn geom_of(&self, provider: ProviderId) -> GeomView {
        let id = self.providers.get(&provider).map(|object| object.geom);
        let geom = id.and_then(|id| Some(self.geom_view(id, self.geoms.get(&id)?)));
        geom.unwrap_or_else(|| GeomView {
            id: id.unwrap_or(GeomId(0)),
            class: "",
            name: String::new(),
            rank: 0,
            wither: true,
            config: Vec::new(),
            consumers: Vec::new(),
            providers: Vec::new(),
        })
    }

    pub(crate) fn tree(&self) -> Tree {
        let geoms = self
            .geoms
            .iter()
            .map(|(id, geom)| self.geom_view(*id, geom));
        Tree {
            geoms: geoms.collect(),
        }
    }

    fn geom_view(&self, id: GeomId, geom: &GeomObject) -> GeomView {
        GeomView {
            id,
            class: geom.class,
            name: geom.name.clone(),
            rank: geom.rank,
            wither: geom.wither,
            config: geom.methods.config(),
            consumers: geom
                .consumers
                .iter()
                .filter_map(|id| self.consumer_view(*id))
                .collect(),
            providers: geom
                .providers
                .iter()
                .filter_map(|id| self.provider_view(*id))
                .collect(),
        }
    }

    fn consumer_view(&self, id: ConsumerId) -> Option<ConsumerView> {
        let consumer = self.consumers.get(&id)?;
        Some(ConsumerView {
            id,
            provider: consumer.provider,
            mode: consumer.counts,
        })
    }

    pub(crate) fn provider_view(&self, id: ProviderId) -> Option<ProviderView> {
        let provider = self.providers.get(&id)?;
        let geom = self.geoms.get(&provider.geom);
        let port = geom.and_then(|geom| geom.providers.iter().position(|other| *other == id));
        let position = geom.zip(port).filter(|(geom, _)| geom.consumers.len() == 1);
        Some(ProviderView {
            position_bytes: position.and_then(|(geom, port)| geom.methods.position(port as u16)),
            id,
            geom: provider.geom,
            name: provider.name.clone(),
            mode: provider.counts,
            error: provider.error,
            mediasize_bytes: provider.mediasize,
            sectorsize_bytes: provider.sectorsize,
            stripesize_bytes: provider.stripesize,
            stripeoffset_bytes: provider.stripeoffset,
            padding_bytes: provider.padding,
            mark: provider.mark.clone(),
            config: provider.config.clone(),
        })
    }
}
