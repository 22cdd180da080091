//! Both ways of waiting are held to the same behaviour.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use ugeom_machine::buffer::Buffer;

use super::*;
use crate::{Choice, Op, OpKind, open_engine};

/// Runs a test on each reactor that there is.
fn on_both(run: impl Fn(&mut Reactor)) {
    for waiting in [Waiting::IoUring, Waiting::Epoll] {
        if let Some(mut reactor) = ugeom_testkit::or_skip(Reactor::open(waiting)) {
            run(&mut reactor);
        }
    }
}

fn pair() -> (Arc<OwnedFd>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Arc::new(OwnedFd::from(ours)), theirs)
}

/// The events without waiting.
fn now(reactor: &mut Reactor) -> Vec<Event> {
    // Two rounds: a poll that has reported is made again by the next wait.
    let mut events = Vec::new();
    reactor
        .wait(&[], Some(Duration::ZERO), &mut events)
        .unwrap();
    events
}

/// The events within a short time.
fn soon(reactor: &mut Reactor) -> Vec<Event> {
    let mut events = Vec::new();
    let timeout = Some(Duration::from_secs(20));
    while events.is_empty() {
        reactor.wait(&[], timeout, &mut events).unwrap();
    }
    events
}

fn readable(source: Source) -> Event {
    Event::Ready {
        source,
        readable: true,
        writable: false,
    }
}

#[test]
fn a_source_is_reported_for_as_long_as_it_is_ready() {
    on_both(|reactor| {
        let (ours, mut theirs) = pair();
        let source = reactor.register(Arc::clone(&ours), Interest::READ).unwrap();
        assert_eq!(now(reactor), []);
        theirs.write_all(b"ab").unwrap();
        assert_eq!(soon(reactor), [readable(source)]);
        assert_eq!(soon(reactor), [readable(source)]);
        rustix::io::read(&ours, &mut [0; 8]).unwrap();
        // A poll that was made before the data was read may report once more; then it is over.
        now(reactor);
        assert_eq!(now(reactor), []);
    });
}

#[test]
fn interest_can_change_and_rest() {
    on_both(|reactor| {
        let (ours, mut theirs) = pair();
        let source = reactor.register(ours, Interest::BOTH).unwrap();
        let writable = Event::Ready {
            source,
            readable: false,
            writable: true,
        };
        assert_eq!(soon(reactor), [writable]);
        reactor.change(source, Interest::READ).unwrap();
        assert_eq!(now(reactor), []);
        reactor.change(source, Interest::NONE).unwrap();
        theirs.write_all(b"a").unwrap();
        drop(theirs);
        assert_eq!(now(reactor), [], "it was asked not to say so");
        reactor.change(source, Interest::BOTH).unwrap();
        let both = Event::Ready {
            source,
            readable: true,
            writable: true,
        };
        assert_eq!(soon(reactor), [both]);
    });
}

#[test]
fn a_hung_up_source_is_ready_to_be_read() {
    on_both(|reactor| {
        let (ours, theirs) = pair();
        let source = reactor.register(ours, Interest::READ).unwrap();
        now(reactor);
        drop(theirs);
        assert_eq!(soon(reactor), [readable(source)]);
    });
}

#[test]
fn what_was_taken_away_is_never_reported() {
    on_both(|reactor| {
        let (first, mut first_peer) = pair();
        let gone = reactor.register(first, Interest::READ).unwrap();
        now(reactor);
        first_peer.write_all(b"a").unwrap();
        reactor.deregister(gone);
        let (second, mut second_peer) = pair();
        let source = reactor.register(second, Interest::READ).unwrap();
        assert_ne!(gone, source, "the slot is used again, the name is not");
        assert_eq!(now(reactor), []);
        second_peer.write_all(b"a").unwrap();
        assert_eq!(soon(reactor), [readable(source)]);
        reactor.deregister(gone);
        reactor.change(gone, Interest::NONE).unwrap();
        assert_eq!(soon(reactor), [readable(source)]);
        // The other side learns that the reactor has let go.
        first_peer.set_nonblocking(false).unwrap();
        now(reactor);
        assert!(matches!(first_peer.read(&mut [0; 1]), Ok(0) | Err(_)));
    });
}

#[test]
fn a_reactor_is_dropped_with_everything_in_it() {
    on_both(|_| {});
    for waiting in [Waiting::IoUring, Waiting::Epoll] {
        let Ok(mut reactor) = Reactor::open(waiting) else { continue };
        let (ours, mut theirs) = pair();
        reactor.register(ours, Interest::BOTH).unwrap();
        reactor.timer_at(0);
        drop(reactor);
        let mut byte = [0];
        assert_eq!(theirs.read(&mut byte).unwrap(), 0, "the socket is closed");
    }
}

#[test]
fn timers_come_in_their_order_and_cancelled_ones_do_not() {
    on_both(|reactor| {
        let start = clock::now_ns();
        let second = reactor.timer_at(start + 4_000_000);
        let first = reactor.timer_at(start + 2_000_000);
        let cancelled = reactor.timer_at(start + 3_000_000);
        reactor.cancel_timer(cancelled);
        let mut events = Vec::new();
        while events.len() < 2 {
            reactor.wait(&[], None, &mut events).unwrap();
        }
        assert_eq!(events, [Event::Due(first), Event::Due(second)]);
        assert!(clock::now_ns() >= start + 4_000_000);
        reactor.cancel_timer(first);
        assert_eq!(now(reactor), []);
    });
}

#[test]
fn a_waker_wakes_from_another_thread_once_a_call() {
    on_both(|reactor| {
        let (source, waker) = reactor.waker().unwrap();
        assert_eq!(now(reactor), []);
        let thread = std::thread::spawn(move || {
            waker.wake();
            waker
        });
        assert_eq!(soon(reactor), [readable(source)]);
        let waker = thread.join().unwrap();
        assert_eq!(now(reactor), [], "it is not read, and it is silent");
        // Before the wait it counts, too.
        waker.wake();
        assert_eq!(soon(reactor), [readable(source)]);
    });
}

#[test]
fn an_engine_is_waited_for_beside_the_sources() {
    on_both(|reactor| {
        let (mut engine, _) = open_engine::<Buffer>(Choice::Auto, 4).unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let file = engine.register(Arc::new(File::from(reader))).unwrap();
        let kind = OpKind::Read;
        let op = Op {
            kind,
            file,
            offset: 0,
            length: 3,
        };
        if engine.wait_fd().is_none() {
            return ugeom_testkit::skip("no engine here has a descriptor");
        }
        let (ours, mut theirs) = pair();
        let source = reactor.register(ours, Interest::READ).unwrap();
        engine.submit(op, Buffer::new(3));
        engine.reap(&mut |_| panic!("nothing was written"));
        let also: Vec<_> = engine.wait_fd().into_iter().collect();
        let mut events = Vec::new();
        theirs.write_all(b"a").unwrap();
        let long = Some(Duration::from_secs(20));
        while events.is_empty() {
            reactor.wait(&also, long, &mut events).unwrap();
        }
        assert_eq!(events, [readable(source)]);
        reactor.deregister(source);
        let writing = std::thread::spawn(move || File::from(writer).write_all(b"xyz").unwrap());
        let mut read = None;
        while read.is_none() {
            let also: Vec<_> = engine.wait_fd().into_iter().collect();
            reactor.wait(&also, long, &mut events).unwrap();
            drop(also);
            engine.reap(&mut |completion| read = Some(completion));
        }
        assert_eq!(&read.unwrap().memory[..], b"xyz");
        writing.join().unwrap();
    });
}

#[test]
fn more_sources_than_the_ring_has_entries() {
    on_both(|reactor| {
        let pairs: Vec<_> = (0..300).map(|_| pair()).collect();
        let mut expected = Vec::new();
        for (ours, theirs) in &pairs {
            let source = reactor.register(Arc::clone(ours), Interest::READ);
            expected.push(source.unwrap());
            let mut theirs = theirs;
            theirs.write_all(b"a").unwrap();
        }
        let mut seen = std::collections::BTreeSet::new();
        for (number, (ours, _)) in pairs.iter().enumerate() {
            assert!(ours.as_fd().try_clone_to_owned().is_ok(), "{number}");
        }
        while seen.len() < expected.len() {
            for event in soon(reactor) {
                let Event::Ready { source, .. } = event else {
                    panic!("{event:?}");
                };
                seen.insert(source);
                // One that was seen rests, so that the others get their turn.
                reactor.change(source, Interest::NONE).unwrap();
            }
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), {
            expected.sort();
            expected
        });
    });
}
