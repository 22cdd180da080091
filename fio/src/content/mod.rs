//! The content of writes, and its verification: patterns, random bytes, and fio's verify header.

mod digest;
mod header;
mod redundancy;
#[cfg(test)]
mod tests;

use super::draws::{Draws, Purpose, Seeds};
use redundancy::Redundant;
use ugeom_job::settings::{Fill, Piece, Verify, Verifying};

/// How often fresh bytes are put into a buffer of random ones, so that no two requests are equal.
const SCRAMBLE_BYTES: usize = 512;

/// A block with other data than was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The first byte that is wrong, from the beginning of the block.
    pub at: usize,
    /// The part that was checked.
    pub what: &'static str,
    /// The expected content.
    pub expected: String,
    /// The bytes that were read, in words.
    pub found: String,
    /// The part of the block that is wrong: where it begins, and its length, bytes.
    pub part: (usize, usize),
    /// The header is wrong, so the expected content is unknown.
    pub in_header: bool,
}

/// The identity of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Offset in the file.
    pub offset: u64,
    /// The number of the write, modulo 2^16, if known.
    pub number: Option<u16>,
}

/// Fills the buffers of writes, and checks those of reads.
pub struct Content {
    fill: Fill,
    scramble: bool,
    redundant: Option<Redundant>,
    verify: Verify,
    verifying: Verifying,
    pattern: Vec<Piece>,
    rng: fastrand::Rng,
    /// The source of the seeds in verify headers: fio checks them in mixed jobs.
    headers: Draws,
    thread: u16,
    /// A part of a block whose header was moved back to its beginning.
    scratch: Vec<u8>,
}

impl Content {
    /// The content of a job.
    pub fn new(job: &ugeom_job::Job, seeds: &Seeds, thread: u16) -> Self {
        let seed = seeds.seed(Purpose::Content);
        Self {
            fill: job.fill.clone(),
            scramble: job.scramble,
            redundant: Redundant::of(job, seed),
            verify: job.verify,
            verifying: job.verifying,
            pattern: job.verify_pattern.clone(),
            rng: fastrand::Rng::with_seed(seed),
            headers: seeds.draws(Purpose::Verified),
            thread,
            scratch: Vec::new(),
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

    /// Fills a block of a new file: as a write would have it, but without a header.
    pub fn lay_out(&mut self, block: &mut [u8], offset: u64) {
        match &mut self.redundant {
            Some(redundant) => redundant.fill(block, &self.fill, offset),
            None => self.prepare(block),
        }
    }

    /// Makes a buffer ready to be written.
    #[inline]
    pub fn before_write(&mut self, buffer: &mut [u8], label: Label) {
        match self.verify {
            Verify::No | Verify::Null => self.unmarked(buffer, label),
            Verify::Pattern => repeat(buffer, &self.pattern, label.offset),
            _ => {
                let seed = self.header_seed();
                self.body(buffer, seed, label.offset);
                let verifying = self.verifying;
                let step = header::step(&verifying, buffer.len());
                for (index, part) in buffer.chunks_mut(step).enumerate() {
                    let offset = label.offset + (index * step) as u64;
                    let label = Label { offset, ..label };
                    header::write(part, self.verify, &verifying, label, seed, self.thread);
                }
            }
        }
    }

    /// The seed of the next block; a pattern needs none.
    fn header_seed(&mut self) -> u64 {
        match self.pattern.is_empty() {
            true => self.headers.number().wrapping_mul(self.headers.number()),
            false => 0,
        }
    }

    /// A pass begins: blocks have the seeds of the first one, where the job repeats them.
    pub fn restart(&mut self, seeds: &Seeds) {
        if seeds.repeats() {
            self.headers = seeds.draws(Purpose::Verified);
        }
    }

    #[inline]
    fn unmarked(&mut self, buffer: &mut [u8], label: Label) {
        if let Some(redundant) = &mut self.redundant {
            return redundant.fill(buffer, &self.fill, label.offset);
        }
        match &self.fill {
            Fill::Random if self.scramble => scramble(buffer, label.offset, self.rng.u64(..)),
            Fill::Random | Fill::Zero => {}
            Fill::Refill => self.rng.fill(buffer),
            Fill::Pattern(pieces) => repeat(buffer, pieces, label.offset),
        }
    }

    /// The content after and between the headers of a block, from its seed.
    fn body(&self, buffer: &mut [u8], seed: u64, offset: u64) {
        if !self.pattern.is_empty() {
            return repeat(buffer, &self.pattern, offset);
        }
        match &self.fill {
            Fill::Zero => buffer.fill(0),
            Fill::Pattern(pieces) => repeat(buffer, pieces, offset),
            Fill::Random | Fill::Refill => fastrand::Rng::with_seed(seed).fill(buffer),
        }
    }

    /// Checks a block that was read.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&mut self, block: &[u8], label: Label) -> Result<(), Box<Mismatch>> {
        match self.verify {
            Verify::No | Verify::Null => return Ok(()),
            Verify::Pattern => return compare(block, &self.pattern, label.offset, 0),
            _ => {}
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let step = header::step(&self.verifying, block.len());
        let mut result = Ok(());
        for (index, part) in block.chunks(step).enumerate() {
            let begin = index * step;
            let part = header::moved_back(part, self.verify, &self.verifying, &mut scratch);
            let offset = label.offset + begin as u64;
            let checked = header::check(part, self.verify, Label { offset, ..label })
                .and_then(|()| self.check_body(block.len(), begin, part, label));
            if let Err(mut wrong) = checked {
                wrong.at += begin;
                wrong.part = (begin, part.len());
                result = Err(wrong);
                break;
            }
        }
        self.scratch = scratch;
        result
    }

    /// Checks beyond the digest: the pattern, and all of a block that this job wrote if the digest
    /// is fio's of SHA-512, which holds a part of the content and no digest.
    fn check_body(
        &self,
        length: usize,
        begin: usize,
        part: &[u8],
        label: Label,
    ) -> Result<(), Box<Mismatch>> {
        let head = self.verify.header_bytes().unwrap_or(0);
        if matches!(self.verify, Verify::Header | Verify::PatternHeader) {
            if self.pattern.is_empty() {
                return Ok(());
            }
            let skip = begin + head;
            return compare(&part[head..], &self.pattern, label.offset, skip).map_err(
                |mut wrong| {
                    wrong.at += head;
                    wrong
                },
            );
        }
        if self.verify == Verify::Sha512 && label.number.is_some() {
            let mut whole = vec![0; length];
            self.body(&mut whole, header::seed(part), label.offset);
            let expected = &whole[begin..begin + part.len()];
            let differs = (head..part.len()).find(|at| part[*at] != expected[*at]);
            if let Some(at) = differs {
                return Err(mismatch(
                    at,
                    "content",
                    format!("{:#04x}", expected[at]),
                    format!("{:#04x}", part[at]),
                ));
            }
        }
        Ok(())
    }

    /// The expected content of a part of a block, from the seed in its header; `None` when its
    /// header is damaged, or another program wrote it.
    pub fn expected(&self, block: &[u8], label: Label, part: (usize, usize)) -> Option<Vec<u8>> {
        let (begin, length) = part;
        let mut whole = vec![0; block.len()];
        if self.verify == Verify::Pattern {
            repeat(&mut whole, &self.pattern, label.offset);
            return Some(whole);
        }
        let mut scratch = Vec::new();
        let found = &block[begin..begin + length];
        let found = header::moved_back(found, self.verify, &self.verifying, &mut scratch);
        let head = self.verify.header_bytes()?;
        self.body(&mut whole, header::seed(found), label.offset);
        let mut expected = whole[begin..begin + length].to_vec();
        expected[..head].copy_from_slice(&found[..head]);
        let offset = label.offset + begin as u64;
        header::check(&expected, self.verify, Label { offset, ..label }).ok()?;
        header::move_away(&mut expected, self.verify, &self.verifying);
        Some(expected)
    }
}

fn mismatch(at: usize, what: &'static str, expected: String, found: String) -> Box<Mismatch> {
    Box::new(Mismatch {
        at,
        what,
        expected,
        found,
        part: (0, 0),
        in_header: false,
    })
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

/// Compares bytes with a pattern that began `skip` bytes before them.
fn compare(bytes: &[u8], pieces: &[Piece], offset: u64, skip: usize) -> Result<(), Box<Mismatch>> {
    let unit = unit(pieces, offset);
    if unit.is_empty() {
        return Ok(());
    }
    let wanted = unit.iter().cycle().skip(skip % unit.len());
    let wrong = bytes
        .iter()
        .zip(wanted)
        .enumerate()
        .find(|(_, (found, wanted))| found != wanted);
    match wrong {
        None => Ok(()),
        Some((at, (found, wanted))) => {
            let mut wrong = mismatch(
                at,
                "pattern",
                format!("{wanted:#04x}"),
                format!("{found:#04x}"),
            );
            wrong.part = (0, bytes.len());
            Err(wrong)
        }
    }
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
