//! The cache beside caches for values of any kind: the time of a hit on a value of 4 KiB a key, and
//! hit ratios.

use super::hits::{BYTES, Warm, copies, order, reader};
use super::policies::Policy;
use super::ratios::{Ours, ROOM, percent, traces};
use super::rounds::measure;
use std::sync::Arc;
use ugeom_classes::cache::index::hash::Hash;

const SIZE: usize = 4096;

/// The cached value. The same values are in all caches, so that their memory is no difference.
pub type Value = Arc<[u8]>;

/// A cache of another library.
pub trait Library {
    /// Puts a value in.
    fn insert(&self, key: u64, value: Value);

    /// Copies the value of a key; false when it is not there.
    fn copy(&self, key: u64, into: &mut [u8]) -> bool;
}

/// Copies a value that was got; false when there is none.
pub fn copied(value: Option<impl AsRef<[u8]>>, into: &mut [u8]) -> bool {
    value.is_some_and(|value| {
        into.copy_from_slice(value.as_ref());
        true
    })
}

/// The name of a cache, and how one is made that has room for so many values.
pub type Kind = (&'static str, fn(usize) -> Box<dyn Library>);

/// A library's cache as a policy: with values of no bytes.
struct Keys(Box<dyn Library>);

impl Policy for Keys {
    fn access(&mut self, key: u64) -> bool {
        let hit = self.0.copy(key, &mut []);
        if !hit {
            self.0.insert(key, Value::from([]));
        }
        hit
    }
}

/// Prints the time of a hit, and the hit rate.
pub fn compare(kinds: &[Kind]) {
    compare_hits(kinds);
    compare_ratios(kinds);
}

fn compare_hits(kinds: &[Kind]) {
    let count = BYTES / SIZE as u64;
    let order = order(count, 3);
    // Room for twice as much, so that nothing leaves.
    let made: Vec<_> = kinds
        .iter()
        .map(|(name, make)| (*name, make(2 * count as usize)))
        .collect();
    for key in 0..count {
        let value: Value = vec![3; SIZE].into();
        for (_, library) in &made {
            library.insert(key, Arc::clone(&value));
        }
    }
    let warm = Warm::<Hash>::new(SIZE as u32);
    let mut cases = vec![("cache", reader(&warm, SIZE, &order))];
    for (name, library) in &made {
        let work = copies(SIZE, &order, |key, into| {
            assert!(library.copy(key, into), "{key} is resident");
        });
        cases.push((name, work));
    }
    let measured = measure(cases, 1 << 15);
    measured.print();
    for (name, _) in kinds {
        measured.ratio(name, "cache", "none");
    }
}

fn compare_ratios(kinds: &[Kind]) {
    print!("\n{:<28} {:>8}", "hits in percent", "ours");
    for (name, _) in kinds {
        print!(" {name:>16}");
    }
    println!();
    for (name, trace) in traces() {
        print!("{name:<28} {:>8.2}", percent(&mut Ours::new(ROOM), &trace));
        for (_, make) in kinds {
            print!(" {:>16.2}", percent(&mut Keys(make(ROOM)), &trace));
        }
        println!();
    }
}
