//! Which parts of files have requests in flight, in coarse steps: it tells at once that a request
//! overlaps none of them, where looking at each of them would take long.

use ugeom_job::settings::Job;
use ugeom_load::door::Request;

/// Fewer requests in flight are looked at one by one.
const SLOTS_MIN: u32 = 32;
/// Counters for each request in flight. Two granules may share one.
const COUNTERS: usize = 8;

/// Counts of the requests in flight, by granule. Requests with bytes in common share a granule.
pub struct Granules {
    counts: Vec<u32>,
    /// The size of a granule as a power of two: no less than the largest request.
    shift: u32,
}

impl Granules {
    /// For a job with so many requests in flight; `None` where they are few.
    pub fn of(job: &Job, slots: u32) -> Option<Self> {
        let counters = (slots as usize * COUNTERS).next_power_of_two();
        (slots >= SLOTS_MIN).then(|| Self {
            counts: vec![0; counters],
            shift: (job.largest_bytes().max(512))
                .next_power_of_two()
                .trailing_zeros(),
        })
    }

    /// The counters of a request; none of a sync.
    fn places(&self, request: &Request) -> impl Iterator<Item = usize> + use<> {
        let end = request.offset + u64::from(request.length);
        let granules = match request.length {
            0 => 0..0,
            _ => request.offset >> self.shift..((end - 1) >> self.shift) + 1,
        };
        let (file, bits) = (u64::from(request.file), self.counts.len().trailing_zeros());
        granules.map(move |granule| {
            // Fibonacci hashing.
            let mixed = (granule ^ file << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> (u64::BITS - bits)) as usize
        })
    }

    /// A request is in flight.
    #[inline]
    pub fn enter(&mut self, request: &Request) {
        for place in self.places(request) {
            self.counts[place] += 1;
        }
    }

    /// It has ended.
    #[inline]
    pub fn leave(&mut self, request: &Request) {
        for place in self.places(request) {
            self.counts[place] -= 1;
        }
    }

    /// Nothing is in flight any more.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// True where nothing in flight overlaps the request. Something may where it is false.
    #[inline]
    pub fn are_free(&self, request: &Request) -> bool {
        self.places(request).all(|place| self.counts[place] == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::conditions::overlap;
    use super::*;
    use ugeom_load::door::Kind;

    #[test]
    fn what_overlaps_is_never_missed() {
        let mut granules = Granules {
            counts: vec![0; 64],
            shift: 14,
        };
        let mut rng = fastrand::Rng::with_seed(7);
        let mut flying: Vec<Request> = Vec::new();
        let (mut free, mut missed) = (0, 0);
        for _ in 0..20_000 {
            let request = Request {
                kind: Kind::Write,
                file: rng.u32(0..2),
                offset: rng.u64(0..2_000) * 512,
                length: rng.u32(1..33) * 512,
            };
            if granules.are_free(&request) {
                free += 1;
                let hit = |other: &Request| overlap(other, &request);
                missed += u32::from(flying.iter().any(hit));
            }
            granules.enter(&request);
            flying.push(request);
            if flying.len() == 8 {
                granules.leave(&flying.swap_remove(rng.usize(0..8)));
            }
        }
        assert_eq!(missed, 0);
        assert!(free > 5_000, "{free}");
        flying.iter().for_each(|request| granules.leave(request));
        assert!(granules.counts.iter().all(|count| *count == 0));
    }
}
