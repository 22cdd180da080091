//! The range lock under every interleaving that matters, as the model checker loom enumerates
//! them: `RUSTFLAGS="--cfg loom" cargo test -p ugeom-stack --release range_lock_loom`.

use super::{RangeLock, Share};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::ops::Range;
use std::sync::Arc;

/// Adds one as a reader of stale values would: without the lock, or without its ordering, loom
/// finds an interleaving in which a sum is lost. A waiter that is not woken is a deadlock, which
/// loom reports as well.
fn add_one(cell: &AtomicUsize) {
    let value = cell.load(Ordering::Relaxed);
    cell.store(value + 1, Ordering::Relaxed);
}

fn adders(ranges: [Range<u64>; 2], here: Range<u64>) {
    loom::model(move || {
        let lock = Arc::new(RangeLock::new());
        let sum = Arc::new(AtomicUsize::new(0));
        let threads = ranges.clone().map(|range| {
            let (lock, sum) = (Arc::clone(&lock), Arc::clone(&sum));
            thread::spawn(move || {
                let claim = lock.claim(range, Share::Exclusive);
                claim.wait();
                add_one(&sum);
            })
        });
        let claim = lock.claim(here.clone(), Share::Exclusive);
        claim.wait();
        add_one(&sum);
        drop(claim);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(sum.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn exclusive_claims_on_one_byte_come_one_after_the_other() {
    adders([0..512, 511..1024], 100..600);
}

#[test]
fn a_writer_waits_for_all_readers_and_readers_for_the_writer() {
    loom::model(|| {
        let lock = Arc::new(RangeLock::new());
        let value = Arc::new(AtomicUsize::new(0));
        let reader = {
            let (lock, value) = (Arc::clone(&lock), Arc::clone(&value));
            thread::spawn(move || {
                let claim = lock.claim(0..8, Share::Shared);
                claim.wait();
                let first = value.load(Ordering::Relaxed);
                assert_eq!(value.load(Ordering::Relaxed), first);
                assert!(first == 0 || first == 2, "a half-done change was seen");
            })
        };
        let claim = lock.claim(4..12, Share::Exclusive);
        claim.wait();
        add_one(&value);
        add_one(&value);
        drop(claim);
        reader.join().unwrap();
    });
}

#[test]
fn a_claim_that_is_given_up_while_it_waits_does_not_block_those_behind() {
    loom::model(|| {
        let lock = Arc::new(RangeLock::new());
        let first = lock.claim(0..8, Share::Exclusive);
        let given_up = lock.claim(0..8, Share::Exclusive);
        let waiter = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || lock.claim(0..8, Share::Exclusive).wait())
        };
        assert!(first.is_granted() && !given_up.is_granted());
        drop(given_up);
        drop(first);
        waiter.join().unwrap();
    });
}
