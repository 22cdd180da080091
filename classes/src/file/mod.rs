//! `file`: an image or a block device as the bottom of a stack.
//!
//! ```text
//!        caller                                  its thread sleeps on the engine's descriptor
//!          | READ 4096 at 512                                  ^
//!       disk.img            start: park the bio, submit        |
//!          |                poll:  reap, complete --------------
//!     engine (one a thread: io_uring, libaio, ...)
//!          |
//!     file or block device
//! ```
//!
//! Requests complete asynchronously: each thread has an I/O engine of its own, which owns the bio
//! while the kernel works on its memory. Images are opened read-only unless the user asks for
//! writing, and then locked; block devices are opened exclusively, so that a mounted one is
//! refused. GEOM's counterparts are the class `DISK` and `md(4)` of type `vnode`.

mod data_run;
mod facts;
mod open;
mod options;
mod own;
mod start;
mod state;
#[cfg(test)]
mod tests;

use crate::build::{BuildContext, BuildError, mark_of_padding, refuse_in_use};
use crate::engines::Engines;
use crate::entry::{Build, ClassEntry, Role};
use crate::failures::Failures;
use crate::image::{self, FileKind};
use crate::path::path_of;
use crate::presence::Presence;
use crate::spec::LayerArguments;
use facts::Facts;
use open::Opened;
pub use open::refuse_open_elsewhere;
use options::Settings;
use state::ThreadEngine;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_engine::Choice;
use ugeom_stack::{
    AccessChange, Cx, Delta, Errno, Fact, Geom, LocalKey, Losses, Next, Plan, ProviderPlan,
    Request, ThreadState,
};

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "file",
    class: "FILE",
    about: "an image or a block device",
    role: Role::Bottom,
    positional: &["path"],
    options: &options::OPTIONS,
    build: Build::Bottom(build),
    taste: None,
};

/// The geom of an image or block device.
pub struct FileGeom {
    file: Arc<File>,
    /// The images behind a loop device that is open for writing; their locks end with them.
    _behind: Vec<File>,
    facts: Facts,
    engines: Engines,
    key: LocalKey,
    /// Writes that the system could not bring to the media.
    losses: Arc<Losses>,
    failures: Arc<Failures>,
}

impl Geom for FileGeom {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::start(self, request, cx)
    }

    fn thread_state(&self) -> Result<Box<dyn ThreadState>, Errno> {
        let engine = self.engines.of_thread()?;
        let state = ThreadEngine::new(&self.file, engine, &self.facts, &self.failures)?;
        Ok(Box::new(state))
    }

    fn local_key(&self) -> Option<LocalKey> {
        Some(self.key)
    }

    fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }

    fn media_bytes(&self) -> Option<u64> {
        let Facts {
            size_bytes,
            sector_bytes,
            may_grow,
            ..
        } = &self.facts;
        let size = open::size_of(&self.file).ok().filter(|_| *may_grow)?;
        // The provider's padding does not change, so it ends with a whole sector.
        let whole = size - size % sector_bytes;
        let before = size_bytes.fetch_max(size, Ordering::Relaxed);
        (whole > before).then_some(whole)
    }

    fn ends_with_process(&self) -> Option<&'static str> {
        self.facts.presence.as_ref()?.lost()
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        if change.delta.write > 0 && !self.facts.writable {
            return Err(Errno::ROFS);
        }
        Ok(Vec::new())
    }

    fn config(&self) -> Vec<Fact> {
        vec![("engine", self.engines.why())]
    }
}

fn build(
    context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
) -> Result<Plan, BuildError> {
    let settings = Settings::read(&arguments)?;
    let direct = settings.direct.unwrap_or(context.direct());
    let path = settings.path.clone();
    let engine = (settings.engine, settings.guasi);
    if context.writable() && !context.unlocked() {
        refuse_in_use(&path_of(&path), &path)?;
    }
    let kind = open::file_kind(&path, settings.format)?;
    if let FileKind::Image(format) = kind {
        let image = image::Settings {
            path: &path,
            name: context.free_name(open::name_of(&path)),
            format,
            backing: settings.backing,
            shared: settings.shared || context.unlocked(),
            sector_bytes: settings.sector_bytes.unwrap_or(open::SECTORSIZE),
            engine,
        };
        return image::plan(context, image);
    }
    let wanted = open::Wanted {
        writable: context.writable(),
        direct,
        shared: settings.shared,
        unlocked: context.unlocked(),
        relayout: context.relayout(),
        sectorsize: settings.sector_bytes,
        disk_bytes: match kind {
            FileKind::FixedVhd { disk_bytes } => Some(disk_bytes),
            _ => None,
        },
    };
    let mut opened = open::open(&path, wanted)?;
    opened.name = context.free_name(opened.name);
    if settings.engine == Choice::Mmap && direct {
        let problem = "a mapped file is always buffered (page cache): \
                       engine=mmap and direct=1 exclude each other";
        return Err(BuildError::refused(&path, problem));
    }
    let engines = Engines::open(&path, engine)?;
    plan(
        &path,
        opened,
        (engines, settings.engine != Choice::Simulated),
        (settings.fwsectors, settings.fwheads),
    )
}

fn plan(
    path: &str,
    opened: Opened,
    (engines, may_skip): (Engines, bool),
    (fwsectors, fwheads): (u64, u64),
) -> Result<Plan, BuildError> {
    let name = opened.name.clone();
    let sectorsize = u64::from(opened.sectorsize);
    let mediasize_bytes = opened.size.next_multiple_of(sectorsize);
    let padding_bytes = (mediasize_bytes - opened.size) as u32;
    let mark = (padding_bytes > 0).then(|| mark_of_padding(opened.size, padding_bytes));
    let losses = Arc::<Losses>::default();
    let watched = opened
        .writable
        .then(|| Presence::watch_size(path, &losses))
        .flatten();
    let facts = Facts {
        path: path_of(path),
        size_bytes: Arc::new(AtomicU64::new(opened.size)),
        data_run: Arc::default(),
        sector_bytes: sectorsize,
        may_grow: !opened.has_footer,
        writable: opened.writable,
        presence: watched,
        shows_holes: may_skip && !opened.block_device,
        align_bytes: opened.align_bytes,
        fwsectors,
        fwheads,
    };
    let provider = ProviderPlan {
        name,
        mediasize_bytes,
        sectorsize_bytes: opened.sectorsize,
        stripesize_bytes: opened.stripesize,
        stripeoffset_bytes: 0,
        padding_bytes,
        mark,
        config: vec![
            ("file", path.to_owned()),
            ("type", opened.kind().into()),
            (
                "access",
                if opened.writable {
                    "read-write"
                } else {
                    "read-only"
                }
                .into(),
            ),
        ],
    };
    let geom = FileGeom {
        file: Arc::new(opened.file),
        _behind: opened.behind,
        facts,
        engines,
        key: LocalKey::new(),
        failures: Arc::new(Failures::new(&losses, state::BESIDE)),
        losses,
    };
    Ok(Plan::of(provider, Arc::new(geom)))
}
