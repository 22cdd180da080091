//! BSD64: DragonFly's disklabel64, partitions `a` to `p`.
//!
//! ```text
//! slice or disk [ sector 0 | label | boot ]   a |------|  b |---|  d |----------| [ backup ]
//! ```
//! A read of `md0a`: [`crate::part::slicer::Slicer`] adds the partition's first sector and forwards
//! to `md0`; a write likewise. The layout is described in `ugeom_format::bsd64`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// gpart's name of the scheme.
pub use super::names::BSD64 as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "bsd64",
    class: NAME,
    about: "DragonFly disklabel64: partitions a to p",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Bsd64)),
};

/// The class BSD64: partitions of DragonFly's disklabel64.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bsd64;

impl Class for Bsd64 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
