//! Where the next request goes: which file, which offset, how long.

use super::block_map::BlockMap;
use super::settings::{Distribution, Job, Sizes};
use super::spread::Spread;

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

struct State {
    start: u64,
    length: u64,
    blocks: u64,
    map: Option<BlockMap>,
    spreads: [Spread; 3],
    /// Where the sequence of each kind goes on, from the start of the region.
    next: [u64; 3],
}

/// The places of a job, one after the other.
pub struct Places {
    files: Vec<State>,
    sizes: [Sizes; 3],
    unit: u64,
    random: bool,
    modifier: i64,
    /// Requests that still follow the last one before a place is drawn.
    run_left: [i64; 3],
    turn: usize,
    rng: fastrand::Rng,
}

impl Places {
    /// The places of `job` in `regions`.
    #[must_use]
    pub fn new(job: &Job, regions: &[Region], seed: u64) -> Self {
        let unit = job.smallest_bytes().max(1);
        let uniform = job
            .distribution
            .iter()
            .all(|kind| *kind == Distribution::Uniform);
        let files = regions.iter().map(|region| {
            let blocks = region.length / unit;
            let mapped = job.rw.random && uniform && !job.norandommap;
            State {
                start: region.start,
                length: region.length,
                blocks,
                map: mapped.then(|| BlockMap::new(blocks)),
                spreads: [0, 1, 2].map(|kind| Spread::new(&job.distribution[kind], blocks.max(1))),
                next: [0; 3],
            }
        });
        Self {
            files: files.collect(),
            sizes: job.sizes.clone(),
            unit,
            random: job.rw.random,
            modifier: job.rw.modifier,
            run_left: [0; 3],
            turn: 0,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Begins anew, as if nothing had been visited.
    pub fn restart(&mut self) {
        for file in &mut self.files {
            file.next = [0; 3];
            if let Some(map) = &mut file.map {
                map.clear();
            }
        }
    }

    /// The next place for a request of this kind (an index as in `settings`); `None` when every
    /// file has been visited to its end.
    pub fn next(&mut self, kind: usize) -> Option<Place> {
        for _ in 0..self.files.len() {
            let file = self.turn;
            self.turn = (self.turn + 1) % self.files.len();
            let size = self.size(kind);
            if let Some((offset, length)) = self.in_file(file, kind, size) {
                return Some(Place {
                    file: file as u32,
                    offset: self.files[file].start + offset,
                    length: length as u32,
                });
            }
        }
        None
    }

    #[inline]
    fn size(&mut self, kind: usize) -> u64 {
        let sizes = &self.sizes[kind];
        if sizes.min == sizes.max {
            return sizes.min;
        }
        if sizes.split.is_empty() {
            let steps = (sizes.max - sizes.min) / self.unit;
            return sizes.min + self.rng.u64(0..=steps) * self.unit;
        }
        let mut at = self.rng.u8(0..100);
        for (size, share) in &sizes.split {
            if at < *share {
                return *size;
            }
            at -= share;
        }
        sizes.max
    }

    fn in_file(&mut self, index: usize, kind: usize, size: u64) -> Option<(u64, u64)> {
        if !self.random {
            return self.in_sequence(index, kind, size);
        }
        let follows = self.run_left[kind] > 0;
        let file = &mut self.files[index];
        if file.blocks == 0 {
            return None;
        }
        let block = if follows && file.next[kind] < file.blocks * self.unit {
            self.run_left[kind] -= 1;
            file.next[kind] / self.unit
        } else {
            self.run_left[kind] = (self.modifier - 1).max(0);
            file.spreads[kind].draw(&mut self.rng, file.blocks)
        };
        let (block, blocks) = match &mut file.map {
            None => (block, (size / self.unit).clamp(1, file.blocks - block)),
            Some(map) => {
                let block = map.next_free(block)?;
                let wanted = (size / self.unit).max(1);
                let mut taken = 0;
                while taken < wanted && !map.is_taken(block + taken) {
                    map.take(block + taken);
                    taken += 1;
                }
                (block, taken)
            }
        };
        let (offset, length) = (
            block * self.unit,
            (blocks * self.unit).min(size.max(self.unit)),
        );
        file.next[kind] = offset + length;
        Some((offset, length))
    }

    #[inline]
    fn in_sequence(&mut self, index: usize, kind: usize, size: u64) -> Option<(u64, u64)> {
        let file = &mut self.files[index];
        let offset = file.next[kind];
        // What is left at the end and smaller than the smallest request is left out, as by fio.
        let left = file.length.checked_sub(offset)?;
        let length = size.min(left / self.unit * self.unit);
        if length == 0 {
            return None;
        }
        file.next[kind] = (offset + length).saturating_add_signed(self.modifier);
        Some((offset, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Origin;
    use crate::options::Setting;
    use crate::options::apply;

    fn job(settings: &[(&str, &str)]) -> Job {
        let mut job = Job::new("test", Origin::Default);
        for (name, value) in settings {
            let setting = Setting {
                name: (*name).to_owned(),
                value: Some((*value).to_owned()),
                origin: Origin::Default,
            };
            apply(&mut job, &setting).unwrap();
        }
        job
    }

    fn regions(lengths: &[u64]) -> Vec<Region> {
        let region = |length: &u64| Region {
            name: "f".to_owned(),
            start: 1 << 20,
            length: *length,
        };
        lengths.iter().map(region).collect()
    }

    fn all(places: &mut Places, kind: usize) -> Vec<Place> {
        std::iter::from_fn(|| places.next(kind))
            .take(1 << 20)
            .collect()
    }

    #[test]
    fn a_sequence_covers_its_region_and_leaves_a_remainder_out() {
        let job = job(&[("rw", "read"), ("bs", "4k")]);
        let mut places = Places::new(&job, &regions(&[4096 * 3 + 100]), 1);
        let offsets: Vec<u64> = all(&mut places, 0)
            .iter()
            .map(|place| place.offset)
            .collect();
        let start = 1 << 20;
        assert_eq!(offsets, [start, start + 4096, start + 8192]);
        places.restart();
        assert_eq!(all(&mut places, 0).len(), 3);
    }

    #[test]
    fn random_places_visit_every_byte_once_whatever_the_sizes() {
        for sizes in [
            ("bs", "4k"),
            ("bsrange", "4k-64k"),
            ("bssplit", "4k/50:16k/30:64k/20"),
        ] {
            let job = job(&[("rw", "randread"), sizes]);
            let blocks = 1000_u64;
            let mut places = Places::new(&job, &regions(&[blocks * 4096]), 5);
            let mut seen = vec![0; blocks as usize];
            for place in all(&mut places, 0) {
                let first = (place.offset - (1 << 20)) / 4096;
                let count = u64::from(place.length) / 4096;
                (first..first + count).for_each(|block| seen[block as usize] += 1);
            }
            assert!(seen.iter().all(|seen| *seen == 1), "{sizes:?}");
        }
    }

    #[test]
    fn without_a_map_places_repeat_and_stay_inside() {
        let job = job(&[
            ("rw", "randread"),
            ("norandommap", "1"),
            ("bsrange", "4k-16k"),
        ]);
        let mut places = Places::new(&job, &regions(&[4096 * 10]), 5);
        for _ in 0..1000 {
            let place = places.next(0).unwrap();
            let end = place.offset + u64::from(place.length);
            assert!(place.offset >= 1 << 20 && end <= (1 << 20) + 40960);
        }
    }

    #[test]
    fn files_take_turns_and_the_modifier_makes_runs() {
        let job = job(&[("rw", "read"), ("bs", "4k")]);
        let mut places = Places::new(&job, &regions(&[8192, 8192]), 1);
        let files: Vec<u32> = all(&mut places, 0).iter().map(|place| place.file).collect();
        assert_eq!(files, [0, 1, 0, 1]);

        let job = self::job(&[("rw", "randread:4"), ("norandommap", "1"), ("bs", "4k")]);
        let mut places = Places::new(&job, &regions(&[4096 * 100_000]), 1);
        let offsets: Vec<u64> = (0..400).map(|_| places.next(0).unwrap().offset).collect();
        let follow = offsets
            .windows(2)
            .filter(|pair| pair[1] == pair[0] + 4096)
            .count();
        assert!((298..=305).contains(&follow), "{follow}");

        let job = self::job(&[("rw", "read:4k"), ("bs", "4k")]);
        let mut places = Places::new(&job, &regions(&[4096 * 4]), 1);
        let offsets: Vec<u64> = all(&mut places, 0)
            .iter()
            .map(|place| place.offset)
            .collect();
        assert_eq!(offsets, [1 << 20, (1 << 20) + 8192]);
    }
}
