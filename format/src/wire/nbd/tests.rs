//! Messages written out by hand from the protocol's document, round trips, and bytes that no
//! program should send. The server's tests speak with other programs.

use super::*;
use proptest::prelude::*;

/// The greeting of every newstyle server: two magic words and both flags.
#[test]
fn a_greeting_is_what_servers_send() {
    let bytes = b"NBDMAGICIHAVEOPT\0\x03";
    let greeting = Greeting::decode(bytes).unwrap();
    assert_eq!(greeting.flags, 3);
    assert!(greeting.is_fixed());
    assert_eq!(&greeting.encode(), bytes);
}

#[test]
fn what_is_no_server_is_told_by_its_first_bytes() {
    let error = Greeting::decode(b"HTTP/1.1 400 Bad R").unwrap_err();
    assert!(matches!(error, Error::Magic { .. }), "{error}");
}

/// GO for the export `md0` that asks for block sizes, as libnbd sends it.
const GO: &[u8] = b"IHAVEOPT\0\0\0\x07\0\0\0\x0b\0\0\0\x03md0\0\x01\0\x03";

#[test]
fn an_option_is_what_clients_send() {
    let (header, data) = GO.split_at(OPTION_HEADER_BYTES);
    let header = OptionHeader::decode(header).unwrap();
    assert_eq!((header.option, header.length), (option::GO, 11));
    let request = InfoRequest::decode(data).unwrap();
    assert_eq!(
        (request.name.as_str(), &request.wanted[..]),
        ("md0", &[info::BLOCK_SIZE][..])
    );
    assert_eq!([&header.encode()[..], &request.encode()].concat(), GO);
}

#[test]
fn the_answer_to_export_name_is_read_with_and_without_its_zeroes() {
    let reply = ExportReply {
        size_bytes: 1 << 40,
        flags: export_flag::HAS_FLAGS | export_flag::READ_ONLY,
    };
    for no_zeroes in [true, false] {
        let bytes = reply.encode(no_zeroes);
        assert_eq!(bytes.len(), ExportReply::length_bytes(no_zeroes));
        let back = ExportReply::decode(&bytes).unwrap();
        assert_eq!((back.size_bytes, back.flags), (1 << 40, 3));
    }
    assert!(ExportReply::decode(&[0; 9]).is_err());
}

#[test]
fn a_tls_hello_is_called_by_its_name() {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcde";
    let error = OptionHeader::decode(hello).unwrap_err().to_string();
    assert!(error.contains("TLS"), "{error}");
}

#[test]
fn a_request_is_what_clients_send() {
    let bytes = b"\x25\x60\x95\x13\0\x01\0\x01\x01\x02\x03\x04\x05\x06\x07\x08\
        \0\0\0\0\0\0\x10\0\0\0\x02\0";
    let request = Request::decode(bytes).unwrap();
    let expected = Request {
        flags: command_flag::FUA,
        command: command::WRITE,
        cookie: 0x0102_0304_0506_0708,
        offset_bytes: 4096,
        length_bytes: 512,
    };
    assert_eq!(request, expected);
    assert_eq!(request.payload_bytes(), 512);
    assert_eq!(&request.encode(), bytes);
    let mut other = *bytes;
    other[0] = 0;
    assert!(Request::decode(&other).is_err());
}

#[test]
fn replies_are_what_servers_send() {
    let bytes = b"\x67\x44\x66\x98\0\0\0\x16\0\0\0\0\0\0\0\x07";
    assert!(SimpleReply::begins(bytes));
    let reply = SimpleReply::decode(bytes).unwrap();
    assert_eq!((reply.error, reply.cookie), (error::EINVAL, 7));
    assert_eq!(&reply.encode(), bytes);
    let bytes = b"\x66\x8e\x33\xef\0\x01\0\x05\0\0\0\0\0\0\0\x07\0\0\0\x0c";
    assert!(!SimpleReply::begins(bytes));
    let header = ChunkHeader::decode(bytes).unwrap();
    assert_eq!(
        (header.kind, header.length_bytes),
        (chunk::BLOCK_STATUS, 12)
    );
    assert!(header.is_last());
    assert_eq!(&header.encode(), bytes);
    let status = b"\0\0\0\x01\0\x01\0\0\0\0\0\x03";
    let hole = Status {
        length_bytes: 65536,
        flags: state::HOLE | state::ZERO,
    };
    assert_eq!(decode_block_status(status), Ok((1, vec![hole])));
    assert_eq!(encode_block_status(1, &[hole]), status);
}

#[test]
fn the_answer_to_export_name_has_zeroes_for_old_clients() {
    let reply = ExportReply {
        size_bytes: 1 << 20,
        flags: 1,
    };
    assert_eq!(reply.encode(true), b"\0\0\0\0\0\x10\0\0\0\x01");
    assert_eq!(reply.encode(false).len(), 134);
}

#[test]
fn lengths_that_lie_are_refused() {
    let long = [&[0, 0, 0x10, 1][..], &[b'a'; 4097], &[0, 0]].concat();
    assert!(matches!(
        InfoRequest::decode(&long),
        Err(Error::TooLong { found: 4097, .. })
    ));
    for bad in [
        &b"\0\0\0\x05md0\0\0"[..],
        b"\0\0\0\x03md0\0\x02\0\x03",
        b"\0\0\0\x03md0\0\0x",
    ] {
        let error = InfoRequest::decode(bad).unwrap_err();
        assert!(matches!(error, Error::Length { .. }), "{error}");
    }
    let many = b"\0\0\0\0\xff\xff\xff\xff\0\0\0\0";
    assert!(matches!(
        MetaRequest::decode(many),
        Err(Error::Length { .. })
    ));
    let binary = InfoRequest::decode(b"\0\0\0\x03a\xffb\0\0").unwrap_err();
    assert!(matches!(binary, Error::NotText { at: 1, .. }), "{binary}");
    assert!(decode_block_status(b"\0\0\0\x01").is_err());
    assert!(ErrorChunk::decode(b"\0\0\0\x05\0\x09short").is_err());
}

#[test]
fn a_message_that_is_too_long_is_cut_between_characters() {
    let chunk = ErrorChunk {
        error: error::EIO,
        message: "ü".repeat(4096),
    };
    let read = ErrorChunk::decode(&chunk.encode()).unwrap();
    assert_eq!(read.message, "ü".repeat(2048));
}

/// The handshake of `nbdkit -o`: a size of 1 MiB, `HAS_FLAGS` and `READ_ONLY`.
#[test]
fn an_oldstyle_greeting_has_size_and_flags() {
    let mut bytes = b"NBDMAGIC\0\0\x42\x02\x81\x86\x12\x53".to_vec();
    bytes.extend(b"\0\0\0\0\0\x10\0\0\0\0\0\x03");
    bytes.resize(OLD_GREETING_BYTES, 0);
    assert!(OldGreeting::is_begun(&bytes[..16]));
    assert!(!OldGreeting::is_begun(&Greeting { flags: 3 }.encode()));
    let greeting = OldGreeting::decode(&bytes).expect("a greeting");
    assert_eq!((greeting.size_bytes, greeting.flags), (1 << 20, 3));
    assert!(OldGreeting::decode(&bytes[1..]).is_err());
}

/// The bytes of doc/proto.md: a READ of 64-bit length, and a status of one hole of 1 TiB.
#[test]
fn extended_headers_are_those_of_the_protocol() {
    let request = b"\x21\xe4\x1c\x71\0\0\0\x07cookie!!\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\0";
    let found = ExtendedRequest::decode(request).expect("a request");
    assert_eq!(found.command, command::BLOCK_STATUS);
    assert_eq!((found.offset_bytes, found.length_bytes), (512, 1 << 40));
    assert_eq!(found.payload_bytes(), 0);
    let header = b"\x6e\x8a\x27\x8c\0\x01\0\x06cookie!!\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\x18";
    let found = ExtendedChunkHeader::decode(header).expect("a chunk");
    assert_eq!(
        (found.flags, found.kind),
        (chunk::DONE, chunk::BLOCK_STATUS_EXT)
    );
    assert_eq!((found.offset_bytes, found.length_bytes), (512, 24));
    let status = b"\0\0\0\x01\0\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\x03";
    let hole = ExtendedStatus {
        length_bytes: 1 << 40,
        flags: 3,
    };
    assert_eq!(decode_extended_status(status), Ok((1, vec![hole])));
    assert!(decode_extended_status(&status[..8]).is_err(), "no stretch");
    assert!(Request::decode(request.first_chunk().expect("long enough")).is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        name in "\\PC{0,40}",
        texts in proptest::collection::vec("\\PC{0,20}", 0..5),
        wanted in proptest::collection::vec(any::<u16>(), 0..9),
        numbers in any::<(u64, u64, u32, u16, u16)>(),
    ) {
        let (cookie, offset_bytes, length_bytes, flags, command) = numbers;
        let info = InfoRequest { name: name.clone(), wanted };
        prop_assert_eq!(InfoRequest::decode(&info.encode()), Ok(info));
        let meta = MetaRequest { name: name.clone(), queries: texts };
        prop_assert_eq!(MetaRequest::decode(&meta.encode()), Ok(meta));
        let listed = Listed { name: name.clone(), description: name.clone() };
        prop_assert_eq!(Listed::decode(&listed.encode()), Ok(listed));
        let context = MetaContext { id: length_bytes, name: name.clone() };
        prop_assert_eq!(MetaContext::decode(&context.encode()), Ok(context));
        for fact in [
            Info::Export { size_bytes: offset_bytes, flags },
            Info::Name(name.clone()),
            Info::Description(name.clone()),
            Info::BlockSize { minimum_bytes: 1, preferred_bytes: length_bytes, maximum_bytes: 9 },
        ] {
            prop_assert_eq!(Info::decode(&fact.encode()), Ok(fact));
        }
        let request = Request { flags, command, cookie, offset_bytes, length_bytes };
        prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
        let header = ChunkHeader { flags, kind: command, cookie, length_bytes };
        prop_assert_eq!(ChunkHeader::decode(&header.encode()), Ok(header));
        let long_bytes = cookie.rotate_left(7);
        let request = ExtendedRequest::from(request);
        let request = ExtendedRequest { length_bytes: long_bytes, ..request };
        prop_assert_eq!(ExtendedRequest::decode(&request.encode()), Ok(request));
        let kind = command;
        let header = ExtendedChunkHeader {
            flags, kind, cookie, offset_bytes, length_bytes: long_bytes,
        };
        prop_assert_eq!(ExtendedChunkHeader::decode(&header.encode()), Ok(header));
        let stretch = ExtendedStatus { length_bytes: long_bytes, flags: offset_bytes };
        let stretches = vec![stretch; usize::from(command % 5) + 1];
        let status = encode_extended_status(length_bytes, &stretches);
        prop_assert_eq!(decode_extended_status(&status), Ok((length_bytes, stretches)));
        let hole = Hole { offset_bytes, length_bytes };
        prop_assert_eq!(Hole::decode(&hole.encode()), Ok(hole));
        let failed = ErrorChunk { error: length_bytes, message: name };
        prop_assert_eq!(ErrorChunk::decode(&failed.encode()), Ok(failed));
    }
}
