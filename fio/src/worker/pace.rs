//! When the next request is due: rates, and pauses to think.

use ugeom_machine::clock;

use ugeom_job::settings::{Job, READ, WRITE};

const SECOND_NS: f64 = 1e9;

/// The schedule of the requests of each kind.
pub struct Pace {
    kinds: [Option<Schedule>; 3],
    poisson: bool,
    rng: fastrand::Rng,
}

struct Schedule {
    /// ns for each byte, or for each request.
    each_ns: f64,
    per_byte: bool,
    /// When the next one is due: ticks, and what does not make a whole one.
    due_ticks: f64,
    ticks_per_ns: f64,
}

impl Pace {
    /// The pace of a job; `None` when nothing holds it back.
    pub fn new(job: &Job, seed: u64) -> Option<Self> {
        let ticks_per_ns = clock::ns_to_ticks(1 << 30) as f64 / f64::from(1 << 30);
        let kinds = [0, 1, 2].map(|kind| {
            let per_byte = job.rate_iops[kind] == 0;
            let rate = if per_byte {
                job.rate[kind]
            } else {
                job.rate_iops[kind]
            };
            (rate > 0 && job.rw.does[kind]).then(|| Schedule {
                each_ns: SECOND_NS / rate as f64,
                per_byte,
                due_ticks: 0.0,
                ticks_per_ns,
            })
        });
        kinds.iter().any(Option::is_some).then(|| Self {
            kinds,
            poisson: job.rate_poisson,
            rng: fastrand::Rng::with_seed(seed),
        })
    }

    /// The first requests are due now.
    pub fn start(&mut self, now_ticks: u64) {
        for schedule in self.kinds.iter_mut().flatten() {
            schedule.due_ticks = now_ticks as f64;
        }
    }

    /// When the next request of this kind is due; `None`: whenever it can be made.
    pub fn due(&self, kind: usize) -> Option<u64> {
        self.kinds[kind]
            .as_ref()
            .map(|schedule| schedule.due_ticks as u64)
    }

    /// The kind that was drawn, reads or writes; the other one while requests of the drawn kind are
    /// ahead of their rate and one of the other kind is due before.
    pub fn earlier(&self, drawn: usize) -> usize {
        let other = match drawn {
            READ => WRITE,
            _ => READ,
        };
        let Some(due) = self.due(drawn).filter(|due| *due > clock::ticks()) else {
            return drawn;
        };
        match self.due(other).is_none_or(|before| before < due) {
            true => other,
            false => drawn,
        }
    }

    /// A request of this kind has been made.
    pub fn made(&mut self, kind: usize, bytes: u32) {
        let Some(schedule) = &mut self.kinds[kind] else {
            return;
        };
        let units = if schedule.per_byte {
            f64::from(bytes)
        } else {
            1.0
        };
        let mut ns = schedule.each_ns * units;
        if self.poisson {
            // Exponential gaps: the inverse of the distribution function at a random place.
            ns *= -(1.0 - self.rng.f64()).ln();
        }
        schedule.due_ticks += ns * schedule.ticks_per_ns;
    }
}
