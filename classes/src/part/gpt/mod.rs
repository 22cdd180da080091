//! GPT: the GUID partition table, partitions `p1` and up.
//!
//! ```text
//! [ MBR | header | table ]   p1 |------|   p2 |------------|   [ table | header ]
//!   0      1       2 ..                                          backup
//! ```
//! A read of `md0p1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::gpt`.

pub(super) mod taste;

use crate::entry::ClassEntry;
use ugeom_format::gpt::{Guid, types};
use ugeom_format::mbr::MbrKind;

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::GPT as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry =
    ClassEntry::table("gpt", NAME, "GUID partition table: p1 and up", taste::taste);

/// The letter before a partition's number: a partition of type `freebsd` is a slice, all others are
/// partitions. Where the MBR in sector 0 has slices of its own, `s1` is taken by them.
pub(super) fn letter(kind: Guid, mbr: MbrKind) -> char {
    let taken = matches!(mbr, MbrKind::Hybrid | MbrKind::Partitioned);
    match kind == types::FREEBSD && !taken {
        true => 's',
        false => 'p',
    }
}
