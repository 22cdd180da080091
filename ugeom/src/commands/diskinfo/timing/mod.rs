//! The measurements of FreeBSD's diskinfo(8): the overhead of a command, seek times and transfer
//! rates, random reads at a queue depth, and synchronous random writes.
//!
//! Source: `usr.sbin/diskinfo/diskinfo.c` of FreeBSD for the reads, their number and their order;
//! `docs/diskinfo.md` for the differences.

mod drive;
mod error;
mod step;
pub mod strokes;
#[cfg(test)]
mod tests;

pub use error::DiskinfoError;
pub use step::{Step, StepKind};

use drive::{Drive, Flushing};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_stack::{Opened, ProviderView, Stack};

/// The size of a transfer, bytes.
const MEGA_BYTES: u64 = 1 << 20;
/// How many blocks the overhead of a command is computed from.
const OVERHEAD_BLOCKS: u64 = 10;
/// How often the first sector is read again for it.
const OVERHEAD_SECTORS: u64 = 20_480;
/// Transfer rates come from so many blocks at most.
const TRANSFER_BLOCKS_MAX: u64 = 100;
/// The blocks of random reads besides a sector, bytes.
const READ_BYTES: [u64; 4] = [4 << 10, 32 << 10, 128 << 10, MEGA_BYTES];
/// The largest block that is written, bytes.
const WRITE_BYTES_MAX: u64 = 8 << 20;
/// So many writes are made between two looks at the clock.
const WRITES: u64 = 250;
/// How long random reads of one size take where nothing else is said, ns.
const READS_NS: u64 = 3_000_000_000;
/// The same of random writes, ns.
const WRITES_NS: u64 = 1_000_000_000;

/// The measurements to run, and their lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The overhead of a command.
    pub overhead: bool,
    /// Seek times and transfer rates.
    pub seeks: bool,
    /// Measure random reads, many in flight (`-i`).
    pub reads: bool,
    /// Synchronous random writes, which destroy the content.
    pub writes: bool,
    /// How long each size of block is read or written at random, ns; 3 s and 1 s without.
    pub each_ns: Option<u64>,
    /// The seed of random places and written data; any without.
    pub seed: Option<u64>,
}

/// The callbacks of a measurement.
pub struct Around<'a> {
    /// The time now, ns.
    pub now_ns: &'a mut dyn FnMut() -> u64,
    /// Set to end early: the current step is dropped.
    pub cancelled: &'a AtomicBool,
    /// Takes each step once it is measured, and says whether to go on.
    pub tell: &'a mut dyn FnMut(Step) -> ControlFlow<()>,
}

/// Whether all was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything that was asked for was measured.
    Complete,
    /// Ctrl-C ended the measurement; later steps are missing.
    Early,
}

impl Settings {
    /// Anything to measure at all?
    pub fn any(&self) -> bool {
        self.overhead || self.seeks || self.reads || self.writes
    }

    /// Whether a provider is large enough for all that is to be measured.
    ///
    /// # Errors
    /// [`DiskinfoError::TooSmall`] with the size that is needed.
    pub fn check(&self, provider: &ProviderView) -> Result<(), DiskinfoError> {
        let sector_bytes = u64::from(provider.sectorsize_bytes);
        let of_seeks = if self.seeks {
            strokes::SECTORS_MIN * sector_bytes
        } else {
            0
        };
        let needed_bytes = of_seeks.max(MEGA_BYTES);
        if sector_bytes == 0 || provider.mediasize_bytes < needed_bytes {
            return Err(DiskinfoError::TooSmall {
                provider: provider.name.clone(),
                media_bytes: provider.mediasize_bytes,
                needed_bytes,
                sector_bytes,
            });
        }
        // Blocks of a megabyte must consist of whole sectors.
        if !MEGA_BYTES.is_multiple_of(sector_bytes) {
            return Err(DiskinfoError::SectorSize {
                provider: provider.name.clone(),
                sector_bytes,
            });
        }
        Ok(())
    }
}

/// Measures an opened provider: first the overhead, then seeks, reads and writes.
///
/// # Errors
/// [`DiskinfoError`]: it is too small, or its error of a request.
pub fn measure(
    settings: &Settings,
    stack: &Stack,
    (provider, opened): (&ProviderView, &Arc<Opened>),
    around: &mut Around<'_>,
) -> Result<Ended, DiskinfoError> {
    settings.check(provider)?;
    let random = match settings.seed {
        Some(seed) => fastrand::Rng::with_seed(seed),
        None => fastrand::Rng::new(),
    };
    let mut session = Session {
        drive: Drive::new(stack, opened)?,
        sector_bytes: u64::from(provider.sectorsize_bytes),
        media_bytes: provider.mediasize_bytes,
        each_ns: settings.each_ns,
        random,
        around,
    };
    let parts: [(bool, Part<'_, '_>); 4] = [
        (settings.overhead, Session::overhead),
        (settings.seeks, Session::seeks),
        (settings.reads, Session::reads),
        (settings.writes, Session::writes),
    ];
    for (_, part) in parts.iter().filter(|(wanted, _)| *wanted) {
        if part(&mut session)?.is_break() {
            return Ok(Ended::Early);
        }
    }
    Ok(Ended::Complete)
}

type Part<'a, 'b> = fn(&mut Session<'a, 'b>) -> Result<ControlFlow<()>, DiskinfoError>;

/// A provider while it is measured.
struct Session<'a, 'b> {
    drive: Drive,
    sector_bytes: u64,
    media_bytes: u64,
    each_ns: Option<u64>,
    random: fastrand::Rng,
    around: &'a mut Around<'b>,
}

/// Goes on with the next step unless it was interrupted.
macro_rules! step {
    ($done:expr) => {
        if $done?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    };
}

impl Session<'_, '_> {
    fn overhead(&mut self) -> Result<ControlFlow<()>, DiskinfoError> {
        // A media of less than ten blocks is read again from its start.
        let blocks = self.media_bytes / MEGA_BYTES;
        let places = (0..OVERHEAD_BLOCKS).map(|block| block % blocks * MEGA_BYTES);
        step!(self.read_all(StepKind::Overhead, "read 10MB block", MEGA_BYTES, places));
        let places = (0..OVERHEAD_SECTORS).map(|_| 0);
        let bytes = self.sector_bytes;
        self.read_all(StepKind::Overhead, "read 20480 sectors", bytes, places)
    }

    fn seeks(&mut self) -> Result<ControlFlow<()>, DiskinfoError> {
        let bytes = self.sector_bytes;
        for stroke in strokes::strokes(self.media_bytes / bytes) {
            let places = stroke.sectors.into_iter().map(|sector| sector * bytes);
            step!(self.read_all(StepKind::Seek, stroke.name, bytes, places));
        }
        let blocks = (self.media_bytes / MEGA_BYTES).min(TRANSFER_BLOCKS_MAX);
        let last = self.media_bytes - blocks * MEGA_BYTES;
        let middle = last / 2 / bytes * bytes;
        for (name, start) in [("outside", 0), ("middle", middle), ("inside", last)] {
            let places = (0..blocks).map(|block| start + block * MEGA_BYTES);
            step!(self.read_all(StepKind::Transfer, name, MEGA_BYTES, places));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads one place after the other, after one reading of the first that is not timed.
    fn read_all(
        &mut self,
        kind: StepKind,
        name: &str,
        bytes: u64,
        places: impl Iterator<Item = u64>,
    ) -> Result<ControlFlow<()>, DiskinfoError> {
        let mut places = places.peekable();
        let first = places.peek().copied();
        self.drive
            .read(name, first.into_iter(), self.sector_bytes)?;
        let start_ns = (self.around.now_ns)();
        let cancelled = self.around.cancelled;
        let going = |_: &u64| !cancelled.load(Ordering::Relaxed);
        let requests = self.drive.read(name, places.take_while(going), bytes)?;
        if self.cancelled() {
            return Ok(ControlFlow::Break(()));
        }
        Ok(self.tell(kind, name, (requests, bytes), start_ns))
    }

    fn reads(&mut self) -> Result<ControlFlow<()>, DiskinfoError> {
        step!(self.random_reads("sectorsize", self.sector_bytes));
        let larger = |bytes: &u64| *bytes > self.sector_bytes;
        let sizes: Vec<u64> = READ_BYTES.into_iter().filter(larger).collect();
        for bytes in sizes {
            step!(self.random_reads(&format!("{} kbytes", bytes >> 10), bytes));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn random_reads(&mut self, name: &str, bytes: u64) -> Result<ControlFlow<()>, DiskinfoError> {
        let each_ns = self.each_ns.unwrap_or(READS_NS);
        // Any sector that a whole block fits behind.
        let sectors = (self.media_bytes - bytes) / self.sector_bytes + 1;
        let sector_bytes = self.sector_bytes;
        let Self {
            drive,
            random,
            around,
            ..
        } = self;
        let start_ns = (around.now_ns)();
        let requests = drive.read_many(
            name,
            bytes,
            &mut || random.u64(0..sectors) * sector_bytes,
            &mut || {
                let over = (around.now_ns)().saturating_sub(start_ns) >= each_ns;
                over || around.cancelled.load(Ordering::Relaxed)
            },
        )?;
        if self.cancelled() {
            return Ok(ControlFlow::Break(()));
        }
        Ok(self.tell(StepKind::Read, name, (requests, bytes), start_ns))
    }

    fn writes(&mut self) -> Result<ControlFlow<()>, DiskinfoError> {
        let largest = WRITE_BYTES_MAX.min(self.media_bytes);
        let mut flushing = Flushing::Wanted;
        let mut bytes = self.sector_bytes;
        while bytes <= largest {
            step!(self.random_writes(bytes, &mut flushing));
            bytes *= 2;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn random_writes(
        &mut self,
        bytes: u64,
        flushing: &mut Flushing,
    ) -> Result<ControlFlow<()>, DiskinfoError> {
        let name = format!("{} kbytes", bytes as f64 / 1024.0);
        let each_ns = self.each_ns.unwrap_or(WRITES_NS);
        let mut writes = self.drive.writes(bytes, &mut self.random)?;
        let start_ns = (self.around.now_ns)();
        let mut requests = 0;
        loop {
            for _ in 0..WRITES {
                if self.cancelled() {
                    return Ok(ControlFlow::Break(()));
                }
                let place = self.random.u64(0..self.media_bytes / bytes) * bytes;
                writes.write(&name, place, flushing)?;
            }
            requests += WRITES;
            if (self.around.now_ns)().saturating_sub(start_ns) >= each_ns {
                return Ok(self.tell(StepKind::Write, &name, (requests, bytes), start_ns));
            }
        }
    }

    fn cancelled(&self) -> bool {
        self.around.cancelled.load(Ordering::Relaxed)
    }

    fn tell(
        &mut self,
        kind: StepKind,
        name: &str,
        (requests, bytes_each): (u64, u64),
        start_ns: u64,
    ) -> ControlFlow<()> {
        let taken_ns = (self.around.now_ns)().saturating_sub(start_ns);
        (self.around.tell)(Step {
            kind,
            name: name.to_owned(),
            requests,
            bytes_each,
            taken_ns,
        })
    }
}
