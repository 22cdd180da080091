//! Hostile disks: whole images with damaged, lying and random tables are tasted by all classes.
//! Nothing panics, nothing is endless, little is read, and everything that is listed can be read or
//! says why not.

#[path = "../../fuzz/src/taste.rs"]
mod target;

mod common;

use common::disks::{chain_of, gpt_of, label_of, mbr_of};
use proptest::prelude::*;
use ugeom_format::{Media, apm, ebr, mbr};

/// A disk of 128 sectors of 512 bytes with many tables at once.
fn partitioned(choice: u8) -> Vec<u8> {
    let writes = match choice % 4 {
        0 => slices_and_chains(),
        1 => gpt_with_a_label(),
        2 => vec![
            (
                512,
                label_of(512, 22, &[(0, 2, 10), (1, 50, 100), (2, 0, 128), (7, 3, 3)]),
            ),
            (64, label_of(512, 8, &[(0, 2, 10)])),
        ],
        _ => map_beside_an_mbr(),
    };
    let mut disk = vec![0; 128 * 512];
    for (offset, bytes) in writes {
        disk[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    disk
}

fn slices_and_chains() -> Vec<(u64, Vec<u8>)> {
    let slices = [
        (0xa5, 10, 50),
        (0x05, 70, 40),
        (0x83, 5, 200),
        (0x0f, 70, 20),
    ];
    let logicals: Vec<ebr::NewLogical> = (0..4)
        .map(|n| ebr::NewLogical {
            ebr_lba: 70 + 8 * n,
            start: 71 + 8 * n,
            sectors: 6,
            kind: mbr::PartType::FREEBSD,
        })
        .collect();
    let mut writes = vec![
        (0, mbr_of(&slices)),
        (
            11 * 512,
            label_of(512, 8, &[(0, 12, 20), (2, 10, 50), (3, 40, 90)]),
        ),
    ];
    writes.extend(chain_of(70, &logicals));
    writes.push((72 * 512, label_of(512, 22, &[(0, 2, 2), (21, 4, 4)])));
    writes
}

fn gpt_with_a_label() -> Vec<(u64, Vec<u8>)> {
    let media = Media::of_512(128);
    let mut writes = gpt_of(media, &[("freebsd", 40, 20), ("linux-data", 70, 10)]);
    writes.push((41 * 512, label_of(512, 8, &[(0, 2, 10), (1, 5, 3)])));
    writes
}

fn map_beside_an_mbr() -> Vec<(u64, Vec<u8>)> {
    let descriptor = apm::Descriptor {
        block_size_bytes: 512,
        blocks: 128,
        drivers: 0,
    };
    let mut block = descriptor.encode().to_vec();
    block[440..].copy_from_slice(&mbr_of(&[(0x83, 20, 10)])[440..]);
    let entry = |number: u32| apm::Entry {
        map_blocks: 8,
        start: number * 10,
        blocks: 15,
        kind: [b'A'; 32],
        ..apm::Entry::default()
    };
    let entries = (1..=8).map(|number| (u64::from(number) * 512, entry(number).encode().to_vec()));
    let label = label_of(512, 8, &[(0, 2, 10), (1, 5, 3)]);
    [(0, block), (11 * 512, label)]
        .into_iter()
        .chain(entries)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_a_disk(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        target::taste(&bytes);
    }

    #[test]
    fn a_damaged_disk_is_still_a_disk(
        choice in any::<u8>(),
        sizes in any::<[u8; 2]>(),
        cut in 0..=128_usize * 512,
        patches in proptest::collection::vec((0..128_usize * 512, any::<[u8; 4]>()), 0..12),
        near in proptest::collection::vec((0..2048_usize, any::<u8>()), 0..12),
    ) {
        let mut disk = partitioned(choice);
        for (at, value) in patches {
            for (place, byte) in disk[at..].iter_mut().zip(value) {
                *place = byte;
            }
        }
        // The tables are at the beginning: damage there is met more often.
        for (at, value) in near {
            disk[at] = value;
        }
        disk.truncate(cut.max(2048));
        target::taste(&[&sizes[..], &disk].concat());
    }
}

#[test]
fn the_disks_that_are_damaged_are_good_ones() {
    for (choice, expected) in [
        (0, 4 + 3 + (4 + 2) + (3 + 2)),
        (1, 2 + 2),
        (2, 4),
        (3, 1 + 8 + 2),
    ] {
        let disk = [&[0, 0], &partitioned(choice)[..]].concat();
        assert_eq!(target::taste(&disk), expected, "disk {choice}");
    }
}
