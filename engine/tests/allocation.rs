//! No engine allocates once as many operations have been in flight as ever will be.
//!
//! A test binary of its own, as its allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::sync::Arc;

use ugeom_engine::{
    Choice, Engine, EngineOptions, GuasiOptions, Op, OpKind, Workers, open_engine_with,
};
use ugeom_machine::buffer::{Buffer, Scatter};

thread_local! {
    /// Allocations of this thread.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const IN_FLIGHT: usize = 100;

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Reads,
    Everything,
}

/// Submits all memories and takes them back.
fn round(engine: &mut dyn Engine<Scatter>, op: Op, memories: &mut Vec<Scatter>, work: Work) {
    for (number, memory) in memories.drain(..).enumerate() {
        let kind = match number % 4 {
            _ if work == Work::Reads => OpKind::Read,
            0 => OpKind::Write { durable: false },
            1 if number == 1 => OpKind::Flush,
            _ => OpKind::Read,
        };
        let ticket = engine.submit(
            Op {
                kind,
                offset: number as u64 * 1024,
                ..op
            },
            memory,
        );
        if work == Work::Everything && number % 10 == 9 {
            engine.cancel(ticket);
        }
    }
    while engine.in_flight() > 0 {
        engine.reap(&mut |completion| memories.push(completion.memory));
        engine.wait(None).unwrap();
    }
}

#[test]
fn a_warm_engine_does_not_allocate() {
    let real = |choice: &Choice| !matches!(choice, Choice::Auto | Choice::Simulated);
    for choice in Choice::ALL.into_iter().filter(real) {
        // A worker that starts because all others are busy takes memory; these are all there.
        let workers = Some(Workers { min: 2, max: 2 });
        let guasi = GuasiOptions {
            workers,
            ..GuasiOptions::default()
        };
        let options = EngineOptions::new(16, guasi);
        let opened = ugeom_testkit::or_skip(open_engine_with::<Scatter>(choice, options));
        let Some((mut engine, _)) = opened else { continue };
        let folder = tempfile::tempdir().unwrap();
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = Arc::new(file.open(folder.path().join("f")).unwrap());
        let file = engine.register(file).unwrap();
        let memory = |_| Scatter::new(vec![Buffer::new(512), Buffer::new(512)]);
        let mut memories: Vec<Scatter> = (0..IN_FLIGHT).map(memory).collect();
        let op = Op {
            kind: OpKind::Read,
            file,
            offset: 0,
            length: 1024,
        };
        // Each place of the table has a read in pieces once: a flush has none, and what is
        // cancelled in time may have none.
        round(&mut *engine, op, &mut memories, Work::Reads);
        for _ in 0..100 {
            round(&mut *engine, op, &mut memories, Work::Everything);
        }
        // A list may still grow when more ends at once than ever before. An engine that takes
        // memory for its operations does so each time.
        let steady = (0..5).any(|_| {
            let before = COUNT.get();
            for _ in 0..50 {
                round(&mut *engine, op, &mut memories, Work::Everything);
            }
            COUNT.get() == before
        });
        assert!(steady, "{choice}");
        assert_eq!(memories.len(), IN_FLIGHT);
    }
}
