//! Where the workers of loop devices run: on the processor of the thread that gave them work, or on
//! another one, which may have been asleep.
//!
//! In a virtual machine a wake-up on a processor that sleeps costs tens of microseconds, so the
//! same chain has two speeds.

use crate::event::{Dev, Event, EventKind};
use crate::link::Topology;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Threads and pieces of work that are remembered.
const REMEMBERED_MAX: usize = 1 << 16;

/// The workers of a loop device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFigures {
    /// Name of the device.
    pub device: String,
    /// How often a worker began.
    pub starts: u64,
    /// How often on the processor of the thread that had given it work.
    pub same_processor: u64,
}

/// Counts where workers begin. Takes events in the order of their times.
#[derive(Debug, Default)]
pub struct Workers {
    /// The loop device to which a thread issued last.
    issued: HashMap<u32, Dev>,
    /// The device of a piece of work, and the processor on which it was queued.
    queued: HashMap<u64, (Dev, u16)>,
    counts: BTreeMap<Dev, (u64, u64)>,
}

impl Workers {
    /// Takes an event in.
    pub fn event(&mut self, event: &Event, topology: &Topology) {
        match event.kind {
            EventKind::Issue if topology.loops.contains_key(&event.dev) => {
                make_room(&mut self.issued);
                self.issued.insert(event.tid, event.dev);
            }
            EventKind::WorkQueue => {
                if let Some(dev) = self.issued.get(&event.tid) {
                    make_room(&mut self.queued);
                    self.queued.insert(event.id, (*dev, event.cpu));
                }
            }
            EventKind::WorkStart => {
                if let Some((dev, cpu)) = self.queued.get(&event.id) {
                    let count = self.counts.entry(*dev).or_default();
                    count.0 += 1;
                    count.1 += u64::from(*cpu == event.cpu);
                }
            }
            _ => {}
        }
    }

    /// The counts, with these names.
    pub fn figures(&self, name: &dyn Fn(Dev) -> String) -> Vec<WorkerFigures> {
        let figures = |(dev, (starts, same_processor)): (&Dev, &(u64, u64))| WorkerFigures {
            device: name(*dev),
            starts: *starts,
            same_processor: *same_processor,
        };
        self.counts.iter().map(figures).collect()
    }
}

fn make_room<K, V>(map: &mut HashMap<K, V>) {
    if map.len() >= REMEMBERED_MAX {
        map.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Op;

    #[test]
    fn a_worker_is_compared_with_the_thread_that_queued_its_work() {
        const LOOP: Dev = 7 << 20;
        let mut topology = Topology::default();
        topology.loops.insert(LOOP, None);
        let mut workers = Workers::default();
        let mut fire = |kind, cpu, tid, dev, id| {
            let event = Event {
                time_ns: 0,
                kind,
                cpu,
                op: Op::Read,
                tid,
                pid: tid,
                dev,
                sector: 0,
                sectors: 8,
                id,
                other: 0,
                extra: 0,
            };
            workers.event(&event, &topology);
        };
        for worker in [0, 1, 1] {
            fire(EventKind::Issue, 0, 100, LOOP, 1);
            fire(EventKind::WorkQueue, 0, 100, 0, 77);
            fire(EventKind::WorkStart, worker, 200, 0, 77);
        }
        // Work of which nothing is known, and a device that is no loop device.
        fire(EventKind::WorkStart, 0, 200, 0, 78);
        fire(EventKind::Issue, 0, 101, 8 << 20, 1);
        fire(EventKind::WorkQueue, 0, 101, 0, 79);
        fire(EventKind::WorkStart, 0, 200, 0, 79);
        let figures = workers.figures(&|dev| format!("loop{}", dev & 0xff));
        let [only] = figures.as_slice() else {
            panic!("{figures:?}");
        };
        assert_eq!(
            (only.device.as_str(), only.starts, only.same_processor),
            ("loop0", 3, 1)
        );
    }
}
