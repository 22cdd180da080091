//! Where the next request goes: which file, which offset, how long.

mod drawn_files;
mod order;
mod simple;
#[cfg(test)]
mod tests;
mod zone;

use std::collections::TryReserveError;
use std::io;
use std::ops::Range;

use ugeom_load::block_map::BlockMap;
use ugeom_load::places::Below;

use super::draws::{Draws, Lfsr, Purpose, Seeds};
use super::spread::{Spread, ZetaSum, Zones};
use order::Order;
pub use simple::Simple;
use ugeom_job::error::JobError;
use ugeom_job::settings::{Job, READ, RandomGenerator, Sizes, TRIM, WRITE};
use zone::Zone;

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

/// The begin of a request that has not been made.
const NOWHERE: u64 = u64::MAX;

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

/// The source of random places of a file.
enum Source {
    /// Any block, again and again.
    Any,
    /// Each block once, by a map with one bit per block.
    Mapped(BlockMap),
    /// Each block once, without a map.
    Register(Lfsr),
    /// Blocks of a law.
    Law(Box<Spread>),
}

struct RegionState {
    start: u64,
    length: u64,
    file_bytes: u64,
    /// The range of random places, bytes: the whole region, or a zone.
    range: u64,
    source: Source,
    /// Where the last request of each kind ended, from the start of the region.
    next: [u64; 3],
    /// Where the last request of each kind began, from the start of the region; [`NOWHERE`] before
    /// the first.
    last: [u64; 3],
    zone: Option<Zone>,
}

/// Rules shared by all files.
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
    /// `bs_is_seq_rand`: sequential requests have the first size of `bs`, random ones the second.
    seq_rand_sizes: bool,
    time_based: bool,
    /// Sequential requests of a random job begin anew at the end of the region.
    repeats_sequences: bool,
    /// Files are worked through more than once, each time in the same order.
    repeats_passes: bool,
    /// Each trim of a file is followed by the write of its range.
    trim_then_write: bool,
    /// Zones of the places of each kind.
    zones: [Option<Zones>; 3],
}

/// The random numbers of a job's places, a sequence for each purpose.
struct Chance {
    offsets: Draws,
    zones: Draws,
    sizes: [Draws; 3],
    /// Whether a request follows the one before (`percentage_random`).
    sequential: [Draws; 3],
}

/// The places of a job, one after the other.
pub struct Places {
    files: Vec<RegionState>,
    rules: Rules,
    seeds: Seeds,
    chance: Chance,
    /// Requests of any kind until a place is drawn; the ones before follow the last of their kind.
    run_left: i64,
    /// Bytes transferred since the present zones began, in all files.
    zone_used: u64,
    order: Order,
    /// Files whose requests begin anew, or have ended, where that is asked for.
    closed: Option<Vec<u32>>,
}

impl Places {
    /// The places of `job` in `regions`.
    /// Fails where there is no memory for the map of those that were visited.
    pub fn new(job: &Job, regions: &[Region], seeds: &Seeds) -> Result<Self, JobError> {
        let rules = Rules::new(job, regions.len(), seeds);
        let zeta = &mut ZetaSum::default();
        let state = |region| RegionState::new(job, region, &rules, seeds, zeta);
        let files: Result<_, TryReserveError> = regions.iter().map(state).collect();
        let files = files.map_err(|error| {
            let message = "allocating the map of its blocks (norandommap needs none)";
            JobError::caused(&job.name, message.to_owned(), io::Error::other(error))
        })?;
        Ok(Self {
            files,
            rules,
            seeds: *seeds,
            chance: Chance::new(seeds),
            run_left: match job.rw.modifier {
                i64::MAX => i64::MAX,
                _ => 1,
            },
            zone_used: 0,
            order: Order::new(job, regions.len(), seeds),
            closed: job.file_operation().map(|_| Vec::new()),
        })
    }

    /// The files that the engine closes now, as fio does: each that has been worked through, and
    /// all when all begin anew. For engines that do something to files when they open them.
    pub fn closed(&mut self) -> impl Iterator<Item = u32> {
        self.closed.iter_mut().flat_map(|files| files.drain(..))
    }

    /// The source of offsets.
    pub fn offsets(&self) -> &Draws {
        &self.chance.offsets
    }

    /// Whether a map keeps places from coming twice.
    pub fn are_mapped(&self) -> bool {
        let mut files = self.files.iter();
        files.any(|file| matches!(file.source, Source::Mapped(_)))
    }

    /// Begins anew, as if nothing had been visited; with the same random numbers, where the job
    /// repeats them.
    pub fn restart(&mut self) {
        let repeated = self.seeds.repeats().then_some(&self.seeds);
        if let Some(seeds) = repeated {
            self.chance = Chance::new(seeds);
        }
        self.order.restart(repeated);
        self.zone_used = 0;
        for file in &mut self.files {
            if let Some(zone) = &mut file.zone {
                zone.start = 0;
            }
            file.restart();
        }
        if let Some(closed) = &mut self.closed {
            closed.clear();
            closed.extend(0..self.files.len() as u32);
        }
    }

    /// The next place, and the kind of its request (an index as in `settings`), which `choose` says
    /// for each file that is tried; `None` when every file has been visited to its end.
    #[inline]
    pub fn next(&mut self, choose: &mut impl FnMut() -> usize) -> Option<(usize, Place)> {
        loop {
            let file = self.order.next()?;
            let kind = match self.rules.trim_then_write {
                true => self.files[file].trim_or_write(),
                false => choose(),
            };
            let follows = self.follows();
            loop {
                if let Some(zone) = self.files[file].zone {
                    self.files[file].enter_zone(zone, kind, &mut self.zone_used);
                }
                let place = self.files[file].next(kind, follows, &self.rules, &mut self.chance);
                if let Some((offset, length)) = place {
                    self.zone_used = self.zone_used.wrapping_add(length);
                    let place = Place {
                        file: file as u32,
                        offset: self.files[file].start + offset,
                        length: length as u32,
                    };
                    return Some((kind, place));
                }
                if !self.goes_on_with(file, kind) {
                    break;
                }
            }
        }
    }

    /// The file of a request without a place, such as a sync, which takes its turn as by fio;
    /// `None` when every file has been visited to its end.
    pub fn next_file(&mut self) -> Option<u32> {
        self.order.next().map(|file| file as u32)
    }

    /// See [`Order::passed_over`].
    pub fn passed_over(&self) -> usize {
        self.order.passed_over()
    }

    /// A file has no place left; whether it begins anew at once. As by fio, it does where time ends
    /// the job and places are random or of one file. Where some files have more requests than
    /// others, it begins anew when its turn comes. Other files wait until all have been worked
    /// through.
    #[cold]
    fn goes_on_with(&mut self, file: usize, kind: usize) -> bool {
        let uneven = self.order.is_uneven();
        let alone = self.rules.random || self.files.len() == 1;
        let state = &self.files[file];
        let begins_anew = uneven || (self.rules.time_based && alone && state.zone.is_none());
        let was_used = match self.rules.random {
            true => state.next != [0; 3],
            false => state.next[kind] != 0,
        };
        let begins_anew = begins_anew && was_used;
        let at_once = begins_anew && alone;
        if let Some(closed) = self.closed.as_mut().filter(|_| !at_once) {
            closed.push(file as u32);
        }
        match begins_anew {
            // Each kind of sequential requests has its own place.
            true if at_once && !self.rules.random => self.files[file].next[kind] = 0,
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
    fn new(job: &Job, files: usize, seeds: &Seeds) -> Self {
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
            seq_rand_sizes: job.seq_rand_sizes,
            time_based: job.time_based,
            repeats_sequences: job.time_based && files == 1,
            repeats_passes: seeds.repeats() && (job.loops > 1 || job.io_size.is_some()),
            trim_then_write: job.rw.trim_then_write,
            zones: [0, 1, 2].map(|kind| Zones::of(&job.distribution[kind])),
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
    fn size(&self, kind: usize, room: u64, chance: &mut Chance) -> Option<u64> {
        let sizes = &self.sizes[kind];
        if room < sizes.min {
            return None;
        }
        match sizes.min == sizes.max {
            true => Some(sizes.min),
            false => Some(self.drawn_size(sizes, room, &mut chance.sizes[kind])),
        }
    }

    /// One of several sizes that fit into `room`. They are multiples of the smallest one; what a
    /// range has above its largest size counts for that, all as by fio.
    fn drawn_size(&self, sizes: &Sizes, room: u64, numbers: &mut Draws) -> u64 {
        let unit = if self.unaligned { 1 } else { sizes.min.max(1) };
        let can_fit = |(size, share): &(u64, u8)| *share > 0 && *size / unit * unit <= room;
        if !sizes.split.is_empty() && !sizes.split.iter().any(can_fit) {
            return sizes.min;
        }
        loop {
            let drawn = match sizes.split.is_empty() {
                true => sizes.min + numbers.below(sizes.max),
                false => Self::size_of_split(sizes, room, numbers),
            };
            let size = (drawn / unit * unit).min(sizes.max);
            if size <= room && size > 0 {
                return size;
            }
        }
    }

    /// A size of a split that does not fit gives way to the next one that does, and the last one
    /// to another number.
    fn size_of_split(sizes: &Sizes, room: u64, numbers: &mut Draws) -> u64 {
        let number = numbers.number();
        let percent = numbers.max() / 100;
        let mut end = 0;
        let mut last = sizes.min;
        for (size, share) in sizes.split.iter().filter(|(_, share)| *share > 0) {
            last = *size;
            end += u64::from(*share);
            if number / end <= percent && *size <= room {
                break;
            }
        }
        last
    }
}

impl RegionState {
    fn new(
        job: &Job,
        region: &Region,
        rules: &Rules,
        seeds: &Seeds,
        zeta: &mut ZetaSum,
    ) -> Result<Self, TryReserveError> {
        let zone = Zone::of(job);
        let range = zone.map_or(region.length, |zone| zone.range);
        Ok(Self {
            start: region.start,
            length: region.length,
            file_bytes: region.file_bytes,
            range,
            source: Source::new(job, region, rules, range, seeds, zeta)?,
            next: [0; 3],
            last: [NOWHERE; 3],
            zone,
        })
    }

    /// Begins anew, as if nothing had been visited.
    fn restart(&mut self) {
        self.next = [self.base(); 3];
        self.last = [NOWHERE; 3];
        self.source.restart();
    }

    /// Whether the next request of a job that writes what it trims is a trim: the last trim has
    /// been written.
    fn trim_or_write(&self) -> usize {
        match self.last[TRIM] == self.last[WRITE] {
            true => TRIM,
            false => WRITE,
        }
    }

    #[inline]
    fn next(
        &mut self,
        kind: usize,
        follows: bool,
        rules: &Rules,
        chance: &mut Chance,
    ) -> Option<(u64, u64)> {
        if rules.trim_then_write && rules.random && kind == WRITE {
            (self.last[WRITE], self.next[WRITE]) = (self.last[TRIM], self.next[TRIM]);
            return Some((self.last[TRIM], self.next[TRIM] - self.last[TRIM]));
        }
        let (offset, drawn) = self.offset(kind, follows, rules, chance)?;
        let sizes = match (rules.seq_rand_sizes, drawn) {
            (false, _) => kind,
            (true, false) => READ,
            (true, true) => WRITE,
        };
        let mut length = rules.size(sizes, self.length.checked_sub(offset)?, chance)?;
        let base = self.base();
        if drawn && let Source::Mapped(map) = &mut self.source {
            let unit = rules.sizes[kind].min.max(1);
            let blocks = take_run(map, (offset - base) / unit, length.div_ceil(unit));
            length = length.min(blocks * unit);
        }
        if rules.trim_then_write && rules.random && kind == TRIM && self.last[TRIM] == offset {
            // It is not the range that was written.
            self.last[WRITE] = NOWHERE;
        }
        self.last[kind] = offset;
        self.next[kind] = offset + length;
        Some((offset, length))
    }

    /// Where the next request begins, and whether its place was drawn, so that the map has it.
    #[inline]
    fn offset(
        &mut self,
        kind: usize,
        follows: bool,
        rules: &Rules,
        chance: &mut Chance,
    ) -> Option<(u64, bool)> {
        if !rules.random {
            return Some((self.in_sequence(kind, rules.modifier)?, false));
        }
        if follows && rules.identical {
            let last = self.last[kind];
            return Some((if last == NOWHERE { self.base() } else { last }, false));
        }
        let percent = rules.random_percent[kind];
        let sequential = &mut chance.sequential[kind];
        if follows || (percent < 100 && sequential.percentage() > percent) {
            return Some((self.following(kind, rules, chance)?, false));
        }
        Some((self.at_random(kind, rules, chance)?, true))
    }

    /// Where what is worked on now begins, from the start of the region: a zone, or the region.
    #[inline]
    fn base(&self) -> u64 {
        self.zone.map_or(0, |zone| zone.start)
    }

    /// A place that the map does not have yet. Where all have been visited, those of a job that
    /// time ends can be drawn again, as by fio.
    #[inline]
    fn at_random(&mut self, kind: usize, rules: &Rules, chance: &mut Chance) -> Option<u64> {
        let mut place = self.draw(kind, rules, chance);
        if place.is_none() && rules.time_based && self.zone.is_none() {
            self.restart();
            place = self.draw(kind, rules, chance);
        }
        let offset = place?
            .saturating_mul(rules.align[kind])
            .saturating_add(self.base());
        (offset < self.length).then_some(offset)
    }

    /// The number of a place that the map does not have yet. Reads and writes of different sizes
    /// share the map, whose free blocks may lie behind the last place of a larger size: then there
    /// is none.
    #[inline]
    fn draw(&mut self, kind: usize, rules: &Rules, chance: &mut Chance) -> Option<u64> {
        let places = rules.places(kind, self.range);
        if places == 0 {
            return None;
        }
        let (first, count) = match &rules.zones[kind] {
            None => (0, places),
            Some(zones) => zones.range(chance.zones.percentage(), places, rules.align[kind])?,
        };
        Some(first + self.source.draw(&mut chance.offsets, count)?)
    }

    /// The place after the last request of its kind in a random job. As by fio, a drawn one comes
    /// behind the end of the file, and none behind the end of a region in a longer file; one file
    /// begins anew where time ends the job.
    fn following(&mut self, kind: usize, rules: &Rules, chance: &mut Chance) -> Option<u64> {
        if rules.repeats_sequences && self.next[kind] >= self.length {
            self.next[kind] = self.base();
        }
        match self.start.saturating_add(self.next[kind]) < self.file_bytes {
            true => self.in_sequence(kind, 0),
            false => self.at_random(kind, rules, chance),
        }
    }

    /// The place after the last request of its kind, or `modifier` bytes from there.
    #[inline]
    fn in_sequence(&self, kind: usize, modifier: i64) -> Option<u64> {
        let mut offset = self.next[kind];
        if modifier != 0 {
            offset = self.stepped(offset, modifier)?;
        }
        (offset < self.length).then_some(offset)
    }

    /// A step of `rw=read:SIZE` in a file, as by fio: past its end, gaps go on at the beginning,
    /// and steps back at the end. The part of a file behind the region ends the steps forward
    /// there.
    fn stepped(&self, next: u64, modifier: i64) -> Option<u64> {
        if self.start.saturating_add(next) >= self.file_bytes {
            return None;
        }
        let base = self.base();
        let start = self.start + base;
        let end = self.length.min(self.file_bytes);
        let next = match next == base && start > 0 && modifier < 0 {
            true => end.saturating_sub(start),
            false => next - base,
        };
        let stepped = match (next, modifier > 0) {
            (0, _) => 0,
            (next, true) => within(next, modifier, 0..self.file_bytes)?,
            (next, false) => {
                let back = next.checked_add_signed(modifier);
                back.or_else(|| end.checked_add_signed(modifier))?
            }
        };
        Some(base.saturating_add(stepped))
    }
}

impl Chance {
    fn new(seeds: &Seeds) -> Self {
        let sequential = seeds.short(Purpose::Sequential);
        Self {
            offsets: seeds.draws(Purpose::Offsets),
            zones: seeds.short(Purpose::Zones),
            sizes: seeds.sizes(),
            sequential: [sequential.clone(), sequential.clone(), sequential],
        }
    }
}

impl Source {
    fn new(
        job: &Job,
        region: &Region,
        rules: &Rules,
        range: u64,
        seeds: &Seeds,
        zeta: &mut ZetaSum,
    ) -> Result<Self, TryReserveError> {
        // A law counts blocks of the smallest request of the kinds that the job has.
        let kinds = (0..3).filter(|kind| job.rw.does[*kind]);
        let block = kinds.map(|kind| job.sizes[kind].min.max(1)).min();
        let blocks = region.length.div_ceil(block.unwrap_or(1)).max(1);
        let seed = seeds.of_file(&region.name);
        if let Some(spread) = Spread::new(&job.distribution[0], blocks, seed, true, zeta) {
            return Ok(Self::Law(Box::new(spread)));
        }
        if !job.rw.random || !job.visits_once() {
            return Ok(Self::Any);
        }
        let blocks = range / rules.unit;
        Ok(match job.generator == RandomGenerator::Lfsr && blocks > 0 {
            true => Self::Register(Lfsr::new(blocks, seeds.seed(Purpose::Offsets))),
            false => Self::Mapped(BlockMap::try_new(blocks)?),
        })
    }

    /// All blocks can be drawn again.
    fn restart(&mut self) {
        match self {
            Self::Any | Self::Law(_) => {}
            Self::Mapped(map) => map.clear(),
            Self::Register(register) => register.restart(),
        }
    }

    /// A block below `blocks`; `None` where all have been drawn.
    #[inline]
    fn draw(&mut self, numbers: &mut Draws, blocks: u64) -> Option<u64> {
        match self {
            Self::Any => Some(numbers.below(blocks)),
            Self::Mapped(map) => map.next_free(numbers.below(blocks)),
            Self::Register(register) => register.next(),
            Self::Law(spread) => Some(spread.draw()),
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

/// Takes up to `wanted` free blocks from `first` on, up to the next one that is taken. As by fio, a
/// request may also reach into the part of a block at the end of a file.
#[inline]
fn take_run(map: &mut BlockMap, first: u64, wanted: u64) -> u64 {
    let mut taken = 0;
    while taken < wanted && !map.is_taken(first + taken) {
        map.take(first + taken);
        taken += 1;
    }
    if taken < wanted {
        taken += map.rest_of_word(first + taken).min(wanted - taken);
    }
    taken
}
