//! A thread's engine, and the bios that it works on.

use super::data_run::DataRun;
use super::facts::Facts;
use super::own::ThreadFile;
use crate::engines::{Carried, DEPTH};
use crate::failures::Failures;
use crate::overlap::Overlap;
use std::any::Any;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_engine::{Completion, Engine, FileId, Op, OpKind, Ticket};
use ugeom_stack::{Bio, BioId, Carrier, Command, Completions, Errno, Flags, ThreadState};

/// Hashes a [`BioId`] with two multiplications. The ids come from this process and not from a
/// client, so nothing can choose them to collide, which is what SipHash would prevent.
#[derive(Default)]
struct IdHasher(u64);

impl IdHasher {
    /// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    fn mix(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(Self::FACTOR);
    }
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    /// The upper bits are the best mixed, and the table takes the lower ones.
    fn finish(&self) -> u64 {
        self.0.rotate_right(32)
    }
}

/// The I/O engine of one thread.
pub(super) struct ThreadEngine {
    engine: Box<dyn Engine<Carried>>,
    file: FileId,
    /// The open file, if other threads flush it, too.
    shared: Option<Arc<File>>,
    /// Requests that were made durable over a shared file.
    synced: Vec<(Bio, Result<u64, Errno>)>,
    align_bytes: usize,
    /// The size of the image, bytes; zeroes follow up to a whole sector.
    size_bytes: Arc<AtomicU64>,
    data_run: Arc<DataRun>,
    /// Of what is in flight; with the generation of what makes writes durable.
    tickets: HashMap<BioId, (Ticket, Option<u64>), BuildHasherDefault<IdHasher>>,
    /// The sync that makes writes durable, with its result.
    durable: Overlap<(Bio, u64)>,
    /// Durable changes that are written, to be submitted once more as a flush, with the failures
    /// before them; kept between polls so that it is allocated once.
    again: Vec<(Bio, u64)>,
    failures: Arc<Failures>,
}

impl ThreadEngine {
    pub(super) fn new(
        file: &Arc<File>,
        mut engine: Box<dyn Engine<Carried>>,
        facts: &Facts,
        failures: &Arc<Failures>,
    ) -> Result<Self, Errno> {
        let own = match facts.writable {
            true => ThreadFile::to_write(file, &facts.path),
            false => ThreadFile {
                file: Arc::clone(file),
                shared: false,
            },
        };
        let shared = own.shared.then(|| Arc::clone(&own.file));
        let file = engine.register(own.file)?;
        let tickets =
            HashMap::with_capacity_and_hasher(DEPTH as usize, BuildHasherDefault::default());
        Ok(Self {
            engine,
            file,
            shared,
            synced: Vec::new(),
            align_bytes: facts.align_bytes,
            size_bytes: Arc::clone(&facts.size_bytes),
            data_run: Arc::clone(&facts.data_run),
            tickets,
            durable: Overlap::new(DEPTH as usize),
            again: Vec::new(),
            failures: Arc::clone(failures),
        })
    }

    pub(super) fn submit(&mut self, bio: Bio) {
        let kind = match bio.command() {
            Command::Write => OpKind::Write {
                durable: bio.flags().contains(Flags::FUA) && self.shared.is_none(),
            },
            Command::Delete => OpKind::Discard,
            Command::Zero => OpKind::Zero {
                allocated: bio.flags().contains(Flags::NO_HOLE),
            },
            Command::Flush => OpKind::Flush,
            Command::Read | Command::GetAttr | Command::Extents => OpKind::Read,
        };
        self.submit_as(kind, bio, self.failures.count());
    }

    /// `before`: how many FLUSHes had failed when the request came.
    fn submit_as(&mut self, kind: OpKind, bio: Bio, before: u64) {
        if let (OpKind::Flush, Some(file)) = (kind, &self.shared) {
            let synced = self.failures.flush(NOT_DURABLE, || file.sync_data());
            let synced = synced.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
            let bytes = match bio.command() {
                Command::Flush => 0,
                _ => bio.length(),
            };
            return self.synced.push((bio, synced.map(|()| bytes)));
        }
        let id = bio.id();
        let op = Op {
            kind,
            file: self.file,
            offset: bio.offset(),
            length: match changes(bio.command()) {
                true => {
                    let size_bytes = self.size_bytes.load(Ordering::Relaxed);
                    bio.length().min(size_bytes.saturating_sub(bio.offset()))
                }
                false => bio.length(),
            },
        };
        let makes_durable = matches!(kind, OpKind::Flush | OpKind::Write { durable: true });
        let generation = makes_durable.then(|| self.durable.begin());
        let ticket = self
            .engine
            .submit(op, (Carrier::new(bio, self.align_bytes), before));
        self.tickets.insert(id, (ticket, generation));
    }

    /// Hands out durable requests, and submits the flushes that wait for writes.
    fn hand_out_durable(&mut self, completions: &mut Completions<'_>) {
        while let Some(((bio, bytes), good)) = self.durable.release() {
            match good {
                true => completions.push(bio, Ok(bytes)),
                false => completions.push_failed(bio, Errno::IO, OVERLAPPED),
            }
        }
        while let Some((bio, before)) = self.again.pop() {
            self.submit_as(OpKind::Flush, bio, before);
        }
        for (bio, result) in self.synced.drain(..) {
            match result {
                Ok(bytes) => completions.push(bio, Ok(bytes)),
                Err(errno) => completions.push_failed(bio, errno, FAILED),
            }
        }
    }
}

/// Why a request fails that has made writes durable, if the kernel is right.
const OVERLAPPED: &str = "the kernel failed to write other data back, and reports that only once";

/// The error of the FLUSH after a write that was in flight during a failure.
pub(super) const BESIDE: &str =
    "the system failed to make writes durable before, and one in flight then may be lost";

/// The recorded reason if writes could not be made durable.
const NOT_DURABLE: &str = "the system failed to make writes durable";

/// Why a request fails that the kernel refused.
const FAILED: &str = "the system failed it";

const fn changes(command: Command) -> bool {
    matches!(command, Command::Write | Command::Delete | Command::Zero)
}

/// True for a durable change that a flush after it makes durable, not the engine's own operation.
fn is_flushed_after(bio: &Bio, shared: bool) -> bool {
    let written = shared && bio.command() == Command::Write;
    bio.flags().contains(Flags::FUA) && (written || bio.command() == Command::Zero)
}

/// How many bytes of a request are done, of which `bytes` up to the last one of the image are: all
/// if nothing is missing up to there. A READ is filled with zeroes, and changes there are none.
fn pad(bio: &mut Bio, bytes: u64, size_bytes: &AtomicU64) -> u64 {
    if bytes >= bio.length() {
        return bytes;
    }
    let size_bytes = size_bytes.load(Ordering::Relaxed);
    let inside = size_bytes.saturating_sub(bio.offset());
    if bytes < inside || inside >= bio.length() {
        return bytes;
    }
    if bio.command() != Command::Read {
        return match changes(bio.command()) {
            true => bio.length(),
            false => bytes,
        };
    }
    bio.fill(|at, piece| {
        let start = inside.saturating_sub(at).min(piece.len() as u64);
        piece[start as usize..].fill(0);
    });
    bio.length()
}

impl Drop for ThreadEngine {
    fn drop(&mut self) {
        // The kernel takes a ring apart at its leisure; a file that is taken out of it first is
        // free at once, with its lock and its exclusive hold on a device.
        self.engine.unregister(self.file);
    }
}

impl ThreadState for ThreadEngine {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn poll(&mut self, completions: &mut Completions<'_>) {
        let Self {
            engine,
            tickets,
            durable,
            again,
            size_bytes,
            failures,
            shared,
            data_run,
            ..
        } = self;
        engine.reap(&mut |Completion { memory, result }: Completion<Carried>| {
            let (carrier, before) = memory;
            let mut bio = carrier.into_bio();
            if matches!(bio.command(), Command::Delete | Command::Zero) {
                data_run.changed();
            }
            let id = bio.id();
            let generation = tickets.remove(&id).and_then(|(_, generation)| generation);
            let result = result.map(|bytes| pad(&mut bio, bytes, size_bytes));
            let in_two_steps = is_flushed_after(&bio, shared.is_some());
            if in_two_steps && result.is_ok() && failures.count() != before {
                generation.inspect(|generation| durable.end(*generation));
                return completions.push_failed(bio, Errno::IO, OVERLAPPED);
            }
            match (&result, generation) {
                (Ok(bytes), Some(generation)) => {
                    let bytes = if in_two_steps { bio.length() } else { *bytes };
                    return durable.succeeded(generation, (bio, bytes));
                }
                (Err(Errno::CANCELED), Some(generation)) => durable.end(generation),
                (Err(_), Some(generation)) => {
                    failures.failed();
                    durable.failed(generation);
                }
                _ => {}
            }
            match result {
                Ok(bytes) if bytes < bio.length() => completions.push_failed(
                    bio,
                    Errno::IO,
                    "the file ends here: it has become shorter since it was opened",
                ),
                Ok(_) if in_two_steps => again.push((bio, before)),
                Ok(bytes) => {
                    if changes(bio.command()) {
                        failures.wrote(bio.offset()..bio.offset() + bio.length(), before);
                    }
                    completions.push(bio, Ok(bytes));
                }
                Err(errno) => {
                    if bio.flags().contains(Flags::FUA) && errno != Errno::CANCELED {
                        // The kernel may have told of older writes with it, and tells once.
                        failures.losses().record(NOT_DURABLE);
                    }
                    completions.push_failed(bio, errno, FAILED);
                }
            }
        });
        self.hand_out_durable(completions);
        self.engine.flush_submissions();
    }

    fn in_flight(&self) -> usize {
        self.engine.in_flight() + self.durable.held() + self.synced.len()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.engine.wait_fd()
    }

    fn cancel(&mut self, id: BioId) {
        if let Some((ticket, _)) = self.tickets.get(&id) {
            self.engine.cancel(*ticket);
        }
    }
}
