//! Clients that are slow, silent or many.

use super::*;

#[test]
fn half_a_handshake_and_silence_ends_in_time() {
    let running = serve("md:1m", |settings| {
        settings.limits.handshake = Duration::from_millis(50);
    });
    let mut silent = running.connect();
    let mut bytes = Vec::new();
    silent.read_to_end(&mut bytes).expect("the end");
    assert_eq!(bytes.len(), 18);
    let mut half = Peer::greeted(running.connect());
    half.0.write_all(b"IHAVEOPT\0\0").expect("half an option");
    assert_eq!(half.0.read(&mut [0; 1]).expect("the end"), 0);
    running.wait_for("the handshake is not complete after 0.05 s");
}

#[test]
fn a_client_that_asks_for_many_exports_has_the_time_for_each() {
    let running = serve("md:1m", |settings| {
        settings.limits.handshake = Duration::from_millis(600);
    });
    let mut asks = Peer::greeted(running.connect());
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(150));
        asks.option(option::LIST, &[]);
        assert_eq!(asks.replies().len(), 2);
    }
    assert!(asks.go("").is_ok(), "after twice the limit");
}

#[test]
fn half_a_message_and_silence_ends_in_time_and_idleness_does_not() {
    let running = serve("md:1m", |settings| {
        settings.limits.stall = Duration::from_millis(100);
    });
    let mut idle = running.client("", false);
    let mut half = running.client("", false);
    half.stream
        .write_all(&[0x25, 0x60])
        .expect("half a request");
    assert_eq!(half.until_closed(), 0);
    let mut half = running.client("", false);
    half.send(command::WRITE, 0, 0, 4096);
    half.stream
        .write_all(&[1; 100])
        .expect("a part of the data");
    assert_eq!(half.until_closed(), 0);
    running.wait_for("timeout in the middle of a message");
    assert_eq!(idle.read(0, 512), [0; 512], "nothing of it was written");
}

#[test]
fn an_idle_client_is_left_when_that_was_asked_for() {
    let running = serve("md:1m", |settings| {
        settings.limits.idle = Duration::from_millis(50);
    });
    assert_eq!(running.client("", false).until_closed(), 0);
    running.wait_for("idle for too long");
}

#[test]
fn a_client_that_never_reads_is_not_read_from_and_disturbs_nobody() {
    let running = serve("md:16m", |settings| {
        settings.threads = 1;
        settings.limits.bytes_per_connection = 2 << 20;
        settings.limits.stall = Duration::from_millis(300);
    });
    let mut greedy = running.client("", false);
    let request = Request {
        flags: 0,
        command: command::READ,
        cookie: 0,
        offset_bytes: 0,
        length_bytes: 1 << 20,
    };
    let batch: Vec<u8> = (0..500).flat_map(|_| request.encode()).collect();
    let mut sent = 0;
    // Until the server stops reading: 500 MiB of replies are more than it may keep.
    for _ in 0..1000 {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&greedy.stream, &batch, flags) {
            Ok(count) => sent += count,
            Err(_) => break,
        }
    }
    assert!(sent < 1000 * batch.len(), "everything was taken");
    let mut other = running.client("", false);
    for _ in 0..20 {
        assert_eq!(other.read(4096, 4096), [0; 4096]);
    }
    running.wait_for("it does not read its replies");
    greedy.cookie = 0;
    assert!(greedy.until_closed() < 500 << 20);
    assert_eq!(other.read(4096, 4096), [0; 4096]);
}

#[test]
fn small_requests_are_served_while_others_hold_all_the_memory() {
    let running = serve("md:16m", |settings| {
        settings.threads = 1;
        settings.limits.bytes = 2 << 20;
        settings.limits.bytes_per_connection = 1 << 20;
        // Closing them must not help any other client.
        settings.limits.stall = Duration::from_secs(600);
    });
    let mut greedy: Vec<Client> = (0..3).map(|_| running.client("", false)).collect();
    for client in &mut greedy {
        // More than the socket takes and the limits allow, and no reply is ever read.
        for _ in 0..40 {
            client.send(command::READ, 0, 0, 1 << 20);
        }
    }
    let mut other = running.client("", false);
    for _ in 0..20 {
        assert_eq!(other.read(4096, 4096), [0; 4096]);
    }
    drop(greedy);
    // When they have left, there is room for anything again.
    assert_eq!(other.read(0, 8 << 20).len(), 8 << 20);
}

#[test]
fn replies_do_not_wait_for_the_end_of_what_is_being_sent() {
    // One thread sends writes without reading a reply until all are sent: 24 MiB through a
    // connection that may have 4 MiB in flight.
    let running = serve("md:32m", |settings| {
        settings.limits.bytes_per_connection = 4 << 20;
        settings.limits.requests = 100_000;
    });
    let mut client = running.client("", false);
    for round in 0..24_u64 {
        client.send(command::WRITE, 0, round << 20, 1 << 20);
        client
            .stream
            .write_all(&vec![round as u8 + 1; 1 << 20])
            .expect("data");
    }
    let mut answered: Vec<u64> = (0..24).map(|_| client.receive(0, 0).0).collect();
    answered.sort_unstable();
    assert_eq!(answered, (1..=24).collect::<Vec<u64>>());
    for round in 0..24_u64 {
        assert_eq!(client.read((round << 20) + 77, 1), [round as u8 + 1]);
    }
}

#[test]
fn connections_beyond_the_limit_wait_for_those_that_have_something_in_the_stack() {
    let running = serve("md:1m | nop:delay=200ms", |settings| {
        settings.limits.connections = 2;
    });
    let mut busy = [running.client("", false), running.client("", false)];
    for client in &mut busy {
        client.send(command::READ, 0, 0, 512);
    }
    let third = running.connect();
    for client in &mut busy {
        assert_eq!(client.receive(0, 512).1.data, [0; 512]);
    }
    let mut third = Peer::greeted(third).go("").expect("its turn has come");
    assert_eq!(third.read(0, 512), [0; 512]);
}

#[test]
fn thousands_of_connections_come_and_go() {
    let running = serve("md:1m", |settings| settings.limits.connections = 300);
    let mut steady = running.client("", true);
    for round in 0..10 {
        let many: Vec<UnixStream> = (0..200).map(|_| running.connect()).collect();
        assert_eq!(steady.read(0, 512), [0; 512]);
        if round % 2 == 0 {
            for stream in many {
                let mut client = Peer::greeted(stream).go("").expect("the export");
                client.send(command::READ, 0, 0, 4096);
            }
        }
    }
    assert_eq!(steady.read(0, 512), [0; 512]);
}
