//! qcow2 in this process: `imago` knows the map of clusters, the engine of the thread moves the
//! data in plain clusters, and worker threads do the rest: compressed clusters, requests over
//! clusters that lie apart, allocation, zeroes, FLUSH.

mod bounds;
mod guard;
mod layout;
mod start;
mod state;
mod unclosed;
mod work;

use super::Settings;
use super::chain::Link;
use super::pool::Pool;
use crate::build::{BuildContext, BuildError, mark_of_padding};
use crate::engines::Engines;
use crate::failures::Failures;
use crate::locking::{self, Holder};
use crate::path::text_of;
use crate::presence::Presence;
use bounds::{Bounds, Damage};
use guard::Guard;
use imago::qcow2::Qcow2;
use imago::raw::Raw;
use imago::{FormatAccess, Storage, StorageOpenOptions};
use layout::Map;
use state::ThreadEngine;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use ugeom_engine::{Checks, Layout, OrderedFile};
use ugeom_stack::{
    AccessChange, Command, Cx, Delta, Errno, Fact, Geom, IoError, LocalKey, Losses, Next, Plan,
    ProviderPlan, Request, ThreadState,
};
use unclosed::Unclosed;
use work::errno_of;

/// An image that is open, with all images that it is based on.
type Image = FormatAccess<OrderedFile>;

struct ChainFile {
    /// The address of the storage object that means it.
    address: usize,
    file: Arc<File>,
    /// Where it ends; none for a raw image, whose end is the end of its disk.
    bounds: Option<Arc<Bounds>>,
}

/// The geom of a qcow2 image.
struct Qcow2Geom {
    name: String,
    image: Arc<Image>,
    files: Vec<ChainFile>,
    writable: bool,
    engines: Engines,
    key: LocalKey,
    losses: Arc<Losses>,
    failures: Arc<Failures>,
    unclosed: Arc<Option<Unclosed>>,
    /// Nothing where the image is only read.
    guard: Arc<Option<Guard>>,
    pool: Pool,
    presence: Option<Presence>,
}

impl Geom for Qcow2Geom {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::start(self, request, cx)
    }

    fn thread_state(&self) -> Result<Box<dyn ThreadState>, Errno> {
        let files = self.files.iter().map(|it| &it.file);
        Ok(Box::new(ThreadEngine::new(
            files,
            self.engines.of_thread()?,
            &self.failures,
        )?))
    }

    fn local_key(&self) -> Option<LocalKey> {
        Some(self.key)
    }

    /// Marks the image as closed when its last writer leaves.
    fn settle(&self) -> Result<(), IoError> {
        let Some(unclosed) = self.unclosed.as_ref() else { return Ok(()) };
        let closed = self
            .image
            .flush()
            .and_then(|()| self.image.sync())
            .and_then(|()| unclosed.clear());
        closed.map_err(|error| IoError {
            errno: errno_of(&error),
            command: Command::Flush,
            provider: self.name.clone(),
            offset_bytes: 0,
            length_bytes: 0,
            reason: "the image could not be closed: its header may be marked dirty, and qemu \
                     repairs it"
                .into(),
        })
    }

    fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }

    fn ends_with_process(&self) -> Option<&'static str> {
        self.presence.as_ref()?.lost()
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        if change.delta.write > 0 && !self.writable {
            return Err(Errno::ROFS);
        }
        Ok(Vec::new())
    }

    fn config(&self) -> Vec<Fact> {
        vec![("engine", self.engines.why())]
    }
}

/// Opens an image with the chain of images that back it.
///
/// # Errors
/// A file is in use, or an image is damaged.
pub(super) fn plan(
    context: &BuildContext<'_>,
    settings: Settings<'_>,
    chain: Vec<Link>,
) -> Result<Plan, BuildError> {
    let writable = context.writable();
    let config = super::facts(&settings);
    let Settings { path, name, .. } = settings;
    let header = chain[0].header.as_ref();
    let size_bytes = header.map_or(0, |header| header.size_bytes);
    let cluster_bytes = header.map_or(1, |header| header.cluster_bytes);
    if !settings.shared && !context.unlocked() {
        lock(&chain, writable)?;
    }
    let sector_bytes = u64::from(settings.sector_bytes);
    if writable && !size_bytes.is_multiple_of(sector_bytes) {
        let problem = format!(
            "cannot be written to: its disk of {size_bytes} bytes ends within a sector of \
             {sector_bytes} bytes"
        );
        return Err(BuildError::refused(path, problem));
    }
    let below: Vec<String> = chain[1..].iter().map(|link| text_of(&link.path)).collect();
    let refused = |error: io::Error| BuildError::refused(path, error.to_string());
    let (unclosed, guard) = match (writable, header) {
        (true, Some(header)) => {
            let file = || chain[0].file.try_clone().map_err(refused);
            let guard = Guard::new(file()?, header).map_err(refused)?;
            (Some(Unclosed::new(file()?)), Some(guard))
        }
        _ => (None, None),
    };
    let (unclosed, guard) = (Arc::new(unclosed), Arc::new(guard));
    let (image, files) = open(chain, writable).map_err(refused)?;
    let image = Arc::new(image);
    let losses = Arc::<Losses>::default();
    let failures = Arc::new(Failures::new(&losses, work::BESIDE));
    let worked = work::Worked {
        image: Arc::clone(&image),
        cluster_bytes,
        failures: Arc::clone(&failures),
        unclosed: Arc::clone(&unclosed),
        guard: Arc::clone(&guard),
    };
    let pool = Pool::start(move |bio| worked.work(bio));
    let pool = pool.map_err(BuildError::system("file", "starting a thread"))?;
    let engines = Engines::open(path, settings.engine)?;
    let geom = Qcow2Geom {
        name: name.clone(),
        image,
        files,
        writable,
        engines,
        key: LocalKey::new(),
        losses,
        failures,
        unclosed,
        guard,
        pool,
        presence: writable.then(|| Presence::watch(path)).flatten(),
    };
    let provider = provider(
        &name,
        config,
        (size_bytes, sector_bytes),
        (writable, &below),
    );
    Ok(Plan::of(provider, Arc::new(geom)))
}

/// The top image for changes, those below for reading.
fn lock(chain: &[Link], writable: bool) -> Result<(), BuildError> {
    for (number, link) in chain.iter().enumerate() {
        let holder = match writable && number == 0 {
            true => Holder::Changer,
            false => Holder::MapReader,
        };
        locking::lock(&text_of(&link.path), &link.file, holder)?;
    }
    Ok(())
}

fn provider(
    name: &str,
    mut config: Vec<Fact>,
    (size_bytes, sector_bytes): (u64, u64),
    (writable, below): (bool, &[String]),
) -> ProviderPlan {
    let mediasize_bytes = size_bytes.next_multiple_of(sector_bytes);
    let padding_bytes = (mediasize_bytes - size_bytes) as u32;
    let access = if writable { "read-write" } else { "read-only" };
    config.push(("access", access.to_owned()));
    if !below.is_empty() {
        config.push(("backing", below.join(", ")));
    }
    ProviderPlan {
        name: name.to_owned(),
        mediasize_bytes,
        sectorsize_bytes: sector_bytes as u32,
        padding_bytes,
        mark: (padding_bytes > 0).then(|| mark_of_padding(size_bytes, padding_bytes)),
        config,
        ..ProviderPlan::default()
    }
}

/// The images on each other, from the lowest up, and their files.
fn open(chain: Vec<Link>, writable: bool) -> io::Result<(Image, Vec<ChainFile>)> {
    let mut below: Option<Image> = None;
    let mut files = Vec::new();
    let count = chain.len();
    for (number, link) in chain.into_iter().rev().enumerate() {
        let writes = writable && number + 1 == count;
        let file = Arc::new(link.file.try_clone()?);
        let bounds = link
            .header
            .as_ref()
            .map(|header| Arc::new(Bounds::new(Arc::clone(&file), header.cluster_bytes)));
        let storage = storage(&link, bounds.as_ref(), writes)?;
        files.push((link.path, file, bounds));
        below = Some(match link.header {
            None => FormatAccess::new(Raw::open_image(storage, false)?),
            Some(_) => {
                let mut image: Qcow2<_, Image> = Qcow2::open_image(storage, writes)?;
                image.set_data_file(None);
                image.set_backing(below.take());
                FormatAccess::new(image)
            }
        });
    }
    let image = below.ok_or_else(|| io::Error::other("there is no image"))?;
    let storages = image.inner().collect_storage_dependencies();
    let address = |path: &PathBuf| {
        let found = storages
            .iter()
            .find(|it| it.get_filename().as_ref() == Some(path));
        found.map(|storage| std::ptr::from_ref(*storage) as usize)
    };
    let files = files.into_iter().filter_map(|(path, file, bounds)| {
        Some(ChainFile {
            address: address(&path)?,
            file,
            bounds,
        })
    });
    let files = files.collect();
    Ok((image, files))
}

/// A file of the chain as `imago` reads and writes it.
fn storage(link: &Link, bounds: Option<&Arc<Bounds>>, writes: bool) -> io::Result<OrderedFile> {
    let options = StorageOpenOptions::new().filename(&link.path).write(writes);
    let file = imago::file::File::from_open_file(link.file.try_clone()?, options)?;
    let (Some(header), Some(bounds)) = (&link.header, bounds) else {
        return Ok(OrderedFile::new(file, None, None));
    };
    let layout = match writes {
        true => Some(Box::new(Map::open(link.file.try_clone()?, header)?) as Box<dyn Layout>),
        false => None,
    };
    let damage = Damage::new(bounds, header, writes)?;
    let checks = Some(Box::new(damage) as Box<dyn Checks>);
    Ok(OrderedFile::new(file, layout, checks))
}
