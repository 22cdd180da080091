//! PC98: NEC's partition table, slices `s1` to `s16`.
//!
//! ```text
//! sector 0 [ boot code | 55 AA ]  1 [ 16 entries ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::pc98`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::PC98 as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "pc98",
    class: NAME,
    about: "NEC PC-98 partition table: slices s1 to s16",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Pc98)),
};

/// The class PC98: the slices of NEC's PC-9800.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pc98;

impl Class for Pc98 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
