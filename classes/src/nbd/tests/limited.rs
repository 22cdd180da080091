//! Servers that declare their connections coherent and admit fewer than there are threads.

use super::*;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};

/// Threads that write, flush and read places of their own, all of them connected beside each other.
fn threads_read_what_they_write(target: &Target, threads: u64) {
    let barrier = Barrier::new(threads as usize);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (target, barrier) = (&target, &barrier);
            scope.spawn(move || {
                let (opened, mut channel) = opened(target);
                barrier.wait();
                for round in 0..50_u64 {
                    let at = (thread << 18) + (round % 60) * 4096;
                    let data = [(thread * 50 + round) as u8; 4096];
                    channel.write(&opened, at, &data).expect("written");
                    if round % 10 == 9 {
                        channel.flush(&opened).expect("flushed");
                    }
                    let mut read = [0; 4096];
                    channel.read(&opened, at, &mut read).expect("read");
                    assert!(read == data, "thread {thread}, round {round}");
                }
                barrier.wait();
            });
        }
    });
}

#[test]
fn threads_share_the_connections_that_a_server_admits() {
    for limit in ["limit=1", "limit=2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let plugin = ["--filter=limit", "memory", "size=1M", limit];
        let Some(_server) = nbdkit(&folder, &plugin) else { return };
        let target = open(&target_of(&folder, "", "&retry=10s"));
        threads_read_what_they_write(&target, 4);
    }
}

/// As qemu-nbd with `-e 2`, whose third client waits in the queue of the socket.
#[test]
fn threads_share_a_connection_where_the_others_are_not_answered() {
    let Some(qemu) = program("qemu-nbd") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [image, path, ready] = for_qemu(&folder);
    let arguments = ["-e", "2", "-f", "raw", "-k", &path, &ready, &image];
    let _server = start(&qemu, &arguments, &folder);
    let target = open(&target_of(&folder, "", "&timeout=1s&retry=20s"));
    threads_read_what_they_write(&target, 4);
}

/// A network that has dropped the first SYNs, as before the end of a partition: the kernel sends
/// the third one after 3 s, longer than a server may be silent in a handshake here.
#[test]
fn a_slow_network_is_no_server_that_admits_too_few() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    rustix::net::listen(&listener, 0).expect("a short queue");
    let place = listener.local_addr().expect("an address");
    let (first_is_up, begin) = mpsc::channel();
    std::thread::spawn(move || {
        let flags = export_flag::HAS_FLAGS | export_flag::CAN_MULTI_CONN;
        let answer = |mut stream: TcpStream| {
            while let Some(request) = next_request(&mut stream) {
                let _ = stream.write_all(&sixes(&request));
            }
        };
        let (stream, _) = listener.accept().expect("the first one");
        std::thread::spawn(move || shake_hands(stream, flags, false, answer));
        // A full queue drops the SYN.
        let filler = TcpStream::connect(place).expect("connected");
        first_is_up.send(()).expect("the test waits");
        std::thread::sleep(Duration::from_millis(1500));
        let (accepted, _) = listener.accept().expect("the one in the queue");
        let (stream, _) = listener.accept().expect("the second one");
        std::thread::sleep(Duration::from_millis(300));
        drop((filler, accepted));
        shake_hands(stream, flags, false, answer);
    });
    let target = open(&format!("nbd://{place}/?timeout=4s&retry=30s"));
    let (opened, mut first) = opened(&target);
    first.read(&opened, 0, &mut [0; 512]).expect("read");
    begin.recv().expect("the queue is full");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = target.stack.channel(1).expect("a channel");
            second.read(&opened, 0, &mut [0; 512]).map(drop)
        });
        second.join().expect("no panic").expect("read");
    });
    let tree = target.stack.tree();
    let connections = tree.geoms.iter().find_map(|geom| geom.fact("connections"));
    assert_eq!(connections, Some("one a thread"));
}

/// A disk that forgets its writes when a client leaves without a FLUSH behind them.
#[test]
fn what_was_written_before_is_flushed_before_its_connection_is_shared() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
    let busy = Arc::new(Mutex::new(false));
    let commands = Arc::new(Mutex::new(Vec::new()));
    let (own_busy, own_commands) = (Arc::clone(&busy), Arc::clone(&commands));
    std::thread::spawn(move || {
        // As long as the test runs.
        while let Ok((stream, _)) = listener.accept() {
            if std::mem::replace(&mut *own_busy.lock().expect("locked"), true) {
                continue;
            }
            let (busy, commands) = (Arc::clone(&own_busy), Arc::clone(&own_commands));
            std::thread::spawn(move || {
                let flags =
                    export_flag::HAS_FLAGS | export_flag::CAN_MULTI_CONN | export_flag::SEND_FLUSH;
                shake_hands(stream, flags, false, |mut stream| {
                    while let Some(request) = next_request(&mut stream) {
                        commands.lock().expect("locked").push(request.command);
                        let mut data = vec![0; request.length_bytes as usize];
                        let reply = match request.command {
                            command::DISC => break,
                            command::READ => sixes(&request),
                            _ => {
                                if request.command == command::WRITE {
                                    stream.read_exact(&mut data).expect("data");
                                }
                                let (error, cookie) = (0, request.cookie);
                                SimpleReply { error, cookie }.encode().to_vec()
                            }
                        };
                        let _ = stream.write_all(&reply);
                    }
                });
                *busy.lock().expect("locked") = false;
            });
        }
    });
    let target = open(&target_of(&folder, "", "&retry=10s"));
    let (opened, mut first) = opened(&target);
    first.write(&opened, 0, &[1; 512]).expect("written");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut second = target.stack.channel(4).expect("a channel");
            second.write(&opened, 512, &[2; 512]).expect("written");
            second.flush(&opened).expect("flushed");
        });
    });
    first.flush(&opened).expect("nothing is lost");
    // Nothing of this client is left to be flushed; another may have written.
    first.flush(&opened).expect("the server is asked");
    let commands = commands.lock().expect("locked").clone();
    let expected = [
        command::WRITE,
        command::FLUSH,
        command::WRITE,
        command::FLUSH,
        command::FLUSH,
        command::FLUSH,
    ];
    assert_eq!(commands, expected);
}
