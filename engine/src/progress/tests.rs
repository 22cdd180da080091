//! The bookkeeping against a kernel that is played by the test: it transfers as little as it
//! likes, and notes which addresses it was given.

use super::*;
use crate::files::Files;
use crate::op::FileId;
use std::fs::File;
use std::sync::Arc;

/// Segments at addresses that are never followed.
struct Fake(Vec<Segment>);

// SAFETY: no test follows the addresses.
unsafe impl IoMemory for Fake {
    fn segments(&self) -> &[Segment] {
        &self.0
    }
}

fn fake(lens: &[usize]) -> Fake {
    let segment = |(index, &len)| {
        let base = std::ptr::without_provenance_mut((index + 1) << 40);
        Segment { base, len }
    };
    Fake(lens.iter().enumerate().map(segment).collect())
}

/// The addresses of all bytes of the segments, in order.
fn addresses(segments: &[Segment]) -> impl Iterator<Item = usize> {
    segments
        .iter()
        .flat_map(|segment| (0..segment.len).map(|i| segment.base.addr() + i))
}

fn null() -> (Files, FileId) {
    let mut files = Files::default();
    let id = files
        .register(Arc::new(File::open("/dev/null").unwrap()))
        .unwrap();
    (files, id)
}

fn op(kind: OpKind, file: FileId, length: u64) -> Op {
    Op {
        kind,
        file,
        offset: 1000,
        length,
    }
}

const WRITE: OpKind = OpKind::Write { durable: false };

#[test]
fn short_transfers_cover_every_byte_once_and_in_order() {
    let (mut files, id) = null();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let lens: Vec<usize> = (0..random.usize(1..60))
            .map(|_| random.usize(0..9))
            .collect();
        let memory = fake(&lens);
        let length = random.u64(0..=memory.total_bytes());
        let op = op(WRITE, id, length);
        let mut progress = Progress::default();
        let mut seen = Vec::new();
        let mut end = settled(&op, &memory);
        while end.is_none() {
            let file = files.held(id);
            let step = progress.step(&op, &memory, file);
            assert_eq!(step.offset, 1000 + seen.len() as u64);
            assert!(step.length > 0);
            assert_eq!(addresses(progress.pieces()).count() as u64, step.length);
            let count = random.u64(1..=step.length);
            seen.extend(addresses(progress.pieces()).take(count as usize));
            end = progress.absorb(&op, &memory, file, Ok(count));
        }
        assert_eq!(end, Some(Ok(length)));
        assert!(addresses(memory.segments()).take(length as usize).eq(seen));
    }
}

#[test]
fn what_is_too_long_for_one_call_is_split() {
    let (mut files, id) = null();
    let memory = fake(&[5 << 30]);
    let op = op(WRITE, id, 5 << 30);
    let mut progress = Progress::default();
    let mut lengths = Vec::new();
    loop {
        let file = files.held(id);
        let step = progress.step(&op, &memory, file);
        lengths.push(step.length);
        if let Some(end) = progress.absorb(&op, &memory, file, Ok(step.length)) {
            assert_eq!(end, Ok(5 << 30));
            break;
        }
    }
    assert_eq!(
        lengths,
        [
            CALL_BYTES_MAX,
            CALL_BYTES_MAX,
            (5 << 30) - 2 * CALL_BYTES_MAX
        ]
    );
}

#[test]
fn no_call_has_more_segments_than_the_kernel_takes() {
    let (mut files, id) = null();
    let memory = fake(&[3; 2500]);
    let op = op(WRITE, id, 7500);
    let mut progress = Progress::default();
    let mut numbers = Vec::new();
    loop {
        let file = files.held(id);
        let step = progress.step(&op, &memory, file);
        numbers.push(progress.pieces().len());
        if progress
            .absorb(&op, &memory, file, Ok(step.length))
            .is_some()
        {
            break;
        }
    }
    assert_eq!(numbers, [1024, 1024, 452]);
}

#[test]
fn interruptions_are_retried_but_not_for_ever() {
    let (mut files, id) = null();
    let memory = fake(&[8]);
    for error in [Errno::INTR, Errno::AGAIN] {
        let op = op(OpKind::Read, id, 8);
        let mut progress = Progress::default();
        let mut calls = 0;
        let end = loop {
            let file = files.held(id);
            progress.step(&op, &memory, file);
            calls += 1;
            if let Some(end) = progress.absorb(&op, &memory, file, Err(error)) {
                break end;
            }
        };
        assert_eq!((end, calls), (Err(error), ATTEMPTS_MAX + 1));
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_short_read_is_the_last_one_only_at_the_end() {
    let path = tempfile::NamedTempFile::new().unwrap();
    path.as_file().set_len(2000).unwrap();
    let mut files = Files::default();
    let id = files.register(Arc::new(path.reopen().unwrap())).unwrap();
    let memory = fake(&[4096]);
    // The operation starts at 1000.
    let op = op(OpKind::Read, id, 4096);
    let mut progress = Progress::default();
    let file = files.held(id);
    progress.step(&op, &memory, file);
    assert_eq!(progress.absorb(&op, &memory, file, Ok(999)), None);
    progress.step(&op, &memory, file);
    assert_eq!(progress.absorb(&op, &memory, file, Ok(1)), Some(Ok(1000)));
}

#[test]
fn a_write_that_gets_nowhere_fails() {
    let (mut files, id) = null();
    let memory = fake(&[8]);
    let op = op(WRITE, id, 8);
    let mut progress = Progress::default();
    let file = files.held(id);
    progress.step(&op, &memory, file);
    assert_eq!(
        progress.absorb(&op, &memory, file, Ok(0)),
        Some(Err(Errno::IO))
    );
}

#[test]
fn zeroing_with_a_hole_falls_back_to_zeroing_and_remembers_it() {
    let (mut files, id) = null();
    let memory = fake(&[]);
    let op = op(OpKind::Zero { allocated: false }, id, 3 << 20);
    let mut progress = Progress::default();
    let file = files.held(id);
    assert_eq!(progress.step(&op, &memory, file).call, Call::PunchHole);
    let refused = Err(Errno::OPNOTSUPP);
    assert_eq!(progress.absorb(&op, &memory, file, refused), None);
    assert_eq!(progress.step(&op, &memory, file).call, Call::ZeroRange);
    let done = progress.absorb(&op, &memory, file, Ok(0));
    assert_eq!(done, Some(Ok(3 << 20)));
    progress.reset();
    assert_eq!(progress.step(&op, &memory, file).call, Call::ZeroRange);
}

#[test]
fn zeroing_falls_back_to_writing_and_remembers_it() {
    let (mut files, id) = null();
    let memory = fake(&[]);
    let op = op(OpKind::Zero { allocated: true }, id, 3 << 20);
    let mut progress = Progress::default();
    let file = files.held(id);
    assert_eq!(progress.step(&op, &memory, file).call, Call::ZeroRange);
    assert_eq!(
        progress.absorb(&op, &memory, file, Err(Errno::OPNOTSUPP)),
        None
    );
    let mut written = 0;
    loop {
        let step = progress.step(&op, &memory, file);
        assert_eq!(
            (step.call, step.offset),
            (Call::Write { durable: false }, 1000 + written)
        );
        // The kernel may well write only a part.
        let count = step.length.min(700_001);
        written += count;
        if let Some(end) = progress.absorb(&op, &memory, file, Ok(count)) {
            assert_eq!((end, written), (Ok(3 << 20), 3 << 20));
            break;
        }
    }
    progress.reset();
    assert_eq!(
        progress.step(&op, &memory, file).call,
        Call::Write { durable: false }
    );
}

#[test]
fn dirty_pages_of_a_device_delay_zeroing_but_do_not_fail_it() {
    let (mut files, id) = null();
    let memory = fake(&[]);
    let file = files.held(id);
    file.block_device = true;
    for allocated in [false, true] {
        let op = op(OpKind::Zero { allocated }, id, 4096);
        let mut progress = Progress::default();
        for _ in 0..=BUSY_MAX {
            assert_ne!(
                progress.step(&op, &memory, file).call,
                Call::Write { durable: false }
            );
            let refused = progress.absorb(&op, &memory, file, Err(Errno::BUSY));
            assert_eq!(refused, None);
        }
        let step = progress.step(&op, &memory, file);
        assert_eq!(step.call, Call::Write { durable: false });
        let end = progress.absorb(&op, &memory, file, Ok(4096));
        assert_eq!(end, Some(Ok(4096)));
        progress.reset();
        let step = progress.step(&op, &memory, file);
        assert_ne!(step.call, Call::Write { durable: false });
    }
}

#[test]
fn a_discard_of_pages_that_stay_dirty_succeeds() {
    let (mut files, id) = null();
    let memory = fake(&[]);
    let file = files.held(id);
    file.block_device = true;
    let op = op(OpKind::Discard, id, 4096);
    let mut progress = Progress::default();
    let mut calls = 0;
    let end = loop {
        assert_eq!(progress.step(&op, &memory, file).call, Call::DiscardBlocks);
        calls += 1;
        let end = progress.absorb(&op, &memory, file, Err(Errno::BUSY));
        if let Some(end) = end {
            break end;
        }
    };
    assert_eq!((end, calls), (Ok(4096), BUSY_MAX + 1));
}

#[test]
fn impossible_ranges_are_settled_without_a_call() {
    let (_, id) = null();
    let memory = fake(&[4, 4]);
    let at = |kind, offset, length| {
        settled(
            &Op {
                kind,
                file: id,
                offset,
                length,
            },
            &memory,
        )
    };
    assert_eq!(at(OpKind::Read, 0, 8), None);
    assert_eq!(at(OpKind::Read, 0, 9), Some(Err(Errno::INVAL)));
    assert_eq!(at(OpKind::Read, u64::MAX, 1), Some(Err(Errno::INVAL)));
    assert_eq!(at(WRITE, i64::MAX as u64, 1), Some(Err(Errno::INVAL)));
    assert_eq!(at(OpKind::Discard, i64::MAX as u64 - 9, 9), None);
    assert_eq!(at(OpKind::Zero { allocated: true }, 5, 0), Some(Ok(0)));
    assert_eq!(at(OpKind::Flush, u64::MAX, u64::MAX), None);
}
