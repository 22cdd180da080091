//! Writes in flight during a FLUSH that fails: the kernel reports the failure once, and the written
//! data in the page cache is lost.

use crate::engines::{Carried, Engines};
use crate::file::{open, plan};
use std::fs::File;
use std::sync::{Arc, Mutex};
use ugeom_engine::{Completion, Engine, FileId, Op, OpKind, SyncEngine, Ticket};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Delta, Errno, Flags, Opened, Stack, StackKnobs};

const SECTOR: usize = 512;

/// The messages between the test and an engine.
#[derive(Default)]
struct Stage {
    /// Operations that are to end, by number, with their errors.
    ends: Vec<(usize, Option<Errno>)>,
    /// Operations in flight, by number.
    flying: Vec<(usize, Op)>,
}

type Script = Arc<Mutex<Stage>>;

/// An engine whose operations end in the order, and with the results, of a script.
struct Scripted {
    /// Makes files known, and tickets.
    inner: SyncEngine<Buffer>,
    script: Script,
    submitted: Vec<Option<(Op, Carried)>>,
}

impl Engine<Carried> for Scripted {
    fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno> {
        self.inner.register(file)
    }

    fn unregister(&mut self, file: FileId) {
        self.inner.unregister(file);
    }

    fn submit(&mut self, op: Op, memory: Carried) -> Ticket {
        let mut stage = self.script.lock().expect("the script");
        stage.flying.push((self.submitted.len(), op));
        self.submitted.push(Some((op, memory)));
        self.inner.submit(op, Buffer::new(0))
    }

    fn flush_submissions(&mut self) {}

    fn reap(&mut self, done: &mut dyn FnMut(Completion<Carried>)) {
        if std::thread::panicking() {
            // The channel waits for what is in flight.
            let all = self.submitted.drain(..).flatten();
            all.for_each(|(_, memory)| {
                done(Completion {
                    memory,
                    result: Err(Errno::IO),
                })
            });
            return;
        }
        let mut stage = self.script.lock().expect("the script");
        let ended = std::mem::take(&mut stage.ends);
        let is_over = |number: usize| ended.iter().any(|(it, _)| *it == number);
        stage.flying.retain(|(number, _)| !is_over(*number));
        drop(stage);
        for (number, error) in ended {
            let (op, memory) = self.submitted[number].take().expect("in flight");
            let bytes = if op.kind == OpKind::Flush {
                0
            } else {
                op.length
            };
            let result = error.map_or(Ok(bytes), Err);
            done(Completion { memory, result });
        }
    }

    fn cancel(&mut self, _ticket: Ticket) {}

    fn in_flight(&self) -> usize {
        self.submitted.iter().flatten().count()
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

/// An image that two threads use over one consumer, whose operations the test ends one by one.
struct Rig {
    opened: Opened,
    channels: [Channel; 2],
    scripts: [Script; 2],
    submitted: [usize; 2],
    _stack: Stack,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self::with(|image| image)
    }

    fn with(change: impl FnOnce(open::Opened) -> open::Opened) -> Self {
        let folder = tempfile::TempDir::new().expect("a directory");
        let path = folder.path().join("disk.img");
        std::fs::write(&path, [0; 64 * SECTOR]).expect("an image");
        let path = path.to_str().expect("UTF-8");
        let wanted = open::Wanted {
            writable: true,
            direct: false,
            shared: false,
            unlocked: false,
            relayout: false,
            sectorsize: None,
            disk_bytes: None,
        };
        let scripts = [Script::default(), Script::default()];
        let engines = scripts.each_ref().map(|script| {
            let script = Arc::clone(script);
            let (inner, submitted) = (SyncEngine::new(), Vec::new());
            Box::new(Scripted {
                inner,
                script,
                submitted,
            }) as Box<dyn Engine<Carried>>
        });
        let engines = Engines::of(engines.into_iter().rev().collect());
        let image = open::open(path, wanted).expect("open");
        let plan = plan(path, change(image), (engines, true), (0, 0)).expect("a plan");
        let stack = Stack::new(StackKnobs::default(), Vec::new()).expect("a stack");
        let provider = stack.create("FILE", plan, &[]).expect("a geom")[0];
        let opened = stack.open(provider, Delta::READ_WRITE).expect("open");
        let channels = [0, 1].map(|_| stack.channel(64).expect("a channel"));
        Self {
            opened,
            channels,
            scripts,
            submitted: [0; 2],
            _stack: stack,
            _folder: folder,
        }
    }

    /// Submits a request in a thread; the number of its operation there.
    fn submit(&mut self, thread: usize, command: Command, flags: Flags) -> usize {
        let channel = &mut self.channels[thread];
        let draft = channel.bio().expect("a bio");
        let draft = match command {
            Command::Write => draft.write(0, Buffer::new(SECTOR)),
            Command::Flush => draft.flush(),
            other => draft.discard(other, 0, SECTOR as u64),
        };
        channel.submit(&self.opened, draft.flags(flags));
        self.submitted[thread] += 1;
        self.submitted[thread] - 1
    }

    /// Ends an operation of a thread; the result of the request that completes with it, if any.
    fn end(&mut self, thread: usize, operation: usize, error: Option<Errno>) -> Option<bool> {
        let stage = self.scripts[thread].lock();
        stage.expect("the script").ends.push((operation, error));
        self.channels[thread].poll();
        let finished = self.channels[thread].finished()?;
        Some(finished.result().is_ok())
    }

    /// The kernel has nothing to flush; what the consumer is told.
    fn flush(&mut self, thread: usize) -> Option<bool> {
        let flush = self.submit(thread, Command::Flush, Flags::NONE);
        self.end(thread, flush, None)
    }
}

const CHANGES: [Command; 3] = [Command::Write, Command::Delete, Command::Zero];

#[test]
fn a_change_in_flight_beside_a_failing_flush_fails_the_flush_after_it() {
    for command in CHANGES {
        let mut rig = Rig::new();
        // The engine of thread 0 is the first that is handed out.
        let change = rig.submit(0, command, Flags::NONE);
        let beside = rig.submit(1, Command::Flush, Flags::NONE);
        assert_eq!(rig.end(1, beside, Some(Errno::IO)), Some(false));
        assert_eq!(rig.end(0, change, None), Some(true));
        assert_eq!(rig.flush(1), Some(false), "{command:?} may be lost");
        assert_eq!(rig.flush(0), Some(true), "{command:?} was reported");
    }
}

#[test]
fn a_change_that_ends_before_the_flush_fails_is_reported_by_it_alone() {
    for command in CHANGES {
        let mut rig = Rig::new();
        let change = rig.submit(0, command, Flags::NONE);
        let beside = rig.submit(1, Command::Flush, Flags::NONE);
        assert_eq!(rig.end(0, change, None), Some(true));
        assert_eq!(rig.end(1, beside, Some(Errno::IO)), Some(false));
        assert_eq!(rig.flush(1), Some(true), "{command:?} was reported");
    }
}

#[test]
fn a_durable_zero_beside_a_failing_flush_fails() {
    for flush_first in [true, false] {
        let mut rig = Rig::new();
        let zero = rig.submit(0, Command::Zero, Flags::FUA);
        let beside = rig.submit(1, Command::Flush, Flags::NONE);
        if flush_first {
            assert_eq!(rig.end(1, beside, Some(Errno::IO)), Some(false));
        }
        // Its zeroes are written, and a second operation makes them durable.
        let ended = rig.end(0, zero, None);
        if !flush_first {
            assert_eq!(ended, None);
            assert_eq!(rig.end(1, beside, Some(Errno::IO)), Some(false));
        }
        let durable = ended.or_else(|| rig.end(0, zero + 1, None));
        assert_eq!(durable, Some(false), "the zeroes may be lost");
    }
}

/// A file that can neither be opened once more nor be made durable.
fn eventfd(image: open::Opened) -> open::Opened {
    let flags = rustix::event::EventfdFlags::CLOEXEC;
    let file = rustix::event::eventfd(0, flags).expect("an eventfd").into();
    open::Opened { file, ..image }
}

/// The kernel would tell one of two threads only, and either may have the writes that are lost.
#[test]
fn a_flush_over_an_open_file_of_two_threads_is_made_by_one_at_a_time() {
    for command in [Command::Write, Command::Zero] {
        let mut rig = Rig::with(eventfd);
        let flying = |rig: &Rig| rig.scripts[0].lock().expect("the script").flying.clone();
        rig.submit(0, Command::Flush, Flags::NONE);
        assert_eq!(flying(&rig), [], "no engine makes it");
        rig.channels[0].poll();
        let flush = rig.channels[0].finished().expect("finished");
        assert_eq!(flush.result(), Err(Errno::INVAL));
        // The FLUSH has no number in the script.
        let durable = rig.submit(0, command, Flags::FUA) - 1;
        let kind = flying(&rig)[0].1.kind;
        assert_ne!(kind, OpKind::Write { durable: true });
        assert_eq!(rig.end(0, durable, None), Some(false), "{command:?}");
        assert_eq!(flying(&rig), [], "no engine makes it durable");
    }
}

/// The kernel's side: what it has of the writes, and the error that it reports to each open file
/// once.
#[derive(Default)]
struct Kernel {
    /// Sectors that were written to the page cache.
    cached: Vec<u64>,
    /// Those of them that have not come to the media.
    dirty: Vec<u64>,
    /// Those that never will.
    lost: Vec<u64>,
    errors: u32,
    /// The errors that the open file of each thread has reported.
    seen: [u32; 2],
}

impl Kernel {
    fn writes(&mut self, sector: u64) {
        if !self.cached.contains(&sector) {
            self.cached.push(sector);
            self.dirty.push(sector);
        }
    }

    fn writes_back(&mut self, fails: bool) {
        if !fails {
            return self.dirty.clear();
        }
        self.errors += u32::from(!self.dirty.is_empty());
        self.lost.append(&mut self.dirty);
    }

    fn flush(&mut self, thread: usize) -> Option<Errno> {
        self.writes_back(false);
        let is_new = self.seen[thread] < self.errors;
        self.seen[thread] = self.errors;
        is_new.then_some(Errno::IO)
    }
}

/// The state that the user of the disk expects.
#[derive(Default)]
struct User {
    /// Acknowledged sectors of which no FLUSH has failed since.
    written: Vec<u64>,
    /// Those that each FLUSH in flight has to cover, by its cookie.
    covers: Vec<(u64, Vec<u64>)>,
}

impl User {
    fn finished(&mut self, cookie: u64, good: bool, kernel: &Kernel, seed: u64) {
        let Some(at) = self.covers.iter().position(|(it, _)| *it == cookie) else {
            return self.written.push(cookie);
        };
        let (_, covered) = self.covers.remove(at);
        if good {
            let is_lost = |it: &&u64| kernel.lost.contains(it) && self.written.contains(it);
            let lost = covered.iter().find(is_lost);
            assert_eq!(lost, None, "seed {seed}: a FLUSH succeeds over a loss");
            self.written.retain(|it| !covered.contains(it));
        } else {
            self.written.clear();
        }
    }
}

#[test]
fn in_no_history_of_two_threads_does_a_flush_succeed_over_a_loss() {
    for seed in 0..500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut rig, mut kernel, mut user) = (Rig::new(), Kernel::default(), User::default());
        for number in 0..64_u64 {
            let thread = random.usize(..2);
            if random.u8(..3) == 0 {
                user.covers.push((number, user.written.clone()));
                rig.submit_as(thread, number, None);
            } else {
                rig.submit_as(thread, number, Some(number));
            }
            for _ in 0..random.usize(..9) {
                rig.step(&mut random, &mut kernel);
            }
            rig.collect(|cookie, good| user.finished(cookie, good, &kernel, seed));
        }
        while rig.step(&mut random, &mut kernel) {
            rig.collect(|cookie, good| user.finished(cookie, good, &kernel, seed));
        }
    }
}

impl Rig {
    /// Submits a write of this sector, or a FLUSH.
    fn submit_as(&mut self, thread: usize, cookie: u64, sector: Option<u64>) {
        let channel = &mut self.channels[thread];
        let draft = channel.bio().expect("a bio");
        let draft = match sector {
            Some(sector) => draft.write(sector * SECTOR as u64, Buffer::new(SECTOR)),
            None => draft.flush(),
        };
        channel.submit(&self.opened, draft.cookie(cookie));
    }

    /// Something happens in the kernel. False when there is nothing in flight.
    fn step(&mut self, random: &mut fastrand::Rng, kernel: &mut Kernel) -> bool {
        let is_idle = |at: usize| {
            self.scripts[at]
                .lock()
                .expect("the script")
                .flying
                .is_empty()
        };
        let thread = random.usize(..2);
        let thread = if is_idle(thread) { 1 - thread } else { thread };
        let mut stage = self.scripts[thread].lock().expect("the script");
        let Some((number, op)) = random.choice(stage.flying.clone()) else { return false };
        let sector = op.offset / SECTOR as u64;
        match random.u8(..4) {
            0 if op.kind != OpKind::Flush => kernel.writes(sector),
            1 => kernel.writes_back(random.bool()),
            _ => {}
        }
        if random.bool() {
            return true;
        }
        let error = match op.kind {
            OpKind::Flush => kernel.flush(thread),
            _ => {
                kernel.writes(sector);
                None
            }
        };
        stage.flying.retain(|(it, _)| *it != number);
        stage.ends.push((number, error));
        true
    }

    /// Hands out what has completed, with its cookie.
    fn collect(&mut self, mut finished: impl FnMut(u64, bool)) {
        for channel in &mut self.channels {
            channel.poll();
            while let Some(one) = channel.finished() {
                finished(one.cookie(), one.result().is_ok());
            }
        }
    }
}
