//! Writes in flight beside a FLUSH that fails: the kernel reports the failure once, and what the
//! writes had brought into the page cache before is gone.

use crate::engines::{Carried, Engines};
use crate::file::{open, plan};
use std::fs::File;
use std::sync::{Arc, Mutex};
use ugeom_engine::{Completion, Engine, FileId, Op, OpKind, SyncEngine, Ticket};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Delta, Errno, Flags, Opened, Stack, StackKnobs};

const SECTOR: usize = 512;

/// Operations that the test lets end, by number, with their errors.
type Script = Arc<Mutex<Vec<(usize, Option<Errno>)>>>;

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
        let ended = std::mem::take(&mut *self.script.lock().expect("the script"));
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
        let plan = plan(path, image, engines, (0, 0)).expect("a plan");
        let stack = Stack::new(StackKnobs::default(), Vec::new()).expect("a stack");
        let provider = stack.create("FILE", plan, &[]).expect("a geom")[0];
        let opened = stack.open(provider, Delta::READ_WRITE).expect("open");
        let channels = [0, 1].map(|_| stack.channel(16).expect("a channel"));
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
        let script = &self.scripts[thread];
        script.lock().expect("the script").push((operation, error));
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
