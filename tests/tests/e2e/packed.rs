//! Compressed disks as targets: their content is listed and read, nothing is overwritten, damage is
//! named with its place, and a small file that holds much takes no memory.

use crate::run::{Ended, UGEOM, command, has, run, ugeom, ugeom_with};
use crate::serve::noise;
use std::path::Path;
use tempfile::TempDir;
use ugeom_testkit::program;

const SIZE: usize = 8 << 20;
const FORMATS: [&str; 3] = ["gzip", "xz", "zstd"];

/// A disk with a table and data in its partition.
fn disk(path: &str) -> Vec<u8> {
    let mut disk = vec![0; SIZE];
    disk[2 << 20..3 << 20].copy_from_slice(&noise(4, 1 << 20));
    std::fs::write(path, &disk).expect("a disk");
    for change in [&["create", "-s", "gpt"][..], &["add", "-t", "linux-data"]] {
        let done = ugeom(&[&["part"], change, &[path]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    std::fs::read(path).expect("the disk")
}

struct Bench {
    folder: TempDir,
    disk: Vec<u8>,
}

impl Bench {
    fn new() -> Option<Self> {
        for name in FORMATS {
            program(name)?;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk.img").display().to_string();
        let disk = disk(&path);
        Some(Self { folder, disk })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Compresses the disk with the program `format`; the path of the result.
    fn packed(&self, format: &str) -> String {
        let path = self.path(&format!("disk.img.{format}"));
        let packed = run(command(format, &["-c", &self.path("disk.img")]), b"");
        assert_eq!(packed.code, 0, "{}", packed.stderr);
        std::fs::write(&path, packed.stdout).expect("the compressed disk");
        path
    }
}

#[test]
fn a_compressed_disk_is_a_target_like_the_disk() {
    let Some(bench) = Bench::new() else { return };
    for format in FORMATS {
        let path = bench.packed(format);
        let shown = ugeom(&["show", &path]).quiet();
        has(&shown, &format!("disk.img.{format}p1"));
        let first = shown.lines().nth(1).expect("the disk");
        assert!(first.contains(format) && first.contains("GPT"), "{shown}");
        let read = ugeom(&["read", &format!("{path}@p1")]);
        assert_eq!(read.code, 0, "{}", read.stderr);
        let end = (1 << 20) + read.stdout.len();
        assert!(
            read.stdout == bench.disk[1 << 20..end] && end > 7 << 20,
            "{format}"
        );
        let whole = ugeom(&["read", &format!("{path}?format={format}")]);
        assert!(whole.stdout == bench.disk, "{format}");
        let raw = ugeom(&["read", &format!("{path}?format=raw")]);
        let file = std::fs::read(&path).expect("the file");
        // The last sector is padded.
        assert!(raw.stdout.starts_with(&file), "{format}: {}", raw.stderr);
        let json = ugeom(&["show", "--json", &path]).quiet();
        assert!(json.contains(&format!("a {format} file, opened as such").replace("a x", "an x")));
    }
}

#[test]
fn a_compressed_disk_is_not_overwritten() {
    let Some(bench) = Bench::new() else { return };
    for format in FORMATS {
        let path = bench.packed(format);
        let before = std::fs::read(&path).expect("the file");
        let raw = format!("{path}?format=raw");
        let refusals: [Ended; 4] = [
            ugeom_with(&["write", &path, "--length", "512"], &[1; 512]),
            ugeom_with(&["write", &raw, "--length", "512"], &[1; 512]),
            ugeom(&["part", "add", "-t", "efi", &path]),
            ugeom(&["serve", "--rw", &path, "--nbd", "unix:/dev/null/none"]),
        ];
        for refused in refusals {
            let error = refused.failed(1);
            has(&error, format);
        }
        assert!(
            std::fs::read(&path).expect("the file") == before,
            "{format}"
        );
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let Some(bench) = Bench::new() else { return };
    for format in FORMATS {
        let path = bench.packed(format);
        let whole = std::fs::read(&path).expect("the file");
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0x55);
        let cut = whole[..whole.len() - 9].to_vec();
        for (damaged, what) in [(bytes, "damaged"), (cut, "cut")] {
            std::fs::write(&path, damaged).expect("the damaged file");
            let ended = ugeom(&["read", &path]);
            assert_eq!(ended.code, 1, "{format} {what}: {}", ended.stderr);
            let place = "cannot be decompressed at byte ";
            assert!(
                ended.stderr.contains(place),
                "{format} {what}: {}",
                ended.stderr
            );
        }
        // Another format than it is.
        std::fs::write(&path, &whole).expect("the file");
        let other = if format == "xz" { "gzip" } else { "xz" };
        let error = ugeom(&["show", &format!("{path}?format={other}")]).failed(1);
        has(&error, "at byte ");
    }
    for (name, bytes) in [
        ("gzip", &b"\x1f\x8b\x08"[..]),
        ("xz", b"\xfd7zXZ\0"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
    ] {
        let path = bench.path(name);
        std::fs::write(&path, bytes).expect("a start");
        let error = ugeom(&["show", &path]).failed(1);
        has(&error, "cannot be decompressed at byte");
    }
}

#[test]
fn a_file_that_holds_much_takes_no_memory() {
    let Some(prlimit) = program("prlimit") else { return };
    let Some(bench) = Bench::new() else { return };
    // 96 MiB of zeroes a file, three of them behind each other, which each format allows.
    let zeroes = bench.path("zeroes");
    let file = std::fs::File::create(&zeroes).expect("a file");
    file.set_len(96 << 20).expect("zeroes");
    for format in FORMATS {
        let fast = if format == "xz" { "-0" } else { "-1" };
        let once = run(command(format, &[fast, "-c", &zeroes]), b"").stdout;
        assert!(!once.is_empty() && once.len() < 2 << 20);
        let path = bench.path(&format!("bomb.{format}"));
        std::fs::write(&path, once.repeat(3)).expect("the file");
        let mut limited = command(&prlimit, &["--data=150000000", UGEOM, "diskinfo", &path]);
        limited.env("TMPDIR", Path::new(bench.folder.path()));
        let ended = run(limited, b"");
        assert_eq!(ended.code, 0, "{format}: {}", ended.stderr);
        has(&ended.text(), "301989888");
    }
}
