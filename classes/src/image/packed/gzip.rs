//! gzip: a stream that says nothing of its places. It is decoded once when it is opened; every few
//! MiB the state of the decoder, with the 32 KiB that it may refer to, is kept as a checkpoint.

use super::input::read_up_to;
use super::section::{Damage, Decoder, Section, Sections, Start};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use std::fs::File;
use std::sync::Arc;
use ugeom_format::gzip::{self, HEADER_BYTES_MAX, TRAILER_BYTES, Trailer};

/// Data between two checkpoints, bytes, unless there would be too many of them.
const SPACING_BYTES: u64 = if cfg!(test) { 256 << 10 } else { 4 << 20 };
/// A checkpoint takes 43 KiB, so all of them take 86 MiB at most.
const CHECKPOINTS_MAX: usize = if cfg!(test) { 6 } else { 2048 };
/// How much is decoded at a time while checkpoints are made, bytes: they lie at multiples of it.
const STEP_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 64 << 10;

/// A decoder between two calls: all that it takes to go on from there.
#[derive(Clone)]
struct DecoderState {
    file: Arc<File>,
    /// The next byte of the file.
    at: u64,
    inflate: Box<InflateState>,
    crc: crc32fast::Hasher,
    /// Data of the current member so far; none between members.
    member: Option<u64>,
    /// The first member has been seen.
    begun: bool,
}

/// A state, and the data from there to the next one.
struct Checkpoint {
    state: DecoderState,
    length: u64,
}

impl Start for Checkpoint {
    fn decoder(&self) -> Result<Box<dyn Decoder>, Damage> {
        Ok(Box::new(Gzip {
            state: self.state.clone(),
            buffer: Buffer::default(),
            left: self.length,
        }))
    }
}

/// Bytes read from the file and not decoded yet.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    taken: usize,
}

struct Gzip {
    state: DecoderState,
    buffer: Buffer,
    /// Data up to the next checkpoint.
    left: u64,
}

/// Decodes the file once, and keeps checkpoints.
pub(super) fn sections(file: &Arc<File>) -> Result<Sections, Damage> {
    let state = DecoderState {
        file: Arc::clone(file),
        at: 0,
        inflate: InflateState::new_boxed(DataFormat::Raw),
        crc: crc32fast::Hasher::new(),
        member: None,
        begun: false,
    };
    let mut marks = vec![(0, state.clone())];
    let (mut at, mut spacing) = (0, SPACING_BYTES);
    let mut decoder = Gzip {
        state,
        buffer: Buffer::default(),
        left: u64::MAX,
    };
    let mut step = vec![0; STEP_BYTES];
    loop {
        let count = decoder.decode(&mut step).map_err(|damage| Damage {
            disk_at: damage.disk_at.map(|within| at + within),
            ..damage
        })?;
        at += count as u64;
        if count < step.len() {
            break;
        }
        if marks.last().is_some_and(|(last, _)| at - last >= spacing) {
            marks.push((at, decoder.resting()));
        }
        if marks.len() > CHECKPOINTS_MAX {
            let mut number = 0;
            marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            spacing *= 2;
        }
    }
    // Data that ends at a checkpoint leaves a section of 0 bytes.
    marks.retain(|(mark, _)| *mark < at || at == 0);
    let ends: Vec<u64> = marks
        .iter()
        .skip(1)
        .map(|(mark, _)| *mark)
        .chain([at])
        .collect();
    let list = marks.into_iter().zip(ends).map(|((mark, state), end)| {
        let length = end - mark;
        Section {
            length: Some(length),
            start: Box::new(Checkpoint { state, length }),
        }
    });
    Ok(Sections {
        list: list.collect(),
        decoder_bytes: (size_of::<InflateState>() + BUFFER_BYTES) as u64,
        spills: false,
    })
}

impl Gzip {
    /// The state; the rest of the file is not decoded yet.
    fn resting(&self) -> DecoderState {
        DecoderState {
            at: self.place(),
            ..self.state.clone()
        }
    }

    /// The first byte of the file that has not been decoded.
    fn place(&self) -> u64 {
        self.state.at - (self.buffer.bytes.len() - self.buffer.taken) as u64
    }

    /// Has at least `wanted` bytes in the buffer, unless the file ends.
    fn ahead(&mut self, wanted: usize) -> Result<&[u8], Damage> {
        let buffer = &mut self.buffer;
        if buffer.bytes.len() - buffer.taken < wanted {
            buffer.bytes.drain(..buffer.taken);
            buffer.taken = 0;
            let filled = buffer.bytes.len();
            buffer.bytes.resize(wanted.max(BUFFER_BYTES), 0);
            let read = read_up_to(&self.state.file, &mut buffer.bytes[filled..], self.state.at);
            let read = read.map_err(|error| Damage::new(self.state.at, error))?;
            buffer.bytes.truncate(filled + read);
            self.state.at += read as u64;
        }
        Ok(&self.buffer.bytes[self.buffer.taken..])
    }

    /// Goes to the data of the next member; false where the file ends.
    fn next_member(&mut self) -> Result<bool, Damage> {
        // Zeroes fill a tape or a device up behind the last member.
        while self.state.begun {
            let ahead = self.ahead(1)?;
            if ahead.is_empty() {
                return Ok(false);
            }
            let zeroes = ahead.iter().take_while(|&&byte| byte == 0).count();
            self.buffer.taken += zeroes;
            if zeroes == 0 {
                break;
            }
        }
        let at = self.place();
        let mut wanted = 512;
        let length = loop {
            let ahead = self.ahead(wanted)?;
            match gzip::header_bytes(ahead) {
                Ok(length) => break length,
                Err(gzip::Error::Short { found })
                    if found >= wanted && wanted < HEADER_BYTES_MAX =>
                {
                    wanted *= 2;
                }
                Err(gzip::Error::Magic { .. }) if self.state.begun => {
                    return Err(Damage::new(
                        at,
                        "the data after the last member is not gzip",
                    ));
                }
                Err(error) => return Err(Damage::new(at, error)),
            }
        };
        self.buffer.taken += length;
        self.state.inflate = InflateState::new_boxed(DataFormat::Raw);
        self.state.crc = crc32fast::Hasher::new();
        self.state.member = Some(0);
        self.state.begun = true;
        Ok(true)
    }

    /// Compares the decoded data with the member's checksum and length.
    fn check_member(&mut self, length: u64) -> Result<(), Damage> {
        let at = self.place();
        let ahead = self.ahead(TRAILER_BYTES)?;
        let Some(bytes) = ahead.first_chunk() else {
            return Err(Damage::new(
                at,
                "the file ends within the trailer of a member",
            ));
        };
        let trailer = Trailer::decode(bytes);
        let crc = self.state.crc.clone().finalize();
        if trailer.crc != crc {
            let found = trailer.crc;
            let reason =
                format!("the member has the CRC-32 {found:#010x}, its data gives {crc:#010x}");
            return Err(Damage::new(at, reason));
        }
        if trailer.length != length as u32 {
            let reason = format!(
                "the member has a length of {} bytes modulo 2^32, its data is {length} bytes",
                trailer.length
            );
            return Err(Damage::new(at, reason));
        }
        self.buffer.taken += TRAILER_BYTES;
        self.state.member = None;
        Ok(())
    }

    /// Decodes some of a member; true at its end.
    fn inflate(&mut self, out: &mut [u8]) -> Result<(usize, bool), Damage> {
        self.ahead(1)?;
        let buffer = &mut self.buffer;
        let ahead = &buffer.bytes[buffer.taken..];
        let ended = ahead.is_empty();
        let done = inflate(&mut self.state.inflate, ahead, out, MZFlush::None);
        buffer.taken += done.bytes_consumed;
        let count = done.bytes_written;
        self.state.crc.update(&out[..count]);
        match done.status {
            Ok(MZStatus::StreamEnd) => Ok((count, true)),
            Ok(_) | Err(MZError::Buf) if !ended || count > 0 => Ok((count, false)),
            Ok(_) | Err(MZError::Buf) => {
                Err(Damage::new(self.place(), "the file ends within a member"))
            }
            Err(_) => Err(Damage::new(self.place(), "the deflate stream is damaged")),
        }
    }
}

impl Decoder for Gzip {
    fn decode(&mut self, out: &mut [u8]) -> Result<usize, Damage> {
        let wanted = self.left.min(out.len() as u64) as usize;
        let out = &mut out[..wanted];
        self.left -= wanted as u64;
        if out.is_empty() {
            return Ok(0);
        }
        let mut filled = 0;
        let mut step = |it: &mut Self, filled: &mut usize| {
            let Some(length) = it.state.member else {
                return it.next_member();
            };
            let (count, ended) = it.inflate(&mut out[*filled..])?;
            *filled += count;
            it.state.member = Some(length + count as u64);
            if ended {
                it.check_member(length + count as u64)?;
            }
            Ok(*filled < out.len())
        };
        loop {
            match step(self, &mut filled) {
                Ok(true) => {}
                Ok(false) => return Ok(filled),
                Err(damage) => {
                    let disk_at = Some(filled as u64);
                    return Err(Damage { disk_at, ..damage });
                }
            }
        }
    }
}
