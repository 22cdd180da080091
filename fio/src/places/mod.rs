//! Where the next request goes: which file, which offset, how long.

mod order;
mod simple;
#[cfg(test)]
mod tests;

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
}

/// One place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of the region.
    pub file: u32,
    /// From the beginning of the file, bytes.
    pub offset: u64,
    /// Bytes.
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
    /// What random places are drawn from: all blocks, or those of a zone.
    blocks: u64,
    map: Option<BlockMap>,
    spreads: [Spread; 3],
    /// Where the sequence of each kind goes on, from the start of the region.
    next: [u64; 3],
    /// The last random place of each kind.
    last: [(u64, u64); 3],
    zone: Option<Zone>,
}

/// What all files have in common.
struct Rules {
    sizes: [Sizes; 3],
    unit: u64,
    /// Random places are multiples of this; 0: of the unit.
    align: [u64; 3],
    random: bool,
    random_percent: [u8; 3],
    modifier: i64,
    identical: bool,
    unaligned: bool,
}

/// The places of a job, one after the other.
pub struct Places {
    files: Vec<State>,
    rules: Rules,
    /// Requests that still follow the last one before a place is drawn.
    run_left: [i64; 3],
    order: Order,
    rng: fastrand::Rng,
}

impl Places {
    /// The places of `job` in `regions`.
    #[must_use]
    pub fn new(job: &Job, regions: &[Region], seed: u64) -> Self {
        let unit = job.smallest_bytes().max(1);
        let files = regions.iter().map(|region| State::new(job, region, unit));
        Self {
            files: files.collect(),
            rules: Rules {
                sizes: job.sizes.clone(),
                unit,
                align: job.align_bytes,
                random: job.rw.random,
                random_percent: job.random_percent,
                modifier: job.rw.modifier,
                identical: job.identical,
                unaligned: job.unaligned,
            },
            run_left: [0; 3],
            order: Order::new(job, regions.len()),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Begins anew, as if nothing had been visited.
    pub fn restart(&mut self) {
        self.order.restart();
        for file in &mut self.files {
            file.next = [0; 3];
            if let Some(map) = &mut file.map {
                map.clear();
            }
        }
    }

    /// The next place for a request of this kind (an index as in `settings`); `None` when every
    /// file has been visited to its end.
    #[inline]
    pub fn next(&mut self, kind: usize) -> Option<Place> {
        loop {
            let file = self.order.next(&mut self.rng)?;
            let size = self.rules.size(kind, &mut self.rng);
            let run_left = &mut self.run_left[kind];
            let place = self.files[file].next(kind, size, &self.rules, run_left, &mut self.rng);
            match place {
                Some((offset, length)) => {
                    return Some(Place {
                        file: file as u32,
                        offset: self.files[file].start + offset,
                        length: length as u32,
                    });
                }
                None => self.order.worked_through(),
            }
        }
    }
}

impl Rules {
    #[inline]
    fn size(&self, kind: usize, rng: &mut fastrand::Rng) -> u64 {
        let sizes = &self.sizes[kind];
        match sizes.min == sizes.max {
            true => sizes.min,
            false => self.size_within(kind, u64::MAX, rng),
        }
    }

    /// A size of at most `room` bytes, or the smallest. A size of a split that does not fit gives
    /// way to the next one that does, as by fio.
    fn size_within(&self, kind: usize, room: u64, rng: &mut fastrand::Rng) -> u64 {
        let sizes = &self.sizes[kind];
        if sizes.split.is_empty() {
            let step = if self.unaligned { 1 } else { self.unit };
            let steps = (sizes.max.min(room).saturating_sub(sizes.min)) / step;
            return sizes.min + rng.u64(0..=steps) * step;
        }
        if room < sizes.min {
            return sizes.min;
        }
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
    fn new(job: &Job, region: &Region, unit: u64) -> Self {
        let zone = job.zones.range().map(|range| Zone {
            bytes: job.zones.bytes,
            range,
            skip: job.zones.skip_bytes,
            start: 0,
            used: 0,
        });
        let drawn = zone.map_or(region.length, |zone| zone.range.min(region.length));
        let blocks = drawn / unit;
        let uniform = job
            .distribution
            .iter()
            .all(|kind| *kind == Distribution::Uniform);
        let mapped = job.rw.random && uniform && (!job.norandommap || job.lfsr);
        let spread = |kind: usize| {
            let blocks = drawn / job.align_bytes[kind].max(unit);
            Spread::new(&job.distribution[kind], blocks.max(1))
        };
        Self {
            start: region.start,
            length: region.length,
            blocks,
            map: mapped.then(|| BlockMap::new(blocks)),
            spreads: [0, 1, 2].map(spread),
            next: [0; 3],
            last: [(0, 0); 3],
            zone,
        }
    }

    #[inline]
    fn next(
        &mut self,
        kind: usize,
        size: u64,
        rules: &Rules,
        run_left: &mut i64,
        rng: &mut fastrand::Rng,
    ) -> Option<(u64, u64)> {
        if self.zone.is_some() {
            self.enter_zone(kind, rules);
        }
        let sequential = !rules.random
            || (rules.random_percent[kind] < 100
                && rng.u8(0..100) >= rules.random_percent[kind]
                && self.next[kind] < self.length);
        let place = if sequential {
            self.in_sequence(kind, size, rules, rng)
        } else {
            self.at_random(kind, size, rules, run_left, rng)
        }?;
        if let Some(zone) = &mut self.zone {
            zone.used += place.1;
        }
        Some(place)
    }

    /// Goes to the next zone when enough has been transferred in this one, and to its beginning
    /// when its end is reached before; behind the last one comes the first.
    fn enter_zone(&mut self, kind: usize, rules: &Rules) {
        let Some(zone) = &mut self.zone else {
            return;
        };
        if zone.used >= zone.bytes {
            zone.used = 0;
            zone.start = zone
                .start
                .saturating_add(zone.range)
                .saturating_add(zone.skip);
            if zone.start.saturating_add(rules.unit) > self.length {
                zone.start = 0;
            }
            self.next[kind] = zone.start;
            if let Some(map) = &mut self.map {
                map.clear();
            }
        }
        let end = zone.start.saturating_add(zone.range).min(self.length);
        let next = self.next[kind];
        if next < zone.start || next.saturating_add(rules.unit) > end {
            self.next[kind] = zone.start;
        }
        self.blocks = (end - zone.start) / rules.unit;
        if let Some(map) = &mut self.map
            && map.next_free(0).is_none()
        {
            map.clear();
        }
    }

    fn at_random(
        &mut self,
        kind: usize,
        size: u64,
        rules: &Rules,
        run_left: &mut i64,
        rng: &mut fastrand::Rng,
    ) -> Option<(u64, u64)> {
        let unit = rules.unit;
        let base = self.zone.map_or(0, |zone| zone.start);
        if self.blocks == 0 {
            return None;
        }
        let follows = *run_left > 0 && self.next[kind] < base + self.blocks * unit;
        if follows {
            *run_left -= 1;
            if rules.identical {
                return Some(self.last[kind]);
            }
        } else {
            *run_left = (rules.modifier - 1).max(0);
        }
        let align = rules.align[kind];
        if align > 0 {
            return self.aligned(kind, size, follows, align, rng);
        }
        let block = match follows {
            true => (self.next[kind] - base) / unit,
            false => self.spreads[kind].draw(rng, self.blocks),
        };
        let (block, blocks) = match &mut self.map {
            None => (block, (size / unit).clamp(1, self.blocks - block)),
            Some(map) => {
                // A zone at the end of a file may be shorter than others.
                let block = map.next_free(block).filter(|block| *block < self.blocks)?;
                let wanted = (size / unit).max(1);
                let mut taken = 0;
                while taken < wanted && block + taken < self.blocks && !map.is_taken(block + taken)
                {
                    map.take(block + taken);
                    taken += 1;
                }
                (block, taken)
            }
        };
        let offset = base + block * unit;
        let length = (blocks * unit).min(size.max(unit));
        self.next[kind] = offset + length;
        self.last[kind] = (offset, length);
        Some((offset, length))
    }

    /// With `blockalign`: there is no map, and sizes do not matter for the places.
    fn aligned(
        &mut self,
        kind: usize,
        size: u64,
        follows: bool,
        align: u64,
        rng: &mut fastrand::Rng,
    ) -> Option<(u64, u64)> {
        let zone = self.zone.map(|zone| (zone.start, zone.range));
        let (base, range) = zone.unwrap_or((0, self.length));
        let end = base.saturating_add(range).min(self.length);
        let drawn = base + self.spreads[kind].draw(rng, ((end - base) / align).max(1)) * align;
        let offset = if follows { self.next[kind] } else { drawn };
        let length = size.min(end.checked_sub(offset)?);
        self.next[kind] = (offset + length).next_multiple_of(align);
        self.last[kind] = (offset, length);
        (length > 0).then_some((offset, length))
    }

    #[inline]
    fn in_sequence(
        &mut self,
        kind: usize,
        mut size: u64,
        rules: &Rules,
        rng: &mut fastrand::Rng,
    ) -> Option<(u64, u64)> {
        let end = match &self.zone {
            None => self.length,
            Some(zone) => zone.start.saturating_add(zone.range).min(self.length),
        };
        let offset = self.next[kind];
        // What is left at the end and smaller than the smallest request is left out, as by fio.
        let left = end.checked_sub(offset)?;
        if size > left {
            size = rules.size_within(kind, left, rng);
        }
        let length = size.min(left / rules.unit * rules.unit);
        if length == 0 {
            return None;
        }
        self.next[kind] = (offset + length).saturating_add_signed(self.modifier(rules));
        Some((offset, length))
    }

    fn modifier(&self, rules: &Rules) -> i64 {
        if rules.random { 0 } else { rules.modifier }
    }
}
