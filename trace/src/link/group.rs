//! Requests: which bios each carries, until it ends.

use crate::event::{Dev, Event, EventKind, Op};
use std::collections::{HashMap, VecDeque};

/// Open requests and the bios in them.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The spans of a bio; several only where bios are known by their places.
    spans: HashMap<u64, VecDeque<u64>>,
    /// The bios of a span.
    bios: HashMap<u64, Vec<u64>>,
    /// Parts that were split off: bio to span.
    aliases: HashMap<u64, u64>,
    /// The request that a bio is in.
    by_bio: HashMap<u64, u64>,
    by_request: HashMap<u64, u64>,
    /// Open requests by where they begin, the oldest first, and by where they end.
    by_start: HashMap<(Dev, u64), VecDeque<u64>>,
    by_end: HashMap<(Dev, u64), u64>,
    groups: HashMap<u64, Group>,
    next: u64,
}

#[derive(Debug)]
struct Group {
    dev: Dev,
    start: u64,
    end: u64,
    /// Sectors that were reported already.
    reported: u64,
    members: Vec<u64>,
    bios: Vec<u64>,
    request: Option<u64>,
}

impl Groups {
    /// A bio that entered a device; the span of another one with the same key, if there is one.
    pub(super) fn enter(&mut self, bio: u64, serial: u64) -> Option<u64> {
        self.aliases.remove(&bio);
        let spans = self.spans.entry(bio).or_default();
        let old = spans.back().copied();
        spans.push_back(serial);
        self.bios.entry(serial).or_default().push(bio);
        old
    }

    /// A part of a span's bio that is a bio of its own.
    pub(super) fn alias(&mut self, bio: u64, serial: u64) {
        self.aliases.insert(bio, serial);
        self.bios.entry(serial).or_default().push(bio);
    }

    pub(super) fn is_alias(&self, bio: u64) -> bool {
        self.aliases.contains_key(&bio)
    }

    pub(super) fn forget_alias(&mut self, bio: u64) {
        self.aliases.remove(&bio);
    }

    /// The span of a bio that ends: the oldest one.
    pub(super) fn span_of(&self, bio: u64) -> Option<u64> {
        let alias = self.aliases.get(&bio).copied();
        alias.or_else(|| self.spans.get(&bio)?.front().copied())
    }

    /// The span of a bio that entered its device just now.
    pub(super) fn newest_of(&self, bio: u64) -> Option<u64> {
        let alias = self.aliases.get(&bio).copied();
        alias.or_else(|| self.spans.get(&bio)?.back().copied())
    }

    /// A request was allocated for a bio.
    pub(super) fn open(&mut self, event: &Event, bio: u64, serial: u64) {
        let number = self.next;
        self.next += 1;
        let (start, end) = (
            event.sector,
            event.sector.saturating_add(u64::from(event.sectors)),
        );
        self.by_bio.insert(bio, number);
        self.starts(event.dev, start, number);
        if end > start {
            self.by_end.insert((event.dev, end), number);
        }
        let group = Group {
            dev: event.dev,
            start,
            end,
            reported: 0,
            members: vec![serial],
            bios: vec![bio],
            request: None,
        };
        self.groups.insert(number, group);
    }

    /// A bio joins an open request; none when there is none that it fits.
    pub(super) fn add(&mut self, event: &Event, bio: u64, serial: u64, back: bool) -> Option<()> {
        let (start, end) = (
            event.sector,
            event.sector.saturating_add(u64::from(event.sectors)),
        );
        let number = match back {
            true => self.by_end.get(&(event.dev, start)),
            false => self
                .by_start
                .get(&(event.dev, end))
                .and_then(|all| all.back()),
        };
        let number = *number?;
        let group = self.groups.get_mut(&number)?;
        group.members.push(serial);
        group.bios.push(bio);
        self.by_bio.insert(bio, number);
        if back {
            self.by_end.remove(&(event.dev, start));
            group.end = end;
            self.by_end.insert((event.dev, end), number);
        } else {
            group.start = start;
            self.not_at(event.dev, end, number);
            self.starts(event.dev, start, number);
        }
        Some(())
    }

    /// A request joins the one that ends where it begins.
    pub(super) fn join(&mut self, event: &Event) {
        let Some(number) = self.of_request(event) else { return };
        let Some(start) = self.groups.get(&number).map(|group| group.start) else { return };
        let into = self.by_end.get(&(event.dev, start)).copied();
        let Some(into) = into.filter(|into| *into != number) else { return };
        let Some(gone) = self.remove(number) else { return };
        for bio in &gone.bios {
            self.by_bio.insert(*bio, into);
        }
        if let Some(group) = self.groups.get_mut(&into) {
            self.by_end.remove(&(group.dev, group.end));
            group.end = gone.end;
            self.by_end.insert((group.dev, group.end), into);
            group.members.extend(gone.members);
            group.bios.extend(gone.bios);
        }
    }

    /// The request of an event: by its address, by its first bio, by its place.
    pub(super) fn of_request(&mut self, event: &Event) -> Option<u64> {
        let by_address = self.by_request.get(&event.id).copied();
        if let Some(number) = by_address.filter(|_| event.id != 0) {
            return Some(number);
        }
        let number = match (event.id, event.other) {
            // A flush that the kernel makes has no place, but names that of a waiting request: 0.
            (0, _) if event.op == Op::Flush => None,
            (0, _) => {
                let all = self.by_start.get(&(event.dev, event.sector));
                let is_new = matches!(
                    event.kind,
                    EventKind::Insert | EventKind::Issue | EventKind::Requeue
                );
                all.and_then(|all| if is_new { all.back() } else { all.front() })
            }
            (_, 0) => None,
            (_, bio) => self.by_bio.get(&bio),
        };
        let number = *number?;
        if event.id != 0 {
            self.by_request.insert(event.id, number);
            self.groups.get_mut(&number)?.request = Some(event.id);
        }
        Some(number)
    }

    fn starts(&mut self, dev: Dev, sector: u64, number: u64) {
        self.by_start
            .entry((dev, sector))
            .or_default()
            .push_back(number);
    }

    fn not_at(&mut self, dev: Dev, sector: u64, number: u64) {
        if let Some(all) = self.by_start.get_mut(&(dev, sector)) {
            all.retain(|one| *one != number);
            if all.is_empty() {
                self.by_start.remove(&(dev, sector));
            }
        }
    }

    pub(super) fn members(&self, number: u64) -> Vec<u64> {
        let group = self.groups.get(&number);
        group.map(|group| group.members.clone()).unwrap_or_default()
    }

    /// Notes that so many sectors were reported: whether that was all.
    pub(super) fn is_whole(&mut self, number: u64, sectors: u64) -> bool {
        let Some(group) = self.groups.get_mut(&number) else { return true };
        group.reported = group.reported.saturating_add(sectors);
        let whole = group.start.saturating_add(group.reported) >= group.end || sectors == 0;
        if !whole && group.request.is_none() {
            // Known by its place, which moves.
            let (dev, at) = (group.dev, group.start.saturating_add(group.reported));
            self.starts(dev, at, number);
        }
        whole
    }

    /// A request ended: the spans in it.
    pub(super) fn close(&mut self, number: u64) -> Vec<u64> {
        self.remove(number)
            .map(|group| group.members)
            .unwrap_or_default()
    }

    fn remove(&mut self, number: u64) -> Option<Group> {
        let group = self.groups.remove(&number)?;
        for bio in &group.bios {
            if self.by_bio.get(bio) == Some(&number) {
                self.by_bio.remove(bio);
            }
        }
        if let Some(request) = group.request {
            self.by_request.remove(&request);
        }
        for start in [group.start, group.start.saturating_add(group.reported)] {
            self.not_at(group.dev, start, number);
        }
        let place = (group.dev, group.end);
        if self.by_end.get(&place) == Some(&number) {
            self.by_end.remove(&place);
        }
        Some(group)
    }

    /// Forgets the bios of a span that ended or was given up.
    pub(super) fn forget(&mut self, serial: u64) {
        for bio in self.bios.remove(&serial).unwrap_or_default() {
            if self.aliases.get(&bio) == Some(&serial) {
                self.aliases.remove(&bio);
            }
            if let Some(spans) = self.spans.get_mut(&bio) {
                spans.retain(|one| *one != serial);
                if spans.is_empty() {
                    self.spans.remove(&bio);
                }
            }
            let number = self.by_bio.get(&bio).copied();
            let alone = |group: &Group| group.members.iter().all(|one| *one == serial);
            if let Some(number) = number
                && self.groups.get(&number).is_some_and(alone)
            {
                self.remove(number);
            }
        }
    }
}
