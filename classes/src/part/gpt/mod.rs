//! GPT: the GUID partition table, partitions `p1` and up.
//!
//! ```text
//! [ MBR | header | table ]   p1 |------|   p2 |------------|   [ table | header ]
//!   0      1       2 ..                                          backup
//! ```
//! A read of `md0p1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::gpt`.

pub(super) mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_format::gpt::{Guid, types};
use ugeom_format::mbr::MbrKind;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::GPT as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "gpt",
    class: NAME,
    about: "GUID partition table: p1 and up",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Gpt)),
};

/// What stands before a partition's number: a partition of type `freebsd` is a slice, all others
/// are partitions. Where the MBR in sector 0 has slices of its own, `s1` is taken by them.
pub(super) fn letter(kind: Guid, mbr: MbrKind) -> char {
    let taken = matches!(mbr, MbrKind::Hybrid | MbrKind::Partitioned);
    match kind == types::FREEBSD && !taken {
        true => 's',
        false => 'p',
    }
}

/// The class GPT: partitions of a GUID partition table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gpt;

impl Class for Gpt {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
