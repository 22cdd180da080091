//! AMIGA: the rigid disk block, partitions `s1` and up in the order of their chain.
//!
//! ```text
//! sector 0 .. 15 [ RDSK ] -> [ PART ] -> [ PART ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::amiga`.

mod taste;

use crate::entry::ClassEntry;

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::AMIGA as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "amiga",
    NAME,
    "Amiga rigid disk block: partitions s1 and up",
    taste::taste,
);
