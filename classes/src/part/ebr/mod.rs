//! EBR: the logical partitions of an extended one, `s5` and up.
//!
//! ```text
//! extended partition  [ EBR | s5 ........ ][ EBR | s6 ... ][ EBR | s7 ..... ]
//!                        \__ link ________/\__ link ______/
//! ```
//! A read of `md0s5`: [`crate::part::slicer::Slicer`] adds the place of the logical partition in
//! the extended one and forwards to `md0s2`, whose MBR adds the rest; a write likewise. The layout
//! is described in `ugeom_format::ebr`.

mod taste;

pub(in crate::part) use taste::prefix_of;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::EBR as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "ebr",
    class: NAME,
    about: "logical partitions in an extended partition: s5 and up",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Ebr)),
};

/// The class EBR: logical partitions of an extended one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ebr;

impl Class for Ebr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
