//! zstd: each frame is decoded on its own. Where a frame ends is found by the headers of its
//! blocks; what it decompresses to is in its header, in the seek table, or found by decoding it.

use super::input::{Input, Position, read_up_to};
use super::section::{
    Damage, Decoder, Section, Sections, Start, WINDOW_BYTES_MAX, file_bytes, next_offset,
};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fs::File;
use std::sync::Arc;
use ugeom_format::zstd::{
    self, BLOCK_HEADER_BYTES, Block, FRAMES_MAX, Frame, HEADER_BYTES_MAX, Header,
    SEEK_FOOTER_BYTES, SeekEntry, SeekFooter,
};

/// A frame with data.
struct Stored {
    file: Arc<File>,
    at: u64,
    end: u64,
}

/// Reads the headers of all frames.
pub(super) fn sections(file: &Arc<File>) -> Result<Sections, Damage> {
    let size = file_bytes(file)?;
    let mut found = Vec::new();
    match seek_table(file, size)? {
        Some(entries) => {
            let mut at = 0;
            for entry in entries {
                let end = at + entry.frame_bytes;
                if let Frame::Data(header) = frame(file, at, end)? {
                    let header = Header {
                        content_bytes: Some(entry.data_bytes),
                        ..header
                    };
                    found.push((at, end, header));
                }
                at = end;
            }
        }
        None => found = walked(file, size)?,
    }
    let mut decoder_bytes = 0;
    let mut list = Vec::new();
    let mut disk_at = 0_u64;
    for (at, end, header) in found {
        check(at, &header)?;
        decoder_bytes = decoder_bytes.max(header.window_bytes);
        let length = header.content_bytes;
        if length == Some(0) {
            continue;
        }
        let file = Arc::clone(file);
        let start = Box::new(Stored { file, at, end });
        list.push(Section { length, start });
        disk_at = next_offset(disk_at, length.unwrap_or(0), at)?;
    }
    Ok(Sections {
        list,
        decoder_bytes,
        spills: true,
    })
}

fn check(at: u64, header: &Header) -> Result<(), Damage> {
    if header.dictionary != 0 {
        let number = header.dictionary;
        return Err(Damage::new(
            at,
            format!("the frame needs the dictionary {number}"),
        ));
    }
    if header.window_bytes > WINDOW_BYTES_MAX {
        let reason = format!(
            "the frame needs a window of {} MiB, at most {} are taken",
            header.window_bytes >> 20,
            WINDOW_BYTES_MAX >> 20
        );
        return Err(Damage::new(at, reason));
    }
    Ok(())
}

fn bytes(file: &File, at: u64, length: usize) -> Result<Vec<u8>, Damage> {
    let mut out = vec![0; length];
    let read = read_up_to(file, &mut out, at).map_err(|error| Damage::new(at, error))?;
    out.truncate(read);
    Ok(out)
}

/// The frames of the seek table at the end, if there is one.
fn seek_table(file: &File, size: u64) -> Result<Option<Vec<SeekEntry>>, Damage> {
    let Some(at) = size.checked_sub(SEEK_FOOTER_BYTES as u64) else { return Ok(None) };
    let wrong = |at| move |error: zstd::Error| Damage::new(at, error);
    let footer = bytes(file, at, SEEK_FOOTER_BYTES)?;
    let Some(footer) = footer.first_chunk() else { return Ok(None) };
    let Some(footer) = SeekFooter::decode(*footer).map_err(wrong(at))? else { return Ok(None) };
    let Some(start) = size.checked_sub(footer.table_bytes()) else {
        return Err(Damage::new(at, "the seek table is longer than the file"));
    };
    let table = bytes(file, start, footer.table_bytes() as usize)?;
    let entries = footer.entries(&table).map_err(wrong(start))?;
    // At most 2^20 entries of 32 bits each.
    let covered: u64 = entries.iter().map(|entry| entry.frame_bytes).sum();
    if covered != start {
        let reason =
            format!("the frames of the seek table have {covered} bytes, {start} are there");
        return Err(Damage::new(start, reason));
    }
    Ok(Some(entries))
}

fn frame(file: &File, at: u64, end: u64) -> Result<Frame, Damage> {
    let wanted = end.saturating_sub(at).min(HEADER_BYTES_MAX as u64) as usize;
    Frame::decode(&bytes(file, at, wanted)?).map_err(|error| Damage::new(at, error))
}

/// The frames with data, found by following the headers of blocks.
fn walked(file: &Arc<File>, size: u64) -> Result<Vec<(u64, u64, Header)>, Damage> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < size {
        let end = match frame(file, at, size)? {
            Frame::Skipped { frame_bytes } => at + frame_bytes,
            Frame::Data(header) => {
                let end = frame_end(file, at, size, &header)?;
                found.push((at, end, header));
                end
            }
        };
        if end > size {
            return Err(Damage::new(
                size,
                format!("the file ends within the frame at byte {at}"),
            ));
        }
        if found.len() > FRAMES_MAX as usize {
            return Err(Damage::new(at, format!("more than {FRAMES_MAX} frames")));
        }
        at = end;
    }
    Ok(found)
}

fn frame_end(file: &Arc<File>, at: u64, size: u64, header: &Header) -> Result<u64, Damage> {
    let mut next = at + header.header_bytes;
    loop {
        let head = bytes(file, next, BLOCK_HEADER_BYTES)?;
        let Some(head) = head.first_chunk() else {
            return Err(Damage::new(
                size,
                format!("the file ends within the frame at byte {at}"),
            ));
        };
        let block = Block::decode(*head).map_err(|error| Damage::new(next, error))?;
        next += BLOCK_HEADER_BYTES as u64 + block.stored_bytes;
        if block.is_last {
            return Ok(next + if header.has_checksum { 4 } else { 0 });
        }
    }
}

struct Zstd {
    reader: StreamingDecoder<Input, FrameDecoder>,
    position: Position,
}

impl Start for Stored {
    fn decoder(&self) -> Result<Box<dyn Decoder>, Damage> {
        let input = Input::new(&self.file, self.at, self.end);
        let position = input.position();
        let reader = StreamingDecoder::new_with_max_window_size(input, WINDOW_BYTES_MAX);
        let reader = reader.map_err(|error| Damage::new(self.at, error))?;
        Ok(Box::new(Zstd { reader, position }))
    }
}

impl Decoder for Zstd {
    fn decode(&mut self, out: &mut [u8]) -> Result<usize, Damage> {
        let filled = super::section::filled(&mut self.reader, out, &self.position)?;
        if filled < out.len() {
            let decoder = &self.reader.decoder;
            let found = decoder.get_checksum_from_data();
            let expected = decoder.get_calculated_checksum();
            if found.is_some() && found != expected {
                let reason = format!(
                    "the frame has the checksum {:#010x}, its data gives {:#010x}",
                    found.unwrap_or_default(),
                    expected.unwrap_or_default()
                );
                return Err(Damage::new(self.position.get(), reason));
            }
        }
        Ok(filled)
    }
}
