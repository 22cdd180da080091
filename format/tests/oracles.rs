//! The crates `mbrman` and `gptman` as oracles: their tables are read here, and tables written here
//! are read by them, field by field.

use proptest::prelude::*;
use std::io::Cursor;
use ugeom_format::{Media, ebr, gpt, mbr};

const GEOMETRY: mbr::Geometry = mbr::Geometry {
    heads: 255,
    sectors: 63,
};
const DISK_SECTORS: u32 = 40_000;

fn theirs(chs: mbr::Chs) -> mbrman::CHS {
    mbrman::CHS::new(chs.cylinder, chs.head, chs.sector)
}

fn assert_same_entry(ours: &mbr::Entry, oracle: &mbrman::MBRPartitionEntry) {
    assert_eq!(ours.flag, oracle.boot);
    assert_eq!(ours.kind.0, oracle.sys);
    assert_eq!(theirs(ours.first_chs), oracle.first_chs);
    assert_eq!(theirs(ours.last_chs), oracle.last_chs);
    assert_eq!(ours.sectors, oracle.sectors);
}

/// An extended partition from sector 10,000 to the end, with logical
/// partitions of the given lengths one after the other.
fn extended(lengths: &[u32]) -> (mbr::Entry, Vec<ebr::NewLogical>) {
    let kind = mbr::PartType::EXTENDED_LBA;
    let entry = mbr::Entry::new(kind, 10_000, DISK_SECTORS - 10_000, GEOMETRY);
    let mut at = 10_000;
    let mut logicals = Vec::new();
    for &length in lengths {
        let (start, sectors) = (at + 8, u64::from(length));
        logicals.push(ebr::NewLogical {
            ebr_lba: at,
            start,
            sectors,
            kind: mbr::PartType(0x83),
        });
        at = start + sectors + 3;
    }
    (entry, logicals)
}

fn walk(image: &[u8], entry: &mbr::Entry, sector: usize) -> Vec<ebr::Logical> {
    let mut walk = ebr::EbrWalk::new(u64::from(entry.start), u64::from(entry.sectors));
    let mut found = Vec::new();
    while let Some(lba) = walk.next_lba() {
        let step = walk.feed(&image[lba as usize * sector..][..sector]);
        assert_eq!(step.error, None);
        found.extend(step.logical);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn mbrman_reads_what_is_written_here(
        starts in proptest::array::uniform3((1_u32..5000, 1_u32..5000, 1_u8..=4)),
        lengths in proptest::collection::vec(1_u32..500, 1..20),
        disk_id in any::<u32>(),
        sector in prop_oneof![Just(512_usize), Just(4096)],
    ) {
        let (entry, logicals) = extended(&lengths);
        let mut table = mbr::Mbr::empty(disk_id);
        for (place, (start, sectors, kind)) in starts.into_iter().enumerate() {
            table.entries[place] = mbr::Entry::new(mbr::PartType(kind), start, sectors, GEOMETRY);
        }
        table.entries[1].flag = 0x80;
        table.entries[3] = entry;
        let mut image = vec![0; DISK_SECTORS as usize * sector];
        image[..512].copy_from_slice(&table.encode());
        for (lba, bytes) in ebr::encode_chain(10_000, &logicals, GEOMETRY).unwrap() {
            image[lba as usize * sector..][..512].copy_from_slice(&bytes);
        }

        let oracle = mbrman::MBR::read_from(&mut Cursor::new(&image), sector as u32).unwrap();
        prop_assert_eq!(oracle.header.disk_signature, disk_id.to_le_bytes());
        for (place, ours) in table.entries.iter().enumerate() {
            let entry = oracle.header.get(place + 1).unwrap();
            assert_same_entry(ours, entry);
            prop_assert_eq!(ours.start, entry.starting_lba);
        }
        let ours = walk(&image, &entry, sector);
        prop_assert_eq!(ours.len(), lengths.len());
        prop_assert_eq!(ours.len(), oracle.logical_partitions.len());
        for (ours, oracle) in ours.iter().zip(&oracle.logical_partitions) {
            assert_same_entry(&ours.entry, &oracle.partition);
            prop_assert_eq!(ours.start, u64::from(oracle.partition.starting_lba));
            prop_assert_eq!(ours.ebr_lba, u64::from(oracle.absolute_ebr_lba));
        }
    }

    #[test]
    fn what_mbrman_writes_is_read_here(
        start in 1_u32..5000,
        sectors in 1_u32..5000,
        kind in 6_u8..=14,
        lengths in proptest::collection::vec(2_u32..100, 1..20),
        disk_id in any::<[u8; 4]>(),
    ) {
        let sector = 512;
        let mut image = Cursor::new(vec![0; DISK_SECTORS as usize * sector]);
        let mut oracle = mbrman::MBR::new_from(&mut image, sector as u32, disk_id).unwrap();
        (oracle.cylinders, oracle.heads, oracle.sectors, oracle.align) = (100, 255, 63, 1);
        let entry = |sys, starting_lba, sectors| mbrman::MBRPartitionEntry {
            boot: mbrman::BOOT_INACTIVE,
            first_chs: mbrman::CHS::from_lba_exact(starting_lba, 100, 255, 63).unwrap(),
            sys,
            last_chs: mbrman::CHS::from_lba_exact(starting_lba + sectors - 1, 100, 255, 63)
                .unwrap(),
            starting_lba,
            sectors,
        };
        oracle[2] = entry(kind, start, sectors);
        oracle[3] = entry(0x05, 10_000, 20_000);
        let mut at = 10_000;
        for &length in &lengths {
            oracle.push(0x83, at, length).unwrap();
            at += length;
        }
        oracle.write_into(&mut image).unwrap();
        let image = image.into_inner();

        let table = mbr::Mbr::decode(&image[..512]).unwrap();
        prop_assert_eq!(table.disk_id, u32::from_le_bytes(disk_id));
        let slices: Vec<_> = table.slices().collect();
        prop_assert_eq!(slices.len(), 2);
        for (number, ours) in &slices {
            let oracle = oracle.header.get(*number).unwrap();
            assert_same_entry(ours, oracle);
            prop_assert_eq!(ours.start, oracle.starting_lba);
            // The address computed here is the one computed there.
            let again = mbr::Entry::new(ours.kind, ours.start, ours.sectors, GEOMETRY);
            prop_assert_eq!(&again, *ours);
        }
        let found = walk(&image, slices[1].1, sector);
        prop_assert_eq!(found.len(), oracle.logical_partitions.len());
        for (ours, oracle) in found.iter().zip(&oracle.logical_partitions) {
            prop_assert_eq!(ours.start, u64::from(oracle.partition.starting_lba));
            prop_assert_eq!(ours.sectors, u64::from(oracle.partition.sectors));
        }
    }
}

fn read(image: &[u8], media: Media) -> gpt::Gpt {
    let size = media.sector_size_bytes as usize;
    gpt::Gpt::read(media, &mut |lba, count| {
        Ok(image[lba as usize * size..][..count as usize * size].to_vec())
    })
}

fn assert_same_partition(ours: &gpt::Entry, oracle: &gptman::GPTPartitionEntry) {
    assert_eq!(ours.kind.0, oracle.partition_type_guid);
    assert_eq!(ours.guid.0, oracle.unique_partition_guid);
    assert_eq!(
        (ours.first, ours.last),
        (oracle.starting_lba, oracle.ending_lba)
    );
    assert_eq!(ours.attributes, oracle.attribute_bits);
    assert_eq!(ours.label(), oracle.partition_name.as_str());
}

fn assert_same_header(ours: &gpt::Header, oracle: &gptman::GPTHeader) {
    assert_eq!(
        (ours.my_lba, ours.alternate_lba),
        (oracle.primary_lba, oracle.backup_lba)
    );
    assert_eq!(ours.first_usable, oracle.first_usable_lba);
    assert_eq!(ours.last_usable, oracle.last_usable_lba);
    assert_eq!(ours.disk_guid.0, oracle.disk_guid);
    assert_eq!(ours.table_lba, oracle.partition_entry_lba);
    assert_eq!(ours.entry_count, oracle.number_of_partition_entries);
    assert_eq!(ours.entry_size_bytes, oracle.size_of_partition_entry);
    assert_eq!(ours.table_crc, oracle.partition_entry_array_crc32);
}

type Spec = (u8, [u8; 16], [u8; 16], u64, u64, u64, String);

fn any_partitions() -> impl Strategy<Value = Vec<Spec>> {
    let spec = (
        0_u8..128,
        any::<[u8; 16]>(),
        any::<[u8; 16]>(),
        34_u64..900,
        0_u64..50,
        any::<u64>(),
        "[a-zA-Zäß\u{1f333} ]{0,18}",
    );
    proptest::collection::vec(spec, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gptman_reads_what_is_written_here(
        specs in any_partitions(),
        disk_guid in any::<[u8; 16]>(),
        size in prop_oneof![Just(512_u32), Just(4096)],
        primary_lost in any::<bool>(),
    ) {
        let media = Media { sector_size_bytes: size, sectors: 1000 };
        let mut table = gpt::Table::create(media, 128, gpt::Guid(disk_guid)).unwrap();
        for (place, kind, guid, first, length, attributes, name) in specs {
            let entry = &mut table.entries[usize::from(place)];
            (entry.kind, entry.guid) = (gpt::Guid(kind), gpt::Guid(guid));
            (entry.first, entry.last, entry.attributes) = (first, first + length, attributes);
            prop_assert!(entry.set_label(&name));
        }
        let mut image = vec![0; 1000 * size as usize];
        for write in table.encode(media) {
            let at = write.lba as usize * size as usize;
            image[at..at + write.data.len()].copy_from_slice(&write.data);
        }
        if primary_lost {
            image[size as usize] = 0;
        }
        let oracle = gptman::GPT::read_from(&mut Cursor::new(&image), u64::from(size)).unwrap();
        prop_assert_eq!(oracle.is_backup(), primary_lost);
        let gpt = read(&image, media);
        let (_, ours) = gpt.best().unwrap();
        assert_same_header(&ours.header, &oracle.header);
        for (place, ours) in table.entries.iter().enumerate() {
            assert_same_partition(ours, &oracle[place as u32 + 1]);
        }
    }

    #[test]
    fn what_gptman_writes_is_read_here(
        specs in any_partitions(),
        disk_guid in any::<[u8; 16]>(),
        size in prop_oneof![Just(512_u64), Just(4096)],
    ) {
        let mut image = Cursor::new(vec![0; 1000 * size as usize]);
        gptman::GPT::write_protective_mbr_into(&mut image, size).unwrap();
        let mut oracle = gptman::GPT::new_from(&mut image, size, disk_guid).unwrap();
        for (index, (_, kind, guid, _, length, attributes, name)) in specs.into_iter().enumerate()
        {
            let first = 40 + 45 * index as u64;
            oracle[index as u32 + 1] = gptman::GPTPartitionEntry {
                partition_type_guid: kind.map(|byte| byte | 1),
                unique_partition_guid: guid.map(|byte| byte | index as u8),
                starting_lba: first,
                ending_lba: first + length.min(40),
                attribute_bits: attributes,
                partition_name: name.as_str().into(),
            };
        }
        // Two partitions with one GUID are refused there.
        let Ok(header) = oracle.write_into(&mut image) else { return Ok(()) };
        let image = image.into_inner();
        let media = Media { sector_size_bytes: size as u32, sectors: 1000 };
        let gpt = read(&image, media);
        prop_assert_eq!(gpt.findings(), vec![]);
        prop_assert!(gpt.backup.is_ok());
        let ours = gpt.primary.unwrap();
        assert_same_header(&ours.header, &oracle.header);
        prop_assert_eq!(header.primary_lba, 999);
        for (place, ours) in ours.entries.iter().enumerate() {
            assert_same_partition(ours, &oracle[place as u32 + 1]);
        }
        // The protective MBR is the same, byte for byte.
        let expected = mbr::Mbr::decode(&image[..512]).unwrap();
        prop_assert_eq!(expected.kind(), mbr::MbrKind::Protective);
        prop_assert_eq!(expected.entries[0].sectors, mbr::Mbr::protective(1000).entries[0].sectors);
        // Written again from here, nothing changes.
        let mut again = vec![0; image.len()];
        for write in ours.encode(media) {
            let at = write.lba as usize * size as usize;
            again[at..at + write.data.len()].copy_from_slice(&write.data);
        }
        prop_assert_eq!(&again[size as usize..], &image[size as usize..]);
    }
}
