//! Reads a target: blocks of one size, one after the other or at random, so many at once.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use ugeom_classes::Target;
use ugeom_harness::HarnessError;
use ugeom_harness::{Cell, RunResult, Work};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_measure::units::size_human;
use ugeom_stack::{Channel, Delta, Opened, Stack, StackError};

/// How targets are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The size of a read, bytes.
    pub size_bytes: u64,
    /// At random places, and not one after the other.
    pub random: bool,
    /// How many reads are under way at once.
    pub depth: u32,
}

impl Default for Load {
    /// 4 KiB, one after the other, one at a time.
    fn default() -> Self {
        Self {
            size_bytes: 4096,
            random: false,
            depth: 1,
        }
    }
}

/// `random reads of 4 KiB, 32 at once`.
impl fmt::Display for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.random { "random" } else { "sequential" };
        write!(out, "{order} reads of {}", size_human(self.size_bytes))?;
        match self.depth {
            1 => write!(out, ", queue depth 1"),
            depth => write!(out, ", queue depth {depth}"),
        }
    }
}

/// No read takes longer than this, or it is lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Every cell reads the same places, so that random ones differ in nothing but the target.
const SEED: u64 = 0x5eed;

/// The cell that reads a target; an iteration is one read.
///
/// # Errors
/// [`HarnessError::Stack`] when the target cannot be opened for reading,
/// [`HarnessError::Compare`] when it is too small, or has other sectors.
pub(super) fn cell(
    name: &str,
    target: &Target,
    load: &Load,
) -> Result<Cell<'static>, HarnessError> {
    let mut reader = Reader::new(name, target, *load)?;
    Ok(Cell::new(name, move |iterations| {
        // Where the memory of a channel and of the buffers happens to lie is worth some per cent.
        // What is taken anew for each run lies in the same places for both sides.
        let mut hands = Hands::new(&reader)?;
        let start_ns = clock::now_ns();
        if reader.load.depth <= 1 {
            reader.one_by_one(&mut hands, iterations)?;
        } else {
            reader.at_once(&mut hands, iterations)?;
        }
        let work = Work::of(iterations * reader.load.size_bytes, iterations);
        Ok(RunResult::taking(clock::now_ns() - start_ns).doing(work))
    }))
}

/// What a run reads with.
struct Hands {
    channel: Channel,
    buffers: Vec<Buffer>,
}

impl Hands {
    fn new(reader: &Reader) -> Result<Self, HarnessError> {
        let depth = reader.load.depth.max(1) as usize;
        let buffer = || Buffer::new(reader.load.size_bytes as usize);
        Ok(Self {
            channel: reader.stack.channel(depth).map_err(HarnessError::stack)?,
            buffers: (0..depth).map(|_| buffer()).collect(),
        })
    }
}

/// A target that is kept open, and how far it was read.
struct Reader {
    cell: String,
    load: Load,
    stack: Stack,
    opened: Opened,
    blocks: u64,
    next: u64,
    random: fastrand::Rng,
}

impl Reader {
    fn new(cell: &str, target: &Target, load: Load) -> Result<Self, HarnessError> {
        let stack = &target.stack;
        let tree = stack.tree();
        let missing = || StackError::NoProvider {
            name: target.name.clone(),
            known: Vec::new(),
        };
        let view = tree
            .provider(&target.name)
            .ok_or_else(missing)
            .map_err(HarnessError::stack)?;
        let sector_bytes = u64::from(view.sectorsize_bytes).max(1);
        let refused =
            |problem: String| HarnessError::Compare(format!("{}: {problem}", target.name));
        if load.size_bytes == 0 || !load.size_bytes.is_multiple_of(sector_bytes) {
            return Err(refused(format!(
                "reads of {} bytes are no multiple of its sectors of {sector_bytes} bytes",
                load.size_bytes
            )));
        }
        let blocks = view.mediasize_bytes / load.size_bytes;
        if blocks == 0 {
            return Err(refused(format!(
                "it holds {} bytes, too few for a read of {}",
                view.mediasize_bytes, load.size_bytes
            )));
        }
        Ok(Self {
            cell: cell.to_owned(),
            load,
            stack: stack.clone(),
            opened: stack
                .open(target.top, Delta::READ)
                .map_err(HarnessError::stack)?,
            blocks,
            next: 0,
            random: fastrand::Rng::with_seed(SEED),
        })
    }

    fn offset_bytes(&mut self) -> u64 {
        let block = if self.load.random {
            self.random.u64(0..self.blocks)
        } else {
            self.next = (self.next + 1) % self.blocks;
            self.next
        };
        block * self.load.size_bytes
    }

    fn one_by_one(&mut self, hands: &mut Hands, count: u64) -> Result<(), HarnessError> {
        for _ in 0..count {
            let offset_bytes = self.offset_bytes();
            let buffer = &mut hands.buffers[0];
            let got = hands.channel.read(&self.opened, offset_bytes, buffer);
            let got = got.map_err(|source| HarnessError::request(self.cell.clone(), source))?;
            self.whole(offset_bytes, got as u64)?;
        }
        Ok(())
    }

    fn at_once(&mut self, hands: &mut Hands, count: u64) -> Result<(), HarnessError> {
        let (mut started, mut done) = (0, 0);
        while done < count {
            while started < count && !hands.buffers.is_empty() {
                let Some(draft) = hands.channel.bio() else {
                    break;
                };
                let offset_bytes = self.offset_bytes();
                let Some(buffer) = hands.buffers.pop() else {
                    break;
                };
                let draft = draft.cookie(offset_bytes).read(offset_bytes, buffer);
                hands.channel.submit(&self.opened, draft);
                started += 1;
            }
            if hands.channel.wait(Some(PATIENCE)) == 0 {
                return Err(HarnessError::Thread {
                    cell: self.cell.clone(),
                    problem: "a read did not complete within a minute".to_owned(),
                });
            }
            done += self.collect(hands)?;
        }
        Ok(())
    }

    /// Takes what has come back; how many reads that were.
    fn collect(&self, hands: &mut Hands) -> Result<u64, HarnessError> {
        let mut done = 0;
        while let Some(mut finished) = hands.channel.finished() {
            if let Some(source) = hands.channel.explain(&finished) {
                let cell = self.cell.clone();
                return Err(HarnessError::request(cell, source));
            }
            self.whole(finished.cookie(), finished.result().unwrap_or(0))?;
            hands.buffers.extend(finished.take_buffer());
            hands.channel.recycle(finished);
            done += 1;
        }
        Ok(done)
    }

    fn whole(&self, offset_bytes: u64, got_bytes: u64) -> Result<(), HarnessError> {
        if got_bytes == self.load.size_bytes {
            return Ok(());
        }
        Err(HarnessError::Short {
            path: self.cell.clone(),
            offset_bytes,
            wanted_bytes: self.load.size_bytes,
            got_bytes,
        })
    }
}
