//! Reads a target: blocks of one size, one after the other or at random, so many at once.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use ugeom_classes::Target;
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, RunResult, Work};
use ugeom_load::door::{Request, StackCalls, StackDoor};
use ugeom_load::drive::{Queue, one_by_one};
use ugeom_load::places::{Either, Random, Sequence};
use ugeom_load::recorder::Unwatched;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_measure::units::size_human;
use ugeom_stack::{Delta, StackError};

/// How targets are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The size of a read, bytes.
    pub size_bytes: u64,
    /// At random places, and not one after the other.
    pub random: bool,
    /// Queue depth: reads in flight.
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

/// Every case reads the same places, so that random ones differ in nothing but the target.
const SEED: u64 = 0x5eed;

/// The case that reads a target; an iteration is one read.
///
/// # Errors
/// [`HarnessError::Stack`] when the target cannot be opened for reading,
/// [`HarnessError::Compare`] when it is too small, or has other sectors.
pub(super) fn case(
    name: &str,
    target: &Target,
    load: &Load,
) -> Result<Case<'static>, HarnessError> {
    let mut places = places(target, load)?;
    let stack = target.stack.clone();
    let opened = stack.open(target.top, Delta::READ);
    let opened = Arc::new(opened.map_err(HarnessError::stack)?);
    let (bytes, depth) = (load.size_bytes as usize, load.depth.max(1));
    let case = name.to_owned();
    Ok(Case::new(name, move |iterations| {
        // Where the memory of a channel and of the buffers happens to lie is worth some per cent.
        // Memory allocated anew for each run lies in the same places for both sides.
        let mut channel = stack.channel(depth as usize).map_err(HarnessError::stack)?;
        let requests = places.by_ref().take(iterations as usize);
        let requests = requests.map(|offset| Request::read(offset, bytes as u32));
        let (start_ns, done) = if depth == 1 {
            let mut buffer = Buffer::new(bytes);
            let mut door = StackCalls::new(&mut channel, &opened, &mut buffer);
            let start_ns = clock::now_ns();
            (start_ns, one_by_one(&mut door, requests, &mut Unwatched))
        } else {
            let door = StackDoor::new(channel, Arc::clone(&opened), depth, bytes);
            let mut queue = Queue::new(door, depth);
            let start_ns = clock::now_ns();
            (start_ns, queue.run(requests, &mut Unwatched))
        };
        let ns_total = clock::now_ns() - start_ns;
        let done = done.map_err(|failure| failure.in_case(&case))?;
        Ok(RunResult::taking(ns_total).doing(Work::of(done.bytes, done.requests)))
    }))
}

/// Where a target is read.
fn places(target: &Target, load: &Load) -> Result<Either, HarnessError> {
    let tree = target.stack.tree();
    let missing = || StackError::NoProvider {
        name: target.name.clone(),
        known: Vec::new(),
    };
    let view = tree
        .provider(&target.name)
        .ok_or_else(missing)
        .map_err(HarnessError::stack)?;
    let size_bytes = load.size_bytes;
    let sector_bytes = u64::from(view.sectorsize_bytes).max(1);
    let refused = |problem: String| HarnessError::Compare(format!("{}: {problem}", target.name));
    if size_bytes == 0 || !size_bytes.is_multiple_of(sector_bytes) {
        return Err(refused(format!(
            "reads of {size_bytes} bytes are no multiple of its sectors of {sector_bytes} bytes"
        )));
    }
    let blocks = view.mediasize_bytes / size_bytes;
    if blocks == 0 {
        return Err(refused(format!(
            "it holds {} bytes, too few for a read of {size_bytes}",
            view.mediasize_bytes
        )));
    }
    Ok(match load.random {
        true => {
            let rng = fastrand::Rng::with_seed(SEED);
            Either::Random(Random::new(0, size_bytes, blocks, rng))
        }
        false => Either::Sequence(Sequence::new(0, size_bytes, blocks)),
    })
}
