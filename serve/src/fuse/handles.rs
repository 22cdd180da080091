//! Providers that clients hold open, found by number without two threads meeting: each worker has
//! a table of its own, and only opening and closing touch them all.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{Opened, RangeLock};

/// A provider that a client holds open.
pub(super) struct Handle {
    pub opened: Opened,
    pub name: String,
    /// Without the padding of the last sector.
    pub size_bytes: u64,
    pub sector_bytes: u64,
    pub writable: bool,
    /// Opened with O_DSYNC: a change of the file is durable before its answer.
    pub durable: bool,
    pub ranges: Arc<RangeLock>,
    /// Something was written since the last FLUSH.
    pub dirty: AtomicBool,
}

/// Open handles by the number that the kernel has of each.
#[derive(Default)]
pub(super) struct Table {
    handles: Vec<Option<Arc<Handle>>>,
}

impl Table {
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Arc<Handle>> {
        let index = usize::try_from(number).ok()?;
        self.handles.get(index)?.as_ref()
    }

    /// A handle of the provider of that name.
    pub fn of_provider(&self, name: &str) -> Option<&Arc<Handle>> {
        self.handles.iter().flatten().find(|it| it.name == name)
    }
}

/// The table of one worker.
pub(super) type Mine = Arc<Mutex<Table>>;

/// The tables of all workers. Belongs to the one thread that opens and closes.
pub(super) struct Tables {
    all: Vec<Mine>,
    /// Numbers that are free again.
    free: Vec<u64>,
    next: u64,
}

impl Tables {
    /// A handle of the provider of that name.
    pub fn of_provider(&self, name: &str) -> Option<Arc<Handle>> {
        self.all.first()?.lock().of_provider(name).cloned()
    }

    pub fn new(all: Vec<Mine>) -> Self {
        Self {
            all,
            free: Vec::new(),
            next: 0,
        }
    }

    /// Adds a handle to every table.
    pub fn add(&mut self, handle: &Arc<Handle>) -> u64 {
        let number = self.free.pop().unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        for table in &self.all {
            let mut table = table.lock();
            let index = number as usize;
            if table.handles.len() <= index {
                table.handles.resize_with(index + 1, || None);
            }
            table.handles[index] = Some(Arc::clone(handle));
        }
        number
    }

    /// Takes a handle out of every table.
    pub fn remove(&mut self, number: u64) -> Option<Arc<Handle>> {
        let index = usize::try_from(number).ok()?;
        let mut gone = None;
        for table in &self.all {
            let mut table = table.lock();
            gone = table.handles.get_mut(index)?.take().or(gone);
        }
        if gone.is_some() {
            self.free.push(number);
        }
        gone
    }

    /// Takes out all that are left.
    pub fn remove_all(&mut self) -> Vec<Arc<Handle>> {
        (0..self.next)
            .filter_map(|number| self.remove(number))
            .collect()
    }
}
