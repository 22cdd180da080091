//! No data is written over the structures of an image, whatever its map says.
//!
//! qemu marks such an image as corrupt and refuses it for writing from then on. Here the write
//! fails, and the image stays as it is.

use super::super::{bytes_of, read_at};
use super::Image;
use imago::Mapping;
use std::fs::File;
use std::io;
use ugeom_format::qcow2::{HEAD_BYTES, Header, Structures};

/// What mends an image whose structures are wrong.
const MENDS: &str = "`qemu-img check -r all` mends it";

/// Why a write fails.
pub(super) const OVER_A_STRUCTURE: &str =
    "the image's map is damaged and leads to its own tables; `qemu-img check -r all` mends it";

/// The structures of an image that is open for writing.
#[derive(Debug)]
pub(super) struct Guard {
    file: File,
    at_start: Structures,
}

impl Guard {
    /// # Errors
    /// A table cannot be read, or the next change of the map would destroy a part of the image.
    pub fn new(file: File, header: &Header) -> io::Result<Self> {
        let mut read = |at: u64, length: usize| read_at(&file, at, length);
        let at_start = Structures::read(header, &mut read)?;
        if let Some(fault) = at_start.fault(header, bytes_of(&file)?, &mut read)? {
            return Err(io::Error::other(format!(
                "cannot be written to: {fault}; {MENDS}"
            )));
        }
        Ok(Self { file, at_start })
    }

    /// Whether no structure is in these bytes of the file.
    pub fn allows(&self, offset: u64, length: u64) -> bool {
        // A table may have moved since then.
        self.at_start.in_range(offset, length).is_none()
            || self
                .now()
                .is_ok_and(|now| now.in_range(offset, length).is_none())
    }

    fn now(&self) -> io::Result<Structures> {
        let head = read_at(&self.file, 0, HEAD_BYTES)?;
        let header = Header::decode(&head).map_err(io::Error::other)?;
        Structures::read(&header, &mut |at, length| read_at(&self.file, at, length))
    }

    /// The same for a range of the disk, wherever its bytes are.
    pub fn allows_mapped(&self, image: &Image, mut at: u64, end: u64) -> bool {
        while at < end {
            // What has no place yet, or cannot be found, is no place over a structure.
            let Ok((mapping, length)) = image.get_mapping(at, end - at) else { return true };
            let place = match mapping {
                Mapping::Raw {
                    offset, writable, ..
                } => writable.then_some(offset),
                _ => None,
            };
            if place.is_some_and(|offset| !self.allows(offset, length)) {
                return false;
            }
            at += length.max(1);
        }
        true
    }
}
