//! The work of cases: reading a provider through its stack, by one thread, by two, or by many
//! requests at once; and reading the same bytes without a stack.

use crate::door::{Calls, Request, StackDoor};
use crate::drive::{Done, Queue, one_by_one};
use crate::failure::Failure;
use crate::recorder::Unwatched;
use crate::start::Cores;
use crate::start::{Span, together};
use crate::tst::Tst;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use ugeom_harness::HarnessError;
use ugeom_harness::rounds::{CHAINS, fill_core};
use ugeom_harness::{Case, Placement, RunResult, Seats};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_machine::region::Region;
use ugeom_stack::{Channel, Delta, Opened, ProviderId, Stack};

/// Buffers lie at multiples of a cache line, or of this for devices that ask for more, bytes.
pub const DIRECT_STEP_BYTES: usize = 4096;

/// Bytes of a line of the processor's cache.
pub const LINE_BYTES: usize = 64;

/// A thread's way to read the beginning of a provider again and again.
struct Reader {
    channel: Channel,
    opened: Arc<Opened>,
    arena: Buffer,
    placement: Placement,
    read_bytes: u32,
}

impl Reader {
    fn new(
        stack: &Stack,
        opened: &Arc<Opened>,
        read_bytes: u64,
        placement: &Placement,
    ) -> Result<Self, HarnessError> {
        Ok(Self {
            channel: stack.channel(1).map_err(HarnessError::stack)?,
            opened: Arc::clone(opened),
            arena: Buffer::new(Placement::arena_bytes(read_bytes as usize)),
            placement: placement.clone(),
            read_bytes: read_bytes as u32,
        })
    }

    /// Reads so many times. The cost of a layer is measured here, so the loop holds nothing but the
    /// call: that of `drive` takes eleven instructions more for each request.
    #[inline(never)]
    fn reads(&mut self, count: u64) -> Result<Done, Failure> {
        let memory = &mut self.arena[self.placement.part(self.read_bytes as usize)];
        for _ in 0..count {
            let got = self.channel.read(&self.opened, 0, memory);
            if !got.as_ref().is_ok_and(|got| *got == memory.len()) {
                return Err(Failure::of_read(self.read_bytes, got));
            }
        }
        Ok(Done {
            requests: count,
            bytes: count * u64::from(self.read_bytes),
        })
    }
}

/// So many reads of one place.
fn same(offset: u64, read_bytes: u32, count: u64) -> impl Iterator<Item = Request> {
    (0..count).map(move |_| Request::read(offset, read_bytes))
}

fn open(stack: &Stack, provider: ProviderId) -> Result<Arc<Opened>, HarnessError> {
    let opened = stack.open(provider, Delta::READ);
    Ok(Arc::new(opened.map_err(HarnessError::stack)?))
}

/// Reads the first `read_bytes` of a provider, one request after the other, into a buffer that
/// lies elsewhere in each run.
///
/// # Errors
/// [`HarnessError::Stack`] when it cannot be opened.
pub fn reading(
    name: &str,
    stack: &Stack,
    provider: ProviderId,
    read_bytes: u64,
) -> Result<Case<'static>, HarnessError> {
    reading_in_steps(LINE_BYTES, name, stack, provider, read_bytes)
}

/// The same with buffers at multiples of `step_bytes`.
///
/// # Errors
/// As [`reading`].
pub fn reading_in_steps(
    step_bytes: usize,
    name: &str,
    stack: &Stack,
    provider: ProviderId,
    read_bytes: u64,
) -> Result<Case<'static>, HarnessError> {
    let placement = Placement::new(step_bytes);
    let opened = open(stack, provider)?;
    let mut reader = Reader::new(stack, &opened, read_bytes, &placement)?;
    let case = name.to_owned();
    let run = move |iterations| {
        let start_ns = clock::now_ns();
        let read = reader.reads(iterations);
        read.map_err(|failure| failure.in_case(&case))?;
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    };
    Ok(Case::new(name, run).moving(placement))
}

/// The same by several threads, which share the iterations; the time is that from the first start
/// to the last end.
///
/// # Errors
/// [`HarnessError::Stack`] when it cannot be opened.
pub fn reading_by(
    (threads, cores): (u64, Cores),
    name: &str,
    stack: &Stack,
    provider: ProviderId,
    read_bytes: u64,
) -> Result<Case<'static>, HarnessError> {
    let opened = open(stack, provider)?;
    let placement = Placement::new(LINE_BYTES);
    let reader = |_| Reader::new(stack, &opened, read_bytes, &placement);
    let mut readers: Vec<Reader> = (0..threads).map(reader).collect::<Result<_, _>>()?;
    let case = name.to_owned();
    let seats = cores.seats(threads as usize);
    let seated = seats.clone();
    let run = move |iterations: u64| {
        let each = iterations / threads;
        let one = |_, reader: &mut Reader| {
            Span::of(|| reader.reads(each).map_err(|failure| failure.in_case(&case)))
        };
        let (ns, _) = together(&case, seats.as_ref(), readers.iter_mut(), one)?;
        Ok(RunResult::taking(ns))
    };
    let mut case = Case::new(name, run).in_steps_of(threads).moving(placement);
    case.seats = seated;
    Ok(case)
}

/// The work of threads that share nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// One chain in registers: each step needs the one before, and most of the core is idle.
    Chain,
    /// Many chains side by side: as much as the core can do at a time. Two threads of one core
    /// share that, so that each takes twice as long, where a single chain notices nothing.
    Filling,
}

impl Sums {
    /// Computes for about as long as a request takes.
    #[inline(always)]
    fn turn(self, states: &mut [u64; CHAINS]) {
        match self {
            Self::Chain => {
                let state = &mut states[0];
                for _ in 0..CHAIN_STEPS {
                    *state ^= *state << 13;
                    *state ^= *state >> 7;
                    *state ^= *state << 17;
                }
            }
            Self::Filling => {
                for _ in 0..FILLING_STEPS {
                    fill_core(states);
                }
            }
        }
    }
}

/// Computing by several threads that share nothing, each on a core of its own; they share the
/// iterations. The gain from another core is the limit of the machine.
pub fn computing(name: &str, threads: u64, sums: Sums) -> Case<'static> {
    match sums {
        Sums::Chain => computing_by(name, threads, |states| Sums::Chain.turn(states)),
        Sums::Filling => computing_by(name, threads, |states| Sums::Filling.turn(states)),
    }
}

fn computing_by(
    name: &str,
    threads: u64,
    turn: impl Fn(&mut [u64; CHAINS]) + Copy + Send + Sync + 'static,
) -> Case<'static> {
    let case = name.to_owned();
    let threads = threads.max(1);
    let seats = Seats::of(threads as usize);
    let seated = seats.clone();
    let run = move |iterations: u64| {
        let each = iterations / threads;
        let one = |index: usize, _| {
            Span::of(|| {
                let first = 0x9e37_79b9_7f4a_7c15 ^ index as u64;
                let mut states: [u64; CHAINS] = std::array::from_fn(|chain| first ^ chain as u64);
                for _ in 0..each {
                    turn(&mut states);
                    black_box(states[0]);
                }
                black_box(states);
                Ok(())
            })
        };
        let (ns, _) = together(&case, Some(&seats), 0..threads as usize, one)?;
        Ok(RunResult::taking(ns))
    };
    Case::new(name, run).in_steps_of(threads).seated(seated)
}

/// Steps of an iteration of [`Sums::Chain`].
const CHAIN_STEPS: u32 = 16;
/// Steps of an iteration of [`Sums::Filling`], each of all chains.
const FILLING_STEPS: u32 = 32;

/// Sends `batch` reads at once and waits for all of them: one iteration.
///
/// # Errors
/// [`HarnessError`] when the provider cannot be opened or read.
pub fn reading_at_once(
    batch: u32,
    name: &str,
    stack: &Stack,
    provider: ProviderId,
    read_bytes: u64,
) -> Result<Case<'static>, HarnessError> {
    let channel = stack.channel(batch as usize).map_err(HarnessError::stack)?;
    let door = StackDoor::new(channel, open(stack, provider)?, batch, read_bytes as usize);
    let mut queue = Queue::new(door, batch);
    let case = name.to_owned();
    let mut once = move || {
        let read = queue.run(same(0, read_bytes as u32, batch.into()), &mut Unwatched);
        read.map_err(|failure| failure.in_case(&case))
    };
    once()?;
    Ok(Case::new(name, move |iterations| {
        let start_ns = clock::now_ns();
        for _ in 0..iterations {
            once()?;
        }
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    }))
}

/// Copies `read_bytes` at `offset_bytes` out of a region of memory by a plain call: what a memory
/// disk does, without a stack around it.
pub fn copying(
    name: &str,
    region: &Arc<Region>,
    offset_bytes: u64,
    read_bytes: u64,
) -> Case<'static> {
    let region = Arc::clone(region);
    let (bytes, placement) = (read_bytes as usize, Placement::new(LINE_BYTES));
    let mut arena = Buffer::new(Placement::arena_bytes(bytes));
    let (place, case) = (placement.clone(), name.to_owned());
    let case = Case::new(name, move |iterations| {
        let memory = &mut arena[place.part(bytes)];
        let start_ns = clock::now_ns();
        let mut door = Calls::new(memory, |request: &Request, memory: &mut [u8]| {
            region.read(black_box(request.offset), black_box(memory));
            Ok(u64::from(request.length))
        });
        let requests = same(offset_bytes, bytes as u32, iterations);
        let read = one_by_one(&mut door, requests, &mut Unwatched);
        read.map_err(|failure| failure.in_case(&case))?;
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    });
    case.moving(placement)
}

/// The loop of 2002: lseek and read of the beginning of a file.
///
/// # Errors
/// [`HarnessError::Os`] when it cannot be opened.
pub fn calling(name: &str, path: &Path, read_bytes: u64) -> Result<Case<'static>, HarnessError> {
    let mut tst = Tst::open(path, read_bytes as usize)?;
    Ok(Case::new(name, move |iterations| {
        Ok(RunResult::taking(tst.timed(iterations)?))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_classes::{Target, TargetOptions, open_target};

    fn target(text: &str) -> Target {
        open_target(text, &TargetOptions::default()).unwrap()
    }

    fn reads_of(target: &Target) -> u64 {
        let totals = target.stack.statistics(target.top).unwrap();
        totals.operations[ugeom_stack::Command::Read as usize]
    }

    #[test]
    fn a_case_reads_as_often_as_it_is_told() {
        let md = target("md:1m");
        let tasted = reads_of(&md);
        let mut one = reading("one", &md.stack, md.top, 512).unwrap();
        (one.run)(17).unwrap();
        assert_eq!(reads_of(&md) - tasted, 17);
        let mut two = reading_by((2, Cores::OneEach), "two", &md.stack, md.top, 4096).unwrap();
        assert_eq!(two.step, 2);
        (two.run)(30).unwrap();
        assert_eq!(reads_of(&md) - tasted, 47);
    }

    #[test]
    fn many_at_once_share_one_delay() {
        let slow = target("md:1m | nop:delay=1ms");
        let tasted = reads_of(&slow);
        let mut case = reading_at_once(100, "hundred", &slow.stack, slow.top, 512).unwrap();
        let result = (case.run)(3).unwrap();
        assert_eq!(
            reads_of(&slow) - tasted,
            400,
            "one batch to warm up, three counted"
        );
        assert!(result.ns_total >= 3_000_000, "three delays: {result:?}");
    }

    #[test]
    fn a_provider_that_is_too_small_or_fails_is_an_error() {
        let md = target("md:512");
        let mut case = reading("small", &md.stack, md.top, 4096).unwrap();
        let error = (case.run)(1).unwrap_err().to_string();
        assert_eq!(
            error,
            "small: a read of 4096 bytes at offset 0 ended after 512"
        );
        let broken = target("md:1m | nop:rfail=1");
        let mut case = reading("broken", &broken.stack, broken.top, 512).unwrap();
        let error = (case.run)(1).unwrap_err().to_string();
        assert!(error.starts_with("case broken: "), "{error}");
        assert!(reading_at_once(3, "broken", &broken.stack, broken.top, 512).is_err());
    }

    #[test]
    fn bytes_are_copied_without_a_stack() {
        let region = Arc::new(Region::new(1 << 20).unwrap());
        assert!((copying("plain", &region, 512, 512).run)(1000).is_ok());
        let mut zero = calling("zero", Path::new("/dev/zero"), 512).unwrap();
        assert!((zero.run)(100).unwrap().ns_total > 0);
    }
}
