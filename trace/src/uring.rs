//! Requests of io_urings beside the bios that they become: their waits before and after.
//!
//! | step | recognised by |
//! |---|---|
//! | bio of a request | the thread submits it after it began with the request, before the next |
//! | bio of a request that a worker of the ring executes | order: the oldest one that waits |
//! | end | the address of the request, which is used again only after it |
//!
//! Source: io_uring/io_uring.c of Linux (`io_submit_sqe`, `io_queue_iowq`, `io_wq_submit_work`).

use crate::event::{Dev, Event, EventKind};
use crate::link::{Phase, Topology, Tree};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// Requests and threads that are remembered; when there are more, all are forgotten.
const REMEMBERED_MAX: usize = 1 << 14;
/// Bios of one request that are followed.
const BIOS_MAX: usize = 64;

/// A bio of so many sectors may be followed by another one of the same request.
const LONG_SECTORS: u64 = 256;

/// The work of a worker.
#[derive(Clone, Copy, Debug)]
struct Executed {
    serial: u64,
    /// Its last bio, before or after the remap from a partition.
    sector: u64,
    end: u64,
    is_remap: bool,
}

/// A bio by the thread that submitted it and the moment, ns.
type Bio = (u32, u64);

/// Requests that went one way. The four times add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UringFigures {
    /// Workers of the ring (io-wq) executed them.
    pub workers: bool,
    /// How many had bios to the traced devices.
    pub requests: u64,
    /// Bios of these requests to the traced devices.
    pub bios: u64,
    /// From the beginning to the first bio, or to the queue of the workers, ns, all requests.
    pub before_ns: u64,
    /// From the queue of the workers to the first bio, ns, all requests.
    pub queued_ns: u64,
    /// From the first bio to the end of the last, ns, all requests.
    pub devices_ns: u64,
    /// From there until the result was posted, ns, all requests.
    pub after_ns: u64,
}

impl UringFigures {
    /// From the beginning to the posted result, ns, all requests.
    pub fn whole_ns(&self) -> u64 {
        self.before_ns + self.queued_ns + self.devices_ns + self.after_ns
    }
}

#[derive(Debug, Default)]
struct Open {
    begun_ns: u64,
    queued_ns: Option<u64>,
    posted_ns: Option<u64>,
    bios: Vec<Bio>,
    done: Done,
}

/// The known bios of a request.
#[derive(Debug, Default)]
struct Done {
    /// How many have ended, with their requests below.
    ended: usize,
    /// Requests to the traced devices: how many, the first start, the last end.
    roots: u64,
    first_ns: u64,
    last_ns: u64,
}

/// Links events and trees. Takes events in the order of their times, and each tree after those.
#[derive(Debug, Default)]
pub struct Uring {
    /// Devices whose requests count.
    tops: Vec<Dev>,
    open: HashMap<u64, Open>,
    next: u64,
    /// The number of a request by its address.
    of_address: HashMap<u64, u64>,
    of_bio: HashMap<Bio, u64>,
    /// With which request each thread began last.
    submits: HashMap<u32, u64>,
    /// Requests of each process that wait for a worker, the oldest first.
    waiting: HashMap<u32, VecDeque<u64>>,
    executed: HashMap<u32, Executed>,
    /// By themselves, and by workers.
    figures: [UringFigures; 2],
}

impl Uring {
    /// For requests to these devices; to all when there are none.
    pub fn new(tops: &[Dev]) -> Self {
        Self {
            tops: tops.to_vec(),
            ..Self::default()
        }
    }

    /// Takes an event in.
    pub fn event(&mut self, event: &Event, topology: &Topology) {
        match event.kind {
            EventKind::UringSubmit => self.submit(event),
            EventKind::UringWork => self.work(event),
            EventKind::Queue => self.bio(event),
            // A bio to a partition begins with its remap.
            EventKind::Remap if topology.partitions.contains(&(event.other as Dev)) => {
                self.bio(event)
            }
            EventKind::UringComplete => self.complete(event),
            EventKind::Window => self.forget(),
            _ => {}
        }
    }

    fn forget(&mut self) {
        self.open.clear();
        self.of_address.clear();
        self.of_bio.clear();
        self.submits.clear();
        self.waiting.clear();
        self.executed.clear();
    }

    fn submit(&mut self, event: &Event) {
        if self.open.len() >= REMEMBERED_MAX || self.submits.len() >= REMEMBERED_MAX {
            self.forget();
        }
        let serial = self.next;
        self.next += 1;
        if let Some(old) = self.of_address.insert(event.id, serial) {
            self.drop_open(old);
        }
        let open = Open {
            begun_ns: event.time_ns,
            ..Open::default()
        };
        self.open.insert(serial, open);
        self.submits.insert(event.tid, serial);
    }

    fn work(&mut self, event: &Event) {
        let Some(serial) = self.of_address.get(&event.id).copied() else { return };
        if self.submits.get(&event.tid) == Some(&serial) {
            self.submits.remove(&event.tid);
        }
        if let Some(open) = self.open.get_mut(&serial)
            && open.queued_ns.replace(event.time_ns).is_none()
        {
            self.waiting.entry(event.pid).or_default().push_back(serial);
        }
    }

    fn bio(&mut self, event: &Event) {
        let bio = (event.tid, event.time_ns);
        if let Some(serial) = self.submits.get(&event.tid).copied() {
            return self.give(serial, bio);
        }
        let before = self.executed.get(&event.tid).copied();
        let before = before.filter(|it| self.open.contains_key(&it.serial));
        let goes_on = before.filter(|it| match it.is_remap {
            // The same bio, on the disk of the partition.
            true => it.sector == event.sector,
            false => it.end == event.sector && it.end - it.sector >= LONG_SECTORS,
        });
        let mut next = || {
            let waiting = self.waiting.get_mut(&event.pid)?;
            let next = waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&event.pid);
            }
            next
        };
        let serial = goes_on.map(|it| it.serial).or_else(&mut next);
        let Some(serial) = serial.or(before.map(|it| it.serial)) else { return };
        let executed = Executed {
            serial,
            sector: event.sector,
            end: event.sector + u64::from(event.sectors),
            is_remap: event.kind == EventKind::Remap,
        };
        self.executed.insert(event.tid, executed);
        self.give(serial, bio);
    }

    fn give(&mut self, serial: u64, bio: Bio) {
        let open = self.open.get_mut(&serial);
        if let Some(open) = open.filter(|open| open.bios.len() < BIOS_MAX) {
            open.bios.push(bio);
            self.of_bio.insert(bio, serial);
        }
    }

    fn complete(&mut self, event: &Event) {
        let Some(serial) = self.of_address.remove(&event.id) else { return };
        if self.submits.get(&event.tid) == Some(&serial) {
            self.submits.remove(&event.tid);
        }
        let executed = self.executed.remove(&event.tid);
        if let Some(other) = executed.map(|it| it.serial).filter(|it| *it != serial) {
            self.exchange(serial, other);
        }
        let Some(open) = self.open.get_mut(&serial) else { return };
        open.posted_ns = Some(event.time_ns);
        // Of a request without bios, as of cached pages, no tree tells.
        let has_bios = self.open.get(&serial).is_some_and(|it| !it.bios.is_empty());
        if has_bios {
            self.close(serial);
        } else {
            self.drop_open(serial);
        }
    }

    /// A worker posts the result of what it executed: other than order told, that is `serial`.
    fn exchange(&mut self, serial: u64, other: u64) {
        let is_waiting = |open: &&mut Open| open.queued_ns.is_some() && open.posted_ns.is_none();
        let [Some(one), Some(two)] = self.open.get_disjoint_mut([&serial, &other]) else { return };
        if Some(&mut *one).filter(is_waiting).is_none()
            || Some(&mut *two).filter(is_waiting).is_none()
        {
            return;
        }
        std::mem::swap(&mut one.done, &mut two.done);
        std::mem::swap(&mut one.bios, &mut two.bios);
        if two.bios.is_empty() {
            // That one waits still.
            for it in self.waiting.values_mut().flatten() {
                if *it == serial {
                    *it = other;
                }
            }
        }
        for (serial, bios) in [(serial, &one.bios), (other, &two.bios)] {
            for bio in bios {
                if let Some(of) = self.of_bio.get_mut(bio) {
                    *of = serial;
                }
            }
        }
    }

    /// Takes a request to a device that has ended, with all that it became.
    pub fn tree(&mut self, tree: &Tree) {
        let Some(root) = tree.spans.first() else { return };
        let of_root = self.of_bio.get(&(root.tid, root.start_ns)).copied();
        for span in &tree.spans {
            let serial = self.of_bio.remove(&(span.tid, span.start_ns));
            if let Some(open) = serial.and_then(|serial| self.open.get_mut(&serial)) {
                open.done.ended += 1;
            }
        }
        let Some(serial) = of_root else { return };
        let wanted = self.tops.is_empty() || self.tops.contains(&root.dev);
        if let Some(open) = self.open.get_mut(&serial).filter(|_| wanted) {
            let wake_up = root.phases.iter().find(|it| it.1 == Phase::WakeUp);
            let end_ns = wake_up.map_or(root.end_ns, |(at_ns, _)| *at_ns);
            open.done.first_ns = match open.done.roots {
                0 => root.start_ns,
                _ => open.done.first_ns.min(root.start_ns),
            };
            open.done.last_ns = open.done.last_ns.max(end_ns);
            open.done.roots += 1;
        }
        self.close(serial);
    }

    /// Counts a request whose result is posted and whose bios have all ended.
    fn close(&mut self, serial: u64) {
        let Some(open) = self.open.get(&serial) else { return };
        let Some(posted_ns) = open.posted_ns else { return };
        if open.done.ended < open.bios.len() {
            return;
        }
        let first_ns = open.done.first_ns.clamp(open.begun_ns, posted_ns);
        let last_ns = open.done.last_ns.clamp(first_ns, posted_ns);
        let queued_ns = open.queued_ns.unwrap_or(first_ns);
        let queued_ns = queued_ns.clamp(open.begun_ns, first_ns);
        if open.done.roots > 0 {
            let figures = &mut self.figures[usize::from(open.queued_ns.is_some())];
            figures.requests += 1;
            figures.bios += open.done.roots;
            figures.before_ns += queued_ns - open.begun_ns;
            figures.queued_ns += first_ns - queued_ns;
            figures.devices_ns += last_ns - first_ns;
            figures.after_ns += posted_ns - last_ns;
        }
        self.drop_open(serial);
    }

    fn drop_open(&mut self, serial: u64) {
        let Some(open) = self.open.remove(&serial) else { return };
        if open.queued_ns.is_some() && open.bios.is_empty() {
            self.waiting.retain(|_, waiting| {
                waiting.retain(|it| *it != serial);
                !waiting.is_empty()
            });
        }
        for bio in open.bios {
            self.of_bio.remove(&bio);
        }
    }

    /// The counts; requests whose bios' ends were not seen are left out.
    pub fn figures(&self) -> Vec<UringFigures> {
        let mut figures = self.figures;
        figures[1].workers = true;
        figures.into_iter().filter(|it| it.requests > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Op;
    use crate::link::Span;

    fn event(time_ns: u64, kind: EventKind, tid: u32, id: u64) -> Event {
        Event {
            time_ns,
            kind,
            cpu: 0,
            op: Op::Read,
            tid,
            pid: 1,
            dev: 7,
            sector: 0,
            sectors: 8,
            id,
            other: 0,
            extra: 0,
        }
    }

    /// A root of that thread; its thread ran again 50 ns after it had ended.
    fn tree(dev: Dev, tid: u32, start_ns: u64, end_ns: u64) -> Tree {
        let phases = vec![(start_ns, Phase::Block), (end_ns, Phase::WakeUp)];
        let root = Span {
            dev,
            op: Op::Read,
            sector: 0,
            sectors: 8,
            tid,
            pid: 1,
            start_ns,
            end_ns: end_ns + 50,
            phases,
            parent: None,
            ambiguous: false,
            failed: false,
            file: None,
        };
        Tree { spans: vec![root] }
    }

    /// The division of events and roots of requests, each a thread with its start and end.
    fn traced(traced: &[Dev], events: &[Event], roots: &[(u32, u64, u64)]) -> (Uring, [u64; 4]) {
        let topology = Topology::default();
        let mut uring = Uring::new(traced);
        for event in events {
            uring.event(event, &topology);
        }
        for &(tid, start_ns, end_ns) in roots {
            uring.tree(&tree(7, tid, start_ns, end_ns));
        }
        let [all] = uring.figures()[..] else {
            panic!("{:?}", uring.figures());
        };
        let times = [all.before_ns, all.queued_ns, all.devices_ns, all.after_ns];
        (uring, times)
    }

    #[test]
    fn a_request_is_divided_into_what_comes_before_and_after_its_bios() {
        let topology = Topology::default();
        let mut uring = Uring::new(&[7]);
        for event in [
            event(100, EventKind::UringSubmit, 1, 0xa),
            event(110, EventKind::Queue, 1, 0x1000),
            event(115, EventKind::Queue, 1, 0x1001),
            event(120, EventKind::UringSubmit, 1, 0xb),
            event(300, EventKind::UringComplete, 1, 0xa),
        ] {
            uring.event(&event, &topology);
        }
        uring.tree(&tree(7, 1, 110, 200));
        assert!(uring.figures().is_empty());
        uring.tree(&tree(7, 1, 115, 250));
        let [all] = uring.figures()[..] else {
            panic!("{:?}", uring.figures());
        };
        let times = [all.before_ns, all.queued_ns, all.devices_ns, all.after_ns];
        assert_eq!((all.requests, all.bios, all.workers), (1, 2, false));
        assert_eq!(times, [10, 0, 140, 50]);
        assert_eq!(all.whole_ns(), 200);
        // The address is used again: the second request, whose end was lost, is no part of it.
        uring.event(&event(400, EventKind::UringSubmit, 2, 0xb), &topology);
        assert_eq!(uring.open.len(), 1);
    }

    #[test]
    fn a_worker_executes_a_request_that_waited_for_it() {
        let events = [
            event(100, EventKind::UringSubmit, 1, 0xa),
            event(105, EventKind::UringWork, 1, 0xa),
            // Another program's bio, and then the worker's.
            Event {
                pid: 3,
                ..event(130, EventKind::Queue, 3, 0x999)
            },
            event(145, EventKind::Queue, 9, 0x1000),
            event(260, EventKind::UringComplete, 9, 0xa),
        ];
        let (uring, times) = traced(&[], &events, &[(3, 130, 140), (9, 145, 240)]);
        let all = uring.figures()[0];
        assert_eq!((all.workers, all.bios), (true, 1));
        assert_eq!(times, [5, 40, 95, 20]);
        assert!(uring.open.is_empty() && uring.of_bio.is_empty());
        assert!(uring.waiting.is_empty());
    }

    #[test]
    fn a_worker_that_posts_another_result_had_executed_that_one() {
        let events = [
            event(100, EventKind::UringSubmit, 1, 0xa),
            event(105, EventKind::UringWork, 1, 0xa),
            event(110, EventKind::UringSubmit, 1, 0xb),
            event(115, EventKind::UringWork, 1, 0xb),
            event(145, EventKind::Queue, 9, 0x1000),
            event(146, EventKind::Queue, 8, 0x1001),
            event(260, EventKind::UringComplete, 9, 0xb),
            event(270, EventKind::UringComplete, 8, 0xa),
        ];
        let (uring, times) = traced(&[], &events, &[(9, 145, 240), (8, 146, 250)]);
        assert!(uring.open.is_empty() && uring.waiting.is_empty());
        // 0xb: 115 to 145 to 240 to 260; 0xa: 105 to 146 to 250 to 270.
        assert_eq!(times, [10, 30 + 41, 95 + 104, 40]);
    }

    #[test]
    fn memory_is_bounded_and_cached_requests_are_forgotten() {
        let topology = Topology::default();
        let mut uring = Uring::new(&[]);
        for at in 0..100_000 {
            uring.event(
                &event(at, EventKind::UringSubmit, at as u32, at + 1),
                &topology,
            );
            uring.event(&event(at, EventKind::Queue, at as u32, at), &topology);
        }
        assert!(uring.open.len() <= REMEMBERED_MAX && uring.of_bio.len() <= REMEMBERED_MAX);
        let topology = Topology::default();
        let mut uring = Uring::new(&[]);
        uring.event(&event(1, EventKind::UringSubmit, 1, 5), &topology);
        uring.event(&event(2, EventKind::UringComplete, 1, 5), &topology);
        assert!(uring.open.is_empty() && uring.figures().is_empty());
    }
}
