//! Checks of impossible operations: each comes back as a completion with the system's reason.

use std::path::Path;

use super::*;

pub(super) fn the_wrong_direction_is_refused(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    std::fs::write(&path, b"abc").unwrap();
    let mut rig = Rig::new(make, 4);
    let reader = rig.register(File::open(&path).unwrap());
    let writer = rig.register(OpenOptions::new().write(true).open(&path).unwrap());
    assert_eq!(rig.read(writer, 0, 3), (Err(Errno::BADF), vec![0xEE; 3]));
    assert_eq!(rig.write(reader, 0, b"x"), Err(Errno::BADF));
    assert_eq!(rig.without_memory(ZERO, reader, (0, 2)), Err(Errno::BADF));
    assert_eq!(
        rig.without_memory(OpKind::Discard, reader, (0, 2)),
        Err(Errno::BADF)
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"abc");
}

pub(super) fn a_void_file_is_refused(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 4);
    let old = rig.file(&folder.join("f"), b"abc");
    rig.engine.unregister(old);
    assert_eq!(rig.read(old, 0, 3).0, Err(Errno::BADF));
    let new = rig.file(&folder.join("g"), b"xyz");
    assert_ne!(old, new);
    assert_eq!(rig.read(old, 0, 3).0, Err(Errno::BADF));
    rig.engine.unregister(old);
    assert_eq!(rig.read(new, 0, 3), (Ok(3), b"xyz".to_vec()));
}

pub(super) fn a_file_of_another_engine_is_refused(make: Make<'_>, folder: &Path) {
    let mut first = Rig::new(make, 4);
    let mut second = Rig::new(make, 4);
    let file = first.file(&folder.join("f"), b"abc");
    second.file(&folder.join("g"), b"xyz");
    assert_eq!(second.read(file, 0, 3).0, Err(Errno::BADF));
    assert_eq!(first.read(file, 0, 3), (Ok(3), b"abc".to_vec()));
}

pub(super) fn impossible_ranges_are_refused(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&path, b"abc");
    for kind in [OpKind::Read, WRITE, OpKind::Discard, ZERO] {
        for (offset, length) in [(u64::MAX, 1), (i64::MAX as u64, 1), (1, u64::MAX)] {
            let op = op(kind, file, (offset, length));
            assert_eq!(rig.run(op, &[b"x"]).0, Err(Errno::INVAL), "{op:?}");
        }
    }
    for kind in [OpKind::Read, WRITE, DURABLE] {
        let op = op(kind, file, (0, 3));
        assert_eq!(
            rig.run(op, &[b"x", b"y"]).0,
            Err(Errno::INVAL),
            "longer than the memory"
        );
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"abc");
}

pub(super) fn a_directory_cannot_be_read(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 4);
    let file = rig.register(File::open(folder).unwrap());
    assert_eq!(rig.read(file, 0, 512).0, Err(Errno::ISDIR));
}

pub(super) fn an_unaligned_direct_read_is_refused(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    std::fs::write(&path, vec![1; 8_192]).unwrap();
    let Some(direct) = open_direct(&path) else { return };
    let mut rig = Rig::new(make, 4);
    let file = rig.register(direct);
    assert_eq!(rig.read(file, 1, 4_096).0, Err(Errno::INVAL));
    assert_eq!(rig.read(file, 4_096, 4_096), (Ok(4_096), vec![1; 4_096]));
}

pub(super) fn what_would_block_for_ever_comes_back(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 4);
    let (reader, _writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
    let file = rig.register(File::from(reader));
    let good = rig.file(&folder.join("f"), b"abc");
    let op = op(OpKind::Read, file, (0, 8));
    let memory = rig.memory(0, &[&[0xEE; 8]]);
    let ticket = rig.engine.submit(op, memory);
    rig.engine.flush_submissions();
    rig.engine.cancel(ticket);
    let completions = rig.finish();
    // Stopped; or a call that finds nothing to read; or one with an offset, which no pipe has.
    let stopped = [Errno::CANCELED, Errno::AGAIN, Errno::SPIPE];
    let result = completions[0].result;
    assert!(
        result.is_err_and(|error| stopped.contains(&error)),
        "{result:?}"
    );
    assert_eq!(content(&completions[0].memory), [0xEE; 8]);
    assert_eq!(rig.read(good, 0, 3), (Ok(3), b"abc".to_vec()));
}

pub(super) fn an_error_does_not_disturb_its_neighbours(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 16);
    let good = rig.file(&path, b"abcdefgh");
    let bad = rig.register(OpenOptions::new().write(true).open(&path).unwrap());
    for number in 0..64 {
        let file = if number % 3 == 0 { bad } else { good };
        let memory = rig.memory(number, &[b"........"]);
        rig.engine.submit(op(OpKind::Read, file, (0, 8)), memory);
    }
    for completion in rig.finish() {
        let expected = if completion.memory.1.number % 3 == 0 {
            (Err(Errno::BADF), &b"........"[..])
        } else {
            (Ok(8), &b"abcdefgh"[..])
        };
        assert_eq!(
            (completion.result, &content(&completion.memory)[..]),
            expected
        );
    }
    rig.ledger.assert_settled();
}
