//! The cost of an engine itself, and of making any call asynchronous: a call that does nothing, a
//! read from the page cache, three system calls in a row, a function that computes; at several
//! queue depths, beside the same calls one after the other.

use super::job::{BLOCK_BYTES, memory};
use super::methods::Method;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use ugeom_engine::{Choice, EngineOptions, GuasiOptions, Workers, open_engine_with};
use ugeom_guasi::{Backend, Context, GuasiError, Outcome, SPIN, Settings};
use ugeom_harness::HarnessError;
use ugeom_harness::baseline::repeated;
use ugeom_harness::{Case, RunResult, Work};
use ugeom_load::door::{Calls, EngineDoor, Request, file_calls};
use ugeom_load::drive::{Done, Queue, one_by_one};
use ugeom_load::places::Random;
use ugeom_load::recorder::Unwatched;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;

/// The numbers of calls at a time.
pub(super) const DEPTHS: [u32; 3] = [1, 100, 1000];

/// The part of the file that is read, blocks: it stays in the processor's caches.
pub(super) const BLOCKS: u64 = 256;

/// GUASI's threads here: the calls never wait for a device, so more than cores are of no use.
const WORKERS: u32 = 2;

/// The name for calls that are made one after the other.
pub(super) const INLINE: &str = "inline";

/// How long an idle thread polls before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// As GUASI does unless told otherwise.
    Spinning,
    /// It sleeps at once.
    Parked,
}

impl Waiting {
    const BOTH: [Self; 2] = [Self::Spinning, Self::Parked];

    fn spin(self) -> Duration {
        match self {
            Self::Spinning => SPIN,
            Self::Parked => Duration::ZERO,
        }
    }

    /// The name of a method that waits like this.
    fn of(self, method: &str) -> String {
        match self {
            Self::Spinning => method.to_owned(),
            Self::Parked => format!("{method}-parked"),
        }
    }
}

/// Something to make asynchronous.
pub(super) struct Call {
    /// Its name in cases.
    pub name: &'static str,
    pub what: &'static str,
    make: fn() -> Outcome,
}

pub(super) const CALLS: [Call; 3] = [
    Call {
        name: "noop",
        what: "a call that does nothing",
        make: || Outcome::done(0),
    },
    Call {
        name: "files",
        what: "open, fstat and close of a folder",
        make: open_stat_close,
    },
    Call {
        name: "checksum",
        what: "CRC-32C of 4 KiB",
        make: checksum,
    },
];

fn open_stat_close() -> Outcome {
    let folder = rustix::fs::open(c"/", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    match folder.and_then(|folder| rustix::fs::fstat(&folder)) {
        Ok(_) => Outcome::done(0),
        Err(errno) => Outcome::failed(errno.raw_os_error()),
    }
}

fn checksum() -> Outcome {
    static BLOCK: [u8; BLOCK_BYTES as usize] = [0x5a; BLOCK_BYTES as usize];
    black_box(crc32c::crc32c(black_box(&BLOCK)));
    Outcome::done(0)
}

/// The name of a case.
pub(super) fn name(call: &str, method: &str, depth: u32) -> String {
    if method == INLINE {
        format!("{call}/{method}")
    } else {
        format!("{call}/{method} {depth}")
    }
}

/// The measurement of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub call: &'static str,
    pub method: String,
    pub depth: u32,
}

impl Measured {
    /// The name of its case.
    pub fn case(&self) -> String {
        name(self.call, &self.method, self.depth)
    }
}

/// The name of cases of cached reads.
pub(super) const CACHED: &str = "cached";

/// The cases that there can be, in the order of reports.
pub(super) fn all() -> Vec<Measured> {
    let mut all = Vec::new();
    let guasi = Method::Workers.name();
    let waiting = Waiting::BOTH.map(|waiting| waiting.of(guasi));
    let mut add = |call, method: &str, depths: &[u32]| {
        all.extend(depths.iter().map(|&depth| Measured {
            call,
            method: method.to_owned(),
            depth,
        }));
    };
    for method in &waiting {
        add(CALLS[0].name, method, &DEPTHS);
    }
    add(CACHED, INLINE, &[1]);
    for method in [Method::Libaio.name(), Method::IoUring.name()] {
        add(CACHED, method, &DEPTHS);
    }
    for method in &waiting {
        add(CACHED, method, &DEPTHS);
    }
    // A ring has no use for functions: those are for workers, whatever the backend.
    for waiting in Waiting::BOTH {
        add(CACHED, &waiting.of(Method::Ring.name()), &DEPTHS);
    }
    for call in &CALLS[1..] {
        add(call.name, INLINE, &[1]);
        add(call.name, guasi, &DEPTHS);
    }
    all
}

/// Makes the cases; `left_out` gets a line for each that the system does not support.
///
/// # Errors
/// When an engine cannot take the file.
pub(super) fn cases(
    file: &Arc<File>,
    seed: u64,
    left_out: &mut Vec<String>,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let mut cases = Vec::new();
    for measured in all() {
        let made = match measured.call {
            CACHED => cached(&measured, file, seed)?,
            _ => call(&measured),
        };
        match made {
            Ok(case) => cases.push(case),
            Err(why) => left_out.push(format!("{}: {why}", measured.case())),
        }
    }
    Ok(cases)
}

/// A case, or why there is none.
type Made = Result<Case<'static>, String>;

fn waiting_of(method: &str) -> Waiting {
    let parked = [Method::Workers, Method::Ring].map(|guasi| Waiting::Parked.of(guasi.name()));
    match parked.iter().any(|one| one == method) {
        true => Waiting::Parked,
        false => Waiting::Spinning,
    }
}

fn backend_of(method: &str) -> Backend {
    match method.starts_with(Method::Ring.name()) {
        true => Backend::Ring,
        false => Backend::Workers,
    }
}

/// A case of one of [`CALLS`].
fn call(measured: &Measured) -> Made {
    let name = measured.case();
    let known = CALLS.iter().find(|call| call.name == measured.call);
    let make = known.ok_or("no such call")?.make;
    if measured.method == INLINE {
        return Ok(repeated(&name, move |_| {
            black_box(make());
        }));
    }
    let settings = Settings::new()
        .workers(WORKERS, WORKERS)
        .spin(waiting_of(&measured.method).spin());
    let context = settings.open().map_err(|error| error.to_string())?;
    let (case, depth) = (name.clone(), u64::from(measured.depth));
    // A run of fewer would never have so many at a time.
    let made = Case::new(name, move |count| {
        through(&context, depth, count, make)
            .map_err(|error| HarnessError::os(&case, "calls through guasi")(error))
    });
    Ok(made.in_steps_of(depth))
}

/// Makes so many calls through a context, so many at a time.
fn through(
    context: &Context,
    depth: u64,
    count: u64,
    make: fn() -> Outcome,
) -> io::Result<RunResult> {
    let refused = |error: GuasiError| io::Error::other(error.to_string());
    let begin_ns = clock::now_ns();
    let (mut submitted, mut ended) = (0, 0);
    let mut failed = 0;
    while ended < count {
        let room = (count - submitted).min(depth - (submitted - ended));
        if room > 0 {
            let works = (0..room as usize).map(|tag| (tag, make));
            submitted += context.submit_batch(0, works, |_| {}).map_err(refused)? as u64;
        }
        // Half of them at once: to wait for each would be to wake up for each.
        let wanted = (submitted - ended).min(depth.div_ceil(2)) as usize;
        ended += context.collect(wanted, depth as usize, None, |info| {
            if info.result < 0 {
                failed = info.error;
            }
        }) as u64;
    }
    match failed {
        0 => Ok(RunResult::taking(clock::now_ns() - begin_ns)),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A case of reads from the page cache.
fn cached(measured: &Measured, file: &Arc<File>, seed: u64) -> Result<Made, HarnessError> {
    let name = measured.case();
    let choice = match measured.method.as_str() {
        INLINE => return Ok(Ok(read_inline(name, file, seed))),
        method if method == Method::Libaio.name() => Choice::Libaio,
        method if method == Method::IoUring.name() => Choice::IoUring,
        _ => Choice::Guasi,
    };
    let guasi = GuasiOptions {
        workers: Some(Workers {
            min: WORKERS,
            max: WORKERS,
        }),
        spin: Some(waiting_of(&measured.method).spin()),
        backend: backend_of(&measured.method),
    };
    let depth = measured.depth;
    let engine = match open_engine_with(choice, EngineOptions::new(depth, guasi)) {
        Ok((engine, _)) => engine,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut random = fastrand::Rng::with_seed(seed);
    let buffers = memory(depth, &mut random);
    let door = EngineDoor::with(engine, buffers, [Arc::clone(file)])
        .map_err(|errno| HarnessError::os(&name, "giving the file to the engine")(errno.into()))?;
    let mut queue = Queue::new(door, depth).in_whole_batches();
    let mut requests = reads(random);
    let case = name.clone();
    let made = Case::new(name, move |count| {
        let begin_ns = clock::now_ns();
        let done = queue.run(requests.by_ref().take(count as usize), &mut Unwatched);
        let done = done.map_err(|failure| failure.in_case(&case))?;
        Ok(result(begin_ns, done))
    });
    Ok(Ok(made.in_steps_of(u64::from(depth))))
}

/// Reads of the blocks that stay in the cache, at random.
fn reads(random: fastrand::Rng) -> impl Iterator<Item = Request> {
    let places = Random::new(0, BLOCK_BYTES, BLOCKS, random);
    places.map(|offset| Request::read(offset, BLOCK_BYTES as u32))
}

fn result(begin_ns: u64, done: Done) -> RunResult {
    let wall_ns = clock::now_ns() - begin_ns;
    RunResult::taking(wall_ns).doing(Work::of(done.bytes, done.requests))
}

/// The same reads, one pread(2) after the other.
fn read_inline(name: String, file: &Arc<File>, seed: u64) -> Case<'static> {
    let mut requests = reads(fastrand::Rng::with_seed(seed));
    let buffer = Buffer::new(BLOCK_BYTES as usize);
    let mut door = Calls::new(buffer, file_calls(Arc::clone(file)));
    let case = name.clone();
    Case::new(name, move |count| {
        let begin_ns = clock::now_ns();
        let done = one_by_one(
            &mut door,
            requests.by_ref().take(count as usize),
            &mut Unwatched,
        );
        let done = done.map_err(|failure| failure.in_case(&case))?;
        Ok(result(begin_ns, done))
    })
}
