//! Headers made field by field, and hostile ones. `classes` reads what zstd writes.

use super::*;
use proptest::prelude::*;

#[test]
fn headers_of_zstd_are_read() {
    // `printf hello | zstd --no-check | xxd -p`: size unknown, a window.
    let piped = Frame::decode(b"\x28\xb5\x2f\xfd\x00\x58\x29\0\0hello");
    let Ok(Frame::Data(header)) = piped else { panic!("{piped:?}") };
    assert_eq!((header.header_bytes, header.content_bytes), (6, None));
    assert_eq!(header.window_bytes, 2 << 20);
    let block = Block::decode([0x29, 0, 0]).expect("a block");
    assert_eq!((block.is_last, block.stored_bytes), (true, 5));
    // `zstd hello`: one segment of a known size, a checksum.
    let file = Frame::decode(b"\x28\xb5\x2f\xfd\x24\x05\x29\0\0hello\x1a\x0a\x37\x8a");
    let Ok(Frame::Data(header)) = file else { panic!("{file:?}") };
    assert_eq!((header.header_bytes, header.content_bytes), (6, Some(5)));
    assert!(header.has_checksum);
}

#[test]
fn what_is_wrong_is_named() {
    assert_eq!(
        Frame::decode(b"PK\x03\x04 "),
        Err(Error::Magic { found: 0x0403_4b50 })
    );
    assert_eq!(
        Frame::decode(b"\x28\xb5\x2f\xfd\x08"),
        Err(Error::Descriptor { found: 8 })
    );
    let kind = Block::decode([0x2f, 0, 0]);
    assert_eq!(kind, Err(Error::Block { kind: 3, length: 5 }));
    assert!(Block::decode([0xfd, 0xff, 0xff]).is_err());
}

/// A seek table over frames.
fn table(entries: &[(u32, u32)], checksums: bool) -> Vec<u8> {
    let entry_bytes = if checksums { 12 } else { 8 };
    let mut out = SEEK_TABLE_MAGIC.to_le_bytes().to_vec();
    out.extend((entries.len() as u32 * entry_bytes + 9).to_le_bytes());
    for (compressed, data) in entries {
        out.extend(compressed.to_le_bytes());
        out.extend(data.to_le_bytes());
        out.extend(&[7; 4][..if checksums { 4 } else { 0 }]);
    }
    out.extend((entries.len() as u32).to_le_bytes());
    out.push(if checksums { 0x80 } else { 0 });
    out.extend(SEEKABLE_MAGIC.to_le_bytes());
    out
}

proptest! {
    #[test]
    fn a_seek_table_gives_its_frames_back(
        entries in proptest::collection::vec((any::<u32>(), any::<u32>()), 0..30),
        checksums in any::<bool>(),
        cut in 1_usize..20,
    ) {
        let bytes = table(&entries, checksums);
        let footer = SeekFooter::decode(*bytes.last_chunk().expect("a footer"));
        let footer = footer.expect("a footer").expect("a table");
        prop_assert_eq!(footer.table_bytes(), bytes.len() as u64);
        let found = footer.entries(&bytes).expect("entries");
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.frame_bytes as u32, it.data_bytes as u32))
            .collect();
        prop_assert_eq!(found, entries);
        prop_assert!(footer.entries(&bytes[cut.min(bytes.len())..]).is_err());
    }

    #[test]
    fn a_frame_states_what_it_holds(
        content in any::<u64>(), power in 0_u8..4, single in any::<bool>(),
        checksum in any::<bool>(), dictionary in any::<u32>(), dictionary_form in 0_u8..4,
        window in any::<u8>(),
    ) {
        let descriptor =
            power << 6 | u8::from(single) << 5 | u8::from(checksum) << 2 | dictionary_form;
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.push(descriptor);
        if !single {
            bytes.push(window);
        }
        let form = [0, 1, 2, 4][usize::from(dictionary_form)];
        bytes.extend(&dictionary.to_le_bytes()[..form]);
        let length = if power == 0 { usize::from(single) } else { 1 << power };
        bytes.extend(&content.to_le_bytes()[..length]);
        let mask = |bytes: usize| if bytes == 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
        let added = 256 * u64::from(length == 2);
        let expected = (length > 0).then(|| (content & mask(length)) + added);
        for cut in 0..bytes.len() {
            prop_assert_eq!(Frame::decode(&bytes[..cut]), Err(Error::Short { found: cut }));
        }
        let Ok(Frame::Data(header)) = Frame::decode(&bytes) else { panic!("{bytes:?}") };
        prop_assert_eq!(header.header_bytes, bytes.len() as u64);
        prop_assert_eq!(header.content_bytes, expected);
        prop_assert_eq!(u64::from(header.dictionary), u64::from(dictionary) & mask(form));
        prop_assert_eq!(header.has_checksum, checksum);
    }
}
