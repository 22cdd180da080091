//! Decoded data: the pieces used last in memory, long sections in a file without a name.

use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Pieces that stay in memory.
const PIECES: usize = if cfg!(test) { 8 } else { 256 };

/// A piece of a section.
pub(super) type Key = (usize, u64);

/// The pieces used last.
#[derive(Default)]
pub(super) struct Memory {
    pieces: HashMap<Key, (u64, Arc<[u8]>)>,
    clock: u64,
}

impl Memory {
    pub fn get(&mut self, key: Key) -> Option<Arc<[u8]>> {
        self.clock += 1;
        let (used, piece) = self.pieces.get_mut(&key)?;
        *used = self.clock;
        Some(Arc::clone(piece))
    }

    pub fn put(&mut self, key: Key, piece: Arc<[u8]>) {
        self.clock += 1;
        if self.pieces.len() >= PIECES {
            // One pass over 256 entries, for a piece that took far longer to decode.
            let oldest = self.pieces.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.pieces.remove(&oldest);
            }
        }
        self.pieces.insert(key, (self.clock, piece));
    }
}

/// A file without a name that holds decoded data at the offsets of the disk. It takes half of the
/// space that is free when it is made, at most.
pub(super) struct Spill {
    file: File,
    left_bytes: u64,
}

impl Spill {
    /// Makes it in `TMPDIR`, else in `/var/tmp`: `/tmp` may be memory.
    pub fn new() -> io::Result<Self> {
        let folder = std::env::var_os("TMPDIR").filter(|it| !it.is_empty());
        let folder = folder.map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(&folder, flags, Mode::RUSR | Mode::WUSR)?;
        let space = rustix::fs::fstatvfs(&file)?;
        Ok(Self {
            left_bytes: space.f_bavail.saturating_mul(space.f_frsize) / 2,
            file: File::from(file),
        })
    }

    /// Keeps a piece; zeroes become a hole.
    pub fn write(&mut self, at: u64, piece: &[u8]) -> io::Result<()> {
        if piece.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        let left = self.left_bytes.checked_sub(piece.len() as u64);
        self.left_bytes = left.ok_or(io::ErrorKind::StorageFull)?;
        self.file.write_all_at(piece, at)
    }

    /// Another descriptor, to read beside a writer.
    pub fn reader(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Reads a piece back; what lies behind the end of the file is zeroes that were not written.
pub(super) fn read_back(file: &File, at: u64, length: usize) -> io::Result<Arc<[u8]>> {
    let mut piece = vec![0; length];
    super::input::read_up_to(file, &mut piece, at)?;
    Ok(piece.into())
}
