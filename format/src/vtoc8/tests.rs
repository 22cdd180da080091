//! Reading of Sun labels, and refusals.

use super::*;
use proptest::prelude::*;

fn label() -> Label {
    let mut label = Label::create(1_000_000, 16, 63).unwrap();
    label.partitions[0] = Partition {
        tag: Tag(2),
        cylinder: 10,
        sectors: 1008 * 20,
        ..Partition::default()
    };
    label
}

#[test]
fn a_label_made_here_has_its_numbers_where_sun_has_them() {
    let raw = label().encode();
    assert_eq!(&raw[..11], b"FreeBSD487M");
    assert_eq!(raw[188..192], [0x60, 0x0d, 0xde, 0xee]);
    assert_eq!(raw[508..510], [0xda, 0xbe]);
    assert_eq!(raw[444..452], [0, 0, 0, 10, 0, 0, 0x4e, 0xc0]);
    let sum = raw
        .chunks_exact(2)
        .fold(0, |sum, word| sum ^ bytes::u16_be(word, 0));
    assert_eq!(sum, 0);
}

#[test]
fn partitions_begin_with_cylinders_and_the_raw_one_is_listed() {
    let slices: Vec<(usize, u64, u64)> = label()
        .slices()
        .map(|slice| (slice.index, slice.start, slice.sectors))
        .collect();
    assert_eq!(slices, [(0, 10_080, 20_160), (2, 0, 990 * 1008)]);
}

#[test]
fn a_label_without_a_vtoc_has_a_tag_for_the_raw_partition_only() {
    let mut raw = label().encode();
    raw[188..192].fill(0);
    let mut old = Label {
        bytes: Box::new(raw),
        ..label()
    };
    let sum = checksum(&old.bytes);
    bytes::put_u16_be(&mut *old.bytes, 510, sum);
    let read = Label::decode(&*old.bytes).unwrap();
    assert_eq!(read.partitions[0].tag, Tag(0));
    assert_eq!(read.partitions[0].cylinder, 10);
    assert_eq!(read.partitions[RAW_PARTITION].tag, Tag::BACKUP);
    // FreeBSD lists no `c` with another tag.
    let written = Label::decode(&read.encode()).unwrap();
    assert_eq!(written.partitions, read.partitions);
}

#[test]
fn what_is_wrong_is_named() {
    let raw = label().encode();
    let damaged = |at: usize, value: u8| {
        let mut raw = raw;
        raw[at] ^= value;
        Label::decode(&raw).unwrap_err()
    };
    assert_eq!(damaged(508, 1), Error::Magic { found: 0xdbbe });
    assert!(matches!(damaged(200, 1), Error::Checksum { .. }));
    let mut flat = label();
    flat.heads = 0;
    let error = Label::decode(&flat.encode()).unwrap_err();
    assert_eq!(
        error,
        Error::Geometry {
            heads: 0,
            sectors: 63
        }
    );
    assert_eq!(Label::decode(&raw[..511]), Err(Error::Short { found: 511 }));
    assert_eq!(Label::create(3000, 16, 63), None);
}

#[test]
fn names_and_numbers_are_understood_as_gpart_does() {
    assert_eq!(Tag::parse("FreeBSD-UFS"), Some(Tag(0x902)));
    assert_eq!(Tag::parse("!0x902"), Some(Tag(0x902)));
    assert_eq!(Tag(0x904).to_string(), "freebsd-zfs");
    assert_eq!(Tag(2).to_string(), "!2");
    for refused in ["!0", "!65536", "root", ""] {
        assert_eq!(Tag::parse(refused), None, "{refused:?}");
    }
}

proptest! {
    #[test]
    fn any_label_survives_encoding_and_decoding(
        raw in proptest::collection::vec(any::<u8>(), SIZE_BYTES),
        tagged in any::<bool>(),
    ) {
        let mut raw: [u8; SIZE_BYTES] = raw.try_into().unwrap();
        if tagged {
            bytes::put_u32_be(&mut raw, 188, SANITY);
        }
        bytes::put_u16_be(&mut raw, 508, MAGIC);
        let sum = checksum(&raw);
        bytes::put_u16_be(&mut raw, 510, sum);
        let Ok(label) = Label::decode(&raw) else { return Ok(()); };
        prop_assert!(label.slices().count() <= ENTRIES);
        let again = label.encode();
        if tagged {
            prop_assert_eq!(again, raw);
        }
        prop_assert_eq!(Label::decode(&again).unwrap().partitions, label.partitions);
    }
}
