//! A text as LVM2 2.03 writes it, in an area made here, and the effects of damage.

use super::*;
use proptest::prelude::*;

const TEXT: &str = include_str!("vgtest.txt");
const START: usize = 1 << 20;
/// The text begins so near to the end of its area that it goes on behind the header.
const AREA: (usize, usize) = (4096, 16 << 10);

fn put(disk: &mut [u8], at: usize, bytes: &[u8]) {
    disk[at..at + bytes.len()].copy_from_slice(bytes);
}

fn area(text: &str, at: usize) -> Vec<u8> {
    let (size, length) = (AREA.1, text.len());
    let mut area = vec![0; size];
    put(&mut area, 4, b" LVM2 x[5A%r0N*>");
    put(&mut area, 20, &1_u32.to_le_bytes());
    put(&mut area, 24, &(AREA.0 as u64).to_le_bytes());
    put(&mut area, 32, &(size as u64).to_le_bytes());
    put(&mut area, 40, &(at as u64).to_le_bytes());
    put(&mut area, 48, &(length as u64).to_le_bytes());
    put(&mut area, 56, &lvm_crc(text.as_bytes()).to_le_bytes());
    let crc = lvm_crc(&area[4..512]);
    put(&mut area, 0, &crc.to_le_bytes());
    let first = length.min(size - at);
    put(&mut area, at, &text.as_bytes()[..first]);
    put(&mut area, 512, &text.as_bytes()[first..]);
    area
}

fn disk(text: &str, at: usize) -> Vec<u8> {
    let mut disk = vec![0; START + AREA.0 + AREA.1];
    let label = START + 512;
    put(&mut disk, label, b"LABELONE");
    put(&mut disk, label + 8, &1_u64.to_le_bytes());
    put(&mut disk, label + 20, &32_u32.to_le_bytes());
    put(&mut disk, label + 24, b"LVM2 001");
    put(&mut disk, label + 32, b"CXMw7VevwKSOtie5YQ8TC4wlEVXZRx4G");
    put(&mut disk, label + 72, &(1_u64 << 20).to_le_bytes());
    put(&mut disk, label + 104, &(AREA.0 as u64).to_le_bytes());
    put(&mut disk, label + 112, &(AREA.1 as u64).to_le_bytes());
    put(&mut disk, START + AREA.0, &area(text, at));
    disk
}

fn group_of(disk: &[u8]) -> Result<Option<Group>, String> {
    group(START as u64, &mut |offset, length| {
        let at = (offset as usize).min(disk.len());
        let end = at.saturating_add(length).min(disk.len());
        Ok(disk[at..end].to_vec())
    })
}

/// Name, length and places of a volume.
type Named = (String, Option<u64>, Result<Vec<(u64, u64)>, String>);

fn pieces_of(text: &str) -> Vec<Named> {
    let group = group_of(&disk(text, 512))
        .expect("a text")
        .expect("a group");
    assert_eq!(group.name, "vgtest");
    let volumes = group.volumes.into_iter();
    volumes
        .map(|one| (one.name, one.length_bytes, one.pieces))
        .collect()
}

#[test]
fn linear_volumes_have_their_places_and_the_others_a_reason() {
    const MIB: u64 = 1 << 20;
    // The first extent lies 1 MiB behind the start, which is at 1 MiB.
    let at = |extent: u64| 2 * MIB + extent * 4 * MIB;
    let named = |name: &str, mib: u64, pieces| (name.to_owned(), Some(mib * MIB), pieces);
    let expected = [
        named("root", 12, Ok(vec![(at(0), 8 * MIB), (at(5), 4 * MIB)])),
        named("home", 12, Ok(vec![(at(2), 12 * MIB)])),
        named("stripe", 8, Err("striped over 2 places".to_owned())),
        named("far", 16, Err("on another physical volume".to_owned())),
    ];
    assert_eq!(pieces_of(TEXT), expected);
    // The same around the end of the ring.
    let wrapped = group_of(&disk(TEXT, AREA.1 - 100))
        .expect("a text")
        .expect("a group");
    assert_eq!(wrapped.volumes.len(), expected.len());
    // Pieces that follow each other are one; one on the other volume makes it partial.
    let joined = TEXT.replacen("\"pv0\", 5", "\"pv0\", 2", 1);
    assert_eq!(pieces_of(&joined)[0].2, Ok(vec![(at(0), 12 * MIB)]));
    let partial = TEXT.replacen("\"pv0\", 5", "\"pv1\", 5", 1);
    let partial = pieces_of(&partial)[0].2.clone();
    assert_eq!(
        partial,
        Err("in part on another physical volume".to_owned())
    );
}

#[test]
fn what_the_text_cannot_mean_has_a_reason() {
    let reason = |from: &str, to: &str| {
        let found = pieces_of(&TEXT.replacen(from, to, 1))[0].2.clone();
        found.expect_err("a reason")
    };
    assert_eq!(reason("\"striped\"", "\"thin\""), "of type thin");
    assert_eq!(
        reason("\"pv0\", 0", "\"pv0\", 14"),
        "it lies past the end of the physical volume"
    );
    assert_eq!(
        reason("\"pv0\", 0", "\"pv0\", 18446744073709551615"),
        "it lies past the end of the physical volume"
    );
    assert_eq!(
        reason("start_extent = 2", "start_extent = 1"),
        "its segments do not follow each other"
    );
    assert_eq!(
        reason("extent_count = 2", "extent_count = 0.5"),
        "its segments are not readable"
    );
    let none = pieces_of(
        &TEXT
            .replacen("segment1", "part1", 1)
            .replacen("segment2", "part2", 1),
    );
    assert_eq!(none[0].2, Err("it has no segments".to_owned()));
}

#[test]
fn damage_is_named_with_its_place() {
    let said = |disk: &[u8]| group_of(disk).expect_err("a reason");
    let good = disk(TEXT, 512);
    for (at, expected) in [
        (
            START + AREA.0 + 700,
            "the area at byte 4096: the CRC of its text is wrong",
        ),
        (
            START + AREA.0 + 44,
            "the area at byte 4096: the CRC of its header is wrong",
        ),
        (
            START + AREA.0 + 4,
            "the area at byte 4096: it has no header",
        ),
        (START + 512, "it has no label"),
        (
            START + 512 + 40,
            "the text does not describe this physical volume",
        ),
    ] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(said(&bad), expected);
    }
    let cut = &good[..START + AREA.0 + 1000];
    assert!(said(cut).contains("the medium ends before byte"));
    for (text, expected) in [
        ("vgtest {", "its text ends within \"vgtest\""),
        ("vgtest }", "its text is wrong before byte 8: \"}\""),
        ("id = \"x", "its text is wrong before byte 7: \"\\\"x\""),
        ("a = 1", "the text names no group"),
        ("vgtest { }", "the text states no size of extents"),
        ("a = [ 1, ", "its text is wrong before byte 9: \"\""),
    ] {
        assert_eq!(said(&disk(text, 512)), expected, "{text}");
    }
    let deep = ["a {"; 1000].concat();
    assert!(said(&disk(&deep, 512)).contains("is wrong before"));
    // A volume in no group has an area without a text.
    let mut empty = good;
    let start = START + AREA.0;
    empty[start + 40..start + 64].fill(0);
    let crc = lvm_crc(&empty[start + 4..start + 512]);
    put(&mut empty, start, &crc.to_le_bytes());
    assert_eq!(group_of(&empty), Ok(None));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9{}=\\[\\],\"\\\\# \n\u{e9}]{0,200}") {
        let _ = group_of(&disk(&text, 512));
    }

    #[test]
    fn a_changed_text_lists_only_what_lies_within(at in 0..2000_usize, byte in 32..127_u8) {
        let mut text = TEXT.as_bytes().to_vec();
        let at = at % text.len();
        text[at] = byte;
        let text = String::from_utf8(text).expect("ASCII");
        let Ok(Some(group)) = group_of(&disk(&text, 512)) else { return Ok(()) };
        for volume in group.volumes {
            let pieces = volume.pieces.unwrap_or_default();
            let sum: u64 = pieces.iter().map(|piece| piece.1).sum();
            prop_assert!(pieces.is_empty() || Some(sum) == volume.length_bytes);
        }
    }
}
