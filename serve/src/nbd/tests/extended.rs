//! Extended headers, and block status of several contexts: 64-bit lengths there and back.

use super::*;
use ugeom_format::wire::nbd::{
    EXTENDED_CHUNK_HEADER_BYTES, ExtendedChunkHeader, ExtendedRequest, ExtendedStatus, MetaContext,
    decode_extended_status,
};

const GIB: u64 = 1 << 30;

/// A client that has agreed on extended headers and both contexts.
struct Extended(UnixStream);

fn shaken(running: &Running, option: u32) -> (Peer, Vec<MetaContext>) {
    let mut peer = Peer::greeted(running.connect());
    peer.option(option, &[]);
    assert_eq!(peer.replies(), [(option_reply::ACK, Vec::new())]);
    let request = MetaRequest {
        name: "md0".to_owned(),
        queries: vec![
            "qemu:allocation-depth".to_owned(),
            "other:context".to_owned(),
            "base:allocation".to_owned(),
        ],
    };
    peer.option(option::SET_META_CONTEXT, &request.encode());
    let mut replies = peer.replies();
    assert_eq!(replies.pop(), Some((option_reply::ACK, Vec::new())));
    let contexts = replies.iter();
    let contexts = contexts.map(|(_, data)| MetaContext::decode(data).expect("a context"));
    let contexts = contexts.collect();
    (peer, contexts)
}

impl Extended {
    fn new(running: &Running) -> Self {
        let (mut peer, _) = shaken(running, option::EXTENDED_HEADERS);
        peer.option(option::STRUCTURED_REPLY, &[]);
        assert_eq!(peer.refusal().0, option_reply::ERR_EXT_HEADER_REQD);
        Self(peer.go("md0").expect("the export").stream)
    }

    /// A request, its payload, and the chunks of its reply: their kinds and data.
    fn ask(
        &mut self,
        (command, flags): (u16, u16),
        offset_bytes: u64,
        length_bytes: u64,
        payload: &[u8],
    ) -> Vec<(u16, Vec<u8>)> {
        let request = ExtendedRequest {
            flags,
            command,
            cookie: offset_bytes ^ 77,
            offset_bytes,
            length_bytes,
        };
        self.0.write_all(&request.encode()).expect("a request");
        self.0.write_all(payload).expect("its payload");
        let mut chunks = Vec::new();
        loop {
            let mut header = [0; EXTENDED_CHUNK_HEADER_BYTES];
            self.0.read_exact(&mut header).expect("a chunk");
            let header = ExtendedChunkHeader::decode(&header).expect("an extended one");
            assert_eq!(header.cookie, request.cookie);
            assert_eq!(header.offset_bytes, offset_bytes);
            let mut data = vec![0; header.length_bytes as usize];
            self.0.read_exact(&mut data).expect("its data");
            chunks.push((header.kind, data));
            if header.flags & chunk::DONE != 0 {
                return chunks;
            }
        }
    }

    fn error(&mut self, what: (u16, u16), offset: u64, length: u64, payload: &[u8]) -> u32 {
        let chunks = self.ask(what, offset, length, payload);
        assert_eq!((chunks.len(), chunks[0].0), (1, chunk::ERROR));
        ErrorChunk::decode(&chunks[0].1).expect("an error").error
    }
}

#[test]
fn lengths_beyond_4_gib_are_zeroed_and_told_in_one_piece() {
    let running = serve("md:12g", |_| {});
    let mut client = Extended::new(&running);
    let payload = command_flag::PAYLOAD_LEN;
    let data = vec![9; 64 << 10];
    let done = [(chunk::NONE, Vec::new())];
    let written = client.ask((command::WRITE, payload), 11 * GIB, 64 << 10, &data);
    assert_eq!(written, done);
    // A client that forgets the flag is understood.
    assert_eq!(client.ask((command::WRITE, 0), 0, 64 << 10, &data), done);
    let zeroed = client.ask((command::WRITE_ZEROES, 0), 0, 10 * GIB, &[]);
    assert_eq!(zeroed, done);
    let told = client.ask((command::BLOCK_STATUS, 0), 0, 12 * GIB, &[]);
    let told: Vec<_> = told
        .iter()
        .map(|(kind, data)| {
            assert_eq!(*kind, chunk::BLOCK_STATUS_EXT);
            decode_extended_status(data).expect("a status")
        })
        .collect();
    let status = |length_bytes, flags| ExtendedStatus {
        length_bytes,
        flags,
    };
    let after = GIB - (64 << 10);
    let expected = |hole, data| {
        let data = status(64 << 10, data);
        vec![status(11 * GIB, hole), data, status(after, hole)]
    };
    assert_eq!(told, [(1, expected(3, 0)), (2, expected(0, 1))]);
    let read = client.ask((command::READ, 0), 11 * GIB + 1, 100, &[]);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].0, chunk::OFFSET_DATA);
    assert_eq!(read[0].1[8..], [9; 100]);
}

#[test]
fn what_makes_no_sense_with_extended_headers_is_refused_and_passed_over() {
    let running = serve("md:1m", |_| {});
    let mut client = Extended::new(&running);
    let payload = command_flag::PAYLOAD_LEN;
    let cases = [
        ((command::READ, payload), 0, 100, error::EINVAL),
        ((command::BLOCK_STATUS, payload), 0, 100, error::EINVAL),
        ((command::WRITE, payload), 1 << 20, 100, error::ENOSPC),
    ];
    for (what, offset, length, expected) in cases {
        let error = client.error(what, offset, length, &vec![1; length as usize]);
        assert_eq!(error, expected, "{what:?}");
    }
    for length in [0, 1 << 40, u64::MAX] {
        let error = client.error((command::READ, 0), 0, length, &[]);
        assert_eq!(error, error::EINVAL);
    }
    assert_eq!(client.ask((command::FLUSH, 0), 0, 0, &[]).len(), 1);
}

#[test]
fn each_context_that_was_chosen_has_its_chunk() {
    let running = serve("md:4m", |_| {});
    let (peer, contexts) = shaken(&running, option::STRUCTURED_REPLY);
    let names: Vec<_> = contexts
        .iter()
        .map(|it| (it.id, it.name.as_str()))
        .collect();
    assert_eq!(
        names,
        [(1, "base:allocation"), (2, "qemu:allocation-depth")]
    );
    let mut client = peer.go("md0").expect("the export");
    assert_eq!(client.write(0, 1 << 20, &[1; 4096]).error, 0);
    client.send(command::BLOCK_STATUS, 0, 0, 2 << 20);
    let mut chunks = Vec::new();
    for _ in 0..2 {
        let mut head = [0; CHUNK_HEADER_BYTES];
        client.stream.read_exact(&mut head).expect("a chunk");
        let head = ChunkHeader::decode(&head).expect("a chunk");
        let mut data = vec![0; head.length_bytes as usize];
        client.stream.read_exact(&mut data).expect("its data");
        let (id, stretches) = decode_block_status(&data).expect("a status");
        let flags: Vec<u32> = stretches.iter().map(|it| it.flags).collect();
        chunks.push((id, flags, head.is_last()));
    }
    assert_eq!(chunks[0], (1, vec![3, 0, 3], false));
    assert_eq!(chunks[1], (2, vec![0, 1, 0], true));
}

#[test]
fn requests_longer_than_any_buffer_are_answered() {
    let running = serve("md:96m", |_| {});
    let mut simple = running.client("", false);
    let mut chunks = running.client("", true);
    let data: Vec<u8> = (0..70_u32 << 20).map(|at| (at >> 12) as u8).collect();
    assert_eq!(simple.write(0, 4097, &data).error, 0);
    assert!(simple.read(4097, 70 << 20) == data);
    assert!(chunks.read(4097, 70 << 20) == data);
    let whole = chunks.ask(command::READ, command_flag::DF, 4097, 70 << 20);
    assert_eq!((whole.error, whole.chunks), (0, 1));
    assert!(whole.data == data);
}
