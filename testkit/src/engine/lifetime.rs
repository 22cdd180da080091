//! Checks of the ownership of memory: it is returned exactly once in every case.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Weak;

use super::*;

/// Submits `count` reads of 512 bytes, each of its own sector.
fn submit_reads(rig: &mut Rig, file: FileId, count: usize) -> Vec<ugeom_engine::Ticket> {
    (0..count)
        .map(|number| {
            let memory = rig.memory(number, &[&[0; 512]]);
            let offset = number as u64 * 512;
            rig.engine
                .submit(op(OpKind::Read, file, (offset, 512)), memory)
        })
        .collect()
}

pub(super) fn ten_thousand_operations_are_in_flight(make: Make<'_>, folder: &Path) {
    const COUNT: usize = 10_000;
    let sectors: Vec<u8> = (0..COUNT)
        .flat_map(|n| [n as u8 ^ (n >> 8) as u8; 512])
        .collect();
    for (depth, sleep) in [(64, BOTH[0]), (64, BOTH[1]), (16_384, BOTH[0])] {
        let mut rig = Rig::new(make, depth);
        rig.sleep = sleep;
        let file = rig.file(&folder.join("f"), &sectors);
        submit_reads(&mut rig, file, COUNT);
        assert_eq!(rig.engine.in_flight(), COUNT);
        let completions = rig.finish();
        let mut numbers = HashSet::new();
        for Completion { memory, result } in &completions {
            let number = memory.1.number;
            assert_eq!(*result, Ok(512));
            assert!(content(memory) == sectors[number * 512..][..512]);
            assert!(numbers.insert(number), "{number} came back twice");
        }
        assert_eq!(numbers.len(), COUNT);
        assert_eq!(rig.ledger.dropped(), 0);
        drop(completions);
        rig.ledger.assert_settled();
    }
}

pub(super) fn a_cancelled_operation_comes_back_once(make: Make<'_>, folder: &Path) {
    for flush in [false, true] {
        let mut rig = Rig::new(make, 8);
        let file = rig.file(&folder.join("f"), &vec![5; 512 * 200]);
        let tickets = submit_reads(&mut rig, file, 200);
        if flush {
            rig.engine.flush_submissions();
        }
        for ticket in &tickets[50..] {
            rig.engine.cancel(*ticket);
            rig.engine.cancel(*ticket);
        }
        assert_eq!(rig.engine.in_flight(), 200);
        let completions = rig.finish();
        assert_eq!(completions.len(), 200);
        let mut cancelled = 0;
        for Completion { memory, result } in completions {
            match result {
                Ok(512) => assert_eq!(content(&memory), [5; 512]),
                Err(Errno::CANCELED) if memory.1.number >= 50 => cancelled += 1,
                other => panic!("operation {} ended with {other:?}", memory.1.number),
            }
        }
        assert!(cancelled >= 100, "only {cancelled} of 150 were cancelled");
        rig.ledger.assert_settled();
    }
}

pub(super) fn an_old_ticket_cancels_nothing(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 8);
    let file = rig.file(&folder.join("f"), &vec![5; 512 * 4]);
    let old = submit_reads(&mut rig, file, 4);
    rig.finish();
    submit_reads(&mut rig, file, 4);
    for ticket in old {
        rig.engine.cancel(ticket);
    }
    let completions = rig.finish();
    assert_eq!(completions.len(), 4);
    assert!(
        completions
            .iter()
            .all(|completion| completion.result == Ok(512))
    );
}

pub(super) fn an_engine_dropped_in_flight_drops_the_memory_once(make: Make<'_>, folder: &Path) {
    drop_in_flight(make, folder, true);
}

pub(super) fn an_engine_dropped_before_it_was_flushed_drops_the_memory_once(
    make: Make<'_>,
    folder: &Path,
) {
    drop_in_flight(make, folder, false);
}

fn drop_in_flight(make: Make<'_>, folder: &Path, flush: bool) {
    for depth in [1, 8, 512] {
        let mut rig = Rig::new(make, depth);
        let file = rig.file(&folder.join("f"), &vec![5; 512 * 300]);
        submit_reads(&mut rig, file, 300);
        let memory = rig.memory(300, &[&[6; 100_000]]);
        rig.engine.submit(op(DURABLE, file, (0, 100_000)), memory);
        if flush {
            rig.engine.flush_submissions();
        }
        drop(rig.engine);
        assert_eq!(rig.ledger.dropped(), 301);
        rig.ledger.assert_settled();
    }
}

pub(super) fn a_file_taken_away_in_flight_stays_open_until_the_end(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    std::fs::write(&path, [5; 512 * 20]).unwrap();
    let mut rig = Rig::new(make, 4);
    let file = Arc::new(File::open(&path).unwrap());
    let open: Weak<File> = Arc::downgrade(&file);
    let id = rig.engine.register(file).unwrap();
    submit_reads(&mut rig, id, 20);
    rig.engine.unregister(id);
    assert!(open.upgrade().is_some());
    let memory = rig.memory(20, &[&[0; 512]]);
    rig.engine.submit(op(OpKind::Read, id, (0, 512)), memory);
    for completion in rig.finish() {
        let late = completion.memory.1.number == 20;
        assert_eq!(
            completion.result,
            if late { Err(Errno::BADF) } else { Ok(512) }
        );
    }
    assert!(open.upgrade().is_none(), "the file is not in use any more");
}

pub(super) fn a_wait_with_nothing_in_flight_returns(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 4);
    rig.engine.wait(None).unwrap();
    let file = rig.file(&folder.join("f"), b"abc");
    rig.read(file, 0, 3).0.unwrap();
    rig.engine.wait(None).unwrap();
    rig.engine.reap(&mut |_| panic!("nothing was submitted"));
}

pub(super) fn the_descriptor_tells_when_to_reap(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 4);
    rig.sleep = Sleep::Descriptor;
    let file = rig.file(&folder.join("f"), &vec![5; 512 * 100]);
    let Some(fd) = rig
        .engine
        .wait_fd()
        .map(|fd| std::os::fd::AsRawFd::as_raw_fd(&fd))
    else {
        // Then a reap must end something whenever anything is in flight.
        submit_reads(&mut rig, file, 3);
        let mut ended = 0;
        rig.engine.reap(&mut |_| ended += 1);
        return assert!(ended > 0);
    };
    for _ in 0..100 {
        submit_reads(&mut rig, file, 3);
        assert_eq!(rig.finish().len(), 3);
    }
    let same = rig
        .engine
        .wait_fd()
        .map(|fd| std::os::fd::AsRawFd::as_raw_fd(&fd));
    assert_eq!(same, Some(fd));
}

pub(super) fn an_engine_may_move_between_operations(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&folder.join("f"), &vec![5; 512 * 10]);
    for _ in 0..4 {
        rig = std::thread::spawn(move || {
            submit_reads(&mut rig, file, 10);
            assert_eq!(rig.finish().len(), 10);
            rig
        })
        .join()
        .unwrap();
    }
    rig.ledger.assert_settled();
}
