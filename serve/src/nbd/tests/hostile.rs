//! Requests that no client should send: the error that the protocol has for them, and nothing else
//! disturbed.

use super::*;

#[test]
fn illegal_requests_are_refused_and_the_connection_goes_on() {
    let running = serve("md:1m", |_| {});
    for structured in [true, false] {
        let mut client = running.client("", structured);
        let size = client.size_bytes;
        let cases = [
            (99, 0, 0, 512, error::EINVAL),
            (command::READ, 1 << 9, 0, 512, error::EINVAL),
            (command::READ, command_flag::NO_HOLE, 0, 512, error::EINVAL),
            (command::READ, 0, 0, 0, error::EINVAL),
            (command::READ, 0, size, 1, error::EINVAL),
            (command::READ, 0, size - 1, 2, error::EINVAL),
            (command::READ, 0, u64::MAX, 2, error::EINVAL),
            (command::READ, 0, 0, u32::MAX, error::EINVAL),
            (command::TRIM, 0, size - 1, 2, error::EINVAL),
            (
                command::WRITE_ZEROES,
                0,
                u64::MAX - 1,
                u32::MAX,
                error::ENOSPC,
            ),
            (command::FLUSH, 0, 1, 0, error::EINVAL),
            (command::CACHE, 0, size, 1, error::EINVAL),
            (command::BLOCK_STATUS, 0, size, 1, error::EINVAL),
        ];
        for (command, flags, offset, length, errno) in cases {
            let cookie = client.send(command, flags, offset, length);
            let (answered, reply) = client.receive(0, 0);
            assert_eq!(
                (answered, reply.error),
                (cookie, errno),
                "command {command}"
            );
            assert_eq!(structured, !reply.message.is_empty());
        }
        // The data of a refused WRITE is passed over, and the next request is understood.
        for (offset, errno) in [(size - 100, error::ENOSPC), (u64::MAX, error::ENOSPC)] {
            assert_eq!(client.write(0, offset, &[0x25; 100_000]).error, errno);
        }
        if !structured {
            let reply = client.ask(command::BLOCK_STATUS, 0, 0, 512);
            assert_eq!(reply.error, error::EINVAL, "no context was chosen");
            let one = client.ask(command::READ, command_flag::DF, 0, 512);
            assert_eq!(one.error, error::EINVAL, "there are no chunks");
        }
        assert_eq!(client.read(0, 512), [0; 512]);
    }
    assert!(running.logged("past the end of the export"));
    assert!(running.logged("more of it is not logged"));
}

#[test]
fn nobody_writes_to_a_read_only_export() {
    let running = serve("md:1m", |settings| settings.writable = false);
    let mut client = running.client("", true);
    assert_ne!(client.flags & export_flag::READ_ONLY, 0);
    assert_eq!(client.write(0, 0, &[1; 4096]).error, error::EPERM);
    for command in [command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(client.ask(command, 0, 0, 4096).error, error::EPERM);
    }
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0).error, 0);
    assert_eq!(client.read(0, 4096), [0; 4096]);
}

#[test]
fn a_wrong_magic_number_ends_the_connection() {
    let running = serve("md:1m", |_| {});
    let mut client = running.client("", false);
    client.stream.write_all(&[0x55; 28]).expect("nonsense");
    assert_eq!(client.until_closed(), 0);
    running.wait_for("a request begins with 0x55555555");
}

#[test]
fn options_that_make_no_sense_have_their_errors() {
    let running = serve("md:1m", |_| {});
    let mut peer = Peer::greeted(running.connect());
    let cases: [(u32, &[u8], u32); 9] = [
        (77, b"whatever", option_reply::ERR_UNSUP),
        (option::STARTTLS, b"", option_reply::ERR_UNSUP),
        (option::EXTENDED_HEADERS, b"x", option_reply::ERR_INVALID),
        (option::LIST, b"x", option_reply::ERR_INVALID),
        (option::STRUCTURED_REPLY, b"x", option_reply::ERR_INVALID),
        (option::GO, b"\0\0\0\x09md0\0\0", option_reply::ERR_INVALID),
        (
            option::INFO,
            b"\0\0\0\x03md7\0\0",
            option_reply::ERR_UNKNOWN,
        ),
        (
            option::INFO,
            b"\0\0\0\x01\xff\0\0",
            option_reply::ERR_INVALID,
        ),
        (
            option::SET_META_CONTEXT,
            b"\0\0\0\x03md0\0\0\0\0",
            option_reply::ERR_INVALID,
        ),
    ];
    for (option, data, expected) in cases {
        peer.option(option, data);
        let (reply, text) = peer.refusal();
        assert_eq!(reply, expected, "option {option}: {text}");
        assert!(!text.is_empty());
    }
    let long = vec![0; 100_000];
    peer.option(option::GO, &long);
    assert_eq!(peer.refusal().0, option_reply::ERR_TOO_BIG);
    let (reply, text) = peer.go("nothing").err().expect("no such export");
    assert_eq!(reply, option_reply::ERR_UNKNOWN);
    assert_eq!(text, "there is no export `nothing`; there are: md0");
}

#[test]
fn an_option_that_is_far_too_long_ends_the_connection_at_once() {
    let running = serve("md:1m", |_| {});
    let mut peer = Peer::greeted(running.connect());
    let header = OptionHeader {
        option: option::LIST,
        length: u32::MAX,
    };
    peer.0.write_all(&header.encode()).expect("a header");
    assert_eq!(peer.0.read(&mut [0; 1]).expect("the end"), 0);
    running.wait_for("it sent option 3 with 4294967295 bytes of data");
}

#[test]
fn an_export_name_that_does_not_exist_ends_the_connection() {
    let running = serve("md:1m", |_| {});
    let mut peer = Peer::greeted(running.connect());
    peer.option(option::EXPORT_NAME, b"nothing");
    assert_eq!(peer.0.read(&mut [0; 1]).expect("the end"), 0);
    running.wait_for("there is no export `nothing`");
}

#[test]
fn other_protocols_are_called_by_their_names() {
    let running = serve("md:1m", |_| {});
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefghijklmnop";
    let mut stream = running.connect();
    stream.write_all(hello).expect("a hello");
    stream.read_exact(&mut [0; 18]).expect("a greeting");
    // Closed with the rest of the hello unread, which may be a reset.
    let _ = stream.read(&mut [0; 1]);
    running.wait_for("a TLS hello");
    let mut peer = Peer::greeted(running.connect());
    peer.0.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("HTTP");
    let _ = peer.0.read(&mut [0; 1]);
    running.wait_for("this is HTTP");
    running.client("", false).read(0, 512);
}

#[test]
fn who_may_open_what_follows_geom() {
    let running = serve("md:1m", |_| {});
    let provider = running.stack.find("md0").expect("the disk");
    let held = running.stack.open(provider, Delta::EXCLUSIVE);
    let held = held.expect("open");
    let peer = Peer::greeted(running.connect());
    let (reply, text) = peer.go("md0").err().expect("a second writer");
    assert_eq!(reply, option_reply::ERR_POLICY);
    assert!(text.contains("it is opened exclusively"), "{text}");
    drop(held);
    let client = running.client("md0", false);
    let refused = running.stack.open(provider, Delta::EXCLUSIVE);
    assert!(refused.is_err(), "the client is a writer");
    drop(client);
    // It is closed by the control thread, soon.
    while running.stack.open(provider, Delta::EXCLUSIVE).is_err() {
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_only_reads_takes_no_write_count() {
    let running = serve("md:1m", |_| {});
    let provider = running.stack.find("md0").expect("the disk");
    // As an open partition holds its disk: readers may come, writers may not.
    let held = running.stack.open(provider, Delta::EXCLUSIVE);
    let held = held.expect("open");
    for name in ["md0:ro", ":ro"] {
        let mut client = running.client(name, true);
        assert_ne!(client.flags & export_flag::READ_ONLY, 0, "{name}");
        client.read(0, 512);
        let reply = client.ask(command::TRIM, 0, 0, 512);
        assert_eq!(reply.error, error::EPERM, "{name}");
    }
    let peer = Peer::greeted(running.connect());
    let (reply, text) = peer.go("md0").err().expect("a writer");
    assert_eq!(reply, option_reply::ERR_POLICY);
    assert!(text.contains("exclusively"), "{text}");
    drop(held);
    let peer = Peer::greeted(running.connect());
    let (reply, text) = peer.go("md1:ro").err().expect("no such export");
    assert_eq!(reply, option_reply::ERR_UNKNOWN);
    assert!(text.contains("there is no export `md1:ro`"), "{text}");
}
