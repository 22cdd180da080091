//! The power goes at a random moment, again and again. Data that FLUSH or FUA has acknowledged must
//! be there afterwards: every sector holds a version that is not older.

use crate::user::{Act, SECTOR};
use std::any::Any;
use std::fs::File;
use std::sync::Arc;
use ugeom_classes::cache::index::Index;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_classes::cache::index::splay::Splay;
use ugeom_classes::cache::{BackOptions, Cache};
use ugeom_engine::{Completion, Engine, Faults, FileId, Op, OpKind, SimulatedEngine, Simulation};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{
    Carrier, Channel, Command, Completions, Cx, Delta, Errno, Flags, Geom, LocalKey, Next, Opened,
    Plan, ProviderPlan, Request, Stack, StackKnobs, ThreadState,
};

/// A file on a simulated machine.
struct Disk {
    file: Arc<File>,
    machine: Simulation,
    key: LocalKey,
}

struct Thread {
    engine: SimulatedEngine<Carrier>,
    file: FileId,
}

impl ThreadState for Thread {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn poll(&mut self, completions: &mut Completions<'_>) {
        self.engine
            .reap(&mut |Completion { memory, result }: Completion<Carrier>| {
                completions.push(memory.into_bio(), result);
            });
    }

    fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }
}

impl Geom for Disk {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        let kind = match request.command() {
            Command::Read => OpKind::Read,
            Command::Write => OpKind::Write {
                durable: request.flags().contains(Flags::FUA),
            },
            Command::Delete => OpKind::Discard,
            Command::Zero => OpKind::Zero { allocated: false },
            Command::Flush => OpKind::Flush,
            Command::GetAttr | Command::Extents => return request.done(Err(Errno::OPNOTSUPP)),
        };
        let Ok(thread) = cx.local::<Thread>(self) else {
            return request.done(Err(Errno::NXIO));
        };
        let (bio, next) = request.park();
        let op = Op {
            kind,
            file: thread.file,
            offset: bio.offset(),
            length: bio.length(),
        };
        thread.engine.submit(op, Carrier::new(bio, 1));
        next
    }

    fn thread_state(&self) -> Result<Box<dyn ThreadState>, Errno> {
        let mut engine = self.machine.engine(32);
        let file = engine.register(Arc::clone(&self.file))?;
        Ok(Box::new(Thread { engine, file }))
    }

    fn local_key(&self) -> Option<LocalKey> {
        Some(self.key)
    }
}

fn plan(name: &str, media_bytes: u64, geom: Arc<dyn Geom>) -> Plan {
    let provider = ProviderPlan::new(name, media_bytes, SECTOR as u32);
    Plan::of(provider, geom)
}

/// How the cache is made.
#[derive(Clone, Copy)]
pub struct Shape {
    pub sectors: usize,
    pub buffers: u32,
    pub block_bytes: u32,
    /// How many may be dirty; none when it writes through.
    pub limit: Option<u32>,
}

/// The versions of each sector, oldest first; the first is the last one acknowledged as durable.
struct Versions {
    sectors: Vec<Vec<u64>>,
    next: u64,
}

/// One life of the machine: a stack over its disk.
struct Life {
    channel: Channel,
    opened: Opened,
}

impl Life {
    fn begin<I: Index>(disk: Disk, shape: Shape) -> Self {
        let media_bytes = (shape.sectors * SECTOR) as u64;
        let stack = Stack::new(StackKnobs::default(), Vec::new()).expect("a stack");
        let below = plan("disk", media_bytes, Arc::new(disk));
        let below = stack.create("DISK", below, &[]).expect("a disk")[0];
        let cache = Cache::<I>::new(shape.buffers, shape.block_bytes, media_bytes);
        let cache = cache.expect("memory");
        let mut cache = cache.reading_ahead(4);
        if let Some(limit) = shape.limit {
            cache = cache.writing_back(&BackOptions {
                limit,
                idle_ns: 1_000_000,
                age_ns: 5_000_000,
                sector_bytes: SECTOR as u32,
                name: "cache".into(),
            });
        }
        let cache = Arc::new(cache);
        cache.begin_reading_ahead().expect("a thread");
        cache.begin_writing_back().expect("a thread");
        let top = plan("cache", media_bytes, cache);
        let top = stack.create("CACHE", top, &[below]).expect("a cache")[0];
        Self {
            channel: stack.channel(4).expect("a channel"),
            opened: stack.open(top, Delta::READ_WRITE).expect("opens"),
        }
    }

    fn act(&mut self, versions: &mut Versions, act: Act, start: usize, count: usize) {
        let (offset, length) = ((start * SECTOR) as u64, count * SECTOR);
        let draft = self.channel.bio().expect("a bio");
        versions.next += 1;
        let value = versions.next;
        let (draft, written) = match act {
            Act::Read => (draft.read(offset, Buffer::new(length)), None),
            Act::Flush => (draft.flush(), None),
            Act::Delete | Act::Zero | Act::OrderedZero => {
                (draft.discard(Command::Zero, offset, length as u64), Some(0))
            }
            Act::Write | Act::Fua | Act::Ordered => {
                let bytes = value.to_le_bytes().repeat(length / 8);
                (draft.write(offset, Buffer::from_slice(&bytes)), Some(value))
            }
        };
        let range = start..start + count;
        // From now on it may be there, whatever becomes of the request.
        if let Some(value) = written {
            let sectors = versions.sectors[range.clone()].iter_mut();
            sectors.for_each(|known| known.push(value));
        }
        self.channel.submit(&self.opened, draft.flags(act.flags()));
        while self.channel.wait(None) == 0 {}
        let finished = self.channel.finished().expect("it is back");
        if finished.result().is_err() {
            return;
        }
        let keep_last = |known: &mut Vec<u64>| drop(known.drain(..known.len() - 1));
        match act {
            Act::Flush => versions.sectors.iter_mut().for_each(keep_last),
            Act::Fua => versions.sectors[range].iter_mut().for_each(keep_last),
            Act::Read => {
                let bytes = finished.buffer().expect("bytes");
                for (known, sector) in versions.sectors[range].iter().zip(bytes.chunks(SECTOR)) {
                    let value = u64::from_le_bytes(sector[..8].try_into().expect("eight"));
                    assert_eq!(Some(&value), known.last(), "a read sees the latest");
                }
            }
            _ => {}
        }
    }
}

/// Crashes so often; how many acknowledged versions were held against the disk.
pub fn survives<I: Index>(shape: Shape, crashes: usize, seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let file = tempfile::tempfile().expect("a file");
    file.set_len((shape.sectors * SECTOR) as u64)
        .expect("a length");
    let file = Arc::new(file);
    let mut versions = Versions {
        sectors: vec![vec![0]; shape.sectors],
        next: 0,
    };
    let mut checked = 0;
    for crash in 0..crashes {
        let machine = Simulation::new(Faults {
            seed: random.u64(..),
            ..Faults::default()
        });
        let disk = Disk {
            file: Arc::clone(&file),
            machine: machine.clone(),
            key: LocalKey::new(),
        };
        let mut life = Life::begin::<I>(disk, shape);
        let requests = random.usize(1..120);
        for _ in 0..requests {
            let start = random.usize(0..shape.sectors);
            let count = random.usize(1..=40).min(shape.sectors - start);
            life.act(&mut versions, Act::of(random.u8(..)), start, count);
        }
        // The flusher may be in the middle of something.
        machine.crash().expect("the file is there");
        drop(life);
        for (sector, known) in versions.sectors.iter_mut().enumerate() {
            let mut bytes = [0; SECTOR];
            let offset = (sector * SECTOR) as u64;
            std::os::unix::fs::FileExt::read_exact_at(&*file, &mut bytes, offset).expect("reads");
            let (value, _) = bytes.split_at(8);
            assert_eq!(value.repeat(SECTOR / 8), bytes, "a torn sector");
            let value = u64::from_le_bytes(value.try_into().expect("eight"));
            assert!(
                known.contains(&value),
                "crash {crash}, seed {seed}: sector {sector} is {value}, not one of {known:?}"
            );
            *known = vec![value];
            checked += 1;
        }
    }
    checked
}

/// Both indexes, blocks of several sizes, few buffers.
pub fn all(crashes: usize, seed: u64) -> u64 {
    let shape = |buffers, block_bytes, limit| Shape {
        sectors: 509,
        buffers,
        block_bytes,
        limit,
    };
    survives::<Hash>(shape(16, 4096, Some(8)), crashes, seed)
        + survives::<Splay>(shape(8, 16384, Some(8)), crashes, seed + 1)
        + survives::<Hash>(shape(64, 4096, Some(60)), crashes, seed + 2)
        + survives::<Hash>(shape(4, 65536, Some(1)), crashes, seed + 3)
        + survives::<Hash>(shape(16, 4096, None), crashes, seed + 4)
}
