//! The work of cells: reading a provider through its stack, by one thread, by two, or by many
//! requests at once; and reading the same bytes without a stack.

use crate::tst::Tst;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use ugeom_harness::HarnessError;
use ugeom_harness::crew;
use ugeom_harness::{Cell, Placement, RunResult, Seats};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_machine::cpu::{self, Affinity};
use ugeom_machine::region::Region;
use ugeom_stack::{Channel, Delta, Finished, IoError, Opened, ProviderId, Stack};

/// A thread's way to read one place of a provider again and again.
struct Reader {
    cell: String,
    channel: Channel,
    opened: Arc<Opened>,
    arena: Buffer,
    placement: Placement,
    read_bytes: usize,
}

/// Buffers lie at multiples of a cache line, or of this for devices that ask for more, bytes.
pub const DIRECT_STEP_BYTES: usize = 4096;

const LINE_BYTES: usize = 64;

impl Reader {
    fn new(
        cell: &str,
        stack: &Stack,
        opened: &Arc<Opened>,
        read_bytes: u64,
        placement: &Placement,
    ) -> Result<Self, HarnessError> {
        let read_bytes = read_bytes as usize;
        Ok(Self {
            cell: cell.to_owned(),
            channel: stack.channel(1).map_err(HarnessError::stack)?,
            opened: Arc::clone(opened),
            arena: Buffer::new(Placement::arena_bytes(read_bytes)),
            placement: placement.clone(),
            read_bytes,
        })
    }

    /// Reads the beginning of the provider so many times.
    fn reads(&mut self, count: u64) -> Result<(), HarnessError> {
        let buffer = &mut self.arena[self.placement.part(self.read_bytes)];
        for _ in 0..count {
            let got = self.channel.read(&self.opened, 0, buffer);
            if !got.as_ref().is_ok_and(|got| *got == buffer.len()) {
                return Err(self.refused(got));
            }
        }
        Ok(())
    }

    /// The same, with the time of the first and of the last moment, ns.
    fn timed(&mut self, count: u64) -> Result<(u64, u64), HarnessError> {
        let start_ns = clock::now_ns();
        self.reads(count)?;
        Ok((start_ns, clock::now_ns()))
    }

    #[cold]
    fn refused(&self, got: Result<usize, IoError>) -> HarnessError {
        match got {
            Err(source) => HarnessError::request(self.cell.clone(), source),
            Ok(got) => HarnessError::Short {
                path: self.cell.clone(),
                offset_bytes: 0,
                wanted_bytes: self.read_bytes as u64,
                got_bytes: got as u64,
            },
        }
    }
}

fn open(stack: &Stack, provider: ProviderId) -> Result<Arc<Opened>, HarnessError> {
    Ok(Arc::new(
        stack
            .open(provider, Delta::READ)
            .map_err(HarnessError::stack)?,
    ))
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
) -> Result<Cell<'static>, HarnessError> {
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
) -> Result<Cell<'static>, HarnessError> {
    let placement = Placement::new(step_bytes);
    let opened = open(stack, provider)?;
    let mut reader = Reader::new(name, stack, &opened, read_bytes, &placement)?;
    let cell = Cell::new(name, move |iterations| {
        let (start_ns, end_ns) = reader.timed(iterations)?;
        Ok(RunResult::taking(end_ns - start_ns))
    });
    Ok(cell.moving(placement))
}

/// Where the threads of a cell run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Where the system puts them: right when other threads work for them, too.
    Any,
    /// Each on a core of its own, when there are enough: right for how well work divides. Left to
    /// itself, the system lets two new threads share a core for some milliseconds.
    OneEach,
}

impl Cores {
    /// Places for so many threads; none where the system chooses.
    pub(crate) fn seats(self, threads: usize) -> Option<Seats> {
        match self {
            Self::Any => None,
            Self::OneEach => Some(Seats::of(threads)),
        }
    }
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
) -> Result<Cell<'static>, HarnessError> {
    let opened = open(stack, provider)?;
    let placement = Placement::new(LINE_BYTES);
    let reader = |_| Reader::new(name, stack, &opened, read_bytes, &placement);
    let mut readers: Vec<Reader> = (0..threads).map(reader).collect::<Result<_, _>>()?;
    let cell = name.to_owned();
    let seats = cores.seats(threads as usize);
    let seated = seats.clone();
    let run = move |iterations: u64| {
        let each = iterations / threads;
        let start = Start::new(readers.len(), seats.as_ref());
        let together = |(index, reader): (usize, &mut Reader)| {
            let before = start.wait(index);
            let span = reader.timed(each);
            // A thread that cannot be put back stays where it is: no figure is wrong for that.
            let _ = before.map(|before| before.apply());
            span
        };
        let spans = std::thread::scope(|scope| {
            let mut numbered = readers.iter_mut().enumerate();
            let own = numbered.next();
            let others = crew::start(scope, numbered, together)?;
            let mut spans: Vec<_> = own.into_iter().map(|own| Some(together(own))).collect();
            spans.extend(others.join());
            Ok(spans)
        });
        whole_span(&cell, spans.map_err(crew::not_started(&cell))?)
    };
    let mut cell = Cell::new(name, run).in_steps_of(threads).moving(placement);
    cell.seats = seated;
    Ok(cell)
}

/// Lets several threads begin at the same moment.
pub(crate) struct Start {
    /// The cores to run on, one a thread; empty when the system chooses.
    cores: Vec<usize>,
    threads: usize,
    arrived: AtomicUsize,
    /// When each thread was last seen awake, ns.
    awake_ns: Vec<AtomicU64>,
    /// One waited so long that other programs have the cores: to try again takes as long again.
    crowded: AtomicBool,
    barrier: Barrier,
}

/// Threads begin together when their last readings of the clock are no further apart, ns.
const SKEW_NS: u64 = 20_000;

/// Waiting longer than this for the other threads is a sign of a busy machine, ns.
const CROWDED_NS: u64 = 5_000_000;

/// So often they try: on a busy machine one that waits may lose its core before the last arrives.
const STARTS_MAX: usize = 3;

impl Start {
    pub(crate) fn new(threads: usize, seats: Option<&Seats>) -> Self {
        Self {
            cores: seats.map(Seats::cores).unwrap_or_default(),
            threads,
            arrived: AtomicUsize::new(0),
            awake_ns: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            crowded: AtomicBool::new(false),
            barrier: Barrier::new(threads),
        }
    }

    /// Waits for the others; returns where the thread was allowed to run before.
    pub(crate) fn wait(&self, index: usize) -> Option<Affinity> {
        let Some(core) = self.cores.get(index) else {
            self.barrier.wait();
            return None;
        };
        let before = cpu::pin(&[*core]).ok();
        // Each has a core of its own, so waiting awake takes no core from another, and none starts
        // late because it had to be woken. Where another program took the core of one that waited,
        // that one starts milliseconds after the last, so that they wait once more, all awake now.
        for attempt in 0..STARTS_MAX {
            let began_ns = clock::now_ns();
            self.gather(3 * attempt + 1);
            if clock::now_ns().saturating_sub(began_ns) > CROWDED_NS {
                self.crowded.store(true, Ordering::Release);
            }
            if let Some(awake_ns) = self.awake_ns.get(index) {
                awake_ns.store(clock::now_ns(), Ordering::Release);
            }
            self.gather(3 * attempt + 2);
            if self.crowded.load(Ordering::Acquire) {
                break;
            }
            let seen = || self.awake_ns.iter().map(|ns| ns.load(Ordering::Acquire));
            let skew_ns = seen().max().unwrap_or(0) - seen().min().unwrap_or(0);
            self.gather(3 * attempt + 3);
            if skew_ns <= SKEW_NS {
                break;
            }
        }
        before
    }

    /// Waits until all threads have come for the `nth` time.
    fn gather(&self, nth: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < nth * self.threads {
            std::hint::spin_loop();
        }
    }
}

/// What a thread took; none when it panicked.
type Span = Option<Result<(u64, u64), HarnessError>>;

/// From the first start to the last end.
fn whole_span(cell: &str, spans: Vec<Span>) -> Result<RunResult, HarnessError> {
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    for span in spans {
        let panicked = || HarnessError::Thread {
            cell: cell.to_owned(),
            problem: "a reading thread panicked".to_owned(),
        };
        let (start_ns, end_ns) = span.ok_or_else(panicked)??;
        first_ns = first_ns.min(start_ns);
        last_ns = last_ns.max(end_ns);
    }
    Ok(RunResult::taking(last_ns.saturating_sub(first_ns)))
}

/// What threads compute that share nothing.
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
                    for state in states.iter_mut() {
                        *state = state.rotate_left(13).wrapping_add(0x7f4a_7c15);
                    }
                }
            }
        }
    }
}

/// Computing by several threads that share nothing, each on a core of its own; they share the
/// iterations. What it gains from another core is what the machine has to give.
pub fn computing(name: &str, threads: u64, sums: Sums) -> Cell<'static> {
    match sums {
        Sums::Chain => computing_by(name, threads, |states| Sums::Chain.turn(states)),
        Sums::Filling => computing_by(name, threads, |states| Sums::Filling.turn(states)),
    }
}

fn computing_by(
    name: &str,
    threads: u64,
    turn: impl Fn(&mut [u64; CHAINS]) + Copy + Send + Sync + 'static,
) -> Cell<'static> {
    let cell = name.to_owned();
    let threads = threads.max(1);
    let seats = Seats::of(threads as usize);
    let seated = seats.clone();
    let run = move |iterations: u64| {
        let each = iterations / threads;
        let start = Start::new(threads as usize, Some(&seats));
        let together = |index: usize| {
            let before = start.wait(index);
            let start_ns = clock::now_ns();
            let first = 0x9e37_79b9_7f4a_7c15 ^ index as u64;
            let mut states: [u64; CHAINS] = std::array::from_fn(|chain| first ^ chain as u64);
            for _ in 0..each {
                turn(&mut states);
                black_box(states[0]);
            }
            black_box(states);
            let end_ns = clock::now_ns();
            // A thread that cannot be put back stays where it is: no figure is wrong for that.
            let _ = before.map(|before| before.apply());
            Ok((start_ns, end_ns))
        };
        let spans = std::thread::scope(|scope| {
            let others = crew::start(scope, 1..threads as usize, together)?;
            let mut spans = vec![Some(together(0))];
            spans.extend(others.join());
            Ok(spans)
        });
        whole_span(&cell, spans.map_err(crew::not_started(&cell))?)
    };
    Cell::new(name, run).in_steps_of(threads).seated(seated)
}

/// Chains of [`Sums::Filling`], as many as fit into registers.
const CHAINS: usize = 6;
/// Steps of an iteration of [`Sums::Chain`].
const CHAIN_STEPS: u32 = 16;
/// Steps of an iteration of [`Sums::Filling`], each of all chains.
const FILLING_STEPS: u32 = 32;

/// No batch of requests takes longer than this, or something is lost.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends `batch` reads at once and waits for all of them: one iteration.
///
/// # Errors
/// [`HarnessError::Stack`] when the provider cannot be opened.
pub fn reading_at_once(
    batch: usize,
    name: &str,
    stack: &Stack,
    provider: ProviderId,
    read_bytes: u64,
) -> Result<Cell<'static>, HarnessError> {
    let opened = open(stack, provider)?;
    let mut channel = stack.channel(batch).map_err(HarnessError::stack)?;
    let mut idle: Vec<Finished> = Vec::with_capacity(batch);
    for _ in 0..batch {
        let Some(draft) = channel.bio() else { break };
        channel.submit(&opened, draft.read(0, Buffer::new(read_bytes as usize)));
    }
    collect(&mut channel, &mut idle, batch, name)?;
    let cell = name.to_owned();
    Ok(Cell::new(name, move |iterations| {
        let start_ns = clock::now_ns();
        for _ in 0..iterations {
            for finished in idle.drain(..) {
                channel.submit(&opened, finished.again());
            }
            collect(&mut channel, &mut idle, batch, &cell)?;
        }
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    }))
}

/// Waits until `batch` requests are back, each with all its bytes.
fn collect(
    channel: &mut Channel,
    idle: &mut Vec<Finished>,
    batch: usize,
    cell: &str,
) -> Result<(), HarnessError> {
    let lost = |got: usize| HarnessError::Thread {
        cell: cell.to_owned(),
        problem: format!("of {batch} requests only {got} came back within a minute"),
    };
    while idle.len() < batch {
        if channel.wait(Some(BATCH_TIMEOUT)) == 0 {
            return Err(lost(idle.len()));
        }
        while let Some(finished) = channel.finished() {
            if let Some(source) = channel.explain(&finished) {
                return Err(HarnessError::request(cell.to_owned(), source));
            }
            idle.push(finished);
        }
    }
    Ok(())
}

/// Copies `read_bytes` at `offset_bytes` out of a region of memory by a plain call: what a memory
/// disk does, without a stack around it.
pub fn copying(
    name: &str,
    region: &Arc<Region>,
    offset_bytes: u64,
    read_bytes: u64,
) -> Cell<'static> {
    let region = Arc::clone(region);
    let (bytes, placement) = (read_bytes as usize, Placement::new(LINE_BYTES));
    let mut arena = Buffer::new(Placement::arena_bytes(bytes));
    let place = placement.clone();
    let cell = Cell::new(name, move |iterations| {
        let buffer = &mut arena[place.part(bytes)];
        let start_ns = clock::now_ns();
        for _ in 0..iterations {
            region.read(black_box(offset_bytes), black_box(&mut *buffer));
        }
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    });
    cell.moving(placement)
}

/// The loop of 2002: lseek and read of the beginning of a file.
///
/// # Errors
/// [`HarnessError::Os`] when it cannot be opened.
pub fn calling(name: &str, path: &Path, read_bytes: u64) -> Result<Cell<'static>, HarnessError> {
    let mut tst = Tst::open(path, read_bytes as usize)?;
    Ok(Cell::new(name, move |iterations| {
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
    fn a_cell_reads_as_often_as_it_is_told() {
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
        let mut cell = reading_at_once(100, "hundred", &slow.stack, slow.top, 512).unwrap();
        let result = (cell.run)(3).unwrap();
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
        let mut cell = reading("small", &md.stack, md.top, 4096).unwrap();
        let error = (cell.run)(1).unwrap_err().to_string();
        assert_eq!(
            error,
            "small: a read of 4096 bytes at offset 0 ended after 512"
        );
        let broken = target("md:1m | nop:rfail=1");
        let mut cell = reading("broken", &broken.stack, broken.top, 512).unwrap();
        let error = (cell.run)(1).unwrap_err().to_string();
        assert!(error.starts_with("reading in cell broken: "), "{error}");
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
