//! The bytes of a medium, read in blocks and kept, for probes that look here and there.

use std::collections::BTreeMap;

/// Reads `length` bytes from `offset`; both are multiples of 4 KiB but at the end of the medium. A
/// shorter answer ends at the end of the readable bytes.
pub type ByteRead<'a> = dyn FnMut(u64, usize) -> Result<Vec<u8>, String> + 'a;

/// The unit of reading.
const BLOCK_BYTES: u64 = 4096;
/// The most that one look at a medium reads: four ZFS labels, and much less for all others
/// together.
pub const MAX_READ_BYTES: u64 = 4 << 20;
/// Both ends of a medium are read in one piece each: nearly all structures lie there, and a slow
/// server answers each read after the same time, whatever its length. Four ZFS labels fill them.
const END_BLOCKS: u64 = 128;
const MAX_BLOCKS: usize = (MAX_READ_BYTES / BLOCK_BYTES) as usize;

/// A medium that is looked at.
pub struct View<'a> {
    size_bytes: u64,
    read: &'a mut ByteRead<'a>,
    blocks: BTreeMap<u64, Vec<u8>>,
    /// The ends that were read, or cannot be as a whole: the first, the last.
    tried: [bool; 2],
    error: Option<String>,
}

impl<'a> View<'a> {
    pub fn new(size_bytes: u64, read: &'a mut ByteRead<'_>) -> View<'a> {
        View {
            size_bytes,
            read,
            blocks: BTreeMap::new(),
            tried: [false; 2],
            error: None,
        }
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub fn into_error(self) -> Option<String> {
        self.error
    }

    /// Up to `length` bytes from `offset`; fewer at the end of the medium and where reading failed.
    pub fn bytes(&mut self, offset: u64, length: usize) -> Vec<u8> {
        let end = offset.saturating_add(length as u64).min(self.size_bytes);
        let mut out = Vec::with_capacity(length.min(MAX_READ_BYTES as usize));
        let mut at = offset;
        while at < end {
            let number = at / BLOCK_BYTES;
            let last = (end - 1) / BLOCK_BYTES;
            self.fetch(number, last);
            let Some(block) = self.blocks.get(&number) else { break };
            let skip = (at - number * BLOCK_BYTES) as usize;
            let take = ((end - at) as usize).min(block.len().saturating_sub(skip));
            if take == 0 {
                break;
            }
            out.extend_from_slice(&block[skip..skip + take]);
            at += take as u64;
        }
        out
    }

    /// Reads the blocks from `first` on, up to the first that is here already or `last`.
    fn fetch(&mut self, first: u64, last: u64) {
        if self.blocks.contains_key(&first) {
            return;
        }
        self.fetch_end(first);
        if self.blocks.contains_key(&first) {
            return;
        }
        let room = (MAX_BLOCKS - self.blocks.len().min(MAX_BLOCKS)) as u64;
        let wanted = (first..=last)
            .take_while(|number| !self.blocks.contains_key(number))
            .count() as u64;
        let count = wanted.min(room).min(256);
        if count == 0 {
            return;
        }
        let offset = first * BLOCK_BYTES;
        let length = (count * BLOCK_BYTES).min(self.size_bytes - offset);
        match (self.read)(offset, length as usize) {
            Ok(bytes) => self.keep(first, &bytes),
            // A partly readable range is read piece by piece.
            Err(_) if count > 1 => self.fetch(first, first),
            Err(error) => {
                self.error.get_or_insert(error);
                self.blocks.insert(first, Vec::new());
            }
        }
    }

    fn keep(&mut self, first: u64, bytes: &[u8]) {
        for (number, block) in (first..).zip(bytes.chunks(BLOCK_BYTES as usize)) {
            self.blocks.insert(number, block.to_vec());
        }
    }

    /// Reads the end of the medium that holds a block, once. One that is not wholly readable is
    /// read in smaller pieces.
    fn fetch_end(&mut self, number: u64) {
        let all = self.size_bytes.div_ceil(BLOCK_BYTES);
        let head = END_BLOCKS.min(all);
        let tail = all.saturating_sub(END_BLOCKS).max(head);
        let (side, blocks) = match number {
            _ if number < head => (0, 0..head),
            _ if number >= tail => (1, tail..all),
            _ => return,
        };
        if std::mem::replace(&mut self.tried[side], true) {
            return;
        }
        let offset = blocks.start * BLOCK_BYTES;
        let end = blocks.end.saturating_mul(BLOCK_BYTES).min(self.size_bytes);
        let length = end - offset;
        if let Ok(bytes) = (self.read)(offset, length as usize) {
            self.keep(blocks.start, &bytes);
        }
    }

    /// Whether `magic` stands at `offset`.
    pub fn has(&mut self, offset: u64, magic: &[u8]) -> bool {
        self.bytes(offset, magic.len()) == magic
    }

    /// The `N` bytes from `offset`; zeroes where there are fewer.
    pub fn array<const N: usize>(&mut self, offset: u64) -> [u8; N] {
        let mut out = [0; N];
        let bytes = self.bytes(offset, N);
        out[..bytes.len()].copy_from_slice(&bytes);
        out
    }

    pub fn byte(&mut self, offset: u64) -> u8 {
        self.array::<1>(offset)[0]
    }

    pub fn u16_le(&mut self, offset: u64) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    pub fn u16_be(&mut self, offset: u64) -> u16 {
        u16::from_be_bytes(self.array(offset))
    }

    pub fn u32_le(&mut self, offset: u64) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    pub fn u32_be(&mut self, offset: u64) -> u32 {
        u32::from_be_bytes(self.array(offset))
    }

    pub fn u64_le(&mut self, offset: u64) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }

    pub fn u64_be(&mut self, offset: u64) -> u64 {
        u64::from_be_bytes(self.array(offset))
    }

    /// The last sector of 512 bytes, or the one `before` sectors before it; `None` on a medium that
    /// is smaller than `least` bytes.
    pub fn sector_before_end(&self, sectors: u64, least: u64) -> Option<u64> {
        if self.size_bytes < least {
            return None;
        }
        (self.size_bytes / 512)
            .checked_sub(sectors)
            .map(|s| s * 512)
    }
}
