//! The range lock against a slow model of itself, and in the hands of many threads.

use super::{Claim, RangeLock, Share};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

fn share() -> impl Strategy<Value = Share> {
    prop_oneof![Just(Share::Shared), Just(Share::Exclusive)]
}

#[derive(Clone, Debug)]
enum Step {
    Claim(Range<u64>, Share),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..16_u64, 0..6_u64, share())
            .prop_map(|(at, len, share)| Step::Claim(at..at + len, share)),
        any::<usize>().prop_map(Step::Drop),
    ]
}

/// Byte by byte: do two ranges have one in common?
fn touch(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.clone().any(|byte| b.contains(&byte))
}

proptest! {
    #[test]
    fn a_claim_is_granted_when_no_older_one_is_in_its_way(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let lock = Arc::new(RangeLock::new());
        let mut living: Vec<(Claim, Range<u64>, Share)> = Vec::new();
        for step in steps {
            match step {
                Step::Claim(range, share) => {
                    living.push((lock.claim(range.clone(), share), range, share));
                }
                Step::Drop(which) if !living.is_empty() => {
                    let which = which % living.len();
                    living.remove(which);
                }
                Step::Drop(_) => {}
            }
            for (at, (claim, range, share)) in living.iter().enumerate() {
                let free = living[..at].iter().all(|(_, older, theirs)| {
                    !touch(older, range)
                        || (*share == Share::Shared && *theirs == Share::Shared)
                });
                prop_assert_eq!(claim.is_granted(), free);
            }
            if let Some((oldest, ..)) = living.first() {
                prop_assert!(oldest.is_granted(), "one claim must always be granted");
            }
        }
    }
}

#[test]
fn many_threads_never_share_a_byte_with_a_writer() {
    const BYTES: usize = 32;
    let lock = Arc::new(RangeLock::new());
    // The users of each byte: -1 a writer, n readers.
    let users: Arc<Vec<AtomicI32>> = Arc::new((0..BYTES).map(|_| AtomicI32::new(0)).collect());
    let work = |seed: u64| {
        let (lock, users) = (Arc::clone(&lock), Arc::clone(&users));
        move || {
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..2_000 {
                let start = random.usize(0..BYTES - 8);
                let bytes = start..start + random.usize(1..=8);
                let exclusive = random.bool();
                let share = if exclusive {
                    Share::Exclusive
                } else {
                    Share::Shared
                };
                let claim = lock.claim(bytes.start as u64..bytes.end as u64, share);
                claim.wait();
                for byte in &users[bytes.clone()] {
                    let before = byte.fetch_add(if exclusive { -1 } else { 1 }, Ordering::SeqCst);
                    assert!(
                        if exclusive { before == 0 } else { before >= 0 },
                        "{before}"
                    );
                }
                for byte in &users[bytes] {
                    byte.fetch_sub(if exclusive { -1 } else { 1 }, Ordering::SeqCst);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(work(seed));
        }
    });
}

#[test]
fn a_range_that_ends_before_it_begins_is_in_nobodys_way() {
    let lock = Arc::new(RangeLock::new());
    let all = lock.claim(0..u64::MAX, Share::Exclusive);
    let empty = lock.claim(7..7, Share::Exclusive);
    let (from, to) = (9, 3);
    let backward = lock.claim(from..to, Share::Exclusive);
    assert!(all.is_granted() && empty.is_granted() && backward.is_granted());
}
