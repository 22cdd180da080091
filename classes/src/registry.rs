//! The classes, one line each, for the stack language, `ugeom classes`, the conformance suite and
//! automatic tasting.

use crate::entry::{ClassEntry, table};
use crate::part::{amiga, apm, atari, bsd, bsd64, ebr, gpt, ldm, mbr, pc98, sgi, vtoc8};
use std::sync::Arc;
use ugeom_stack::Class;

/// All classes: devices first, then layers, then tables. Providers are tasted in this order.
#[rustfmt::skip]
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
    table("ldm", ldm::NAME, "Windows dynamic disk (LDM): volumes s1 and up", ldm::taste),
    table("gpt", gpt::NAME, "GUID partition table: p1 and up", gpt::taste),
    table("mbr", mbr::NAME, "PC partition table: slices s1 to s4", mbr::taste),
    table("ebr", ebr::NAME, "logical partitions in an extended partition: s5 and up", ebr::taste),
    table("apm", apm::NAME, "Apple partition map: s1 and up", apm::taste),
    table("bsd", bsd::NAME, "BSD disklabel: partitions a to v", bsd::taste),
    table("bsd64", bsd64::NAME, "DragonFly disklabel64: partitions a to p", bsd64::taste),
    table("vtoc8", vtoc8::NAME, "Sun disk label: partitions a to h", vtoc8::taste),
    table("pc98", pc98::NAME, "NEC PC-98 partition table: slices s1 to s16", pc98::taste),
    table("sgi", sgi::NAME, "SGI volume header: partitions s1 to s16", sgi::taste),
    table("amiga", amiga::NAME, "Amiga rigid disk block: partitions s1 and up", amiga::taste),
    table("atari", atari::NAME, "Atari root sector: partitions s1 and up", atari::taste),
];

/// All classes. Providers are tasted in this order.
pub fn registry() -> &'static [ClassEntry] {
    REGISTRY
}

/// The class of that name in the stack language.
pub fn find(name: &str) -> Option<&'static ClassEntry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

/// The names that the stack language has to know.
pub fn names() -> Vec<&'static str> {
    REGISTRY.iter().map(|entry| entry.name).collect()
}

/// The classes that taste, as a new stack takes them.
pub fn tasting() -> Vec<Arc<dyn Class>> {
    let tasting = REGISTRY.iter().filter(|entry| entry.taste.is_some());
    tasting
        .map(|entry| Arc::new(*entry) as Arc<dyn Class>)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Build, Role};
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
