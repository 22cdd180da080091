//! Random hits through the class's whole path, counts on, beside the page cache and bare copies.

use super::rounds::{Work, measure};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use ugeom_classes::cache::Cache;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_classes::cache::index::splay::Splay;
use ugeom_classes::cache::index::{Index, Lookup};
use ugeom_classes::cache::store::Outcome;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_machine::mapping::Mapping;
use ugeom_stack::{Channel, Delta, Geom, Opened, Plan, ProviderId, ProviderPlan, Stack};

pub const BYTES: u64 = 1 << 30;

/// A cache that holds all of a device of 1 GiB, and a way into it.
pub struct Warm<I: Index> {
    pub stack: Stack,
    pub top: ProviderId,
    pub cache: Arc<Cache<I>>,
}

impl<I: Index> Warm<I> {
    pub fn new(block_bytes: u32) -> Self {
        Self::of("zero | nop:size=1g", BYTES, block_bytes)
    }

    /// One whose device has twice as much as it holds and was read several times: in most buffers
    /// there is another block than the first one that came.
    fn replaced(block_bytes: u32) -> Self {
        let warm = Self::of("zero | nop:size=2g", 2 * BYTES, block_bytes);
        for _ in 0..2 {
            warm.read_all(2 * BYTES);
        }
        warm
    }

    fn of(device: &str, media_bytes: u64, block_bytes: u32) -> Self {
        let below = open_target(device, &TargetOptions::default());
        let below = below.expect("a device");
        let buffers = (BYTES / u64::from(block_bytes)) as u32;
        let cache = Cache::new(buffers, block_bytes, media_bytes).expect("memory");
        let cache: Arc<Cache<I>> = Arc::new(cache);
        let provider = ProviderPlan::new("cache", media_bytes, 512);
        let plan = Plan::of(provider, Arc::clone(&cache) as Arc<dyn Geom>);
        let made = below.stack.create("CACHE", plan, &[below.top]);
        let warm = Self {
            top: made.expect("a cache")[0],
            stack: below.stack,
            cache,
        };
        warm.read_all(media_bytes);
        warm
    }

    fn read_all(&self, bytes: u64) {
        let (mut channel, opened) = self.open();
        let mut buffer = vec![0; 1 << 20];
        for offset in (0..bytes).step_by(1 << 20) {
            channel.read(&opened, offset, &mut buffer).expect("reads");
        }
    }

    /// Of these places, those whose block is there.
    fn resident(&self, size: usize, mut places: Vec<u32>) -> Vec<u32> {
        let store = self.cache.store();
        let block_bytes = store.slab().block_bytes();
        places.retain(|place| {
            let block = (*place as usize * size / block_bytes) as u64;
            matches!(store.lookup(block), Lookup::At(_, entry) if !entry.busy)
        });
        places
    }

    pub fn open(&self) -> (Channel, Opened) {
        let opened = self.stack.open(self.top, Delta::READ).expect("opens");
        (self.stack.channel(1).expect("a channel"), opened)
    }

    /// The buffer of each block, and where in it the reads of `size` begin: what bare copies from
    /// the same pages need.
    pub fn pages(&self, size: usize, order: &[u32]) -> Vec<(u32, usize)> {
        let store = self.cache.store();
        let block_bytes = store.slab().block_bytes();
        let page = |place: &u32| {
            let offset = *place as usize * size;
            match store.lookup((offset / block_bytes) as u64) {
                Lookup::At(_, entry) => (entry.slot, offset % block_bytes),
                _ => panic!("not resident"),
            }
        };
        order.iter().map(page).collect()
    }
}

/// A random order of all places, as the floors have it.
pub fn order(count: u64, seed: u64) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count as u32).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut places);
    places
}

pub fn reader<'a, I: Index>(warm: &Warm<I>, size: usize, order: &'a [u32]) -> Work<'a> {
    let (mut channel, opened) = warm.open();
    copies(size, order, move |place, into| {
        channel
            .read(&opened, place * into.len() as u64, into)
            .expect("reads");
    })
}

/// Work that copies from one page after the other with `copy`.
fn bare<'a>(
    size: usize,
    pages: &'a [(u32, usize)],
    copy: impl Fn(u32, usize, &mut [u8]) + 'a,
) -> Work<'a> {
    let (mut buffer, mut at) = (vec![1; size], 0);
    Box::new(move |count| {
        for _ in 0..count {
            let (slot, within) = pages[at];
            copy(slot, within, &mut buffer);
            std::hint::black_box(&buffer);
            at = (at + 1) % pages.len();
        }
    })
}

/// Work that reads from the store, without requests: lookup, copyout, the version once more, marks.
fn without_requests<'a, I: Index>(warm: &'a Warm<I>, size: usize, order: &'a [u32]) -> Work<'a> {
    let store = warm.cache.store();
    let block_bytes = store.slab().block_bytes() as u64;
    copies(size, order, move |place, into| {
        let offset = place * into.len() as u64;
        let within = (offset % block_bytes) as usize;
        let outcome = store.read(offset / block_bytes, within, into.len(), |slot| {
            store.copyout(slot, within, into);
        });
        assert_eq!(outcome, Outcome::Hit);
    })
}

/// Work that reads one place after the other with `with`.
pub fn copies<'a>(
    size: usize,
    order: &'a [u32],
    mut with: impl FnMut(u64, &mut [u8]) + 'a,
) -> Work<'a> {
    let mut buffer = vec![1; size];
    let mut at = 0;
    Box::new(move |count| {
        for _ in 0..count {
            with(u64::from(order[at]), &mut buffer);
            std::hint::black_box(&buffer);
            at = (at + 1) % order.len();
        }
    })
}

fn file() -> File {
    let mut file = tempfile::tempfile().expect("a file");
    let data = vec![7; 1 << 20];
    for _ in 0..BYTES >> 20 {
        file.write_all(&data).expect("writes");
    }
    file
}

pub fn run() {
    let file = file();
    let mapping = Mapping::of(&file, BYTES).expect("maps");
    for (size, block_bytes) in [(4096_usize, 4096), (4096, 16384), (16384, 16384)] {
        let order = order(BYTES / size as u64, 3);
        let (warm, splay) = (
            Warm::<Hash>::new(block_bytes),
            Warm::<Splay>::new(block_bytes),
        );
        let pages = warm.pages(size, &order);
        let bytes = size as u64;
        let slab = warm.cache.store().slab();
        let measured = measure(
            vec![
                ("cache, hash", reader(&warm, size, &order)),
                ("cache, splay", reader(&splay, size, &order)),
                (
                    "memcpy, the same pages",
                    bare(size, &pages, |slot, within, into| {
                        slab.copy_out_plain(slot, within, into)
                    }),
                ),
                (
                    "copyout, the same pages",
                    bare(size, &pages, |slot, within, into| {
                        slab.expect(slot, within, into.len());
                        slab.copy_out(slot, within, into)
                    }),
                ),
                ("without requests", without_requests(&warm, size, &order)),
                (
                    "pread",
                    copies(size, &order, |place, into| {
                        file.read_exact_at(into, place * bytes).expect("reads");
                    }),
                ),
                (
                    "mmap and copy",
                    copies(size, &order, |place, into| {
                        mapping.copy_out(place * bytes, into).expect("copies")
                    }),
                ),
            ],
            (128 << 20) / bytes,
        );
        println!("\nrandom reads of {size} from blocks of {block_bytes}, all of 1 GiB resident");
        measured.print();
        let (copy, pread) = if size == 4096 {
            ("at most 1.2", "at least 2.0")
        } else {
            ("at most 1.1", "at least 1.5")
        };
        measured.ratio("cache, hash", "memcpy, the same pages", copy);
        measured.ratio("pread", "cache, hash", pread);
        measured.ratio("mmap and copy", "cache, hash", "at least 1.0");
        measured.ratio("cache, splay", "cache, hash", "none");
        measured.ratio("copyout, the same pages", "memcpy, the same pages", "none");
        measured.ratio("cache, hash", "copyout, the same pages", "none");
    }
    for block_bytes in [4096, 16384] {
        replaced(&file, block_bytes);
    }
}

/// Hits where the place of a block cannot be guessed, as others had been in its buffer before.
fn replaced(file: &File, block_bytes: u32) {
    const SIZE: usize = 4096;
    let warm = Warm::<Hash>::replaced(block_bytes);
    let order = warm.resident(SIZE, order(2 * BYTES / SIZE as u64, 5));
    let pages = warm.pages(SIZE, &order);
    let moved = pages.iter().zip(&order);
    let moved = moved.filter(|((slot, _), place)| {
        u64::from(*slot) != u64::from(**place) * SIZE as u64 / u64::from(block_bytes)
    });
    let percent = moved.count() * 100 / order.len();
    let slab = warm.cache.store().slab();
    let measured = measure(
        vec![
            ("cache, hash", reader(&warm, SIZE, &order)),
            (
                "memcpy, the same pages",
                bare(SIZE, &pages, |slot, within, into| {
                    slab.copy_out_plain(slot, within, into)
                }),
            ),
            (
                "pread",
                copies(SIZE, &order, |place, into| {
                    let at = place * SIZE as u64 % BYTES;
                    file.read_exact_at(into, at).expect("reads");
                }),
            ),
        ],
        (128 << 20) / SIZE as u64,
    );
    println!(
        "\nrandom reads of {SIZE} from blocks of {block_bytes} that have replaced others \
         ({percent} % of them), {} MiB resident",
        (order.len() * SIZE) >> 20
    );
    measured.print();
    measured.ratio("cache, hash", "memcpy, the same pages", "none");
    measured.ratio("pread", "cache, hash", "none");
}
