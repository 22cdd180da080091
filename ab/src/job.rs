//! Runs a job file as it stands, and takes the time of one request for its result.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_fio::{Meaning, Outcome, Progress, Watcher};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, Length, RunResult, Work};
use ugeom_job::{Job, JobError};
use ugeom_measure::Histogram;

/// The job files of a comparison, and what their jobs may do.
pub struct Jobs<'a> {
    /// The jobs of each file, by the text of its side.
    pub files: BTreeMap<String, Vec<Job>>,
    /// Asked before a job writes to a target: an error forbids it.
    pub may_write: &'a dyn Fn(&Meaning) -> Result<(), String>,
    /// Takes the warnings about the jobs, once.
    pub note: &'a dyn Fn(&str),
}

impl Jobs<'static> {
    /// For sides that are no job files.
    pub fn none() -> Self {
        Self {
            files: BTreeMap::new(),
            may_write: &|_| Err("nothing may be written".to_owned()),
            note: &|_| (),
        }
    }
}

/// The case that runs a job file; an iteration is one request of its jobs, a run is one of the
/// file.
///
/// # Errors
/// [`HarnessError::Compare`] when the file was not read.
pub(super) fn case<'a>(
    name: &str,
    path: &str,
    jobs: &'a Jobs<'a>,
    cancelled: &'a AtomicBool,
) -> Result<Case<'a>, HarnessError> {
    let file = file(path, jobs)?;
    let path = path.to_owned();
    // The uncounted run that loads code and data was that of the whole comparison: `first`.
    let mut runs = 0_u32;
    // One run of the file is asked for, and it counts the requests itself.
    let (warm_up, iterations) = (0, 1);
    let run = move |_: u64| {
        runs += 1;
        if runs == 1 {
            return Ok(RunResult::taking(1));
        }
        once(file, &path, jobs, false, cancelled)
    };
    Ok(Case::new(name, run).with_length(Length::Exactly {
        warm_up,
        iterations,
    }))
}

/// A first run, which is not counted, makes missing files and finds errors.
///
/// # Errors
/// [`HarnessError::Subject`] when a job cannot be run, fails, or makes no request.
pub(super) fn first(
    path: &str,
    jobs: &Jobs<'_>,
    cancelled: &AtomicBool,
) -> Result<(), HarnessError> {
    once(file(path, jobs)?, path, jobs, true, cancelled).map(drop)
}

fn file<'a>(path: &str, jobs: &'a Jobs<'_>) -> Result<&'a [Job], HarnessError> {
    let found = jobs.files.get(path).map(Vec::as_slice);
    found.ok_or_else(|| HarnessError::Compare(format!("{path}: no job file was read")))
}

fn once(
    file: &[Job],
    path: &str,
    jobs: &Jobs<'_>,
    tells: bool,
    cancelled: &AtomicBool,
) -> Result<RunResult, HarnessError> {
    let mut watch = Watch {
        jobs,
        tells,
        cancelled,
    };
    let outcome = ugeom_fio::run(file, &mut watch).map_err(HarnessError::subject)?;
    let stopped = cancelled.load(Ordering::Relaxed);
    result(path, &outcome, stopped).map_err(HarnessError::subject)
}

/// The requests, and how long the jobs made them.
fn result(path: &str, outcome: &Outcome, cancelled: bool) -> Result<RunResult, JobError> {
    for job in &outcome.jobs {
        if let Some(trouble) = &job.trouble {
            return Err(JobError::target(&job.job.name, trouble.message.clone()));
        }
    }
    if let Some(lost) = outcome.lost.first() {
        return Err(lost.clone().into());
    }
    let (bytes, requests) = outcome.totals();
    if requests == 0 && !cancelled {
        return Err(JobError::target(path, "its jobs submitted no request"));
    }
    let mut latency = Histogram::new();
    for side in outcome.jobs.iter().flat_map(|job| &job.tally.sides) {
        latency.merge(&side.lat);
    }
    let mut work = Work::of(bytes, requests);
    work.latency = (latency.count() > 0).then(|| Box::new(latency));
    let result = RunResult::taking(working_ns(outcome)).doing(work);
    Ok(result.counting(requests.max(1)))
}

/// How long jobs worked: of those that ran beside each other the longest time, and what waited for
/// others comes on top. The time to open targets and to make files is not in it.
fn working_ns(outcome: &Outcome) -> u64 {
    let (mut total_ns, mut wave_ns, mut group) = (0, 0, 0);
    for one in &outcome.jobs {
        if one.job.stonewall && one.group != group {
            total_ns += wave_ns;
            wave_ns = 0;
        }
        group = one.group;
        wave_ns = one.tally.elapsed_ns.max(wave_ns);
    }
    (total_ns + wave_ns).max(1)
}

/// Lets the user stop the jobs, and keeps them from writing where they must not.
struct Watch<'a> {
    jobs: &'a Jobs<'a>,
    /// In the first run only: the others say the same.
    tells: bool,
    cancelled: &'a AtomicBool,
}

impl Watcher for Watch<'_> {
    fn note(&mut self, text: &str) {
        if self.tells {
            (self.jobs.note)(text);
        }
    }

    fn laying_out(&mut self, job: &str, files: usize, bytes: u64) {
        let s = if files == 1 { "" } else { "s" };
        self.note(&format!("{job}: making {files} file{s}, {bytes} bytes"));
    }

    fn progress(&mut self, _: &Progress<'_>) {}

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn may_write(&mut self, target: &Meaning) -> Result<(), String> {
        (self.jobs.may_write)(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_fio::{JobOutcome, tally::Tally};

    fn outcome(parts: &[(u32, bool, u64)]) -> Outcome {
        let one = |&(group, stonewall, elapsed_ns): &(u32, bool, u64)| {
            let mut job = Job::new("job", ugeom_job::Origin::Default);
            job.stonewall = stonewall;
            let mut tally = Tally {
                elapsed_ns,
                ..Tally::default()
            };
            tally.sides[0].requests = 10;
            tally.sides[0].bytes = 5120;
            tally.sides[0].lat.record_many(7, 10);
            JobOutcome {
                job,
                group,
                jobs: 1,
                tally,
                trouble: None,
                begun_unix_ms: 0,
                ended_unix_s: 0,
                pid: 0,
                steady: None,
            }
        };
        Outcome {
            jobs: parts.iter().map(one).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn jobs_beside_each_other_count_once_and_those_that_wait_on_top() {
        for (parts, ns) in [
            (&[(0, false, 50)][..], 50),
            (&[(0, false, 50), (0, false, 70)], 70),
            (&[(0, true, 50), (1, true, 70)], 120),
            (&[(0, false, 50), (1, false, 70)], 70),
            // Two copies of each job, the second behind a wall.
            (
                &[(0, false, 50), (0, false, 60), (1, true, 30), (1, true, 40)],
                100,
            ),
        ] {
            assert_eq!(working_ns(&outcome(parts)), ns, "{parts:?}");
        }
    }

    #[test]
    fn a_run_counts_its_requests_and_their_times() {
        let run = result("a.fio", &outcome(&[(0, false, 50), (0, false, 70)]), false).unwrap();
        assert_eq!((run.ns_total, run.counted), (70, Some(20)));
        assert_eq!((run.work.bytes, run.work.transactions), (10_240, 20));
        assert_eq!(run.work.latency.unwrap().count(), 20);
        let nothing = result("a.fio", &Outcome::default(), false).unwrap_err();
        assert_eq!(nothing.to_string(), "a.fio: its jobs submitted no request");
        assert!(result("a.fio", &Outcome::default(), true).is_ok());
    }
}
