//! The conformance suite of the engines: the contract of each, of any kind.
//!
//! A test of an engine calls [`conform`] with a function that makes one. The checks are in three
//! files: `content` (the right bytes, and how many), `failure` (errors that come back as they
//! should) and `lifetime` (every memory comes back exactly once: cancelling, dropping, many at a
//! time).

mod content;
mod failure;
mod lifetime;

use std::fs::{File, OpenOptions};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use ugeom_engine::{Completion, Engine, Errno, FileId, Op, OpKind};
use ugeom_machine::buffer::{Buffer, Scatter};

/// The memory that the suite submits: buffers, and a token that counts.
pub type Memory = (Scatter, Token);

/// Makes an engine that hands at most so many operations to the system at a time.
pub type Make<'a> = &'a dyn Fn(u32) -> Box<dyn Engine<Memory>>;

/// A check: its name and its function, which gets a folder.
type Check = (&'static str, fn(Make<'_>, &Path));

/// Names functions after themselves.
macro_rules! checks {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), $module::$name)),*]
    };
}

const CHECKS: &[Check] = checks![
    content::what_was_written_is_read_back,
    content::segments_are_filled_and_written_in_order,
    content::more_segments_than_one_call_takes_are_served,
    content::memory_longer_than_the_operation_is_left_alone,
    content::memory_of_a_pool_is_used_like_any_other,
    content::a_read_past_the_end_is_short,
    content::a_file_that_changes_its_length_is_followed,
    content::a_direct_read_meets_an_unaligned_end,
    content::an_operation_of_no_length_does_nothing,
    content::writes_are_there_after_a_flush,
    content::a_discarded_range_reads_as_zero,
    content::a_zeroed_range_reads_as_zero,
    content::a_file_system_without_zeroing_is_served,
    content::many_operations_agree_with_a_plain_array,
    failure::the_wrong_direction_is_refused,
    failure::a_void_file_is_refused,
    failure::a_file_of_another_engine_is_refused,
    failure::impossible_ranges_are_refused,
    failure::a_directory_cannot_be_read,
    failure::an_unaligned_direct_read_is_refused,
    failure::what_would_block_for_ever_comes_back,
    failure::an_error_does_not_disturb_its_neighbours,
    lifetime::ten_thousand_operations_are_in_flight,
    lifetime::a_cancelled_operation_comes_back_once,
    lifetime::an_old_ticket_cancels_nothing,
    lifetime::an_engine_dropped_in_flight_drops_the_memory_once,
    lifetime::an_engine_dropped_before_it_was_flushed_drops_the_memory_once,
    lifetime::a_file_taken_away_in_flight_stays_open_until_the_end,
    lifetime::a_wait_with_nothing_in_flight_returns,
    lifetime::the_descriptor_tells_when_to_reap,
    lifetime::an_engine_may_move_between_operations,
];

/// Runs every check on engines made by `make`, and panics with the names of those that failed.
pub fn conform(make: Make<'_>) {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        eprintln!("check {name}");
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let run = AssertUnwindSafe(|| check(make, folder.path()));
        if panic::catch_unwind(run).is_err() {
            failed.push(*name);
        }
    }
    assert!(
        failed.is_empty(),
        "{} checks failed: {}",
        failed.len(),
        failed.join(", ")
    );
}

/// Counts the tokens that are alive.
#[derive(Default)]
pub struct Ledger {
    issued: AtomicUsize,
    dropped: AtomicUsize,
}

impl Ledger {
    /// A token with a number to recognise it by.
    pub fn token(self: &Arc<Self>, number: usize) -> Token {
        self.issued.fetch_add(1, Ordering::Relaxed);
        Token {
            number,
            ledger: Arc::clone(self),
        }
    }

    /// Number of tokens dropped so far. More than issued: one was dropped twice.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Asserts that every token issued has been dropped once.
    pub fn assert_settled(&self) {
        assert_eq!(
            self.dropped(),
            self.issued.load(Ordering::Relaxed),
            "memory lost or duplicated"
        );
    }
}

/// Travels with memory through an engine, and tells its ledger when it is dropped.
pub struct Token {
    /// The submitter's number.
    pub number: usize,
    ledger: Arc<Ledger>,
}

impl Drop for Token {
    fn drop(&mut self) {
        self.ledger.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// How to sleep between reaps: the two ways that the trait offers.
#[derive(Clone, Copy)]
enum Sleep {
    Wait,
    Descriptor,
}

const BOTH: [Sleep; 2] = [Sleep::Wait, Sleep::Descriptor];

/// A limit that only a broken engine meets.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// An engine with a ledger, and what the checks do with them again and again.
struct Rig {
    engine: Box<dyn Engine<Memory>>,
    ledger: Arc<Ledger>,
    sleep: Sleep,
}

impl Rig {
    fn new(make: Make<'_>, depth: u32) -> Rig {
        Rig {
            engine: make(depth),
            ledger: Arc::default(),
            sleep: Sleep::Wait,
        }
    }

    /// Makes a file with this content known, open in both directions.
    fn file(&mut self, path: &Path, content: &[u8]) -> FileId {
        std::fs::write(path, content).unwrap();
        self.register(
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .unwrap(),
        )
    }

    fn register(&mut self, file: File) -> FileId {
        self.engine.register(Arc::new(file)).unwrap()
    }

    /// Memory with segments of these contents.
    fn memory(&self, number: usize, pieces: &[&[u8]]) -> Memory {
        let buffers = pieces
            .iter()
            .map(|piece| Buffer::from_slice(piece))
            .collect();
        (Scatter::new(buffers), self.ledger.token(number))
    }

    /// Reaps and sleeps until nothing is in flight.
    fn finish(&mut self) -> Vec<Completion<Memory>> {
        let mut completions = Vec::new();
        let start = std::time::Instant::now();
        while self.engine.in_flight() > 0 {
            assert!(
                start.elapsed() < HANG_TIMEOUT,
                "{} stuck",
                self.engine.in_flight()
            );
            let before = completions.len();
            self.engine
                .reap(&mut |completion| completions.push(completion));
            if completions.len() == before {
                self.sleep_once();
            }
        }
        completions
    }

    fn sleep_once(&mut self) {
        match (self.sleep, self.engine.wait_fd()) {
            (Sleep::Descriptor, Some(fd)) => {
                let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
                let second = rustix::event::Timespec {
                    tv_sec: 1,
                    tv_nsec: 0,
                };
                match poll(&mut fds, Some(&second)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => panic!("poll: {error}"),
                }
            }
            _ => self.engine.wait(Some(Duration::from_secs(1))).unwrap(),
        }
    }

    /// Runs one operation to its end.
    fn run(&mut self, op: Op, pieces: &[&[u8]]) -> (Result<u64, Errno>, Vec<u8>) {
        let memory = self.memory(0, pieces);
        self.engine.submit(op, memory);
        let mut completions = self.finish();
        assert_eq!(completions.len(), 1);
        let Completion { memory, result } = completions.remove(0);
        (result, content(&memory))
    }

    fn read(&mut self, file: FileId, offset: u64, length: usize) -> (Result<u64, Errno>, Vec<u8>) {
        let room = vec![0xEE; length];
        self.run(op(OpKind::Read, file, (offset, length as u64)), &[&room])
    }

    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> Result<u64, Errno> {
        let length = data.len() as u64;
        self.run(op(WRITE, file, (offset, length)), &[data]).0
    }

    fn without_memory(
        &mut self,
        kind: OpKind,
        file: FileId,
        range: (u64, u64),
    ) -> Result<u64, Errno> {
        self.run(op(kind, file, range), &[]).0
    }
}

/// `kind` on `range`, an offset and a length in bytes.
fn op(kind: OpKind, file: FileId, range: (u64, u64)) -> Op {
    let (offset, length) = range;
    Op {
        kind,
        file,
        offset,
        length,
    }
}

const WRITE: OpKind = OpKind::Write { durable: false };
const DURABLE: OpKind = OpKind::Write { durable: true };
const ZERO: OpKind = OpKind::Zero { allocated: true };

/// All bytes of the memory, in order.
fn content(memory: &Memory) -> Vec<u8> {
    memory
        .0
        .buffers()
        .iter()
        .flat_map(|buffer| buffer.iter().copied())
        .collect()
}

/// Bytes that differ from place to place.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| random.u8(1..)).collect()
}

/// Opens with O_DIRECT, or `None` after reporting a skip where the file system has none.
fn open_direct(path: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    match rustix::fs::open(
        path,
        OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(fd) => Some(File::from(fd)),
        Err(error) => {
            crate::skip(&format!("O_DIRECT on {}: {error}", path.display()));
            None
        }
    }
}
