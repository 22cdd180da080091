//! VTOC8: Sun's disk label, partitions `a` to `h`.
//!
//! ```text
//! sector 0 [ label ]   a |------|  b |---|  d |----------|     all begin with a cylinder
//!          c |-------------------------------------------|
//! ```
//! A read of `md0a`: [`crate::part::slicer::Slicer`] adds the partition's first sector and forwards
//! to `md0`; a write likewise. The layout is described in `ugeom_format::vtoc8`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// gpart's name of the scheme. The GEOM of 2002 called the class SUN.
pub use super::names::VTOC8 as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "vtoc8",
    class: NAME,
    about: "Sun disk label: partitions a to h",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Vtoc8)),
};

/// The class VTOC8: partitions of Sun's disk label.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vtoc8;

impl Class for Vtoc8 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
