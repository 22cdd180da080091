//! The caches of two libraries for values of any kind. A third one, `foyer`, brings a hundred
//! crates: it is compared in a crate of its own, `classes/benches/foyer`.

use super::libraries::{Kind, Library, Value, compare};

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
        let value = self.get(&key);
        value.is_some_and(|value| {
            into.copy_from_slice(&value);
            true
        })
    }
}

impl Library for Moka {
    fn insert(&self, key: u64, value: Value) {
        Moka::insert(self, key, value);
    }

    fn copy(&self, key: u64, into: &mut [u8]) -> bool {
        let value = self.get(&key);
        value.is_some_and(|value| {
            into.copy_from_slice(&value);
            true
        })
    }
}

pub fn run() {
    compare(&KINDS);
}
