//! The entries of a table: a header may count millions, of which a few hold anything.

use super::Entry;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

static UNUSED: Entry = Entry::EMPTY;

/// As many entries as the header counts. Only those that hold something take memory.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    count: usize,
    kept: BTreeMap<usize, Entry>,
}

impl Entries {
    /// An array of `count` entries, all unused.
    pub fn unused(count: usize) -> Entries {
        Entries {
            count,
            kept: BTreeMap::new(),
        }
    }

    /// Number of entries, used or not.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True for a table without entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The entry at `index`, from 0.
    pub fn get(&self, index: usize) -> Option<&Entry> {
        (index < self.count).then(|| self.kept.get(&index).unwrap_or(&UNUSED))
    }

    /// The entry at `index`, from 0, to be changed.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        (index < self.count).then(|| self.kept.entry(index).or_default())
    }

    /// All entries in their order, the unused ones, too.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        (0..self.count).map(|index| self.kept.get(&index).unwrap_or(&UNUSED))
    }

    /// The entries that hold anything, with their index from 0.
    pub fn kept(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let kept = self.kept.iter().map(|(&index, entry)| (index, entry));
        kept.filter(|(_, entry)| **entry != UNUSED)
    }

    /// Leaves out the entries from `count` on.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
        self.kept.split_off(&self.count);
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Entries {
        let mut all = Entries::default();
        for entry in entries {
            if entry != UNUSED {
                all.kept.insert(all.count, entry);
            }
            all.count += 1;
        }
        all
    }
}

impl From<Vec<Entry>> for Entries {
    fn from(entries: Vec<Entry>) -> Entries {
        entries.into_iter().collect()
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Entries) -> bool {
        self.count == other.count && self.kept().eq(other.kept())
    }
}

impl Eq for Entries {}

impl Index<usize> for Entries {
    type Output = Entry;

    fn index(&self, index: usize) -> &Entry {
        assert!(index < self.count, "entry {index} of {}", self.count);
        self.kept.get(&index).unwrap_or(&UNUSED)
    }
}

impl IndexMut<usize> for Entries {
    fn index_mut(&mut self, index: usize) -> &mut Entry {
        assert!(index < self.count, "entry {index} of {}", self.count);
        self.kept.entry(index).or_default()
    }
}
