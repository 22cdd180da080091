//! Tests of [`Region`]: contents, sparseness and extents.

use super::*;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// How much of a long test Miri runs: there each byte of a region is an atomic, and takes it half a
/// millisecond.
const MIRI_SHARE: u64 = if cfg!(miri) { 128 } else { 1 };

/// Compares the number of resident pages of a range, as mincore(2) counts them.
fn assert_resident(region: &Region, from: u64, to: u64, expected: usize) {
    if cfg!(miri) {
        return;
    }
    let pages = ((to - from) / GRANULE_BYTES) as usize;
    let mut vector = vec![0u8; pages];
    // SAFETY: the range lies inside the mapping, and the vector has a byte for each page.
    let rc = unsafe {
        let start = region.at(from).cast();
        libc::mincore(start, (to - from) as usize, vector.as_mut_ptr())
    };
    assert_eq!(rc, 0);
    assert_eq!(
        vector.iter().filter(|&&byte| byte & 1 != 0).count(),
        expected
    );
}

#[test]
fn a_new_region_reads_as_zero_and_has_one_hole() {
    let region = Region::new(10_000).unwrap();
    let mut bytes = [1u8; 200];
    for offset in [0, 4_000, 9_800] {
        region.read(offset, &mut bytes);
        assert_eq!(bytes, [0; 200]);
    }
    assert_eq!(region.next_extent(0), (10_000, false));
    assert_eq!(region.next_extent(9_999), (1, false));
    assert_eq!(region.next_extent(10_000), (0, false));
}

#[test]
fn what_was_written_is_read_back_across_granules() {
    let region = Region::new(MIB).unwrap();
    let data = Vec::from_iter(1..=250u8).repeat(20);
    region.write(4_000, &data);
    let mut back = [9u8; 5_200];
    region.read(3_900, &mut back);
    assert_eq!(back[..100], [0; 100]);
    assert_eq!(back[100..5_100], data);
    assert_eq!(back[5_100..], [0; 100]);
}

#[test]
#[cfg(not(miri))]
fn reading_holes_takes_no_memory() {
    let region = Region::new(64 * MIB).unwrap();
    let mut bytes = vec![7u8; MIB as usize];
    for offset in (0..64 * MIB).step_by(MIB as usize) {
        region.read(offset, &mut bytes);
    }
    assert_eq!(bytes, vec![0; MIB as usize]);
    assert_resident(&region, 0, 64 * MIB, 0);
}

#[test]
#[cfg(not(miri))]
fn a_written_sector_takes_one_granule() {
    let region = Region::new(64 * MIB).unwrap();
    region.write(5 * MIB + 512, &[1; 512]);
    assert_resident(&region, 0, 64 * MIB, 1);
}

#[test]
#[cfg(not(miri))]
fn extents_tell_written_granules_from_holes() {
    let region = Region::new(1 << 40).unwrap();
    region.write(1 << 39, &[1; 512]);
    region.write((1 << 39) + 4096, &[1; 4096 * 70]);
    region.write((1 << 40) - 1, &[1]);
    assert_eq!(region.next_extent(0), (1 << 39, false));
    assert_eq!(region.next_extent(1 << 39), (4096 * 71, true));
    assert_eq!(region.next_extent((1 << 39) + 100), (4096 * 71 - 100, true));
    let hole = (1 << 39) + 4096 * 71;
    assert_eq!(region.next_extent(hole), ((1 << 40) - 4096 - hole, false));
    assert_eq!(region.next_extent((1 << 40) - 4096), (4096, true));
}

#[test]
#[cfg(not(miri))]
#[cfg_attr(tsan, ignore = "the sanitizer has the addresses")]
fn the_longest_region_is_usable_at_both_ends() {
    let region = Region::new(MAX_LEN_BYTES).unwrap();
    region.write(0, b"first");
    region.write(MAX_LEN_BYTES - 4, b"last");
    let mut bytes = [0; 4];
    region.read(MAX_LEN_BYTES - 4, &mut bytes);
    assert_eq!(&bytes, b"last");
    assert_eq!(region.next_extent(4096), (MAX_LEN_BYTES - 8192, false));
    region.discard(0, MAX_LEN_BYTES).unwrap();
    assert_eq!(region.next_extent(0), (MAX_LEN_BYTES, false));
}

#[test]
fn a_region_beyond_the_limit_is_refused() {
    let error = Region::new(MAX_LEN_BYTES + 1).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_discarded_range_reads_as_zero_and_its_neighbours_stay() {
    const LEN: u64 = 65_536;
    let region = Region::new(LEN).unwrap();
    // Some bytes of each granule, and those at both ends of the range.
    let marks = (0..LEN).step_by(4_096).chain([4_990, 24_990]);
    marks
        .clone()
        .for_each(|offset| region.write(offset, &[0xAA; 20]));
    region.discard(5_000, 20_000).unwrap();
    for offset in marks {
        let mut back = [1u8; 20];
        region.read(offset, &mut back);
        let stays = |offset| !(5_000..25_000).contains(&offset);
        let expected = |at| if stays(offset + at) { 0xAA } else { 0 };
        assert_eq!(
            back.to_vec(),
            Vec::from_iter((0..20).map(expected)),
            "{offset}"
        );
    }
    // Granules 2 to 5 lie wholly inside 5,000..25,000.
    assert_eq!(region.next_extent(0), (8_192, true));
    assert_eq!(region.next_extent(8_192), (16_384, false));
    assert_eq!(region.next_extent(24_576), (LEN - 24_576, true));
    assert_resident(&region, 0, LEN, LEN as usize / 4096 - 4);
}

#[test]
fn a_discard_to_an_odd_end_gives_the_last_granule_back() {
    let region = Region::new(10_000).unwrap();
    for offset in [0, 5_000, 9_999] {
        region.write(offset, &[1]);
    }
    region.discard(8_192, 1_808).unwrap();
    assert_eq!(region.next_extent(8_192), (1_808, false));
    assert_eq!(region.next_extent(0), (8_192, true));
}

#[test]
fn a_discard_inside_one_granule_only_zeroes() {
    let region = Region::new(8_192).unwrap();
    region.write(0, &[1; 400]);
    region.write(5_000, &[1]);
    region.discard(100, 200).unwrap();
    let mut back = [9u8; 400];
    region.read(0, &mut back);
    assert_eq!(back[..100], [1; 100]);
    assert_eq!(back[100..300], [0; 200]);
    assert_eq!(back[300..], [1; 100]);
    assert_eq!(region.next_extent(0), (8_192, true));
}

#[test]
fn a_fill_writes_its_byte_and_zero_leaves_holes() {
    let region = Region::new(MIB).unwrap();
    region.fill(4_000, 200, 0x55);
    let mut back = [9u8; 400];
    region.read(3_900, &mut back);
    assert_eq!(back[..100], [0; 100]);
    assert_eq!(back[100..300], [0x55; 200]);
    assert_eq!(back[300..], [0; 100]);
    region.fill(0, MIB, 0);
    region.read(3_900, &mut back);
    assert_eq!(back, [0; 400]);
    assert_resident(&region, 0, MIB, 2);
}

#[test]
fn a_region_of_length_zero_is_allowed() {
    let region = Region::new(0).unwrap();
    region.read(0, &mut []);
    region.write(0, &[]);
    region.fill(0, 0, 1);
    region.discard(0, 0).unwrap();
    assert_eq!(region.next_extent(0), (0, false));
}

#[test]
#[should_panic(expected = "cannot read 2 bytes at 4095 in a region of 4096 bytes")]
fn a_read_past_the_end_is_the_callers_defect() {
    Region::new(4096).unwrap().read(4095, &mut [0; 2]);
}

#[test]
#[should_panic(expected = "cannot write 1 bytes at 18446744073709551615")]
fn an_offset_that_overflows_is_the_callers_defect() {
    Region::new(4096).unwrap().write(u64::MAX, &[0; 1]);
}

/// Random writes, fills and discards of one thread, compared with a plain vector.
#[test]
#[cfg_attr(
    miri,
    ignore = "minutes; the operations themselves are run by the other tests"
)]
fn any_sequence_of_operations_agrees_with_a_plain_array() {
    const LEN: u64 = 50_000;
    let region = Region::new(LEN).unwrap();
    let mut model = vec![0u8; LEN as usize];
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for step in 0..(3_000 / MIRI_SHARE) {
        let offset = random(LEN + 1);
        let len = random(LEN - offset + 1).min(random(20_000));
        let range = offset as usize..(offset + len) as usize;
        match random(4) {
            0 => {
                let data = vec![step as u8 | 1; len as usize];
                region.write(offset, &data);
                model[range].copy_from_slice(&data);
            }
            1 => {
                let byte = random(3) as u8;
                region.fill(offset, len, byte);
                model[range].fill(byte);
            }
            2 => {
                region.discard(offset, len).unwrap();
                model[range].fill(0);
            }
            _ => {
                let mut back = vec![0xEE; len as usize];
                region.read(offset, &mut back);
                assert_eq!(back, model[range]);
            }
        }
        let (extent, written) = region.next_extent(offset);
        assert!(
            written
                || model[offset as usize..][..extent as usize]
                    .iter()
                    .all(|&b| b == 0)
        );
    }
}

#[test]
fn threads_write_their_own_sectors_of_shared_granules() {
    const SECTORS: u64 = 2048 / MIRI_SHARE;
    let region = Arc::new(Region::new(SECTORS * 512).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let region = &region;
            scope.spawn(move || {
                for sector in (thread..SECTORS).step_by(4) {
                    region.write(sector * 512, &[thread as u8 + 1; 512]);
                }
            });
        }
    });
    let mut sector = [0u8; 512];
    for index in 0..SECTORS {
        region.read(index * 512, &mut sector);
        assert_eq!(sector, [index as u8 % 4 + 1; 512]);
    }
    assert_eq!(region.next_extent(0), (SECTORS * 512, true));
}
