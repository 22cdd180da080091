//! ATARI: the root sector of AHDI and ICD, partitions `s1` and up.
//!
//! ```text
//! sector 0 [ root ]   s1 |------|   XGM [ root | s2 ---- ][ root | s3 -- ]   s4 |------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::atari`.

mod taste;

use crate::entry::ClassEntry;

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::ATARI as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "atari",
    NAME,
    "Atari root sector: partitions s1 and up",
    taste::taste,
);
