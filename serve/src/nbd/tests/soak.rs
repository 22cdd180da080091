//! A soak: clients that come, ask for anything, and go in every way, for a while; then every byte
//! is looked at.
//!
//! Each client has a stretch of the disk for itself, whose ends lie in the middle of sectors, so
//! that neighbours change parts of the same ones. `UGEOM_SOAK_SECONDS` says for how long; a few
//! seconds if it says nothing.

use super::*;
use fastrand::Rng;
use std::collections::HashMap;
use std::time::Instant;

const CLIENTS: usize = 4;

/// Bytes of a client's stretch: no whole number of sectors.
const STRETCH_BYTES: usize = 300_001;

/// The longest batch of requests that are sent together.
const BATCH_MAX: usize = 12;

fn duration() -> Duration {
    let seconds = std::env::var("UGEOM_SOAK_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("UGEOM_SOAK_SECONDS is a number"));
    Duration::from_secs(seconds.unwrap_or(4))
}

/// A request of a batch, and what it makes of its range.
struct Asked {
    command: u16,
    range: std::ops::Range<usize>,
    new: Vec<u8>,
}

/// A client and what its stretch should hold.
struct Soaking<'a> {
    running: &'a Running,
    start: u64,
    bytes: Vec<u8>,
    random: Rng,
    requests: u64,
}

impl Soaking<'_> {
    /// One connection, from its handshake to one of its ends.
    fn live(&mut self, until: Instant) {
        let mut client = self.running.client("", true);
        for _ in 0..self.random.usize(1..40) {
            let batch = self.batch();
            if Instant::now() > until {
                break;
            }
            if self.random.u8(..) < 10 {
                return self.die(client, &batch);
            }
            self.exchange(&mut client, batch);
        }
        match self.random.u8(0..3) {
            0 => {
                client.send(command::DISC, 0, 0, 0);
            }
            1 => assert_eq!(client.ask(command::FLUSH, 0, 0, 0).error, 0),
            _ => {}
        }
    }

    /// Requests whose ranges do not touch each other.
    fn batch(&mut self) -> Vec<Asked> {
        let count = self.random.usize(1..=BATCH_MAX);
        let mut borders: Vec<usize> = (0..2 * count)
            .map(|_| self.random.usize(0..=STRETCH_BYTES))
            .collect();
        borders.sort_unstable();
        let pairs = borders.as_chunks::<2>().0;
        let ranges = pairs.iter().map(|[start, end]| *start..*end);
        let mut batch = Vec::new();
        for range in ranges.filter(|range| !range.is_empty()) {
            let (command, new) = match self.random.u8(0..8) {
                0..3 => (
                    command::WRITE,
                    std::iter::repeat_with(|| self.random.u8(..))
                        .take(range.len())
                        .collect(),
                ),
                3 => (command::WRITE_ZEROES, vec![0; range.len()]),
                4 => (command::CACHE, Vec::new()),
                _ => (command::READ, Vec::new()),
            };
            batch.push(Asked {
                command,
                range,
                new,
            });
        }
        batch
    }

    /// The bytes of a batch as a client sends them.
    fn message(&self, batch: &[Asked]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, asked) in batch.iter().enumerate() {
            let request = Request {
                flags: 0,
                command: asked.command,
                cookie: number as u64,
                offset_bytes: self.start + asked.range.start as u64,
                length_bytes: asked.range.len() as u32,
            };
            bytes.extend(request.encode());
            if asked.command == command::WRITE {
                bytes.extend(&asked.new);
            }
        }
        bytes
    }

    /// Sends a batch from a thread of its own, and checks the replies.
    fn exchange(&mut self, client: &mut Client, batch: Vec<Asked>) {
        let message = self.message(&batch);
        let mut sender = client.stream.try_clone().expect("a clone");
        let replies = std::thread::scope(|scope| {
            scope.spawn(move || sender.write_all(&message).expect("sent"));
            let start = self.start;
            read_replies(&mut client.stream, &batch, start)
        });
        self.requests += batch.len() as u64;
        for (number, asked) in batch.into_iter().enumerate() {
            if asked.command == command::READ {
                let found = &replies[&(number as u64)];
                let expected = &self.bytes[asked.range.clone()];
                assert!(found == expected, "{:?} from {}", asked.range, self.start);
            } else if !asked.new.is_empty() {
                self.bytes[asked.range].copy_from_slice(&asked.new);
            }
        }
    }

    /// Ends in the middle of a batch. Its writes are then there or not, byte by byte, and the
    /// server has let go of it before it closes its side.
    fn die(&mut self, mut client: Client, batch: &[Asked]) {
        let message = self.message(batch);
        let sent = self.random.usize(0..=message.len());
        let mut sender = client.stream.try_clone().expect("a clone");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // The server may have left already, after what it does not understand.
                let _ = sender.write_all(&message[..sent]);
                let _ = sender.shutdown(std::net::Shutdown::Write);
            });
            // To the end of the connection, or its reset.
            let _ = std::io::copy(&mut client.stream, &mut std::io::sink());
        });
        drop(client);
        let now = self
            .running
            .client("", true)
            .read(self.start, STRETCH_BYTES as u32);
        let mut allowed = self.bytes.clone();
        for asked in batch.iter().filter(|asked| !asked.new.is_empty()) {
            for (at, new) in asked.range.clone().zip(&asked.new) {
                if now[at] == *new {
                    allowed[at] = *new;
                }
            }
        }
        assert!(
            now == allowed,
            "something else is in the stretch at {}",
            self.start
        );
        self.bytes = now;
    }
}

/// The data of all READs of a batch, by their cookies, once every request is answered.
fn read_replies(stream: &mut UnixStream, batch: &[Asked], start: u64) -> HashMap<u64, Vec<u8>> {
    let reads = batch.iter().enumerate();
    let reads = reads.filter(|(_, asked)| asked.command == command::READ);
    let mut data: HashMap<u64, Vec<u8>> = reads
        .map(|(number, asked)| (number as u64, vec![0xEE; asked.range.len()]))
        .collect();
    let mut left = batch.len();
    while left > 0 {
        let mut head = [0; CHUNK_HEADER_BYTES];
        let simple = &mut head[..SIMPLE_REPLY_BYTES];
        stream.read_exact(simple).expect("a reply");
        if SimpleReply::begins(&head) {
            let reply = SimpleReply::decode(head.first_chunk().expect("long enough"));
            assert_eq!(reply.expect("a reply").error, 0);
            left -= 1;
            continue;
        }
        stream
            .read_exact(&mut head[SIMPLE_REPLY_BYTES..])
            .expect("a chunk");
        let head = ChunkHeader::decode(&head).expect("a chunk");
        let mut body = vec![0; head.length_bytes as usize];
        stream.read_exact(&mut body).expect("its data");
        let asked = &batch[head.cookie as usize];
        let first = start + asked.range.start as u64;
        let memory = data.get_mut(&head.cookie).expect("a READ");
        match head.kind {
            chunk::OFFSET_DATA => {
                let offset = u64::from_be_bytes(*body.first_chunk().expect("an offset"));
                memory[(offset - first) as usize..][..body.len() - 8].copy_from_slice(&body[8..]);
            }
            chunk::OFFSET_HOLE => {
                let hole = Hole::decode(&body).expect("a hole");
                let at = (hole.offset_bytes - first) as usize;
                memory[at..][..hole.length_bytes as usize].fill(0);
            }
            kind => panic!("a chunk of kind {kind}"),
        }
        left -= usize::from(head.is_last());
    }
    data
}

/// Comes, says anything, and goes.
fn disturb(running: &Running, random: &mut Rng) {
    let mut stream = running.connect();
    match random.u8(0..4) {
        0 => {}
        1 => {
            let nonsense: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(99).collect();
            let _ = stream.write_all(&nonsense);
        }
        2 => drop(Peer::greeted(stream)),
        _ => {
            let mut client = running.client("", false);
            for _ in 0..20 {
                client.send(command::READ, 0, 0, 100_000);
            }
        }
    }
}

fn soak(target: &str) {
    let running = serve(target, |settings| {
        settings.limits.connections = 200;
        settings.limits.bytes_per_connection = 1 << 20;
        settings.limits.requests = 8;
    });
    let until = Instant::now() + duration() / 2;
    let seed = fastrand::u64(..);
    let requests: u64 = std::thread::scope(|scope| {
        let running = &running;
        scope.spawn(move || {
            let mut random = Rng::with_seed(seed ^ 77);
            while Instant::now() < until {
                disturb(running, &mut random);
            }
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn(move || {
                    let mut soaking = Soaking {
                        running,
                        start: 99 + (number * STRETCH_BYTES) as u64,
                        bytes: vec![0; STRETCH_BYTES],
                        random: Rng::with_seed(seed ^ number as u64),
                        requests: 0,
                    };
                    while Instant::now() < until {
                        soaking.live(until);
                    }
                    soaking
                })
            })
            .collect();
        let ended = clients.into_iter().map(|client| client.join());
        let ended: Vec<Soaking<'_>> = ended.map(|it| it.expect("no lie")).collect();
        let mut last = running.client("", true);
        let mut expected = vec![0; 99];
        expected.extend(ended.iter().flat_map(|soaking| soaking.bytes.iter()));
        expected.resize(expected.len() + 1000, 0);
        let found = last.read(0, expected.len() as u32);
        assert!(found == expected, "seed {seed}");
        ended.iter().map(|soaking| soaking.requests).sum()
    });
    assert!(requests > 0, "nothing was asked");
}

#[test]
fn every_byte_of_a_disk_in_memory_is_right_after_a_soak() {
    soak("md:2m");
}

#[test]
fn every_byte_of_an_image_below_a_cache_is_right_after_a_soak() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    std::fs::write(&path, vec![0; 2 << 20]).expect("an image");
    soak(&format!("{} | cache:size=1m", path.display()));
}
