//! A source that misses ends, beside counters that do not.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_testkit::{begins, ends};

const DEV: Dev = 254 << 20;

/// A source that sees a share of the reads that the kernel ends at each look.
struct Missing {
    name: &'static str,
    ended: fn() -> &'static AtomicU64,
    /// It misses so many of each hundred.
    percent: u64,
    lost: u64,
    kinds: Vec<EventKind>,
}

impl Source for Missing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kinds(&self) -> &[EventKind] {
        &self.kinds
    }

    fn gate(&mut self, _open: bool) {}

    fn rest(&mut self, _rests: bool) {}

    fn read(&mut self, events: &mut Vec<Event>) -> std::io::Result<Option<u64>> {
        // A hundred reads end, all counted.
        (self.ended)().fetch_add(100, Ordering::Relaxed);
        let time_ns = clock::now_ns();
        events.extend((self.percent..100).map(|at| Event {
            time_ns,
            kind: EventKind::Done,
            cpu: 0,
            op: Op::Read,
            tid: 0,
            pid: 0,
            dev: DEV,
            sector: 8 * at,
            sectors: 8,
            id: at + 1,
            other: 0,
            extra: 0,
        }));
        Ok(None)
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

/// Looks at a source until the counters were compared several times: whether it is replaced.
fn watch(source: Missing, counted: Count) -> (Session, bool) {
    let scope = Scope {
        tops: vec![DEV],
        disks: vec![DEV],
        ..Scope::default()
    };
    let session = Session::start_with(scope, counted, || Ok(Box::new(source)));
    let mut session = session.expect("a session");
    for _ in 0..10 {
        session.poll(&mut |_| {}).expect("events");
        // Longer than events are held back.
        std::thread::sleep(std::time::Duration::from_nanos(2 * LATE_NS));
    }
    let replaced = session.successors().is_some();
    (session, replaced)
}

/// A counter of its own for each test, which run at the same time.
macro_rules! counter {
    ($counted:ident, $ended:ident) => {
        fn $ended() -> &'static AtomicU64 {
            static ENDED: AtomicU64 = AtomicU64::new(0);
            &ENDED
        }
        fn $counted(_: &Scope) -> Counters {
            Counters::from([(DEV, ($ended().load(Ordering::Relaxed), 0))])
        }
    };
}

fn source(name: &'static str, ended: fn() -> &'static AtomicU64, percent: u64) -> Missing {
    Missing {
        name,
        ended,
        percent,
        lost: 0,
        kinds: vec![EventKind::Done],
    }
}

#[test]
fn a_source_that_drops_ends_is_replaced_by_the_next_one() {
    counter!(counted, ended);
    let (session, replaced) = watch(source("bpf", ended, 10), counted);
    assert!(replaced);
    let (why, others) = session.successors().expect("successors");
    assert_eq!(others, [Choice::Tracefs, Choice::Perf]);
    begins(&why, "254:0: ");
    ends(&why, "completions were seen");
    // The last observations are reported at the end, too.
    let ended = session.finish(&mut |_| {}).expect("an end");
    assert!(!ended.checks[0].agrees(), "{:?}", ended.checks);
}

#[test]
fn the_last_source_is_kept() {
    counter!(counted, ended);
    assert!(!watch(source("perf", ended, 10), counted).1);
}

#[test]
fn a_source_that_sees_all_or_nearly_all_is_believed() {
    counter!(counted, ended);
    assert!(!watch(source("bpf", ended, 0), counted).1);
    assert!(!watch(source("bpf", ended, 1), counted).1);
}

#[test]
fn a_source_that_counts_what_it_loses_is_kept() {
    counter!(counted, ended);
    let mut honest = source("bpf", ended, 50);
    honest.lost = 50;
    assert!(!watch(honest, counted).1);
}

#[test]
fn what_a_server_lost_and_that_it_fell_silent_is_reported() {
    counter!(counted, ended);
    let open = || -> Result<Box<dyn Source>, String> { Ok(Box::new(source("bpf", ended, 0))) };
    let mut session = Session::start_with(Scope::default(), counted, open).expect("a session");
    let failed = std::io::Error::other("it has ended");
    let mut answers = [Ok((vec![(5, 1, 2)], 0)), Ok((Vec::new(), 3)), Err(failed)].into_iter();
    let passages = move || answers.next().expect("it is asked no more");
    session.ask(42, "a server".to_owned(), Box::new(passages));
    for (lost, silent) in [(0, 0), (3, 0), (3, 1), (3, 1)] {
        session.poll(&mut |_| {}).expect("events");
        assert_eq!(
            (session.lost(), session.quality().silent_servers),
            (lost, silent)
        );
    }
    let ended = session.finish(&mut |_| {}).expect("an end");
    assert_eq!((ended.lost, ended.quality.silent_servers), (3, 1));
}

/// Reads that ended on two processors; a look reads one of the first and all of the second.
struct Slow {
    first: Vec<u64>,
    second: Vec<u64>,
}

impl Source for Slow {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn kinds(&self) -> &[EventKind] {
        &[EventKind::Queue, EventKind::BioComplete]
    }

    fn gate(&mut self, _open: bool) {}

    fn rest(&mut self, _rests: bool) {}

    fn read(&mut self, events: &mut Vec<Event>) -> std::io::Result<Option<u64>> {
        let one = (!self.first.is_empty()).then(|| self.first.remove(0));
        let times = one.into_iter().chain(std::mem::take(&mut self.second));
        for time_ns in times {
            let mut event = window(time_ns, 0);
            (event.kind, event.dev, event.id) = (EventKind::BioComplete, DEV, time_ns);
            events.push(event);
        }
        Ok(one.filter(|_| !self.first.is_empty()))
    }

    fn lost(&self) -> u64 {
        0
    }
}

#[test]
fn events_that_a_look_leaves_keep_their_order() {
    counter!(counted, _ended);
    let now_ns = clock::now_ns() - 1_000_000_000;
    let times = |from: u64| (0..5).map(|at| now_ns + 10_000_000 * at + from).collect();
    let slow = Slow {
        first: times(0),
        second: times(5_000_000),
    };
    let open = || -> Result<Box<dyn Source>, String> { Ok(Box::new(slow)) };
    let mut session = Session::start_with(Scope::default(), counted, open).expect("a session");
    let mut seen = Vec::new();
    for look in 0..3 {
        let trees = session.poll(&mut |event: &Event| seen.push(event.time_ns));
        assert!(trees.is_ok() && session.is_behind(), "look {look}");
    }
    session
        .finish(&mut |event| seen.push(event.time_ns))
        .map(|_| ())
        .expect("an end");
    assert_eq!(seen.len(), 10);
    assert!(seen.is_sorted(), "{seen:?}");
}
