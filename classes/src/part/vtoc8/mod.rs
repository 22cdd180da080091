//! VTOC8: Sun's disk label, partitions `a` to `h`.
//!
//! ```text
//! sector 0 [ label ]   a |------|  b |---|  d |----------|     all begin with a cylinder
//!          c |-------------------------------------------|
//! ```
//! A read of `md0a`: [`crate::part::slicer::Slicer`] adds the partition's first sector and forwards
//! to `md0`; a write likewise. The layout is described in `ugeom_format::vtoc8`.

mod taste;

use crate::entry::ClassEntry;

/// gpart's name of the scheme. The GEOM of 2002 called the class SUN.
pub use super::names::VTOC8 as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "vtoc8",
    NAME,
    "Sun disk label: partitions a to h",
    taste::taste,
);
