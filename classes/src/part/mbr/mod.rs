//! MBR: the PC's master boot record, four partitions `s1` to `s4`.
//!
//! ```text
//! sector 0 [ boot code | 4 entries | 55 AA ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the first sector and forwards to `md0`;
//! a write likewise. The layout is described in `ugeom_format::mbr`.

mod taste;

use crate::entry::ClassEntry;

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::MBR as NAME;
/// The attribute that tells extended partitions apart: 1 for the first of the table.
pub(super) const EXTENDED_ORDINAL: &str = "MBR::extended";

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "mbr",
    NAME,
    "PC partition table: slices s1 to s4",
    taste::taste,
);
