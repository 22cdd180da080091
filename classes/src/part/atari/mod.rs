//! ATARI: the root sector of AHDI and ICD, partitions `s1` and up.
//!
//! ```text
//! sector 0 [ root ]   s1 |------|   XGM [ root | s2 ---- ][ root | s3 -- ]   s4 |------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::atari`.

mod taste;

use crate::entry::{Build, ClassEntry, NO_OPTIONS, Role};
use std::sync::Arc;
use ugeom_stack::{Class, Plan, TasteError, Taster};

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::ATARI as NAME;

/// Its line in the registry.
pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "atari",
    class: NAME,
    about: "Atari root sector: partitions s1 and up",
    role: Role::Table,
    positional: &[],
    options: &NO_OPTIONS,
    build: Build::Table,
    taste: Some(|| Arc::new(Atari)),
};

/// The class ATARI: partitions of an Atari root sector (AHDI).
#[derive(Clone, Copy, Debug, Default)]
pub struct Atari;

impl Class for Atari {
    fn name(&self) -> &'static str {
        NAME
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        taste::taste(taster)
    }
}
