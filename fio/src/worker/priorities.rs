//! The I/O priority of a request: `cmdprio_percentage` and `cmdprio_bssplit`.

use ugeom_load::door::{Kind, Request};
use ugeom_load::places::Below as _;
use ugeom_machine::io_priority::io_priority;

use super::super::draws::{Draws, Purpose, Seeds};
use super::super::tally::Tally;
use ugeom_job::settings::Job;

/// The priority of the job's thread, 0 where the job sets none.
pub fn of_thread(job: &Job) -> u16 {
    job.io_priority
        .map_or(0, |(class, level)| io_priority(class, level))
}

/// Sorts the counts of priorities into the order of fio: the priority of the thread first, the
/// others as the job lists them for its sizes.
pub fn sort(job: &Job, tally: &mut Tally) {
    let priorities = &job.priorities;
    for (kind, side) in tally.sides.iter_mut().enumerate().take(2) {
        let chosen = (priorities.class[kind], priorities.level[kind]);
        let mut shares: Vec<_> = priorities.split[kind].iter().collect();
        shares.sort_by_key(|share| share.bytes);
        let shares = shares.iter().map(|share| share.priority.unwrap_or(chosen));
        let others = shares.chain([chosen]);
        let others = others.map(|(class, level)| io_priority(class, level));
        let order: Vec<u16> = std::iter::once(of_thread(job)).chain(others).collect();
        let rank = |priority: u16| order.iter().position(|listed| *listed == priority);
        side.by_priority
            .sort_by_key(|(priority, _)| rank(*priority));
    }
}

/// Draws the priorities of a job.
pub struct Drawn<'a> {
    job: &'a Job,
    /// The priority of the thread.
    usual: u16,
    numbers: Draws,
}

impl<'a> Drawn<'a> {
    /// Those of a job; `None` where all requests have that of the thread.
    pub fn of(job: &'a Job, seeds: &Seeds) -> Option<Self> {
        let has = matches!(job.ioengine.as_str(), "io_uring" | "libaio") && job.priorities.any();
        has.then(|| Self {
            job,
            usual: of_thread(job),
            numbers: seeds.short(Purpose::Priorities),
        })
    }

    /// The priority of a request.
    pub fn draw(&mut self, request: &Request) -> u16 {
        let kind = match request.kind {
            Kind::Read => 0,
            Kind::Write => 1,
            Kind::Trim | Kind::DataSync | Kind::Sync => return self.usual,
        };
        let priorities = &self.job.priorities;
        let chosen = io_priority(priorities.class[kind], priorities.level[kind]);
        let drawn = self.numbers.below(100) as u8;
        if drawn < priorities.percent[kind] {
            return chosen;
        }
        let mut below = 0;
        let split = priorities.split[kind].iter();
        for share in split.filter(|share| share.bytes == u64::from(request.length)) {
            below += share.percent;
            if drawn < below {
                return share
                    .priority
                    .map_or(chosen, |(class, level)| io_priority(class, level));
            }
        }
        self.usual
    }
}
