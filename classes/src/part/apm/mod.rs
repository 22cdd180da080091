//! APM: the Apple partition map, partitions `s1` and up.
//!
//! ```text
//! block 0 [ ER ]  1 [ PM ]  2 [ PM ] ...   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first block and forwards
//! to `md0`; a write likewise. The map itself is one of its partitions. The layout is described in
//! `ugeom_format::apm`.

mod taste;

use crate::entry::ClassEntry;

/// gpart's name of the scheme. The GEOM of 2002 called the class APPLE.
pub use super::names::APM as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry =
    ClassEntry::table("apm", NAME, "Apple partition map: s1 and up", taste::taste);
