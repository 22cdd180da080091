//! From a provider to a stream: requests are sent ahead, and their bytes leave in order.

use super::sink::Sink;
use super::stretches::Stretches;
use super::{DEPTH, Geometry};
use crate::progress::Progress;
use anyhow::{Result, bail};
use std::collections::VecDeque;
use std::ops::Range;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Finished, Opened};

/// A block in flight, in the order of its bytes.
struct Block {
    wanted: Range<u64>,
    /// The sectors around them; none of a hole.
    sectors: Range<u64>,
    finished: Option<Finished>,
}

struct Reader<'a> {
    channel: Channel,
    opened: &'a Opened,
    geometry: Geometry,
    stretches: Stretches<'a>,
    /// The range that was not requested yet.
    ahead: Range<u64>,
    /// Room for the longest request of the range.
    buffer_bytes: u64,
    blocks: VecDeque<Block>,
    /// The number of the first of `blocks`; a bio carries that of its block.
    first: u64,
    /// Bios to use again, with their buffers.
    spare: Vec<Finished>,
}

/// Writes the bytes of `range` of a provider to `out`. Returns how many there were. Each of the two
/// channels has requests of its own in flight; the second asks for holes.
///
/// # Errors
/// The error of reading or writing. The bytes before the fault have been written.
pub fn copy(
    opened: &Opened,
    (channel, asking): (Channel, Channel),
    range: Range<u64>,
    out: &mut Sink,
) -> Result<u64> {
    let Some(provider) = opened.view() else {
        bail!("the provider is destroyed");
    };
    let mut progress = Progress::new(Some(range.end - range.start));
    let start = range.start;
    let geometry = Geometry::of(&provider);
    let sectors = geometry.sectors(&range);
    let mut reader = Reader {
        channel,
        opened,
        stretches: Stretches::new(asking, opened, geometry),
        buffer_bytes: geometry.block_bytes.min(sectors.end - sectors.start),
        geometry,
        ahead: range,
        blocks: VecDeque::with_capacity(DEPTH),
        first: 0,
        spare: Vec::with_capacity(DEPTH),
    };
    let mut at = start;
    while let Some((block, finished)) = reader.next()? {
        let Some(finished) = finished else {
            out.hole(block.wanted.end - block.wanted.start)?;
            at = block.wanted.end;
            progress.at(at - start);
            continue;
        };
        let skip = (block.wanted.start - block.sectors.start) as usize;
        let end = (block.wanted.end - block.sectors.start) as usize;
        let bytes = finished.buffer().and_then(|buffer| buffer.get(skip..end));
        let Some(bytes) = bytes else {
            bail!("a request returned without its buffer");
        };
        out.data(bytes)?;
        at = block.wanted.end;
        progress.at(at - start);
        reader.spare.push(finished);
    }
    out.finish()?;
    Ok(at - start)
}

/// The channel that [`copy`] needs.
pub const CHANNEL_DEPTH: usize = DEPTH;

impl Reader<'_> {
    /// The next block with its bytes, a hole without; nothing at the end.
    fn next(&mut self) -> Result<Option<(Block, Option<Finished>)>> {
        self.send_ahead()?;
        loop {
            let Some(block) = self.blocks.front_mut() else { return Ok(None) };
            if block.sectors.is_empty() {
                let block = self.blocks.pop_front();
                self.first += 1;
                return Ok(block.map(|block| (block, None)));
            }
            if let Some(finished) = block.finished.take() {
                let Some(block) = self.blocks.pop_front() else { return Ok(None) };
                self.first += 1;
                self.check(&block, &finished)?;
                return Ok(Some((block, Some(finished))));
            }
            self.collect();
        }
    }

    fn send_ahead(&mut self) -> Result<()> {
        while self.blocks.len() < DEPTH && !self.ahead.is_empty() {
            let (is_hole, until) = self.stretches.at(&self.ahead);
            if is_hole {
                self.blocks.push_back(Block {
                    wanted: self.ahead.start..until,
                    sectors: 0..0,
                    finished: None,
                });
                self.ahead.start = until;
                continue;
            }
            let end = self.geometry.block_end(self.ahead.start).min(until);
            let wanted = self.ahead.start..end;
            let sectors = self.geometry.sectors(&wanted);
            let length = sectors.end - sectors.start;
            let draft = match self.spare.pop() {
                Some(finished) => finished.again().at(sectors.start),
                None => {
                    let Some(draft) = self.channel.bio() else {
                        bail!("the channel has no bio left");
                    };
                    draft.read(sectors.start, Buffer::new(self.buffer_bytes as usize))
                }
            };
            let number = self.first + self.blocks.len() as u64;
            self.blocks.push_back(Block {
                wanted,
                sectors,
                finished: None,
            });
            self.ahead.start = end;
            self.channel
                .submit(self.opened, draft.length(length).cookie(number));
        }
        Ok(())
    }

    /// Waits for bios to complete, and sorts them.
    fn collect(&mut self) {
        self.channel.wait(None);
        while let Some(finished) = self.channel.finished() {
            let at = finished.cookie().wrapping_sub(self.first) as usize;
            if let Some(block) = self.blocks.get_mut(at) {
                block.finished = Some(finished);
            }
        }
    }

    fn check(&self, block: &Block, finished: &Finished) -> Result<()> {
        if let Some(error) = self.channel.explain(finished) {
            return Err(error.into());
        }
        let read = finished.result()?;
        let wanted = block.wanted.end - block.sectors.start;
        if read < wanted {
            let at = block.sectors.start + read;
            bail!("the media ended at {at} while it was read: it has become smaller");
        }
        Ok(())
    }
}
