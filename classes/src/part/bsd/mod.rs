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

use crate::entry::ClassEntry;

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::BSD as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "bsd",
    NAME,
    "BSD disklabel: partitions a to v",
    taste::taste,
);
