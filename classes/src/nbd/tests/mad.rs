//! Servers that break every connection over a request, and such as tell less than a sector.

use super::*;
use ugeom_format::wire::nbd::{ChunkHeader, Status, chunk, encode_block_status, state};

#[test]
fn a_request_over_which_every_connection_breaks_fails_in_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    std::thread::spawn(move || {
        // As long as the test runs.
        loop {
            serve_once(&listener, |mut stream| {
                // Asked for something, it leaves.
                let _ = next_request(&mut stream);
            });
        }
    });
    let target = open(&target_of(&folder, "", "&retry=250ms"));
    let (opened, mut channel) = opened(&target);
    let error = channel.read(&opened, 0, &mut [0; 512]).expect_err("never");
    assert_eq!(error.errno, Errno::IO);
}

#[test]
fn less_than_a_sector_is_data_and_nothing_at_all_is_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let server = std::thread::spawn(move || {
        let flags = export_flag::HAS_FLAGS | export_flag::SEND_FLUSH;
        serve_once_as(&listener, flags, true, drop);
        for length_bytes in [0, 100] {
            serve_once_as(&listener, flags, true, |mut stream| {
                let request = next_request(&mut stream).expect("a request");
                assert_eq!(request.command, command::BLOCK_STATUS);
                let flags = state::HOLE | state::ZERO;
                let told = [Status {
                    length_bytes,
                    flags,
                }];
                let data = encode_block_status(1, &told);
                let header = ChunkHeader {
                    flags: chunk::DONE,
                    kind: chunk::BLOCK_STATUS,
                    cookie: request.cookie,
                    length_bytes: data.len() as u32,
                };
                let reply = [&header.encode()[..], &data].concat();
                stream.write_all(&reply).expect("a reply");
                // Until the client leaves.
                let _ = stream.read(&mut [0; 64]);
            });
        }
    });
    let target = open(&target_of(&folder, "", ""));
    let (opened, mut channel) = opened(&target);
    let found = channel.extents(&opened, 0, 1 << 20, 10).expect("found");
    let found: Vec<_> = found.iter().map(|it| (it.length_bytes, it.kind)).collect();
    assert_eq!(found, [(512, ExtentKind::Data)]);
    drop((opened, channel, target));
    server.join().expect("the server");
}
