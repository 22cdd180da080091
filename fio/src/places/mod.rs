//! Where the next request goes: which file, which offset, how long.

mod order;
mod simple;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ugeom_load::block_map::BlockMap;

use super::settings::{Distribution, Job, Sizes};
use super::spread::Spread;
use order::Order;
pub use simple::Simple;

/// The part of a file that a job works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The file, as people call it.
    pub name: String,
    /// Where the part begins, bytes.
    pub start: u64,
    /// How long it is, bytes.
    pub length: u64,
    /// Where the file ends, bytes: behind the part, or at its end.
    pub file_bytes: u64,
}

/// Where one request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of the region.
    pub file: u32,
    /// From the beginning of the file, bytes.
    pub offset: u64,
    /// Length of the request in bytes.
    pub length: u32,
}

/// Zones of a file that are worked on one after the other, bytes.
#[derive(Clone, Copy)]
struct Zone {
    /// How much is transferred in one.
    bytes: u64,
    range: u64,
    skip: u64,
    /// Where the present one begins, from the start of the region.
    start: u64,
    used: u64,
}

struct State {
    start: u64,
    length: u64,
    file_bytes: u64,
    /// What random places are drawn from, bytes: the whole region, or a zone.
    range: u64,
    map: Option<BlockMap>,
    spreads: [Spread; 3],
    /// Where the last request of each kind ended, from the start of the region.
    next: [u64; 3],
    /// Where the last request of each kind began, from the start of the region.
    last: [u64; 3],
    zone: Option<Zone>,
}

/// What all files have in common.
struct Rules {
    sizes: [Sizes; 3],
    /// The smallest size of any kind: a bit of the map.
    unit: u64,
    /// Random places of each kind are multiples of this.
    align: [u64; 3],
    random: bool,
    random_percent: [u8; 3],
    modifier: i64,
    identical: bool,
    unaligned: bool,
    time_based: bool,
}

/// The places of a job, one after the other.
pub struct Places {
    files: Vec<State>,
    rules: Rules,
    /// Requests of any kind until a place is drawn; the ones before follow the last of their kind.
    run_left: i64,
    order: Order,
    rng: fastrand::Rng,
    /// Files whose requests begin anew, or have ended, where that is asked for.
    closed: Option<Vec<u32>>,
}

impl Places {
    /// The places of `job` in `regions`.
    #[must_use]
    pub fn new(job: &Job, regions: &[Region], seed: u64) -> Self {
        let rules = Rules::new(job);
        let files = regions.iter().map(|region| State::new(job, region, &rules));
        Self {
            files: files.collect(),
            rules,
            run_left: 1,
            order: Order::new(job, regions.len()),
            rng: fastrand::Rng::with_seed(seed),
            closed: job.file_operation().map(|_| Vec::new()),
        }
    }

    /// The files that the engine closes now, as fio does: each that has been worked through, and
    /// all when all begin anew. For engines that do something to files when they open them.
    pub fn closed(&mut self) -> impl Iterator<Item = u32> {
        self.closed.iter_mut().flat_map(|files| files.drain(..))
    }

    /// Begins anew, as if nothing had been visited.
    pub fn restart(&mut self) {
        self.order.restart();
        self.files.iter_mut().for_each(State::restart);
        if let Some(closed) = &mut self.closed {
            closed.clear();
            closed.extend(0..self.files.len() as u32);
        }
    }

    /// The next place for a request of this kind (an index as in `settings`); `None` when every
    /// file has been visited to its end.
    #[inline]
    pub fn next(&mut self, kind: usize) -> Option<Place> {
        let follows = self.follows();
        let mut file = self.order.next(&mut self.rng)?;
        loop {
            match self.files[file].next(kind, follows, &self.rules, &mut self.rng) {
                Some((offset, length)) => {
                    return Some(Place {
                        file: file as u32,
                        offset: self.files[file].start + offset,
                        length: length as u32,
                    });
                }
                None if self.goes_on_with(file) => {}
                None => file = self.order.next(&mut self.rng)?,
            }
        }
    }

    /// A file has no place left; whether it begins anew at once. As by fio, it does where time ends
    /// the job and places are random or of one file. Where some files have more requests than
    /// others, it begins anew when its turn comes. Other files wait until all have been worked
    /// through.
    #[cold]
    fn goes_on_with(&mut self, file: usize) -> bool {
        let uneven = self.order.is_uneven();
        let alone = self.rules.random || self.files.len() == 1;
        let begins_anew = uneven || (self.rules.time_based && alone);
        let begins_anew = begins_anew && self.files[file].was_used();
        let at_once = begins_anew && alone;
        if let Some(closed) = self.closed.as_mut().filter(|_| !at_once) {
            closed.push(file as u32);
        }
        match begins_anew {
            true => self.files[file].restart(),
            false => self.order.worked_through(),
        }
        at_once
    }

    /// Whether the next request of a random job follows the last one (`rw=randread:N`).
    #[inline]
    fn follows(&mut self) -> bool {
        if !self.rules.random {
            return false;
        }
        self.run_left -= 1;
        if self.run_left > 0 {
            return true;
        }
        self.run_left = self.rules.modifier.max(1);
        false
    }
}

impl Rules {
    fn new(job: &Job) -> Self {
        let unit = job.sizes.iter().map(|sizes| sizes.min.max(1)).min();
        let align = |kind: usize| match job.align_bytes[kind] {
            0 => job.sizes[kind].min.max(1),
            align => align,
        };
        Self {
            sizes: job.sizes.clone(),
            unit: unit.unwrap_or(1),
            align: [0, 1, 2].map(align),
            random: job.rw.random,
            random_percent: job.random_percent,
            modifier: job.rw.modifier,
            identical: job.identical,
            unaligned: job.unaligned,
            time_based: job.time_based,
        }
    }

    /// How many places of a kind there are in `range` bytes.
    #[inline]
    fn places(&self, kind: usize, range: u64) -> u64 {
        let (smallest, align) = (self.sizes[kind].min, self.align[kind]);
        range.saturating_sub(smallest.saturating_sub(align)) / align
    }

    /// A size of at most `room` bytes.
    #[inline]
    fn size(&self, kind: usize, room: u64, rng: &mut fastrand::Rng) -> Option<u64> {
        let sizes = &self.sizes[kind];
        if room < sizes.min {
            return None;
        }
        match sizes.min == sizes.max {
            true => Some(sizes.min),
            false => Some(self.drawn_size(sizes, room, rng)),
        }
    }

    /// One of several sizes that fit into `room`. They are multiples of the smallest one; what a
    /// range has above the last multiple counts for its largest size, all as by fio.
    fn drawn_size(&self, sizes: &Sizes, room: u64, rng: &mut fastrand::Rng) -> u64 {
        let smallest = sizes.min.max(1);
        let rounded = |size: u64| match self.unaligned {
            true => size,
            false => size / smallest * smallest,
        };
        if !sizes.split.is_empty() {
            return rounded(Self::size_of_split(sizes, room, rng)).max(smallest);
        }
        let drawn = match (room >= sizes.max, self.unaligned) {
            (true, _) => rng.u64(0..sizes.max),
            (false, true) => rng.u64(0..=room - sizes.min),
            (false, false) => rng.u64(0..rounded(room)),
        };
        rounded(sizes.min + drawn).min(sizes.max)
    }

    /// A size of a split that does not fit gives way to the next one that does, as by fio.
    fn size_of_split(sizes: &Sizes, room: u64, rng: &mut fastrand::Rng) -> u64 {
        loop {
            let drawn = rng.u8(0..100);
            let mut end = 0;
            let fits = sizes.split.iter().find(|(size, share)| {
                end += share;
                *share > 0 && drawn < end && *size <= room
            });
            if let Some((size, _)) = fits {
                return *size;
            }
            // None that may be drawn fits.
            if !sizes
                .split
                .iter()
                .any(|(size, share)| *share > 0 && *size <= room)
            {
                return sizes.min;
            }
        }
    }
}

impl State {
    fn new(job: &Job, region: &Region, rules: &Rules) -> Self {
        let zone = job.zones.range().map(|range| Zone {
            bytes: job.zones.bytes,
            range,
            skip: job.zones.skip_bytes,
            start: 0,
            used: 0,
        });
        let range = zone.map_or(region.length, |zone| zone.range.min(region.length));
        let can_be_mapped = job
            .distribution
            .iter()
            .all(|kind| matches!(kind, Distribution::Uniform | Distribution::Zoned(_)));
        let aligned = job.align_bytes.iter().any(|align| *align > 0);
        let wanted = !job.norandommap || job.lfsr;
        let mapped = job.rw.random && can_be_mapped && wanted && !aligned;
        let spread = |kind: usize| {
            let places = rules.places(kind, range).max(1);
            Spread::new(&job.distribution[kind], places)
        };
        Self {
            start: region.start,
            length: region.length,
            file_bytes: region.file_bytes,
            range,
            map: mapped.then(|| BlockMap::new(range / rules.unit)),
            spreads: [0, 1, 2].map(spread),
            next: [0; 3],
            last: [0; 3],
            zone,
        }
    }

    /// Begins anew, as if nothing had been visited.
    fn restart(&mut self) {
        self.next = [0; 3];
        if let Some(map) = &mut self.map {
            map.clear();
        }
    }

    /// Whether there was a place since it began.
    fn was_used(&self) -> bool {
        self.next != [0; 3]
    }

    #[inline]
    fn next(
        &mut self,
        kind: usize,
        follows: bool,
        rules: &Rules,
        rng: &mut fastrand::Rng,
    ) -> Option<(u64, u64)> {
        if self.zone.is_some() {
            self.enter_zone(kind, rules);
        }
        let (offset, drawn) = self.offset(kind, follows, rules, rng)?;
        let (base, end) = self.bounds();
        let mut length = rules.size(kind, end.checked_sub(offset)?, rng)?;
        if drawn && let Some(map) = &mut self.map {
            let unit = rules.sizes[kind].min.max(1);
            let blocks = take_run(map, (offset - base) / unit, length.div_ceil(unit));
            length = length.min(blocks * unit);
        }
        self.last[kind] = offset;
        self.next[kind] = offset + length;
        if let Some(zone) = &mut self.zone {
            zone.used += length;
        }
        Some((offset, length))
    }

    /// Where the next request begins, and whether its place was drawn, so that the map has it.
    #[inline]
    fn offset(
        &mut self,
        kind: usize,
        follows: bool,
        rules: &Rules,
        rng: &mut fastrand::Rng,
    ) -> Option<(u64, bool)> {
        if !rules.random {
            return Some((self.in_sequence(kind, rules.modifier)?, false));
        }
        if follows && rules.identical {
            return Some((self.last[kind], false));
        }
        let percent = rules.random_percent[kind];
        if follows || (percent < 100 && rng.u8(0..100) >= percent) {
            let offset = self.in_sequence(kind, 0);
            let offset = offset.or_else(|| self.at_random(kind, rules, rng))?;
            return Some((offset, false));
        }
        Some((self.at_random(kind, rules, rng)?, true))
    }

    /// What is worked on now, from the start of the region: all of it, or a zone.
    #[inline]
    fn bounds(&self) -> (u64, u64) {
        match &self.zone {
            None => (0, self.length),
            Some(zone) => (zone.start, zone.start + self.range),
        }
    }

    /// Goes to the next zone when enough has been transferred in this one, and to its beginning
    /// when its end is reached before; behind the last one comes the first.
    fn enter_zone(&mut self, kind: usize, rules: &Rules) {
        let Some(zone) = &mut self.zone else {
            return;
        };
        let smallest = rules.sizes[kind].min;
        if zone.used >= zone.bytes {
            zone.used = 0;
            zone.start = zone
                .start
                .saturating_add(zone.range)
                .saturating_add(zone.skip);
            if zone.start.saturating_add(smallest) > self.length {
                zone.start = 0;
            }
            self.next[kind] = zone.start;
            if let Some(map) = &mut self.map {
                map.clear();
            }
        }
        let end = zone.start.saturating_add(zone.range).min(self.length);
        let next = self.next[kind];
        if next < zone.start || next.saturating_add(smallest) > end {
            self.next[kind] = zone.start;
        }
        self.range = end - zone.start;
        if let Some(map) = &mut self.map
            && map.next_free(0).is_none()
        {
            map.clear();
        }
    }

    /// A place that the map does not have yet. Reads and writes of different sizes share the map,
    /// whose free blocks may lie behind the last place of a larger size: then there is none.
    #[inline]
    fn at_random(&self, kind: usize, rules: &Rules, rng: &mut fastrand::Rng) -> Option<u64> {
        let (base, end) = self.bounds();
        let places = rules.places(kind, self.range);
        if places == 0 {
            return None;
        }
        let mut place = self.spreads[kind].draw(rng, places);
        if let Some(map) = &self.map {
            place = map.next_free(place)?;
        }
        let offset = place.saturating_mul(rules.align[kind]).saturating_add(base);
        (offset < end).then_some(offset)
    }

    /// What follows the last request of its kind, or lies `modifier` bytes from there.
    #[inline]
    fn in_sequence(&self, kind: usize, modifier: i64) -> Option<u64> {
        let (base, end) = self.bounds();
        let mut offset = self.next[kind];
        if modifier != 0 {
            offset = match self.zone {
                None => self.stepped(offset, modifier)?,
                Some(_) if offset == base => base,
                Some(_) => within(offset, modifier, base..end)?,
            };
        }
        (offset < end).then_some(offset)
    }

    /// A step of `rw=read:SIZE` in a file, as by fio: past its end, gaps go on at the beginning,
    /// and steps back at the end. What a file has behind the region ends the steps forward there.
    fn stepped(&self, next: u64, modifier: i64) -> Option<u64> {
        if self.start.saturating_add(next) >= self.file_bytes {
            return None;
        }
        let end = self.length.min(self.file_bytes);
        let next = match next == 0 && self.start > 0 && modifier < 0 {
            true => end.saturating_sub(self.start),
            false => next,
        };
        match (next, modifier > 0) {
            (0, _) => Some(0),
            (next, true) => within(next, modifier, 0..self.file_bytes),
            (next, false) => {
                let back = next.checked_add_signed(modifier);
                back.or_else(|| end.checked_add_signed(modifier))
            }
        }
    }
}

/// `modifier` bytes from `offset`; outside of `bounds`, their begin, or as far from their end.
fn within(offset: u64, modifier: i64, bounds: Range<u64>) -> Option<u64> {
    let stepped = offset.checked_add_signed(modifier);
    match stepped.filter(|offset| bounds.contains(offset)) {
        Some(offset) => Some(offset),
        None if modifier > 0 => Some(bounds.start),
        None => bounds.end.checked_add_signed(modifier),
    }
}

/// Takes up to `wanted` free blocks from `first` on, up to the next one that is taken.
#[inline]
fn take_run(map: &mut BlockMap, first: u64, wanted: u64) -> u64 {
    let mut taken = 0;
    while taken < wanted && !map.is_taken(first + taken) {
        map.take(first + taken);
        taken += 1;
    }
    taken
}
