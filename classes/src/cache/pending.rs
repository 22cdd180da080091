//! The pending read of a request: the record that its scratch word names.

use ugeom_machine::mutex::Mutex;

/// The remaining work of a request after its read below.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// How much of the request was done before, bytes.
    pub done_bytes: u64,
    /// The first of the blocks that are read into buffers.
    pub first: u64,
    /// Their buffers; none when the request is read past the cache.
    pub slots: Vec<u32>,
    /// How much of the last of these the media has, bytes.
    pub last_bytes: u64,
    /// How much of the request is read past the cache, bytes.
    pub past_bytes: u64,
}

#[derive(Default)]
struct Records {
    all: Vec<Pending>,
    free: Vec<usize>,
}

/// The records; each is used again and keeps its memory.
#[derive(Default)]
pub struct PendingReads {
    records: Mutex<Records>,
}

impl PendingReads {
    /// An unused record, and its number. [`PendingReads::put`] brings it back.
    pub fn take(&self) -> (usize, Pending) {
        let mut records = self.records.lock();
        let number = records.free.pop().unwrap_or_else(|| {
            records.all.push(Pending::default());
            records.all.len() - 1
        });
        (number, std::mem::take(&mut records.all[number]))
    }

    /// Keeps a record until its read is back.
    pub fn put(&self, number: usize, pending: Pending) {
        self.records.lock().all[number] = pending;
    }

    /// The record of a read that is back. The number stays taken.
    pub fn get(&self, number: usize) -> Pending {
        std::mem::take(&mut self.records.lock().all[number])
    }

    /// Gives a record back, to be used again.
    pub fn release(&self, number: usize, mut pending: Pending) {
        pending.slots.clear();
        let mut records = self.records.lock();
        records.all[number] = pending;
        records.free.push(number);
    }
}
