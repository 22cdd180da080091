//! The benchmarks: requests through a context and through a plain pool, and the calls themselves.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode};
use ugeom_guasi::{Backend, Context, Info, Io, IoCall, Outcome, Settings};
use ugeom_machine::cpu::{Usage, process_cpu_ns};

use crate::pool::Pool;

const PAGE: usize = 4096;

/// Pages of a file that is read: so few that they stay in the processor's caches. (With 16 MiB a
/// read waits for the memory, which takes about as long as all the rest of it.)
const FILE_PAGES: u64 = 256;

/// A run: each figure for one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub ns: f64,
    pub switches: f64,
    pub cpu_ns: f64,
}

/// Makes some requests and returns how many.
type Body = Box<dyn FnMut() -> Result<u64, Box<dyn Error>>>;

/// A run of another program.
type Program = Box<dyn FnMut() -> Result<Sample, Box<dyn Error>>>;

enum Kind {
    Here(Body),
    Program(Program),
}

/// Something to measure, and the case whose rate its own is compared with.
pub struct Case {
    pub name: &'static str,
    pub base: Option<&'static str>,
    kind: Kind,
}

impl Case {
    /// Another program, which tells what a request costs there.
    pub fn of_program(
        name: &'static str,
        base: &'static str,
        run: impl FnMut() -> Result<Sample, Box<dyn Error>> + 'static,
    ) -> Case {
        Case {
            name,
            base: Some(base),
            kind: Kind::Program(Box::new(run)),
        }
    }

    /// Repeats the body for at least `time`; another program takes the time that it takes.
    pub fn run(&mut self, time: Duration) -> Result<Sample, Box<dyn Error>> {
        let body = match &mut self.kind {
            Kind::Here(body) => body,
            Kind::Program(run) => return run(),
        };
        // The first call refills the caches, which the case before has used.
        body()?;
        let (usage, cpu, start) = (Usage::of_process(), process_cpu_ns(), Instant::now());
        let mut requests = 0;
        while requests == 0 || start.elapsed() < time {
            requests += body()?;
        }
        let ns = start.elapsed().as_nanos() as f64;
        let cpu = process_cpu_ns() - cpu;
        let switches = Usage::of_process().since(&usage).switches;
        let each = |total: f64| total / requests as f64;
        Ok(Sample {
            ns: each(ns),
            switches: each((switches.voluntary + switches.involuntary) as f64),
            cpu_ns: each(cpu as f64),
        })
    }
}

/// Bodies make this many requests, so that looking at the clock costs nothing.
const REQUESTS: u64 = 2_000;

/// No-ops that a ring gets together.
const RING_BATCH: u64 = 32;

/// A file in the page cache, and memory to read it into.
struct Pages {
    file: File,
    memory: Vec<u8>,
    rng: fastrand::Rng,
    /// How much is read at a time.
    len: usize,
}

impl Pages {
    fn new() -> Result<Pages, Box<dyn Error>> {
        let mut file = tempfile::tempfile()?;
        let mut rng = fastrand::Rng::with_seed(4);
        let mut page = [0; PAGE];
        for _ in 0..FILE_PAGES {
            rng.fill(&mut page);
            file.write_all(&page)?;
        }
        Ok(Pages {
            file,
            memory: vec![0; PAGE * 128],
            rng,
            len: PAGE,
        })
    }

    /// Half a kilobyte of zeroes at a time, as the floors in C read them.
    fn zeroes() -> Result<Pages, Box<dyn Error>> {
        Ok(Pages {
            file: File::open("/dev/zero")?,
            memory: vec![0; PAGE * 128],
            rng: fastrand::Rng::with_seed(4),
            len: 512,
        })
    }

    fn read(&mut self, place: usize) -> (RawFd, *mut u8, i64) {
        let memory = self.memory[place % 128 * PAGE..].as_mut_ptr();
        let offset = self.rng.u64(0..FILE_PAGES) * PAGE as u64;
        (self.file.as_raw_fd(), memory, offset as i64)
    }

    /// The read as a request. The memory outlives it: each body waits for its requests.
    fn io(&mut self, place: usize) -> Io {
        let (fd, memory, offset) = self.read(place);
        // SAFETY: see above; two reads into one place only mix bytes that are never read.
        unsafe {
            Io::new(IoCall::ReadAt {
                fd,
                memory,
                len: self.len,
                offset,
            })
        }
    }
}

fn nothing() -> Outcome {
    Outcome::done(1)
}

fn check(info: Info, expected: isize) {
    assert_eq!((info.result, info.error), (expected, 0), "{info:?}");
}

/// Submits until `depth` are in flight, takes what has ended, and so on; at the end all.
fn keep_in_flight(
    context: &Context,
    depth: u64,
    expected: isize,
    mut submit: impl FnMut(&Context, u64) -> Result<usize, Box<dyn Error>>,
) -> Result<u64, Box<dyn Error>> {
    let (mut submitted, mut ended) = (0, 0);
    while ended < REQUESTS {
        let room = (REQUESTS - submitted).min(depth - (submitted - ended));
        if room > 0 {
            submitted += submit(context, room)? as u64;
        }
        // Half of them at once: a fetch for each would wake for each.
        let want = (submitted - ended).min(depth.div_ceil(2)) as usize;
        let mut each = |info| check(info, expected);
        ended += context.collect(want, depth as usize, None, &mut each) as u64;
    }
    Ok(REQUESTS)
}

fn guasi(settings: Settings, depth: u64) -> Result<Body, Box<dyn Error>> {
    let context = settings.open()?;
    Ok(Box::new(move || {
        keep_in_flight(&context, depth, 1, |context, room| {
            let works = (0..room as usize).map(|tag| (tag, nothing as fn() -> Outcome));
            Ok(context.submit_batch(0, works, |_| {})?)
        })
    }))
}

/// No-ops that a ring runs.
fn ring_no_ops(settings: Settings, depth: u64) -> Result<Body, Box<dyn Error>> {
    let context = settings.open()?;
    Ok(Box::new(move || {
        keep_in_flight(&context, depth, 0, |context, room| {
            // SAFETY: the call names no memory.
            let works = (0..room as usize).map(|tag| (tag, unsafe { Io::new(IoCall::Nothing) }));
            Ok(context.submit_batch(0, works, |_| {})?)
        })
    }))
}

/// No-ops in a ring without anything around it, a batch at a time: the kernel's part.
fn bare_ring() -> Result<Body, Box<dyn Error>> {
    let mut ring = IoUring::new(RING_BATCH as u32)?;
    Ok(Box::new(move || {
        let mut ended = 0;
        while ended < REQUESTS {
            for number in 0..RING_BATCH {
                let entry = opcode::Nop::new().build().user_data(number);
                // SAFETY: the entry names no memory.
                unsafe { ring.submission().push(&entry)? };
            }
            ring.submit_and_wait(RING_BATCH as usize)?;
            ended += ring
                .completion()
                .map(|end| u64::from(end.result() == 0))
                .sum::<u64>();
        }
        Ok(ended)
    }))
}

fn guasi_reads(settings: Settings, depth: u64) -> Result<Body, Box<dyn Error>> {
    reads(settings, depth, Pages::new()?)
}

fn reads(settings: Settings, depth: u64, mut pages: Pages) -> Result<Body, Box<dyn Error>> {
    let context = settings.open()?;
    Ok(Box::new(move || {
        keep_in_flight(&context, depth, pages.len as isize, |context, room| {
            let works = (0..room as usize).map(|tag| (tag, pages.io(tag)));
            Ok(context.submit_batch(0, works, |_| {})?)
        })
    }))
}

fn pool(depth: u64, mut call: impl FnMut(&Pool) + 'static) -> Body {
    let pool = Pool::new(2);
    Box::new(move || {
        let (mut submitted, mut ended) = (0, 0);
        while ended < REQUESTS {
            while submitted < REQUESTS && submitted - ended < depth {
                call(&pool);
                submitted += 1;
            }
            ended += pool.fetch() as u64;
        }
        Ok(REQUESTS)
    })
}

/// One request at a time.
fn alone(settings: Settings) -> Result<Body, Box<dyn Error>> {
    let context = settings.open()?;
    Ok(Box::new(move || {
        for tag in 0..200 {
            context.submit(0, tag, nothing)?;
            context.collect(1, 1, None, |info| check(info, 1));
        }
        Ok(200)
    }))
}

/// The base of comparisons.
pub const NO_OP: &str = "no-op, depth 100";
pub const NO_OP_ALONE: &str = "no-op, depth 1";
pub const RING_NO_OP: &str = "no-op, ring, depth 32";
pub const ZEROES: &str = "zeroes, 512 bytes, depth 100";
const POOL_NO_OP: &str = "no-op, plain pool, depth 100";
const BARE_RING: &str = "no-op, bare ring, batch of 32";
const POOL_READ: &str = "pread, plain pool, depth 100";

/// All cases, bases first.
pub fn all() -> Result<Vec<Case>, Box<dyn Error>> {
    let two = || Settings::new().workers(2, 2);
    let parked = || two().spin(Duration::ZERO);
    let mut cases = Vec::new();
    let mut add = |name, base, body| {
        let kind = Kind::Here(body);
        cases.push(Case { name, base, kind });
    };
    add(POOL_NO_OP, None, pool(100, |pool| pool.submit(|_| 1, 0)));
    add(NO_OP, Some(POOL_NO_OP), guasi(two(), 100)?);
    add("no-op, depth 1000", Some(POOL_NO_OP), guasi(two(), 1000)?);
    add(POOL_READ, None, pool(100, pool_read()?));
    add(
        "pread, depth 100",
        Some(POOL_READ),
        guasi_reads(two(), 100)?,
    );
    add(
        "pread, depth 100, no spinning",
        Some(POOL_READ),
        guasi_reads(parked(), 100)?,
    );
    add("pread, inline", Some(POOL_READ), inline()?);
    add(ZEROES, None, reads(two(), 100, Pages::zeroes()?)?);
    add(NO_OP_ALONE, None, alone(two())?);
    add("no-op, depth 1, no spinning", None, alone(parked())?);
    let ring = || Settings::new().backend(Backend::Ring);
    match ring().open() {
        Err(error) => eprintln!("without the ring: {error}"),
        Ok(_) => {
            let no_ops = ring_no_ops(ring(), 100)?;
            add("no-op, ring, depth 100", Some(POOL_NO_OP), no_ops);
            add(BARE_RING, None, bare_ring()?);
            let batch = ring_no_ops(ring(), RING_BATCH)?;
            add(RING_NO_OP, Some(BARE_RING), batch);
            add("no-op, ring, depth 1", None, ring_no_ops(ring(), 1)?);
            let reads = guasi_reads(ring(), 100)?;
            add("pread, ring, depth 100", Some(POOL_READ), reads);
            add("pread, ring, depth 1", None, guasi_reads(ring(), 1)?);
        }
    }
    Ok(cases)
}

fn inline() -> Result<Body, Box<dyn Error>> {
    let mut pages = Pages::new()?;
    Ok(Box::new(move || {
        for place in 0..REQUESTS as usize {
            let (fd, memory, offset) = pages.read(place);
            read(fd, memory, offset);
        }
        Ok(REQUESTS)
    }))
}

fn read(fd: RawFd, memory: *mut u8, offset: i64) {
    // SAFETY: memory of a page, alive.
    let count = unsafe { libc::pread(fd, memory.cast(), PAGE, offset) };
    assert_eq!(count, PAGE as isize);
}

fn pool_read() -> Result<impl FnMut(&Pool), Box<dyn Error>> {
    let mut pages = Pages::new()?;
    let mut place = 0;
    Ok(move |pool: &Pool| {
        let (fd, memory, offset) = pages.read(place);
        place += 1;
        // The pool passes one word; a read has three.
        let packed = Box::into_raw(Box::new((fd, memory, offset))) as usize;
        pool.submit(run_read, packed);
    })
}

fn run_read(packed: usize) -> isize {
    // SAFETY: made by `Box::into_raw` in `pool_read`, for this call alone.
    let (fd, memory, offset) = *unsafe { Box::from_raw(packed as *mut (RawFd, *mut u8, i64)) };
    read(fd, memory, offset);
    PAGE as isize
}
