//! The results of jobs: one entry for each job, or for each group with group_reporting.

use std::error::Error as _;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use ugeom_format::diskstats::Stat;
use ugeom_stack::LostAtTheEnd;

use super::steady::SteadyState;
use super::tally::Tally;
use super::worker::Trouble;
use ugeom_job::error::JobError;
use ugeom_job::settings::Job;

/// EINVAL, of a job that could not begin for a reason that no system call gave, as by fio.
const INVALID: i32 = 22;

/// The result of a job.
#[derive(Clone, Debug)]
pub struct JobOutcome {
    /// The job, as it was understood.
    pub job: Job,
    /// Its group: jobs that ran beside each other.
    pub group: u32,
    /// How many copies of it are counted here.
    pub jobs: u32,
    /// Requests, bytes and latencies of all copies together.
    pub tally: Tally,
    /// Why it ended early.
    pub trouble: Option<Trouble>,
    /// When it began, ms since 1970.
    pub begun_unix_ms: u64,
    /// When it ended, s since 1970.
    pub ended_unix_s: u64,
    /// The number of the thread or process.
    pub pid: u32,
    /// Whether it became steady, when it was to end then.
    pub steady: Option<SteadyState>,
}

impl JobOutcome {
    /// The error that ended the job; where none did, the first that it went on after, as by fio.
    pub fn errno(&self) -> i32 {
        let ended = self.trouble.as_ref().map(|trouble| trouble.errno);
        ended.unwrap_or(self.tally.first_error)
    }

    /// That of a job that could not begin.
    pub(crate) fn failed(job: &Job, group: u32, error: &JobError) -> Self {
        let source = error.source().and_then(|it| it.downcast_ref::<io::Error>());
        // fio fails such a job without a number.
        let fallback = match error {
            JobError::NoRoom { .. } => 0,
            _ => INVALID,
        };
        let errno = source.and_then(io::Error::raw_os_error);
        let message = error.to_string();
        // The name of the job stands before it in any case.
        let own = message.strip_prefix(&format!("{}: ", job.name));
        Self {
            trouble: Some(Trouble {
                errno: errno.unwrap_or(fallback),
                message: own.unwrap_or(&message).to_owned(),
            }),
            ..Self::not_begun(job, group)
        }
    }

    /// That of a job that waited for others when `exitall` ended all.
    pub(crate) fn not_begun(job: &Job, group: u32) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_1970 = since_1970.unwrap_or_default();
        Self {
            job: job.clone(),
            group,
            jobs: 1,
            tally: Tally::default(),
            trouble: None,
            begun_unix_ms: since_1970.as_millis() as u64,
            ended_unix_s: since_1970.as_secs(),
            pid: 0,
            steady: None,
        }
    }
}

/// The load of a block device below the jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskOutcome {
    /// Name of the disk in /proc/diskstats.
    pub name: String,
    /// Its counters when the group began.
    pub before: Stat,
    /// Its counters when the group ended.
    pub after: Stat,
    /// Time between the two, milliseconds.
    pub elapsed_ms: u64,
}

/// How idle the processors were while jobs ran, percent (`--idle-prof`).
#[derive(Clone, Debug, PartialEq)]
pub struct Idleness {
    /// All of them together.
    pub system: f64,
    /// Each one; none where it was not asked for.
    pub cores: Vec<f64>,
}

/// The results of all jobs.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The jobs, in order.
    pub jobs: Vec<JobOutcome>,
    /// The block devices below the files of the jobs.
    pub disks: Vec<DiskOutcome>,
    /// How idle the processors were, if that was asked for.
    pub idleness: Option<Idleness>,
    /// Data that stacks accepted and lost, found when the last handle was closed.
    pub lost: Vec<LostAtTheEnd>,
    /// Settings without effect and the like, in words, for the JSON output.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// Bytes and requests of all jobs, reads and writes and trims.
    pub fn totals(&self) -> (u64, u64) {
        let sides = self.jobs.iter().flat_map(|job| &job.tally.sides);
        sides.fold((0, 0), |(bytes, requests), side| {
            (bytes + side.bytes, requests + side.requests)
        })
    }

    /// The jobs of each group that asks for it become one.
    #[must_use]
    pub fn grouped(mut self) -> Self {
        let mut jobs: Vec<JobOutcome> = Vec::new();
        for job in self.jobs {
            let group = jobs.iter_mut().find(|other| {
                other.group == job.group && other.job.group_reporting && job.job.group_reporting
            });
            match group {
                None => jobs.push(job),
                Some(group) => {
                    // As by fio, the options are those of the last, under the name of the first.
                    let Job {
                        name, description, ..
                    } = std::mem::replace(&mut group.job, job.job);
                    group.job = Job {
                        name,
                        description,
                        ..std::mem::take(&mut group.job)
                    };
                    group.jobs += job.jobs;
                    group.tally.merge(&job.tally);
                    group.trouble = group.trouble.take().or(job.trouble);
                    group.ended_unix_s = group.ended_unix_s.max(job.ended_unix_s);
                }
            }
        }
        self.jobs = jobs;
        self
    }
}

/// The load of a disk between two readings of its counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskCounts {
    /// Reads and writes that were completed.
    pub ios: [u64; 2],
    /// Those that were merged into others.
    pub merges: [u64; 2],
    /// Their time, added up, ms.
    pub ticks_ms: [u64; 2],
    /// The time of all requests, added up, ms.
    pub queue_ms: u64,
    /// The share of the time in which there was something to do, percent.
    pub util: f64,
}

impl DiskOutcome {
    /// The counts between the two readings.
    pub fn counts(&self) -> DiskCounts {
        let (before, after) = (&self.before, &self.after);
        let pair = |of: fn(&ugeom_format::diskstats::Requests) -> u64| {
            [
                of(&after.reads).saturating_sub(of(&before.reads)),
                of(&after.writes).saturating_sub(of(&before.writes)),
            ]
        };
        let busy_ms = after.busy_ms.saturating_sub(before.busy_ms);
        DiskCounts {
            ios: pair(|requests| requests.completed),
            merges: pair(|requests| requests.merged),
            ticks_ms: pair(|requests| requests.time_ms),
            queue_ms: after.queue_ms.saturating_sub(before.queue_ms),
            util: (100.0 * busy_ms as f64 / self.elapsed_ms.max(1) as f64).min(100.0),
        }
    }
}
