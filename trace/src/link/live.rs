//! Spans that have not ended, and those that wait for their root to end.

use super::{Phase, SPANS_OF_ROOT_MAX, Span, Tree};
use crate::event::{Dev, Event, EventKind, Op};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Spans that may hold a sector are looked for among so many of a device.
const LOOKED_AT_MAX: usize = 256;

#[derive(Debug)]
struct OpenSpan {
    span: Span,
    parent: Option<u64>,
    children: Vec<u64>,
    ended: bool,
    /// Parts without a request, and requests that have not ended.
    parts_expected: u32,
    parts_open: u32,
    /// Sectors that the worker of a loop device has submitted for it.
    submitted: u64,
    /// It, or the root above it, does not belong to the sample.
    outside: bool,
    /// Its bios were handed on to devices below, and end with these.
    hands_on: bool,
}

/// The result of a span that ended.
pub(super) struct Ended {
    pub(super) parent: Option<u64>,
    pub(super) tid: u32,
    pub(super) ambiguous: bool,
    pub(super) failed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Live {
    /// In boxes: the map grows by doubling.
    spans: HashMap<u64, Box<OpenSpan>>,
    /// Open spans in the order of their numbers, which is that of their starts.
    open: BTreeSet<u64>,
    of_device: HashMap<Dev, BTreeSet<u64>>,
    /// Requests of a loop device that its worker has not finished, in order.
    at_worker: HashMap<Dev, VecDeque<u64>>,
    next: u64,
    /// Roots that begin do not belong to the sample.
    pub(super) outside: bool,
    pub(super) given_up: u64,
    pub(super) clock_backwards: u64,
    pub(super) left_out: u64,
}

impl Live {
    pub(super) fn begin(
        &mut self,
        event: &Event,
        dev: Dev,
        parent: Option<u64>,
        phase: Phase,
        ambiguous: bool,
    ) -> u64 {
        let serial = self.next;
        self.next += 1;
        let parent = parent.filter(|parent| self.spans.contains_key(parent));
        let mut outside = self.outside;
        if let Some(above) = parent.and_then(|parent| self.spans.get_mut(&parent)) {
            above.children.push(serial);
            outside = above.outside;
        }
        let span = Span {
            dev,
            op: event.op,
            sector: event.sector,
            sectors: event.sectors,
            tid: event.tid,
            pid: event.pid,
            start_ns: event.time_ns,
            end_ns: event.time_ns,
            phases: vec![(event.time_ns, phase)],
            parent: None,
            ambiguous,
            failed: false,
            file: match event.kind {
                EventKind::Queue if event.other != 0 => Some((event.extra as Dev, event.other)),
                EventKind::FuseSend if event.other != 0 => Some((event.dev, event.other)),
                _ => None,
            },
        };
        let one = OpenSpan {
            span,
            parent,
            children: Vec::new(),
            ended: false,
            parts_expected: 0,
            parts_open: 0,
            submitted: 0,
            outside,
            hands_on: false,
        };
        self.spans.insert(serial, Box::new(one));
        self.open.insert(serial);
        self.of_device.entry(dev).or_default().insert(serial);
        serial
    }

    /// The file of a span is that of the partition above it, too.
    pub(super) fn is_for(&mut self, above: Option<u64>, serial: u64) {
        let file = self.spans.get(&serial).and_then(|one| one.span.file);
        if let Some(above) = above.and_then(|above| self.spans.get_mut(&above)) {
            above.span.file = file;
        }
    }

    /// The span enters a phase.
    pub(super) fn phase(&mut self, serial: u64, time_ns: u64, phase: Phase) {
        let Some(one) = self.spans.get_mut(&serial).filter(|one| !one.ended) else { return };
        let Some((last_ns, last)) = one.span.phases.last().copied() else { return };
        if time_ns < last_ns {
            self.clock_backwards += 1;
            return;
        }
        // A span that was requeued a thousand times keeps the time, not each turn.
        if last != phase && one.span.phases.len() < 64 {
            one.span.phases.push((time_ns, phase));
        }
    }

    /// Renames the phase of the span since its start.
    pub(super) fn was(&mut self, serial: u64, phase: Phase) {
        let first = self.spans.get_mut(&serial);
        if let Some(first) = first.and_then(|one| one.span.phases.first_mut()) {
            first.1 = phase;
        }
    }

    pub(super) fn mark_ambiguous(&mut self, serials: &[u64]) {
        for serial in serials {
            if let Some(one) = self.spans.get_mut(serial) {
                one.span.ambiguous = true;
            }
        }
    }

    pub(super) fn parts_expected(&mut self, serial: u64, more: u32) {
        if let Some(one) = self.spans.get_mut(&serial) {
            one.parts_expected += more;
        }
    }

    pub(super) fn part_allocated(&mut self, serial: u64) {
        if let Some(one) = self.spans.get_mut(&serial) {
            one.parts_expected = one.parts_expected.saturating_sub(1);
            one.parts_open += 1;
        }
    }

    /// A request with a part of the span ended: whether that was the last one.
    pub(super) fn part_ended(&mut self, serial: u64) -> bool {
        let Some(one) = self.spans.get_mut(&serial) else { return false };
        one.parts_open = one.parts_open.saturating_sub(1);
        one.parts_open == 0 && one.parts_expected == 0
    }

    /// The youngest open span of a device that holds a sector, and whether there are several.
    pub(super) fn holding(&self, dev: Dev, sector: u64) -> Option<(u64, bool)> {
        let all = self.of_device.get(&dev)?.iter().rev().take(LOOKED_AT_MAX);
        let mut found = all.filter(|serial| {
            self.spans.get(serial).is_some_and(|one| {
                let span = &one.span;
                let end = span.sector.saturating_add(u64::from(span.sectors).max(1));
                !one.ended && (span.sector..end).contains(&sector)
            })
        });
        let first = *found.next()?;
        Some((first, found.next().is_some()))
    }

    pub(super) fn wait_for_worker(&mut self, dev: Dev, serial: u64) {
        let waiting = self.at_worker.entry(dev).or_default();
        if !waiting.contains(&serial) {
            waiting.push_back(serial);
        }
    }

    pub(super) fn first_at_worker(&self, dev: Dev) -> Option<u64> {
        let waiting = self.at_worker.get(&dev)?;
        let fresh = |serial: &&u64| self.spans.get(serial).is_some_and(|one| one.submitted == 0);
        waiting.iter().find(fresh).copied()
    }

    /// The request of a loop device for which its worker submits `sectors` now: the one that
    /// begins where it must, or the oldest that has not been submitted whole. And whether others
    /// fitted.
    pub(super) fn at_worker(
        &mut self,
        dev: Dev,
        wanted: Option<u64>,
        sectors: u64,
    ) -> Option<(u64, bool)> {
        let waiting = self.at_worker.get(&dev)?;
        let fits = |serial: &&u64| {
            self.spans.get(serial).is_some_and(|one| {
                let (span, length) = (&one.span, u64::from(one.span.sectors));
                match wanted {
                    Some(sector) => {
                        (span.sector..span.sector.saturating_add(length.max(1))).contains(&sector)
                    }
                    None => one.submitted < length.max(1),
                }
            })
        };
        let mut found = waiting.iter().filter(fits);
        let first = *found.next()?;
        let several = found.next().is_some();
        if let Some(one) = self.spans.get_mut(&first) {
            one.submitted = one.submitted.saturating_add(sectors.max(1));
        }
        Some((first, several))
    }

    pub(super) fn dev(&self, serial: u64) -> Dev {
        self.spans.get(&serial).map_or(0, |one| one.span.dev)
    }

    pub(super) fn failed(&mut self, serial: u64, failed: bool) {
        if let Some(one) = self.spans.get_mut(&serial) {
            one.span.failed |= failed;
        }
    }

    pub(super) fn hands_on(&mut self, serial: u64) {
        if let Some(one) = self.spans.get_mut(&serial) {
            one.hands_on = true;
        }
    }

    pub(super) fn has_handed_on(&self, serial: u64) -> bool {
        self.spans.get(&serial).is_some_and(|one| one.hands_on)
    }

    /// Whether nothing has happened to a span since it began.
    pub(super) fn is_entering(&self, serial: u64) -> bool {
        let one = self.spans.get(&serial).filter(|one| !one.ended);
        one.is_some_and(|one| one.span.phases.len() == 1 && one.children.is_empty())
    }

    pub(super) fn op(&self, serial: u64) -> Op {
        let one = self.spans.get(&serial);
        one.map_or(Op::Other, |one| one.span.op)
    }

    pub(super) fn end_of(&self, serial: u64) -> u64 {
        self.spans.get(&serial).map_or(0, |one| one.span.end_ns)
    }

    /// When the span entered its last phase.
    pub(super) fn last_phase_ns(&self, serial: u64) -> u64 {
        let last = self
            .spans
            .get(&serial)
            .and_then(|one| one.span.phases.last());
        last.map_or(u64::MAX, |(at, _)| *at)
    }

    /// Ends a span; it stays until its root is collected.
    pub(super) fn end(&mut self, serial: u64, time_ns: u64) -> Option<Ended> {
        let one = self.spans.get_mut(&serial).filter(|one| !one.ended)?;
        if time_ns < one.span.start_ns {
            self.clock_backwards += 1;
        }
        one.ended = true;
        one.span.end_ns = time_ns.max(one.span.start_ns);
        let dev = one.span.dev;
        let parent = one.parent;
        let ended = Ended {
            parent,
            tid: one.span.tid,
            ambiguous: one.span.ambiguous,
            failed: one.span.failed,
        };
        self.close(serial, dev);
        // The root was collected without it, or was given up.
        if parent.is_some_and(|parent| !self.spans.contains_key(&parent)) {
            self.spans.remove(&serial);
        }
        Some(ended)
    }

    fn close(&mut self, serial: u64, dev: Dev) {
        self.open.remove(&serial);
        if let Some(spans) = self.of_device.get_mut(&dev) {
            spans.remove(&serial);
        }
        if let Some(list) = self.at_worker.get_mut(&dev)
            && let Some(position) = list.iter().position(|one| *one == serial)
        {
            list.remove(position);
        }
    }

    /// Takes a root that ended with all its descendants; with the moment at which its thread ran
    /// again.
    pub(super) fn collect(&mut self, root: u64, run_ns: Option<u64>) -> Option<Tree> {
        let mut spans: Vec<Span> = Vec::new();
        let mut waiting = VecDeque::from([(root, None)]);
        while let Some((serial, parent)) = waiting.pop_front() {
            let Some(mut one) = self.spans.remove(&serial) else { continue };
            let position = spans.len();
            if position >= SPANS_OF_ROOT_MAX {
                self.left_out += 1;
                self.close(serial, one.span.dev);
                continue;
            }
            one.span.parent = parent;
            if !one.ended {
                // It outlives its root, as readahead does: it counts as far as the root lasts.
                let root_end = spans.first().map_or(one.span.start_ns, |root| root.end_ns);
                one.span.end_ns = root_end.max(one.span.start_ns);
                self.close(serial, one.span.dev);
                self.given_up += u64::from(!one.outside);
            }
            waiting.extend(one.children.iter().map(|child| (*child, Some(position))));
            spans.push(one.span);
        }
        let first = spans.first_mut()?;
        if let Some(run_ns) = run_ns
            && run_ns > first.end_ns
        {
            first.phases.push((first.end_ns, Phase::WakeUp));
            first.end_ns = run_ns;
        }
        Some(Tree { spans })
    }

    /// The oldest open span while there are more than so many.
    pub(super) fn oldest_beyond(&self, most: usize) -> Option<u64> {
        let oldest = self.open.first().copied();
        oldest.filter(|_| self.open.len() > most)
    }

    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Gives an open span up.
    pub(super) fn drop_open(&mut self, serial: u64) {
        let Some(one) = self.spans.remove(&serial) else { return };
        self.close(serial, one.span.dev);
        self.given_up += u64::from(!one.ended && !one.outside);
        for child in one.children {
            self.drop_open(child);
        }
    }

    /// Whether a root belongs to the sample.
    pub(super) fn belongs(&self, serial: u64) -> bool {
        self.spans.get(&serial).is_some_and(|one| !one.outside)
    }

    /// Whether a root of the sample has not ended before that moment.
    pub(super) fn is_waiting(&self, before_ns: u64) -> bool {
        let late = |one: &OpenSpan| !one.ended || one.span.end_ns >= before_ns;
        let mut all = self.spans.values();
        all.any(|one| one.parent.is_none() && !one.outside && late(one))
    }

    /// Gives all open spans up: how many of the sample there were.
    pub(super) fn give_up(&mut self) -> u64 {
        let spans = self.open.iter().filter(|serial| self.belongs(**serial));
        let count = spans.count() as u64;
        self.open.clear();
        self.spans.clear();
        self.of_device.clear();
        self.at_worker.clear();
        count
    }
}
