//! SGI: the volume header of IRIX, partitions `s1` to `s16`.
//!
//! ```text
//! block 0 [ header ]   s1 |------|   s2 |------------|   s9 |--|   s11: the whole disk
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::sgi`.

mod taste;

use crate::entry::ClassEntry;

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::SGI as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "sgi",
    NAME,
    "SGI volume header: partitions s1 to s16",
    taste::taste,
);
