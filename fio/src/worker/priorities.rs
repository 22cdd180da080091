//! Which I/O priority a request has: `cmdprio_percentage` and `cmdprio_bssplit`.

use ugeom_load::door::{Kind, Request};
use ugeom_load::places::Below as _;

use super::super::draws::{Draws, Purpose, Seeds};
use ugeom_job::settings::Job;

/// Draws the priorities of a job.
pub struct Drawn<'a> {
    job: &'a Job,
    numbers: Draws,
}

/// The class and the level as one number, as ioprio_set(2) has it.
fn priority(class: u8, level: u8) -> u16 {
    u16::from(class) << 13 | u16::from(level)
}

impl<'a> Drawn<'a> {
    /// Those of a job; `None` where all requests have that of the thread.
    pub fn of(job: &'a Job, seeds: &Seeds) -> Option<Self> {
        let has = matches!(job.ioengine.as_str(), "io_uring" | "libaio") && job.priorities.any();
        has.then(|| Self {
            job,
            numbers: seeds.short(Purpose::Priorities),
        })
    }

    /// The priority of a request; 0 is that of the thread.
    pub fn draw(&mut self, request: &Request) -> u16 {
        let kind = match request.kind {
            Kind::Read => 0,
            Kind::Write => 1,
            Kind::Trim | Kind::DataSync | Kind::Sync => return 0,
        };
        let priorities = &self.job.priorities;
        let usual = priority(priorities.class[kind], priorities.level[kind]);
        let drawn = self.numbers.below(100) as u8;
        if drawn < priorities.percent[kind] {
            return usual;
        }
        let mut below = 0;
        let split = priorities.split[kind].iter();
        for share in split.filter(|share| share.bytes == u64::from(request.length)) {
            below += share.percent;
            if drawn < below {
                return share
                    .priority
                    .map_or(usual, |(class, level)| priority(class, level));
            }
        }
        0
    }
}
