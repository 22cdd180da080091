//! Servers that break every connection over a request, and such as tell less than a sector.

use super::*;
use ugeom_format::wire::nbd::{ChunkHeader, Status, chunk, encode_block_status, state};
use ugeom_stack::{Stack, StackKnobs};

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

/// qemu-nbd breaks the connection where its disk cannot be read.
#[test]
fn a_read_beside_one_that_breaks_every_connection_succeeds() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    std::thread::spawn(move || {
        // As long as the test runs.
        loop {
            serve_once(&listener, |mut stream| {
                while let Some(request) = next_request(&mut stream) {
                    if request.command == command::DISC || request.offset_bytes == 4096 {
                        return;
                    }
                    let _ = stream.write_all(&sixes(&request));
                }
            });
        }
    });
    let target = open(&target_of(&folder, "", "&retry=200ms"));
    let (opened, mut channel) = opened(&target);
    for _ in 0..3 {
        channel.read(&opened, 4096, &mut [0; 512]).expect_err("bad");
        channel.read(&opened, 0, &mut [0; 512]).expect("good");
    }
}

/// As qemu-nbd does, with an image that cannot be read: looking at it takes dozens of reads.
#[test]
fn a_server_of_our_own_is_asked_three_times_over_broken_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let (tell, breaks) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // As long as the test runs.
        loop {
            serve_once(&listener, |mut stream| {
                if next_request(&mut stream).is_some_and(|it| it.command == command::READ) {
                    let _ = tell.send(());
                }
            });
        }
    });
    let plan = crate::nbd::private(crate::nbd::Private {
        name: "image".into(),
        socket,
        sector_bytes: 512,
        writable: false,
        config: Vec::new(),
        presence: None,
        keeps: Box::new(()),
    });
    let stack = Stack::new(StackKnobs::default(), Vec::new()).expect("a stack");
    let image = stack
        .create("NBD", plan.expect("a plan"), &[])
        .expect("a geom")[0];
    let opened = stack.open(image, Delta::READ).expect("opens");
    let mut channel = stack.channel(1).expect("a channel");
    let read = channel.read(&opened, 0, &mut [0; 512]);
    assert_eq!(read.map_err(|error| error.errno), Err(Errno::IO));
    assert!(breaks.try_iter().count() <= 3);
}

/// A reply of one chunk.
pub(super) fn chunk_of(request: &Request, (kind, flags): (u16, u16), data: &[u8]) -> Vec<u8> {
    let header = ChunkHeader {
        flags,
        kind,
        cookie: request.cookie,
        length_bytes: data.len() as u32,
    };
    [&header.encode()[..], data].concat()
}

pub(super) fn status_of(request: &Request, context: u32, flags: u16, length_bytes: u32) -> Vec<u8> {
    let hole = Status {
        length_bytes,
        flags: state::HOLE | state::ZERO,
    };
    let data = encode_block_status(context, &[hole]);
    chunk_of(request, (chunk::BLOCK_STATUS, flags), &data)
}

/// The server's reply to a request.
type Answer = Box<dyn Fn(&Request) -> Vec<u8> + Send>;

/// A server that gives these answers over one connection after that of the probe, and then leaves.
fn answers(answers: Vec<Answer>, test: impl FnOnce(&Opened, &mut Channel)) {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let server = std::thread::spawn(move || {
        let flags = export_flag::HAS_FLAGS | export_flag::SEND_FLUSH;
        serve_once_as(&listener, flags, true, drop);
        serve_once_as(&listener, flags, true, |mut stream| {
            for answer in answers {
                let request = next_request(&mut stream).expect("a request");
                stream.write_all(&answer(&request)).expect("a reply");
            }
            // Until the client leaves.
            let _ = stream.read(&mut [0; 64]);
        });
    });
    let target = open(&target_of(&folder, "", "&retry=250ms"));
    let (opened, mut channel) = opened(&target);
    test(&opened, &mut channel);
    drop((opened, channel, target));
    server.join().expect("the server");
}

fn extents_of(opened: &Opened, channel: &mut Channel) -> Vec<(u64, ExtentKind)> {
    let found = channel.extents(opened, 0, 1 << 20, 10).expect("found");
    let kinds = found.iter().map(|it| (it.length_bytes, it.kind));
    kinds.collect()
}

#[test]
fn less_than_a_sector_is_data_and_so_is_all_of_which_nothing_is_told() {
    let told =
        |length| -> Answer { Box::new(move |request| status_of(request, 1, chunk::DONE, length)) };
    answers(vec![told(0), told(100)], |opened, channel| {
        let all = [(1 << 20, ExtentKind::Data)];
        assert_eq!(
            extents_of(opened, channel),
            all,
            "nbdkit's blocksize-policy does so"
        );
        assert_eq!(extents_of(opened, channel), [(512, ExtentKind::Data)]);
    });
}

#[test]
fn the_status_of_another_context_and_a_second_one_are_left_alone() {
    let both = |request: &Request| {
        let other = status_of(request, 2, 0, 1 << 20);
        let one = status_of(request, 1, 0, 4096);
        let second = status_of(request, 1, chunk::DONE, 8192);
        [other, one, second].concat()
    };
    answers(vec![Box::new(both)], |opened, channel| {
        assert_eq!(extents_of(opened, channel), [(4096, ExtentKind::Hole)]);
    });
}

#[test]
fn data_that_is_sent_twice_does_not_stand_for_data_that_is_not_sent() {
    let data = |request: &Request, at: u64, flags| {
        let data = [&at.to_be_bytes()[..], &[6; 512]].concat();
        chunk_of(request, (chunk::OFFSET_DATA, flags), &data)
    };
    let twice = move |request: &Request| {
        let chunks = [(1024, 0), (0, 0), (0, chunk::DONE)];
        chunks.map(|(at, flags)| data(request, at, flags)).concat()
    };
    let backwards = move |request: &Request| {
        let chunks = [(1024, 0), (0, 0), (512, chunk::DONE)];
        chunks.map(|(at, flags)| data(request, at, flags)).concat()
    };
    answers(
        vec![Box::new(twice), Box::new(backwards)],
        |opened, channel| {
            let mut bytes = [0; 1536];
            let error = channel.read(opened, 0, &mut bytes).expect_err("a gap");
            assert_eq!(error.errno, Errno::IO);
            channel.read(opened, 0, &mut bytes).expect("in any order");
            assert_eq!(bytes, [6; 1536]);
        },
    );
}
