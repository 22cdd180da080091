//! What is written, and how it is checked: patterns, random bytes, and fio's verify header.
//!
//! ```text
//!  0  u16  magic 0xacca            24  u32  time, s (0 here)
//!  2  u16  kind (5: crc32c)        28  u32  time, ns (0 here)
//!  4  u32  length of the block     32  u16  thread
//!  8  u64  seed of the content     34  u16  number of the write, modulo 2^16
//! 16  u64  offset in the file      36  u32  CRC-32C of bytes 0 to 35
//! 40  u32  CRC-32C of what follows (only with crc32c), then the content
//! ```
//!
//! All numbers are little-endian. The layout is `struct verify_header` of fio's verify.h (3.33), as
//! its files show it: see the tests, which read blocks that fio wrote.

use super::settings::{Fill, Piece, Verify};

const MAGIC: u16 = 0xacca;
const KIND_CRC32C: u16 = 5;
/// The bytes of the header that its own checksum covers.
const CHECKED_BYTES: usize = 36;
const HEADER_BYTES: usize = 40;
/// Header and the checksum behind it.
const WITH_CHECKSUM_BYTES: usize = 44;

/// How often fresh bytes are put into a buffer of random ones, so that no two requests are equal.
const SCRAMBLE_BYTES: usize = 512;

/// A block that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The first byte that is wrong, from the beginning of the block.
    pub at: usize,
    /// What was looked at.
    pub what: &'static str,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What a block is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Offset in the file.
    pub offset: u64,
    /// Which write it was, modulo 2^16, if that is known.
    pub number: Option<u16>,
}

/// Fills the buffers of writes, and checks those of reads.
pub struct Content {
    fill: Fill,
    verify: Verify,
    pattern: Vec<Piece>,
    rng: fastrand::Rng,
    thread: u16,
}

impl Content {
    /// The content of a job.
    #[must_use]
    pub fn new(job: &super::Job, seed: u64, thread: u16) -> Self {
        Self {
            fill: job.fill.clone(),
            verify: job.verify,
            pattern: job.verify_pattern.clone(),
            rng: fastrand::Rng::with_seed(seed),
            thread,
        }
    }

    /// Fills a buffer once, before the first request.
    pub fn prepare(&mut self, buffer: &mut [u8]) {
        match &self.fill {
            Fill::Random | Fill::Refill => self.rng.fill(buffer),
            Fill::Zero => buffer.fill(0),
            Fill::Pattern(pieces) => repeat(buffer, pieces, 0),
        }
    }

    /// Makes a buffer ready to be written.
    #[inline]
    pub fn before_write(&mut self, buffer: &mut [u8], label: Label) {
        match self.verify {
            Verify::No => match &self.fill {
                Fill::Random => scramble(buffer, label.offset, self.rng.u64(..)),
                Fill::Refill => self.rng.fill(buffer),
                Fill::Zero => {}
                Fill::Pattern(pieces) => repeat(buffer, pieces, label.offset),
            },
            Verify::Pattern => repeat(buffer, &self.pattern, label.offset),
            Verify::Crc32c => {
                let seed = self.rng.u64(..);
                match &self.fill {
                    Fill::Zero => buffer.fill(0),
                    Fill::Pattern(pieces) => repeat(buffer, pieces, label.offset),
                    Fill::Random | Fill::Refill => fastrand::Rng::with_seed(seed).fill(buffer),
                }
                let sum = checksum(&buffer[WITH_CHECKSUM_BYTES..]);
                put(buffer, HEADER_BYTES, &sum.to_le_bytes());
                header(buffer, label, seed, self.thread);
            }
        }
    }

    /// Checks a block that was read.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self, block: &[u8], label: Label) -> Result<(), Box<Mismatch>> {
        match self.verify {
            Verify::No => Ok(()),
            Verify::Pattern => compare(block, &self.pattern, label.offset),
            Verify::Crc32c => {
                check_header(block, label)?;
                let found = number(block, HEADER_BYTES, 4);
                let expected = u64::from(checksum(&block[WITH_CHECKSUM_BYTES..]));
                same(HEADER_BYTES, "CRC-32C of the content", expected, found)
            }
        }
    }
}

fn header(buffer: &mut [u8], label: Label, seed: u64, thread: u16) {
    let length = buffer.len() as u32;
    put(buffer, 0, &MAGIC.to_le_bytes());
    put(buffer, 2, &KIND_CRC32C.to_le_bytes());
    put(buffer, 4, &length.to_le_bytes());
    put(buffer, 8, &seed.to_le_bytes());
    put(buffer, 16, &label.offset.to_le_bytes());
    put(buffer, 24, &[0; 8]);
    put(buffer, 32, &thread.to_le_bytes());
    put(buffer, 34, &label.number.unwrap_or(0).to_le_bytes());
    let sum = checksum(&buffer[..CHECKED_BYTES]);
    put(buffer, CHECKED_BYTES, &sum.to_le_bytes());
}

/// CRC-32C (Castagnoli) as fio has it: without the inversion at the end that RFC 3720 asks for.
fn checksum(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

fn put(buffer: &mut [u8], at: usize, bytes: &[u8]) {
    buffer[at..at + bytes.len()].copy_from_slice(bytes);
}

fn number(block: &[u8], at: usize, bytes: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes].copy_from_slice(&block[at..at + bytes]);
    u64::from_le_bytes(wide)
}

fn same(at: usize, what: &'static str, expected: u64, found: u64) -> Result<(), Box<Mismatch>> {
    if expected == found {
        return Ok(());
    }
    Err(Box::new(Mismatch {
        at,
        what,
        expected: format!("{expected:#x}"),
        found: format!("{found:#x}"),
    }))
}

fn check_header(block: &[u8], label: Label) -> Result<(), Box<Mismatch>> {
    same(
        0,
        "magic number of the header",
        u64::from(MAGIC),
        number(block, 0, 2),
    )?;
    same(
        4,
        "length in the header",
        block.len() as u64,
        number(block, 4, 4),
    )?;
    let sum = u64::from(checksum(&block[..CHECKED_BYTES]));
    same(
        CHECKED_BYTES,
        "CRC-32C of the header",
        sum,
        number(block, CHECKED_BYTES, 4),
    )?;
    same(
        16,
        "offset in the header",
        label.offset,
        number(block, 16, 8),
    )?;
    match label.number {
        Some(expected) => same(
            34,
            "number of the write",
            u64::from(expected),
            number(block, 34, 2),
        ),
        None => Ok(()),
    }
}

/// The bytes of a pattern for a block at `offset`.
fn unit(pieces: &[Piece], offset: u64) -> Vec<u8> {
    let mut unit = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => unit.extend_from_slice(bytes),
            Piece::Offset => unit.extend_from_slice(&offset.to_le_bytes()),
        }
    }
    unit
}

fn repeat(buffer: &mut [u8], pieces: &[Piece], offset: u64) {
    let unit = unit(pieces, offset);
    if unit.is_empty() {
        return;
    }
    for piece in buffer.chunks_mut(unit.len()) {
        piece.copy_from_slice(&unit[..piece.len()]);
    }
}

fn compare(block: &[u8], pieces: &[Piece], offset: u64) -> Result<(), Box<Mismatch>> {
    let unit = unit(pieces, offset);
    for (index, piece) in block.chunks(unit.len().max(1)).enumerate() {
        if piece == &unit[..piece.len()] {
            continue;
        }
        let wrong = piece
            .iter()
            .zip(&unit)
            .position(|(found, wanted)| found != wanted);
        let wrong = wrong.unwrap_or(0);
        return Err(Box::new(Mismatch {
            at: index * unit.len() + wrong,
            what: "pattern",
            expected: format!("{:#04x}", unit[wrong]),
            found: format!("{:#04x}", piece[wrong]),
        }));
    }
    Ok(())
}

fn scramble(buffer: &mut [u8], offset: u64, salt: u64) {
    for (index, piece) in buffer.chunks_mut(SCRAMBLE_BYTES).enumerate() {
        if piece.len() >= 16 {
            let place = offset + (index * SCRAMBLE_BYTES) as u64;
            piece[..8].copy_from_slice(&place.to_le_bytes());
            piece[8..16].copy_from_slice(&salt.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;
    use crate::error::Origin;

    fn content(verify: Verify, pattern: Vec<Piece>) -> Content {
        let mut job = Job::new("a", Origin::Default);
        job.verify = verify;
        job.verify_pattern = pattern;
        Content::new(&job, 1, 0)
    }

    fn label(offset: u64, number: u16) -> Label {
        Label {
            offset,
            number: Some(number),
        }
    }

    #[test]
    fn a_block_is_right_only_where_and_as_it_was_written() {
        let mut content = content(Verify::Crc32c, Vec::new());
        let mut block = vec![0; 4096];
        content.before_write(&mut block, label(8192, 7));
        assert_eq!(content.check(&block, label(8192, 7)), Ok(()));
        let wrong = |block: &[u8], label: Label| content.check(block, label).unwrap_err().what;
        assert_eq!(wrong(&block, label(4096, 7)), "offset in the header");
        assert_eq!(wrong(&block, label(8192, 8)), "number of the write");
        for (at, what) in [
            (0, "magic number of the header"),
            (4, "length in the header"),
            (20, "CRC-32C of the header"),
            (41, "CRC-32C of the content"),
            (4095, "CRC-32C of the content"),
        ] {
            let mut damaged = block.clone();
            damaged[at] ^= 1;
            assert_eq!(wrong(&damaged, label(8192, 7)), what, "byte {at}");
        }
    }

    #[test]
    fn a_pattern_repeats_and_its_first_wrong_byte_is_named() {
        let pieces = vec![Piece::Bytes(vec![0xde, 0xad]), Piece::Offset];
        let mut content = content(Verify::Pattern, pieces);
        let mut block = vec![0; 64];
        content.before_write(&mut block, label(0x0102, 0));
        assert_eq!(
            &block[..12],
            [0xde, 0xad, 2, 1, 0, 0, 0, 0, 0, 0, 0xde, 0xad]
        );
        assert_eq!(content.check(&block, label(0x0102, 0)), Ok(()));
        block[21] = 0xff;
        let wrong = content.check(&block, label(0x0102, 0)).unwrap_err();
        assert_eq!((wrong.at, wrong.expected.as_str()), (21, "0xad"));
    }
}
