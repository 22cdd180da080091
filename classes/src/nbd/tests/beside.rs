//! A FLUSH that fails over one connection, and its effect on writes over the others: a server has
//! one disk, and may report a loss to the request that meets it, and to no other.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use ugeom_format::wire::nbd::error;

const MANY: u16 = export_flag::HAS_FLAGS | export_flag::SEND_FLUSH | export_flag::CAN_MULTI_CONN;
const BLOCK: u64 = 4096;

/// A request, and the connection to answer it.
struct Asked {
    request: Request,
    stream: UnixStream,
}

impl Asked {
    fn answer(mut self, error: u32) {
        let cookie = self.request.cookie;
        let head = SimpleReply { error, cookie }.encode();
        self.stream.write_all(&head).expect("answered");
    }
}

fn next(asked: &Receiver<Asked>, command: u16) -> Asked {
    let next = asked.recv().expect("a request");
    assert_eq!(next.request.command, command);
    next
}

/// A server that leaves all answers to the test.
fn asked_of(flags: u16) -> (TempDir, Receiver<Asked>) {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let tell = tell.clone();
            std::thread::spawn(move || {
                shake_hands(stream, flags, false, |stream| pass_on(stream, &tell));
            });
        }
    });
    (folder, asked)
}

fn pass_on(mut stream: UnixStream, tell: &Sender<Asked>) {
    let mut header = [0; 28];
    while stream.read_exact(&mut header).is_ok() {
        let request = Request::decode(&header).expect("a request");
        let mut data = vec![0; request.payload_bytes() as usize];
        if stream.read_exact(&mut data).is_err() || request.command == command::DISC {
            return;
        }
        let stream = stream.try_clone().expect("a descriptor");
        let _ = tell.send(Asked { request, stream });
    }
}

/// A request of a thread, over a connection of its own where the server has several.
fn submit<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    target: &'scope Target,
    block: u64,
    flags: Flags,
) -> std::thread::ScopedJoinHandle<'scope, Result<u64, Errno>> {
    scope.spawn(move || {
        let (opened, mut channel) = opened(target);
        let draft = channel.bio().expect("a bio");
        let buffer = Buffer::from_slice(&[1; BLOCK as usize]);
        channel.submit(&opened, draft.write(block * BLOCK, buffer).flags(flags));
        result(&mut channel)
    })
}

/// Writes a block, which the server answers well.
fn write(channel: &mut Channel, opened: &Opened, asked: &Receiver<Asked>) {
    let draft = channel.bio().expect("a bio");
    let buffer = Buffer::from_slice(&[1; BLOCK as usize]);
    channel.submit(opened, draft.write(0, buffer));
    let answered = asked_while_polled(channel, asked);
    assert_eq!(answered.request.command, command::WRITE);
    answered.answer(0);
    assert_eq!(result(channel), Ok(BLOCK));
}

/// The next request, for which the channel may have to connect first.
fn asked_while_polled(channel: &mut Channel, asked: &Receiver<Asked>) -> Asked {
    loop {
        channel.poll();
        if let Ok(next) = asked.recv_timeout(Duration::from_millis(1)) {
            return next;
        }
    }
}

fn result(channel: &mut Channel) -> Result<u64, Errno> {
    while channel.wait(None) == 0 {}
    channel.finished().expect("it is back").result()
}

/// A FLUSH, which the server would answer well over each connection.
fn flush(channel: &mut Channel, opened: &Opened, asked: Receiver<Asked>) -> Result<u64, Errno> {
    std::thread::spawn(move || {
        while let Ok(request) = asked.recv() {
            request.answer(0);
        }
    });
    let draft = channel.bio().expect("a bio");
    channel.submit(opened, draft.flush());
    result(channel)
}

/// Writes over one connection, then a durable write over another, whose FLUSH the test answers:
/// the FLUSH of the first connection fails, although the server answers it well.
fn flush_fails_beside(durable: Result<u64, Errno>, answer: impl FnOnce(&Receiver<Asked>)) {
    let (folder, asked) = asked_of(MANY);
    let target = open(&target_of(&folder, "", ""));
    let (opened, mut channel) = opened(&target);
    write(&mut channel, &opened, &asked);
    std::thread::scope(|scope| {
        let ended = submit(scope, &target, 1, Flags::FUA);
        next(&asked, command::WRITE).answer(0);
        answer(&asked);
        assert_eq!(ended.join().expect("joined"), durable);
    });
    assert_eq!(flush(&mut channel, &opened, asked), Err(Errno::IO));
}

#[test]
fn a_flush_that_fails_over_one_connection_fails_those_of_writers_over_others() {
    flush_fails_beside(Err(Errno::IO), |asked| {
        next(asked, command::FLUSH).answer(error::EIO)
    });
}

#[test]
fn a_flush_that_is_not_answered_may_have_failed() {
    flush_fails_beside(Ok(BLOCK), |asked| {
        let broken = next(asked, command::FLUSH).stream;
        broken.shutdown(std::net::Shutdown::Both).expect("broken");
        next(asked, command::WRITE).answer(0);
        next(asked, command::FLUSH).answer(0);
    });
}

/// Two durable writes over two connections; `answers` gets the FLUSH of each.
fn two_durable_writes(answers: impl FnOnce(Asked, Asked), expected: Result<u64, Errno>) {
    let (folder, asked) = asked_of(MANY);
    let target = open(&target_of(&folder, "", ""));
    std::thread::scope(|scope| {
        let durable = |block| {
            let ended = submit(scope, &target, block, Flags::FUA);
            next(&asked, command::WRITE).answer(0);
            (ended, next(&asked, command::FLUSH))
        };
        let (one, flush_of_one) = durable(1);
        let (other, flush_of_other) = durable(2);
        answers(flush_of_one, flush_of_other);
        assert_eq!(one.join().expect("joined"), expected);
        assert_eq!(other.join().expect("joined"), expected);
    });
}

#[test]
fn of_two_flushes_over_two_connections_none_succeeds_when_one_fails() {
    for first_fails in [true, false] {
        let answers = |flush_of_one, flush_of_other| {
            let (good, bad): (Asked, Asked) = match first_fails {
                true => (flush_of_other, flush_of_one),
                false => (flush_of_one, flush_of_other),
            };
            good.answer(0);
            // Time for a wrong success to be used.
            std::thread::sleep(Duration::from_millis(20));
            bad.answer(error::EIO);
        };
        two_durable_writes(answers, Err(Errno::IO));
    }
}

#[test]
fn two_flushes_over_two_connections_succeed_when_both_are_answered_well() {
    let answers = |flush_of_one: Asked, flush_of_other: Asked| {
        flush_of_other.answer(0);
        flush_of_one.answer(0);
    };
    two_durable_writes(answers, Ok(BLOCK));
}

#[test]
fn a_write_in_flight_beside_a_failed_flush_is_told_to_be_lost() {
    for flags in [MANY, MANY & !export_flag::CAN_MULTI_CONN] {
        let (folder, asked) = asked_of(flags);
        let target = open(&target_of(&folder, "", ""));
        let (opened, mut channel) = opened(&target);
        std::thread::scope(|scope| {
            let late = submit(scope, &target, 1, Flags::NONE);
            let write = next(&asked, command::WRITE);
            let durable = submit(scope, &target, 2, Flags::FUA);
            next(&asked, command::WRITE).answer(0);
            // The server has done the write, and loses it with this.
            next(&asked, command::FLUSH).answer(error::EIO);
            assert_eq!(durable.join().expect("joined"), Err(Errno::IO));
            write.answer(0);
            assert_eq!(late.join().expect("joined"), Ok(BLOCK));
        });
        assert_eq!(flush(&mut channel, &opened, asked), Err(Errno::IO));
    }
}
