//! Checks of operations: the right bytes in the right place, and their number.

use std::fs;
use std::path::Path;

use super::*;
use ugeom_machine::buffer::Pool;

pub(super) fn what_was_written_is_read_back(make: Make<'_>, folder: &Path) {
    for sleep in BOTH {
        let mut rig = Rig::new(make, 4);
        rig.sleep = sleep;
        let file = rig.file(&folder.join("f"), b"");
        let data = pattern(300_000, 1);
        assert_eq!(rig.write(file, 1234, &data), Ok(300_000));
        assert_eq!(rig.read(file, 1234, 300_000), (Ok(300_000), data.clone()));
        let (count, start) = rig.read(file, 0, 1236);
        assert_eq!(count, Ok(1236));
        assert_eq!(start[..1234], [0; 1234]);
        assert_eq!(start[1234..], data[..2]);
    }
}

pub(super) fn segments_are_filled_and_written_in_order(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&path, b"");
    for kind in [WRITE, DURABLE] {
        let op = op(kind, file, (1, 6));
        assert_eq!(rig.run(op, &[b"ab", b"", b"c", b"def"]).0, Ok(6));
        assert_eq!(fs::read(&path).unwrap(), b"\0abcdef");
    }
    let op = op(OpKind::Read, file, (0, 7));
    let (count, bytes) = rig.run(op, &[b"....", b"", b"...", b""]);
    assert_eq!((count, &bytes[..]), (Ok(7), &b"\0abcdef"[..]));
}

pub(super) fn more_segments_than_one_call_takes_are_served(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&path, b"");
    let data = pattern(3000 * 7, 2);
    let pieces: Vec<&[u8]> = data.chunks(7).collect();
    let op = |kind| op(kind, file, (10, 3000 * 7));
    assert_eq!(rig.run(op(WRITE), &pieces).0, Ok(3000 * 7));
    assert_eq!(fs::read(&path).unwrap()[10..], data);
    let room: Vec<&[u8]> = pieces.iter().map(|_| &b"......."[..]).collect();
    let (count, bytes) = rig.run(op(OpKind::Read), &room);
    assert_eq!(count, Ok(3000 * 7));
    assert!(bytes == data);
}

pub(super) fn memory_longer_than_the_operation_is_left_alone(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&path, b"0123456789");
    let read = op(OpKind::Read, file, (2, 5));
    let (count, bytes) = rig.run(read, &[b"...", b"...", b"..."]);
    assert_eq!((count, &bytes[..]), (Ok(5), &b"23456...."[..]));
    let write = op(WRITE, file, (0, 3));
    assert_eq!(rig.run(write, &[b"ab", b"cd"]).0, Ok(3));
    assert_eq!(fs::read(&path).unwrap(), b"abc3456789");
}

/// More pools than an engine has places for, with buffers that do not fill their pages.
pub(super) fn memory_of_a_pool_is_used_like_any_other(make: Make<'_>, folder: &Path) {
    const POOLS: usize = 20;
    const LENGTH: usize = 5000;
    let mut rig = Rig::new(make, 8);
    let path = folder.join("file");
    let file = rig.file(&path, &[]);
    let mut expected = Vec::new();
    for round in 0..POOLS {
        let (pool, buffers) = Pool::new(3, LENGTH);
        let used = rig.engine.register_memory(&pool);
        assert_eq!(rig.engine.register_memory(&pool), used, "told twice");
        drop(pool);
        for (number, mut buffer) in buffers.into_iter().enumerate() {
            let data = pattern(LENGTH, (round * 3 + number) as u64);
            buffer.copy_from_slice(&data);
            let memory = (Scatter::new(vec![buffer]), rig.ledger.token(number));
            let kind = if number == 0 { DURABLE } else { WRITE };
            let op = op(kind, file, (expected.len() as u64, LENGTH as u64));
            expected.extend(data);
            rig.engine.submit(op, memory);
        }
        let mut completions = rig.finish();
        assert_eq!(fs::read(&path).unwrap(), expected);
        // The same memory once more: a part of it, up to the end of the file.
        let Completion { mut memory, result } = completions.remove(0);
        assert_eq!(result, Ok(LENGTH as u64));
        let mut buffers = std::mem::replace(&mut memory.0, Scatter::new(vec![])).into_buffers();
        buffers[0].fill(0xEE);
        let op = op(OpKind::Read, file, (expected.len() as u64 - 100, 200));
        rig.engine.submit(op, (Scatter::new(buffers), memory.1));
        let end = rig.finish().remove(0);
        assert_eq!(end.result, Ok(100));
        let read = content(&end.memory);
        assert!(read[..100] == expected[expected.len() - 100..]);
        assert!(read[100..].iter().all(|&byte| byte == 0xEE));
    }
    rig.ledger.assert_settled();
}

pub(super) fn a_read_past_the_end_is_short(make: Make<'_>, folder: &Path) {
    let mut rig = Rig::new(make, 4);
    let data = pattern(10_000, 3);
    let file = rig.file(&folder.join("f"), &data);
    for (offset, length, expected) in [
        (0, 20_000, 10_000),
        (9_999, 2, 1),
        (10_000, 512, 0),
        (1 << 40, 1, 0),
        (9_000, 1_000, 1_000),
    ] {
        let (count, bytes) = rig.read(file, offset, length);
        assert_eq!(count, Ok(expected as u64));
        assert!(bytes[..expected] == data[data.len().min(offset as usize)..][..expected]);
        assert!(bytes[expected..].iter().all(|&byte| byte == 0xEE));
    }
    let op = op(OpKind::Read, file, (9_996, 9));
    let (count, bytes) = rig.run(op, &[b"...", b"...", b"..."]);
    assert_eq!(count, Ok(4));
    assert_eq!((&bytes[..4], &bytes[4..]), (&data[9_996..], &b"....."[..]));
}

pub(super) fn a_file_that_changes_its_length_is_followed(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&path, &[7; 20_000]);
    assert_eq!(rig.read(file, 0, 20_000), (Ok(20_000), vec![7; 20_000]));
    let other = OpenOptions::new().write(true).open(&path).unwrap();
    other.set_len(9_000).unwrap();
    let (count, bytes) = rig.read(file, 8_000, 20_000);
    assert_eq!(count, Ok(1_000));
    assert!(bytes[..1_000].iter().all(|&byte| byte == 7));
    assert!(bytes[1_000..].iter().all(|&byte| byte == 0xEE));
    assert_eq!(rig.read(file, 16_384, 10).0, Ok(0));
    assert_eq!(rig.write(file, 30_000, &[8; 5_000]), Ok(5_000));
    let (count, bytes) = rig.read(file, 8_999, 40_000);
    assert_eq!(count, Ok(26_001));
    assert_eq!((bytes[0], bytes[1], bytes[26_000]), (7, 0, 8));
}

pub(super) fn a_direct_read_meets_an_unaligned_end(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let data = pattern(10_000, 4);
    fs::write(&path, &data).unwrap();
    let Some(direct) = open_direct(&path) else { return };
    let mut rig = Rig::new(make, 4);
    let file = rig.register(direct);
    let (count, bytes) = rig.read(file, 0, 16_384);
    assert_eq!(count, Ok(10_000));
    assert!(bytes[..10_000] == data);
    let (count, bytes) = rig.read(file, 8_192, 4_096);
    assert_eq!(count, Ok(1_808));
    assert!(bytes[..1_808] == data[8_192..]);
    assert_eq!(rig.write(file, 4_096, &pattern(4_096, 5)), Ok(4_096));
    assert!(fs::read(&path).unwrap()[4_096..8_192] == pattern(4_096, 5));
}

pub(super) fn an_operation_of_no_length_does_nothing(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&path, b"abc");
    for kind in [OpKind::Read, WRITE, DURABLE, OpKind::Discard, ZERO] {
        assert_eq!(rig.without_memory(kind, file, (1, 0)), Ok(0));
        assert_eq!(rig.without_memory(kind, file, (9, 0)), Ok(0));
    }
    assert_eq!(fs::read(&path).unwrap(), b"abc");
}

pub(super) fn writes_are_there_after_a_flush(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 8);
    let file = rig.file(&path, b"");
    for (number, kind) in [WRITE, DURABLE, WRITE, DURABLE].into_iter().enumerate() {
        let memory = rig.memory(number, &[&[number as u8 + 1; 1000]]);
        rig.engine
            .submit(op(kind, file, (number as u64 * 1000, 1000)), memory);
    }
    assert!(
        rig.finish()
            .iter()
            .all(|completion| completion.result == Ok(1000))
    );
    assert_eq!(rig.without_memory(OpKind::Flush, file, (0, 0)), Ok(0));
    assert_eq!(rig.without_memory(OpKind::Sync, file, (0, 0)), Ok(0));
    assert_eq!(
        rig.without_memory(OpKind::Flush, file, (u64::MAX, u64::MAX)),
        Ok(0)
    );
    let bytes = fs::read(&path).unwrap();
    assert!((0..4000).all(|at| usize::from(bytes[at]) == at / 1000 + 1));
}

pub(super) fn a_discarded_range_reads_as_zero(make: Make<'_>, folder: &Path) {
    let path = folder.join("f");
    let mut rig = Rig::new(make, 4);
    let file = rig.file(&path, &[7; 100_000]);
    let result = rig.without_memory(OpKind::Discard, file, (10_000, 50_000));
    if result == Err(Errno::OPNOTSUPP) {
        return crate::skip("no holes in this file system");
    }
    assert_eq!(result, Ok(50_000));
    assert_zeroed(&fs::read(&path).unwrap(), 10_000..60_000);
    // A hole at the end does not make the file longer.
    assert_eq!(
        rig.without_memory(OpKind::Discard, file, (90_000, 50_000)),
        Ok(50_000)
    );
    assert_eq!(fs::metadata(&path).unwrap().len(), 100_000);
}

pub(super) fn a_zeroed_range_reads_as_zero(make: Make<'_>, folder: &Path) {
    zero(make, &folder.join("f"));
}

/// tmpfs has holes, but no FALLOC_FL_ZERO_RANGE.
pub(super) fn a_file_system_without_zeroing_is_served(make: Make<'_>, _folder: &Path) {
    match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => zero(make, &folder.path().join("f")),
        Err(error) => {
            let reason = format!("no folder in /dev/shm: {error}");
            crate::skip(&reason);
        }
    }
}

fn zero(make: Make<'_>, path: &Path) {
    let mut rig = Rig::new(make, 4);
    let file = rig.file(path, &vec![7; 3_000_000]);
    for allocated in [true, false, true, false] {
        fs::write(path, vec![7; 3_000_000]).unwrap();
        let zero = OpKind::Zero { allocated };
        assert_eq!(
            rig.without_memory(zero, file, (10_001, 2_500_000)),
            Ok(2_500_000)
        );
        assert_zeroed(&fs::read(path).unwrap(), 10_001..2_510_001);
    }
}

fn assert_zeroed(bytes: &[u8], zeroes: std::ops::Range<usize>) {
    let wrong = (0..bytes.len()).find(|at| (bytes[*at] == 0) != zeroes.contains(at));
    assert_eq!(wrong, None);
}

/// Rounds of operations on disjoint blocks, all in flight together.
pub(super) fn many_operations_agree_with_a_plain_array(make: Make<'_>, folder: &Path) {
    const BLOCK: usize = 3_000;
    const BLOCKS: usize = 40;
    let path = folder.join("f");
    for (depth, seed) in [(1, 10), (7, 11), (64, 12)] {
        let mut rig = Rig::new(make, depth);
        let mut model = pattern(BLOCK * BLOCKS, seed);
        let file = rig.file(&path, &model);
        let mut random = fastrand::Rng::with_seed(seed);
        for round in 0..20 {
            for block in 0..BLOCKS {
                let start = block * BLOCK;
                let length = random.usize(..=BLOCK);
                let range = start..start + length;
                let cut = random.usize(..=length);
                let data = pattern(length, round * 1000 + block as u64);
                let (kind, memory) = match random.u8(..4) {
                    0 => (
                        OpKind::Read,
                        rig.memory(block, &[&data[..cut], &data[cut..]]),
                    ),
                    1 => (
                        OpKind::Zero {
                            allocated: random.bool(),
                        },
                        rig.memory(block, &[]),
                    ),
                    2 => (OpKind::Flush, rig.memory(block, &[])),
                    _ => (WRITE, rig.memory(block, &[&data[..cut], &data[cut..]])),
                };
                let op = op(kind, file, (start as u64, length as u64));
                rig.engine.submit(op, memory);
                match kind {
                    OpKind::Zero { .. } => model[range].fill(0),
                    WRITE => model[range].copy_from_slice(&data),
                    _ => {}
                }
            }
            let completions = rig.finish();
            assert_eq!(completions.len(), BLOCKS);
            assert!(
                completions
                    .iter()
                    .all(|completion| completion.result.is_ok())
            );
        }
        assert!(fs::read(&path).unwrap() == model);
        rig.ledger.assert_settled();
    }
}
