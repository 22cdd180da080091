//! Servers that are killed and lose data: the repeated requests, and the results of later FLUSHes.

use super::*;
use std::sync::mpsc::{Receiver, channel};

/// A server without memory, which answers all requests well and tells what it was asked.
struct Forgetful {
    folder: TempDir,
    asked: Receiver<(u16, u64, u32)>,
}

/// Serves connections one after another: the first is that of the question, each of the others
/// ends, unanswered, with the request of the number in `ends`, and the last answers for ever.
fn forgetful(flags: u16, ends: &[usize]) -> Forgetful {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let (tell, asked) = channel();
    let ends = ends.to_vec();
    std::thread::spawn(move || {
        serve_once_with(&listener, flags, drop);
        for end in ends.into_iter().chain([usize::MAX]) {
            serve_once_with(&listener, flags, |mut stream| {
                let mut number = 0;
                while let Some(request) = next_request(&mut stream) {
                    if request.command == command::DISC {
                        return;
                    }
                    let mut data = vec![0; request.payload_bytes() as usize];
                    stream.read_exact(&mut data).expect("its data");
                    let what = (request.command, request.offset_bytes, request.length_bytes);
                    let _ = tell.send(what);
                    if number == end {
                        return;
                    }
                    number += 1;
                    let (error, cookie) = (0, request.cookie);
                    let head = SimpleReply { error, cookie }.encode();
                    let reads = request.command == command::READ;
                    let data = vec![6; if reads { request.length_bytes } else { 0 } as usize];
                    let _ = stream.write_all(&[&head[..], &data].concat());
                }
            });
        }
    });
    Forgetful { folder, asked }
}

const USUAL: u16 = export_flag::HAS_FLAGS | export_flag::SEND_FLUSH;

/// Once with a connection for each thread, once with one for all.
const BOTH: [u16; 2] = [USUAL | export_flag::CAN_MULTI_CONN, USUAL];

#[test]
fn a_flush_after_a_loss_fails_once() {
    for flags in BOTH {
        let server = forgetful(flags, &[3]);
        let target = open(&target_of(&server.folder, "", ""));
        let (opened, mut channel) = opened(&target);
        channel.write(&opened, 0, &[1; 512]).expect("written");
        channel.flush(&opened).expect("flushed");
        channel.write(&opened, 512, &[1; 512]).expect("written");
        // The connection ends with this request: what was written before is perhaps gone.
        let mut bytes = [0; 512];
        channel.read(&opened, 0, &mut bytes).expect("read, later");
        let error = channel.flush(&opened).expect_err("something may be lost");
        assert_eq!(error.errno, Errno::IO);
        assert!(error.to_string().contains("may be lost"), "{error}");
        channel
            .write(&opened, 512, &[1; 512])
            .expect("written again");
        channel.flush(&opened).expect("flushed");
    }
}

#[test]
fn a_flush_after_a_break_succeeds_when_nothing_was_to_be_lost() {
    for flags in BOTH {
        let server = forgetful(flags, &[2]);
        let target = open(&target_of(&server.folder, "", ""));
        let (opened, mut channel) = opened(&target);
        channel.write(&opened, 0, &[1; 512]).expect("written");
        channel.flush(&opened).expect("flushed");
        channel
            .read(&opened, 0, &mut [0; 512])
            .expect("read, later");
        channel.flush(&opened).expect("flushed");
    }
}

#[test]
fn a_durable_write_is_written_again_when_the_flush_behind_it_was_not_answered() {
    for flags in BOTH {
        let server = forgetful(flags, &[1]);
        let target = open(&target_of(&server.folder, "", ""));
        let (opened, mut channel) = opened(&target);
        let draft = channel.bio().expect("a bio");
        let buffer = Buffer::from_slice(&[5; 4096]);
        channel.submit(&opened, draft.write(8192, buffer).flags(Flags::FUA));
        while channel.wait(None) == 0 {}
        let finished = channel.finished().expect("it is back");
        assert_eq!(finished.result(), Ok(4096));
        let asked: Vec<_> = server.asked.try_iter().collect();
        let write = (command::WRITE, 8192, 4096);
        let flush = (command::FLUSH, 0, 0);
        assert_eq!(asked, [write, flush, write, flush]);
    }
}

#[test]
fn all_requests_in_flight_are_asked_again_in_their_order() {
    for flags in BOTH {
        let server = forgetful(flags, &[0, 5]);
        let target = open(&target_of(&server.folder, "", ""));
        let (opened, mut channel) = opened(&target);
        for number in 0..10 {
            let draft = channel.bio().expect("a bio");
            channel.submit(&opened, draft.read(number * 4096, Buffer::new(4096)));
        }
        let mut back = 0;
        while back < 10 {
            channel.wait(None);
            while let Some(mut finished) = channel.finished() {
                assert_eq!(finished.result(), Ok(4096));
                let buffer = finished.take_buffer().expect("a buffer");
                assert!(buffer.iter().all(|&byte| byte == 6));
                back += 1;
            }
        }
        let asked: Vec<u64> = server
            .asked
            .try_iter()
            .map(|(_, at, _)| at / 4096)
            .collect();
        // One was read before the first end; five were answered before the second.
        assert_eq!(asked[..7], [0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(asked[7..], [5, 6, 7, 8, 9]);
    }
}

#[test]
fn a_server_that_falls_silent_is_left_for_another_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let server = std::thread::spawn(move || {
        serve_once_with(&listener, USUAL, drop);
        let mut silent = None;
        serve_once_with(&listener, USUAL, |mut stream| {
            next_request(&mut stream).expect("a request");
            silent = Some(stream);
        });
        serve_once_with(&listener, USUAL, |mut stream| {
            let request = next_request(&mut stream).expect("the request again");
            let (error, cookie) = (0, request.cookie);
            let head = SimpleReply { error, cookie }.encode();
            let data = vec![4; request.length_bytes as usize];
            let _ = stream.write_all(&[&head[..], &data].concat());
            // Until the client leaves.
            let _ = stream.read(&mut [0; 64]);
        });
        drop(silent);
    });
    let target = open(&target_of(&folder, "", "&timeout=100ms"));
    let (opened, mut channel) = opened(&target);
    let mut bytes = [0; 512];
    channel.read(&opened, 0, &mut bytes).expect("in the end");
    assert_eq!(bytes, [4; 512]);
    drop((opened, channel, target));
    server.join().expect("the server");
}

#[test]
fn an_old_server_is_asked_in_the_old_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let server = std::thread::spawn(move || {
        // No zeroes behind the answer, and with them.
        for flags in [3, 1] {
            let (mut stream, _) = listener.accept().expect("a client");
            let greeting = Greeting { flags }.encode();
            stream.write_all(&greeting).expect("a greeting");
            let mut agreed = [0; 4];
            stream.read_exact(&mut agreed).expect("flags");
            assert_eq!(agreed, u32::from(flags).to_be_bytes());
            let name = loop {
                let mut header = [0; 16];
                stream.read_exact(&mut header).expect("an option");
                let header = OptionHeader::decode(&header).expect("an option");
                let mut data = vec![0; header.length as usize];
                stream.read_exact(&mut data).expect("its data");
                if header.option == option::EXPORT_NAME {
                    break data;
                }
                let refusal = OptionReplyHeader {
                    option: header.option,
                    reply: option_reply::ERR_UNSUP,
                    length: 0,
                };
                stream.write_all(&refusal.encode()).expect("a reply");
            };
            assert_eq!(name, b"old");
            let answer = ExportReply {
                size_bytes: 1 << 20,
                flags: export_flag::HAS_FLAGS,
            };
            let answer = answer.encode(flags == 3);
            stream.write_all(&answer).expect("the answer");
            if let Some(request) = next_request(&mut stream) {
                let (error, cookie) = (0, request.cookie);
                let head = SimpleReply { error, cookie }.encode();
                let data = vec![7; request.length_bytes as usize];
                let _ = stream.write_all(&[&head[..], &data].concat());
            }
        }
    });
    for _ in 0..2 {
        let target = open(&target_of(&folder, "old", ""));
        let (opened, mut channel) = opened(&target);
        let mut bytes = [0; 512];
        channel.read(&opened, 0, &mut bytes).expect("read");
        assert_eq!(bytes, [7; 512]);
    }
    server.join().expect("the server");
}

/// A server that takes two FLUSHes, answers the second one well, and then fails the first.
fn turning(flags: u16) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    std::thread::spawn(move || {
        serve_once_with(&listener, flags, drop);
        serve_once_with(&listener, flags, |mut stream| {
            let mut first = None;
            while let Some(request) = next_request(&mut stream) {
                let mut data = vec![0; request.payload_bytes() as usize];
                stream.read_exact(&mut data).expect("its data");
                let mut answer = |error, cookie| {
                    let head = SimpleReply { error, cookie }.encode();
                    let _ = stream.write_all(&head);
                };
                if request.command != command::FLUSH {
                    answer(0, request.cookie);
                } else if let Some(other) = first.take() {
                    answer(0, request.cookie);
                    answer(ugeom_format::wire::nbd::error::EIO, other);
                } else {
                    first = Some(request.cookie);
                }
            }
        });
    });
    folder
}

#[test]
fn of_two_flushes_at_a_time_none_succeeds_when_one_fails() {
    for flags in BOTH {
        let folder = turning(flags);
        let target = open(&target_of(&folder, "", ""));
        let (opened, mut channel) = opened(&target);
        // The server has no FUA: a FLUSH of its own follows each of them.
        for number in 0..2 {
            let draft = channel.bio().expect("a bio");
            let draft = draft.write(number * 512, Buffer::from_slice(&[1; 512]));
            channel.submit(&opened, draft.flags(Flags::FUA));
        }
        let mut failed = 0;
        while failed < 2 {
            channel.wait(None);
            while let Some(finished) = channel.finished() {
                assert_eq!(finished.result(), Err(Errno::IO));
                failed += 1;
            }
        }
    }
}
