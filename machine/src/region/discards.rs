//! Keeps copies away from pages that are being given back.
//!
//! While madvise(2) takes a page away, one processor may already see the new page of zeroes, and
//! another, whose translation has not been flushed yet, still the old one. A write then ends in one
//! page while a read that begins after it comes from the other. So a request that starts during a
//! discard of its range waits until the discard ends. One that started before may see either page.

use crate::mutex::Mutex;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;

/// The discards of a region, one at a time.
pub(super) struct Discards {
    one_at_a_time: Mutex<()>,
    /// Odd while a discard is in flight.
    sequence: AtomicU64,
    /// The range of the present or last one, in bytes.
    start: AtomicU64,
    end: AtomicU64,
}

impl Discards {
    pub(super) fn new() -> Discards {
        Discards {
            one_at_a_time: Mutex::new(()),
            sequence: AtomicU64::new(0),
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
        }
    }

    /// Gives `range` back by `work`, which neither reads nor writes through [`Self::wait_for`].
    pub(super) fn run<R>(&self, range: Range<u64>, work: impl FnOnce() -> R) -> R {
        // It guards nothing that a panic could leave half done.
        let _alone = self.one_at_a_time.lock();
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        // Visible to every thread that sees anything of what `work` does.
        self.sequence.fetch_add(1, Ordering::SeqCst);
        let result = work();
        self.sequence.fetch_add(1, Ordering::SeqCst);
        result
    }

    /// Returns when no discard that covers a part of the `len` bytes from `offset` on is in flight
    /// that had begun before the call. To be called before the first byte is copied.
    #[inline]
    pub(super) fn wait_for(&self, offset: u64, len: u64) {
        let sequence = self.sequence.load(Ordering::Acquire);
        if sequence % 2 == 1 {
            self.wait(sequence, offset, len);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, sequence: u64, offset: u64, len: u64) {
        let start = self.start.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_over = || self.sequence.load(Ordering::Acquire) != sequence;
        // Of a later discard the bounds may be: then the one that mattered is over.
        if is_over() || offset >= end || offset + len <= start {
            return;
        }
        while !is_over() {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    #[test]
    fn an_access_to_what_is_given_back_waits_and_no_other() {
        let discards = Discards::new();
        discards.wait_for(0, 100);
        let (ready, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (discards, is_over) = (&discards, &is_over);
            scope.spawn(move || {
                discards.run(4096..8192, || {
                    ready.send(()).unwrap();
                    ended.recv().unwrap();
                    is_over.store(true, Ordering::SeqCst);
                });
            });
            begun.recv().unwrap();
            discards.wait_for(0, 4096);
            discards.wait_for(8192, 1);
            assert!(!is_over.load(Ordering::SeqCst));
            let waiting = [(0, 4097), (8191, 1), (5000, 10)].map(|(offset, len)| {
                scope.spawn(move || {
                    discards.wait_for(offset, len);
                    is_over.load(Ordering::SeqCst)
                })
            });
            end.send(()).unwrap();
            for thread in waiting {
                assert!(thread.join().unwrap());
            }
        });
    }
}
