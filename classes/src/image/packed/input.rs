//! A part of a file as a decoder reads it, with bytes before and behind that are made up.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much is read from the file at a time, bytes.
const BUFFER_BYTES: usize = 128 << 10;

/// Where an [`Input`] is in its file; lives on while a decoder owns the input.
#[derive(Clone, Default)]
pub(super) struct Position(Arc<AtomicU64>);

impl Position {
    /// The next byte of the file that has not been taken.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads `at..end` of a file.
pub(super) struct Input {
    file: Arc<File>,
    /// The first byte that is not in the buffer.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    taken: usize,
    position: Position,
}

impl Input {
    pub fn new(file: &Arc<File>, at: u64, end: u64) -> Self {
        let position = Position::default();
        position.0.store(at, Ordering::Relaxed);
        Self {
            file: Arc::clone(file),
            at,
            end,
            buffer: Vec::new(),
            taken: 0,
            position,
        }
    }

    pub fn position(&self) -> Position {
        self.position.clone()
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.buffer.len() {
            let wanted = self.end.saturating_sub(self.at).min(BUFFER_BYTES as u64);
            self.buffer.resize(wanted as usize, 0);
            self.taken = 0;
            let read = read_up_to(&self.file, &mut self.buffer, self.at);
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            self.at += read? as u64;
        }
        Ok(&self.buffer[self.taken..])
    }

    fn consume(&mut self, count: usize) {
        self.taken += count;
        self.position.0.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let found = self.fill_buf()?;
        let count = found.len().min(out.len());
        out[..count].copy_from_slice(&found[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// Reads until `out` is full or the file ends.
pub(super) fn read_up_to(file: &File, out: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match file.read_at(&mut out[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
