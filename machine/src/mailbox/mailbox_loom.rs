//! The mailbox under every interleaving that matters, as the model checker loom enumerates them:
//! `RUSTFLAGS="--cfg loom" cargo test -p ugeom-machine --release mailbox_loom`.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Value {
    /// Written by the poster and read by the owner: loom reports a missing ordering as a race.
    number: UnsafeCell<usize>,
    /// Shared with the test, which counts the drops through it.
    _alive: std::sync::Arc<()>,
}

// SAFETY: the cell is reached by the owner of the letter only.
unsafe impl Send for Value {}

type Letter = super::letter::Letter<Value>;

fn letter(number: usize, alive: &std::sync::Arc<()>) -> Letter {
    let value = Value {
        number: UnsafeCell::new(0),
        _alive: std::sync::Arc::clone(alive),
    };
    // SAFETY: the cell is not shared yet.
    value.number.with_mut(|cell| unsafe { *cell = number });
    Letter::new(value)
}

/// A mailbox, to which a thread posts the letters 1 and 2, and what counts their drops.
type Posting = (
    Arc<Mailbox<Letter>>,
    thread::JoinHandle<()>,
    std::sync::Arc<()>,
);

fn posting_two() -> Posting {
    let alive = std::sync::Arc::new(());
    let mailbox = Arc::new(Mailbox::new().unwrap());
    let (posts, counted) = (Arc::clone(&mailbox), alive.clone());
    let poster = thread::spawn(move || {
        posts.post(letter(1, &counted));
        posts.post(letter(2, &counted));
    });
    (mailbox, poster, alive)
}

fn values(queue: Fifo<Letter>) -> Vec<usize> {
    // SAFETY: the letters were taken, so that they are this thread's.
    queue
        .map(|letter| letter.0.value.number.with(|cell| unsafe { *cell }))
        .collect()
}

/// Receives `count` letters, parking without timeout: a missed wake-up is a deadlock, which loom
/// reports.
fn receive(mailbox: &Mailbox<Letter>, count: usize) -> Vec<usize> {
    let mut received = Vec::new();
    while received.len() < count {
        received.extend(values(mailbox.take()));
        if received.len() < count {
            mailbox.park(&[], None).unwrap();
        }
    }
    received
}

#[test]
fn an_owner_that_parks_never_misses_a_post() {
    loom::model(|| {
        let (mailbox, poster, alive) = posting_two();
        assert_eq!(receive(&mailbox, 2), [1, 2]);
        poster.join().unwrap();
        drop(mailbox);
        assert_eq!(std::sync::Arc::strong_count(&alive), 1);
    });
}

#[test]
fn two_posters_and_a_parking_owner_lose_nothing() {
    // Three threads have too many interleavings to see them all at every change; those with up
    // to three preemptions show every known kind of fault (all of them pass, in six minutes).
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let alive = std::sync::Arc::new(());
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let posters = [1, 2].map(|value| {
            let (mailbox, alive) = (Arc::clone(&mailbox), alive.clone());
            thread::spawn(move || mailbox.post(letter(value, &alive)))
        });
        let mut received = receive(&mailbox, 2);
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
        for poster in posters {
            poster.join().unwrap();
        }
        drop(mailbox);
        assert_eq!(std::sync::Arc::strong_count(&alive), 1);
    });
}

#[test]
fn a_park_that_times_out_beside_a_post_leaves_the_next_one_sound() {
    loom::model(|| {
        let (mailbox, poster, _) = posting_two();
        mailbox.park(&[], Some(Duration::ZERO)).unwrap();
        assert_eq!(receive(&mailbox, 2), [1, 2]);
        poster.join().unwrap();
    });
}

#[test]
fn a_nudge_ends_a_park_without_a_post() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::<Letter>::new().unwrap());
        let stop = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let nudger = {
            let (mailbox, stop) = (Arc::clone(&mailbox), Arc::clone(&stop));
            thread::spawn(move || {
                stop.store(true, Ordering::Relaxed);
                mailbox.wake();
            })
        };
        while !stop.load(Ordering::Relaxed) {
            mailbox.park(&[], None).unwrap();
        }
        nudger.join().unwrap();
    });
}

#[test]
fn letters_posted_while_the_owner_leaves_are_dropped_once() {
    loom::model(|| {
        let alive = std::sync::Arc::new(());
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let poster = {
            let (mailbox, alive) = (Arc::clone(&mailbox), alive.clone());
            thread::spawn(move || mailbox.post(letter(1, &alive)))
        };
        drop(mailbox.take());
        drop(mailbox);
        poster.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&alive), 1);
    });
}
