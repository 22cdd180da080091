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

mod open;
mod start;
mod state;
#[cfg(test)]
mod tests;

use crate::build::{BuildContext, BuildError};
use crate::registry::{Build, ClassEntry, OptionDoc, Role};
use crate::spec::Options;
use open::Opened;
use start::Facts;
use state::ThreadEngine;
use std::fs::File;
use std::sync::Arc;
use ugeom_engine::{Choice, EngineOptions, GuasiOptions};
use ugeom_stack::{
    AccessChange, Cx, Delta, Errno, Geom, LocalKey, Next, Plan, ProviderPlan, Request, ThreadState,
};

/// The registry's line.
pub const ENTRY: ClassEntry = ClassEntry {
    name: "file",
    class: "FILE",
    about: "an image or a block device",
    role: Role::Bottom,
    positional: &["path"],
    options: &[
        OptionDoc {
            name: "path",
            value: "PATH",
            about: "the image or block device",
        },
        OptionDoc {
            name: "engine",
            value: "auto|io_uring|guasi|libaio|sync|seek|mmap|simulated",
            about: "how I/O is done; auto takes io_uring where it is allowed, else guasi [auto]",
        },
        OptionDoc {
            name: "workers",
            value: "MIN..MAX|MAX",
            about: "threads of engine=guasi [1..256]",
        },
        OptionDoc {
            name: "backend",
            value: "workers|ring|auto",
            about: "who makes the calls of engine=guasi: threads, or io_uring [workers]",
        },
        OptionDoc {
            name: "direct",
            value: "0|1",
            about: "past the system's cache (O_DIRECT) [as the command says, else 0]",
        },
        OptionDoc {
            name: "sectorsize",
            value: "SIZE",
            about: "size of a sector of an image, a power of two from 512 to 1m [512]",
        },
        OptionDoc {
            name: "shared",
            value: "0|1",
            about: "read a block device that somebody else uses, too [0]",
        },
        OptionDoc {
            name: "fwsectors",
            value: "N",
            about: "sectors of a track, as firmware would say (mdconfig -x) [none]",
        },
        OptionDoc {
            name: "fwheads",
            value: "N",
            about: "heads, as firmware would say (mdconfig -y) [none]",
        },
    ],
    build: Build::Bottom(build),
    taste: None,
};

/// How many requests one thread's engine hands to the kernel at a time; more wait in the engine.
const ENGINE_DEPTH: u32 = 256;

/// The geom of an image or block device.
pub struct FileGeom {
    file: Arc<File>,
    facts: Facts,
    engine: Choice,
    options: EngineOptions,
    /// The engine's name and why it is this one.
    why: String,
    key: LocalKey,
}

impl Geom for FileGeom {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::start(self, request, cx)
    }

    fn thread_state(&self) -> Result<Box<dyn ThreadState>, Errno> {
        let state = ThreadEngine::new(
            &self.file,
            (self.engine, self.options),
            self.facts.align_bytes,
        )?;
        Ok(Box::new(state))
    }

    fn local_key(&self) -> Option<LocalKey> {
        Some(self.key)
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        if change.delta.write > 0 && !self.facts.writable {
            return Err(Errno::ROFS);
        }
        Ok(Vec::new())
    }

    fn config(&self) -> Vec<(String, String)> {
        vec![("engine".into(), self.why.clone())]
    }
}

fn build(context: &mut BuildContext<'_>, mut options: Options<'_>) -> Result<Plan, BuildError> {
    let engines = Choice::ALL.map(|choice| (choice.name(), choice));
    let engine = options.take_choice(&engines, "engine")?.unwrap_or_default();
    let guasi = take_guasi(&mut options, engine)?;
    let engine_options = EngineOptions {
        depth: ENGINE_DEPTH,
        guasi,
    };
    let direct = options.take_bool("direct")?.unwrap_or(context.direct());
    let shared = options.take_bool("shared")?.unwrap_or(false);
    let sectorsize = match options.take_size("sectorsize")? {
        Some(size) if !size.is_power_of_two() || !(512..=1 << 20).contains(&size) => {
            let message = "a sector size is a power of two from 512 to 1m";
            return Err(options.invalid("sectorsize", message).into());
        }
        size => size.map(|size| size as u32),
    };
    let fwsectors = options.take_u64_in(0..=255, "fwsectors")?.unwrap_or(0);
    let fwheads = options.take_u64_in(0..=65_535, "fwheads")?.unwrap_or(0);
    let path = options.take_str("path").unwrap_or("").to_owned();
    if path.is_empty() {
        return Err(options.missing("path").into());
    }
    options.finish()?;
    let wanted = open::Wanted {
        writable: context.writable(),
        direct,
        shared,
        unlocked: context.unlocked(),
        sectorsize,
    };
    let opened = open::open(&path, wanted)?;
    let why = check_engine(engine, engine_options, direct, &path)?;
    let chosen = (engine, engine_options, why);
    plan(&path, opened, chosen, (fwsectors, fwheads))
}

/// What is said about the engine `guasi`, where it may be the one.
fn take_guasi(options: &mut Options<'_>, engine: Choice) -> Result<GuasiOptions, BuildError> {
    let mut guasi = GuasiOptions::default();
    for key in ["workers", "backend"] {
        let Some(text) = options.take_str(key) else {
            continue;
        };
        let read = match key {
            "workers" => text.parse().map(|workers| guasi.workers = Some(workers)),
            _ => text.parse().map(|backend| guasi.backend = backend),
        };
        read.map_err(|message| options.invalid(key, message))?;
        if !matches!(engine, Choice::Guasi | Choice::Auto) {
            let message = format!("{key} is for engine=guasi");
            return Err(options.invalid(key, message).into());
        }
    }
    Ok(guasi)
}

/// An engine that cannot work here is an error now and not with the first request. Returns why it
/// is this engine.
fn check_engine(
    engine: Choice,
    options: EngineOptions,
    direct: bool,
    path: &str,
) -> Result<String, BuildError> {
    let refused = |problem| BuildError::Refused {
        path: path.to_owned(),
        problem,
    };
    if engine == Choice::Mmap && direct {
        let problem = "a mapped file always goes through the system's cache: \
                       engine=mmap and direct=1 cannot both be had";
        return Err(refused(problem.to_owned()));
    }
    let options = EngineOptions {
        depth: 1,
        ..options
    };
    let tried = ugeom_engine::open_engine_with::<ugeom_machine::buffer::Buffer>(engine, options);
    tried.map(|(_, why)| why).map_err(|error| {
        let problem = format!("{error} (engine=auto takes what there is)");
        refused(problem)
    })
}

fn plan(
    path: &str,
    opened: Opened,
    (engine, options, why): (Choice, EngineOptions, String),
    (fwsectors, fwheads): (u64, u64),
) -> Result<Plan, BuildError> {
    let name = opened.name.clone();
    let sectorsize = u64::from(opened.sectorsize);
    let mediasize_bytes = opened.size / sectorsize * sectorsize;
    let left = opened.size - mediasize_bytes;
    let mark = (left > 0).then(|| format!("the last {left} bytes are no whole sector: left out"));
    let facts = Facts {
        writable: opened.writable,
        block_device: opened.block_device,
        align_bytes: opened.align_bytes,
        fwsectors,
        fwheads,
    };
    let provider = ProviderPlan {
        name: name.clone(),
        mediasize_bytes,
        sectorsize_bytes: opened.sectorsize,
        stripesize_bytes: opened.stripesize,
        stripeoffset_bytes: 0,
        mark,
        config: vec![
            ("file".into(), path.to_owned()),
            (
                "type".into(),
                if opened.block_device {
                    "block device"
                } else {
                    "image"
                }
                .into(),
            ),
            (
                "access".into(),
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
        facts,
        engine,
        options,
        why,
        key: LocalKey::new(),
    };
    Ok(Plan {
        name,
        geom: Arc::new(geom),
        providers: vec![provider],
    })
}
