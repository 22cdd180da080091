//! Tests of write-back over a provider that fails, is detached, or comes back with other contents
//! while blocks are dirty: dirty data and nothing else is written there, losses are reported, and
//! no buffer stays as if it were being written.

use crate::cache::dirty::Dirty;
use crate::cache::index::Index;
use crate::cache::index::hash::Hash;
use crate::cache::index::splay::Splay;
use crate::cache::{BackOptions, Cache};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ugeom_machine::mutex::Mutex;
use ugeom_machine::slab::Slab;
use ugeom_stack::{
    Bio, Channel, Command, Cx, Delta, Errno, Geom, Next, Opened, Plan, ProviderId, ProviderPlan,
    Request, Stack, StackKnobs,
};

const BLOCK: usize = 4096;
const SECTOR: usize = 512;

/// The response of a device to writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    Failing,
    /// It keeps them until it is asked for them.
    Holding,
}

struct DeviceState {
    bytes: Vec<u8>,
    mood: Mood,
    held: Vec<Bio>,
}

/// A device in the hands of the test.
struct Device {
    state: Mutex<DeviceState>,
}

impl Device {
    fn new(length: usize, byte: u8) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(DeviceState {
                bytes: vec![byte; length],
                mood: Mood::Well,
                held: Vec::new(),
            }),
        })
    }

    fn set_mood(&self, mood: Mood) {
        self.state.lock().mood = mood;
    }

    /// It is another device now, full of this byte.
    fn becomes(&self, byte: u8) {
        self.state.lock().bytes.fill(byte);
    }

    /// Waits until it keeps a write.
    fn wait_until_it_holds_one(&self) {
        let begun = Instant::now();
        while self.state.lock().held.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no write came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Fails the requests that it keeps.
    fn fail_held(&self, errno: Errno) {
        let held = std::mem::take(&mut self.state.lock().held);
        assert!(!held.is_empty());
        held.into_iter()
            .for_each(|bio| bio.fail(errno, "the test has kept it"));
    }

    /// The bytes that are this, as ranges.
    fn where_is(&self, byte: u8) -> Vec<(usize, usize)> {
        let mut ranges = Vec::new();
        let state = self.state.lock();
        for (at, here) in state.bytes.iter().enumerate() {
            match ranges.last_mut() {
                Some((_, end)) if *here == byte && *end == at => *end += 1,
                _ if *here == byte => ranges.push((at, at + 1)),
                _ => {}
            }
        }
        ranges
    }
}

impl Geom for Device {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let mut state = self.state.lock();
        let offset = request.offset() as usize;
        match (request.command(), state.mood) {
            (Command::Read, _) => {
                request.fill(|at, piece| {
                    let from = offset + at as usize;
                    piece.copy_from_slice(&state.bytes[from..from + piece.len()]);
                });
                request.done_in_full()
            }
            (Command::Write, Mood::Well) => {
                request.each(|at, piece| {
                    let to = offset + at as usize;
                    state.bytes[to..to + piece.len()].copy_from_slice(piece);
                });
                request.done_in_full()
            }
            (Command::Write, Mood::Failing) => request.fail(Errno::IO, "the device is not well"),
            (Command::Write, Mood::Holding) => {
                let (bio, next) = request.park();
                state.held.push(bio);
                next
            }
            (Command::Flush, _) => request.done(Ok(0)),
            _ => request.done(Err(Errno::OPNOTSUPP)),
        }
    }
}

fn plan(name: &str, length: usize, geom: Arc<dyn Geom>) -> Plan {
    Plan::of(ProviderPlan::new(name, length as u64, SECTOR as u32), geom)
}

/// A device below a cache of sixteen blocks that writes back when it is asked to.
struct Rig {
    dirty: Arc<Dirty>,
    slab: Arc<Slab>,
    device: Arc<Device>,
    below: ProviderId,
    channel: Channel,
    opened: Opened,
    stack: Stack,
}

impl Rig {
    fn new<I: Index>(length: usize) -> Self {
        let stack = Stack::new(StackKnobs::default(), Vec::new()).expect("a stack");
        Self::on::<I>(&stack, length, 1)
    }

    fn on<I: Index>(stack: &Stack, length: usize, byte: u8) -> Self {
        let device = Device::new(length, byte);
        let below = plan("device", length, Arc::clone(&device) as Arc<dyn Geom>);
        let below = stack.create("DEVICE", below, &[]).expect("a device")[0];
        let cache = Cache::<I>::new(16, BLOCK as u32, length as u64).expect("memory");
        let cache = cache.writing_back(&BackOptions {
            limit: 16,
            idle_ns: u64::MAX / 4,
            age_ns: u64::MAX / 4,
            sector_bytes: SECTOR as u32,
            name: "device.cache".into(),
        });
        let (dirty, slab) = (
            Arc::clone(&cache.store.dirty),
            Arc::clone(cache.store.slab()),
        );
        let cache = Arc::new(cache);
        cache.begin_writing_back().expect("a thread");
        let top = plan("device.cache", length, cache);
        let top = stack.create("CACHE", top, &[below]).expect("a cache")[0];
        Self {
            channel: stack.channel(4).expect("a channel"),
            opened: stack.open(top, Delta::READ_WRITE).expect("opens"),
            stack: stack.clone(),
            dirty,
            slab,
            device,
            below,
        }
    }

    fn write(&mut self, offset: usize, length: usize, byte: u8) {
        let bytes = vec![byte; length];
        let written = self.channel.write(&self.opened, offset as u64, &bytes);
        written.expect("it is in memory");
    }

    /// A range that is all of one byte: which.
    fn read(&mut self, offset: usize, length: usize) -> u8 {
        let mut bytes = vec![0; length];
        let read = self.channel.read(&self.opened, offset as u64, &mut bytes);
        assert_eq!(read.expect("reads"), length);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "at {offset}");
        bytes[0]
    }

    fn flush(&mut self) -> Result<(), Errno> {
        let flushed = self.channel.flush(&self.opened);
        flushed.map(drop).map_err(|error| error.errno)
    }

    /// The second block is dirty and on its way below, which the device does not end. The FLUSH
    /// that wanted it waits.
    fn write_on_its_way(&mut self) -> std::thread::JoinHandle<Result<(), Errno>> {
        self.write(BLOCK, BLOCK, 7);
        self.device.set_mood(Mood::Holding);
        let flush = self.flush_elsewhere();
        self.device.wait_until_it_holds_one();
        flush
    }

    /// Closes the device while its blocks cannot be written; returns device and stack.
    fn close_with_dirty_blocks(self) -> (Arc<Device>, Stack) {
        drop(self.channel);
        self.opened.close().expect_err("it cannot be written");
        (self.device, self.stack)
    }

    /// FLUSH, by a thread of its own.
    fn flush_elsewhere(&self) -> std::thread::JoinHandle<Result<(), Errno>> {
        let mut channel = self.stack.channel(1).expect("a channel");
        let top = self.opened.view().expect("it").id;
        let opened = self.stack.open(top, Delta::READ_WRITE).expect("opens");
        std::thread::spawn(move || {
            let flushed = channel.flush(&opened);
            flushed.map(drop).map_err(|error| error.errno)
        })
    }

    fn fact(&self, key: &str) -> u64 {
        super::tests::number_of(&self.stack, key)
    }

    /// Every buffer can be used for other blocks, and is.
    fn no_buffer_is_stuck(&mut self, length: usize, byte: u8) {
        assert_eq!((self.fact("dirty"), self.fact("unwritten")), (0, 0));
        let is_free = |slot| !self.dirty.holds(slot) && !self.slab.is_held(slot);
        assert!((0..16).all(is_free));
        assert_eq!(self.dirty.buffers(), 0);
        let (evictions, bypasses) = (self.fact("evictions"), self.fact("bypasses"));
        // Backwards, so that the blocks which the test began with are asked for last.
        for _ in 0..4 {
            for block in (length / BLOCK / 2..length / BLOCK).rev() {
                assert_eq!(self.read(block * BLOCK, BLOCK), byte, "block {block}");
            }
        }
        assert!(self.fact("evictions") >= evictions + 16);
        assert_eq!(self.fact("bypasses"), bypasses, "a buffer could be had");
        for at in 0..16 {
            self.write(length / 2 + at * BLOCK, BLOCK, 3);
        }
        assert_eq!(self.flush(), Ok(()));
        assert_eq!(
            self.device.where_is(3),
            [(length / 2, length / 2 + 16 * BLOCK)]
        );
    }
}

const LENGTH: usize = 1 << 20;

fn failing<I: Index>() {
    let mut rig = Rig::new::<I>(LENGTH);
    assert_eq!(rig.read(0, BLOCK), 1);
    rig.write(BLOCK + SECTOR, SECTOR, 7);
    rig.write(2 * BLOCK, BLOCK, 7);
    rig.device.set_mood(Mood::Failing);
    for _ in 0..2 {
        assert_eq!(rig.flush(), Err(Errno::IO));
        assert_eq!(rig.read(BLOCK + SECTOR, SECTOR), 7);
    }
    assert_eq!(rig.fact("unwritten"), (SECTOR + BLOCK) as u64);
    rig.device.becomes(9);
    rig.device.set_mood(Mood::Well);
    assert_eq!(rig.flush(), Ok(()));
    // The sectors that were written, and none that were only read with them.
    let written = [(BLOCK + SECTOR, BLOCK + 2 * SECTOR), (2 * BLOCK, 3 * BLOCK)];
    assert_eq!(rig.device.where_is(7), written);
    assert_eq!(rig.device.where_is(1), []);
    rig.no_buffer_is_stuck(LENGTH, 9);
}

fn shrinking<I: Index>() {
    let mut rig = Rig::new::<I>(LENGTH);
    for block in [4, 130] {
        assert_eq!(rig.read(block * BLOCK + BLOCK, BLOCK), 1);
        rig.write(block * BLOCK, BLOCK, 7);
    }
    let half = LENGTH as u64 / 2;
    rig.stack.resize(rig.below, half).expect("shrinks");
    assert_eq!(
        (rig.fact("lost"), rig.fact("lost_at")),
        (BLOCK as u64, 130 * BLOCK as u64)
    );
    rig.device.becomes(9);
    rig.stack.resize(rig.below, LENGTH as u64).expect("grows");
    assert_eq!(rig.read(4 * BLOCK, BLOCK), 7, "the latest write");
    assert_eq!(rig.read(130 * BLOCK, 2 * BLOCK), 9, "nothing from before");
    assert_eq!(rig.flush(), Err(Errno::IO), "a block is lost");
    assert_eq!(rig.flush(), Ok(()));
    assert_eq!(rig.device.where_is(7), [(4 * BLOCK, 5 * BLOCK)]);
    assert_eq!(rig.device.where_is(1), []);
    rig.no_buffer_is_stuck(LENGTH, 9);
}

fn replaced<I: Index>() {
    let mut rig = Rig::new::<I>(LENGTH);
    assert_eq!(rig.read(BLOCK, BLOCK), 1);
    rig.write(0, BLOCK, 7);
    // It takes nothing any more when it goes.
    rig.device.set_mood(Mood::Failing);
    let tree = rig.stack.tree();
    let mut geoms = tree.geoms.iter();
    let device = geoms.find(|geom| geom.class == "DEVICE").expect("it");
    rig.stack.destroy_forced(device.id).expect("goes");
    let (old, stack) = rig.close_with_dirty_blocks();
    // Another device of the same name.
    let mut rig = Rig::on::<I>(&stack, LENGTH, 9);
    assert_eq!(rig.read(0, 2 * BLOCK), 9);
    rig.write(4 * BLOCK, SECTOR, 8);
    assert_eq!(rig.flush(), Ok(()));
    let written = [(4 * BLOCK, 4 * BLOCK + SECTOR)];
    assert_eq!(rig.device.where_is(8), written);
    assert_eq!((rig.device.where_is(7), old.where_is(7)), (vec![], vec![]));
    rig.no_buffer_is_stuck(LENGTH, 9);
}

fn held<I: Index>() {
    let mut rig = Rig::new::<I>(LENGTH);
    let flush = rig.write_on_its_way();
    // It is on its way below, and is written again meanwhile.
    rig.write(BLOCK, SECTOR, 8);
    rig.device.becomes(9);
    rig.device.set_mood(Mood::Well);
    rig.device.fail_held(Errno::IO);
    assert_eq!(flush.join().expect("no panic"), Err(Errno::IO));
    assert_eq!(rig.fact("dirty"), BLOCK as u64, "all of it, once");
    assert_eq!(rig.read(BLOCK, SECTOR), 8);
    assert_eq!(rig.flush(), Ok(()));
    assert_eq!(rig.device.where_is(8), [(BLOCK, BLOCK + SECTOR)]);
    assert_eq!(rig.device.where_is(7), [(BLOCK + SECTOR, 2 * BLOCK)]);
    rig.no_buffer_is_stuck(LENGTH, 9);
}

fn orphaned<I: Index>() {
    let mut rig = Rig::new::<I>(LENGTH);
    let flush = rig.write_on_its_way();
    rig.stack.orphan(rig.below, Errno::NXIO).expect("goes");
    rig.device.fail_held(Errno::NXIO);
    flush.join().expect("no panic").expect_err("it is gone");
    let (_, stack) = rig.close_with_dirty_blocks();
    assert_eq!(stack.defects(), 0);
    let tree = stack.tree();
    assert!(
        tree.geoms.iter().all(|geom| geom.class != "CACHE"),
        "it has gone"
    );
}

/// Each of them with either index.
macro_rules! with_both_indexes {
    ($($name:ident: $run:ident;)*) => {
        $(#[test]
        fn $name() {
            $run::<Hash>();
            $run::<Splay>();
        })*
    };
}

with_both_indexes! {
    what_failed_gets_to_a_device_that_comes_back_with_other_contents_and_nothing_else_does: failing;
    a_media_that_shrinks_and_grows_with_other_contents_shows_those: shrinking;
    a_device_in_the_place_of_one_that_went_away_gets_nothing_of_what_was_meant_for_it: replaced;
    a_block_whose_way_below_ends_in_an_error_is_dirty_again_with_what_came_meanwhile: held;
    a_device_that_goes_away_while_a_block_is_on_its_way_takes_nobody_with_it: orphaned;
}
