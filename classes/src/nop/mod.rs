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
//! The options choose one of two geoms, so that a stack does not pay for unused options: [`Pass`]
//! only translates, [`Faulty`] decides about each request. GEOM's counterpart is `gnop(8)`
//! (`sys/geom/nop/g_nop.c`): the same options, the same checks, the same order (count, failure,
//! delay). Its counters are those that the stack keeps of every provider: [`counters`].

mod errors;
mod options;
mod start;
mod state;
#[cfg(test)]
mod tests;

pub use state::{Faults, Window};

use crate::build::{BuildContext, BuildError};
use crate::entry::{Build, ClassEntry, Role};
use crate::physpath;
use crate::spec::LayerArguments;
use options::Settings;
use state::Decider;
use std::sync::Arc;
use ugeom_stack::{
    Command, Cx, Fact, Geom, Next, Plan, ProviderPlan, ProviderView, Request, Totals,
};

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "nop",
    class: "NOP",
    about: "passes requests on; can move, shrink, fail and delay them",
    role: Role::Layer,
    positional: &[],
    options: &options::OPTIONS,
    build: Build::Layer(build),
    taste: None,
};

/// The geom that only translates.
pub struct Pass {
    window: Window,
    /// The physical path that it reports; without one that of the provider below.
    physpath: Option<String>,
    hook: bool,
}

impl Pass {
    /// Shows a part of the provider below. With `hook` it also asks to see requests come back,
    /// and does nothing then: what a completion hook costs.
    pub const fn new(window: Window, hook: bool) -> Self {
        Self {
            window,
            physpath: None,
            hook,
        }
    }

    /// Reports another physical path than the provider below (`gnop create -z`).
    #[must_use]
    fn reporting(self, physpath: Option<String>) -> Self {
        Self { physpath, ..self }
    }
}

impl Geom for Pass {
    #[inline]
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::translate(self.window.offset_bytes, request)
    }

    fn attribute(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        physpath::answer(self.physpath.as_ref(), request, |it| self.start(it, cx))
    }

    fn shift(&self, _port: u16) -> Option<u64> {
        Some(self.window.offset_bytes)
    }

    fn wants_done(&self) -> bool {
        self.hook
    }

    /// It keeps no data, so a writer below does not make it wrong. gnop has
    /// no `spoiled` method either.
    fn survives_spoil(&self) -> bool {
        true
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        self.window.resized(mediasize_bytes)
    }

    fn config(&self) -> Vec<Fact> {
        vec![("Offset", self.window.offset_bytes.to_string())]
    }
}

/// The geom that decides about each read and write whether it fails, is delayed, or passes.
pub struct Faulty {
    pass: Pass,
    decider: Decider,
}

impl Faulty {
    /// Passes a request without a fault on, as `pass` does.
    pub const fn new(pass: Pass, faults: Faults) -> Self {
        Self {
            pass,
            decider: Decider::new(faults),
        }
    }
}

impl Geom for Faulty {
    fn position(&self, _port: u16) -> Option<u64> {
        Some(self.pass.window.offset_bytes)
    }

    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::decide(&self.decider, self.pass.window.offset_bytes, request)
    }

    /// No fault is for attributes.
    fn attribute(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        self.pass.attribute(request, cx)
    }

    /// The delay is over.
    fn resume(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        self.pass.start(request, cx)
    }

    fn wants_done(&self) -> bool {
        self.pass.wants_done()
    }

    fn survives_spoil(&self) -> bool {
        self.pass.survives_spoil()
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        self.pass.resize(mediasize_bytes)
    }

    fn config(&self) -> Vec<Fact> {
        let mut config = self.pass.config();
        config.extend(self.decider.config());
        config
    }
}

fn build(
    _context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
    below: &ProviderView,
) -> Result<Plan, BuildError> {
    let settings = Settings::read(&arguments, below)?;
    let name = format!("{}.nop", below.name);
    let mediasize_bytes = settings.window.size_bytes(below.mediasize_bytes);
    let provider = ProviderPlan {
        name,
        mediasize_bytes,
        padding_bytes: below.padding_within(settings.window.offset_bytes, mediasize_bytes),
        sectorsize_bytes: settings.window.sectorsize_bytes,
        stripesize_bytes: settings.stripesize_bytes,
        stripeoffset_bytes: settings.stripeoffset_bytes,
        ..ProviderPlan::default()
    };
    let pass = Pass::new(settings.window, settings.hook).reporting(settings.physpath);
    let geom: Arc<dyn Geom> = match settings.faults {
        None => Arc::new(pass),
        Some(faults) => Arc::new(Faulty::new(pass, faults)),
    };
    Ok(Plan::of(provider, geom))
}

/// gnop's counters of a nop provider, from the counters of the stack (`g_nop_dumpconf`).
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
