//! Reading of disklabel64s, and refusals.

use super::*;
use proptest::prelude::*;

fn label() -> Label {
    let mut label = Label::create(64 << 20, 512, Guid([7; 16])).unwrap();
    label.partitions[0] = Partition {
        offset_bytes: label.first_bytes,
        size_bytes: 1 << 20,
        kind: Bsd64Type::parse("dragonfly-hammer2").unwrap(),
        guid: Guid([9; 16]),
    };
    label.partitions[15] = Partition {
        offset_bytes: 4 << 20,
        size_bytes: 512,
        kind: Bsd64Type::parse("freebsd-zfs").unwrap(),
        guid: Guid([8; 16]),
    };
    label
}

#[test]
fn a_label_made_here_has_its_numbers_where_dragonfly_has_them() {
    let data = label().encode();
    assert_eq!(data[512..516], [0x59, 0x4c, 0x46, 0xc4]);
    assert_eq!(bytes::u32_le(&data, 524), 16);
    assert_eq!(bytes::u64_le(&data, 544), 64 << 20);
    assert_eq!(bytes::u64_le(&data, 712), (1 << 20) + (32 << 10));
    assert_eq!((data[712 + 16], data[712 + 64 * 15 + 16]), (23, 10));
    // The CRC of another implementation: bit by bit.
    let mut covered = data[512..].to_vec();
    covered[4..8].fill(0);
    let crc = covered.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    });
    assert_eq!(bytes::u32_le(&data, 516), !crc);
}

#[test]
fn partitions_are_listed_but_the_raw_one() {
    let mut label = label();
    label.partitions[RAW_PARTITION].size_bytes = 64 << 20;
    let read = Label::decode(&label.encode(), 512).unwrap();
    let listed: Vec<usize> = read.slices().map(|slice| slice.0).collect();
    assert_eq!(listed, [0, 15]);
    assert_eq!(read.partitions[15].kind.to_string(), "freebsd-zfs");
}

#[test]
fn what_is_wrong_is_named() {
    let data = label().encode();
    let damaged = |at: usize, value: u8| {
        let mut data = data.clone();
        data[at] = value;
        Label::decode(&data, 512).unwrap_err()
    };
    assert_eq!(damaged(512, 0), Error::Magic { found: 0xc446_4c00 });
    assert_eq!(damaged(524, 17), Error::Count { found: 17 });
    assert!(matches!(damaged(600, 1), Error::Crc { .. }));
    let mut odd = label();
    odd.partitions[0].size_bytes += 512;
    assert!(Label::decode(&odd.encode(), 512).is_ok());
    let error = Label::decode(&odd.encode(), 4096).unwrap_err().to_string();
    assert_eq!(
        error,
        "the size of a of the disklabel64, 1049088, is no multiple of the 4096-byte sectors"
    );
    assert_eq!(Label::create(1 << 20, 512, Guid([0; 16])), None);
}

#[test]
fn names_numbers_and_uuids_are_understood_as_gpart_does() {
    for name in Bsd64Type::names() {
        assert_eq!(
            Bsd64Type::parse(name)
                .map(|kind| kind.to_string())
                .as_deref(),
            Some(name)
        );
    }
    let legacy = "!bd215ab2-1d16-11dc-8696-01301bb8a9f5";
    assert_eq!(
        Bsd64Type::parse(legacy).unwrap().to_string(),
        "dragonfly-legacy"
    );
    let swap = "!9d58fdbd-1ca5-11dc-8817-01301bb8a9f5";
    assert_eq!(
        Bsd64Type::parse(swap).unwrap().number,
        1,
        "a number is preferred"
    );
    assert_eq!(Bsd64Type::parse("!99").unwrap().to_string(), "!99");
    for refused in [
        "!0",
        "!256",
        "linux-data",
        "!00000000-0000-0000-0000-000000000000",
        "",
    ] {
        assert_eq!(Bsd64Type::parse(refused), None, "{refused:?}");
    }
}

proptest! {
    #[test]
    fn any_label_survives_encoding_and_decoding(
        raw in proptest::collection::vec(any::<u8>(), SIZE_BYTES),
        parts in proptest::collection::vec(
            (any::<u32>(), any::<u32>(), any::<u8>(), any::<[u8; 16]>()),
            1..=16,
        ),
    ) {
        let partitions = parts
            .into_iter()
            .map(|(offset, size, number, guid)| Partition {
                offset_bytes: u64::from(offset) * 512,
                size_bytes: u64::from(size) * 512,
                kind: Bsd64Type { number, guid: Guid(guid) },
                guid: Guid(guid),
            })
            .collect();
        let label = Label { bytes: raw, partitions, ..label() };
        let data = label.encode();
        let read = Label::decode(&data, 512).unwrap();
        prop_assert_eq!(&read.partitions, &label.partitions);
        prop_assert_eq!(read.encode(), data);
    }
}
