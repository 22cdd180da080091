//! BSD64: DragonFly's disklabel64, partitions `a` to `p`.
//!
//! ```text
//! slice or disk [ sector 0 | label | boot ]   a |------|  b |---|  d |----------| [ backup ]
//! ```
//! A read of `md0a`: [`crate::part::slicer::Slicer`] adds the partition's first sector and forwards
//! to `md0`; a write likewise. The layout is described in `ugeom_format::bsd64`.

mod taste;

use crate::entry::ClassEntry;

/// gpart's name of the scheme.
pub use super::names::BSD64 as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "bsd64",
    NAME,
    "DragonFly disklabel64: partitions a to p",
    taste::taste,
);
