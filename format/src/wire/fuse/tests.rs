//! Messages written out by hand from the kernel's header, round trips, and bytes that no kernel
//! sends. That the layouts are the kernel's is shown by the server's tests, which mount.

use super::*;
use proptest::prelude::*;

/// Numbers of 4 and 8 bytes, one after another.
fn words(parts: &[(u64, usize)]) -> Vec<u8> {
    let bytes = parts.iter().map(|(value, size)| match size {
        4 => (*value as u32).to_ne_bytes().to_vec(),
        2 => (*value as u16).to_ne_bytes().to_vec(),
        _ => value.to_ne_bytes().to_vec(),
    });
    bytes.collect::<Vec<_>>().concat()
}

fn in_header(length: u64, opcode: u32) -> Vec<u8> {
    words(&[
        (length, 4),
        (opcode.into(), 4),
        (77, 8),
        (2, 8),
        (1000, 4),
        (100, 4),
        (4711, 4),
        (0, 4),
    ])
}

#[test]
fn a_read_is_what_the_kernel_sends() {
    let argument = words(&[
        (5, 8),
        (1 << 40, 8),
        (4096, 4),
        (0, 4),
        (9, 8),
        (0o100_000, 4),
        (0, 4),
    ]);
    let bytes = [in_header(80, opcode::READ), argument].concat();
    let (header, request) = InHeader::message(&bytes).unwrap();
    let (who, what) = (
        (header.uid, header.gid, header.pid),
        (header.unique, header.node),
    );
    assert_eq!((who, what), ((1000, 100, 4711), (77, 2)));
    let expected = Transfer {
        handle: 5,
        offset: 1 << 40,
        length_bytes: 4096,
        // O_LARGEFILE
        open_flags: 0o100_000,
    };
    assert_eq!(request, Request::Read(expected));
    assert_eq!(header.encode()[..], bytes[..IN_HEADER_BYTES]);
}

#[test]
fn a_name_ends_with_a_nul() {
    let bytes = [in_header(46, opcode::LOOKUP), b"md0s1\0".to_vec()].concat();
    let (_, request) = InHeader::message(&bytes).unwrap();
    assert_eq!(request, Request::Lookup(b"md0s1"));
    let bytes = [in_header(45, opcode::LOOKUP), b"md0s1".to_vec()].concat();
    let error = InHeader::message(&bytes).unwrap_err();
    assert_eq!(
        error,
        Error::Name {
            opcode: opcode::LOOKUP
        }
    );
}

#[test]
fn a_length_that_is_not_the_messages_is_refused() {
    for (said, body) in [(40, 8), (48, 7), (41, 0)] {
        let bytes = [in_header(said, opcode::OPEN), vec![0; body]].concat();
        assert!(InHeader::message(&bytes).is_err(), "{said} {body}");
    }
    assert!(matches!(
        InHeader::decode(&[0; 39]),
        Err(Error::Short { needed: 40, .. })
    ));
}

#[test]
fn flags_of_64_bits_are_two_words() {
    let argument = words(&[(7, 4), (45, 4), (131_072, 4), (1 << 30, 4), (1 << 9, 4)]);
    let argument = [argument, vec![0; 44]].concat();
    let request = Request::decode(opcode::INIT, &argument, &[]).unwrap();
    let Request::Init(init) = request else {
        panic!("{request:?}");
    };
    assert_eq!(init.flags, init_flag::INIT_EXT | init_flag::OVER_IO_URING);
    let reply = InitReply {
        minor: 45,
        max_readahead_bytes: 131_072,
        flags: init.flags,
        max_background: 512,
        congestion_threshold: 384,
        max_write_bytes: 1 << 20,
        max_pages: 256,
    };
    let expected = words(&[
        (7, 4),
        (45, 4),
        (131_072, 4),
        (1 << 30, 4),
        (512, 2),
        (384, 2),
        (1 << 20, 4),
        (1, 4),
        (256, 2),
        (0, 2),
        (1 << 9, 4),
    ]);
    assert_eq!(reply.encode()[..36], expected);
    assert_eq!(InitReply::decode(&reply.encode()), Ok(reply));
}

#[test]
fn attributes_are_those_of_stat() {
    let attributes = Attributes {
        node: 3,
        kind: FileKind::File,
        permissions: 0o640,
        size_bytes: 1025,
        time: (9, 8),
        uid: 7,
        gid: 6,
        block_bytes: 4096,
        allocated_bytes: 1024,
    };
    let expected = words(&[
        (3, 8),
        (1025, 8),
        (2, 8),
        (9, 8),
        (9, 8),
        (9, 8),
        (8, 4),
        (8, 4),
        (8, 4),
        (0o100_640, 4),
        (1, 4),
        (7, 4),
        (6, 4),
        (0, 4),
        (4096, 4),
        (0, 4),
    ]);
    assert_eq!(attributes_reply(&attributes)[16..], expected);
    let entry = Entry(attributes).encode();
    assert_eq!(
        (&entry[..8], &entry[40..]),
        (&words(&[(3, 8)])[..], &expected[..])
    );
}

#[test]
fn a_listing_ends_where_the_room_does() {
    let mut names = Names::new(32 + 40);
    assert!(names.push(1, 1, FileKind::Directory, b"."));
    assert!(names.push(2, 3, FileKind::File, b"disk.imgs1a"));
    assert!(!names.push(3, 4, FileKind::File, b"x"));
    let first = [
        words(&[(1, 8), (1, 8), (1, 4), (4, 4)]),
        b".\0\0\0\0\0\0\0".to_vec(),
    ]
    .concat();
    let second = words(&[(2, 8), (3, 8), (11, 4), (8, 4)]);
    let second = [second, b"disk.imgs1a\0\0\0\0\0".to_vec()].concat();
    assert_eq!(names.encode(), [first, second].concat());
}

#[test]
fn a_place_of_the_ring_holds_request_and_reply() {
    let mut place = [0; ring::PLACE_BYTES];
    place[..IN_HEADER_BYTES].copy_from_slice(&in_header(46, opcode::LOOKUP));
    place[264..276].copy_from_slice(&words(&[(42, 8), (4, 4)]));
    assert_eq!(ring::payload_bytes(&place), 4);
    let (header, request) = ring::request(&place, b"md0\0").unwrap();
    assert_eq!((header.unique, request), (77, Request::Lookup(b"md0")));
    assert_eq!(ring::commit_number(&place), 42);
    assert!(ring::request(&place, b"md0").is_err());
    ring::put_reply(&mut place, 77, -2, 0);
    assert_eq!(
        place[..16],
        words(&[(16, 4), ((-2_i32) as u32 as u64, 4), (77, 8)])
    );
    let command = ring::command(3, 42);
    assert_eq!(command[..18], words(&[(0, 8), (42, 8), (3, 2)]));
}

fn transfer() -> impl Strategy<Value = Transfer> {
    let any = any::<(u64, u64, u32, u32)>();
    any.prop_map(|(handle, offset, length_bytes, open_flags)| Transfer {
        handle,
        offset,
        length_bytes,
        open_flags,
    })
}

fn request() -> impl Strategy<Value = Request<'static>> {
    prop_oneof![
        any::<(u32, u32, u32, u64)>().prop_map(|(major, minor, max_readahead_bytes, flags)| {
            Request::Init(Init {
                major,
                minor,
                max_readahead_bytes,
                flags,
            })
        }),
        prop_oneof![Just(&b"md0"[..]), Just(&b""[..]), Just(&b"disk.imgs1a"[..])]
            .prop_map(Request::Lookup),
        Just(Request::GetAttributes),
        any::<(u32, u64)>().prop_map(|(which, size_bytes)| {
            Request::SetAttributes(SetAttributes { which, size_bytes })
        }),
        any::<u32>().prop_map(Request::Open),
        transfer().prop_map(Request::Read),
        transfer().prop_map(Request::Write),
        transfer().prop_map(Request::ReadDirectory),
        any::<u64>().prop_map(Request::Release),
        any::<u64>().prop_map(Request::Sync),
        any::<u64>().prop_map(Request::Flush),
        any::<u64>().prop_map(Request::Interrupt),
        Just(Request::OpenDirectory),
        Just(Request::ReleaseDirectory),
        Just(Request::FileSystem),
        Just(Request::Destroy),
        any::<(u64, u64, u64, u32)>().prop_map(|(handle, offset, length_bytes, mode)| {
            Request::Fallocate(Fallocate {
                handle,
                offset,
                length_bytes,
                mode,
            })
        }),
        any::<(u64, u64, u32)>().prop_map(|(handle, offset, whence)| {
            Request::Lseek(Lseek {
                handle,
                offset,
                whence,
            })
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(request in request()) {
        let (opcode, argument, rest) = request.encode().unwrap();
        prop_assert_eq!(argument.len(), argument_bytes(opcode));
        prop_assert_eq!(Request::decode(opcode, &argument, &rest), Ok(request));
        let length_bytes = (IN_HEADER_BYTES + argument.len() + rest.len()) as u32;
        let header = InHeader { length_bytes, opcode, ..InHeader::default() };
        let message = [&header.encode()[..], &argument, &rest].concat();
        prop_assert_eq!(InHeader::message(&message), Ok((header, request)));
        // One byte less is no message any more.
        prop_assert!(InHeader::message(&message[..message.len() - 1]).is_err());
    }
}
