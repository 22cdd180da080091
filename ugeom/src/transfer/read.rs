//! From a provider to a stream: requests are sent ahead, and their bytes leave in order.
//!
//! ```text
//!   this thread    [ read 0 ][ read 1 ][ read 2 ]..
//!   the writer               [ write 0 ][ write 1 ]..    at most WRITES_AHEAD blocks wait for it
//! ```
//! A copy between two files in the page cache is two copies in memory, which two cores make at a
//! time: 1 GiB takes 0.36 s instead of 0.55 s.
//!
//! How many requests are sent ahead depends on the provider. Bytes that come from memory (the page
//! cache, a memory disk) are there at once: one is enough, and few buffers stay in the cache of the
//! CPU. A device that is waited for gets [`DEPTH`] requests.

use super::Geometry;
use super::sink::Sink;
use super::stretches::Stretches;
use crate::progress::Progress;
use anyhow::{Result, bail};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::{panic, thread};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Finished, Opened};

/// The size of a block in bytes. Those on the way to the writer fit in the caches of two cores.
const BLOCK_BYTES: u64 = 256 << 10;
/// Most requests in flight. With the size of a block it bounds the memory.
const DEPTH: usize = 32;
/// Most blocks that wait to be written.
const WRITES_AHEAD: usize = 2;

/// What is written next.
enum Piece {
    /// The bytes of a bio, of which these are wanted.
    Data(Finished, Range<usize>),
    /// So many bytes of zeroes.
    Hole(u64),
}

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
    /// How many blocks are requested ahead now, from 1 to [`DEPTH`].
    ahead_blocks: usize,
    /// The number of the first of `blocks`; a bio carries that of its block.
    first: u64,
    /// Bios to use again, with their buffers: what the writer gives back.
    written: Receiver<Finished>,
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
    let geometry = Geometry::in_blocks(&provider, BLOCK_BYTES);
    let sectors = geometry.sectors(&range);
    let (written, spare) = mpsc::channel();
    let mut reader = Reader {
        channel,
        opened,
        stretches: Stretches::new(asking, opened, geometry),
        buffer_bytes: geometry.block_bytes.min(sectors.end - sectors.start),
        geometry,
        ahead: range,
        blocks: VecDeque::with_capacity(DEPTH),
        ahead_blocks: 1,
        first: 0,
        written: spare,
    };
    thread::scope(|scope| {
        let (pieces, to_write) = mpsc::sync_channel(WRITES_AHEAD);
        let writer = scope.spawn(move || write(&to_write, out, &written));
        let read = reader.read(&pieces, &mut |at| progress.at(at - start));
        drop(pieces);
        match writer.join() {
            Ok(ended) => ended?,
            Err(panicked) => panic::resume_unwind(panicked),
        }
        Ok(read? - start)
    })
}

/// Writes the pieces and gives the bios of their bytes back.
fn write(pieces: &Receiver<Piece>, out: &mut Sink, written: &Sender<Finished>) -> Result<()> {
    let mut all = || {
        for piece in pieces {
            match piece {
                Piece::Hole(length) => out.hole(length)?,
                Piece::Data(finished, wanted) => {
                    let bytes = finished.buffer().and_then(|buffer| buffer.get(wanted));
                    let Some(bytes) = bytes else {
                        bail!("a request returned without its buffer");
                    };
                    out.data(bytes)?;
                    // The reader may have ended.
                    let _ = written.send(finished);
                }
            }
        }
        Ok(())
    };
    let copied = all();
    // The bytes before a fault belong to the file, also where they are a hole.
    let ended = out.finish();
    copied?;
    ended
}

/// The depth of the channel that [`copy`] needs: requests, and blocks of the writer.
pub const CHANNEL_DEPTH: usize = DEPTH + WRITES_AHEAD + 1;

impl Reader<'_> {
    /// Sends all blocks to the writer, and returns the offset behind the last one. Ends early when
    /// the writer does.
    fn read(&mut self, pieces: &SyncSender<Piece>, passed: &mut dyn FnMut(u64)) -> Result<u64> {
        let mut at = self.ahead.start;
        while let Some((block, finished)) = self.next()? {
            let end = block.wanted.end;
            let piece = match finished {
                None => Piece::Hole(end - block.wanted.start),
                Some(finished) => {
                    let inside = |at: u64| (at - block.sectors.start) as usize;
                    Piece::Data(finished, inside(block.wanted.start)..inside(end))
                }
            };
            if pieces.send(piece).is_err() {
                break;
            }
            at = end;
            passed(at);
        }
        Ok(at)
    }

    /// The next block with its bytes, a hole without; nothing at the end.
    fn next(&mut self) -> Result<Option<(Block, Option<Finished>)>> {
        self.send_ahead()?;
        self.adapt();
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

    /// Sends fewer requests ahead where the last one needed no wait, and more where the first one
    /// does.
    fn adapt(&mut self) {
        // The first round sends, and the second one takes what is there at once.
        if self.channel.poll() == 0 {
            self.channel.poll();
        }
        self.sort();
        let is_read = |block: Option<&Block>| block.is_some_and(|block| block.finished.is_some());
        let is_hole = |block: Option<&Block>| block.is_none_or(|block| block.sectors.is_empty());
        if is_read(self.blocks.back()) {
            self.ahead_blocks = (self.ahead_blocks / 2).max(1);
        } else if !is_read(self.blocks.front()) && !is_hole(self.blocks.front()) {
            self.ahead_blocks = (self.ahead_blocks * 2).min(DEPTH);
        }
    }

    fn send_ahead(&mut self) -> Result<()> {
        while self.blocks.len() < self.ahead_blocks && !self.ahead.is_empty() {
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
            let draft = match self.written.try_recv().ok() {
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

    /// Waits for bios to complete.
    fn collect(&mut self) {
        self.channel.wait(None);
        self.sort();
    }

    /// Gives the bios that have completed to their blocks.
    fn sort(&mut self) {
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
