//! Random hits through the class's whole path, counts on, beside the page cache and bare copies.

use super::rounds::{Work, measure};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_machine::mapping::Mapping;
use ugeom_machine::slab::Slab;
use ugeom_stack::{Channel, Delta, Opened};

pub const BYTES: u64 = 1 << 30;

/// A cache that holds all of a device of 1 GiB.
pub fn warm(block: &str, index: &str) -> (Target, Channel, Opened) {
    let text = format!("zero | nop:size=1g | cache:1g,block={block},index={index}");
    let target = open_target(&text, &TargetOptions::default()).expect("a cache");
    let opened = target.stack.open(target.top, Delta::READ).expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let mut buffer = vec![0; 1 << 20];
    for offset in (0..BYTES).step_by(1 << 20) {
        channel.read(&opened, offset, &mut buffer).expect("reads");
    }
    (target, channel, opened)
}

/// A random order of all places, as the floors have it.
pub fn order(count: u64, seed: u64) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count as u32).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut places);
    places
}

pub fn reader<'a>(
    (_target, mut channel, opened): (Target, Channel, Opened),
    size: usize,
    order: &'a [u32],
) -> Work<'a> {
    let mut buffer = vec![1; size];
    let mut at = 0;
    Box::new(move |count| {
        let _keep = &_target;
        for _ in 0..count {
            let offset = u64::from(order[at]) * size as u64;
            channel.read(&opened, offset, &mut buffer).expect("reads");
            std::hint::black_box(&buffer);
            at = (at + 1) % order.len();
        }
    })
}

/// Work that reads one place after the other with `with`.
fn copies<'a>(
    size: usize,
    order: &'a [u32],
    mut with: impl FnMut(u64, &mut [u8]) + 'a,
) -> Work<'a> {
    let mut buffer = vec![1; size];
    let mut at = 0;
    Box::new(move |count| {
        for _ in 0..count {
            with(u64::from(order[at]), &mut buffer);
            std::hint::black_box(&buffer);
            at = (at + 1) % order.len();
        }
    })
}

fn file() -> File {
    let mut file = tempfile::tempfile().expect("a file");
    let data = vec![7; 1 << 20];
    for _ in 0..BYTES >> 20 {
        file.write_all(&data).expect("writes");
    }
    file
}

pub fn run() {
    let file = file();
    let mapping = Mapping::of(&file, BYTES).expect("maps");
    for (size, block) in [(4096_usize, "4k"), (4096, "16k"), (16384, "16k")] {
        let order = order(BYTES / size as u64, 3);
        let large = Slab::new((BYTES / size as u64) as u32, size).expect("memory");
        for place in 0..large.blocks() {
            assert!(large.copy_in(place, 0, &vec![3; size]));
        }
        let bytes = size as u64;
        let measured = measure(
            vec![
                ("cache, hash", reader(warm(block, "hash"), size, &order)),
                ("cache, splay", reader(warm(block, "splay"), size, &order)),
                (
                    "memcpy, huge pages",
                    copies(size, &order, |place, into| {
                        large.copy_out(place as u32, 0, into)
                    }),
                ),
                (
                    "pread",
                    copies(size, &order, |place, into| {
                        file.read_exact_at(into, place * bytes).expect("reads");
                    }),
                ),
                (
                    "mmap and copy",
                    copies(size, &order, |place, into| {
                        mapping.copy_out(place * bytes, into)
                    }),
                ),
            ],
            (128 << 20) / bytes,
        );
        println!("\nrandom reads of {size} from blocks of {block}, all of 1 GiB resident");
        measured.print();
        let (copy, pread) = if size == 4096 {
            ("at most 1.2", "at least 2.0")
        } else {
            ("at most 1.1", "at least 1.5")
        };
        measured.ratio("cache, hash", "memcpy, huge pages", copy);
        measured.ratio("pread", "cache, hash", pread);
        measured.ratio("mmap and copy", "cache, hash", "at least 1.0");
        measured.ratio("cache, splay", "cache, hash", "none");
    }
}
