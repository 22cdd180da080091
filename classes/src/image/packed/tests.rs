//! Files of gzip, xz and zstd against the disks that they were made of, whole and damaged.

use super::reader::Reader;
use super::section::Damage;
use super::{ImageFormat, sections};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use ugeom_testkit::begins;

/// A disk whose size is no multiple of anything here: text, zeroes, and bytes without an order.
fn disk(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut disk = Vec::new();
    while disk.len() < 2 << 20 {
        let length = random.usize(1..200_000);
        match random.u8(..3) {
            0 => disk.resize(disk.len() + length, 0),
            1 => disk.extend((0..length).map(|at| b"a text that repeats "[at % 20])),
            _ => disk.extend(std::iter::repeat_with(|| random.u8(..)).take(length)),
        }
    }
    disk
}

/// The output of a program for some bytes.
fn packed(program: &str, arguments: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program");
    let mut stdin = child.stdin.take().expect("a pipe");
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("a writer").expect("all written");
    assert!(output.status.success(), "{program} {arguments:?}");
    output.stdout
}

/// A frame a quarter MiB, and the seek table of zstd's seekable format.
fn seekable(disk: &[u8], with_table: bool) -> Vec<u8> {
    let (mut file, mut entries, mut count) = (Vec::new(), Vec::new(), 0_u32);
    for piece in disk.chunks(256 << 10) {
        // From a pipe: the frame does not state what it holds.
        let frame = packed("zstd", &["-3"], piece);
        entries.extend((frame.len() as u32).to_le_bytes());
        entries.extend((piece.len() as u32).to_le_bytes());
        file.extend(frame);
        count += 1;
    }
    if with_table {
        file.extend(0x184d_2a5e_u32.to_le_bytes());
        file.extend((entries.len() as u32 + 9).to_le_bytes());
        file.extend(entries);
        file.extend(count.to_le_bytes());
        file.push(0);
        file.extend(0x8f92_eab1_u32.to_le_bytes());
    }
    file
}

/// The ways to compress a disk, each with a name.
fn files(disk: &[u8]) -> Vec<(&'static str, ImageFormat, Vec<u8>)> {
    use ImageFormat::{Gzip, Xz, Zstd};
    let half = disk.len() / 2;
    let two = |program, arguments: &[&str], zeroes: usize| {
        let mut file = packed(program, arguments, &disk[..half]);
        file.resize(file.len() + zeroes, 0);
        file.extend(packed(program, arguments, &disk[half..]));
        file.resize(file.len() + zeroes, 0);
        file
    };
    let mut skipped = b"\x50\x2a\x4d\x18\x05\0\0\0hello".to_vec();
    skipped.extend(two("zstd", &["-1"], 0));
    vec![
        ("gzip", Gzip, packed("gzip", &["-6"], disk)),
        ("gzip -1", Gzip, packed("gzip", &["-1"], disk)),
        ("gzip, two members", Gzip, two("gzip", &["-9"], 0)),
        ("gzip, padding", Gzip, two("gzip", &[], 512)),
        ("xz", Xz, packed("xz", &["-T1"], disk)),
        (
            "xz, blocks",
            Xz,
            packed("xz", &["-1", "--block-size=100KiB"], disk),
        ),
        (
            "xz, threads",
            Xz,
            packed("xz", &["-1", "-T2", "--block-size=1MiB"], disk),
        ),
        ("xz, two streams", Xz, two("xz", &["-0"], 8)),
        ("xz, SHA-256", Xz, packed("xz", &["-0", "-Csha256"], disk)),
        ("xz, no check", Xz, packed("xz", &["-0", "-Cnone"], disk)),
        (
            "xz, x86",
            Xz,
            packed("xz", &["--x86", "--lzma2=preset=0"], disk),
        ),
        (
            "xz, delta",
            Xz,
            packed("xz", &["--delta=dist=4", "--lzma2=preset=0"], disk),
        ),
        ("zstd", Zstd, packed("zstd", &["-3"], disk)),
        (
            "zstd, size known",
            Zstd,
            packed(
                "zstd",
                &["-1", &format!("--stream-size={}", disk.len())],
                disk,
            ),
        ),
        (
            "zstd --long",
            Zstd,
            packed("zstd", &["-3", "--long=27", "--no-check"], disk),
        ),
        ("zstd, a skipped frame", Zstd, skipped),
        ("zstd, frames", Zstd, seekable(disk, false)),
        ("zstd, a seek table", Zstd, seekable(disk, true)),
    ]
}

fn programs() -> bool {
    let found = |name| ugeom_testkit::program(name).is_some();
    found("gzip") && found("xz") && found("zstd")
}

fn open(path: &Path, format: ImageFormat) -> Result<Reader, Damage> {
    let file = Arc::new(File::open(path).expect("the file"));
    let reader = Reader::new(sections(&file, format)?);
    reader.measure()?;
    Ok(reader)
}

struct Folder {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk");
    Folder {
        _folder: folder,
        path,
    }
}

fn seeded() -> fastrand::Rng {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::Rng::with_seed(seed)
}

#[test]
fn a_compressed_disk_reads_like_the_disk_at_every_place() {
    if !programs() {
        return;
    }
    let mut random = seeded();
    let disk = disk(&mut random);
    let folder = folder();
    for (name, format, bytes) in files(&disk) {
        std::fs::write(&folder.path, bytes).expect("written");
        let reader = open(&folder.path, format).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reader.size_bytes(), disk.len() as u64, "{name}");
        let reads: Vec<_> = (0..36)
            .map(|_| {
                let from = random.usize(..disk.len());
                (from, random.usize(1..70_000).min(disk.len() - from))
            })
            .collect();
        std::thread::scope(|scope| {
            for part in reads.chunks(12) {
                let (reader, disk) = (&reader, &disk);
                scope.spawn(move || {
                    for &(from, length) in part {
                        let mut out = vec![1; length];
                        let read = reader.read(from as u64, &mut out);
                        read.unwrap_or_else(|error| panic!("{name}: {error}"));
                        assert!(out == disk[from..from + length], "{name}: {from}, {length}");
                    }
                });
            }
        });
        let mut whole = vec![1; disk.len() + 512];
        reader
            .read(0, &mut whole)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            whole[..disk.len()] == disk && whole[disk.len()..] == [0; 512],
            "{name}"
        );
    }
}

/// Opens a file and reads all of it; the first error.
fn read_all(path: &Path, format: ImageFormat) -> Result<Vec<u8>, Damage> {
    let reader = open(path, format)?;
    let mut out = vec![0; reader.size_bytes().min(64 << 20) as usize];
    reader.read(0, &mut out)?;
    Ok(out)
}

/// Files of several members, streams or frames: a cut between two leaves a whole, shorter file.
const OF_SEVERAL: [&str; 6] = [
    "gzip, two members",
    "gzip, padding",
    "xz, two streams",
    "zstd, a skipped frame",
    "zstd, frames",
    "zstd, a seek table",
];

#[test]
fn a_changed_byte_is_found_and_named_with_its_place() {
    if !programs() {
        return;
    }
    let mut random = seeded();
    let disk = &disk(&mut random)[..300_000];
    let folder = folder();
    for (name, format, bytes) in files(disk) {
        std::fs::write(&folder.path, &bytes).expect("written");
        let file = OpenOptions::new()
            .write(true)
            .open(&folder.path)
            .expect("the file");
        for _ in 0..12 {
            let at = random.usize(..bytes.len());
            let changed = [bytes[at] ^ (1 << random.u8(..8))];
            file.write_all_at(&changed, at as u64).expect("changed");
            match read_all(&folder.path, format) {
                Ok(read) if read == disk => {}
                // Without a checksum there is nothing to find it by.
                Ok(_) if name == "xz, no check" || name == "zstd --long" => {}
                Ok(_) => panic!("{name}: byte {at} changed, and other data was read"),
                Err(damage) => {
                    let text = damage.to_string();
                    assert!(damage.file_at <= bytes.len() as u64, "{name}: {text}");
                    begins(&text, "cannot be decompressed at byte ");
                }
            }
            file.write_all_at(&[bytes[at]], at as u64)
                .expect("changed back");
        }
        for _ in 0..6 {
            let cut = random.usize(..bytes.len());
            std::fs::write(&folder.path, &bytes[..cut]).expect("written");
            let Ok(read) = read_all(&folder.path, format) else { continue };
            // Zeroes behind the last member or stream belong to neither.
            let in_padding = bytes[cut..].iter().all(|byte| *byte == 0)
                && ["gzip, padding", "xz, two streams"].contains(&name);
            // A seek table is the last frame of its file.
            let only_table = name == "zstd, a seek table" && cut == seekable(disk, false).len();
            let whole_members = read.len() < disk.len() && OF_SEVERAL.contains(&name);
            assert!(
                disk.starts_with(&read) && (in_padding || only_table || whole_members || cut == 0),
                "{name}: cut at {cut}"
            );
        }
    }
}

#[test]
fn the_part_before_a_damage_can_be_read() {
    if !programs() {
        return;
    }
    let mut random = seeded();
    let disk = disk(&mut random);
    let folder = folder();
    let mut bytes = packed("xz", &["-0"], &disk);
    let at = bytes.len() / 2;
    for byte in &mut bytes[at..at + 8] {
        *byte ^= 0xff;
    }
    std::fs::write(&folder.path, &bytes).expect("written");
    let reader = open(&folder.path, ImageFormat::Xz).expect("its index is whole");
    let mut out = vec![0; 4096];
    let last = disk.len() as u64 - 4096;
    let damage = reader
        .read(last, &mut out)
        .expect_err("the damage is before it");
    let disk_at = damage.disk_at.expect("its place");
    assert!(damage.file_at >= at as u64 && damage.is_first, "{damage:?}");
    reader.read(0, &mut out).expect("what is before the damage");
    assert!(out == disk[..4096]);
    let before = disk_at.saturating_sub(16 << 10) as usize & !4095;
    reader
        .read(before as u64, &mut out)
        .expect("what is before the damage");
    assert!(out == disk[before..before + 4096]);
    let again = reader.read(last, &mut out).expect_err("it stays damaged");
    assert!(!again.is_first, "it is reported once");
}
