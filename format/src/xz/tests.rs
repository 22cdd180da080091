//! Frames made field by field, and hostile ones. `classes` reads what xz writes.

use super::*;
use proptest::prelude::*;

fn made(records: &[Record]) -> Vec<u8> {
    let mut out = vec![0];
    put_vli(&mut out, records.len() as u64);
    for record in records {
        put_vli(&mut out, record.unpadded_bytes);
        put_vli(&mut out, record.data_bytes);
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

fn record() -> impl Strategy<Value = Record> {
    (5..u64::MAX / 4, 0..u64::MAX / 2).prop_map(|(unpadded_bytes, data_bytes)| Record {
        unpadded_bytes,
        data_bytes,
    })
}

#[test]
fn a_header_of_xz_is_read_and_made_again() {
    // `xz < /dev/null | head -c 12 | xxd -p`
    let bytes = *b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46";
    let flags = header(&bytes).expect("a header");
    assert_eq!((flags.check(), flags.header()), (4, bytes));
    // The rest there: an index of no block, and the footer.
    let rest = b"\0\0\0\0\x1c\xdf\x44\x21\x1f\xb6\xf3\x7d\x01\0\0\0\0\x04YZ";
    assert_eq!(index(&rest[..8]), Ok(Vec::new()));
    let tail = *rest.last_chunk().expect("twelve bytes");
    assert_eq!(footer(&tail), Ok((8, flags)));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let mut bytes = *b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46";
    bytes[8] ^= 1;
    let refused = header(&bytes).expect_err("a wrong checksum").to_string();
    assert_eq!(
        refused,
        "the stream header has the CRC-32 0x46b4d6e7, its bytes give 0x46b4d6e6"
    );
    assert!(matches!(footer(&bytes), Err(Error::Magic { .. })));
    let mut many = vec![0];
    put_vli(&mut many, BLOCKS_MAX + 1);
    many.resize(8, 0);
    many.extend(crc32fast::hash(&many).to_le_bytes());
    let found = BLOCKS_MAX + 1;
    assert_eq!(index(&many), Err(Error::Blocks { found }));
}

proptest! {
    #[test]
    fn an_index_gives_its_records_back(records in proptest::collection::vec(record(), 0..40)) {
        prop_assert_eq!(index(&made(&records)), Ok(records));
    }

    #[test]
    fn the_closing_of_one_block_reads_as_that_block(record in record(), check in 0_u8..16) {
        let flags = Flags(check);
        let closing = flags.closing(record);
        let (list, tail) = closing.split_last_chunk::<EDGE_BYTES>().expect("a footer");
        prop_assert_eq!(footer(tail), Ok((list.len() as u64, flags)));
        prop_assert_eq!(index(list), Ok(vec![record]));
    }

    #[test]
    fn a_changed_index_is_an_error(
        records in proptest::collection::vec(record(), 1..9),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let mut bytes = made(&records);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(index(&bytes).is_err());
    }
}
