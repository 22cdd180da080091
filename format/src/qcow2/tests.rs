//! Headers made field by field, and hostile ones. `classes/tests/images.rs` compares with
//! `qemu-img info`.

use super::*;
use proptest::prelude::*;
use std::io;

/// A header as qemu writes it.
fn made(version: u32, backing: Option<(&str, Option<&str>)>, data_file: Option<&str>) -> Vec<u8> {
    let mut head = vec![0; if version == 2 { V2_BYTES } else { V3_BYTES }];
    head[..4].copy_from_slice(&MAGIC);
    head[4..8].copy_from_slice(&version.to_be_bytes());
    head[20..24].copy_from_slice(&16_u32.to_be_bytes());
    head[24..32].copy_from_slice(&(10_u64 << 30).to_be_bytes());
    if version == 3 {
        head[72..80].copy_from_slice(&incompatible::DIRTY.to_be_bytes());
        head[88..96].copy_from_slice(&1_u64.to_be_bytes());
        head[100..104].copy_from_slice(&(V3_BYTES as u32).to_be_bytes());
    }
    let mut extension = |kind: u32, text: &str| {
        head.extend(kind.to_be_bytes());
        head.extend((text.len() as u32).to_be_bytes());
        head.extend(text.as_bytes());
        head.resize(head.len().next_multiple_of(8), 0);
    };
    extension(0x6803_f857, "features that are not looked at");
    if let Some(format) = backing.and_then(|(_, format)| format) {
        extension(BACKING_FORMAT, format);
    }
    if let Some(name) = data_file {
        extension(DATA_FILE, name);
    }
    head.extend([0; 8]);
    if let Some((name, _)) = backing {
        let at = head.len() as u64;
        head[8..16].copy_from_slice(&at.to_be_bytes());
        head[16..20].copy_from_slice(&(name.len() as u32).to_be_bytes());
        head.extend(name.as_bytes());
    }
    head
}

#[test]
fn a_header_names_its_backing_file_and_format() {
    let head = made(3, Some(("base.img", Some("raw"))), Some("data.raw"));
    let header = Header::decode(&head).expect("a header");
    let backing = header.backing.expect("a backing file");
    assert_eq!(
        (backing.name.as_str(), backing.format.as_deref()),
        ("base.img", Some("raw"))
    );
    assert_eq!(header.data_file.as_deref(), Some("data.raw"));
    assert_eq!(
        (header.size_bytes, header.cluster_bytes),
        (10 << 30, 1 << 16)
    );
    assert_eq!(
        (header.incompatible, header.autoclear),
        (incompatible::DIRTY, 1)
    );
    let header = Header::decode(&made(2, None, None)).expect("a header of version 2");
    assert_eq!(
        (header.version, header.incompatible, header.autoclear),
        (2, 0, 0)
    );
    assert_eq!((header.backing, header.data_file), (None, None));
}

#[test]
fn tables_lie_in_the_file_and_cover_the_disk() {
    const FILE_BYTES: u64 = 1 << 20;
    let mut sound = made(3, None, None);
    // 10 GiB in clusters of 64 KiB: 20 entries of 512 MiB each.
    sound[36..40].copy_from_slice(&20_u32.to_be_bytes());
    sound[40..48].copy_from_slice(&(3_u64 << 16).to_be_bytes());
    sound[48..56].copy_from_slice(&(1_u64 << 16).to_be_bytes());
    sound[56..60].copy_from_slice(&1_u32.to_be_bytes());
    sound[96..100].copy_from_slice(&4_u32.to_be_bytes());
    let checked = |at: usize, value: &[u8]| {
        let mut head = sound.clone();
        head[at..at + value.len()].copy_from_slice(value);
        let header = Header::decode(&head).expect("a header");
        let text = |checked: Result<(), Error>| checked.err().map(|error| error.to_string());
        let map = text(header.check_map(FILE_BYTES));
        (map, text(header.check_accounts(FILE_BYTES)))
    };
    assert_eq!(checked(0, b"Q"), (None, None));
    // Bytes of the L1 table's offset, its entries, and the size of the disk.
    for (at, value, problem) in [
        (41, &[0xff_u8; 4][..], "it lies past the end of the file"),
        (47, &[1], "no multiple of the cluster size"),
        (36, &[0xff; 4], "larger than any image needs"),
        (39, &[19], "needs 20 entries in the L1 table, it has 19"),
        (24, &[0xff; 4], "entries in the L1 table, it has 20"),
    ] {
        let (map, accounts) = checked(at, value);
        ugeom_testkit::has(&map.expect("a wrong map"), problem);
        assert_eq!(accounts, None, "byte {at}");
    }
    for (at, problem) in [
        (48, "refcount table at byte"),
        (56, "larger than any image needs"),
        (60, "table of snapshots at byte"),
        (64, "no multiple of the cluster size"),
    ] {
        let value: &[u8] = if at == 64 { &[0xff; 8] } else { &[0xff; 4] };
        let (map, accounts) = checked(at, value);
        assert_eq!(map, None, "byte {at}");
        ugeom_testkit::has(&accounts.expect("wrong accounts"), problem);
    }
    let (_, accounts) = checked(59, &[0]);
    ugeom_testkit::has(&accounts.expect("none"), "it is empty");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let mut head = made(3, Some(("base.img", None)), None);
    head[8..16].copy_from_slice(&60_000_u64.to_be_bytes());
    let text = Header::decode(&head).expect_err("outside").to_string();
    ugeom_testkit::has(&text, "backing file at byte 60000, 8 bytes");
    let mut head = made(3, None, None);
    head[20..24].copy_from_slice(&40_u32.to_be_bytes());
    assert_eq!(Header::decode(&head), Err(Error::ClusterBits { found: 40 }));
    assert!(matches!(
        Header::decode(&head[..71]),
        Err(Error::Short { .. })
    ));
}

proptest! {
    #[test]
    fn names_come_back(version in 2_u32..4, name in "[a-z/ .é]{1,300}", format in "[a-z]{1,9}") {
        let head = made(version, Some((&name, Some(&format))), Some(&name));
        let header = Header::decode(&head).expect("a header");
        prop_assert_eq!(header.data_file.as_ref(), Some(&name));
        let backing = header.backing.expect("a backing file");
        prop_assert_eq!((backing.name, backing.format), (name, Some(format)));
    }

    #[test]
    fn changed_headers_are_read_or_refused(
        changes in prop::collection::vec((0_usize..200, any::<u8>()), 0..12),
        length in 0_usize..300,
    ) {
        let mut head = made(3, Some(("base.img", Some("raw"))), Some("data.raw"));
        for (at, byte) in changes {
            let at = at % head.len();
            head[at] = byte;
        }
        head.truncate(length);
        if let Ok(header) = Header::decode(&head) {
            prop_assert!(header.backing.is_none_or(|it| head.len() >= it.name.len()));
        }
    }
}

/// Bytes of an image: zeroes but for these pieces.
fn pieces<'a>(pieces: &'a [(u64, &'a [u8])]) -> impl FnMut(u64, usize) -> io::Result<Vec<u8>> + 'a {
    move |at, length| {
        let mut bytes = vec![0; length];
        for (start, piece) in pieces {
            for (byte, value) in (*start..).zip(*piece) {
                let inside = byte
                    .checked_sub(at)
                    .and_then(|inside| bytes.get_mut(inside as usize));
                inside.into_iter().for_each(|byte| *byte = *value);
            }
        }
        Ok(bytes)
    }
}

fn plain(bits: u32) -> Header {
    let mut header = Header::decode(&made(3, None, None)).expect("a header");
    (header.refcount_bits, header.refcounts) = (bits, 0x1_0000..0x2_0000);
    (header.l1, header.snapshots) = (0x3_0000..0x3_0000, (0, 0));
    header
}

/// The fault of an image of a header, a refcount table and one block, whose first bytes are given.
fn fault(bits: u32, block: &[u8], file_bytes: u64) -> Option<Fault> {
    let header = plain(bits);
    let place = 0x2_0000_u64.to_be_bytes();
    let all = [(0x1_0000, &place[..]), (0x2_0000, block)];
    let mut read = pieces(&all);
    let structures = Structures::read(&header, &mut read).expect("tables");
    assert_eq!(structures.in_range(0x1_ffff, 1), Some("its refcount table"));
    assert_eq!(structures.in_range(0x1_ffff, 2), Some("its refcount table"));
    assert_eq!(structures.in_range(0x3_0000, 1 << 40), None);
    let found = structures.fault(&header, file_bytes, &mut read);
    found.expect("a block of counts")
}

fn uncounted(bits: u32, block: &[u8]) -> Option<(u64, &'static str)> {
    match fault(bits, block, 0x3_0000)? {
        Fault::Uncounted {
            offset,
            name,
            count: 0,
            uses: 1,
        } => Some((offset, name)),
        other => panic!("{other}"),
    }
}

/// QEMU docs/interop/qcow2.rst: counts of less than a byte begin with its lowest bits.
#[test]
fn a_structure_that_counts_as_free_is_found_with_counts_of_every_width() {
    let wide = |bytes: usize, counts: [u8; 3]| {
        let mut block = vec![0; 3 * bytes];
        for (number, count) in counts.into_iter().enumerate() {
            block[(number + 1) * bytes - 1] = count;
        }
        block
    };
    for (bits, sound, wrong) in [
        (1, vec![0b111], vec![0b101]),
        (2, vec![0b01_10_11], vec![0b01_00_11]),
        (4, vec![0x21, 0x03], vec![0x01, 0x03]),
        (8, wide(1, [1, 2, 1]), wide(1, [1, 0, 1])),
        (16, wide(2, [1, 2, 1]), wide(2, [1, 0, 1])),
        (64, wide(8, [1, 2, 1]), wide(8, [1, 0, 1])),
    ] {
        assert_eq!(uncounted(bits, &sound), None, "{bits}");
        let expected = Some((0x1_0000, "its refcount table"));
        assert_eq!(uncounted(bits, &wrong), expected, "{bits}");
        assert_eq!(uncounted(bits, &[]), Some((0, "its header")), "{bits}");
    }
}

#[test]
fn tables_of_snapshots_without_end_are_refused() {
    let mut header = Header::decode(&made(3, None, None)).expect("a header");
    header.snapshots = (1 << 16, 65_536);
    let mut read = |_: u64, length: usize| {
        let mut bytes = vec![0; length];
        // Each one names an L1 table of the largest size.
        bytes
            .get_mut(8..12)
            .into_iter()
            .for_each(|size| size.fill(0xff));
        Ok(bytes)
    };
    let refused = Structures::read(&header, &mut read).expect_err("too many");
    assert!(refused.to_string().contains("more tables"), "{refused}");
}

/// A search for a free cluster would pass over all of them.
#[test]
fn counts_that_take_what_lies_past_the_file_for_used_are_a_fault() {
    // 64 blocks, each for 32,768 clusters of 4 KiB.
    let mut header = plain(1);
    header.cluster_bytes = 4096;
    let tables: Vec<u8> = (0..64_u64)
        .flat_map(|block| (0x2_0000 + block * 4096).to_be_bytes())
        .collect();
    let blocks = vec![0xff; 64 * 4096];
    let all = [(0x1_0000, &tables[..]), (0x2_0000, &blocks[..])];
    let mut read = pieces(&all);
    let structures = Structures::read(&header, &mut read).expect("tables");
    let last = 64 * 32_768 * 4096;
    let mut at = |file_bytes| {
        structures
            .fault(&header, file_bytes, &mut read)
            .expect("counts")
    };
    assert_eq!(at(0x6_0000), Some(Fault::PastTheEnd));
    assert_eq!(at(last - (1 << 20) * 4096), Some(Fault::PastTheEnd));
    assert_eq!(at(last - (1 << 20) * 4096 + 4096), None);
    let one = fault(16, &vec![0xff; 0x1_0000], 0x3_0000);
    assert_eq!(one, None, "one block reaches no further");
}

#[test]
fn a_block_of_counts_for_two_ranges_is_a_fault() {
    let header = plain(16);
    let places = [0x2_0000_u64.to_be_bytes(); 2].concat();
    let all = [(0x1_0000, &places[..]), (0x2_0000, &[1; 16][..])];
    let mut read = pieces(&all);
    let structures = Structures::read(&header, &mut read).expect("tables");
    let (offset, name) = (0x2_0000, "a refcount block");
    let found = structures
        .fault(&header, 0x3_0000, &mut read)
        .expect("counts");
    assert_eq!(found, Some(Fault::Shared { offset, name }));
}

/// A snapshot shares its L2 table with the disk: the count is 2, and the disk does not own it.
#[test]
fn an_l2_table_of_a_snapshot_that_a_write_would_change_is_a_fault() {
    let own = 1_u64 << 63;
    let fault = |disk: u64, snapshot: u64, counts: [u8; 8]| {
        let mut header = plain(8);
        header.l1 = 0x3_0000..0x3_0008;
        header.snapshots = (0x4_0000, 1);
        let mut entry = [0; 40];
        entry[..8].copy_from_slice(&0x5_0000_u64.to_be_bytes());
        entry[11] = 1;
        let [block, disk, snapshot] = [0x2_0000, disk, snapshot].map(u64::to_be_bytes);
        let all = [
            (0x1_0000, &block[..]),
            (0x2_0000, &counts),
            (0x3_0000, &disk),
            (0x4_0000, &entry),
            (0x5_0000, &snapshot),
        ];
        let mut read = pieces(&all);
        let structures = Structures::read(&header, &mut read).expect("tables");
        let table = u64::from_be_bytes(snapshot);
        assert!(structures.in_range(table, 1).is_some());
        let found = structures.fault(&header, 0x8_0000, &mut read);
        found.expect("counts").map(|fault| fault.to_string())
    };
    let is = |found: Option<String>, text: &str| {
        ugeom_testkit::has(&found.expect("a fault"), text);
    };
    assert_eq!(fault(0x6_0000, 0x6_0000, [1, 1, 1, 1, 1, 1, 2, 0]), None);
    assert_eq!(fault(own | 0x7_0000, 0x6_0000, [1; 8]), None);
    let one = fault(0x6_0000, 0x6_0000, [1; 8]);
    is(
        one,
        "at byte 393216 of the file has 2 uses, and a reference count of 1",
    );
    let none = fault(own | 0x7_0000, 0x6_0000, [1, 1, 1, 1, 1, 1, 0, 1]);
    is(
        none,
        "take an L2 table of a snapshot at byte 393216 of the file for free space",
    );
    let owned = fault(own | 0x6_0000, 0x6_0000, [1, 1, 1, 1, 1, 1, 2, 0]);
    is(owned, "is marked COPIED, and a snapshot uses it, too");
}

#[test]
fn l1_tables_of_snapshots_without_end_are_read_in_part() {
    let mut header = plain(16);
    header.snapshots = (0x4_0000, 64);
    let mut read_bytes = 0_u64;
    let mut read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        if (0x4_0000..0x5_0000).contains(&at) && length == 40 {
            // Each one names an L1 table of 4 MiB of its own.
            bytes[..8].copy_from_slice(&((at - 0x4_0000 + 1) << 30).to_be_bytes());
            bytes[9] = 8;
        } else {
            read_bytes += length as u64;
        }
        Ok(bytes)
    };
    Structures::read(&header, &mut read).expect("tables");
    assert!(read_bytes < 65 << 20, "{read_bytes}");
}
