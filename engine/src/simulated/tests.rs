//! The promises of the simulation: the same run from the same seed, and after a crash every flushed
//! write and no data that was never written. The tests of every engine are in the conformance
//! suite.

use std::fs::OpenOptions;
use std::ops::Range;

use ugeom_machine::buffer::Buffer;

use super::*;
use crate::op::OpKind;

const BLOCK: usize = 4096;
const BLOCKS: usize = 64;

fn file(folder: &std::path::Path) -> Arc<File> {
    let path = folder.join("f");
    std::fs::write(&path, vec![0; BLOCK * BLOCKS]).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path);
    Arc::new(file.unwrap())
}

fn op(kind: OpKind, file: FileId, block: usize) -> Op {
    Op {
        kind,
        file,
        offset: (block * BLOCK) as u64,
        length: BLOCK as u64,
    }
}

fn finish(engine: &mut SimulatedEngine<(Buffer, usize)>) -> Vec<(usize, Result<u64, Errno>)> {
    let mut ended = Vec::new();
    while engine.in_flight() > 0 {
        engine.reap(&mut |completion| ended.push((completion.memory.1, completion.result)));
    }
    ended
}

/// Reads all blocks at once, and returns the order in which they came back, and the time it took.
fn order(seed: u64) -> (Vec<usize>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults {
        seed,
        failed: 0.05,
        ..Faults::default()
    };
    let simulation = Simulation::new(faults);
    let mut engine = simulation.engine(16);
    let file = engine.register(file(folder.path())).unwrap();
    for block in 0..BLOCKS {
        engine.submit(op(OpKind::Read, file, block), (Buffer::new(BLOCK), block));
    }
    let ended = finish(&mut engine);
    assert!(ended.iter().any(|(_, result)| *result == Err(Errno::IO)));
    let order = ended.into_iter().map(|(block, _)| block).collect();
    (order, simulation.now_ns())
}

#[test]
fn the_seed_decides_the_order_the_errors_and_the_time() {
    let first = order(3);
    assert_eq!(first, order(3));
    assert_ne!(first.0, order(4).0);
    assert_ne!(first.0, (0..BLOCKS).collect::<Vec<_>>());
    // 64 calls of 50 to 150 us, 16 at a time.
    assert!((200_000..=2_000_000).contains(&first.1), "{} ns", first.1);
}

/// Writes generations of blocks, some flushed, and takes the power away in the middle of the last
/// one. Returns the lost writes, and the torn blocks.
fn crash(seed: u64) -> (Crash, usize) {
    let folder = tempfile::tempdir().unwrap();
    let simulation = Simulation::new(Faults {
        seed,
        ..Faults::default()
    });
    let mut engine = simulation.engine(8);
    let real = file(folder.path());
    let id = engine.register(Arc::clone(&real)).unwrap();
    let write = |engine: &mut SimulatedEngine<_>, generation: u8, blocks: Range<usize>| {
        for block in blocks {
            let data = Buffer::from_slice(&[generation; BLOCK]);
            let kind = OpKind::Write { durable: false };
            engine.submit(op(kind, id, block), (data, block));
        }
    };
    write(&mut engine, 1, 0..BLOCKS);
    assert!(finish(&mut engine).iter().all(|(_, result)| result.is_ok()));
    engine.submit(op(OpKind::Flush, id, 0), (Buffer::new(0), 0));
    assert_eq!(finish(&mut engine), [(0, Ok(0))]);
    // Completed and not flushed; then in flight.
    write(&mut engine, 2, 0..BLOCKS / 2);
    finish(&mut engine);
    write(&mut engine, 3, 0..BLOCKS);
    engine.flush_submissions();
    let mut ended = 0;
    while ended < BLOCKS / 4 {
        engine.reap(&mut |_| ended += 1);
    }
    let crash = simulation.crash().unwrap();
    for (_, result) in finish(&mut engine) {
        assert_eq!(result, Err(Errno::IO));
    }
    simulation.restart();
    let content = std::fs::read(folder.path().join("f")).unwrap();
    let mut torn = 0;
    for (block, bytes) in content.chunks(BLOCK).enumerate() {
        for sector in bytes.chunks(SECTOR_BYTES as usize) {
            let generation = sector[0];
            assert!(
                sector.iter().all(|&byte| byte == generation),
                "block {block}"
            );
            // The first generation was flushed, so that nothing older may come back.
            assert!((1..=3).contains(&generation), "block {block}: {generation}");
            assert!(generation != 2 || block < BLOCKS / 2, "block {block}");
        }
        torn += usize::from(bytes.iter().any(|&byte| byte != bytes[0]));
    }
    // The disk works again.
    engine.submit(op(OpKind::Read, id, 0), (Buffer::new(BLOCK), 0));
    assert_eq!(finish(&mut engine), [(0, Ok(BLOCK as u64))]);
    (crash, torn)
}

#[test]
fn a_crash_loses_what_was_not_flushed_and_nothing_else() {
    for seed in 0..20 {
        let (crash, torn) = crash(seed);
        assert!(crash.lost > 0 && crash.lost < crash.uncertain, "{crash:?}");
        assert!(torn > 0, "seed {seed}: no write was torn");
    }
}

#[test]
fn durable_writes_survive_without_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..20 {
        let simulation = Simulation::new(Faults {
            seed,
            ..Faults::default()
        });
        let mut engine = simulation.engine(8);
        let id = engine.register(file(folder.path())).unwrap();
        for block in 0..BLOCKS {
            let data = Buffer::from_slice(&[9; BLOCK]);
            let kind = OpKind::Write { durable: true };
            engine.submit(op(kind, id, block), (data, block));
        }
        finish(&mut engine);
        simulation.crash().unwrap();
        let content = std::fs::read(folder.path().join("f")).unwrap();
        assert!(content.iter().all(|&byte| byte == 9), "seed {seed}");
    }
}
