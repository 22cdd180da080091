//! First inputs of the formats that other systems partition disks with, and of zstd.
//!
//! Byte by byte where no writer of ours makes them; the layouts are in `docs/formats/`.

use ugeom_format::gpt::Guid;
use ugeom_format::{bsd64, vtoc8};

const SECTOR_BYTES: usize = 512;

/// For each target its input, and the disk that holds the same.
pub fn all() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let bsd64 = [&[2 * 15][..], &disklabel64()].concat();
    let disks = [
        ("vtoc8", sun()),
        ("pc98", pc98()),
        ("sgi", sgi()),
        ("amiga", amiga()),
        ("atari", atari()),
    ];
    let mut all = vec![("bsd64", bsd64, disklabel64())];
    all.extend(disks.map(|(target, disk)| (target, disk.clone(), disk)));
    all
}

fn sun() -> Vec<u8> {
    let mut label = vtoc8::Label::create(80, 1, 8).expect("ten cylinders");
    label.partitions[0] = vtoc8::Partition {
        tag: vtoc8::Tag(2),
        cylinder: 1,
        sectors: 16,
        ..vtoc8::Partition::default()
    };
    label.encode().to_vec()
}

fn pc98() -> Vec<u8> {
    let mut disk = vec![0; 2 * SECTOR_BYTES];
    put(&mut disk, 4, b"IPL1");
    put(&mut disk, 510, &[0x55, 0xaa]);
    for (index, first) in [(0, 1_u8), (1, 5)] {
        let entry = SECTOR_BYTES + 32 * index;
        put(&mut disk, entry, &[0x94, 0xc4]);
        put(&mut disk, entry + 8, &[0, 0, first, 0, 0, 0, first + 3, 0]);
        put(&mut disk, entry + 16, b"FreeBSD(98)");
    }
    disk
}

fn disklabel64() -> Vec<u8> {
    let mut label = bsd64::Label::create(4 << 20, 512, Guid([7; 16])).expect("4 MiB are enough");
    label.partitions[0] = bsd64::Partition {
        offset_bytes: label.first_bytes,
        size_bytes: 1 << 20,
        ..bsd64::Partition::default()
    };
    label.encode()
}

fn sgi() -> Vec<u8> {
    let mut disk = vec![0; SECTOR_BYTES];
    put(&mut disk, 0, &[0x0b, 0xe5, 0xa9, 0x41]);
    put(&mut disk, 8, b"/unix");
    put(&mut disk, 72, b"sash\0\0\0\0\0\0\0\x02\0\0\x04\0");
    for (index, blocks, first, kind) in [(0, 40, 40, 10), (8, 40, 0, 0), (10, 80, 0, 6)] {
        put_words(&mut disk, 312 + 12 * index, &[blocks, first, kind]);
    }
    put_sum(&mut disk, 504);
    disk
}

/// A rigid disk block and two partition blocks.
fn amiga() -> Vec<u8> {
    let mut disk = vec![0; 3 * SECTOR_BYTES];
    let (root, parts) = disk.split_at_mut(SECTOR_BYTES);
    put(root, 0, b"RDSK");
    put_words(root, 4, &[64, 0, 7, 512, 0, u32::MAX, 1]);
    put_sum(root, 8);
    for (index, next) in [(0, 2), (1, u32::MAX)] {
        let part = &mut parts[SECTOR_BYTES * index..][..SECTOR_BYTES];
        put(part, 0, b"PART");
        put_words(part, 4, &[64, 0, 7, next, 1]);
        put(part, 36, b"\x03DH0");
        put_words(part, 128 + 4 * 3, &[1, 1, 8]);
        put_words(part, 128 + 4 * 9, &[1 + index as u32, 1 + index as u32]);
        put(part, 128 + 4 * 16, b"DOS\x03");
        put_sum(part, 8);
    }
    disk
}

/// A partition, and an extended one with a chain of two.
fn atari() -> Vec<u8> {
    let mut disk = vec![0; 16 * SECTOR_BYTES];
    let mut entry = |sector: usize, index: usize, kind: &[u8; 4], place: [u32; 2]| {
        let at = sector * SECTOR_BYTES + 0x1c6 + 12 * index;
        put(&mut disk, at, kind);
        put_words(&mut disk, at + 4, &place);
    };
    entry(0, 0, b"\x01GEM", [1, 2]);
    entry(0, 1, b"\x01XGM", [4, 12]);
    entry(4, 0, b"\x01BGM", [1, 3]);
    entry(4, 1, b"\x01XGM", [4, 8]);
    entry(8, 0, b"\x01BGM", [1, 3]);
    put_words(&mut disk, 0x1c2, &[16]);
    disk
}

/// A frame of 3 bytes that are stored.
pub fn zstd_frame() -> Vec<u8> {
    b"\x28\xb5\x2f\xfd\x20\x03\x19\0\0abc".to_vec()
}

/// A seek table of two frames.
pub fn zstd_seek_table() -> Vec<u8> {
    let words = [0x184d_2a5e, 25, 12, 3, 12, 3, 2];
    let mut table: Vec<u8> = words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    table.push(0);
    table.extend(0x8f92_eab1_u32.to_le_bytes());
    table
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

fn put_words(bytes: &mut [u8], at: usize, words: &[u32]) {
    for (index, word) in words.iter().enumerate() {
        put(bytes, at + 4 * index, &word.to_be_bytes());
    }
}

/// The word at `at` that makes all words add up to 0.
fn put_sum(bytes: &mut [u8], at: usize) {
    let words = bytes.as_chunks::<4>().0.iter();
    let sum = words.fold(0_u32, |sum, word| {
        sum.wrapping_add(u32::from_be_bytes(*word))
    });
    put_words(bytes, at, &[sum.wrapping_neg()]);
}
