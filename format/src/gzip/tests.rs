//! Headers made field by field, and hostile ones. `classes` reads what gzip writes.

use super::*;
use proptest::prelude::*;

fn made(flags: u8, extra: &[u8], name: &str, comment: &str) -> Vec<u8> {
    let mut head = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
    if flags & EXTRA != 0 {
        head.extend((extra.len() as u16).to_le_bytes());
        head.extend(extra);
    }
    for (flag, text) in [(NAME, name), (COMMENT, comment)] {
        if flags & flag != 0 {
            head.extend(text.bytes());
            head.push(0);
        }
    }
    if flags & HEADER_CRC != 0 {
        let crc = crc32fast::hash(&head) as u16;
        head.extend(crc.to_le_bytes());
    }
    head
}

#[test]
fn what_is_no_member_is_refused_with_what_was_found() {
    assert_eq!(header_bytes(b"PK"), Err(Error::Magic { found: *b"PK" }));
    let mut head = made(0, b"", "", "");
    head[2] = 7;
    assert_eq!(header_bytes(&head), Err(Error::Method { found: 7 }));
    head[2] = 8;
    head[3] = 0x20;
    assert_eq!(header_bytes(&head), Err(Error::Flags { found: 0x20 }));
    let mut head = made(HEADER_CRC | NAME, b"", "disk.img", "");
    head[11] ^= 1;
    let refused = header_bytes(&head);
    assert!(
        matches!(refused, Err(Error::Checksum { .. })),
        "{refused:?}"
    );
}

proptest! {
    #[test]
    fn a_header_has_the_length_of_its_fields_and_no_shorter_one_will_do(
        flags in 0_u8..32,
        extra in proptest::collection::vec(any::<u8>(), 0..300),
        name in "[a-z]{0,40}",
        comment in "[a-z]{0,40}",
        data in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let head = made(flags, &extra, &name, &comment);
        let mut file = head.clone();
        file.extend(data);
        prop_assert_eq!(header_bytes(&file), Ok(head.len()));
        for cut in 0..head.len() {
            prop_assert_eq!(header_bytes(&head[..cut]), Err(Error::Short { found: cut }));
        }
    }
}
