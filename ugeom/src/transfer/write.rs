//! From a stream to a provider: whole blocks are sent while the next are read from the stream.

use super::input::Input;
use super::{DEPTH, Geometry};
use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use ugeom_machine::buffer::Buffer;
use ugeom_measure::units::grouped;
use ugeom_stack::{Channel, Command, ExtentKind, Opened, RangeLock, Unaligned};

/// The channel that [`copy`] needs.
pub const CHANNEL_DEPTH: usize = DEPTH;

struct Writer<'a> {
    channel: Channel,
    opened: &'a Opened,
    unaligned: Unaligned,
    geometry: Geometry,
    /// Buffers that no bio has.
    spare: Vec<Buffer>,
    /// Bytes written, also after a failed write.
    written_bytes: u64,
}

/// How a stream is to end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Wherever it does, but not behind the end of the range.
    Anywhere,
    /// It must have as many bytes as the range; more is not read.
    AtTheEnd,
}

/// Writes a stream to the bytes of `range` of a provider, and flushes. Returns how many there
/// were.
///
/// # Errors
/// The error of reading or writing; the stream does not end as it has to. Bytes written before
/// stay written, and the error states their number.
pub fn copy(
    opened: &Opened,
    channel: Channel,
    range: Range<u64>,
    end: End,
    from: &mut Input,
) -> Result<u64> {
    let Some(provider) = opened.view() else {
        bail!("the provider is destroyed");
    };
    let mut writer = Writer {
        channel,
        opened,
        unaligned: Unaligned::new(opened, &Arc::new(RangeLock::new()))?,
        geometry: Geometry::of(&provider),
        spare: Vec::with_capacity(DEPTH),
        written_bytes: 0,
    };
    let length = range.end - range.start;
    let total = match end {
        End::AtTheEnd => Some(length),
        End::Anywhere => from.bytes_left().map(|bytes| bytes.min(length)),
    };
    let mut progress = Progress::new(total);
    let copied = writer.copy(range, from, &mut progress);
    let written = copied.and_then(|written| writer.settle().map(|()| written));
    let written = written.map_err(|error| {
        writer.drain();
        let bytes = grouped(writer.written_bytes);
        error.context(format!("after {bytes} bytes were written"))
    })?;
    writer.channel.flush(opened).context("flushing writes")?;
    if from.interrupted() {
        return Ok(written);
    }
    if written < length && end == End::AtTheEnd {
        bail!("the input ended after {written} of {length} bytes, which were written");
    }
    if written == length && end == End::Anywhere && has_more(from)? {
        let name = &provider.name;
        bail!(
            "the input is longer than the {length} bytes up to the end of {name}, \
             which were written"
        );
    }
    Ok(written)
}

fn has_more(from: &mut impl Read) -> Result<bool> {
    Ok(fill(from, &mut [0])? > 0)
}

/// Reads until the buffer is full or the stream ends.
fn fill(from: &mut impl Read, into: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match from.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("reading stdin"),
        }
    }
    Ok(filled)
}

impl Writer<'_> {
    fn copy(
        &mut self,
        range: Range<u64>,
        from: &mut Input,
        progress: &mut Progress,
    ) -> Result<u64> {
        let mut at = range.start;
        while at < range.end {
            let hole = from.hole().min(range.end - at);
            let hole = hole - hole % self.geometry.sector_bytes;
            if hole > 0 && self.geometry.is_aligned(at) && !from.interrupted() {
                self.make_hole(at..at + hole)?;
                from.skip(hole).context("reading stdin")?;
                at += hole;
                progress.at(at - range.start);
                continue;
            }
            let wanted = self.geometry.block_end(at).min(range.end) - at;
            let mut buffer = self.buffer()?;
            let piece = &mut buffer[..wanted as usize];
            let filled = fill(from, piece)?;
            if filled == 0 {
                break;
            }
            self.put(at, buffer, filled)?;
            at += filled as u64;
            progress.at(at - range.start);
            if (filled as u64) < wanted {
                break;
            }
        }
        Ok(at - range.start)
    }

    /// Makes a range read as zeroes, as a hole where the provider can have one.
    fn make_hole(&mut self, range: Range<u64>) -> Result<()> {
        if self.is_zeroed(&range) {
            self.written_bytes += range.end - range.start;
            return Ok(());
        }
        let mut at = range.start;
        while at < range.end {
            let end = self.geometry.block_end(at).min(range.end);
            let mut buffer = self.buffer()?;
            buffer[..(end - at) as usize].fill(0);
            self.put(at, buffer, (end - at) as usize)?;
            at = end;
        }
        Ok(())
    }

    /// Whether a range reads as zeroes, without a write of zeroes.
    fn is_zeroed(&mut self, range: &Range<u64>) -> bool {
        if self.is_hole(range) {
            return true;
        }
        let length = range.end - range.start;
        // DELETE is advice; where it leaves data, zeroes are asked for.
        let _ = self
            .channel
            .discard(self.opened, Command::Delete, range.start, length);
        if self.is_hole(range) {
            return true;
        }
        let zeroed = self
            .channel
            .discard(self.opened, Command::Zero, range.start, length);
        zeroed.is_ok_and(|zeroed| zeroed as u64 == length)
    }

    /// Whether the provider knows that a range reads as zeroes.
    fn is_hole(&mut self, range: &Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let left = range.end - at;
            let Ok(found) = self.channel.extents(self.opened, at, left, 64) else { return false };
            if found.is_empty() || found.iter().any(|it| it.kind == ExtentKind::Data) {
                return false;
            }
            at += found.iter().map(|it| it.length_bytes).sum::<u64>();
        }
        true
    }

    /// Writes the first `length` bytes of a buffer.
    fn put(&mut self, at: u64, buffer: Buffer, length: usize) -> Result<()> {
        let end = at + length as u64;
        if self.geometry.is_aligned(at) && self.geometry.is_aligned(end) {
            let Some(draft) = self.channel.bio() else {
                bail!("the channel has no bio left");
            };
            let draft = draft
                .write(at, buffer)
                .length(length as u64)
                .cookie(length as u64);
            self.channel.submit(self.opened, draft);
            return Ok(());
        }
        let bytes = &buffer[..length];
        let written = self
            .unaligned
            .write(&mut self.channel, self.opened, at, bytes)?;
        self.written_bytes += written as u64;
        if written < length {
            bail!(
                "the media ended at {} while it was written",
                at + written as u64
            );
        }
        self.spare.push(buffer);
        Ok(())
    }

    /// A buffer of one block; waits for one while all are in flight.
    fn buffer(&mut self) -> Result<Buffer> {
        while self.spare.is_empty() && self.channel.in_flight() >= DEPTH {
            self.collect()?;
        }
        self.channel.poll();
        self.take_finished()?;
        let block = self.geometry.block_bytes as usize;
        Ok(self.spare.pop().unwrap_or_else(|| Buffer::new(block)))
    }

    fn collect(&mut self) -> Result<()> {
        self.channel.wait(None);
        self.take_finished()
    }

    fn take_finished(&mut self) -> Result<()> {
        while let Some(mut finished) = self.channel.finished() {
            if let Some(error) = self.channel.explain(&finished) {
                return Err(error.into());
            }
            let written = finished.result()?;
            self.written_bytes += written;
            if written < finished.cookie() {
                bail!("the media ended while it was written: it has become smaller");
            }
            self.spare.extend(finished.take_buffer());
            self.channel.recycle(finished);
        }
        Ok(())
    }

    /// Waits for requests in flight when a write has failed.
    fn drain(&mut self) {
        loop {
            while let Some(finished) = self.channel.finished() {
                self.written_bytes += finished.result().unwrap_or(0);
                self.channel.recycle(finished);
            }
            if self.channel.in_flight() == 0 {
                return;
            }
            self.channel.wait(None);
        }
    }

    /// Waits until everything sent has been written.
    fn settle(&mut self) -> Result<()> {
        while self.channel.in_flight() > 0 {
            self.collect()?;
        }
        self.take_finished()
    }
}
