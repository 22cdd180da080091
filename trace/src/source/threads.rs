//! Facts about threads for sources without programs of their own: the process of each, and the
//! threads that have asked for I/O, so that it matters when they run again.

use crate::event::{Event, EventKind};
use std::collections::{HashMap, HashSet};
use std::fs;

/// Threads whose processes are remembered, and that submitted.
const THREADS_MAX: usize = 1 << 17;

/// The known threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    tops: Vec<u32>,
    processes: HashMap<u32, u32>,
    submitters: HashSet<u32>,
}

impl Threads {
    /// For threads that submit to these devices; to all when there are none.
    pub(super) fn new(tops: &[u32]) -> Self {
        Self {
            tops: tops.to_vec(),
            ..Self::default()
        }
    }

    /// Completes the events behind the first so many, and drops switches to threads that wait for
    /// nothing: the filter of the kernel cannot tell which threads submit.
    pub(super) fn complete(&mut self, events: &mut Vec<Event>, before: usize) {
        if self.submitters.len() >= THREADS_MAX {
            self.submitters.clear();
        }
        for event in events.iter_mut().skip(before) {
            event.pid = match event.kind {
                EventKind::Queue | EventKind::Remap | EventKind::FuseSend => {
                    self.process(event.tid)
                }
                _ => event.tid,
            };
            let submits = event.kind == EventKind::Queue
                && (self.tops.is_empty() || self.tops.contains(&event.dev));
            if submits || event.kind == EventKind::FuseSend {
                self.submitters.insert(event.tid);
            }
        }
        let submitters = &self.submitters;
        let mut at = 0;
        events.retain(|event| {
            at += 1;
            at <= before || event.kind != EventKind::Run || submitters.contains(&event.tid)
        });
    }

    /// The process of a thread, while it runs.
    fn process(&mut self, tid: u32) -> u32 {
        if self.processes.len() >= THREADS_MAX {
            self.processes.clear();
        }
        *self.processes.entry(tid).or_insert_with(|| {
            let text = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"));
            line.and_then(|pid| pid.trim().parse().ok()).unwrap_or(tid)
        })
    }
}
