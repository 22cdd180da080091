//! The effect of a request on a crashing disk.

use super::faults::Fault;
use super::options::Settings;
use super::recorder::{Recorder, entry};
use super::volatile::{Volatile, VolatileWrite};
use crate::draws::happens;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use ugeom_stack::{Bio, Channel, Command, Errno, Extent, ExtentKind, Flags, IoError, Opened};

/// How many sectors are remembered as they were before their last write.
const PREVIOUS_MAX: usize = 8192;
/// How likely a write that is in the cache when the power goes is lost, and how likely it is torn.
const LOST: f64 = 0.45;
const TORN: f64 = 0.2;

/// The way to the device below.
pub(super) struct Below {
    pub channel: Channel,
    pub opened: Opened,
}

impl Below {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Failure> {
        let read = self.channel.read(&self.opened, offset, into);
        read.map(drop).map_err(Failure::from)
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), Failure> {
        let written = self.channel.write(&self.opened, offset, from);
        written.map(drop).map_err(Failure::from)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.channel.flush(&self.opened).map_err(Failure::from)
    }
}

/// Why a request fails.
struct Failure {
    errno: Errno,
    reason: &'static str,
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Self {
        let reason = "the device below failed it";
        Self {
            errno: error.errno,
            reason,
        }
    }
}

const fn failure(errno: Errno, reason: &'static str) -> Failure {
    Failure { errno, reason }
}

/// A disk with a volatile cache, the faults that it was given, and a record of its writes.
pub(super) struct Model {
    settings: Settings,
    recorder: Option<Arc<Recorder>>,
    volatile: Volatile,
    /// Sectors that cannot be read until they are written.
    latent: BTreeSet<u64>,
    /// Sectors as they were before their last write; only where reads may be stale.
    previous: BTreeMap<u64, Vec<u8>>,
    /// Requests that were served.
    operations: u64,
    off: bool,
}

impl Model {
    pub fn new(settings: Settings, recorder: Option<Arc<Recorder>>) -> Self {
        Self {
            volatile: Volatile::new(settings.sector_bytes),
            settings,
            recorder,
            latent: BTreeSet::new(),
            previous: BTreeMap::new(),
            operations: 0,
            off: false,
        }
    }

    /// True when something is not on the media.
    pub fn is_dirty(&self) -> bool {
        !self.volatile.is_empty()
    }

    pub fn power_on(&mut self) {
        self.off = false;
    }

    /// Writes the cache to the media; writes doomed by a failed FLUSH are lost.
    pub fn settle(&mut self, below: &mut Below) {
        // The last writer has gone: no client gets an error.
        let _ = self.flush(below);
        self.volatile.clear();
        if let Some(recorder) = &self.recorder {
            let _ = recorder.write_out();
        }
    }

    pub fn serve(&mut self, below: &mut Below, mut bio: Bio) {
        self.operations += 1;
        if self.off {
            return bio.fail(Errno::IO, "the power of the disk was cut");
        }
        let (command, offset, length) = (bio.command(), bio.offset(), bio.length());
        let range = command.has_range().then_some((offset, length));
        let fault = self.settings.faults.of(self.operations, command, range);
        let done = match fault {
            Some(Fault::Cut) => Err(self.cut(below)),
            Some(Fault::Eio) => Err(failure(Errno::IO, "a failure injected by crash, once")),
            Some(Fault::NoSpace) => Err(failure(Errno::NOSPC, "ENOSPC injected by crash")),
            fault => {
                if fault == Some(Fault::Spike) {
                    std::thread::sleep(Duration::from_nanos(self.settings.delay_ns));
                }
                self.act(below, &mut bio, fault)
            }
        };
        match done {
            Ok(()) => bio.complete(Ok(length)),
            Err(failure) => bio.fail(failure.errno, failure.reason),
        }
    }

    fn act(
        &mut self,
        below: &mut Below,
        bio: &mut Bio,
        fault: Option<Fault>,
    ) -> Result<(), Failure> {
        let (offset, length) = (bio.offset(), bio.length());
        match bio.command() {
            Command::Read => {
                let mut data = vec![0; length as usize];
                self.read(below, offset, &mut data, fault)?;
                bio.fill(|at, piece| {
                    let at = at as usize;
                    piece.copy_from_slice(&data[at..at + piece.len()]);
                });
                Ok(())
            }
            Command::Write => {
                let mut data = Vec::with_capacity(length as usize);
                bio.each(|_, piece| data.extend_from_slice(piece));
                let fua = bio.flags().contains(Flags::FUA);
                self.logged(Command::Write, bio, &data, |model| {
                    if fua && fault.is_none() {
                        model.write_through(below, offset, &data)
                    } else {
                        model.write(below, offset, data.clone(), fault)
                    }
                })
            }
            command @ (Command::Zero | Command::Delete) => {
                self.logged(command, bio, &[], |model| {
                    model.discard(below, command, offset, length)
                })
            }
            Command::Flush => {
                let ticket = self.recorder.as_ref().map(|recorder| recorder.flush());
                let flushed = if fault == Some(Fault::FlushFail) {
                    self.volatile.doom();
                    Err(failure(Errno::IO, "a failed FLUSH injected by crash"))
                } else {
                    self.flush(below)
                };
                if let (Some(recorder), Some(ticket)) = (&self.recorder, ticket) {
                    recorder.flushed(ticket, flushed.is_ok());
                }
                flushed
            }
            Command::Extents => {
                bio.add_extent(Extent {
                    length_bytes: length,
                    kind: ExtentKind::Data,
                });
                Ok(())
            }
            Command::GetAttr => Err(failure(Errno::OPNOTSUPP, "no such attribute")),
        }
    }

    /// Does something between its record in the log and the note that it has completed.
    fn logged(
        &mut self,
        command: Command,
        bio: &Bio,
        data: &[u8],
        what: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let entry = entry(command, bio.offset(), bio.length(), bio.flags());
        let recorder = self.recorder.clone().filter(|_| bio.length() > 0);
        let Some((recorder, entry)) = recorder.zip(entry) else {
            return what(self);
        };
        let number = recorder
            .submitted(entry, |with| with(data))
            .map_err(|_| failure(Errno::IO, "the log of the class crash cannot be written"))?;
        let done = what(self);
        let durable = bio.flags().contains(Flags::FUA) && done.is_ok();
        recorder.completed(number, durable);
        done
    }

    fn sectors(&self, offset: u64, length: u64) -> std::ops::Range<u64> {
        let sector = self.settings.sector_bytes;
        offset / sector..(offset + length).div_ceil(sector)
    }

    /// The contents of media and cache together.
    fn look(&self, below: &mut Below, offset: u64, into: &mut [u8]) -> Result<(), Failure> {
        below.read(offset, into)?;
        self.volatile.overlay(offset, into);
        Ok(())
    }

    fn read(
        &mut self,
        below: &mut Below,
        offset: u64,
        into: &mut [u8],
        fault: Option<Fault>,
    ) -> Result<(), Failure> {
        let sectors = self.sectors(offset, into.len() as u64);
        let random = self.settings.faults.draw(self.operations, u64::MAX);
        if fault == Some(Fault::Latent) && !sectors.is_empty() {
            let count = sectors.end - sectors.start;
            self.latent.insert(sectors.start + random % count);
        }
        if self.latent.range(sectors.clone()).next().is_some() {
            return Err(failure(
                Errno::IO,
                "a sector cannot be read until it is written again",
            ));
        }
        self.look(below, offset, into)?;
        let sector = self.settings.sector_bytes as usize;
        if fault == Some(Fault::Stale) {
            for (number, data) in self.previous.range(sectors.clone()) {
                let at = (number - sectors.start) as usize * sector;
                into[at..at + sector].copy_from_slice(data);
            }
        }
        if fault == Some(Fault::Rot) && !into.is_empty() {
            let bit = (random % (into.len() as u64 * 8)) as usize;
            into[bit / 8] ^= 1 << (bit % 8);
            let start = bit / 8 / sector * sector;
            let changed = into[start..start + sector].to_vec();
            // On the media and in the cache, whichever is read next.
            let at = offset + start as u64;
            match below.write(at, &changed) {
                Ok(()) => self.volatile.add(at, changed),
                // The disk is open for reading only.
                Err(refused) if refused.errno == Errno::PERM => {
                    self.volatile.add_doomed(at, &changed);
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        below: &mut Below,
        offset: u64,
        data: Vec<u8>,
        fault: Option<Fault>,
    ) -> Result<(), Failure> {
        if data.is_empty() || fault == Some(Fault::Lost) {
            return Ok(());
        }
        if matches!(fault, Some(Fault::Misdirected | Fault::Duplicated)) {
            let elsewhere = self.elsewhere(offset, data.len() as u64);
            self.accept(below, elsewhere, data.clone())?;
        }
        if fault != Some(Fault::Misdirected) {
            self.accept(below, offset, data)?;
        }
        Ok(())
    }

    /// A write with FUA goes past the cache, unless that holds something older of the same place.
    fn write_through(
        &mut self,
        below: &mut Below,
        offset: u64,
        data: &[u8],
    ) -> Result<(), Failure> {
        if self.volatile.overlaps(offset, data.len() as u64) {
            self.make_durable(below)?;
        }
        self.volatile.forget_doomed(offset, data.len() as u64);
        for sector in self.sectors(offset, data.len() as u64) {
            self.latent.remove(&sector);
        }
        below.write(offset, data)?;
        below.flush()
    }

    /// Another place for so many bytes, in the range that faults hit if there is room in it.
    fn elsewhere(&self, offset: u64, length: u64) -> u64 {
        let sector = self.settings.sector_bytes;
        let region = self.settings.faults.region;
        let start = region.start_bytes.div_ceil(sector);
        let (start, end) = match region.end_bytes.checked_sub(length) {
            Some(last) if last / sector > start => (start, last / sector),
            _ => (0, (self.settings.media_bytes - length) / sector),
        };
        let random = self.settings.faults.draw(self.operations, u64::MAX);
        let found = start + random % (end - start + 1);
        if found * sector == offset && end > start {
            let next = if found == end { start } else { found + 1 };
            return next * sector;
        }
        found * sector
    }

    /// Takes a write into the cache; the oldest make room for it.
    fn accept(&mut self, below: &mut Below, offset: u64, data: Vec<u8>) -> Result<(), Failure> {
        let sectors = self.sectors(offset, data.len() as u64);
        for sector in sectors.clone() {
            self.latent.remove(&sector);
        }
        if self.settings.faults.has(Fault::Stale) {
            let mut before = vec![0; data.len()];
            self.look(below, offset, &mut before)?;
            let pieces = before.chunks(self.settings.sector_bytes as usize);
            for (sector, piece) in sectors.zip(pieces) {
                self.previous.insert(sector, piece.to_vec());
            }
            while self.previous.len() > PREVIOUS_MAX {
                self.previous.pop_first();
            }
        }
        self.volatile.add(offset, data);
        while self.volatile.bytes() > self.settings.cache_bytes {
            match self.volatile.pop() {
                Some(write) => below.write(write.offset_bytes, &write.data)?,
                None => break,
            }
        }
        Ok(())
    }

    /// DELETE and ZERO reach the media at once, after what is in the cache.
    fn discard(
        &mut self,
        below: &mut Below,
        command: Command,
        offset: u64,
        length: u64,
    ) -> Result<(), Failure> {
        self.make_durable(below)?;
        self.volatile.forget_doomed(offset, length);
        let sectors = self.sectors(offset, length);
        self.latent.retain(|sector| !sectors.contains(sector));
        let (channel, opened) = (&mut below.channel, &below.opened);
        let discarded = channel.discard(opened, command, offset, length);
        discarded.map(drop).map_err(Failure::from)
    }

    fn make_durable(&mut self, below: &mut Below) -> Result<(), Failure> {
        while let Some(write) = self.volatile.pop() {
            below.write(write.offset_bytes, &write.data)?;
        }
        Ok(())
    }

    fn flush(&mut self, below: &mut Below) -> Result<(), Failure> {
        self.make_durable(below)?;
        below.flush()
    }

    /// The power goes: each write in the cache is lost, torn or kept, by the seed.
    fn cut(&mut self, below: &mut Below) -> Failure {
        self.off = true;
        let off = failure(Errno::IO, "the power of the disk was cut");
        if !self.is_dirty() {
            // It may be open for reading only.
            return off;
        }
        let mut number = 0;
        while let Some(write) = self.volatile.pop() {
            number += 1;
            if let Err(failure) = self.survive(below, &write, number) {
                return failure;
            }
        }
        self.volatile.clear();
        match below.flush() {
            Err(failure) if failure.errno != Errno::PERM => failure,
            _ => off,
        }
    }

    fn survive(
        &self,
        below: &mut Below,
        write: &VolatileWrite,
        number: u64,
    ) -> Result<(), Failure> {
        let faults = &self.settings.faults;
        let fate = faults.draw(self.operations, number.wrapping_mul(2));
        if happens(LOST, fate) {
            return Ok(());
        }
        let torn = happens(LOST + TORN, fate);
        let units = faults.draw(self.operations, number.wrapping_mul(2).wrapping_add(1));
        let unit_bytes = self.settings.tear_bytes as usize;
        for (index, unit) in write.data.chunks(unit_bytes).enumerate() {
            if !torn || units.rotate_right(index as u32) & 1 == 1 {
                let at = write.offset_bytes + (index * unit_bytes) as u64;
                below.write(at, unit)?;
            }
        }
        Ok(())
    }
}
