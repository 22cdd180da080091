//! A compressed disk: gzip, xz or zstd, decompressed where it is read.
//!
//! ```text
//!        caller
//!          | READ 4096 at 512
//!     disk.img.xz
//!          |
//!     a worker thread:  the section that holds the byte     reader
//!          |              in memory, or spilled?            store
//!          |              a decoder that has not passed it, else a new one at the section's start
//!     disk.img.xz
//! ```
//!
//! A *section* is data that a decoder can begin with: a block of xz, a frame of zstd, the data
//! after a checkpoint of gzip. A section is decoded in pieces, from its start on. The last pieces
//! stay in memory. A section that is too long to be decoded again and again is kept in a file
//! without a name, as far as it has been decoded, so that each of its bytes is decoded once.

mod gzip;
mod input;
mod reader;
mod section;
mod store;
#[cfg(test)]
mod tests;
mod xz;
mod zstd;

use super::pool::Pool;
use super::{ImageFormat, Settings, malformed};
use crate::build::{BuildContext, BuildError, mark_of_padding};
use crate::locking::{self, Holder};
use crate::path::path_of;
use reader::Reader;
use rustix::fs::{FileType, Mode, OFlags};
use section::{Damage, Sections};
use std::fs::File;
use std::sync::Arc;
use ugeom_stack::{
    AccessChange, AttributeValue, Bio, Command, Cx, Delta, Errno, Extent, ExtentKind, Geom, Next,
    Plan, ProviderPlan, Request,
};

/// The geom of a compressed disk.
struct Packed {
    pool: Pool,
}

impl Geom for Packed {
    fn start(&self, mut request: Request<'_>, _: &mut Cx) -> Next {
        match request.command() {
            Command::GetAttr if request.attribute() == "GEOM::candelete" => {
                request.answer(AttributeValue::Number(0))
            }
            Command::GetAttr => request.done(Err(Errno::OPNOTSUPP)),
            Command::Read => {
                let (bio, next) = request.park();
                self.pool.submit(bio);
                next
            }
            // Nothing was written that could be lost.
            Command::Flush => request.done_in_full(),
            Command::Extents => {
                let length_bytes = request.length();
                let kind = ExtentKind::Data;
                request.add_extent(Extent { length_bytes, kind });
                request.finish()
            }
            Command::Write | Command::Delete | Command::Zero => request.done(Err(Errno::ROFS)),
        }
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        if change.delta.write > 0 {
            return Err(Errno::ROFS);
        }
        Ok(Vec::new())
    }
}

/// Opens a compressed disk.
///
/// # Errors
/// It is damaged where its frame is read, or its data where that has no index.
pub(super) fn plan(
    context: &BuildContext<'_>,
    settings: &Settings<'_>,
) -> Result<Plan, BuildError> {
    let path = settings.path;
    let file = open(path)?;
    if !settings.shared && !context.unlocked() {
        locking::lock(path, &file, Holder::MapReader)?;
    }
    let file = Arc::new(file);
    let opened = sections(&file, settings.format).and_then(|sections| {
        let reader = Reader::new(sections);
        // A file without an index is decoded once here, so that its size is known.
        reader.measure()?;
        Ok(reader)
    });
    let reader = opened.map_err(|damage| malformed(path, &damage.to_string()))?;
    let size_bytes = reader.size_bytes();
    if size_bytes == 0 {
        return Err(BuildError::refused(path, "contains a disk of 0 bytes"));
    }
    let shown = path.to_owned();
    let pool = Pool::start(move |bio| work(&reader, &shown, bio));
    let pool = pool.map_err(BuildError::system("file", "starting a thread"))?;
    Ok(Plan::of(
        provider(settings, size_bytes),
        Arc::new(Packed { pool }),
    ))
}

fn provider(settings: &Settings<'_>, size_bytes: u64) -> ProviderPlan {
    let sector_bytes = u64::from(settings.sector_bytes);
    let mediasize_bytes = size_bytes.next_multiple_of(sector_bytes);
    let padding_bytes = (mediasize_bytes - size_bytes) as u32;
    let mut config = super::facts(settings);
    config.push(("access", "read-only".into()));
    ProviderPlan {
        name: settings.name.clone(),
        mediasize_bytes,
        sectorsize_bytes: settings.sector_bytes,
        padding_bytes,
        mark: (padding_bytes > 0).then(|| mark_of_padding(size_bytes, padding_bytes)),
        config,
        ..ProviderPlan::default()
    }
}

/// The sections of a file, as far as its frame states them.
fn sections(file: &Arc<File>, format: ImageFormat) -> Result<Sections, Damage> {
    match format {
        ImageFormat::Gzip => gzip::sections(file),
        ImageFormat::Xz => xz::sections(file),
        _ => zstd::sections(file),
    }
}

fn open(path: &str) -> Result<File, BuildError> {
    let system = BuildError::open(path);
    // A FIFO would wait for a writer.
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::RDONLY;
    let file = rustix::fs::open(path_of(path), flags, Mode::empty()).map_err(system)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(system)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::BlockDevice) {
        return Err(BuildError::refused(path, "is no regular file"));
    }
    Ok(File::from(file))
}

/// Reads, and completes the request.
fn work(reader: &Reader, path: &str, mut bio: Bio) {
    let (offset, length) = (bio.offset(), bio.length());
    let mut done = Ok(());
    bio.fill(|at, piece| {
        if done.is_ok() {
            done = reader.read(offset + at, piece);
        }
    });
    match done {
        Ok(()) => bio.complete(Ok(length)),
        Err(damage) => {
            if damage.is_first {
                log::warn!("{path}: {damage}");
            }
            bio.fail(Errno::IO, "the compressed data cannot be read there");
        }
    }
}
