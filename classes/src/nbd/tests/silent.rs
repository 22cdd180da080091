//! Servers that complete the handshake and then send no replies, or replies without data.

use super::mad::{chunk_of, status_of};
use super::*;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;
use ugeom_format::wire::nbd::chunk;
use ugeom_stack::IoError;

/// Serves every connection by `talk`, for as long as the test runs.
fn serve_all(folder: &TempDir, chunks: bool, talk: impl Fn(UnixStream) + Send + Sync + 'static) {
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let talk = Arc::new(talk);
    let many = export_flag::CAN_MULTI_CONN | export_flag::SEND_FLUSH;
    let flags = export_flag::HAS_FLAGS | many;
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let talk = Arc::clone(&talk);
            std::thread::spawn(move || shake_hands(stream, flags, chunks, |it| talk(it)));
        }
    });
}

/// A server that shakes hands fails a request with EIO at first, and is unreachable later.
fn is_gone(read: &Result<usize, IoError>) -> bool {
    let errno = read.as_ref().err().map(|error| error.errno);
    matches!(errno, Some(Errno::IO | Errno::NXIO))
}

#[test]
fn once_a_server_is_silent_requests_fail_soon_until_it_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let answers = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&answers);
    serve_all(&folder, false, move |mut stream| {
        while let Some(request) = next_request(&mut stream) {
            if own.load(Ordering::SeqCst) {
                let _ = stream.write_all(&sixes(&request));
            }
        }
    });
    let target = open(&target_of(&folder, "", "&timeout=400ms&retry=100ms"));
    let (opened, mut channel) = opened(&target);
    let begin = Instant::now();
    for _ in 0..20 {
        let read = channel.read(&opened, 0, &mut [0; 512]);
        assert!(is_gone(&read), "{read:?}");
        // With a connection of its own, as each look of a class at a disk has.
        let mut channel = target.stack.channel(1).expect("a channel");
        let read = channel.read(&opened, 0, &mut [0; 512]);
        assert!(is_gone(&read), "{read:?}");
    }
    // Not 400 ms for each.
    assert!(begin.elapsed() < Duration::from_secs(8));
    answers.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    while channel.read(&opened, 0, &mut [0; 512]).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it answers");
    }
}

/// Like a server stopped by SIGSTOP: the kernel accepts the connection, and no handshake follows.
#[test]
fn a_server_that_is_stopped_costs_few_timeouts() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    std::thread::spawn(move || {
        let flags = export_flag::HAS_FLAGS | export_flag::CAN_MULTI_CONN;
        serve_once_with(&listener, flags, |stream| {
            let mut held = vec![stream];
            while let Ok((stream, _)) = listener.accept() {
                held.push(stream);
            }
        });
    });
    let target = open(&target_of(&folder, "", "&timeout=400ms&retry=200ms"));
    let (opened, mut channel) = opened(&target);
    let begin = Instant::now();
    for _ in 0..2000 {
        let read = channel.read(&opened, 0, &mut [0; 512]);
        assert_eq!(read.map_err(|error| error.errno), Err(Errno::NXIO));
    }
    assert!(begin.elapsed() < Duration::from_secs(8));
}

/// As a look at a disk does, which must not wait for each of hundreds of requests.
#[test]
fn thousands_of_requests_to_a_silent_server_take_few_timeouts() {
    let folder = tempfile::tempdir().expect("a folder");
    serve_all(
        &folder,
        false,
        |mut stream| {
            while next_request(&mut stream).is_some() {}
        },
    );
    let target = open(&target_of(&folder, "", "&timeout=400ms&retry=100ms"));
    let (opened, mut channel) = opened(&target);
    let begin = Instant::now();
    let mut last = Ok(0);
    for _ in 0..2000 {
        last = channel.read(&opened, 0, &mut [0; 512]);
    }
    assert_eq!(last.map_err(|error| error.errno), Err(Errno::NXIO));
    assert!(begin.elapsed() < Duration::from_secs(8));
}

#[test]
fn tasting_ends_with_the_first_request_to_an_unreachable_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    std::thread::spawn(move || {
        let flags = export_flag::HAS_FLAGS | export_flag::CAN_MULTI_CONN;
        serve_once_with(&listener, flags, drop);
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            held.push(stream);
        }
    });
    let text = target_of(&folder, "", "&timeout=400ms&retry=200ms");
    let Err(error) = open_target(&text, &TargetOptions::default()) else {
        panic!("it cannot be read");
    };
    let text = error.to_string();
    assert!(text.contains("nbd0: the server does not answer"), "{text}");
}

/// A server that does not read, as behind a partition of the network: a write of the connection
/// that was given up must not reach it later, when newer data has been acknowledged.
#[test]
fn a_write_is_not_sent_any_more_once_its_connection_was_given_up() {
    const WRITE_BYTES: usize = 1 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    // Accepted sockets inherit it: most of the write stays with the client.
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 4096).expect("a small buffer");
    let place = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let flags = export_flag::HAS_FLAGS | export_flag::SEND_FLUSH;
        let mut first = None;
        let (stream, _) = listener.accept().expect("a client");
        shake_hands(stream, flags, false, |stream| first = Some(stream));
        let (stream, _) = listener.accept().expect("it connects again");
        shake_hands(stream, flags, false, |mut stream| {
            while let Some(request) = next_request(&mut stream) {
                let mut data = vec![0; request.length_bytes as usize];
                if request.command == command::WRITE {
                    stream.read_exact(&mut data).expect("data");
                }
                let (error, cookie) = (0, request.cookie);
                let _ = stream.write_all(&SimpleReply { error, cookie }.encode());
            }
        });
        let mut late = Vec::new();
        // A connection that was reset ends with an error.
        let _ = first.expect("a connection").read_to_end(&mut late);
        late.len()
    });
    let text = format!("nbd://{place}/?timeout=400ms&retry=20s");
    let target = open(&text);
    let (opened, mut channel) = opened(&target);
    channel
        .write(&opened, 0, &vec![1; WRITE_BYTES])
        .expect("written");
    channel
        .write(&opened, 0, &vec![2; WRITE_BYTES])
        .expect("written");
    drop((channel, opened, target));
    let late_bytes = server.join().expect("no panic");
    assert!(
        late_bytes < WRITE_BYTES,
        "{late_bytes} bytes of the first write arrive late"
    );
}

/// The server's reply to a request, without the end of the reply.
type Chunk = fn(&Request) -> Vec<u8>;

/// Chunks that bring nothing.
const IDLE: [(Chunk, Command); 5] = [
    (|it| chunk_of(it, (chunk::NONE, 0), b""), Command::Flush),
    (
        |it| chunk_of(it, (chunk::OFFSET_DATA, 0), &[0; 8]),
        Command::Read,
    ),
    (
        |it| chunk_of(it, (chunk::OFFSET_HOLE, 0), &[0; 12]),
        Command::Read,
    ),
    (
        |it| chunk_of(it, (chunk::ERROR, 0), &[0, 0, 0, 5, 0, 0]),
        Command::Read,
    ),
    // Of another context.
    (|it| status_of(it, 2, 0, 1 << 20), Command::Extents),
];

/// Fails when a request has not failed after a while.
fn fails_in_the_end(pause: Duration, options: &str) {
    for (number, (chunk, command)) in IDLE.into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        serve_all(&folder, true, move |mut stream| {
            let Some(request) = next_request(&mut stream) else { return };
            let some = chunk(&request).repeat(if pause.is_zero() { 1000 } else { 1 });
            while stream.write_all(&some).is_ok() {
                std::thread::sleep(pause);
            }
        });
        let text = target_of(&folder, "", options);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let target = open(&text);
            let (opened, mut channel) = opened(&target);
            let outcome = match command {
                Command::Flush => channel.flush(&opened),
                Command::Extents => channel.extents(&opened, 0, 1 << 20, 4).map(drop),
                _ => channel.read(&opened, 0, &mut [0; 512]).map(drop),
            };
            tell.send(outcome.map_err(|error| error.errno))
        });
        let outcome = told.recv_timeout(Duration::from_secs(20));
        assert_eq!(outcome, Ok(Err(Errno::IO)), "chunk {number}");
    }
}

#[test]
fn chunks_that_bring_nothing_end_after_some_thousands() {
    fails_in_the_end(Duration::ZERO, "&timeout=1h&retry=100ms");
}

#[test]
fn chunks_that_bring_nothing_are_silence() {
    fails_in_the_end(Duration::from_millis(20), "&timeout=200ms&retry=100ms");
}
