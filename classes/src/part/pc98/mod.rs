//! PC98: NEC's partition table, slices `s1` to `s16`.
//!
//! ```text
//! sector 0 [ boot code | 55 AA ]  1 [ 16 entries ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::pc98`.

mod taste;

use crate::entry::ClassEntry;

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::PC98 as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "pc98",
    NAME,
    "NEC PC-98 partition table: slices s1 to s16",
    taste::taste,
);
