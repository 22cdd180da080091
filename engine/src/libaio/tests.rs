//! Tests of this engine alone: reaping from the kernel's ring, and sleeping on a descriptor that is
//! requested late. The tests of every engine are in the conformance suite.

use ugeom_machine::buffer::Buffer;

use super::*;
use crate::op::OpKind;
use ugeom_testkit::begins;

fn engine(depth: u32) -> Option<LibaioEngine<Buffer>> {
    ugeom_testkit::or_skip(LibaioEngine::open(depth))
}

fn file(content: &[u8]) -> (tempfile::TempDir, Arc<File>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    std::fs::write(&path, content).unwrap();
    let file = File::open(path).unwrap();
    (folder, Arc::new(file))
}

fn reap_all(engine: &mut LibaioEngine<Buffer>) -> Vec<Completion<Buffer>> {
    let mut completions = Vec::new();
    while engine.in_flight() > 0 {
        engine.wait(None).unwrap();
        engine.reap(&mut |completion| completions.push(completion));
    }
    completions
}

#[test]
fn the_structures_have_the_kernels_sizes() {
    assert_eq!((size_of::<Iocb>(), size_of::<Event>()), (64, 32));
}

#[test]
fn the_ring_and_the_call_reap_the_same() {
    let (_folder, file) = file(&[5; 512 * 64]);
    for by_call in [false, true] {
        let Some(mut engine) = engine(16) else { return };
        if by_call {
            engine.ring = None;
        } else if engine.ring.is_none() {
            return ugeom_testkit::skip("this kernel's ring looks different");
        }
        let file = engine.register(Arc::clone(&file)).unwrap();
        // More than the ring has places, so that it wraps around.
        for round in 0..64 {
            for offset in 0..64 {
                let op = Op {
                    kind: OpKind::Read,
                    file,
                    offset: offset * 512,
                    length: 512,
                };
                engine.submit(op, Buffer::new(512));
            }
            let completions = reap_all(&mut engine);
            assert_eq!(completions.len(), 64, "round {round}");
            for Completion { memory, result } in completions {
                assert_eq!(result, Ok(512));
                assert_eq!(memory[..], [5; 512]);
            }
        }
    }
}

#[test]
fn a_descriptor_asked_for_while_requests_are_in_flight_tells_of_them() {
    let Some(mut engine) = engine(8) else { return };
    let (_folder, file) = file(&[5; 512]);
    let file = engine.register(file).unwrap();
    let read = Op {
        kind: OpKind::Read,
        file,
        offset: 0,
        length: 512,
    };
    engine.submit(read, Buffer::new(512));
    engine.flush_submissions();
    let fd = engine.wait_fd().unwrap().try_clone_to_owned().unwrap();
    let readable = || {
        let mut fds = [rustix::event::PollFd::new(
            &fd,
            rustix::event::PollFlags::IN,
        )];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut fds, Some(&now)).unwrap() == 1
    };
    assert!(readable());
    assert_eq!(reap_all(&mut engine).len(), 1);
    engine.reap(&mut |_| panic!("nothing is in flight"));
    assert!(!readable());
    // From here on each request counts by itself.
    engine.submit(read, Buffer::new(512));
    engine.flush_submissions();
    while !readable() {
        std::thread::yield_now();
    }
    assert_eq!(reap_all(&mut engine).len(), 1);
}

#[test]
fn more_requests_than_the_system_allows_are_refused_with_its_limit() {
    let error = refused(io::Error::from_raw_os_error(libc::EAGAIN), 10_000).to_string();
    begins(&error, "libaio cannot be used: 10000 requests");
    assert!(error.contains("fs.aio-max-nr = "), "{error}");
}
