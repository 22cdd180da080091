//! Blocks as they are written and checked.

use super::*;
use ugeom_job::Job;
use ugeom_job::error::Origin;

fn content(verify: Verify, pattern: Vec<Piece>) -> Content {
    let mut job = Job::new("a", Origin::Default);
    job.verify = verify;
    job.verify_pattern = pattern;
    Content::new(&job, &Seeds::of(&job, 0), 0)
}

fn label(offset: u64, number: u16) -> Label {
    Label {
        offset,
        number: Some(number),
    }
}

#[test]
fn a_block_is_right_only_where_and_as_it_was_written() {
    let mut content = content(Verify::Crc32c, Vec::new());
    let mut block = vec![0; 4096];
    content.before_write(&mut block, label(8192, 7));
    assert_eq!(content.check(&block, label(8192, 7)), Ok(()));
    let mut wrong = |block: &[u8], label: Label| content.check(block, label).unwrap_err().what;
    assert_eq!(wrong(&block, label(4096, 7)), "offset in the header");
    assert_eq!(wrong(&block, label(8192, 8)), "number of the write");
    for (at, what) in [
        (0, "magic number of the header"),
        (4, "length in the header"),
        (20, "CRC-32C of the header"),
        (41, "CRC-32C of the content"),
        (4095, "CRC-32C of the content"),
    ] {
        let mut damaged = block.clone();
        damaged[at] ^= 1;
        assert_eq!(wrong(&damaged, label(8192, 7)), what, "byte {at}");
    }
}

#[test]
fn a_pattern_repeats_and_its_first_wrong_byte_is_named() {
    let pieces = vec![Piece::Bytes(vec![0xde, 0xad]), Piece::Offset];
    let mut content = content(Verify::Pattern, pieces);
    let mut block = vec![0; 64];
    content.before_write(&mut block, label(0x0102, 0));
    assert_eq!(
        &block[..12],
        [0xde, 0xad, 2, 1, 0, 0, 0, 0, 0, 0, 0xde, 0xad]
    );
    assert_eq!(content.check(&block, label(0x0102, 0)), Ok(()));
    block[21] = 0xff;
    let wrong = content.check(&block, label(0x0102, 0)).unwrap_err();
    assert_eq!((wrong.at, wrong.expected.as_str()), (21, "0xad"));
}
