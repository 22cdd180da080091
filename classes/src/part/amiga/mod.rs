//! AMIGA: the rigid disk block, partitions `s1` and up in the order of their chain.
//!
//! ```text
//! sector 0 .. 15 [ RDSK ] -> [ PART ] -> [ PART ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::amiga`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::AMIGA as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "amiga",
    class: NAME,
    about: "Amiga rigid disk block: partitions s1 and up",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Amiga)),
};

/// The class AMIGA: partitions of a rigid disk block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amiga;

impl Class for Amiga {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
