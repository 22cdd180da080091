//! Reading of volume headers, and refusals.

use super::*;
use proptest::prelude::*;

fn sign(sector: &mut [u8]) {
    bytes::put_u32_be(sector, 0, MAGIC);
    bytes::put_u32_be(sector, 504, 0);
    let words = sector[..SIZE_BYTES].chunks_exact(4);
    let sum = words.fold(0_u32, |sum, word| sum.wrapping_add(bytes::u32_be(word, 0)));
    bytes::put_u32_be(sector, 504, sum.wrapping_neg());
}

fn header() -> Vec<u8> {
    let mut sector = vec![0; SIZE_BYTES];
    sector[8..13].copy_from_slice(b"/unix");
    for (index, blocks, start, kind) in [(0, 5000, 4096, 10), (8, 4096, 0, 0), (10, 9096, 0, 6)] {
        let at = PARTITIONS_OFFSET_BYTES + 12 * index;
        for (field, value) in [blocks, start, kind].into_iter().enumerate() {
            bytes::put_u32_be(&mut sector, at + 4 * field, value);
        }
    }
    sign(&mut sector);
    sector
}

#[test]
fn used_partitions_are_listed_by_their_place() {
    let header = Header::decode(&header()).unwrap();
    let listed: Vec<(usize, u32, u32)> = header
        .slices()
        .map(|(number, part)| (number, part.start, part.blocks))
        .collect();
    assert_eq!(listed, [(1, 4096, 5000), (9, 0, 4096), (11, 0, 9096)]);
    assert_eq!(header.boot_file, "/unix");
    assert_eq!(header.partitions[10].kind, SgiType::VOLUME);
    assert_eq!(SgiType(10).description(), Some("SGI xfs"));
    assert_eq!(SgiType(99).description(), None);
}

#[test]
fn what_is_wrong_is_named() {
    let good = header();
    assert_eq!(
        Header::decode(&good[..500]),
        Err(Error::Short { found: 500 })
    );
    let mut other = good.clone();
    other[3] = 0;
    assert_eq!(
        Header::decode(&other),
        Err(Error::Magic { found: 0x0be5_a900 })
    );
    let mut wrong = good;
    wrong[315] ^= 1;
    assert_eq!(Header::decode(&wrong), Err(Error::Checksum { found: 1 }));
}

proptest! {
    #[test]
    fn any_signed_sector_is_a_header(raw in proptest::collection::vec(any::<u8>(), SIZE_BYTES)) {
        let mut raw = raw;
        sign(&mut raw);
        let header = Header::decode(&raw).unwrap();
        prop_assert!(header.slices().all(|(_, part)| part.blocks != 0));
    }
}
