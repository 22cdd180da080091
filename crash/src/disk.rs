//! A disk whose content changes in one step: a durable image in a file, and blocks over it that
//! were written since, to be dropped at once.

use crate::error::{CrashError, open, os};
use rustix::fs::FallocateFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use ugeom_classes::crash::Recorder;
use ugeom_format::crash_log::Entry;
use ugeom_machine::mutex::RwLock;
use ugeom_stack::{
    AttributeValue, Command, Cx, Errno, Extent, ExtentKind, Geom, Next, Plan, ProviderPlan, Request,
};

/// The unit of copying on write, bytes.
const BLOCK_BYTES: u64 = 4096;
/// The size of a sector, bytes.
pub(crate) const SECTOR_BYTES: u32 = 512;

type Blocks = HashMap<u64, Box<[u8]>>;

struct Media {
    image: File,
    size_bytes: u64,
    /// The writes over the image; `None`: writes go to the image.
    blocks: Option<RwLock<Blocks>>,
    recorder: Option<Arc<Recorder>>,
}

/// A disk that is recorded, or one that shows a crash state. Its clones are the same disk.
#[derive(Clone)]
pub struct Disk {
    media: Arc<Media>,
}

impl Disk {
    /// An empty disk, its image in an unnamed file of `folder`.
    pub(crate) fn new(
        folder: &Path,
        size_bytes: u64,
        copy_on_write: bool,
    ) -> Result<Self, CrashError> {
        let image = tempfile::tempfile_in(folder).map_err(os("making an image", folder))?;
        let sized = image.set_len(size_bytes);
        sized.map_err(os("making an image", folder))?;
        Ok(Self {
            media: Arc::new(Media {
                image,
                size_bytes,
                blocks: copy_on_write.then(RwLock::default),
                recorder: None,
            }),
        })
    }

    /// The same disk, whose writes and flushes are recorded.
    pub(crate) fn recorded(&self, recorder: Arc<Recorder>) -> Result<Self, CrashError> {
        let image = self.media.image.try_clone();
        Ok(Self {
            media: Arc::new(Media {
                image: image.map_err(open(Path::new("the image")))?,
                size_bytes: self.media.size_bytes,
                blocks: None,
                recorder: Some(recorder),
            }),
        })
    }

    /// The size of the media, bytes.
    pub fn size_bytes(&self) -> u64 {
        self.media.size_bytes
    }

    /// Reads the current content: all writes so far, volatile or not.
    ///
    /// # Errors
    /// The range is not on the media (`InvalidInput`), or the error of the system.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.check(offset, into.len())?;
        self.media.read(offset, into)
    }

    /// Writes at `offset`; durable after the next [`Disk::flush`].
    ///
    /// # Errors
    /// As [`Disk::read`]; a recorded disk takes whole sectors of 512 bytes only.
    pub fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.write_with(offset, from, false)
    }

    /// Writes at `offset`, and returns when that is durable (FUA).
    ///
    /// # Errors
    /// As [`Disk::write`].
    pub fn write_durably(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.write_with(offset, from, true)
    }

    fn write_with(&self, offset: u64, from: &[u8], fua: bool) -> io::Result<()> {
        self.check(offset, from.len())?;
        let Some(recorder) = self.media.recorder.as_ref().filter(|_| !from.is_empty()) else {
            return self.media.write(offset, from);
        };
        let sector = u64::from(SECTOR_BYTES);
        if !offset.is_multiple_of(sector) || !(from.len() as u64).is_multiple_of(sector) {
            return Err(invalid("a recorded write has whole sectors of 512 bytes"));
        }
        let entry = Entry::Write {
            offset_bytes: offset,
            length_bytes: from.len() as u64,
            fua,
        };
        let number = recorder.submitted(entry, |with| with(from));
        let number = number.map_err(io::Error::other)?;
        let written = self.media.write(offset, from);
        recorder.completed(number, fua && written.is_ok());
        written
    }

    /// Makes everything that was written before durable.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn flush(&self) -> io::Result<()> {
        if let Some(recorder) = &self.media.recorder {
            let ticket = recorder.flush();
            recorder.flushed(ticket, true);
        }
        Ok(())
    }

    fn check(&self, offset: u64, length: usize) -> io::Result<()> {
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| end > self.media.size_bytes) {
            return Err(invalid("the range is not on the media"));
        }
        Ok(())
    }

    /// Drops the writes over the image.
    pub(crate) fn reset(&self) {
        if let Some(blocks) = &self.media.blocks {
            blocks.write().clear();
        }
    }

    /// Makes the image empty.
    pub(crate) fn wipe(&self) -> io::Result<()> {
        self.reset();
        self.media.image.set_len(0)?;
        self.media.image.set_len(self.media.size_bytes)
    }

    /// Writes to the image itself.
    pub(crate) fn write_image(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.media.image.write_all_at(from, offset)
    }

    /// Makes a range of the image zeroes.
    pub(crate) fn zero_image(&self, offset: u64, length: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.media.image, hole, offset, length) {
            Ok(()) => Ok(()),
            Err(_) => each_piece(offset, length, |at, zeroes| {
                self.media.image.write_all_at(zeroes, at)
            }),
        }
    }

    /// Makes a range zeroes, as a write would.
    pub(crate) fn zero(&self, offset: u64, length: u64) -> io::Result<()> {
        if self.media.blocks.is_none() {
            return self.zero_image(offset, length);
        }
        each_piece(offset, length, |at, zeroes| self.media.write(at, zeroes))
    }

    /// The plan of a geom that serves it.
    pub(crate) fn plan(&self, name: &str) -> Plan {
        let provider = ProviderPlan::new(name, self.media.size_bytes, SECTOR_BYTES);
        Plan::of(provider, Arc::new(DiskGeom(self.clone())))
    }
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

/// Shows zeroes, piece by piece, for a range.
fn each_piece(
    offset: u64,
    length: u64,
    mut with: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    static ZEROES: [u8; 1 << 14] = [0; 1 << 14];
    let mut done = 0;
    while done < length {
        let piece = (length - done).min(ZEROES.len() as u64);
        with(offset + done, &ZEROES[..piece as usize])?;
        done += piece;
    }
    Ok(())
}

impl Media {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.image.read_exact_at(into, offset)?;
        let Some(blocks) = &self.blocks else { return Ok(()) };
        let blocks = blocks.read();
        if blocks.is_empty() {
            return Ok(());
        }
        each_block(offset, into.len(), |number, within, range| {
            if let Some(block) = blocks.get(&number) {
                let length = range.len();
                into[range].copy_from_slice(&block[within..within + length]);
            }
            Ok(())
        })
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        let Some(blocks) = &self.blocks else {
            return self.image.write_all_at(from, offset);
        };
        let mut blocks = blocks.write();
        each_block(offset, from.len(), |number, within, range| {
            let block = match blocks.entry(number) {
                std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::hash_map::Entry::Vacant(room) => {
                    let at = number * BLOCK_BYTES;
                    let length = BLOCK_BYTES.min(self.size_bytes - at) as usize;
                    let mut block = vec![0; length].into_boxed_slice();
                    if range.len() < length {
                        self.image.read_exact_at(&mut block, at)?;
                    }
                    room.insert(block)
                }
            };
            block[within..within + range.len()].copy_from_slice(&from[range]);
            Ok(())
        })
    }
}

/// Calls `with` for each block of a range: its number, where the range begins in it, and which
/// bytes of the range lie there.
fn each_block(
    offset: u64,
    length: usize,
    mut with: impl FnMut(u64, usize, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let at = offset + done as u64;
        let within = (at % BLOCK_BYTES) as usize;
        let piece = (BLOCK_BYTES as usize - within).min(length - done);
        with(at / BLOCK_BYTES, within, done..done + piece)?;
        done += piece;
    }
    Ok(())
}

/// The disk as the bottom of a stack.
struct DiskGeom(Disk);

impl Geom for DiskGeom {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let (offset, length) = (request.offset(), request.length());
        let media = &self.0.media;
        let mut result = Ok(());
        match request.command() {
            Command::Read => request.fill(|at, piece| {
                let read = media.read(offset + at, piece);
                result = std::mem::replace(&mut result, Ok(())).and(read);
            }),
            Command::Write => request.each(|at, piece| {
                let written = media.write(offset + at, piece);
                result = std::mem::replace(&mut result, Ok(())).and(written);
            }),
            Command::Delete | Command::Zero => result = self.0.zero(offset, length),
            Command::Flush => {}
            Command::Extents => {
                request.add_extent(Extent {
                    length_bytes: length,
                    kind: ExtentKind::Data,
                });
                return request.finish();
            }
            Command::GetAttr if request.attribute() == "GEOM::candelete" => {
                return request.answer(AttributeValue::Number(1));
            }
            Command::GetAttr => return request.done(Err(Errno::OPNOTSUPP)),
        }
        match result {
            Ok(()) => request.done_in_full(),
            Err(_) => request.fail(Errno::IO, "the image of the crash state failed it"),
        }
    }
}
