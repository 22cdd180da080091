//! Descriptors of VMware and qemu, and hostile ones.

use super::grains::{Fault, fault};
use super::*;

const HEAD: &str = "# Disk DescriptorFile\nversion=1\nCID=0000000a\nparentCID=ffffffff\n";

fn parse(rest: &str) -> Result<Descriptor, Error> {
    Descriptor::parse(format!("{HEAD}{rest}").as_bytes())
}

fn names(found: &Descriptor) -> Vec<&str> {
    let names = found.extents.iter();
    names.map(|it| str::from_utf8(&it.name).unwrap()).collect()
}

#[test]
fn extents_are_found() {
    let found = parse(
        "\n# Extent description\r\nRW 8192 SPARSE \"a b-s001.vmdk\"\r\n\
         \x20 RW\t7 FLAT  \"a-flat.vmdk\" 0\nRW 9 VMFS \"b.vmdk\"\n\n\
         #DDB\nddb.adapterType = \"ide\"\n",
    );
    let found = found.unwrap();
    assert_eq!(names(&found), ["a b-s001.vmdk", "a-flat.vmdk", "b.vmdk"]);
    let parts = found.extents.iter().map(|it| (it.sectors, it.kind));
    let expected = [
        (8192, ExtentKind::Sparse),
        (7, ExtentKind::Flat),
        (9, ExtentKind::Flat),
    ];
    assert!(parts.eq(expected));
    assert_eq!((found.content_id, found.parent), (Some(10), None));
}

/// Each is read by qemu as an extent, or passed over so that the disk becomes shorter.
#[test]
fn what_qemu_might_read_in_another_way_is_refused() {
    for (text, problem) in [
        ("RW\n8 FLAT \"a\" 0\n", "of this type"),
        ("RW 8\nFLAT \"a\" 0\n", "of this type"),
        ("RW 8 FLAT\n\"a\" 0\n", "of the form"),
        ("\nRW 8 FLAT \"a\" 0\n", "empty line"),
        (" \t\nRW 8 FLAT \"a\" 0\n", "empty line"),
        ("RW 8FLAT \"a\" 0\n", "of this type"),
        ("RW 8 ZERO\n", "of this type"),
        ("RW -8 FLAT \"a\" 0\n", "number of sectors"),
        ("RW 0 FLAT \"a\" 0\n", "number of sectors"),
        ("RW 9223372036854775808 FLAT \"a\" 0\n", "number of sectors"),
        ("RW 8 FLAT \"\" 0\n", "empty or too long"),
        ("RDONLY 8 FLAT \"a\" 0\n", "not `RW`"),
        ("NOACCESS 8 FLAT \"a\" 0\n", "not `RW`"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text:?}: {error}");
        assert!(error.starts_with("line "), "{text:?}: {error}");
    }
    let long = parse(&format!("RW 8 FLAT \"{}\" 0", "a".repeat(512)));
    assert!(long.unwrap_err().to_string().contains("too long"));
}

/// The end of the text is that of a string of C, and nothing behind the first megabyte is read.
#[test]
fn a_descriptor_has_an_end() {
    let found = parse("RW 8 FLAT \"a\" 0\n\0RW 8 FLAT \"b\" 0\n").unwrap();
    assert_eq!(names(&found), ["a"]);
    let longest = format!("# {}\n", "x".repeat(DESCRIPTOR_BYTES_MAX - HEAD.len() - 3));
    assert!(parse(&longest).is_ok());
    assert_eq!(parse(&format!("{longest} ")), Err(Error::Long));
}

#[test]
fn the_parent_is_the_one_that_the_descriptor_states() {
    let text = "CID=0000000a\nparentCID=9B20DB1C\nparentFileNameHint=\"a b.vmdk\"\n";
    let found = Descriptor::parse(text.as_bytes()).unwrap();
    let parent = found.parent.unwrap();
    assert_eq!(found.content_id, Some(10));
    assert_eq!(
        (&*parent.name, parent.content_id),
        ("a b.vmdk", 0x9b20_db1c)
    );
    let alone = Descriptor::parse(b"CID = 1\nparentCID = ffffffff\n").unwrap();
    assert_eq!((alone.content_id, alone.parent), (Some(1), None));
    for wrong in ["parentCID=1\n", "CID=x\n", "parentCID=100000000\n"] {
        assert!(Descriptor::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

/// The descriptor inside names the image itself, which qemu does not follow.
#[test]
fn a_sparse_extent_has_a_header_and_a_descriptor_inside() {
    let mut image = vec![0; 2048];
    image[..4].copy_from_slice(b"KDMV");
    image[12] = 9;
    image[512..][..HEAD.len()].copy_from_slice(HEAD.as_bytes());
    let line = b"\nRW 9 SPARSE \"../x\"\n";
    image[512 + HEAD.len()..][..line.len()].copy_from_slice(line);
    let found = Descriptor::parse(&image).unwrap();
    assert_eq!((found.content_id, found.extents.len()), (Some(10), 0));
    let header = SparseHeader::decode(&image).unwrap();
    assert_eq!((header.sectors, header.is_compressed), (9, false));
    image[77] = 1;
    assert!(SparseHeader::decode(&image).unwrap().is_compressed);
    image[..4].copy_from_slice(b"COWD");
    assert!(SparseHeader::decode(&image).is_none());
    assert!(SparseHeader::decode(b"KDMV").is_none());
}

const SECTOR: usize = 512;

/// A sparse extent of 1,024 sectors in grains of 8, with 64 entries in a table: header,
/// descriptor (1), directory (2), second directory (3), tables (4, 5; 6, 7), grains from 8 on.
fn extent() -> Vec<u8> {
    let mut image = vec![0; 64 * SECTOR];
    image[..4].copy_from_slice(b"KDMV");
    image[8..12].copy_from_slice(&0b110_u32.to_le_bytes());
    for (at, value) in [(12, 1024_u64), (20, 8), (28, 1), (36, 1), (48, 3), (56, 2)] {
        image[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    image[44..48].copy_from_slice(&64_u32.to_le_bytes());
    for (at, value) in [(2, 4), (3, 6), (4, 8)] {
        put(&mut image, at, 0, value);
        put(&mut image, at, 1, value + if at == 4 { 8 } else { 1 });
    }
    image
}

/// Sets an entry of the table in a sector.
fn put(image: &mut [u8], sector: usize, entry: usize, value: u32) {
    let at = sector * SECTOR + entry * 4;
    image[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn fault_of(image: &[u8]) -> Option<Fault> {
    let mut read = |at: u64, length: usize| {
        let start = (at as usize).min(image.len());
        let mut bytes = image[start..(start + length).min(image.len())].to_vec();
        bytes.resize(length, 0);
        Ok(bytes)
    };
    fault(image.len() as u64, &mut read).unwrap()
}

#[test]
fn sound_tables_have_no_fault() {
    let mut image = extent();
    assert_eq!(fault_of(&image), None);
    // A grain of zeroes, and none.
    put(&mut image, 4, 5, 1);
    put(&mut image, 2, 1, 0);
    assert_eq!(fault_of(&image), None);
    assert_eq!(fault_of(b"COWD"), None);
}

#[test]
fn entries_that_lead_to_something_else_are_faults() {
    for (sector, entry, value, expected) in [
        (
            2,
            1,
            4,
            "its grain directory leads to byte 2048, where a grain table is",
        ),
        (
            2,
            0,
            7,
            "its grain directory leads to byte 3584, where a grain table is",
        ),
        (
            3,
            1,
            2,
            "its grain directory leads to byte 1024, where its grain directory is",
        ),
        (
            2,
            1,
            1,
            "its grain directory leads to byte 512, where its descriptor is",
        ),
        (
            2,
            1,
            10,
            "a grain table leads to byte 4096, where a grain table is",
        ),
        (
            2,
            1,
            64,
            "its grain directory leads to byte 32768, past the end of the file",
        ),
        (
            4,
            3,
            7,
            "a grain table leads to byte 3584, where a grain table is",
        ),
        (
            4,
            3,
            15,
            "a grain table leads to byte 7680, where a grain is",
        ),
        (
            4,
            3,
            64,
            "a grain table leads to byte 32768, past the end of the file",
        ),
    ] {
        let mut image = extent();
        put(&mut image, sector, entry, value);
        let found = fault_of(&image).map(|fault| fault.to_string());
        assert_eq!(found, Some(format!("an entry of {expected}")));
    }
    // Without the flag, 1 is the second sector.
    let mut image = extent();
    image[8] = 0b010;
    put(&mut image, 4, 5, 1);
    assert!(fault_of(&image).is_some());
}

#[test]
fn sizes_that_no_image_has_are_a_fault() {
    for (at, value) in [(12, u64::MAX), (20, 0), (20, 1 << 40), (44, 0), (44, 513)] {
        let mut image = extent();
        let bytes = value.to_le_bytes();
        let length = if at == 44 { 4 } else { 8 };
        image[at..at + length].copy_from_slice(&bytes[..length]);
        assert_eq!(fault_of(&image), Some(Fault::Sizes));
    }
}
