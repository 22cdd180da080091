//! The actions of a program without unsafe code on an engine, none of which may be unsound.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use ugeom_engine::{Engine, GuasiEngine, GuasiOptions, Op, OpKind, UringEngine};
use ugeom_machine::buffer::Buffer;

const LEN: usize = 64 << 10;

/// Forgets an engine whose read waits for data, and lets the data come when much other memory is
/// in use: none of it may be written to.
fn forget(mut engine: Box<dyn Engine<Buffer>>) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let file = Arc::new(File::from(std::os::fd::OwnedFd::from(reader)));
    let file = engine.register(file).unwrap();
    let op = Op {
        kind: OpKind::Read,
        file,
        offset: 0,
        length: LEN as u64,
    };
    engine.submit(op, Buffer::new(LEN));
    engine.flush_submissions();
    std::mem::forget(engine);
    let others: Vec<Buffer> = (0..64).map(|_| Buffer::from_slice(&[7; LEN])).collect();
    writer.write_all(&[9; LEN / 2]).unwrap();
    for _ in 0..50 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let untouched = |buffer: &Buffer| buffer.iter().all(|byte| *byte == 7);
        assert!(others.iter().all(untouched));
    }
}

#[test]
fn a_forgotten_ring_keeps_the_memory_that_the_kernel_writes_to() {
    if let Some(engine) = ugeom_testkit::or_skip(UringEngine::open(4)) {
        forget(Box::new(engine));
    }
}

#[test]
fn forgotten_workers_keep_the_memory_that_they_write_to() {
    forget(Box::new(
        GuasiEngine::open(4, GuasiOptions::default()).unwrap(),
    ));
}
