//! xz: an index at the end of each stream names its blocks, and each is decoded on its own.
//!
//! A block is given to the decoder as a stream of its own: the header of its stream before it, an
//! index of one block behind it. So the decoder checks it like a whole file.

use super::input::{Input, Position, read_up_to};
use super::section::{
    Damage, Decoder, Section, Sections, Start, WINDOW_BYTES_MAX, file_bytes, next_offset,
};
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{Chain, Cursor, Read};
use std::sync::Arc;
use ugeom_format::xz::{self, BLOCKS_MAX, EDGE_BYTES, Flags, INDEX_BYTES_MAX, Record};

/// Streams that are read; `xz` makes one, `cat` of such files more.
const STREAMS_MAX: usize = 65_536;
/// The memory limit of the decoder: its dictionary, and its tables.
const LIMIT_KIB: u32 = (WINDOW_BYTES_MAX >> 10) as u32 + 1024;
/// The memory of a decoder without a look at its block: `xz -9`.
const DECODER_BYTES: u64 = 64 << 20;

struct Block {
    file: Arc<File>,
    at: u64,
    flags: Flags,
    record: Record,
}

/// Reads the indexes, from the end of the file back.
pub(super) fn sections(file: &Arc<File>) -> Result<Sections, Damage> {
    let size = file_bytes(file)?;
    let mut end = size;
    let mut streams = Vec::new();
    let mut blocks = 0;
    while end > 0 {
        let Some((start, list)) = stream(file, end)? else { break };
        blocks += list.len() as u64;
        if blocks > BLOCKS_MAX || streams.len() >= STREAMS_MAX {
            let reason = format!("more than {BLOCKS_MAX} blocks or {STREAMS_MAX} streams");
            return Err(Damage::new(start, reason));
        }
        streams.push(list);
        end = start;
    }
    let mut at = 0_u64;
    let mut list = Vec::new();
    for block in streams.into_iter().rev().flatten() {
        let length = block.record.data_bytes;
        if length == 0 {
            continue;
        }
        at = next_offset(at, length, block.at)?;
        list.push(Section {
            length: Some(length),
            start: Box::new(block),
        });
    }
    Ok(Sections {
        list,
        decoder_bytes: DECODER_BYTES,
        spills: true,
    })
}

/// The stream that ends at `end`, or before the zeroes there: its first byte, and its blocks. None
/// where only zeroes are left.
fn stream(file: &Arc<File>, end: u64) -> Result<Option<(u64, Vec<Block>)>, Damage> {
    let bytes = |at: u64, length: u64| {
        let mut out = vec![0; length as usize];
        let read = read_up_to(file, &mut out, at).map_err(|error| Damage::new(at, error))?;
        match read == out.len() {
            true => Ok(out),
            false => Err(Damage::new(at + read as u64, "the file ends there")),
        }
    };
    let end = before_padding(end, bytes)?;
    let cut = "the file is truncated, or damaged after the data";
    let Some(at) = end.checked_sub(EDGE_BYTES as u64) else {
        return match end {
            0 => Ok(None),
            _ => Err(Damage::new(0, format!("{end} bytes are no stream; {cut}"))),
        };
    };
    let edge = |at: u64| {
        let mut out = [0; EDGE_BYTES];
        out.copy_from_slice(&bytes(at, EDGE_BYTES as u64)?);
        Ok(out)
    };
    let (index_bytes, flags) =
        xz::footer(&edge(at)?).map_err(|error| Damage::new(at, format!("{error}; {cut}")))?;
    let index_at = at
        .checked_sub(index_bytes)
        .filter(|_| index_bytes <= INDEX_BYTES_MAX);
    let Some(index_at) = index_at else {
        return Err(Damage::new(
            at,
            format!("an index of {index_bytes} bytes cannot be before it"),
        ));
    };
    let records = xz::index(&bytes(index_at, index_bytes)?);
    let records = records.map_err(|error| Damage::new(index_at, error))?;
    let mut block_at = index_at;
    let mut list = Vec::new();
    for record in records.into_iter().rev() {
        block_at = block_at.checked_sub(record.padded_bytes()).ok_or_else(|| {
            Damage::new(
                index_at,
                "the blocks of the index are longer than the file before it",
            )
        })?;
        list.push(Block {
            file: Arc::clone(file),
            at: block_at,
            flags,
            record,
        });
    }
    list.reverse();
    let Some(start) = block_at.checked_sub(EDGE_BYTES as u64) else {
        return Err(Damage::new(
            0,
            "there is no room for the header of a stream",
        ));
    };
    let header = xz::header(&edge(start)?).map_err(|error| Damage::new(start, error))?;
    if header != flags {
        return Err(Damage::new(
            start,
            "the header and the footer of a stream differ",
        ));
    }
    Ok(Some((start, list)))
}

/// Where the padding before `end` begins: zeroes, a multiple of 4 bytes. `bytes` reads some from an
/// offset; the pieces grow, because most streams have no padding.
fn before_padding(
    mut end: u64,
    mut bytes: impl FnMut(u64, u64) -> Result<Vec<u8>, Damage>,
) -> Result<u64, Damage> {
    let mut most = 4;
    while end >= 4 {
        let length = (end / 4 * 4).min(most);
        let piece = bytes(end - length, length)?;
        let words = piece.rchunks_exact(4).take_while(|word| *word == [0; 4]);
        let zeroes = words.count() as u64 * 4;
        end -= zeroes;
        if zeroes < length {
            break;
        }
        most = (most * 4).min(64 << 10);
    }
    Ok(end)
}

type Source = Chain<Chain<Cursor<[u8; EDGE_BYTES]>, Input>, Cursor<Vec<u8>>>;

struct Xz {
    reader: XzReader<Source>,
    position: Position,
}

impl Start for Block {
    fn decoder(&self) -> Result<Box<dyn Decoder>, Damage> {
        let input = Input::new(&self.file, self.at, self.at + self.record.padded_bytes());
        let position = input.position();
        let source = Cursor::new(self.flags.header())
            .chain(input)
            .chain(Cursor::new(self.flags.closing(self.record)));
        let reader = XzReader::new_mem_limit(source, false, LIMIT_KIB);
        Ok(Box::new(Xz { reader, position }))
    }
}

impl Decoder for Xz {
    fn decode(&mut self, out: &mut [u8]) -> Result<usize, Damage> {
        super::section::filled(&mut self.reader, out, &self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_read_in_large_pieces_and_ends_at_a_word_that_is_not_zero() {
        for zeroes in [0, 1, 3, 4, 16, 64 << 10, (64 << 10) + 4, 1 << 20, 64 << 20] {
            for begin in [vec![], vec![7; 13]] {
                let file = [&begin[..], &vec![0; zeroes]].concat();
                let mut reads = 0;
                let end = before_padding(file.len() as u64, |at, length| {
                    reads += 1;
                    Ok(file[at as usize..][..length as usize].to_vec())
                });
                let left = (begin.len() + zeroes % 4) as u64;
                assert_eq!(end.ok(), Some(left), "{zeroes} zeroes");
                assert!(reads <= 12 + zeroes / (64 << 10), "{reads} for {zeroes}");
            }
        }
    }
}
