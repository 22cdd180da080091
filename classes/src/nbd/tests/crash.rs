//! A server that is killed again and again and loses unflushed writes, with clients of several
//! threads: no FLUSH succeeds for lost data.

use super::*;
use std::collections::HashMap;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard};

const FLAGS: u16 = export_flag::HAS_FLAGS | export_flag::SEND_FLUSH | export_flag::CAN_MULTI_CONN;
const SIZE: usize = 1 << 20;
const BLOCK: usize = 4096;
const CLIENTS: usize = 4;

/// The contents in memory and on disk during one life of the server.
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
    life: u64,
    streams: Vec<UnixStream>,
}

/// A server that can be killed; the next one is there at once.
struct Mortal {
    folder: TempDir,
    contents: Arc<Mutex<Contents>>,
}

impl Mortal {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
        let contents = Arc::new(Mutex::new(Contents {
            now: vec![0; SIZE],
            durable: vec![0; SIZE],
            life: 0,
            streams: Vec::new(),
        }));
        let shared = Arc::clone(&contents);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let shared = Arc::clone(&shared);
                let life = {
                    let mut contents = shared.lock().expect("contents");
                    let again = stream.try_clone().expect("a descriptor");
                    contents.streams.push(again);
                    contents.life
                };
                std::thread::spawn(move || {
                    let serve = |stream| serve(stream, &shared, life);
                    shake_hands(stream, FLAGS, false, serve);
                });
            }
        });
        Self { folder, contents }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().expect("contents")
    }

    fn kill(&self) {
        let mut contents = self.contents();
        contents.life += 1;
        contents.now = contents.durable.clone();
        for stream in contents.streams.drain(..) {
            // The client may have left.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(mut stream: UnixStream, contents: &Mutex<Contents>, life: u64) {
    while let Some(request) = next_request_or_end(&mut stream) {
        let mut data = vec![0; request.payload_bytes() as usize];
        if stream.read_exact(&mut data).is_err() {
            return;
        }
        let mut contents = contents.lock().expect("contents");
        if contents.life != life {
            return;
        }
        let at = request.offset_bytes as usize;
        let mut answer = Vec::new();
        match request.command {
            command::READ => {
                let length = request.length_bytes as usize;
                answer.extend(&contents.now[at..at + length]);
            }
            command::WRITE => contents.now[at..at + data.len()].copy_from_slice(&data),
            command::FLUSH => contents.durable = contents.now.clone(),
            _ => return,
        }
        let (error, cookie) = (0, request.cookie);
        let head = SimpleReply { error, cookie }.encode();
        let _ = stream.write_all(&[&head[..], &answer].concat());
    }
}

fn next_request_or_end(stream: &mut UnixStream) -> Option<Request> {
    let mut bytes = [0; 28];
    stream.read_exact(&mut bytes).ok()?;
    Request::decode(&bytes).ok()
}

struct Client {
    opened: Opened,
    channel: Channel,
    /// Acknowledged writes that are not known to be lost, by block.
    written: HashMap<usize, u8>,
    /// A death of the server has cost it something since its last FLUSH.
    has_to_hear: bool,
    /// There was a death since its last FLUSH, whatever it cost.
    may_hear: bool,
}

/// One history; how many clients got an error.
fn history(target: &Target, server: &Mortal, seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|_| {
            let (opened, channel) = opened(target);
            Client {
                opened,
                channel,
                written: HashMap::new(),
                has_to_hear: false,
                may_hear: false,
            }
        })
        .collect();
    let mut heard = 0;
    // Some writes and perhaps FLUSHes, a death, and then a FLUSH of each in a random order.
    for _ in 0..random.usize(4..16) {
        let client = random.usize(0..CLIENTS);
        match random.u8(0..8) {
            0 => heard += flush(&mut clients[client], server, seed),
            1 => clients[client].channel = target.stack.channel(8).expect("a channel"),
            _ => write(&mut clients[client], client, &mut random),
        }
    }
    server.kill();
    for client in &mut clients {
        let durable = &server.contents().durable;
        let lost = |(block, value): (&usize, &u8)| durable[block * BLOCK] != *value;
        client.has_to_hear |= client.written.iter().any(lost);
        client.may_hear = true;
    }
    let mut order: Vec<usize> = (0..CLIENTS).collect();
    random.shuffle(&mut order);
    for client in order {
        if random.bool() {
            write(&mut clients[client], client, &mut random);
        }
        heard += flush(&mut clients[client], server, seed);
        assert_eq!(flush(&mut clients[client], server, seed), 0, "once");
    }
    heard
}

fn write(client: &mut Client, number: usize, random: &mut fastrand::Rng) {
    let block = number + CLIENTS * random.usize(0..SIZE / BLOCK / CLIENTS);
    let value = random.u8(1..);
    let at = (block * BLOCK) as u64;
    let written = client.channel.write(&client.opened, at, &[value; BLOCK]);
    written.expect("written, perhaps later");
    client.written.insert(block, value);
}

/// A FLUSH; 1 when it failed.
fn flush(client: &mut Client, server: &Mortal, seed: u64) -> usize {
    let flushed = client.channel.flush(&client.opened);
    if let Err(error) = flushed {
        assert!(client.may_hear, "seed {seed}: nothing was lost: {error}");
        assert!(error.to_string().contains("may be lost"), "{error}");
        let durable = &server.contents().durable;
        client
            .written
            .retain(|block, value| durable[*block * BLOCK] == *value);
        (client.has_to_hear, client.may_hear) = (false, false);
        return 1;
    }
    assert!(!client.has_to_hear, "seed {seed}: OK after a loss");
    let durable = &server.contents().durable;
    for (block, value) in &client.written {
        assert_eq!(durable[block * BLOCK], *value, "seed {seed}: OK, and gone");
    }
    0
}

#[test]
fn no_client_gets_ok_for_what_a_dead_server_has_forgotten() {
    let long = std::env::var("UGEOM_CRASHES").ok();
    let crashes = long.and_then(|it| it.parse().ok()).unwrap_or(25);
    let mut heard = 0;
    for seed in 0..crashes {
        let server = Mortal::start();
        let target = open(&target_of(&server.folder, "", ""));
        heard += history(&target, &server, seed);
    }
    println!("{crashes} deaths, {heard} errors of FLUSHes, none too few");
    assert!(heard as u64 >= crashes / 2, "{heard}");
}

#[test]
fn the_first_to_flush_after_a_death_takes_nothing_from_the_others() {
    let server = Mortal::start();
    let target = open(&target_of(&server.folder, "", ""));
    let mut clients: Vec<_> = (0..3).map(|_| opened(&target)).collect();
    let (opened, channel) = &mut clients[0];
    for block in 0..100 {
        let at = (block * BLOCK) as u64;
        channel.write(opened, at, &[9; BLOCK]).expect("written");
    }
    server.kill();
    for at in [1, 0, 2] {
        let (opened, channel) = &mut clients[at];
        let error = channel.flush(opened).expect_err("the writes are gone");
        assert!(error.to_string().contains("may be lost"), "{error}");
    }
}
