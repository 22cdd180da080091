//! Models of [`Generations`]: every interleaving of changes and readers.

use super::{Generations, Picture};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// A picture of a counter.
struct Shown {
    generation: u64,
    value: u64,
}

impl Picture for Shown {
    fn generation(&self) -> u64 {
        self.generation
    }
}

fn draw(value: &mut u64, generation: u64) -> Shown {
    Shown {
        generation,
        value: *value,
    }
}

type Counter = Generations<u64, Shown>;

#[test]
fn loom_a_picture_shows_the_data_of_its_number() {
    loom::model(|| {
        let counter = Arc::new(Counter::new(0));
        let writer = thread::spawn({
            let counter = Arc::clone(&counter);
            move || {
                counter.change(|value| *value += 1);
                counter.change(|value| *value += 1);
            }
        });
        for _ in 0..2 {
            let shown = counter.newest(draw);
            assert_eq!(shown.value, shown.generation - 1);
        }
        writer.join().expect("the writer");
        assert_eq!(counter.newest(draw).value, 2);
    });
}

#[test]
fn loom_who_has_heard_of_a_change_sees_it() {
    loom::model(|| {
        let counter = Arc::new(Counter::new(0));
        let told = Arc::new(AtomicBool::new(false));
        let first = counter.newest(draw);
        let writer = thread::spawn({
            let (counter, told) = (Arc::clone(&counter), Arc::clone(&told));
            move || {
                counter.change(|value| *value = 7);
                told.store(true, Ordering::Release);
            }
        });
        if told.load(Ordering::Acquire) {
            assert_ne!(
                counter.number(),
                first.generation,
                "the old picture is known to be old"
            );
            assert_eq!(counter.newest(draw).value, 7);
        }
        writer.join().expect("the writer");
    });
}

#[test]
fn loom_two_changes_at_once_both_count() {
    loom::model(|| {
        let counter = Arc::new(Counter::new(0));
        let other = thread::spawn({
            let counter = Arc::clone(&counter);
            move || counter.change(|value| *value += 1)
        });
        counter.change(|value| *value += 1);
        other.join().expect("the other");
        let shown = counter.newest(draw);
        assert_eq!((shown.value, shown.generation), (2, 3));
        assert!(counter.of(3).is_some() && counter.of(1).is_none());
    });
}
