//! The caches of two libraries for values of any kind. A third one, `foyer`, brings a hundred
//! crates: it is compared in a crate of its own, `classes/benches/foyer`.

use super::libraries::{Kind, Library, Value, compare, copied};

/// The libraries that are compared here.
pub const KINDS: [Kind; 2] = [
    ("quick_cache", |room| Box::new(Quick::new(room))),
    ("moka", |room| Box::new(Moka::new(room as u64))),
];

type Quick = quick_cache::sync::Cache<u64, Value>;
type Moka = moka::sync::Cache<u64, Value>;

impl Library for Quick {
    fn insert(&self, key: u64, value: Value) {
        Quick::insert(self, key, value);
    }

    fn copy(&self, key: u64, into: &mut [u8]) -> bool {
        copied(self.get(&key), into)
    }
}

impl Library for Moka {
    fn insert(&self, key: u64, value: Value) {
        Moka::insert(self, key, value);
    }

    fn copy(&self, key: u64, into: &mut [u8]) -> bool {
        copied(self.get(&key), into)
    }
}

pub fn run() {
    compare(&KINDS);
}
