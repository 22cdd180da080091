//! Tests of the queue and the mailbox; all but those with descriptors also run under Miri.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

struct Value {
    number: usize,
    /// Counts how often a letter is dropped.
    drops: Arc<AtomicUsize>,
}

impl Drop for Value {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

type Letter = super::letter::Letter<Value>;

fn letter(number: usize, drops: &Arc<AtomicUsize>) -> Letter {
    let drops = Arc::clone(drops);
    Letter::new(Value { number, drops })
}

fn fifo(values: impl IntoIterator<Item = usize>, drops: &Arc<AtomicUsize>) -> Fifo<Letter> {
    let mut queue = Fifo::new();
    queue.extend(values.into_iter().map(|value| letter(value, drops)));
    queue
}

fn values(queue: Fifo<Letter>) -> Vec<usize> {
    queue.map(|letter| letter.0.value.number).collect()
}

#[test]
fn a_queue_hands_back_in_order() {
    let drops = Arc::default();
    let mut queue = fifo(0..3, &drops);
    queue.append(&mut Fifo::new());
    let mut more = fifo(3..5, &drops);
    queue.append(&mut more);
    assert!(more.is_empty());
    queue.push(letter(5, &drops));
    assert_eq!(queue.pop().unwrap().0.value.number, 0);
    let mut empty = Fifo::new();
    empty.append(&mut queue);
    empty.push(letter(6, &drops));
    assert_eq!(values(empty), [1, 2, 3, 4, 5, 6]);
    assert!(queue.pop().is_none());
}

#[test]
fn a_queue_that_ran_empty_is_usable_again() {
    let drops = Arc::default();
    let mut queue = fifo([1], &drops);
    assert_eq!(queue.pop().unwrap().0.value.number, 1);
    assert!(queue.is_empty());
    queue.push(letter(2, &drops));
    queue.push(letter(3, &drops));
    assert_eq!(values(queue), [2, 3]);
}

#[test]
fn a_dropped_queue_drops_what_it_holds() {
    let drops = Arc::default();
    let mut queue = fifo(0..4, &drops);
    drop(queue.pop());
    drop(queue);
    assert_eq!(drops.load(Ordering::Relaxed), 4);
}

#[test]
fn posts_come_out_in_the_order_in_which_they_were_made() {
    let drops = Arc::default();
    let mailbox = Mailbox::new().unwrap();
    assert!(mailbox.take().is_empty());
    mailbox.post(letter(1, &drops));
    mailbox.post(letter(2, &drops));
    assert_eq!(values(mailbox.take()), [1, 2]);
    for value in 3..7 {
        mailbox.post(letter(value, &drops));
    }
    assert_eq!(values(mailbox.take()), [3, 4, 5, 6]);
    assert!(mailbox.take().is_empty());
}

#[test]
fn what_is_never_taken_is_dropped_with_the_mailbox() {
    let drops = Arc::default();
    let mailbox = Mailbox::new().unwrap();
    for value in 0..5 {
        mailbox.post(letter(value, &drops));
    }
    drop(mailbox);
    assert_eq!(drops.load(Ordering::Relaxed), 5);
}

#[test]
fn parking_returns_at_once_when_something_was_posted_or_nudged_before() {
    let drops = Arc::default();
    let mailbox = Mailbox::new().unwrap();
    mailbox.post(letter(1, &drops));
    mailbox.park(&[], None).unwrap();
    drop(mailbox.take());
    mailbox.wake();
    mailbox.park(&[], None).unwrap();
    assert!(mailbox.is_empty());
}

#[test]
fn parking_ends_at_its_timeout() {
    for mailbox in [Mailbox::<Letter>::new(), Mailbox::with_spin(100_000)] {
        let mailbox = mailbox.unwrap();
        let start = Instant::now();
        mailbox.park(&[], Some(Duration::from_millis(20))).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}

#[test]
#[cfg(not(miri))]
fn parking_ends_when_a_descriptor_becomes_readable() {
    use std::os::fd::AsFd;
    for unreadable in [0, 3, 20] {
        let mailbox = Mailbox::<Letter>::new().unwrap();
        let (silent, _keep) = rustix::pipe::pipe().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut fds = vec![silent.as_fd(); unreadable];
        fds.push(reader.as_fd());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                rustix::io::write(&writer, b"x").unwrap();
            });
            mailbox.park(&fds, None).unwrap();
        });
        assert!(mailbox.is_empty());
    }
}

#[test]
fn a_sleeping_owner_receives_everything_from_many_threads() {
    const EACH: usize = if cfg!(miri) { 40 } else { 2_000 };
    for spin_ns in [0, 20_000] {
        let drops = Arc::default();
        let mailbox = Arc::new(Mailbox::with_spin(spin_ns).unwrap());
        let posters: Vec<_> = (0..3)
            .map(|thread| {
                let (mailbox, drops) = (Arc::clone(&mailbox), Arc::clone(&drops));
                std::thread::spawn(move || {
                    for i in 0..EACH {
                        mailbox.post(letter(thread * EACH + i, &drops));
                        if i % 64 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut last = [None; 3];
        let mut received = 0;
        while received < 3 * EACH {
            for letter in mailbox.take() {
                let (thread, i) = (letter.0.value.number / EACH, letter.0.value.number % EACH);
                assert!(
                    last[thread].is_none_or(|last| last < i),
                    "order within a poster"
                );
                last[thread] = Some(i);
                received += 1;
            }
            // Nothing but posts can end this park: a missed one would hang the test.
            if received < 3 * EACH {
                mailbox.park(&[], None).unwrap();
            }
        }
        posters
            .into_iter()
            .for_each(|poster| poster.join().unwrap());
        assert_eq!(drops.load(Ordering::Relaxed), 3 * EACH);
    }
}

#[test]
fn a_spin_sees_a_post_and_gives_up_after_its_time() {
    let drops = Arc::default();
    let mailbox = Mailbox::new().unwrap();
    assert!(!mailbox.spin(1_000));
    mailbox.post(letter(1, &drops));
    assert!(mailbox.spin(u64::MAX));
}
