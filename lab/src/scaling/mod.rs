//! `ugeom lab scaling`: how does the machinery scale with workers, and which knob buys what? The
//! measurement of GEOM's limits with `gzero`, repeated on this machine.
//!
//! A ladder of knobs, each added to the one before, from GEOM's way (two threads that carry every
//! request, locks around devices and buffers, every request timed) to this program's; then each
//! knob taken away from the end. Requests are those of raidtest on `zero:clear=0`, which touches no
//! data, so that nothing but the machinery is measured.

mod findings;
mod knobs;
pub mod published;
mod report;
mod subject;
#[cfg(test)]
mod tests;

use knobs::Setting;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use ugeom_classes::open_target;
use ugeom_experiment::{Common, Experiment, Process};
use ugeom_format::raidtest::{RaidtestKind, Request, Shape};
use ugeom_harness::HarnessError;
use ugeom_harness::{self as harness, Case};
use ugeom_load::cases::{self, Sums};
use ugeom_load::start::Cores;
use ugeom_load::{self as load, Load, LoadJob, Pattern};
use ugeom_stack::{ProviderId, Stack};

pub use findings::{Judgement, Step, compute, judge};
pub use knobs::Knob;
pub use report::report;
pub(crate) use subject::case_name;
pub use subject::{Document, EXPERIMENT, Subject};

/// The user's options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingOptions {
    /// The columns: how many workers; none for 1, as many as there are cores, 4, 8 and 16.
    pub workers: Vec<u64>,
    /// The seed of the list of requests, the same in all processes.
    pub requests_seed: u64,
    /// Time budget, seed and processes, as for every experiment.
    pub common: Common,
}

/// The most workers that can be asked for; each is a thread.
pub const WORKERS_MAX: u64 = 256;

/// The measured target: a device that touches no data.
const TARGET: &str = "zero:clear=0";

/// The size of the published device, gzero: 1 EiB.
const MEDIA_BYTES: u64 = 1 << 60;

/// How many requests the list has. 64 KiB of them, so that reading the list costs no more than a
/// cache that every core has.
const REQUESTS: u64 = 4096;

/// The columns that are measured when nothing else is said, beside the number of cores.
const WORKERS: [u64; 4] = [1, 4, 8, 16];

/// `lab scaling`: IOPS with several workers, knob by knob.
pub struct Scaling;

impl Experiment for Scaling {
    const NAME: &'static str = EXPERIMENT;
    const ROUNDS: u64 = 5;
    const COMPUTE: fn(&mut Document) = compute;
    const PAGE: fn(&Document) -> ugeom_report::Page = report;
    type Options = ScalingOptions;
    type Subject = Subject;
    type Prepared = ();

    fn common(options: &mut ScalingOptions) -> &mut Common {
        &mut options.common
    }

    fn prepare(
        options: &mut ScalingOptions,
        seed: u64,
        _: &AtomicBool,
    ) -> Result<(), HarnessError> {
        options.requests_seed = seed;
        Ok(())
    }

    fn measure(
        options: &ScalingOptions,
        process: Process<'_, '_>,
    ) -> Result<Document, HarnessError> {
        let host = process.host();
        let (mut cases, subject) = matrix(options, host.cores_allowed, options.requests_seed)?;
        let settings = process.settings();
        let measured = harness::run(&mut cases, &settings, process.meter, process.control)?;
        Ok(Document::new(EXPERIMENT, host, settings, subject, measured))
    }
}

/// The columns, in order, without doubles.
fn columns(asked: &[u64], cores: u64) -> Vec<u64> {
    let mut columns = match asked {
        [] => WORKERS.to_vec(),
        asked => asked.to_vec(),
    };
    // Goals are judged with as many workers as cores, against one.
    columns.extend([1, cores]);
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Requests as raidtest makes them up.
fn requests(seed: u64, kind: Option<RaidtestKind>) -> Result<Pattern, HarnessError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let shape = Shape {
        media_bytes: MEDIA_BYTES,
        sector_bytes: 512,
        kind,
    };
    let made = shape.requests(|below| random.u64(0..below));
    let made = made.map_err(|error| HarnessError::Load {
        job: EXPERIMENT.to_owned(),
        problem: error.to_string(),
    })?;
    let list: Arc<[Request]> = made.take(REQUESTS as usize).collect();
    Ok(Pattern::List(list))
}

fn matrix(
    options: &ScalingOptions,
    cores: u64,
    seed: u64,
) -> Result<(Vec<Case<'static>>, Subject), HarnessError> {
    let workers = columns(&options.workers, cores);
    // The published runs were `raidtest test -r`.
    let reads = requests(seed, Some(RaidtestKind::Read))?;
    let (ladder, spinning) = (knobs::ladder(), knobs::spinning());
    let away = knobs::taken_away();
    let mut cases = Vec::new();
    for (knob, setting) in ladder.iter().chain(&spinning) {
        for count in &workers {
            cases.push(case(
                &case_name(&knob.id, *count),
                *setting,
                *count,
                &reads,
            )?);
        }
    }
    let judged: Vec<u64> = columns(&[1], cores);
    for (knob, setting) in &away {
        for count in &judged {
            cases.push(case(
                &case_name(&knob.id, *count),
                *setting,
                *count,
                &reads,
            )?);
        }
    }
    if let Some((_, last)) = ladder.last() {
        cases.extend(beside(*last, (cores, &judged), seed, &reads)?);
    }
    let names = |rows: Vec<(Knob, Setting)>| rows.into_iter().map(|row| row.0).collect();
    let subject = Subject {
        target: TARGET.to_owned(),
        workers,
        cores,
        requests: REQUESTS,
        requests_seed: seed,
        ladder: names(ladder),
        spinning: names(spinning),
        taken_away: names(away),
    };
    Ok((cases, subject))
}

/// The cases beside the rows: the limits of the machine, and the last row in other ways.
fn beside(
    last: Setting,
    (cores, judged): (u64, &[u64]),
    seed: u64,
    reads: &Pattern,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let mut cases = vec![case(&case_name(subject::AGAIN, cores), last, cores, reads)?];
    for count in judged {
        for (id, sums) in [
            (subject::APART, Sums::Chain),
            (subject::FILLED, Sums::Filling),
        ] {
            cases.push(cases::computing(&case_name(id, *count), *count, sums));
        }
    }
    if cores > 1 {
        let name = case_name(subject::STACK_EACH, cores);
        let job = job(&name, last, cores, reads);
        let stacks = (0..cores).map(|_| stack_of(last));
        let stacks: Vec<_> = stacks.collect::<Result<_, _>>()?;
        cases.push(load::case_of(Load::apart(&stacks, &job)?));
    }
    let mixed = requests(seed, None)?;
    cases.push(case(&case_name(subject::MIXED, 1), last, 1, &mixed)?);
    let name = case_name(subject::TIMED, 1);
    let timed = LoadJob {
        latency: true,
        ..LoadJob::new(&name, reads.clone())
    };
    cases.push(case_of(last, &timed)?);
    Ok(cases)
}

fn case(
    name: &str,
    setting: Setting,
    workers: u64,
    pattern: &Pattern,
) -> Result<Case<'static>, HarnessError> {
    case_of(setting, &job(name, setting, workers, pattern))
}

fn job(name: &str, setting: Setting, workers: u64, pattern: &Pattern) -> LoadJob {
    let queued = !matches!(setting.dispatch, ugeom_stack::Dispatch::Direct);
    LoadJob {
        workers: workers as usize,
        // Threads of the stack's own need a place, too.
        cores: if queued { Cores::Any } else { Cores::OneEach },
        ..LoadJob::new(name, pattern.clone())
    }
}

/// A case on a stack of its own, so that no two cases share a lock.
fn case_of(setting: Setting, job: &LoadJob) -> Result<Case<'static>, HarnessError> {
    let (stack, provider) = stack_of(setting)?;
    load::case(&stack, provider, job)
}

fn stack_of(setting: Setting) -> Result<(Stack, ProviderId), HarnessError> {
    let target = open_target(TARGET, &setting.options());
    let target = target.map_err(HarnessError::subject)?;
    Ok((target.stack, target.top))
}
