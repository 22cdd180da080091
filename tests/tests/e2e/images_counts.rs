//! qcow2 images with wrong reference counts: their next change would destroy a part of them, or
//! search for a free cluster for hours.

use crate::run::{UGEOM, command, has, other, ugeom, ugeom_with};
use crate::serve::noise;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use ugeom_testkit::program;

const CLUSTER: u64 = 64 << 10;
const OFFSET_BITS: u64 = 0x00ff_ffff_ffff_fe00;
const COPIED: u64 = 1 << 63;

struct Image {
    _folder: TempDir,
    path: String,
    file: File,
}

impl Image {
    /// Of a disk of 16 MiB, with these options of qemu-img; nothing without that.
    fn new(options: &str) -> Option<Self> {
        program("qemu-img")?;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.qcow2");
        let shown = path.display().to_string();
        other(
            "qemu-img",
            &["create", "-q", "-f", "qcow2", "-o", options, &shown, "16M"],
        );
        let file = File::options().read(true).write(true).open(&path);
        Some(Self {
            _folder: folder,
            path: shown,
            file: file.expect("the image"),
        })
    }

    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).expect("a number");
        u64::from_be_bytes(bytes)
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).expect("written");
    }

    fn put_words(&self, at: u64, words: impl Iterator<Item = u64>) {
        self.put(at, &words.flat_map(u64::to_be_bytes).collect::<Vec<_>>());
    }

    fn end(&self) -> u64 {
        let length = self.file.metadata().expect("a file").len();
        length.next_multiple_of(CLUSTER)
    }

    /// Writing is refused for this reason.
    fn is_refused(&self, why: &str) {
        let write = ["write", "--destroy", "--offset", "8m", &self.path];
        has(&ugeom_with(&write, b"wrong").failed(1), why);
    }

    /// Once qemu-img has mended it, it is written to.
    fn is_mended(&self) {
        let write = ["write", "--destroy", "--offset", "8m", &self.path];
        other("qemu-img", &["check", "-q", "-r", "all", &self.path]);
        ugeom_with(&write, b"right").quiet();
        let arguments = ["read", "--offset", "8m", "--length", "5", &self.path];
        assert_eq!(ugeom(&arguments).stdout, b"right");
    }
}

#[test]
fn counts_without_a_free_cluster_are_refused_before_a_search() {
    let Some(image) = Image::new("refcount_bits=16") else { return };
    let table = image.word(48);
    let block = image.word(table);
    // The same block for all the clusters that the table has room for.
    image.put_words(table, std::iter::repeat_n(block, CLUSTER as usize / 8));
    image.is_refused("two of its tables point to a refcount block");
    image.is_mended();

    let Some(image) = Image::new("refcount_bits=16") else { return };
    let (table, end) = (image.word(48), image.end());
    // Blocks for 1.1 million clusters.
    let blocks = (0..34).map(|number| end + number * CLUSTER);
    image.put_words(table, blocks.clone());
    for block in blocks {
        image.put(block, &[1; CLUSTER as usize]);
    }
    // qemu-img frees them one by one, which takes a minute.
    image.is_refused("more than 1048576 clusters past the end of the file have reference counts");
}

#[test]
fn an_l2_table_of_a_snapshot_is_not_given_away_nor_changed() {
    for (why, owned) in [
        ("an L2 table of a snapshot at byte", false),
        ("has 2 uses, and a reference count of 1", false),
        ("is marked COPIED, and a snapshot uses it, too", true),
    ] {
        let Some(image) = Image::new("refcount_bits=16") else { return };
        let disk = noise(3, 4 << 20);
        ugeom_with(&["write", "--destroy", &image.path], &disk).quiet();
        other("qemu-img", &["snapshot", "-c", "kept", &image.path]);
        let l1 = image.word(40);
        let l2 = image.word(l1) & OFFSET_BITS;
        let count = image.word(image.word(48)) + l2 / CLUSTER * 2;
        if owned {
            image.put_words(l1, std::iter::once(l2 | COPIED));
        } else if why.starts_with("has") {
            image.put(count, &[0, 1]);
        } else {
            // The disk gets a copy of the table.
            ugeom_with(&["write", "--destroy", &image.path], b"changed").quiet();
            image.put(count, &[0, 0]);
        }
        image.is_refused(why);
        image.is_mended();
        let kept = format!("{}.kept", image.path);
        let arguments = ["convert", "-l", "kept", "-O", "raw", &image.path, &kept];
        other("qemu-img", &arguments);
        let kept = std::fs::read(kept).expect("the snapshot");
        assert!(kept[..disk.len()] == disk, "{why}");
    }
}

/// All clusters of a sparse file of 128 GiB are in use, as after `preallocation=metadata`.
#[test]
fn a_signal_ends_a_search_for_a_free_cluster() {
    let Some(image) = Image::new("refcount_bits=1,cluster_size=512") else { return };
    const BLOCKS: u64 = 65_536;
    let table = image.end();
    let first = table + BLOCKS * 8;
    image.put_words(table, (0..BLOCKS).map(|number| first + number * 512));
    let used = vec![0xff; BLOCKS as usize * 512];
    image.put(first, &used);
    image.put_words(48, std::iter::once(table));
    image.put(56, &(BLOCKS as u32 * 8 / 512).to_be_bytes());
    let sparse = image.file.set_len(BLOCKS * 4096 * 512);
    sparse.expect("a sparse file");

    let write = ["write", "--destroy", "--offset", "8m", &image.path];
    let input = File::open("/proc/self/exe").expect("an input");
    let mut child = command(UGEOM, &write);
    child.arg("--length").arg("1k").stdin(input);
    let began = Instant::now();
    let child = child.stderr(Stdio::piped()).spawn().expect("started");
    std::thread::sleep(Duration::from_secs(2));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    let ended = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&ended.stderr);
    has(&text, "interrupted: after 0 bytes were written");
    has(&text, "a signal ended it");
    assert_eq!(ended.status.code(), Some(143), "{text}");
    assert!(began.elapsed() < Duration::from_secs(60));
}
