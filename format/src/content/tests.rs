//! Every row of the table on the smallest medium that carries it, and media of random bytes.

use super::signature::{At, Signature};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A medium of so many bytes, zero but for a few places.
struct Medium {
    size_bytes: u64,
    written: Vec<(u64, Vec<u8>)>,
}

impl Medium {
    fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            written: Vec::new(),
        }
    }

    fn with(mut self, offset: u64, bytes: &[u8]) -> Self {
        self.written.push((offset, bytes.to_vec()));
        self
    }

    fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let end = (offset + length as u64).min(self.size_bytes);
        let mut out = vec![0; end.saturating_sub(offset) as usize];
        for (at, bytes) in &self.written {
            let (from, to) = ((*at).max(offset), (at + bytes.len() as u64).min(end));
            if from < to {
                let source = &bytes[(from - at) as usize..(to - at) as usize];
                out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
            }
        }
        out
    }

    fn identify(&self) -> Vec<Content> {
        let found = identify(self.size_bytes, &mut |offset, length| {
            Ok(self.read(offset, length))
        });
        assert_eq!(found.read_error, None);
        found.contents
    }
}

/// Bytes of a medium, each with its offset.
type Places<'a> = &'a [(u64, &'a [u8])];

fn rows() -> impl Iterator<Item = &'static Signature> {
    let file_systems = file_systems::SIGNATURES.iter();
    file_systems
        .chain(volumes::SIGNATURES)
        .chain(images::SIGNATURES)
        .chain(firmware::SIGNATURES)
}

/// The bytes that a row's check needs besides the magic number, at an offset from the start of the
/// structure.
fn besides(row: &Signature, magic: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let nilfs2 = {
        let mut block = vec![0; 1024];
        block[6..10].copy_from_slice(&[0x34, 0x34, 0, 4]);
        let mut hasher = crc32fast::Hasher::new_with_initial(!0);
        hasher.update(&block);
        block[16..20].copy_from_slice(&(!hasher.finalize()).to_le_bytes());
        block
    };
    match row.title {
        "a NILFS2 file system" => vec![(0, nilfs2)],
        "a SquashFS file system" => vec![(28, vec![4, 0])],
        "a SquashFS 3 file system" if magic == b"hsqs" => vec![(28, vec![3, 0])],
        "a SquashFS 3 file system" => vec![(28, vec![0, 3])],
        "a GFS file system" => vec![(24, vec![0, 0, 5, 0x1d, 0, 0, 5, 0x79])],
        "a GFS2 file system" => vec![(24, vec![0, 0, 7, 9, 0, 0, 7, 0x6c])],
        "a qcow2 image" => vec![(4, vec![0, 0, 0, 3])],
        "a VHD image" => vec![(12, vec![0, 1, 0, 0])],
        "a bzip2 file" => vec![(3, b"9\x31\x41\x59\x26\x53\x59".to_vec())],
        "an LVM1 physical volume" => vec![(2, vec![1, 0])],
        "a member of an Adaptec RAID" => vec![(256, b"DPTM".to_vec())],
        "metadata of Android Verified Boot" => vec![(4, vec![0, 0, 0, 1])],
        "an Android super partition" => vec![(4, vec![52, 0, 0, 0])],
        "a Core Storage volume" => vec![(8, vec![1, 0, 16, 0])],
        // Of a header of zeroes behind the magic number.
        "a U-Boot image" => {
            let mut header = [0; 64];
            header[..4].copy_from_slice(magic);
            vec![(4, crc32fast::hash(&header).to_be_bytes().to_vec())]
        }
        "a device tree or FIT image" => {
            let words = [4096_u32, 56, 64, 40, 17, 16];
            vec![(
                4,
                words.iter().flat_map(|word| word.to_be_bytes()).collect(),
            )]
        }
        "a BitLocker volume" => vec![
            (176, 8192_u64.to_le_bytes().to_vec()),
            (440, 8192_u64.to_le_bytes().to_vec()),
            (8192, b"-FVE-FS-".to_vec()),
        ],
        _ => Vec::new(),
    }
}

#[test]
fn every_magic_number_of_every_row_is_recognised_where_it_stands() {
    const SIZE: u64 = 64 << 20;
    for row in rows() {
        for magic in row.magics {
            let base = match magic.base {
                At::Start(base) => base,
                At::End(sectors) => SIZE - sectors * 512,
                At::EndBytes(before) => SIZE - before,
            };
            let mut medium = Medium::new(SIZE).with(base + magic.offset, magic.bytes);
            for (at, bytes) in besides(row, magic.bytes) {
                medium = medium.with(base + at, &bytes);
            }
            let contents = medium.identify();
            let found = contents.iter().find(|c| c.name == row.name);
            let found = found.unwrap_or_else(|| panic!("{} at {base}: {contents:?}", row.title));
            let place = base + magic.offset;
            assert!(
                found.places.iter().any(|p| p.offset_bytes == place),
                "{found:?}"
            );
            assert!(!found.summary().is_empty());
        }
    }
}

#[test]
fn an_empty_medium_carries_nothing() {
    for size in [
        0,
        1,
        511,
        512,
        4096,
        4097,
        1 << 20,
        (64 << 20) + 300,
        u64::MAX,
    ] {
        assert_eq!(Medium::new(size).identify(), [], "{size}");
    }
}

/// A slow server answers each read after the same time. An unreadable sector costs more of them.
#[test]
fn a_medium_is_looked_at_in_few_reads() {
    let medium = Medium::new(64 << 20).with((64 << 10) + 64, b"_BHRfS_M");
    let reads_of = |unreadable: Option<u64>| {
        let mut reads = 0;
        let found = identify(64 << 20, &mut |offset, length| {
            reads += 1;
            let holds = |bad| (offset..offset + length as u64).contains(&bad);
            match unreadable.is_some_and(holds) {
                true => Err("unreadable".to_owned()),
                false => Ok(medium.read(offset, length)),
            }
        });
        (reads, found.contents.first().map(|content| content.name))
    };
    let (reads, name) = reads_of(None);
    assert!(reads <= 12, "{reads}");
    assert_eq!(name, Some("btrfs"));
    let (reads, name) = reads_of(Some(4096));
    assert!((13..64).contains(&reads), "{reads}");
    assert_eq!(name, Some("btrfs"));
}

#[test]
fn a_window_knows_which_structures_it_shows() {
    let medium = Medium::new(1 << 20).with(1080, b"\x53\xef");
    let contents = medium.identify();
    assert_eq!(contents[0].name, "ext2");
    assert!(contents[0].stands_in(&(0..2048)));
    assert!(contents[0].stands_in(&(1081..1082)));
    assert!(!contents[0].stands_in(&(1082..1 << 20)));
}

#[test]
fn what_cannot_be_read_is_reported_and_the_rest_is_recognised() {
    let medium = Medium::new(1 << 20).with(0, b"XFSB");
    let found = identify(1 << 20, &mut |offset, length| match offset {
        8192.. => Err(format!("no bytes at {offset}")),
        _ => Ok(medium.read(offset, length)),
    });
    assert_eq!(found.contents[0].name, "xfs");
    assert!(found.read_error.is_some());
}

#[test]
fn labels_are_shown_without_control_characters() {
    let mut label = *b"a\x1b[2Jb\n\0\0\0\0";
    label[10] = b'x';
    let medium = Medium::new(1 << 20).with(0, b"XFSB").with(108, &label);
    let summary = medium.identify()[0].summary();
    assert!(!summary.chars().any(char::is_control), "{summary:?}");
}

#[test]
fn a_gpt_is_recognised_whatever_the_sector_size_is() {
    for sector in [512_u64, 4096] {
        let header = |lba: u64| {
            let mut bytes = vec![0; 92];
            bytes[..8].copy_from_slice(b"EFI PART");
            bytes[24..32].copy_from_slice(&lba.to_le_bytes());
            bytes
        };
        let last = (1 << 20) / sector - 1;
        let whole = Medium::new(1 << 20).with(sector, &header(1));
        let tail = Medium::new(1 << 20).with(last * sector, &header(last));
        for (medium, place) in [(whole, sector), (tail, last * sector)] {
            let contents = medium.identify();
            assert_eq!(contents.len(), 1, "{contents:?}");
            assert_eq!(contents[0].title, "a damaged GPT");
            assert_eq!(contents[0].places[0].offset_bytes, place);
        }
    }
}

#[test]
fn tables_that_are_not_listed_are_recognised() {
    let mbr = |flag: u8| {
        let mut bytes = vec![flag, 0, 0, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0];
        bytes.resize(64, 0);
        bytes.extend([0x55, 0xaa]);
        bytes
    };
    let big_label = [0x82_u8, 0x56, 0x45, 0x57];
    let atari = b"\x01GEM\0\0\0\x02\0\0\x01\0";
    let (mbr, boot) = (mbr(0x42), b"\x55\xaa");
    let cases: [(Places<'_>, &str); 11] = [
        (&[(446, &mbr)], "an MBR with unusual flags"),
        (&[(510, boot)], "an MBR without partitions"),
        (&[(508, b"\xda\xbe\xda\xbe")], "a Sun disk label"),
        (&[(1024, b"RDSK\0\0\0\x40")], "an Amiga rigid disk block"),
        (&[(0x1c6, atari)], "an Atari partition table"),
        (&[(0x1c6, b"\0PARTEDATARI")], "an Atari partition table"),
        (
            &[(64, &big_label), (196, &big_label)],
            "a big-endian BSD disklabel",
        ),
        (&[(4, b"IPL1"), (510, boot)], "a PC-98 partition table"),
        (&[(0, b"\x0b\xe5\xa9\x41")], "an SGI volume header"),
        (&[(512, b"\x59\x4c\x46\xc4")], "a DragonFly disklabel64"),
        (
            &[(3072, b"PRIVHEAD")],
            "an LDM database (Windows dynamic disk)",
        ),
    ];
    for (puts, title) in cases {
        let medium = Medium::new(1 << 20);
        let put = |medium: Medium, (at, bytes): &(u64, &[u8])| medium.with(*at, bytes);
        let contents = puts.iter().fold(medium, put).identify();
        let titles: Vec<&str> = contents.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles, [title]);
        assert_eq!(contents[0].usage, ContentUse::Table);
    }
}

/// The structures that the functions of [`PROBES`] recognise, by libblkid's names.
const PROBED: &[&str] = &[
    "ext2",
    "ext3",
    "ext4",
    "ext4dev",
    "jbd",
    "vfat",
    "exfat",
    "ntfs",
    "hfs",
    "hfsplus",
    "minix",
    "iso9660",
    "udf",
    "ufs",
    "zfs_member",
    "linux_raid_member",
    "via_raid_member",
    "LVM2_member",
    "drbd",
    "xfs_external_log",
    "lzma",
    "uboot_env",
    "geom",
    "dos",
    "gpt",
    "amiga",
    "atari",
    "sun",
    "bsd",
    "pc98",
    "PMBR",
];

/// The page lists what the code knows, so that neither can change alone.
#[test]
fn the_page_lists_every_structure() {
    let page = include_str!("../../../docs/formats/content.md");
    let listed: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let known: BTreeSet<&str> = rows()
        .map(|row| row.name)
        .chain(PROBED.iter().copied())
        .chain(tables::SIMPLE.iter().map(|(name, ..)| *name))
        .collect();
    let missing: Vec<_> = known.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&known).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "missing {missing:?}, stale {stale:?}"
    );
}

proptest! {
    /// Random bytes behind random magic numbers: labels, UUIDs and chains must stay in bounds.
    #[test]
    fn no_medium_causes_a_panic_or_unbounded_reading(
        seed in proptest::collection::vec(any::<u8>(), 4096),
        size in 0_u64..(4 << 20),
        picks in proptest::collection::vec((0_usize..1000, 0_usize..16), 0..6),
    ) {
        let all: Vec<&Signature> = rows().collect();
        let mut medium = Medium::new(size);
        for block in 0..24 {
            medium = medium.with(block * 4096, &seed);
        }
        for (row, magic) in picks {
            let row = all[row % all.len()];
            let magic = &row.magics[magic % row.magics.len()];
            let base = match magic.base {
                At::Start(base) => base,
                At::End(sectors) => size.saturating_sub(sectors * 512),
                At::EndBytes(before) => size.saturating_sub(before),
            };
            medium = medium.with(base + magic.offset, magic.bytes);
        }
        let mut read = 0;
        let found = identify(size, &mut |offset, length| {
            read += length as u64;
            Ok(medium.read(offset, length))
        });
        prop_assert!(read <= view::MAX_READ_BYTES, "{read}");
        for content in found.contents {
            prop_assert!(!content.places.is_empty());
            prop_assert!(!content.to_string().chars().any(char::is_control));
        }
    }
}

/// hdiutil ends an image where its last block of any length ends, with `koly` behind it.
#[test]
fn an_apple_disk_image_has_any_size() {
    for size in [1 << 20, (1 << 20) + 365, 512] {
        let contents = Medium::new(size).with(size - 512, b"koly").identify();
        assert_eq!(contents[0].name, "dmg", "{size}");
    }
    assert!(Medium::new(511).with(0, b"koly").identify().is_empty());
}

/// The text of a group stands at the end of its ring, and goes on at the beginning.
#[test]
fn a_physical_volume_names_its_group() {
    let word = |value: u64| value.to_le_bytes();
    let mut label = [0; 512];
    label[..8].copy_from_slice(b"LABELONE");
    label[20] = 32;
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].fill(b'x');
    for (at, value) in [(64, 8 << 20), (72, 1 << 20), (104, 4096), (112, 1_044_480)] {
        label[at..at + 8].copy_from_slice(&word(value));
    }
    let with = |text: &[u8], place: u64| {
        let (first, rest) =
            text.split_at(text.len().min(1_044_480_u64.saturating_sub(place) as usize));
        let area = [b" LVM2 x[5A%r0N*>".as_slice(), &[1, 0, 0, 0], &word(4096)].concat();
        let medium = Medium::new(8 << 20).with(512, &label).with(4096 + 4, &area);
        let medium = medium.with(4096 + 40, &word(place));
        let medium = medium.with(4096 + place, first).with(4096 + 512, rest);
        medium.identify().remove(0).summary()
    };
    assert_eq!(with(b"my_vg-1 {\nid = 1\n", 512), "LVM2 PV of my_vg-1");
    assert_eq!(with(b"group {\nid = 1\n", 1_044_477), "LVM2 PV of group");
    assert_eq!(with(b"", 0), "LVM2 PV");
    assert_eq!(with(b"no\nname {", 512), "LVM2 PV");
    assert_eq!(with(b"x {", 1 << 50), "LVM2 PV");
}

/// A floppy of an Atari: no boot signature, no name.
#[test]
fn a_fat_without_a_boot_signature() {
    let fields = [0, 2, 2, 1, 0, 2, 112, 0, 0xa0, 5, 0xf9, 3, 0];
    let medium = Medium::new(737_280).with(0, b"\x60\x1c").with(11, &fields);
    let one = medium.with(512, &[0xf9, 0xff, 0xff]);
    assert_eq!(one.identify(), []);
    let both = one.with(4 * 512, &[0xf9, 0xff, 0xff]);
    let names: Vec<_> = both.identify().iter().map(Content::summary).collect();
    assert_eq!(names, ["FAT12"]);
}

/// A name of a class that hides its line; the fuzz target found it.
#[test]
fn the_class_of_metadata_is_shown_escaped() {
    let medium = Medium::new(1 << 20).with((1 << 20) - 512, b"GEOM::A\x1b[2J\nB");
    let found = medium.identify().remove(0);
    assert_eq!(found.summary(), "GEOM a\\x1b[2j\\nb");
    assert!(!found.to_string().chars().any(char::is_control));
}

#[test]
fn files_of_the_first_lzma_format_are_told_by_their_header() {
    let carries = |properties: u8, dictionary: u32, size: u64, first: u8| {
        let mut header = vec![properties];
        header.extend(dictionary.to_le_bytes());
        header.extend(size.to_le_bytes());
        header.push(first);
        let found = Medium::new(64 << 10).with(0, &header).identify();
        found.iter().any(|content| content.name == "lzma")
    };
    for dictionary in [4096, 6144, 1 << 23, 3 << 30, 1 << 31, u32::MAX] {
        assert!(carries(0x5d, dictionary, u64::MAX, 0), "{dictionary}");
        assert!(carries(0, dictionary, 6, 0), "{dictionary}");
    }
    for dictionary in [0, 1, 2048, 4097, 5120, 0x7fff_ffff] {
        assert!(!carries(0x5d, dictionary, u64::MAX, 0), "{dictionary}");
    }
    assert!(!carries(225, 1 << 23, u64::MAX, 0));
    assert!(!carries(0x5d, 1 << 23, 1 << 38, 0));
    assert!(!carries(0x5d, 1 << 23, u64::MAX, 1));
}

/// The size of an environment is not written in it: the checksum tells.
#[test]
fn an_environment_of_u_boot_is_told_by_its_checksum() {
    let text = b"bootcmd=run distro_bootcmd\0baudrate=115200\0";
    for start in [4, 5] {
        for size in [4 << 10, 16 << 10, 128 << 10, 256 << 10] {
            let mut bytes = vec![0; size - start];
            bytes[..text.len()].copy_from_slice(text);
            let crc = crc32fast::hash(&bytes);
            let medium = |crc: u32| {
                let medium = Medium::new(1 << 20).with(0, &crc.to_le_bytes());
                medium.with(start as u64, &bytes).identify()
            };
            let found = medium(crc);
            assert_eq!(found[0].name, "uboot_env", "{start} {size}");
            assert!(found[0].stands_in(&(size as u64 - 1..size as u64)));
            assert_eq!(medium(!crc), []);
        }
    }
}

/// The list of names has an end of its own, which is left when the uberblocks are not.
#[test]
fn a_label_of_zfs_without_uberblocks_is_recognised() {
    let magic = 0x0210_da7a_b10c_7a11_u64;
    for bytes in [magic.to_le_bytes(), magic.to_be_bytes()] {
        for label in [
            0,
            256 << 10,
            (64 << 20) - (512 << 10),
            (64 << 20) - (256 << 10),
        ] {
            let medium = Medium::new(64 << 20).with(label + (128 << 10) - 40, &bytes);
            let found = medium.identify();
            assert_eq!(found[0].name, "zfs_member", "{label}");
        }
    }
}

/// BitLocker keeps three copies of its metadata; libblkid looks at the first one only.
#[test]
fn a_bitlocker_volume_with_damaged_metadata_is_recognised() {
    let named = Medium::new(64 << 20).with(0, b"\xeb\x58\x90-FVE-FS-");
    assert_eq!(named.identify()[0].name, "BitLocker");
    for (field, other) in [(440, 448), (448, 456), (456, 440)] {
        let medium = Medium::new(64 << 20).with(0, b"\xeb\x58\x90MSWIN4.1");
        let medium = medium.with(field, &(1_u64 << 20).to_le_bytes());
        let medium = medium.with(other, &(2_u64 << 20).to_le_bytes());
        assert_eq!(
            medium.with(1 << 20, b"-FVE-FS-").identify()[0].name,
            "BitLocker"
        );
    }
}
