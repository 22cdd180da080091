//! SGI: the volume header of IRIX, partitions `s1` to `s16`.
//!
//! ```text
//! block 0 [ header ]   s1 |------|   s2 |------------|   s9 |--|   s11: the whole disk
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::sgi`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::SGI as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "sgi",
    class: NAME,
    about: "SGI volume header: partitions s1 to s16",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Sgi)),
};

/// The class SGI: partitions of an SGI volume header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sgi;

impl Class for Sgi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
