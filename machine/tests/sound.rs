//! The actions of a program without unsafe code on this crate, none of which may be unsound.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_machine::buffer::Pool;
use ugeom_machine::mapping::Mapping;
use ugeom_machine::region::Region;
use ugeom_machine::slab::Slab;

/// How often threads race: Miri and the sanitizers need few rounds.
const ROUNDS: u64 = if cfg!(miri) { 20 } else { 2_000 };

#[test]
#[should_panic(expected = "longer than memory can be")]
fn buffers_of_a_pool_whose_length_wraps_are_refused() {
    let (_pool, mut buffers) = Pool::new(1, usize::MAX - 100);
    buffers[0][1 << 20] = 1;
}

#[test]
#[should_panic(expected = "longer than memory can be")]
fn a_pool_whose_total_wraps_is_refused() {
    Pool::new(usize::MAX / 2 + 2, 8192);
}

/// A file without a name, of so many bytes, all of them 7.
fn file(name: &str, bytes: usize) -> File {
    let path = std::env::temp_dir().join(format!("ugeom-{name}-{}", std::process::id()));
    let mut options = File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(&vec![7; bytes]).unwrap();
    file
}

#[test]
#[cfg_attr(miri, ignore = "Miri maps no files")]
#[cfg_attr(tsan, ignore = "the sanitizer answers faults itself")]
fn a_copy_from_a_mapping_of_a_file_that_was_cut_fails() {
    let file = file("cut", 64 << 10);
    let mapping = Mapping::of(&file, 64 << 10).unwrap();
    let mut into = [0; 4096];
    mapping.copy_out(32 << 10, &mut into).unwrap();
    assert!(into.iter().all(|byte| *byte == 7));
    file.set_len(8192).unwrap();
    let error = mapping.copy_out(32 << 10, &mut into).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5), "EIO: {error}");
    // Replaced bytes are never taken for the file's own, at any place.
    file.set_len(64 << 10).unwrap();
    assert!(mapping.copy_out(32 << 10, &mut into).is_err());
    assert!(mapping.copy_out(0, &mut into).is_err());
    let anew = Mapping::of(&file, 64 << 10).unwrap();
    anew.copy_out(4096, &mut into).unwrap();
    assert!(into.iter().all(|byte| *byte == 7));
}

/// Lets one thread write while another reads; with ThreadSanitizer or Miri a plain copy fails.
fn race(write: impl Fn(u64) + Sync, read: impl Fn() + Sync) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                read();
            }
        });
        (0..ROUNDS).for_each(&write);
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

/// Each byte is one that was written.
fn check(bytes: &[u8]) {
    assert!(bytes.iter().all(|byte| [0, 1, 2].contains(byte)));
}

#[test]
fn copies_of_a_region_that_race_give_bytes_that_were_written() {
    let region = Region::new(64 << 10).unwrap();
    region.fill(0, 16 << 10, 1);
    let lease = region.lease(100, 700).unwrap();
    let write = |round: u64| match round % 3 {
        0 => region.write(50 + round % 64, &[2; 900]),
        1 => region.fill(round % 64, 2_000, 1),
        _ => region.discard(4_096, 4_096).unwrap(),
    };
    race(write, || {
        let mut bytes = [9; 700];
        region.read(77, &mut bytes);
        check(&bytes);
        lease.copy_out(0, &mut bytes);
        check(&bytes);
        let mut long = [9; 9_000];
        region.read(33, &mut long);
        check(&long);
    });
}

#[test]
fn copies_of_a_block_that_race_give_bytes_that_were_written() {
    let slab = Slab::new(2, 16 << 10).unwrap();
    let write = |round: u64| {
        let byte = 1 + (round % 2) as u8;
        let _ = slab.copy_in(1, (round % 64) as usize, &[byte; 9_000]);
    };
    race(write, || {
        let mut bytes = [9; 9_001];
        slab.copy_out(1, 13, &mut bytes);
        check(&bytes);
        slab.copy_out_plain(1, 14, &mut bytes);
        check(&bytes);
    });
}
