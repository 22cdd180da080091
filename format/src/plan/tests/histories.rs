//! Random histories of verbs, for every scheme: partitions never overlap, written tables are read
//! back, and a stop after any sector leaves the table before the verb or the one after it.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Sectors that were written; all others are zeros.
#[derive(Clone, Default)]
struct Disk(BTreeMap<u64, Vec<u8>>);

const UNIT: usize = 512;

impl Disk {
    fn load(&self, scheme: Scheme) -> Option<Table> {
        let read = &mut |lba: u64, count: u64| {
            let sector = |lba| self.0.get(&lba).cloned().unwrap_or(vec![0; UNIT]);
            Ok((lba..lba + count).flat_map(sector).collect())
        };
        Table::load(scheme, MEDIA, read).ok()
    }

    fn parts(&self, scheme: Scheme) -> Option<Vec<Part>> {
        Some(self.load(scheme)?.parts())
    }

    /// Writes sector by sector; each time the table is one of two.
    fn write(&mut self, table: &Table, writes: &[SectorWrite], what: &str) {
        let scheme = table.scheme();
        let (old, mut done) = (self.parts(scheme), self.clone());
        let sectors = writes
            .iter()
            .flat_map(|write| (write.lba..).zip(write.data.chunks(UNIT)));
        let sectors: Vec<(u64, &[u8])> = sectors.collect();
        for (lba, data) in &sectors {
            done.0.insert(*lba, data.to_vec());
        }
        let new = done.parts(scheme);
        for (lba, data) in sectors {
            self.0.insert(lba, data.to_vec());
            let left = self.parts(scheme);
            assert!(
                left == old || left == new,
                "{what} in {scheme}, stopped after sector {lba}: {left:?}, not {old:?} or {new:?}"
            );
        }
    }
}

/// One verb with what it is asked for.
#[derive(Clone, Debug)]
enum Verb {
    Add(Option<u64>, Option<u64>, Option<u64>),
    Delete(u32),
    Resize(u32, Option<u64>),
    Modify(u32),
    Set(u32, bool),
}

fn verbs() -> impl Strategy<Value = Vec<Verb>> {
    let index = 0_u32..12;
    let sectors = || proptest::option::of(0_u64..9000);
    let verb = prop_oneof![
        4 => (proptest::option::of(0_u64..21_000), sectors(), proptest::option::of(1_u64..3000))
            .prop_map(|(start, sectors, align)| Verb::Add(start, sectors, align)),
        2 => index.clone().prop_map(Verb::Delete),
        2 => (index.clone(), sectors()).prop_map(|(index, sectors)| Verb::Resize(index, sectors)),
        1 => index.clone().prop_map(Verb::Modify),
        1 => (index, any::<bool>()).prop_map(|(index, on)| Verb::Set(index, on)),
    ];
    proptest::collection::vec(verb, 1..30)
}

fn apply(table: &mut Table, verb: &Verb) -> Result<(), Error> {
    let scheme = table.scheme();
    match *verb {
        Verb::Add(start, sectors, align_sectors) => {
            let wanted = NewPart {
                start,
                sectors,
                align_sectors,
                ..part(kind(scheme))
            };
            table.add(&wanted).map(drop)
        }
        Verb::Delete(index) => table.delete(index),
        Verb::Resize(index, sectors) => table.resize(index, sectors, None).map(drop),
        Verb::Modify(index) => {
            let number = if scheme == Scheme::Apm {
                "!Other"
            } else {
                "!7"
            };
            let number = if scheme == Scheme::Gpt { "efi" } else { number };
            table.change(index, &Change::Kind(number.to_owned()))
        }
        Verb::Set(index, on) => {
            // Only one partition is active at a time: of logical ones, each has
            // a record of its own, and moving the flag takes two writes.
            let name = match scheme {
                Scheme::Gpt => "bootme",
                Scheme::Ebr => return Ok(()),
                _ => "active",
            };
            let name = name.to_owned();
            table.change(index, &Change::Attribute { name, on })
        }
    }
}

/// The partitions are in the range and apart, and the rest is free.
fn check(table: &Table) {
    let (first, last) = table.usable();
    let mut at = first;
    let mut occupied = table.edit().occupied();
    occupied.sort_by_key(|part| part.start);
    for part in &occupied {
        assert!(
            part.sectors > 0 && part.start.max(first) >= at,
            "{occupied:?}"
        );
        at = part.start + part.sectors;
    }
    assert!(at <= last + 1);
    let free: u64 = table.free().iter().map(|span| span.sectors).sum();
    let used = |part: &Part| part.start + part.sectors - part.start.max(first);
    let used: u64 = occupied.iter().map(used).sum();
    assert_eq!(free + used, last + 1 - first);
    let grain = table.edit().grain();
    let whole =
        |part: &Part| part.start.is_multiple_of(grain) && part.sectors.is_multiple_of(grain);
    assert!(table.parts().iter().all(whole), "whole cylinders");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_history_leaves_sound_tables_and_every_stop_one_of_two(
        scheme in proptest::sample::select(EVERY.to_vec()),
        verbs in verbs(),
    ) {
        // A small table of a GPT: each of its sectors is a place to stop.
        let entries = (scheme == Scheme::Gpt).then_some(12);
        let create = Create { entries, random: [7; 16], ..Create::default() };
        let mut table = Table::create(scheme, MEDIA, &create).unwrap();
        let mut disk = Disk::default();
        disk.write(&table, &table.encode(), "create");
        prop_assert_eq!(disk.parts(scheme), Some(Vec::new()));
        for verb in verbs {
            let before = table.clone();
            match apply(&mut table, &verb) {
                Ok(()) => {}
                Err(_) => prop_assert_eq!(&table, &before, "{:?} was refused", verb),
            }
            check(&table);
            disk.write(&table, &table.encode(), &format!("{verb:?}"));
            prop_assert_eq!(disk.parts(scheme), Some(table.parts()), "{:?}", verb);
            // The next verb is another run of the program: it reads the table.
            table = disk.load(scheme).expect("it was written");
            prop_assert_eq!(table.damage(), Vec::<String>::new());
        }
        disk.write(&table, &table.destroy(), "destroy");
        prop_assert_eq!(disk.parts(scheme), None);
    }
}
