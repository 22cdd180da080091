//! Tests of the crash log: known bytes, round trips, and refusals.

use super::*;
use proptest::prelude::*;

const HEADER: Header = Header {
    media_bytes: 1 << 20,
    sector_bytes: 512,
};

fn entries() -> impl Strategy<Value = Entry> {
    let range = (0_u64..2047).prop_flat_map(|at| (Just(at), 1..=2048 - at));
    let range = range.prop_map(|(at, count)| (at * 512, count * 512));
    (0..7_u8, range, 0..1000_u64, any::<bool>()).prop_map(|(kind, range, number, fua)| {
        let (offset_bytes, length_bytes) = range;
        match kind {
            0 => Entry::Write {
                offset_bytes,
                length_bytes,
                fua,
            },
            1 => Entry::Zero {
                offset_bytes,
                length_bytes,
            },
            2 => Entry::Delete {
                offset_bytes,
                length_bytes,
            },
            3 => Entry::Barrier { covers: number },
            4 => Entry::Durable { write: number },
            5 => Entry::Promise,
            _ => Entry::Begin,
        }
    })
}

proptest! {
    #[test]
    fn a_record_reads_as_it_was_written(entry in entries(), data in any::<[u8; 16]>()) {
        let data = match entry {
            Entry::Write { .. } | Entry::Barrier { .. } | Entry::Promise => &data[..],
            _ => &[],
        };
        let record = Record::new(entry, data);
        let bytes = record.encode();
        prop_assert_eq!(Record::decode(&bytes, 1000, &HEADER), Ok(record));
        prop_assert_eq!(record.check(data), Ok(()));
    }

    #[test]
    fn a_changed_byte_of_a_record_is_noticed(
        entry in entries(),
        at in 0..RECORD_BYTES,
        change in 1..=255_u8,
    ) {
        let mut bytes = Record::new(entry, &[]).encode();
        bytes[at] ^= change;
        prop_assert!(Record::decode(&bytes, 1000, &HEADER).is_err());
    }

    #[test]
    fn what_is_cut_off_is_only_zeroes(
        data in prop::collection::vec(any::<u8>(), 0..300),
        zeroes in 0..300_usize,
    ) {
        let mut padded = data.clone();
        padded.resize(data.len() + zeroes, 0);
        let kept = without_zeroes(&padded);
        prop_assert!(kept.last() != Some(&0));
        prop_assert_eq!(kept, &padded[..kept.len()]);
        prop_assert!(padded[kept.len()..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_header_has_these_bytes() {
    let bytes = HEADER.encode();
    assert_eq!(&bytes[..8], b"UGCRASH1");
    assert_eq!(bytes[8..20], [0, 0, 16, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
    assert_eq!(Header::decode(&bytes), Ok(HEADER));
}

#[test]
fn what_is_no_log_is_refused() {
    let found = Header::decode(&[0; 32]);
    assert_eq!(found, Err(CrashLogError::Magic { found: [0; 8] }));
    let short = Header::decode(&HEADER.encode()[..31]);
    assert!(matches!(
        short,
        Err(CrashLogError::Truncated { found: 31, .. })
    ));
    let odd = Header {
        media_bytes: 1000,
        ..HEADER
    };
    let odd = Header::decode(&odd.encode());
    assert!(matches!(odd, Err(CrashLogError::Field { value: 1000, .. })));
}

#[test]
fn a_record_past_the_media_is_refused() {
    let zero = |offset_bytes, length_bytes| {
        let entry = Entry::Zero {
            offset_bytes,
            length_bytes,
        };
        Record::decode(&Record::new(entry, &[]).encode(), 0, &HEADER)
    };
    assert!(zero(0, 1 << 20).is_ok());
    for (offset, length) in [(512, 1 << 20), (u64::MAX - 511, 512), (0, 0), (1, 512)] {
        let found = zero(offset, length);
        let refused = matches!(found, Err(CrashLogError::Field { .. }));
        assert!(refused, "{offset} {length}: {found:?}");
    }
}

#[test]
fn a_barrier_covers_only_what_came_before() {
    let barrier = Record::new(Entry::Barrier { covers: 7 }, &[]).encode();
    assert!(Record::decode(&barrier, 7, &HEADER).is_ok());
    assert!(Record::decode(&barrier, 6, &HEADER).is_err());
    let durable = Record::new(Entry::Durable { write: 7 }, &[]).encode();
    assert!(Record::decode(&durable, 8, &HEADER).is_ok());
    assert!(Record::decode(&durable, 7, &HEADER).is_err());
}

#[test]
fn changed_data_is_noticed() {
    let record = Record::new(Entry::Promise, b"ack 1");
    assert_eq!(record.check(b"ack 1"), Ok(()));
    assert!(matches!(
        record.check(b"ack 2"),
        Err(CrashLogError::Checksum { .. })
    ));
    assert!(matches!(
        record.check(b"ack"),
        Err(CrashLogError::Truncated { .. })
    ));
}
