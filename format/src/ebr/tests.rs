//! Extended boot records: chains good and bad.

use super::*;
use crate::mbr::tests::any_entry;
use proptest::prelude::*;
use std::collections::BTreeMap;
use ugeom_testkit::begins;

const GEOMETRY: Geometry = Geometry::LBA_ASSIST;

fn entry(kind: u8, start: u32, sectors: u32) -> Option<Entry> {
    Some(Entry::new(PartType(kind), start, sectors, GEOMETRY))
}

fn record(logical: Option<Entry>, next: Option<Entry>) -> [u8; 512] {
    Ebr { logical, next }.encode()
}

/// Walks a disk of which only the listed sectors are not zero.
fn walk(mut walk: EbrWalk, disk: &BTreeMap<u64, [u8; 512]>) -> (Vec<Logical>, Vec<Error>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    while let Some(lba) = walk.next_lba() {
        let step = walk.feed(disk.get(&lba).unwrap_or(&[0; 512]));
        found.extend(step.logical);
        errors.extend(step.error);
    }
    (found, errors)
}

#[test]
fn offsets_count_from_the_record_and_from_the_extended_start() {
    let disk = BTreeMap::from([
        (1000, record(entry(1, 63, 100), entry(5, 500, 400))),
        (1500, record(entry(6, 2, 50), entry(0x0f, 700, 100))),
        (1700, record(entry(0x83, 1, 9), None)),
    ]);
    let (found, errors) = walk(EbrWalk::new(1000, 1000), &disk);
    let places: Vec<_> = found
        .iter()
        .map(|l| (l.ebr_lba, l.start, l.sectors))
        .collect();
    assert_eq!(
        places,
        [(1000, 1063, 100), (1500, 1502, 50), (1700, 1701, 9)]
    );
    assert_eq!(errors, []);
}

#[test]
fn a_first_record_with_only_a_link_and_a_link_before_the_partition_are_followed() {
    let mut swapped = [0; 512];
    entry(5, 20, 9).unwrap().encode(&mut swapped, 0);
    entry(0x83, 1, 9).unwrap().encode(&mut swapped, 1);
    mbr::encode_signature(&mut swapped);
    let disk = BTreeMap::from([
        (100, record(None, entry(5, 10, 9))),
        (110, swapped),
        (120, record(entry(0x83, 1, 5), None)),
    ]);
    let (found, errors) = walk(EbrWalk::new(100, 100), &disk);
    assert_eq!(
        found.iter().map(|l| l.start).collect::<Vec<_>>(),
        [111, 121]
    );
    assert_eq!(errors, []);
}

#[test]
fn a_loop_ends_the_walk_and_names_both_records() {
    let disk = BTreeMap::from([
        (100, record(entry(1, 1, 5), entry(5, 10, 9))),
        (110, record(entry(1, 1, 5), entry(5, 0, 9))),
    ]);
    let (found, errors) = walk(EbrWalk::new(100, 100), &disk);
    assert_eq!(found.len(), 2);
    assert_eq!(
        errors,
        [Error::Loop {
            lba: 110,
            next: 100
        }]
    );
}

#[test]
fn a_link_out_of_the_extended_partition_is_not_followed() {
    let first = Ebr {
        logical: entry(1, 1, 5),
        next: entry(5, 100, 9),
    };
    let disk = BTreeMap::from([(100, first.encode())]);
    let (found, errors) = walk(EbrWalk::new(100, 100), &disk);
    assert_eq!(found.len(), 1);
    assert_eq!(
        errors,
        [Error::Outside {
            lba: 100,
            next: 200,
            first: 100,
            last: 199
        }]
    );
}

#[test]
fn a_record_without_a_signature_is_named_by_its_sector() {
    let disk = BTreeMap::from([(7, record(None, entry(5, 3, 1)))]);
    let (_, errors) = walk(EbrWalk::new(7, 9), &disk);
    let text = errors[0].to_string();
    begins(
        &text,
        "no extended boot record at sector 10: no boot signature",
    );
}

#[test]
fn an_endless_chain_is_cut() {
    let mut walk = EbrWalk::new(10, 1 << 30);
    let mut steps = 0;
    let mut last = Step::default();
    while let Some(lba) = walk.next_lba() {
        steps += 1;
        let next = (lba - 10) as u32 + 1;
        last = walk.feed(&record(None, entry(5, next, 1)));
    }
    assert_eq!(steps, MAX_LOGICALS);
    assert!(matches!(last.error, Some(Error::TooMany { .. })));
    assert_eq!(walk.feed(&[0; 512]), Step::default());
}

fn spread(extended: u64, count: u64) -> Vec<NewLogical> {
    let logical = |index: u64| NewLogical {
        ebr_lba: extended + 100 * index,
        start: extended + 100 * index + 2,
        sectors: 90,
        kind: PartType::LINUX,
    };
    (0..count).map(logical).collect()
}

#[test]
fn an_encoded_chain_is_walked_to_what_was_asked_for() {
    let wanted = spread(2048, 30);
    let disk = encode_chain(2048, &wanted, GEOMETRY)
        .unwrap()
        .into_iter()
        .collect();
    let (found, errors) = walk(EbrWalk::new(2048, 3000), &disk);
    let back: Vec<_> = found
        .iter()
        .map(|l| NewLogical {
            ebr_lba: l.ebr_lba,
            start: l.start,
            sectors: l.sectors,
            kind: l.entry.kind,
        })
        .collect();
    assert_eq!((back, errors), (wanted, vec![]));
}

#[test]
fn a_chain_out_of_order_is_not_encoded() {
    let mut wrong = spread(2048, 3);
    wrong.swap(1, 2);
    assert!(encode_chain(2048, &wrong, GEOMETRY).is_err());
    assert!(encode_chain(2047, &spread(2048, 1), GEOMETRY).is_err());
    assert!(encode_chain(0, &spread(0, MAX_LOGICALS as u64 + 1), GEOMETRY).is_err());
}

proptest! {
    #[test]
    fn a_walk_over_any_records_ends(
        entries in proptest::collection::vec((any_entry(), any_entry()), 1..20),
        start in any::<u64>(),
        sectors in any::<u64>(),
    ) {
        let mut walk = EbrWalk::new(start, sectors);
        let mut steps = 0_usize;
        while walk.next_lba().is_some() {
            let (logical, next) = entries[steps % entries.len()];
            steps += 1;
            walk.feed(&Ebr { logical: Some(logical), next: Some(next) }.encode());
        }
        prop_assert!(steps <= MAX_LOGICALS);
    }
}
