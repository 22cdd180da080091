//! Reads and writes, compared with a plain copy of the data.

use super::*;

const SIZE: usize = 4 << 20;

/// Whole sectors and parts of them, short and long, in any order.
fn requests(random: &mut fastrand::Rng) -> (usize, usize) {
    let length = match random.u8(0..4) {
        0 => random.usize(1..600),
        1 => 512 * random.usize(1..20),
        2 => random.usize(1..100_000),
        _ => random.usize(1..3 << 20),
    };
    let offset = match random.u8(0..2) {
        0 => random.usize(0..SIZE),
        _ => random.usize(0..SIZE / 512) * 512,
    };
    (offset, length.min(SIZE - offset))
}

fn round(running: &Running, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let file = running.open("md0");
    let mut model = vec![0; SIZE];
    for step in 0..400 {
        let (offset, length) = requests(&mut random);
        let range = offset..offset + length;
        let (at, count) = (offset as u64, length as u64);
        match random.u8(0..10) {
            0..4 => {
                let mut found = vec![1; length];
                file.read_exact_at(&mut found, at).expect("data");
                assert!(found == model[range.clone()], "step {step}: {range:?}");
            }
            4..8 => {
                let data: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                file.write_all_at(&data, at).expect("a write");
                model[range].copy_from_slice(&data);
            }
            8 => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(&file, flags, at, count).expect("a hole");
                model[range].fill(0);
            }
            _ => {
                fallocate(&file, FallocateFlags::ZERO_RANGE, at, count).expect("zeroes");
                model[range].fill(0);
            }
        }
    }
    file.sync_all().expect("a sync");
    let mut found = vec![0; SIZE];
    file.read_exact_at(&mut found, 0).expect("data");
    assert!(found == model);
}

#[test]
fn requests_of_any_place_and_length_do_what_they_say() {
    each_as_usual("md:4m", |running| round(&running, 1));
    each_as_usual("md:4m,sectorsize=4k", |running| round(&running, 2));
}

/// Runs so many clients, each with its number, and waits for all.
fn side_by_side(clients: u64, client: impl Fn(u64) + Sync) {
    let client = &client;
    std::thread::scope(|scope| {
        for number in 0..clients {
            scope.spawn(move || client(number));
        }
    });
}

#[test]
fn requests_that_layers_delay_are_under_way_side_by_side() {
    each_as_usual("md:4m | nop:delay=20ms", |running| {
        let file = running.open("md0.nop");
        side_by_side(8, |number| {
            let at = number * 100_000;
            for turn in 1..4 {
                let data = vec![number as u8 + turn; 70_000];
                file.write_all_at(&data, at).expect("a write");
                let mut found = vec![0; 70_000];
                file.read_exact_at(&mut found, at).expect("data");
                assert!(found == data);
            }
        });
    });
}

#[test]
fn the_end_is_the_end_of_the_media() {
    each_as_usual("md:1m", |running| {
        let file = running.open("md0");
        let end = 1 << 20;
        assert_eq!(file.metadata().expect("its facts").len(), end);
        assert_eq!(file.read_at(&mut [0; 100], end).expect("nothing"), 0);
        assert_eq!(file.read_at(&mut [0; 100], end - 7).expect("the rest"), 7);
        assert_eq!(file.write_at(&[1; 100], end - 7).expect("the rest"), 7);
        let full = file.write_at(&[1; 100], end).expect_err("no room");
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        assert!(file.set_len(0).is_err(), "it has data");
        assert_eq!(file.metadata().expect("its facts").len(), end);
        file.set_len(end).expect("the size that it has");
        assert!(file.set_len(end * 2).is_err() && file.set_len(512).is_err());
        assert_eq!(file.read_at(&mut [0; 100], end - 7).expect("the rest"), 7);
        let grown = fallocate(&file, FallocateFlags::empty(), 0, end);
        assert_eq!(grown, Err(Errno::OPNOTSUPP));
        let beyond = fallocate(&file, FallocateFlags::ZERO_RANGE, end, 512);
        assert_eq!(beyond, Err(Errno::NOSPC));
    });
}

/// A program that truncates a file writes no zeroes over what it held.
#[test]
fn only_a_file_without_data_is_truncated() {
    each_as_usual("md:1m", |running| {
        let truncate = || {
            let mut options = OpenOptions::new();
            options.write(true).truncate(true).open(running.path("md0"))
        };
        let file = truncate().expect("a hole");
        file.write_all_at(&[1; 100], 700_000).expect("a write");
        for refused in [truncate().map(drop), file.set_len(0)] {
            let error = refused.expect_err("it has data");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        drop(file);
        let file = running.open("md0");
        let mut found = [0; 100];
        file.read_exact_at(&mut found, 700_000).expect("data");
        assert_eq!(found, [1; 100]);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, flags, 0, 1 << 20).expect("a hole");
        drop(file);
        truncate().expect("a hole again");
        let file = running.open("md0");
        file.write_all_at(&[0; 9000], 3000).expect("zeroes");
        truncate().expect("zeroes that were written");
    });
}

#[test]
fn holes_and_data_are_found() {
    each_as_usual("md:1m", |running| {
        let file = running.open("md0");
        file.write_all_at(&[1; 4096], 64 << 10).expect("a write");
        let find = |from: SeekFrom| seek(&file, from);
        assert_eq!(find(SeekFrom::Data(0)), Ok(64 << 10));
        assert_eq!(find(SeekFrom::Data((64 << 10) + 5)), Ok((64 << 10) + 5));
        let hole = find(SeekFrom::Hole(64 << 10)).expect("a hole");
        assert!((68 << 10..1 << 20).contains(&hole), "{hole}");
        assert_eq!(find(SeekFrom::Hole(5)), Ok(5));
        assert_eq!(find(SeekFrom::Data(hole)), Err(Errno::NXIO));
        assert_eq!(find(SeekFrom::Hole(1 << 20)), Err(Errno::NXIO));
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, flags, 0, 2 << 20).expect("a hole");
        assert_eq!(find(SeekFrom::Data(0)), Err(Errno::NXIO));
    });
}

#[test]
fn partitions_are_files_that_hold_their_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    let mut bytes: Vec<u8> = (0..2 << 20).map(|at: u32| (at / 7) as u8).collect();
    bytes[..512].copy_from_slice(&mbr(64, 1000));
    std::fs::write(&image, &bytes).expect("an image");
    let image = image.to_str().expect("a path").to_owned();
    each_as_usual(&image, |running| {
        assert_eq!(running.names(), ["disk.img", "disk.imgs1"]);
        let found = std::fs::read(running.path("disk.imgs1")).expect("a partition");
        assert!(found == bytes[64 * 512..][..1000 * 512]);
        assert!(std::fs::read(running.path("disk.img")).expect("the disk") == bytes);
        let facts = std::fs::metadata(running.path("disk.imgs1")).expect("its facts");
        let (permissions, node) = (facts.mode() & 0o7777, facts.ino());
        assert_eq!((permissions, facts.len()), (0o600, 512_000));
        assert_ne!(node, 1);
        assert!(facts.is_file());
        let room = rustix::fs::statvfs(running.folder.path()).expect("its room");
        assert_eq!((room.f_blocks * room.f_frsize, room.f_files), (2 << 20, 2));
    });
}
