//! MBR: the PC's master boot record, four partitions `s1` to `s4`.
//!
//! ```text
//! sector 0 [ boot code | 4 entries | 55 AA ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the first sector and forwards to `md0`;
//! a write likewise. The layout is described in `ugeom_format::mbr`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::MBR as NAME;
/// The attribute that tells extended partitions apart: 1 for the first of the table.
pub(super) const EXTENDED_ORDINAL: &str = "MBR::extended";

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "mbr",
    class: NAME,
    about: "PC partition table: slices s1 to s4",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Mbr)),
};

/// The class MBR: the four slices of a master boot record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mbr;

impl Class for Mbr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
