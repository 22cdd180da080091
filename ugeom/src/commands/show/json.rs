//! The tree for programs.

use super::{above, damage};
use crate::contents::{Carried, Contents, carried};
use serde::Serialize;
use std::collections::BTreeMap;
use ugeom_stack::{Fact, GeomView, ProviderId, ProviderView, TasteError, Tree};

/// The output of `show --json`.
#[derive(Serialize)]
pub struct Shown<'a> {
    /// The target as it was written.
    target: &'a str,
    /// The providers at the bottom, or the one that was addressed.
    providers: Vec<Provider<'a>>,
    /// Metadata that was recognised and is too damaged to use.
    taste_errors: Vec<Damage<'a>>,
}

#[derive(Default, Serialize)]
pub struct Provider<'a> {
    pub(super) name: &'a str,
    pub(super) class: &'a str,
    pub(super) mediasize_bytes: u64,
    pub(super) sectorsize_bytes: u32,
    pub(super) sectors: u64,
    pub(super) stripesize_bytes: u64,
    pub(super) stripeoffset_bytes: u64,
    /// Access counts of readers, writers and exclusive openers: `r0w0e0`.
    pub(super) mode: String,
    /// The mark for a user: it reaches past the end of its parent, say.
    pub(super) mark: Option<&'a str>,
    /// The number of its error, when it is gone or broken.
    pub(super) error: Option<i32>,
    /// Facts from its class: type, label, ...
    pub(super) config: BTreeMap<&'a str, String>,
    /// File systems and tables that its first sectors show.
    pub(super) contents: Vec<Carried<'a>>,
    /// The geoms on it.
    pub(super) geoms: Vec<Geom<'a>>,
}

#[derive(Default, Serialize)]
pub struct Geom<'a> {
    pub(super) class: &'a str,
    pub(super) name: &'a str,
    pub(super) rank: u32,
    /// Facts: scheme, state, ...
    pub(super) config: BTreeMap<&'a str, String>,
    /// The defects of its metadata as a whole.
    pub(super) damage: Vec<&'a str>,
    pub(super) providers: Vec<Provider<'a>>,
}

#[derive(Serialize)]
struct Damage<'a> {
    class: &'a str,
    provider: &'a str,
    problem: &'a str,
}

impl<'a> Shown<'a> {
    /// Providers that were put together already, those at the bottom.
    pub fn of(target: &'a str, providers: Vec<Provider<'a>>) -> Self {
        Self {
            target,
            providers,
            taste_errors: Vec::new(),
        }
    }

    /// The whole tree, or only the provider `only` with those above it.
    pub fn new(
        target: &'a str,
        tree: &'a Tree,
        only: Option<ProviderId>,
        errors: &'a [TasteError],
        contents: &'a Contents,
    ) -> Self {
        let mut providers = Vec::new();
        for geom in &tree.geoms {
            let wanted = |provider: &&ProviderView| match only {
                Some(only) => provider.id == only,
                None => geom.consumers.is_empty(),
            };
            let wanted = geom.providers.iter().filter(wanted);
            providers.extend(wanted.map(|provider| shown(tree, contents, geom, provider)));
        }
        let damage = |error: &'a TasteError| Damage {
            class: error.class,
            provider: &error.provider,
            problem: &error.problem,
        };
        Self {
            target,
            providers,
            taste_errors: errors.iter().map(damage).collect(),
        }
    }
}

fn shown<'a>(
    tree: &'a Tree,
    contents: &'a Contents,
    geom: &'a GeomView,
    provider: &'a ProviderView,
) -> Provider<'a> {
    let sector = u64::from(provider.sectorsize_bytes);
    Provider {
        name: &provider.name,
        class: geom.class,
        mediasize_bytes: provider.mediasize_bytes,
        sectorsize_bytes: provider.sectorsize_bytes,
        sectors: provider.mediasize_bytes.checked_div(sector).unwrap_or(0),
        stripesize_bytes: provider.stripesize_bytes,
        stripeoffset_bytes: provider.stripeoffset_bytes,
        mode: provider.mode.to_string(),
        mark: provider.mark.as_deref(),
        error: provider.error.map(|errno| errno.raw_os_error()),
        config: facts(&provider.config),
        contents: contents
            .get(&provider.id)
            .map_or_else(Vec::new, |all| all.iter().map(carried).collect()),
        geoms: above(tree, provider.id)
            .map(|geom| standing(tree, contents, geom))
            .collect(),
    }
}

fn standing<'a>(tree: &'a Tree, contents: &'a Contents, geom: &'a GeomView) -> Geom<'a> {
    let mut config = facts(&geom.config);
    config.remove("damage");
    Geom {
        class: geom.class,
        name: &geom.name,
        rank: geom.rank,
        config,
        damage: damage(geom).collect(),
        providers: geom
            .providers
            .iter()
            .map(|provider| shown(tree, contents, geom, provider))
            .collect(),
    }
}

fn facts(config: &[Fact]) -> BTreeMap<&str, String> {
    config.iter().cloned().collect()
}
