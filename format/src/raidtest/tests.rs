//! Files of raidtest.c are read, impossible ones refused, and generated ones are possible.

use super::*;
use proptest::prelude::*;
use ugeom_testkit::has;

fn read(offset_bytes: u64, length_bytes: u32) -> Request {
    Request {
        offset_bytes,
        length_bytes,
        kind: RaidtestKind::Read,
    }
}

/// The bytes that raidtest.c writes for a write of 64 KiB at 1 MiB and a read of 512 at 0: its
/// structure is packed by hand with `le64enc` and `le32enc`, the padding is whatever was there.
const FILE: &[u8] = &[
    0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0xAA, 0xBB, 0xCC, //
    0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0,
];

#[test]
fn a_file_is_read_as_raidtest_writes_it() {
    let requests = decode(FILE).unwrap();
    let first = Request {
        kind: RaidtestKind::Write,
        ..read(1 << 20, 64 << 10)
    };
    assert_eq!(requests, [first, read(0, 512)]);
    assert_eq!(requests[1].encode(), FILE[16..]);
    let totals = Totals {
        reads: 1,
        writes: 1,
        bytes: 66_048,
    };
    assert_eq!(Totals::of(&requests), totals);
}

#[test]
fn a_damaged_file_is_refused_with_the_place() {
    assert_eq!(decode(&[]), Err(Error::Empty));
    let cut = decode(&FILE[..20]).unwrap_err();
    assert_eq!(
        cut.to_string(),
        "request 1 (byte 16) is cut off: 4 of 16 bytes are there; the file is truncated, or is \
         none of raidtest's"
    );
    let mut other = FILE.to_vec();
    other[28] = 2;
    let error = decode(&other).unwrap_err().to_string();
    assert_eq!(
        error,
        "request 1 (byte 16) has type 2: 0 is a read, 1 a write"
    );
}

#[test]
fn a_request_that_the_device_cannot_do_is_named() {
    let error = |request: Request| check(&[read(0, 512), request], 4096, 512).unwrap_err();
    assert!(matches!(error(read(0, 0)), Error::Length { index: 1, .. }));
    assert!(matches!(
        error(read(0, u32::MAX)),
        Error::Length { index: 1, .. }
    ));
    assert!(matches!(
        error(read(100, 512)),
        Error::Sectors { index: 1, .. }
    ));
    assert!(matches!(
        error(read(512, 513)),
        Error::Sectors { index: 1, .. }
    ));
    assert!(matches!(
        error(read(3584, 1024)),
        Error::PastTheEnd { index: 1, .. }
    ));
    let wraps = read(u64::MAX - 511, 1024);
    assert!(matches!(error(wraps), Error::PastTheEnd { index: 1, .. }));
    assert_eq!(check(&[read(3584, 512)], 4096, 512), Ok(()));
    let told = error(read(4096, 512)).to_string();
    has(&told, "request 1, 512 bytes at 4096");
    has(&told, "-s 4096");
}

#[test]
fn what_cannot_be_generated_is_refused() {
    let shape = |media_bytes, sector_bytes| Shape {
        media_bytes,
        sector_bytes,
        kind: None,
    };
    let refused = |shape: Shape| shape.requests(|_| 0).err().unwrap();
    assert_eq!(refused(shape(1 << 20, 0)), Error::SectorSize(0));
    assert_eq!(refused(shape(1 << 20, 262_144)), Error::SectorSize(262_144));
    assert!(matches!(refused(shape(511, 512)), Error::NoSector { .. }));
    // The device of one sector, on which raidtest.c divides by zero.
    let only = shape(512, 512).requests(|below| below - 1).unwrap().next();
    assert_eq!(only.unwrap().offset_bytes, 0);
}

#[test]
fn lengths_offsets_and_kinds_are_uniform_as_published() {
    let mut state = 1_u64;
    let below = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((u128::from(state) * u128::from(n)) >> 64) as u64
    };
    let shape = Shape {
        media_bytes: 1 << 60,
        sector_bytes: 512,
        kind: None,
    };
    let requests: Vec<_> = shape.requests(below).unwrap().take(100_000).collect();
    check(&requests, 1 << 60, 512).unwrap();
    let totals = Totals::of(&requests);
    // Mean (1 + 256) / 2 sectors, deviation 73.9; four standard errors of 100,000.
    let mean = totals.bytes as f64 / 512.0 / 1e5;
    assert!((mean - 128.5).abs() < 4.0 * 73.9 / 1e5_f64.sqrt(), "{mean}");
    assert!(totals.reads.abs_diff(50_000) < 4 * 158, "{totals:?}");
    let first_half = requests.iter().filter(|r| r.offset_bytes < 1 << 59).count();
    assert!(first_half.abs_diff(50_000) < 4 * 158, "{first_half}");
    let longest = requests.iter().map(|request| request.length_bytes).max();
    assert_eq!(longest, Some(LENGTH_BYTES_MAX));
}

proptest! {
    #[test]
    fn every_list_is_read_as_it_was_written(
        list in proptest::collection::vec((any::<u64>(), any::<u32>(), any::<bool>()), 1..200),
    ) {
        let requests: Vec<Request> = list
            .into_iter()
            .map(|(offset_bytes, length_bytes, write)| Request {
                offset_bytes,
                length_bytes,
                kind: if write { RaidtestKind::Write } else { RaidtestKind::Read },
            })
            .collect();
        let bytes: Vec<u8> = requests.iter().flat_map(Request::encode).collect();
        prop_assert_eq!(decode(&bytes), Ok(requests));
    }

    #[test]
    fn every_request_belongs_to_one_process(count in 0_usize..300, processes in 1_usize..40) {
        let requests: Vec<Request> = (0..count as u64).map(|at| read(at * 512, 512)).collect();
        let shares = (0..processes).map(|index| share(&requests, processes, index));
        prop_assert!(shares.clone().all(|share| share.len().abs_diff(count / processes) <= 1));
        prop_assert_eq!(shares.collect::<Vec<_>>().concat(), requests);
    }

    #[test]
    fn what_is_generated_can_be_done(
        sectors in 1_u64..2000, size in 0_u32..4, seed in any::<u64>(), draws in 1_usize..50,
    ) {
        let sector_bytes = 512 << size;
        let media_bytes = sectors * u64::from(sector_bytes) + seed % 512;
        let mut state = seed;
        let below = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state % n
        };
        let shape = Shape { media_bytes, sector_bytes, kind: Some(RaidtestKind::Read) };
        let made: Vec<Request> = shape.requests(below).unwrap().take(draws).collect();
        prop_assert_eq!(check(&made, media_bytes, sector_bytes), Ok(()));
        prop_assert!(made.iter().all(|request| request.kind == RaidtestKind::Read));
    }
}
