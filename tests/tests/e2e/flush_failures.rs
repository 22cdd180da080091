//! A FLUSH that fails below a server, by the class `crash`, and the clients that get its error:
//! connections of NBD and open files of a mount, on one disk at the same time.

use crate::lost::{serve_both, write};
use crate::run::{end, other};
use crate::upstream::{connect, flush};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 64;
const CONNECTIONS: usize = 3;
const FILES: usize = 3;
const CLIENTS: usize = CONNECTIONS + FILES;

/// Failures of one server.
const ROUNDS: u64 = 4;

/// Requests of the disk between two failures.
const PERIOD: u64 = 100;

/// FLUSHes with these numbers within a period fail. The test counts its requests; the kernel may
/// have added some for the files.
const FAILING: std::ops::Range<u64> = 50..70;

/// One client of the disk.
enum Client {
    Connection(UnixStream),
    File(File),
}

impl Client {
    fn write(&mut self, block: u64) {
        match self {
            Self::Connection(stream) => write(stream, block, 7),
            Self::File(file) => {
                let written = file.write_all_at(&[7; BLOCK], block * BLOCK as u64);
                written.expect("written");
            }
        }
    }

    fn flush(&mut self) -> bool {
        match self {
            Self::Connection(stream) => flush(stream) == 0,
            Self::File(file) => file.sync_all().is_ok(),
        }
    }
}

/// The clients, and how many requests they have made of the disk.
struct Clients {
    all: Vec<Client>,
    requests: u64,
}

impl Clients {
    fn write(&mut self, client: usize, block: u64) {
        self.all[client].write(block);
        self.requests += 1;
    }

    fn flush(&mut self, client: usize) -> bool {
        self.requests += 1;
        self.all[client].flush()
    }

    /// Writes until the disk has got so many requests in this period.
    fn reach(&mut self, within: u64) {
        while self.requests % PERIOD < within {
            self.write(0, 0);
        }
    }

    /// One FLUSH fails at the disk; each client then flushes twice, in a random order.
    fn one_failure(&mut self, random: &mut fastrand::Rng, seed: u64) {
        let mut has_written = [false; CLIENTS];
        for _ in 0..random.usize(1..12) {
            let client = random.usize(0..CLIENTS);
            self.write(client, random.u64(0..BLOCKS));
            has_written[client] = true;
        }
        let middle = FAILING.start.midpoint(FAILING.end);
        self.reach(middle);
        has_written[0] = true;
        let mut order: Vec<usize> = (0..CLIENTS).collect();
        random.shuffle(&mut order);
        let first = order[0];
        let mut errors = [0; CLIENTS];
        errors[first] += u32::from(!self.flush(first));
        assert_eq!(errors[first], 1, "seed {seed}: {first} met the failure");
        self.reach(FAILING.end + (middle - FAILING.start));
        for client in order.iter().skip(1).chain(&order) {
            errors[*client] += u32::from(!self.flush(*client));
        }
        for client in 0..CLIENTS {
            let told = errors[client];
            let expected = if has_written[client] { 1..=1 } else { 0..=1 };
            assert!(expected.contains(&told), "seed {seed}: {client}: {told}");
        }
        while !self.requests.is_multiple_of(PERIOD) {
            self.write(0, 0);
        }
        assert!(self.flush(0), "seed {seed}: all is written again");
    }
}

fn failing_numbers() -> String {
    let periods = (0..ROUNDS).map(|round| round * PERIOD);
    let numbers = periods.flat_map(|start| FAILING.map(move |at| format!("op{}", start + at)));
    numbers.collect::<Vec<_>>().join("+")
}

#[test]
fn a_failed_flush_reaches_each_writer_over_nbd_and_fuse_once() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for (layers, top) in [
        ("", "md0.crash"),
        (" | nop", "md0.crash.nop"),
        (" | cache:64k", "md0.crash.cache"),
    ] {
        let bytes = BLOCKS * BLOCK as u64;
        let target = format!("md:{bytes} | crash:flushfail={}{layers}", failing_numbers());
        let Some((folder, child)) = serve_both(&target, &["--threads", "2"]) else { return };
        let socket = folder.path().join("nbd");
        let path = folder.path().join("mnt").join(top);
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true);
        let connection = |_| Client::Connection(connect(&socket).expect("a connection"));
        let all = (0..CONNECTIONS).map(connection);
        let all = all.chain((0..FILES).map(|_| Client::File(file.open(&path).expect("opens"))));
        let mut clients = Clients {
            all: all.collect(),
            requests: 0,
        };
        for _ in 0..ROUNDS {
            clients.one_failure(&mut random, seed);
        }
        drop(clients);
        other("kill", &["-TERM", &child.id().to_string()]);
        let ended = end(child);
        assert_eq!(ended.code, 0, "all have the error: {}", ended.stderr);
    }
}
