//! Descriptors of VMware and qemu, and hostile ones.

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
