//! The classes that there are, one line each: what the stack language, `ugeom classes`, the
//! conformance suite and automatic tasting know about them.

use crate::build::{BuildContext, BuildError};
use crate::spec::{DeclaredOptions, LayerArguments, OptionTable};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, ProviderView};

/// Where in a stack the geoms of a class stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// At the bottom: it brings a device into being.
    Bottom,
    /// On one provider, with one provider of its own.
    Layer,
    /// On one provider, with the providers that its metadata describes.
    Table,
}

impl Role {
    /// The word for it, as `ugeom classes` prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bottom => "bottom",
            Self::Layer => "layer",
            Self::Table => "table",
        }
    }
}

/// The builder of a bottom layer.
pub type BuildBottom = fn(&mut BuildContext<'_>, LayerArguments<'_>) -> Result<Plan, BuildError>;
/// The builder of a layer on a provider.
pub type BuildLayer =
    fn(&mut BuildContext<'_>, LayerArguments<'_>, below: &ProviderView) -> Result<Plan, BuildError>;

/// How a geom of a class is made from its options.
#[derive(Clone, Copy)]
pub enum Build {
    /// From nothing.
    Bottom(BuildBottom),
    /// On a provider.
    Layer(BuildLayer),
    /// By tasting only.
    Table,
}

/// A class as the registry knows it.
#[derive(Clone, Copy)]
pub struct ClassEntry {
    /// Its name in the stack language (`md`).
    pub name: &'static str,
    /// GEOM's name of it (`MD`), which its geoms carry.
    pub class: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Where it stands.
    pub role: Role,
    /// The names of the values that can stand without a name, in their order.
    pub positional: &'static [&'static str],
    /// All its options, each declared once.
    pub options: &'static dyn DeclaredOptions,
    /// How a geom of it is made.
    pub build: Build,
    /// The class itself, if it tastes.
    pub taste: Option<fn() -> Arc<dyn Class>>,
}

/// The options of a class that has none.
pub(crate) const NO_OPTIONS: OptionTable<()> = OptionTable(&[]);

/// All classes: devices first, then layers, then tables. Providers are tasted in this order.
static REGISTRY: &[ClassEntry] = &[
    crate::file::ENTRY,
    crate::md::ENTRY,
    crate::zero::ENTRY,
    crate::disk::ENTRY,
    crate::nbd::ENTRY,
    crate::nop::ENTRY,
    crate::cache::ENTRY,
    crate::delayed::ENTRY,
    crate::crash::ENTRY,
    crate::eli::ENTRY,
    crate::part::gpt::ENTRY,
    crate::part::mbr::ENTRY,
    crate::part::ebr::ENTRY,
    crate::part::apm::ENTRY,
    crate::part::bsd::ENTRY,
];

/// All classes. Providers are tasted in this order.
#[must_use]
pub fn registry() -> &'static [ClassEntry] {
    REGISTRY
}

/// The class of that name in the stack language.
#[must_use]
pub fn find(name: &str) -> Option<&'static ClassEntry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

/// The names that the stack language has to know.
#[must_use]
pub fn names() -> Vec<&'static str> {
    REGISTRY.iter().map(|entry| entry.name).collect()
}

/// The classes that taste, as a new stack takes them.
#[must_use]
pub fn tasting() -> Vec<Arc<dyn Class>> {
    let makers = REGISTRY.iter().filter_map(|entry| entry.taste);
    makers.map(|make| make()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::OptionDefault;

    #[test]
    fn every_entry_is_consistent() {
        for entry in registry() {
            let fits = match entry.build {
                Build::Bottom(_) => entry.role == Role::Bottom,
                Build::Layer(_) => entry.role == Role::Layer,
                Build::Table => entry.role == Role::Table && entry.taste.is_some(),
            };
            assert!(fits, "{}: role {:?}", entry.name, entry.role);
            let docs = entry.options.docs();
            for name in entry.positional {
                let known = docs.iter().any(|option| option.name == *name);
                assert!(known, "{}: {name} is not described", entry.name);
            }
            if let Some(make) = entry.taste {
                assert_eq!(make().name(), entry.class, "{}", entry.name);
            }
        }
    }

    #[test]
    fn no_name_stands_twice() {
        fn is_unique(mut names: Vec<&str>) -> bool {
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            names.len() == count
        }
        assert!(is_unique(names()));
        for entry in registry() {
            let docs = entry.options.docs();
            let names = docs.iter().map(|doc| doc.name).collect();
            assert!(is_unique(names), "{}", entry.name);
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_option() {
        for entry in registry() {
            for doc in entry.options.docs() {
                if let OptionDefault::Value(text) = doc.default {
                    let tried = entry.options.try_value(doc.name, text);
                    assert_eq!(tried, Ok(()), "{}: {}={text}", entry.name, doc.name);
                }
            }
        }
    }
}
