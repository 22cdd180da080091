//! Disklabels: places, damage, base, round trips. Real labels are in
//! `tests/disks.rs`.

use super::*;
use proptest::prelude::*;

fn label(starts: &[(u32, u32)]) -> Label {
    Label {
        drive_type: 5,
        drive_subtype: 0,
        type_name: *b"ugeom disk\0\0\0\0\0\0",
        pack_name: [0; 16],
        sector_size_bytes: 512,
        track_sectors: 63,
        cylinder_tracks: 255,
        cylinders: 10,
        cylinder_sectors: 63 * 255,
        unit_sectors: 160_650,
        hardware: [0; 68],
        boot_area_size_bytes: BOOT_AREA_SIZE_BYTES,
        superblock_size_bytes: 0,
        partitions: starts
            .iter()
            .map(|&(start, sectors)| Partition {
                start,
                sectors,
                ..Default::default()
            })
            .collect(),
        order: ByteOrder::Little,
        wrong_checksum: None,
    }
}

fn places(label: &Label) -> Vec<(char, u64, u64)> {
    label
        .slices()
        .map(|s| (s.letter(), s.start_bytes / 512, s.size_bytes / 512))
        .collect()
}

#[test]
fn absolute_starts_lose_the_raw_partitions_start() {
    let label = label(&[(63, 100), (163, 100), (63, 1000), (0, 0)]);
    assert_eq!(label.base(), 63);
    assert_eq!(
        places(&label),
        [('a', 0, 100), ('b', 100, 100), ('c', 0, 1000)]
    );
}

#[test]
fn relative_starts_stay() {
    let label = label(&[(16, 100), (116, 100), (0, 1000)]);
    assert_eq!(
        places(&label),
        [('a', 16, 100), ('b', 116, 100), ('c', 0, 1000)]
    );
}

#[test]
fn a_partition_before_the_raw_one_means_that_starts_are_relative() {
    let label = label(&[(16, 100), (116, 100), (63, 1000)]);
    assert_eq!(label.base(), 0);
    assert_eq!(places(&label)[2], ('c', 63, 1000));
}

#[test]
fn an_unused_partition_before_the_raw_one_does_not_count() {
    assert_eq!(label(&[(63, 9), (0, 0), (63, 1000)]).base(), 63);
    assert_eq!(label(&[(63, 9)]).base(), 0);
}

#[test]
fn a_label_is_found_at_each_of_its_places() {
    let wanted = label(&[(0, 100), (100, 100), (0, 1000)]);
    for (size, location, sector) in [
        (512_usize, Location::SectorOne, 1_usize),
        (512, Location::Alpha, 0),
        (4096, Location::SectorOne, 1),
        (4096, Location::Byte512, 0),
        (4096, Location::Alpha, 0),
    ] {
        let mut wanted = wanted.clone();
        wanted.sector_size_bytes = size as u32;
        let mut head = vec![0xee; 2 * size];
        put(&mut head[sector * size..][..size], location, &wanted).unwrap();
        assert_eq!(
            find(&head, size as u32),
            Ok((location, wanted)),
            "{location:?} {size}"
        );
    }
}

#[test]
fn the_first_place_wins() {
    let (early, late) = (label(&[(0, 1)]), label(&[(0, 2)]));
    let mut head = vec![0; 1024];
    put(&mut head[..512], Location::Alpha, &late).unwrap();
    put(&mut head[512..], Location::SectorOne, &early).unwrap();
    assert_eq!(find(&head, 512), Ok((Location::SectorOne, early)));
    // A damaged one in front does not hide the good one behind it.
    head[512 + 150] ^= 1;
    assert_eq!(find(&head, 512), Ok((Location::Alpha, late)));
}

#[test]
fn the_alpha_checksum_is_kept() {
    let mut sector = [3; 512];
    put(&mut sector, Location::Alpha, &label(&[(0, 1)])).unwrap();
    assert_eq!(bytes::u64_le(&sector, 504), alpha_checksum(&sector));
    assert_eq!(sector[..64], [3; 64]);
}

fn damaged(damage: impl FnOnce(&mut Vec<u8>)) -> Error {
    let mut data = label(&[(0, 1), (0, 2), (0, 3)]).encode().unwrap();
    data.resize(512, 0);
    damage(&mut data);
    Label::decode(&data, 512, 512).unwrap_err()
}

#[test]
fn each_damage_is_named() {
    let magic = |field, found| Error::Magic {
        offset: 512,
        field,
        found,
    };
    assert_eq!(damaged(|d| d[0] = 0), magic(0, 0x8256_4500));
    assert_eq!(damaged(|d| d[132] = 0), magic(132, 0x8256_4500));
    assert_eq!(damaged(|d| d[..4].reverse()), magic(132, 0x5745_5682));
    for found in [23, 0] {
        let expected = Error::PartitionCount {
            offset: 512,
            found,
            most: 22,
        };
        assert_eq!(damaged(|d| d[138] = found as u8), expected);
    }
    assert_eq!(
        damaged(|d| d.truncate(147)),
        Error::Short {
            offset: 512,
            found: 147,
            expected: 148
        }
    );
}

#[test]
fn a_wrong_checksum_is_said_and_put_right_by_writing() {
    let good = label(&[(0, 1), (0, 2), (0, 3)]);
    let mut data = good.encode().unwrap();
    let right = bytes::u16_le(&data, 136);
    bytes::put_u16_le(&mut data, 136, right ^ 0x0101);
    let found = Label::decode(&data, 512, 512).unwrap();
    let (stored, expected) = (right ^ 0x0101, right);
    assert_eq!(found.wrong_checksum, Some(stored));
    assert_eq!(
        found.verify(512),
        Err(Error::Checksum {
            offset: 512,
            found: stored,
            expected
        })
    );
    assert_eq!(found.encode(), good.encode());
    assert_eq!(good.verify(512), Ok(()));
}

#[test]
fn sectors_smaller_than_the_providers_are_refused() {
    let data = label(&[(0, 1)]).encode().unwrap();
    assert_eq!(
        Label::decode(&data, 4096, 4096),
        Err(Error::SectorSize {
            offset: 4096,
            found: 512,
            provider: 4096
        })
    );
    let mut none = label(&[(0, 1)]);
    none.sector_size_bytes = 0;
    let data = none.encode().unwrap();
    assert!(matches!(
        Label::decode(&data, 512, 512),
        Err(Error::SectorSize { .. })
    ));
}

#[test]
fn nothing_is_found_in_nothing() {
    for size in [0, 1, 63, 64, 511, 512, 1024] {
        assert_eq!(find(&vec![0; size], 512), Err(Error::NotFound));
        assert_eq!(find(&vec![0; size], 4096), Err(Error::NotFound));
    }
}

#[test]
fn as_many_partitions_fit_as_the_sector_holds() {
    assert_eq!(Location::SectorOne.max_partitions(512), 22);
    assert_eq!(Location::Alpha.max_partitions(512), 18);
    assert_eq!(Location::Alpha.max_partitions(4096), 22);
    let full = label(&[(0, 1); 19]);
    let mut sector = [0; 512];
    assert_eq!(
        put(&mut sector, Location::Alpha, &full),
        Err(Error::TooMany {
            found: 19,
            most: 18
        })
    );
    assert_eq!(put(&mut sector, Location::SectorOne, &full), Ok(()));
    assert!(label(&[]).encode().is_err());
    assert!(label(&[(0, 1); 23]).encode().is_err());
}

fn any_label() -> impl Strategy<Value = Label> {
    let partition = (
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        any::<[u8; 2]>(),
        any::<u16>(),
    )
        .prop_map(
            |(sectors, start, fragment_size_bytes, [kind, fragments], group)| Partition {
                sectors,
                start,
                fragment_size_bytes,
                kind: FsType(kind),
                fragments,
                group,
            },
        );
    (
        proptest::collection::vec(partition, 1..=22),
        (any::<[u16; 2]>(), any::<bool>()),
        any::<[[u8; 16]; 2]>(),
        any::<[u32; 7]>(),
        1_u32..128,
        proptest::collection::vec(any::<u8>(), 68),
    )
        .prop_map(
            |(partitions, (types, big), names, numbers, factor, hardware)| Label {
                drive_type: types[0],
                drive_subtype: types[1],
                type_name: names[0],
                pack_name: names[1],
                sector_size_bytes: 512 * factor,
                track_sectors: numbers[0],
                cylinder_tracks: numbers[1],
                cylinders: numbers[2],
                cylinder_sectors: numbers[3],
                unit_sectors: numbers[4],
                hardware: bytes::take(&hardware, 0),
                boot_area_size_bytes: numbers[5],
                superblock_size_bytes: numbers[6],
                partitions,
                order: if big {
                    ByteOrder::Big
                } else {
                    ByteOrder::Little
                },
                wrong_checksum: None,
            },
        )
}

proptest! {
    #[test]
    fn any_label_survives_encoding_and_decoding(label in any_label()) {
        let data = label.encode().unwrap();
        prop_assert_eq!(Label::decode(&data, 512, 512), Ok(label.clone()));
        prop_assert!(label.slices().count() <= MAX_PARTITIONS);
    }
}
