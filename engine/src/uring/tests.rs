//! Tests of this engine alone: a queue of its own, and operations that the kernel can put off for
//! ever. The tests of every engine are in the conformance suite.

use std::io::Write;

use ugeom_machine::buffer::Buffer;

use super::*;
use crate::op::OpKind;

/// An engine, or a line that says why the test does not run.
fn engine(depth: u32) -> Option<UringEngine<Buffer>> {
    ugeom_testkit::or_skip(UringEngine::open(depth))
}

fn read(file: FileId) -> Op {
    Op {
        kind: OpKind::Read,
        file,
        offset: 0,
        length: 8,
    }
}

fn reaped(engine: &mut UringEngine<Buffer>) -> Vec<Completion<Buffer>> {
    let mut completions = Vec::new();
    engine.reap(&mut |completion| completions.push(completion));
    completions
}

/// The completions of all that is in flight.
fn drained(engine: &mut UringEngine<Buffer>) -> Vec<Completion<Buffer>> {
    let mut completions = Vec::new();
    while engine.in_flight() > 0 {
        engine.wait(None).unwrap();
        completions.extend(reaped(engine));
    }
    completions
}

/// A pipe that was not written to: a read of it stays with the kernel.
fn silent_pipe() -> (Arc<File>, File) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    (Arc::new(File::from(reader)), File::from(writer))
}

#[test]
fn an_operation_in_the_kernel_is_cancelled() {
    let Some(mut engine) = engine(4) else { return };
    let (reader, _writer) = silent_pipe();
    let file = engine.register(reader).unwrap();
    let ticket = engine.submit(read(file), Buffer::new(8));
    assert!(reaped(&mut engine).is_empty());
    engine.cancel(ticket);
    let completions = drained(&mut engine);
    assert_eq!(completions.len(), 1);
    assert_eq!(completions[0].result, Err(Errno::CANCELED));
}

#[test]
fn an_operation_in_the_backlog_is_cancelled_before_it_begins() {
    let Some(mut engine) = engine(1) else { return };
    let (reader, mut writer) = silent_pipe();
    let file = engine.register(reader).unwrap();
    engine.submit(read(file), Buffer::new(8));
    let waiting = engine.submit(read(file), Buffer::new(8));
    engine.flush_submissions();
    engine.cancel(waiting);
    let completions = reaped(&mut engine);
    assert_eq!(completions.len(), 1);
    assert_eq!(completions[0].result, Err(Errno::CANCELED));
    writer.write_all(b"12345678").unwrap();
    engine.wait(None).unwrap();
    let completions = reaped(&mut engine);
    assert_eq!(completions[0].result, Ok(8));
    assert_eq!(&completions[0].memory[..], b"12345678");
}

#[test]
fn an_engine_is_dropped_while_the_kernel_would_wait_for_ever() {
    let Some(mut engine) = engine(3) else { return };
    let (reader, _writer) = silent_pipe();
    let file = engine.register(reader).unwrap();
    for _ in 0..10 {
        engine.submit(read(file), Buffer::new(8));
    }
    engine.flush_submissions();
    drop(engine);
}

#[test]
fn a_wait_ends_at_its_timeout() {
    let Some(mut engine) = engine(4) else { return };
    let (reader, _writer) = silent_pipe();
    let file = engine.register(reader).unwrap();
    engine.submit(read(file), Buffer::new(8));
    let start = std::time::Instant::now();
    engine.wait(Some(Duration::from_millis(20))).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert!(reaped(&mut engine).is_empty());
    assert_eq!(engine.in_flight(), 1);
}

#[test]
fn files_beyond_the_kernels_table_work_like_those_inside() {
    let Some(mut engine) = engine(4) else { return };
    let folder = tempfile::tempdir().unwrap();
    let count = setup::FILES_MAX as usize + 5;
    let files: Vec<FileId> = (0..count)
        .map(|number| {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, format!("{number:08}")).unwrap();
            engine
                .register(Arc::new(File::open(path).unwrap()))
                .unwrap()
        })
        .collect();
    // A slot of the table that was used before leads to its new file.
    engine.unregister(files[3]);
    let path = folder.path().join("3b");
    std::fs::write(&path, "another!").unwrap();
    let another = engine
        .register(Arc::new(File::open(path).unwrap()))
        .unwrap();
    assert_eq!(another.index, files[3].index);
    for (number, &file) in files.iter().enumerate().chain([(count, &another)]) {
        engine.submit(read(file), Buffer::new(8));
        let completions = drained(&mut engine);
        match number {
            3 => assert_eq!(completions[0].result, Err(Errno::BADF)),
            _ if number == count => assert_eq!(&completions[0].memory[..], b"another!"),
            _ => assert_eq!(
                &completions[0].memory[..],
                format!("{number:08}").as_bytes()
            ),
        }
    }
}

#[test]
fn memory_beyond_the_kernels_table_works_like_that_inside() {
    let Some(mut engine) = engine(4) else { return };
    if !engine.tables.memory {
        return ugeom_testkit::skip("no registered memory");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "12345678").unwrap();
    let file = engine
        .register(Arc::new(File::open(path).unwrap()))
        .unwrap();
    for number in 0..setup::POOLS_MAX + 2 {
        let (pool, mut buffers) = Pool::new(2, 8);
        let inside = number < setup::POOLS_MAX;
        assert_eq!(engine.register_memory(&pool), inside, "{number}");
        let memory = buffers.remove(1);
        let expected = inside.then_some(number as u16);
        let step = Step {
            call: Call::Read,
            offset: 0,
            length: 8,
        };
        assert_eq!(
            registered(&engine.pools, &step, memory.segments()),
            expected
        );
        engine.submit(read(file), memory);
        let completions = drained(&mut engine);
        assert_eq!(completions[0].result, Ok(8));
        assert_eq!(&completions[0].memory[..], b"12345678");
    }
    let (empty, _) = Pool::new(0, 8);
    assert!(!engine.register_memory(&empty));
}
