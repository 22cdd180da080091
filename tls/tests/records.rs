//! Both sides of a connection over a pair of sockets: bytes of any number arrive in order,
//! whichever side begins, and damage is an error on both sides.

use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use ugeom_tls::{ClientTls, ROOM_BYTES_MIN, Records, ServerTls};

struct Side {
    records: Records,
    fd: OwnedFd,
    got: Vec<u8>,
}

impl Side {
    fn new(records: Result<Records, String>, socket: UnixStream) -> Self {
        socket.set_nonblocking(true).expect("it can");
        Self {
            records: records.expect("a session"),
            fd: socket.into(),
            got: Vec::new(),
        }
    }

    fn flush(&mut self) {
        match self.records.flush(&self.fd) {
            Ok(()) | Err(Errno::AGAIN) => {}
            Err(errno) => panic!("sending: {errno}"),
        }
    }

    /// Receives once, into two buffers of which the first has `first` bytes; false at the end.
    fn receive(&mut self, first: usize) -> Result<bool, Errno> {
        let (mut data, mut more) = (vec![0; first], vec![0; ROOM_BYTES_MIN]);
        match self.records.read(&self.fd, &mut data, &mut more) {
            Ok(0) => Ok(false),
            Ok(count) => {
                let in_data = count.min(first);
                self.got.extend(&data[..in_data]);
                self.got.extend(&more[..count - in_data]);
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(true),
            Err(errno) => Err(errno),
        }
    }
}

/// A server and a client, which have not shaken hands.
fn sides() -> [Side; 2] {
    let pki = Path::new(env!("CARGO_MANIFEST_DIR")).join("../serve/src/nbd/tests/tls");
    let server = ServerTls::open(&pki, false).expect("certificates");
    let client = ClientTls::open(Some(&pki), "localhost").expect("certificates");
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    [
        Side::new(Records::server(&server), ours),
        Side::new(Records::client(&client), theirs),
    ]
}

#[test]
fn all_bytes_arrive_in_order_from_both_sides() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut sides = sides();
    let mut sent = [Vec::new(), Vec::new()];
    // Before the handshake, too.
    for round in 0..60 {
        for at in [0, 1] {
            if !sides[at].records.waits() || round == 0 {
                let longest = [1, 100, 16_384, 100_000][random.usize(0..4)];
                let bytes: Vec<u8> = (0..random.usize(1..=longest))
                    .map(|_| random.u8(..))
                    .collect();
                sides[at].records.seal(&bytes);
                sent[at].extend(bytes);
            }
            sides[at].flush();
            let first = random.usize(0..40_000);
            assert_eq!(sides[1 - at].receive(first), Ok(true), "seed {seed}");
        }
    }
    while sides[0].got != sent[1] || sides[1].got != sent[0] {
        for at in [0, 1] {
            sides[at].flush();
            assert_eq!(sides[1 - at].receive(0), Ok(true), "seed {seed}");
            assert!(sent[at].starts_with(&sides[1 - at].got), "seed {seed}");
        }
    }
    let [mut server, mut client] = sides;
    server.records.close(&server.fd);
    assert_eq!(client.receive(0), Ok(false), "the end was announced");
}

#[test]
fn a_damaged_record_ends_both_sides_with_the_reason() {
    let [mut server, mut client] = sides();
    server.records.seal(b"hello");
    client.records.seal(b"hello");
    while server.got.is_empty() || client.got.is_empty() {
        client.flush();
        server.receive(0).expect("received");
        server.flush();
        client.receive(0).expect("received");
    }
    // A record of application data that no key has made.
    let record = [&[23, 3, 3, 0, 32][..], &[7; 32]].concat();
    rustix::io::write(&client.fd, &record).expect("written");
    assert_eq!(server.receive(0), Err(Errno::PROTO));
    assert!(
        server
            .records
            .failure()
            .is_some_and(|why| why.starts_with("TLS: "))
    );
    // The alert arrives.
    assert_eq!(client.receive(0), Err(Errno::PROTO));
    assert!(client.records.failure().is_some());
}
