//! `nop`: one more layer: passes requests on, and can move, shrink, fail or delay them. Copy this
//! folder to write a new class.
//!
//! ```text
//!            caller
//!              |  READ 512 at 0
//!          md0.nop        start: fail? delay? else offset += base, forward to consumer 0
//!              |  READ 512 at base
//!             md0
//!
//!   md0      [........|=============================|.......]
//!   md0.nop           |offset                 size->|
//! ```
//!
//! Which of two geoms is built depends on the options, so that nobody pays for what he did not
//! ask for: [`Pass`] only translates, [`Faulty`] decides about each request. GEOM's counterpart is
//! `gnop(8)` (`sys/geom/nop/g_nop.c`): the same options, the same checks, the same order (count,
//! failure, delay). Its counters are those that the stack keeps of every provider: [`counters`].

mod errors;
mod options;
mod start;
mod state;
#[cfg(test)]
mod tests;

pub use start::{Faulty, Pass};
pub use state::Faults;

use crate::build::{BuildContext, BuildError};
use crate::registry::{Build, ClassEntry, Role};
use crate::spec::Options;
use options::Settings;
use std::sync::Arc;
use ugeom_stack::{Command, Geom, Plan, ProviderPlan, ProviderView, Totals};

/// The registry's line.
pub const ENTRY: ClassEntry = ClassEntry {
    name: "nop",
    class: "NOP",
    about: "passes requests on; can move, shrink, fail and delay them",
    role: Role::Layer,
    positional: &[],
    options: options::DOCS,
    build: Build::Layer(build),
    taste: None,
};

fn build(
    _context: &mut BuildContext<'_>,
    options: Options<'_>,
    below: &ProviderView,
) -> Result<Plan, BuildError> {
    let settings = Settings::read(options, below)?;
    let name = format!("{}.nop", below.name);
    let provider = ProviderPlan {
        name: name.clone(),
        mediasize_bytes: settings.window.size_bytes(below.mediasize_bytes),
        sectorsize_bytes: settings.window.sectorsize_bytes,
        stripesize_bytes: settings.stripesize_bytes,
        stripeoffset_bytes: settings.stripeoffset_bytes,
        ..ProviderPlan::default()
    };
    let geom: Arc<dyn Geom> = match settings.faults {
        None => Arc::new(Pass::new(settings.window, settings.hook)),
        Some(faults) => Arc::new(Faulty::new(settings.window, settings.hook, faults)),
    };
    Ok(Plan {
        name,
        geom,
        providers: vec![provider],
    })
}

/// The part of the provider below that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Where it begins, bytes.
    pub offset_bytes: u64,
    /// How much of it was asked for, bytes; 0 for all that there is.
    pub explicit_bytes: u64,
    /// The size of a sector, bytes.
    pub sectorsize_bytes: u32,
}

impl Window {
    /// The size of the media over one of `below_bytes`, in whole sectors.
    #[must_use]
    pub fn size_bytes(&self, below_bytes: u64) -> u64 {
        let size_bytes = match self.explicit_bytes {
            0 => below_bytes.saturating_sub(self.offset_bytes),
            explicit => explicit,
        };
        size_bytes - size_bytes % u64::from(self.sectorsize_bytes)
    }

    /// What becomes of the media when the one below has a new size, as `Geom::resize` says it: a
    /// size that was asked for stays, and without room for it the geom cannot.
    #[must_use]
    pub fn resized(&self, below_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        let needed_bytes = self.offset_bytes.saturating_add(self.explicit_bytes);
        (needed_bytes <= below_bytes).then(|| vec![(self.size_bytes(below_bytes), None)])
    }
}

/// gnop's counters of a nop provider, from what the stack counted (`g_nop_dumpconf`).
#[must_use]
pub fn counters(totals: &Totals) -> Vec<(&'static str, u64)> {
    let operations = |command: Command| totals.operations[command as usize];
    let bytes = |command: Command| totals.bytes[command as usize];
    vec![
        ("Reads", operations(Command::Read)),
        ("Writes", operations(Command::Write)),
        ("Deletes", operations(Command::Delete)),
        ("Getattrs", operations(Command::GetAttr)),
        ("Flushes", operations(Command::Flush)),
        ("ReadBytes", bytes(Command::Read)),
        ("WroteBytes", bytes(Command::Write)),
    ]
}
