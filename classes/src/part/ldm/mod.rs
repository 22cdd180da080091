//! LDM: Windows' logical disk manager, volumes `s1` and up.
//!
//! ```text
//! [ MBR | .. | header ]   s1 |------|   s2 |--|  |-----| s2   [ database 1 MiB ]
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the volume's first sector and forwards
//! to `md0`; of a volume of several pieces, [`span::Spanned`] divides it among them. On a disk with
//! a GPT the volumes are those of the partition that they lie in, `md0p3s1`. The layout is in
//! `ugeom_format::ldm`.

mod span;
mod taste;

use crate::entry::ClassEntry;

/// gpart's name of the scheme.
pub use super::names::LDM as NAME;

pub(super) use taste::stands;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry::table(
    "ldm",
    NAME,
    "Windows dynamic disk (LDM): volumes s1 and up",
    taste::taste,
);
