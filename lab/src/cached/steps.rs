//! The cache's own steps without a request around them: the cost of a read when steps are left out.
//! And lookups alone, against the least that a lookup can cost.

use super::names::{self, HitStep};
use super::orders::Order;
use std::hash::{Hash as _, Hasher as _};
use std::hint::black_box;
use std::sync::Arc;
use ugeom_classes::cache::Buffer as Slot;
use ugeom_classes::cache::index::{Index, Lookup};
use ugeom_classes::cache::store::{Outcome, Store};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, RunResult};
use ugeom_load::cases::LINE_BYTES;
use ugeom_load::places::Drawn;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;

/// Whether the blocks of a store have bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Something, so that there is memory to copy from.
    Written,
    /// Nothing: only the index is looked at.
    Untouched,
}

/// A store that holds the first so many blocks.
///
/// # Errors
/// [`HarnessError::Os`] when there is no memory for it.
pub fn filled<I: Index>(
    buffers: u32,
    block_bytes: u64,
    content: Content,
) -> Result<Arc<Store<I>>, HarnessError> {
    let store = empty::<I>(buffers, block_bytes)?;
    let mut bytes = vec![0; block_bytes as usize];
    for block in 0..u64::from(buffers) {
        if let Slot::New(slot) = store.getnewbuf(block) {
            if content == Content::Written {
                bytes[..8].copy_from_slice(&block.to_le_bytes());
                // No other request has the block, so that it is not held and takes the bytes.
                let taken = store.slab().copy_in(slot, 0, &bytes);
                debug_assert!(taken, "block {block} is not held");
            }
            store.publish(block, slot);
        }
    }
    Ok(Arc::new(store))
}

fn empty<I: Index>(buffers: u32, block_bytes: u64) -> Result<Store<I>, HarnessError> {
    Store::new(buffers, block_bytes as usize)
        .map_err(HarnessError::os("a cache", "mapping memory for its blocks"))
}

/// A case that does `work` over and over.
fn repeated(name: &str, mut work: impl FnMut() + 'static) -> Case<'static> {
    Case::new(name, move |iterations| {
        let start_ns = clock::now_ns();
        for _ in 0..iterations {
            work();
        }
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    })
}

/// The loop over an order, with nothing in it.
pub fn empty_loop(mut places: Drawn) -> Case<'static> {
    repeated(names::LOOP, move || {
        black_box(places.next_offset());
    })
}

/// A hit of the store without the path of a request.
/// Iterations whose block is not there would be no hits, so they are an error.
pub fn hit<I: Index>(
    name: &str,
    store: &Arc<Store<I>>,
    mut places: Drawn,
    read_bytes: u64,
    step: HitStep,
) -> Case<'static> {
    let (store, case) = (Arc::clone(store), name.to_owned());
    let copies = step == HitStep::LookupAndCopy;
    let mut buffer = Buffer::new(read_bytes as usize);
    let shift = store.slab().block_bytes().trailing_zeros();
    let mask = store.slab().block_bytes() as u64 - 1;
    Case::new(name, move |iterations| {
        let mut lost = 0_u64;
        let start_ns = clock::now_ns();
        for _ in 0..iterations {
            let offset = places.next_offset();
            let (mut done, length) = (0, buffer.len());
            while done < length {
                let at = offset + done as u64;
                let (block, within) = (at >> shift, (at & mask) as usize);
                let piece = (length - done).min(mask as usize + 1 - within);
                // Without a copy no data is requested.
                let wanted = if copies { piece } else { 0 };
                let outcome = store.read(block, within, wanted, |slot| {
                    if copies {
                        store.copyout(slot, within, &mut buffer[done..done + piece]);
                    } else {
                        black_box(slot);
                    }
                });
                lost += u64::from(outcome != Outcome::Hit);
                done += piece;
            }
            black_box(&mut *buffer);
        }
        let ns_total = clock::now_ns() - start_ns;
        match lost {
            0 => Ok(RunResult::taking(ns_total)),
            lost => Err(not_there(&case, lost)),
        }
    })
}

/// The bare copy from blocks of the store, by their numbers: the physical limit of a hit.
pub fn copy<I: Index>(
    name: &str,
    store: &Arc<Store<I>>,
    mut places: Drawn,
    read_bytes: u64,
) -> Case<'static> {
    let store = Arc::clone(store);
    let mut buffer = Buffer::new(read_bytes as usize);
    let block_bytes = store.slab().block_bytes() as u64;
    let (shift, mask) = (block_bytes.trailing_zeros(), block_bytes - 1);
    repeated(name, move || {
        let offset = places.next_offset();
        let (block, within) = ((offset >> shift) as u32, (offset & mask) as usize);
        store.slab().copy_out_plain(block, within, &mut buffer);
        black_box(&mut *buffer);
    })
}

/// A miss without the read below, over a store that is full: each block takes the place of another.
///
/// # Errors
/// [`HarnessError::Os`] when there is no memory for the store.
pub fn miss<I: Index>(
    name: &str,
    buffers: u32,
    block_bytes: u64,
    media_blocks: u64,
) -> Result<Case<'static>, HarnessError> {
    let store = empty::<I>(buffers, block_bytes)?;
    let mut places = Order::Shuffled.places(media_blocks, 1, 11);
    let case = name.to_owned();
    Ok(Case::new(name, move |iterations| {
        let mut lost = 0_u64;
        let start_ns = clock::now_ns();
        for _ in 0..iterations {
            let block = places.next_offset();
            match store.getnewbuf(block) {
                Slot::New(slot) => store.publish(block, slot),
                Slot::Present | Slot::Full => lost += 1,
            }
        }
        let ns_total = clock::now_ns() - start_ns;
        // A pass is longer than the cache, so that hardly any block is still there; what is would
        // make the figure a little too small.
        match lost * 100 > iterations {
            false => Ok(RunResult::taking(ns_total)),
            true => Err(not_there(&case, lost)),
        }
    }))
}

fn not_there(case: &str, lost: u64) -> HarnessError {
    HarnessError::Thread {
        case: case.to_owned(),
        problem: format!("{lost} blocks were not in the state that the case needs"),
    }
}

/// Lookups at random among the first `blocks`, each beginning when the one before has its answer.
pub fn lookup<I: Index>(name: &str, store: &Arc<Store<I>>, blocks: u64) -> Case<'static> {
    let store = Arc::clone(store);
    let mut places = Order::Shuffled.places(blocks, 1, 13);
    let mut previous = 0;
    // The compiler does not know that this is 0, so it cannot cut the dependence.
    let nothing: u64 = black_box(0);
    repeated(name, move || {
        let block = places.next_offset() + (previous & nothing);
        if let Lookup::At(_, entry) = store.lookup(black_box(block)) {
            previous = u64::from(entry.slot);
        }
    })
}

/// A load at random from an array of so many bytes, each from the line that the one before names:
/// what any lookup in a table of that size costs at least.
pub fn dependent_load(array_bytes: usize) -> Case<'static> {
    let array = circle((array_bytes / LINE_BYTES).max(2));
    let mut at = 0;
    repeated(names::LOAD, move || at = black_box(array[at]))
}

/// An array of so many lines, in whose first numbers one circle through all of them stands, at
/// random.
fn circle(lines: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lines).collect();
    fastrand::Rng::with_seed(17).shuffle(&mut order);
    let step = LINE_BYTES / size_of::<usize>();
    let mut array = vec![0; lines * step];
    for (index, line) in order.iter().enumerate() {
        array[line * step] = order[(index + 1) % lines] * step;
    }
    array
}

/// Hashing a string of 16 bytes with the hash of the standard library's maps.
pub fn hash_of_16_bytes() -> Case<'static> {
    let mut key = *b"sixteen bytes...";
    repeated(names::HASH_16, move || {
        let mut hasher = std::hash::DefaultHasher::new();
        black_box(&key).hash(&mut hasher);
        // The next key depends on this hash, as a lookup would.
        key[..8].copy_from_slice(&hasher.finish().to_le_bytes());
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_classes::cache::index::{hash::Hash, splay::Splay};

    const BLOCK: u64 = 4096;

    fn runs(mut case: Case<'_>, iterations: u64) {
        let result = (case.run)(iterations).unwrap();
        assert!(result.ns_total > 0, "{}", case.name);
    }

    #[test]
    fn every_step_runs_on_both_indexes() {
        fn all<I: Index>() {
            let store = filled::<I>(256, BLOCK, Content::Written).unwrap();
            let places = || Order::Shuffled.places(256 * BLOCK, BLOCK, 5);
            runs(
                hit("hit", &store, places(), BLOCK, HitStep::LookupAndCopy),
                1000,
            );
            runs(hit("find", &store, places(), BLOCK, HitStep::Lookup), 1000);
            let long = Order::Shuffled.places(256 * BLOCK, 4 * BLOCK, 5);
            runs(
                hit(
                    "four blocks",
                    &store,
                    long,
                    4 * BLOCK,
                    HitStep::LookupAndCopy,
                ),
                100,
            );
            runs(copy("copy", &store, places(), BLOCK), 1000);
            runs(lookup("lookup", &store, 64), 1000);
            runs(miss::<I>("miss", 128, BLOCK, 4096).unwrap(), 5000);
        }
        all::<Hash>();
        all::<Splay>();
        runs(dependent_load(1 << 16), 1000);
        runs(hash_of_16_bytes(), 1000);
        runs(empty_loop(Order::Random.places(1 << 20, 512, 3)), 1000);
    }

    #[test]
    fn a_hit_copies_the_block_that_was_asked_for() {
        let store = filled::<Hash>(64, BLOCK, Content::Written).unwrap();
        let mut first = [0; 8];
        for block in [0, 7, 63] {
            let found = store.read(block, 0, first.len(), |slot| {
                store.copyout(slot, 0, &mut first);
            });
            assert_eq!((found, u64::from_le_bytes(first)), (Outcome::Hit, block));
        }
    }

    #[test]
    fn blocks_that_are_not_there_are_no_hits() {
        let store = filled::<Hash>(64, BLOCK, Content::Written).unwrap();
        let past = Order::Sequential.places(128 * BLOCK, BLOCK, 5);
        let mut case = hit("past", &store, past, BLOCK, HitStep::LookupAndCopy);
        let error = (case.run)(128).unwrap_err().to_string();
        assert_eq!(
            error,
            "case past: 64 blocks were not in the state that the case needs"
        );
    }

    #[test]
    fn the_circle_of_loads_has_every_line() {
        let array = circle(100);
        let (mut at, mut seen) = (0, std::collections::BTreeSet::new());
        while seen.insert(at) {
            at = array[at];
        }
        assert_eq!((at, seen.len()), (0, 100));
        assert!(
            seen.iter()
                .all(|at| (at * size_of::<usize>()).is_multiple_of(LINE_BYTES))
        );
    }
}
