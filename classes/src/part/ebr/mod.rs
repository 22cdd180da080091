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

use crate::entry::ClassEntry;

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::EBR as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "ebr",
    NAME,
    "logical partitions in an extended partition: s5 and up",
    taste::taste,
);
