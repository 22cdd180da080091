//! Sectors with tags, between the caller's data and the sectors below.
//!
//! ```text
//! data    [ sector 0: D | D | D | rest ][ sector 1: D | D | D | rest ] ...
//!            |     \     \     \
//! below   [T|D' |0][T|D' |0][T|D' |0][T|rest'|0] ...      D' = encrypted D, T = its tag
//! ```
//! Tags are made for 16 or 2 sub-sectors of one length at a time, so whole ones and last ones are
//! taken apart; a batch of sectors makes enough of both, and stays in the processor's cache
//! between its tags and its cipher.

use super::cipher::Pieces;
use super::crypt::{Crypt, CryptError};
use super::data_keys::DataKey;
use super::tag::{Tag, TagKey};
use std::io;
use std::ops::Range;
use ugeom_format::eli::SubSectors;
use ugeom_machine::aes::Strides;
use ugeom_machine::secret;
use ugeom_machine::sha256::LANES;

/// Sectors that are worked on together.
const BATCH_SECTORS: usize = 16;
/// How deep the frames are that hold keys of tags, bytes: those of SHA-256 in the lanes of AVX-512
/// (10 KiB), of any hash of a crate, and of SHA-256 by two messages (6 KiB). Frames of code that is
/// not optimised are deeper.
const FRAMES_BYTES: usize = 16 << 10;
const FRAMES_BYTES_OF_TWO: usize = if cfg!(debug_assertions) {
    12 << 10
} else {
    8 << 10
};

impl Crypt {
    /// Encrypts whole sectors and gives them their tags: `to` has the length that the layout says.
    ///
    /// # Errors
    /// `Memory`.
    pub fn seal(&self, offset: u64, from: &[u8], to: &mut [u8]) -> io::Result<()> {
        let Some(tagged) = self.tagged(offset) else {
            return self.encrypt(offset, from, to);
        };
        let sealed = self.seal_tagged(tagged, from, to);
        // Also when there was no memory for a data key.
        tagged.scrub(from.len());
        sealed
    }

    // Not inlined, so that its frame lies where the frames are that are overwritten.
    #[inline(never)]
    fn seal_tagged(
        &self,
        Tagged { tags, place }: Tagged<'_>,
        from: &[u8],
        to: &mut [u8],
    ) -> io::Result<()> {
        let data = from.chunks(BATCH_SECTORS * place.sector_bytes);
        let below = to.chunks_mut(BATCH_SECTORS * place.stride_bytes());
        for (number, (data, below)) in data.zip(below).enumerate() {
            let place = place.batch(number);
            self.each_run(place, data.len(), |key, run| {
                let from = &data[run.data];
                let to = &mut below[run.below + place.tag_bytes()..];
                let pieces = Pieces {
                    strides: place.strides(run.at, false),
                    length: from.len(),
                    from,
                    to,
                };
                key.encrypt_apart(&self.ivs, pieces);
            })?;
            for start in (0..below.len()).step_by(place.below_bytes) {
                let used = place.tag_bytes() + place.carried(start);
                below[start + used..start + place.below_bytes].fill(0);
            }
            place.each_tag(tags, data.len(), below, |below, start, tag| {
                below[start..start + tag.len()].copy_from_slice(tag);
            });
        }
        Ok(())
    }

    /// Checks the tags of whole sectors and decrypts them: `from` has the length that the layout
    /// says. Nothing is decrypted behind the first batch that has a wrong tag.
    ///
    /// # Errors
    /// `Authentication`, which names the first sector whose tag is wrong, or `Memory`.
    pub fn open(&self, offset: u64, from: &[u8], to: &mut [u8]) -> Result<(), CryptError> {
        let Some(tagged) = self.tagged(offset) else {
            to.copy_from_slice(from);
            return Ok(self.decrypt(offset, to)?);
        };
        let opened = self.open_tagged(tagged, from, to);
        // Also when a tag was wrong.
        tagged.scrub(to.len());
        opened
    }

    #[inline(never)]
    fn open_tagged(
        &self,
        Tagged { tags, place }: Tagged<'_>,
        from: &[u8],
        to: &mut [u8],
    ) -> Result<(), CryptError> {
        let below = from.chunks(BATCH_SECTORS * place.stride_bytes());
        let data = to.chunks_mut(BATCH_SECTORS * place.sector_bytes);
        for (number, (mut below, data)) in below.zip(data).enumerate() {
            let place = place.batch(number);
            let mut wrong = None;
            place.each_tag(tags, data.len(), &mut below, |below, start, tag| {
                if !secret::equal(tag, &below[start..start + place.tag_bytes()]) {
                    let sector = start / place.stride_bytes();
                    wrong = Some(wrong.map_or(sector, |first: usize| first.min(sector)));
                }
            });
            if let Some(sector) = wrong {
                return Err(CryptError::Authentication {
                    offset: place.offset + (sector * place.sector_bytes) as u64,
                    length: place.sector_bytes as u64,
                });
            }
            self.each_run(place, data.len(), |key, run| {
                let to = &mut data[run.data];
                let from = &below[run.below + place.tag_bytes()..];
                let pieces = Pieces {
                    strides: place.strides(run.at, true),
                    length: to.len(),
                    from,
                    to,
                };
                key.decrypt_apart(&self.ivs, pieces);
            })?;
        }
        Ok(())
    }

    fn tagged(&self, offset: u64) -> Option<Tagged<'_>> {
        let layout = self.layout();
        let place = SectorBatch {
            offset,
            below_offset: layout.below(offset, 0).0,
            sector_bytes: layout.sector_bytes as usize,
            below_bytes: layout.below_bytes as usize,
            sub: layout.sub_sectors?,
        };
        let tags = self.tags.as_ref()?;
        Some(Tagged { tags, place })
    }

    /// The sub-sectors of `length` bytes of data, in runs of one sector and one key.
    fn each_run(
        &self,
        place: SectorBatch,
        length: usize,
        mut with: impl FnMut(&DataKey<'_>, Run),
    ) -> io::Result<()> {
        let (count, unit) = (place.sub.count as usize, place.sub.data_bytes as usize);
        for (sector, start) in (0..length).step_by(place.sector_bytes).enumerate() {
            let mut first = 0;
            while first < count {
                let below = (sector * count + first) * place.below_bytes;
                let at = place.below_offset + below as u64;
                let (key, left) = self.keys.at(at)?;
                let left = usize::try_from(left / place.below_bytes as u64).unwrap_or(count);
                let end = count.min(first + left.max(1));
                let data_end = place.sector_bytes.min(end * unit);
                let data = start + first * unit..start + data_end;
                with(&key, Run { at, below, data });
                first = end;
            }
        }
        Ok(())
    }
}

/// Sectors with tags, and the key of those.
#[derive(Clone, Copy)]
struct Tagged<'a> {
    tags: &'a TagKey,
    place: SectorBatch,
}

impl Tagged<'_> {
    /// Overwrites the keys of the tags of `length` bytes of data on the stack.
    #[inline(always)]
    fn scrub(&self, length: usize) {
        let sub_sectors = length / self.place.sector_bytes * self.place.sub.count as usize;
        match self.tags.takes_two_at_most(sub_sectors) {
            true => secret::scrub_frames::<FRAMES_BYTES_OF_TWO>(),
            false => secret::scrub_frames::<FRAMES_BYTES>(),
        }
    }
}

/// Sub-sectors behind each other that share a key.
struct Run {
    /// Where the first lies on the provider below.
    at: u64,
    /// Where it begins among the sectors below.
    below: usize,
    /// Their data among the caller's.
    data: Range<usize>,
}

/// Where a batch of sectors lies.
#[derive(Clone, Copy)]
struct SectorBatch {
    /// Of the first sector.
    offset: u64,
    /// The same on the provider below.
    below_offset: u64,
    sector_bytes: usize,
    below_bytes: usize,
    sub: SubSectors,
}

impl SectorBatch {
    fn tag_bytes(&self) -> usize {
        self.sub.tag_bytes as usize
    }

    fn stride_bytes(&self) -> usize {
        self.sub.count as usize * self.below_bytes
    }

    /// The place of a later batch.
    fn batch(self, number: usize) -> Self {
        let before = (number * BATCH_SECTORS) as u64;
        Self {
            offset: self.offset + before * self.sector_bytes as u64,
            below_offset: self.below_offset + before * self.stride_bytes() as u64,
            ..self
        }
    }

    /// Data that the sub-sector at `start` carries, bytes.
    fn carried(&self, start: usize) -> usize {
        let number = start / self.below_bytes % self.sub.count as usize;
        self.sub.carried_bytes(number as u32) as usize
    }

    /// For the cipher each sub-sector is a sector of its own.
    fn strides(&self, at: u64, opens: bool) -> Strides {
        let data = self.sub.data_bytes as usize;
        let (from_step, to_step) = match opens {
            true => (self.below_bytes, data),
            false => (data, self.below_bytes),
        };
        Strides {
            offset: at,
            offset_step: self.below_bytes as u64,
            piece_bytes: data,
            from_step,
            to_step,
        }
    }

    /// The tags of what lies in `below`, the sectors of `length` bytes of data: `with` gets where
    /// each sub-sector begins and its tag.
    fn each_tag<B: AsRef<[u8]> + ?Sized>(
        &self,
        tags: &TagKey,
        length: usize,
        below: &mut B,
        mut with: impl FnMut(&mut B, usize, &[u8]),
    ) {
        let (sectors, count) = (length / self.sector_bytes, self.sub.count as usize);
        let (whole, tag_bytes) = (count - 1, self.tag_bytes());
        let start = |sector: usize, number: usize| (sector * count + number) * self.below_bytes;
        let mut run = |starts: &mut dyn Iterator<Item = usize>, carried: usize| {
            let mut together = [0; LANES];
            let mut made = [[0; size_of::<Tag>()]; LANES];
            loop {
                let mut count = 0;
                for (place, start) in together.iter_mut().zip(&mut *starts) {
                    *place = start;
                    count += 1;
                }
                if count == 0 {
                    return;
                }
                let offsets = together.map(|start| self.below_offset + start as u64);
                let data = together.map(|start| &below.as_ref()[start + tag_bytes..][..carried]);
                tags.tags(&offsets[..count], &data[..count], &mut made[..count]);
                for (start, tag) in together.iter().zip(&made).take(count) {
                    with(below, *start, &tag[..tag_bytes]);
                }
            }
        };
        // Those that carry all that they can, and the last ones.
        let mut all = (0..sectors).flat_map(|sector| (0..whole).map(move |n| start(sector, n)));
        run(&mut all, self.sub.carried_bytes(0) as usize);
        let mut last = (0..sectors).map(|sector| start(sector, whole));
        run(&mut last, self.sub.carried_bytes(whole as u32) as usize);
    }
}
