//! Places by hand-made structures, and the cost of hostile ones. Images of real programs are
//! searched by the tests of the program.

use super::*;
use crate::bsd;
use crate::gpt::{self, Entry, types};
use crate::media::Media;
use proptest::prelude::*;

/// Its content, its first sector and its length in sectors.
pub(super) fn extent(one: &Lost) -> (Holds, u64, u64) {
    (one.place.holds, one.first, one.sectors)
}

pub(super) fn search_in(disk: &[u8]) -> Search {
    let mut search = Search::new(disk.len() as u64, 512);
    let mut read = |offset: u64, length: usize| {
        let at = offset as usize;
        let end = at.saturating_add(length).min(disk.len());
        Ok(disk.get(at..end).unwrap_or_default().to_vec())
    };
    search.look(0, disk, &mut read);
    search
}

pub(super) fn put(disk: &mut [u8], at: usize, bytes: &[u8]) {
    disk[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A superblock of ext2 with blocks of 1 KiB, of a group.
pub(super) fn ext_superblock(blocks: u32, group: u16) -> [u8; 512] {
    let mut sector = [0; 512];
    put(&mut sector, 0, &64_u32.to_le_bytes());
    put(&mut sector, 4, &blocks.to_le_bytes());
    put(&mut sector, 20, &1_u32.to_le_bytes());
    put(&mut sector, 32, &8192_u32.to_le_bytes());
    put(&mut sector, 56, &[0x53, 0xef]);
    put(&mut sector, 90, &group.to_le_bytes());
    sector
}

#[test]
fn copies_of_a_superblock_state_where_it_begins() {
    let mut disk = vec![0; 24 << 20];
    let start = 3 << 20;
    for group in [0_u16, 1] {
        let block = 1 + usize::from(group) * 8192;
        put(
            &mut disk,
            start + block * 1024,
            &ext_superblock(16_384, group),
        );
    }
    let lost = search_in(&disk).partitions();
    let [one] = lost.as_slice() else { panic!("{lost:?}") };
    assert_eq!((one.first, one.sectors), (6144, 32_768));
    assert_eq!((one.place.holds, one.place.sign_count), (Holds::Ext, 2));
    // The copy alone is enough.
    disk[start..start + 8192].fill(0);
    let lost = search_in(&disk).partitions();
    assert_eq!(
        (lost.len(), lost[0].first, lost[0].sectors),
        (1, 6144, 32_768)
    );
    assert_eq!(lost[0].place.signs[0].what, "copy of the superblock");
}

#[test]
fn a_backup_gpt_gives_the_whole_table() {
    let media = Media::of_512(20_480);
    let mut table = gpt::Table::create(media, 128, gpt::Guid([1; 16])).unwrap();
    for (index, first) in [(0, 2048), (3, 8192)] {
        let mut entry = Entry {
            kind: types::LINUX_DATA,
            guid: gpt::Guid([index as u8 + 1; 16]),
            first,
            last: first + 4095,
            ..Entry::default()
        };
        if index == 0 {
            entry.attributes = 5 | gpt::ATTR_BOOTME;
        }
        assert!(entry.set_label(if index == 0 { "a \"b\\" } else { "data" }));
        table.entries[index] = entry;
    }
    let mut disk = vec![0; 10 << 20];
    for write in table.encode(media) {
        put(&mut disk, write.lba as usize * 512, &write.data);
    }
    disk[..1 << 20].fill(0);
    let lost = search_in(&disk).partitions();
    let places: Vec<_> = lost.iter().map(|one| (one.first, one.sectors)).collect();
    assert_eq!(places, [(2048, 4096), (8192, 4096)]);
    assert_eq!(
        gpart_script(&lost, ScriptScheme::Gpt),
        "GPT 128\n\
         1   linux-data  2048  4096 a\\040\"b\\134  [bootme] \n\
         4   linux-data  8192  4096 data \n\
         # disk uuid=01010101-0101-0101-0101-010101010101\n\
         # 1 uuid=01010101-0101-0101-0101-010101010101 attributes=0x800000000000005\n\
         # 4 uuid=04040404-0404-0404-0404-040404040404\n"
    );
    let guid = |digits: &str| {
        let times = |count| digits.repeat(count);
        let (four, two, six) = (times(4), times(2), times(6));
        format!("{four}-{two}-{two}-{two}-{six}")
    };
    let kind = types::LINUX_DATA.to_string().to_uppercase();
    let script = sfdisk_script(&lost, ScriptScheme::Gpt, 512);
    let expected = format!(
        "label: gpt\nlabel-id: {}\nunit: sectors\nsector-size: 512\n\n\
         1 : start=2048, size=4096, type={kind}, uuid={}, name=\"a \\x22b\\x5c\", \
         attrs=\"RequiredPartition LegacyBIOSBootable GUID:59\"\n\
         4 : start=8192, size=4096, type={kind}, uuid={}, name=\"data\"\n",
        "01010101-0101-0101-0101-010101010101",
        guid("01"),
        guid("04")
    );
    assert_eq!(script, expected);
    assert!(sfdisk_script(&lost, ScriptScheme::Mbr, 512).ends_with(
        "label: dos\nunit: sectors\nsector-size: 512\n\n\
         1 : start=2048, size=4096, type=83\n2 : start=8192, size=4096, type=83\n"
    ));
}

#[test]
fn what_lies_over_a_better_one_refers_to_it() {
    let mut disk = vec![0; 24 << 20];
    for (start, blocks) in [(1 << 20, 16_384), (4 << 20, 4096)] {
        put(&mut disk, start + 1024, &ext_superblock(blocks, 0));
    }
    let lost = search_in(&disk).partitions();
    let over: Vec<_> = lost.iter().map(|one| (one.first, one.over)).collect();
    assert_eq!(over, [(2048, None), (8192, Some(2048))]);
    assert_eq!(
        ScriptScheme::fitting(&lost, 24 << 11, 512),
        ScriptScheme::Gpt
    );
    assert_eq!(
        gpart_script(&lost, ScriptScheme::Mbr),
        "MBR 4\n1 !131  2048 32768  \n"
    );
}

/// A header of LUKS2 and its copy, with this text.
fn put_luks2(disk: &mut [u8], start: usize, text: &str) {
    for (magic, before) in [(b"LUKS\xba\xbe", 0), (b"SKUL\xba\xbe", 16 << 10)] {
        let at = start + before;
        put(disk, at, magic);
        put(disk, at + 6, &2_u16.to_be_bytes());
        put(disk, at + 8, &(16_u64 << 10).to_be_bytes());
        put(disk, at + 256, &(before as u64).to_be_bytes());
        put(disk, at + 4096, text.as_bytes());
    }
}

/// A version 1 swap area of 1 MiB.
fn put_swap(disk: &mut [u8], start: usize) {
    put(disk, start + 1024, &1_u32.to_le_bytes());
    put(disk, start + 1028, &255_u32.to_le_bytes());
    put(disk, start + 4086, b"SWAPSPACE2");
}

const DYNAMIC: &str = r#"{"keyslots":{"0":{"area":{"offset":"32768","size":"258048"}}},
    "segments":{"0":{"type":"crypt","offset":"1048576","size":"dynamic"}},"digests":{}}"#;

#[test]
fn a_container_ends_where_its_header_says() {
    let text = r#"{"segments": {"0": {"offset": "1048576", "size": "2097152", "flags": []},
        "1": {"size": "1048576", "offset": "3145728"}}, "digests": {"0": {"size": "9"}}}"#;
    for (text, ends) in [
        (text, Some(8192)),
        (DYNAMIC, None),
        ("{\"segments\":{", None),
    ] {
        let mut disk = vec![0; 8 << 20];
        put_luks2(&mut disk, 1 << 20, text);
        let lost = search_in(&disk).partitions();
        let [one] = lost.as_slice() else { panic!("{lost:?}") };
        assert_eq!((one.place.holds, one.first), (Holds::Luks, 2048));
        assert_eq!((one.guessed_end, one.place.sign_count), (ends.is_none(), 2));
        assert_eq!(one.sectors, ends.unwrap_or((8 << 11) - 2048));
    }
}

#[test]
fn a_container_of_unknown_length_ends_at_the_next_partition() {
    let mut disk = vec![0; 8 << 20];
    put_luks2(&mut disk, 1 << 20, DYNAMIC);
    put_swap(&mut disk, 4 << 20);
    put_luks2(&mut disk, 5 << 20, DYNAMIC);
    let mut lost = search_in(&disk).partitions();
    let scheme = ScriptScheme::fitting(&lost, 8 << 11, 512);
    assert_eq!(scheme, ScriptScheme::Gpt);
    scheme.shorten(&mut lost, 8 << 11, 512);
    assert_eq!(
        gpart_script(&lost, scheme),
        "GPT 128\n\
         1   linux-data  2048  6144  \n\
         2   linux-swap  8192  2048  \n\
         3   linux-data 10240  6111  \n"
    );
    // An MBR leaves the last sectors to it.
    let mut lost = search_in(&disk).partitions();
    ScriptScheme::Mbr.shorten(&mut lost, 8 << 11, 512);
    assert_eq!(lost.last().map(|one| one.sectors), Some(6144));
}

#[test]
fn a_physical_volume_is_found_with_sectors_of_any_size() {
    for sector in [512, 4096] {
        let mut disk = vec![0; 8 << 20];
        let label = (1 << 20) + 512;
        put(&mut disk, label, b"LABELONE");
        put(&mut disk, label + 8, &1_u64.to_le_bytes());
        put(&mut disk, label + 20, &32_u32.to_le_bytes());
        put(&mut disk, label + 24, b"LVM2 001");
        put(&mut disk, label + 64, &(5_u64 << 20).to_le_bytes());
        let mut search = Search::new(disk.len() as u64, sector);
        search.look(0, &disk, &mut |_, _| {
            Err("nothing more is needed".to_owned())
        });
        let lost = search.partitions();
        let unit = u64::from(sector);
        let found: Vec<_> = lost
            .iter()
            .map(|one| (one.place.holds, one.first * unit, one.sectors * unit))
            .collect();
        assert_eq!(found, [(Holds::Lvm2, 1 << 20, 5 << 20)]);
    }
}

#[test]
fn a_hostile_medium_costs_bounded_memory() {
    let mut disk = vec![0; 6 << 20];
    for (number, sector) in (0_u32..).zip(disk.chunks_exact_mut(512)).skip(3) {
        sector.copy_from_slice(&ext_superblock(9000 + number, 0));
    }
    let search = search_in(&disk);
    assert!(search.overflowed());
    assert_eq!(search.partitions().len(), MOST_FOUND);
}

#[test]
fn samples_are_where_partitions_begin_and_not_too_many() {
    let search = Search::new(4 << 40, 4096);
    let samples = search.samples(1000);
    assert!(
        samples.len() <= 1002 && samples.len() > 400,
        "{}",
        samples.len()
    );
    assert!(samples.iter().all(|at| at % 4096 == 0));
    let small = Search::new(8 << 20, 512).samples(1000);
    assert!(small.contains(&(63 * 512)) && small.contains(&(1 << 20)));
}

proptest! {
    #[test]
    fn any_structures_are_searched_without_panic(
        mut sectors in proptest::collection::vec(any::<[u8; 32]>(), 1..24),
        magics in proptest::collection::vec((0_usize..24, 0_usize..18), 1..24),
        fill in proptest::collection::vec((0_usize..12_288, any::<u8>()), 0..2000),
    ) {
        const MAGICS: [(usize, &[u8]); 18] = [
            (56, &[0x53, 0xef]), (0, b"XFSB"), (0, b"LUKS\xba\xbe\0\x02"),
            (0, b"SKUL\xba\xbe\0\x02"),
            (0, b"LABELONE"), (0, b"EFI PART"), (0, &[0x10, 0x20, 0xf5, 0xf2]), (0, b"H+\0\x04"),
            (3, b"NTFS    "), (3, b"EXFAT   "), (82, b"FAT32"), (64, b"_BHRfS_M"),
            (348, &[0x19, 1, 0x54, 0x19]), (502, b"SWAPSPACE2"),
            (0, &[2, 0, 3, 0]), (0, &[0xce, 0xfa, 0xad, 0x1b]), (16, &[0x7f, 0x13]),
            (12, &[0xee, 0xde, 0x0d, 0x60]),
        ];
        let mut disk = vec![0; 24 * 512];
        for (number, bytes) in sectors.drain(..).enumerate() {
            put(&mut disk, number * 512, &bytes);
        }
        for (at, byte) in fill {
            disk[at] = byte;
        }
        for (sector, magic) in magics {
            let (at, bytes) = MAGICS[magic];
            put(&mut disk, sector * 512 + at, bytes);
            put(&mut disk, sector * 512 + 510, &[0x55, 0xaa]);
        }
        let search = search_in(&disk);
        let lost = search.partitions();
        for one in &lost {
            prop_assert!(one.sectors > 0 && one.first + one.sectors <= 24);
        }
        let scheme = ScriptScheme::fitting(&lost, 24, 512);
        let _ = (gpart_script(&lost, scheme), sfdisk_script(&lost, scheme, 512), search.ends());
    }
}

/// Two containers that do not state their ends, one behind the other, and what lies in neither.
#[test]
fn what_states_no_end_ends_where_the_next_one_begins() {
    let mut disk = vec![0; 12 << 20];
    for start in [1 << 20, 4 << 20] {
        put(&mut disk, start, b"LUKS\xba\xbe\0\x01");
    }
    // A backing device of bcache.
    put(
        &mut disk,
        (7 << 20) + 4096 + 8,
        &[8, 0, 0, 0, 0, 0, 0, 0, 1],
    );
    put(&mut disk, (7 << 20) + 4096 + 24, &[0xc6, 0x85, 0x73, 0xf6]);
    let lost = search_in(&disk).partitions();
    let found: Vec<_> = lost.iter().map(extent).collect();
    let expected = [
        (Holds::Luks, 2048, 3 * 2048),
        (Holds::Luks, 4 * 2048, 3 * 2048),
        (Holds::Bcache, 7 * 2048, 5 * 2048),
    ];
    assert_eq!(found, expected);
    assert!(lost.iter().all(|one| one.guessed_end && one.over.is_none()));
}

/// Members of MD RAID with the superblock at either end, and a container of APFS.
#[test]
fn members_of_raid_state_where_they_begin() {
    const MD: [u8; 4] = [0xfc, 0x4e, 0x2b, 0xa9];
    let word = |value: u64| value.to_le_bytes();
    let mut disk = vec![0; 20 << 20];
    // Version 1.2: the superblock at 4 KiB, data from 1 MiB on.
    let at = (1 << 20) + 4096;
    put(&mut disk, at, &MD);
    put(&mut disk, at + 4, &[1]);
    put(
        &mut disk,
        at + 128,
        &[word(2048), word(4096), word(8)].concat(),
    );
    // Version 1.0: the superblock behind the data.
    let at = (5 << 20) + (2 << 20) - 8192;
    put(&mut disk, at, &MD);
    put(&mut disk, at + 4, &[1]);
    put(
        &mut disk,
        at + 128,
        &[word(0), word(4000), word(4080)].concat(),
    );
    // Version 0.90: 64 KiB before the end.
    let at = (8 << 20) + (1 << 20);
    put(&mut disk, at, &MD);
    put(&mut disk, at + 8, &[90]);
    put(&mut disk, at + 32, &word(1024));
    put(
        &mut disk,
        (10 << 20) + 32,
        b"NXSB\0\x10\0\0\0\x02\0\0\0\0\0\0",
    );
    let lost = search_in(&disk).partitions();
    let found: Vec<_> = lost.iter().map(extent).collect();
    let expected = [
        (Holds::Md, 2048, 2048 + 4096),
        (Holds::Md, 5 * 2048, 4088),
        (Holds::Md, 8 * 2048, 2048 + 128),
        (Holds::Apfs, 10 * 2048, 4096),
    ];
    assert_eq!(found, expected);
}

#[test]
fn cramfs_begins_at_its_superblock_or_a_boot_sector_before() {
    for before in [0, 512] {
        let mut disk = vec![0; 4 << 20];
        let at = (1 << 20) + before;
        put(&mut disk, at, &[0x45, 0x3d, 0xcd, 0x28, 0, 0x10]);
        put(&mut disk, at + 16, b"Compressed ROMFS");
        let lost = search_in(&disk).partitions();
        let found: Vec<_> = lost.iter().map(extent).collect();
        assert_eq!(found, [(Holds::Cramfs, 2048, 8)], "{before}");
    }
}

/// Of two superblocks of NILFS2, HFS and JFS one is enough.
#[test]
fn one_of_two_superblocks_is_enough() {
    let word = |value: u64| value.to_le_bytes();
    let length = 4_u64 << 20;
    let mut nilfs2 = [0; 512];
    put(&mut nilfs2, 0, &[2, 0, 0, 0, 0, 0, 0x34, 0x34, 0x18, 1]);
    put(&mut nilfs2, 32, &word(length));
    let mut jfs = [0; 512];
    put(&mut jfs, 0, b"JFS1\x01");
    put(&mut jfs, 8, &word(length / 512));
    put(&mut jfs, 16, &[0, 16]);
    put(&mut jfs, 24, &[0, 2]);
    let mut hfs = [0; 512];
    put(&mut hfs, 0, b"BD");
    put(
        &mut hfs,
        14,
        &[0, 3, 0, 0, 0x1f, 0xf8, 0, 0, 2, 0, 0, 0, 0, 0, 0, 6],
    );
    put(&mut hfs, 36, b"\x03mac");
    let hfs_bytes = 6 * 512 + 0x1ff8 * 512 + 1024;
    let cases = [
        (Holds::Nilfs2, nilfs2, length, [1024, length - 4096]),
        (Holds::Jfs, jfs, length, [32 << 10, 60 << 10]),
        (Holds::Hfs, hfs, hfs_bytes, [1024, hfs_bytes - 1024]),
    ];
    for (holds, superblock, length, places) in cases {
        for kept in [&places[..], &places[..1], &places[1..]] {
            let mut disk = vec![0; 8 << 20];
            for place in kept {
                put(&mut disk, (1 << 20) + *place as usize, &superblock);
            }
            let lost = search_in(&disk).partitions();
            let [one] = lost.as_slice() else { panic!("{holds:?} {kept:?}: {lost:?}") };
            let found = (
                one.place.holds,
                one.first,
                one.sectors,
                one.place.sign_count,
            );
            assert_eq!(found, (holds, 2048, length / 512, kept.len()), "{kept:?}");
        }
    }
}

/// A disklabel with `c` and these partitions (first sector, sectors), encoded.
fn disklabel(raw: (u32, u32), parts: &[(u32, u32)]) -> Vec<u8> {
    let part = |&(start, sectors): &(u32, u32), kind| bsd::Partition {
        start,
        sectors,
        kind,
        ..bsd::Partition::default()
    };
    let mut sector = vec![0; 512];
    put(&mut sector, 0, &bsd::MAGIC.to_le_bytes());
    put(&mut sector, 40, &512_u32.to_le_bytes());
    put(&mut sector, 132, &bsd::MAGIC.to_le_bytes());
    put(&mut sector, 138, &[8]);
    let mut label = bsd::Label::decode(&sector, 0, 512).unwrap();
    label.partitions[2] = part(&raw, bsd::FsType::UNUSED);
    for (index, one) in parts.iter().enumerate() {
        label.partitions[if index < 2 { index } else { index + 1 }] = part(one, bsd::FsType::UFS);
    }
    label.encode().unwrap()
}

/// Labels that count from the slice (FreeBSD), from the disk with `c` as the slice (FreeBSD 4,
/// NetBSD) and with `c` as the disk (OpenBSD).
#[test]
fn a_disklabel_gives_its_slice_and_holds_what_is_in_its_partitions() {
    for (raw, first) in [
        ((0, 30_000), 64),
        ((6144, 30_000), 6208),
        ((0, 49_152), 6208),
    ] {
        let mut disk = vec![0; 24 << 20];
        let start = 3 << 20;
        let parts = [(first, 16_384), (first + 16_384, 13_552)];
        put(&mut disk, start + 512, &disklabel(raw, &parts));
        let superblock = ext_superblock(8192, 0);
        put(&mut disk, start + 64 * 512 + 1024, &superblock);
        let lost = search_in(&disk).partitions();
        let found: Vec<_> = lost.iter().map(|one| (extent(one), one.over)).collect();
        let expected = [
            ((Holds::Bsd, 6144, 30_000), None),
            ((Holds::Ext, 6208, 16_384), Some(6144)),
        ];
        assert_eq!(found, expected, "{raw:?}");
        // An old label, whose partitions hold nothing.
        disk[start + 64 * 512 + 1024..][..512].fill(0);
        put(&mut disk, start + 128 * 512 + 1024, &superblock);
        let lost = search_in(&disk).partitions();
        let found: Vec<_> = lost.iter().map(|one| (extent(one), one.over)).collect();
        let (label, ext) = ((Holds::Bsd, 6144, 30_000), (Holds::Ext, 6272, 16_384));
        assert_eq!(found, [(label, Some(6272)), (ext, None)], "{raw:?}");
        // A wrong checksum.
        disk[start + 512 + 200] ^= 1;
        assert_eq!(search_in(&disk).partitions().len(), 1);
    }
}

/// Partitions at these sectors, as many as can be logical ones of an MBR; their numbers in the
/// order of their places, 0 where there is none.
fn numbers(places: &[(u64, u64)]) -> (Vec<u64>, usize) {
    let mut disk = vec![0; 8 << 20];
    for &(first, sectors) in places {
        let superblock = ext_superblock(sectors as u32 / 2, 0);
        put(&mut disk, first as usize * 512 + 1024, &superblock);
    }
    let lost = search_in(&disk).partitions();
    assert_eq!(lost.len(), places.len());
    let script = sfdisk_script(&lost, ScriptScheme::Mbr, 512);
    let number = |&(first, sectors): &(u64, u64)| {
        let line = format!(" : start={first}, size={sectors}, type=83");
        let lines = script.lines().filter_map(|one| one.strip_suffix(&*line));
        lines
            .map(|number| number.parse().unwrap())
            .next()
            .unwrap_or(0)
    };
    let numbers = places.iter().map(number).collect();
    (numbers, ScriptScheme::Mbr.left_out(&lost, true))
}

#[test]
fn an_mbr_has_logical_partitions_where_a_sector_before_them_is_free() {
    let apart = [
        (64, 1000),
        (1100, 1000),
        (2200, 1000),
        (3300, 1000),
        (4400, 1000),
        (5500, 1000),
    ];
    assert_eq!(numbers(&apart[..4]), (vec![1, 2, 3, 4], 0));
    assert_eq!(numbers(&apart), (vec![1, 2, 3, 5, 6, 7], 0));
    // No sector before the last one: it is primary, behind the extended partition.
    let mut near = apart;
    near[5].0 = 5400;
    assert_eq!(numbers(&near), (vec![1, 2, 5, 6, 7, 4], 0));
    let close = [
        (64, 1000),
        (1064, 1000),
        (2064, 1000),
        (3064, 1000),
        (4064, 1000),
    ];
    assert_eq!(numbers(&close), (vec![1, 2, 3, 4, 0], 1));
}
