//! Tests of write-back over a layer that loses acknowledged writes: the data is written again, and
//! no client gets a false acknowledgement.

use crate::cache::index::hash::Hash;
use crate::cache::{BackOptions, Cache};
use std::sync::Arc;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{
    Channel, Command, Cx, Delta, Errno, Flags, Geom, Losses, Next, Opened, Plan, ProviderPlan,
    Request, Stack, StackKnobs,
};

const BLOCK: usize = 4096;
const LENGTH: usize = 1 << 20;
const BUFFERS: usize = 16;

#[derive(Default)]
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
}

/// A disk with a write cache of its own.
struct Volatile {
    contents: Mutex<Contents>,
    losses: Arc<Losses>,
}

impl Volatile {
    /// It loses its power for a moment.
    fn forget(&self) {
        let mut contents = self.contents.lock();
        contents.now = contents.durable.clone();
        self.losses.record("the power failed");
    }

    fn is_durable(&self, block: usize, byte: u8) -> bool {
        let range = block * BLOCK..(block + 1) * BLOCK;
        self.contents.lock().durable[range]
            .iter()
            .all(|it| *it == byte)
    }
}

impl Geom for Volatile {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let mut contents = self.contents.lock();
        let offset = request.offset() as usize;
        match request.command() {
            Command::Read => request.fill(|at, piece| {
                let from = offset + at as usize;
                piece.copy_from_slice(&contents.now[from..from + piece.len()]);
            }),
            Command::Write => request.each(|at, piece| {
                let to = offset + at as usize;
                contents.now[to..to + piece.len()].copy_from_slice(piece);
            }),
            Command::Flush => contents.durable = contents.now.clone(),
            _ => return request.done(Err(Errno::OPNOTSUPP)),
        }
        if request.flags().contains(Flags::FUA) {
            contents.durable = contents.now.clone();
        }
        request.done_in_full()
    }

    fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }
}

struct Rig {
    disk: Arc<Volatile>,
    stack: Stack,
    clients: Vec<(Opened, Channel)>,
}

fn plan(name: &str, geom: Arc<dyn Geom>) -> Plan {
    Plan::of(ProviderPlan::new(name, LENGTH as u64, 512), geom)
}

impl Rig {
    /// Two users of a cache, which writes back or through.
    fn new(back: bool) -> Self {
        let stack = Stack::new(StackKnobs::default(), Vec::new()).expect("a stack");
        let contents = Contents {
            now: vec![0; LENGTH],
            durable: vec![0; LENGTH],
        };
        let disk = Arc::new(Volatile {
            contents: Mutex::new(contents),
            losses: Arc::default(),
        });
        let below = plan("disk", Arc::clone(&disk) as Arc<dyn Geom>);
        let below = stack.create("DISK", below, &[]).expect("a disk")[0];
        let mut cache = Cache::<Hash>::new(BUFFERS as u32, BLOCK as u32, LENGTH as u64);
        if back {
            cache = cache.map(|cache| {
                cache.writing_back(&BackOptions {
                    limit: BUFFERS as u32,
                    idle_ns: u64::MAX / 4,
                    age_ns: u64::MAX / 4,
                    sector_bytes: 512,
                    name: "disk.cache".into(),
                })
            });
        }
        let cache = Arc::new(cache.expect("memory"));
        cache.begin_writing_back().expect("a thread");
        let top = plan("disk.cache", cache);
        let top = stack.create("CACHE", top, &[below]).expect("a cache")[0];
        let client = |_| {
            let opened = stack.open(top, Delta::READ_WRITE).expect("opens");
            (opened, stack.channel(4).expect("a channel"))
        };
        let clients = (0..2).map(client).collect();
        Self {
            disk,
            stack,
            clients,
        }
    }

    fn write(&mut self, client: usize, block: usize, byte: u8) {
        let (opened, channel) = &mut self.clients[client];
        let written = channel.write(opened, (block * BLOCK) as u64, &[byte; BLOCK]);
        assert_eq!(written.expect("writes"), BLOCK);
    }

    fn read(&mut self, block: usize) -> u8 {
        let (opened, channel) = &mut self.clients[0];
        let mut bytes = [0; BLOCK];
        let read = channel.read(opened, (block * BLOCK) as u64, &mut bytes);
        assert_eq!(read.expect("reads"), BLOCK);
        bytes[0]
    }

    fn flush(&mut self, client: usize) -> Result<(), String> {
        let (opened, channel) = &mut self.clients[client];
        channel.flush(opened).map_err(|error| error.to_string())
    }

    /// Writes dirty blocks to the layer below, without making them durable there.
    fn drain(&mut self) {
        let (opened, channel) = &mut self.clients[0];
        channel.extents(opened, 0, 4096, 1).expect_err("no extents");
    }

    fn fact(&self, key: &str) -> u64 {
        super::tests::number_of(&self.stack, key)
    }
}

#[test]
fn what_the_layer_below_has_lost_is_dirty_again_and_every_user_hears() {
    for first in [0, 1] {
        let mut rig = Rig::new(true);
        rig.write(0, 3, 7);
        rig.drain();
        assert_eq!(rig.fact("dirty"), 0);
        rig.disk.forget();
        assert!(
            rig.flush(first)
                .is_err_and(|why| why.contains("the power failed"))
        );
        assert_eq!(rig.fact("dirty"), BLOCK as u64, "it is not safe");
        assert_eq!(rig.read(3), 7);
        assert!(rig.flush(1 - first).is_err());
        for client in [0, 1] {
            assert_eq!(rig.flush(client), Ok(()));
        }
        assert!(rig.disk.is_durable(3, 7), "it was written again");
        assert_eq!((rig.fact("dirty"), rig.fact("lost")), (0, 0));
        rig.disk.forget();
        assert!(rig.flush(0).is_err(), "what it was is not known");
        assert_eq!(rig.fact("dirty"), 0, "all of it was durable");
    }
}

#[test]
fn what_was_written_after_the_last_flush_only_is_written_again() {
    let mut rig = Rig::new(true);
    rig.write(0, 1, 1);
    assert_eq!(rig.flush(0), Ok(()));
    rig.write(0, 2, 2);
    rig.drain();
    rig.disk.forget();
    assert!(rig.flush(0).is_err());
    assert_eq!(rig.fact("dirty"), BLOCK as u64);
    assert_eq!(rig.flush(0), Ok(()));
    assert!(rig.disk.is_durable(1, 1) && rig.disk.is_durable(2, 2));
}

#[test]
fn what_has_left_the_memory_meanwhile_is_reported_with_its_place() {
    let mut rig = Rig::new(true);
    rig.write(0, 9, 7);
    rig.drain();
    for block in 100..100 + 4 * BUFFERS {
        rig.read(block);
    }
    rig.disk.forget();
    assert!(rig.flush(1).is_err());
    let lost = (rig.fact("lost"), rig.fact("lost_at"));
    assert_eq!(lost, (BLOCK as u64, 9 * BLOCK as u64));
    assert_eq!(rig.read(9), 0, "that is what the disk has");
    assert!(rig.flush(0).is_err());
    let stack = rig.stack.clone();
    rig.clients.clear();
    let lost = stack.finish().expect_err("it is lost").to_string();
    assert_eq!(
        lost,
        "disk.cache: data is lost: 4096 bytes from offset 36864 on could not be written"
    );
}

#[test]
fn closing_writes_again_what_was_lost_and_says_that_it_was() {
    let mut rig = Rig::new(true);
    rig.write(0, 3, 7);
    rig.drain();
    rig.disk.forget();
    drop(rig.clients.pop());
    let (opened, channel) = rig.clients.pop().expect("the other");
    drop(channel);
    opened.close().expect_err("it was lost");
    assert!(rig.disk.is_durable(3, 7));
}

#[test]
fn a_cache_that_writes_through_shows_what_is_left_of_a_disk_that_forgot() {
    let mut rig = Rig::new(false);
    rig.write(0, 3, 7);
    assert_eq!(rig.read(3), 7);
    rig.disk.forget();
    assert!(rig.flush(1).is_err());
    assert_eq!(rig.read(3), 0);
    assert!(rig.flush(0).is_err());
    assert_eq!(rig.flush(0), Ok(()));
}
