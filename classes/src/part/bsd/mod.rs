//! BSD: the disklabel, partitions `a` to `v` of a slice or of a whole disk.
//!
//! ```text
//! slice or disk  [ sector 0 | label | boot ]   a |------|  b |---|  d |----------|
//!                c |--------------------------------------------------------------|
//! ```
//! A read of `md0s1a`: [`crate::part::slicer::Slicer`] adds the partition's place in the slice and
//! forwards to `md0s1`; a write likewise. The raw partition `c` is listed like any other. The
//! layout is described in `ugeom_format::bsd`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::BSD as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "bsd",
    class: NAME,
    about: "BSD disklabel: partitions a to v",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Bsd)),
};

/// The class BSD: partitions of a disklabel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bsd;

impl Class for Bsd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
