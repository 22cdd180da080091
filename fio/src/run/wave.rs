//! A wave: jobs that run beside each other, a thread each, and their results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ugeom_machine::mutex::Mutex;

use ugeom_classes::result_file::refuse_carrying;
use ugeom_engine::{Choice, EngineError, EngineOptions, GuasiOptions, Workers};
use ugeom_harness::crew;
use ugeom_load::door::{EngineDoor, NullDoor, StackDoor};
use ugeom_load::places::Below as _;
use ugeom_stack::Delta;

use super::sampling::Sampling;
use super::{Copy, Watcher, burn, commands, states, thread};
use crate::draws::Purpose;
use crate::files::{open_files, order_of, remove_files};
use crate::outcome::{JobOutcome, Outcome};
use crate::ranges::RangeDoor;
use crate::replay::Replay;
use crate::tally::{Live, Phase, RequestCounts};
use crate::target::{Meaning, Ready};
use crate::worker::{Done, FileLocks, Flow, Iolog, Logs, Task, Traces, Worker, slots};
use ugeom_job::Job;
use ugeom_job::error::JobError;

/// How often the watching thread looks, ms.
const TICK_MS: u64 = 20;

/// How long a report waits for a job: longer than one sleeps that has nothing to do.
const ANSWER_MAX: Duration = Duration::from_millis(300);

/// The result of a thread of a wave.
struct Ended {
    done: Result<Done, JobError>,
    begun_unix_ms: u64,
    ended_unix_s: u64,
    pid: u32,
}

/// State shared by the threads of a wave.
struct Shared<'a> {
    copies: &'a [Copy],
    lives: &'a [Live],
    flows: &'a BTreeMap<u32, Flow>,
    locks: &'a FileLocks,
    start: &'a Barrier,
    notes: &'a Mutex<Vec<String>>,
}

impl Shared<'_> {
    /// Whether no job of the wave makes requests any more.
    fn are_others_done(&self) -> bool {
        let mut all = self.copies.iter().zip(self.lives);
        all.all(|(copy, live)| !copy.job.makes_requests() || live.phase() == Phase::Ended)
    }
}

/// Runs the jobs of a wave beside each other. Returns the outcome, and whether further waves
/// may begin.
pub(super) fn run_wave(
    wave: &[Copy],
    so_far: &dyn Fn(Vec<JobOutcome>) -> Outcome,
    watcher: &mut dyn Watcher,
) -> Result<(Vec<JobOutcome>, bool), JobError> {
    if wave.is_empty() {
        return Ok((Vec::new(), true));
    }
    let publishes = watcher.wants_reports();
    let lives: Vec<Live> = wave.iter().map(|_| Live::new(publishes)).collect();
    let stop = |copy: &Copy| AtomicBool::new(copy.job.create_only);
    let stops: Vec<AtomicBool> = wave.iter().map(stop).collect();
    let start = Barrier::new(wave.len() + 1);
    let notes = Mutex::new(Vec::new());
    let flows = flows(wave);
    let locks = locks(wave);
    let mut sampling = Sampling::new(wave);
    let shared = Shared {
        copies: wave,
        lives: &lives,
        flows: &flows,
        locks: &locks,
        start: &start,
        notes: &notes,
    };
    let ended = std::thread::scope(|scope| {
        let (shared, stops) = (&shared, &stops);
        let one =
            |(index, copy): (usize, _)| work(shared, copy, &shared.lives[index], &stops[index]);
        let crew = crew::start(scope, wave.iter().enumerate(), one)?;
        start.wait();
        tell(&notes, watcher);
        while lives.iter().any(|live| live.phase() != Phase::Ended) {
            std::thread::sleep(Duration::from_millis(TICK_MS));
            tell(&notes, watcher);
            sampling.look(wave, &lives, stops, watcher);
            if watcher.is_report_due() {
                watcher.report(so_far(status(wave, &lives, &sampling)));
            }
        }
        Ok(crew.join())
    });
    tell(&notes, watcher);
    let ended = ended.map_err(|error: io::Error| {
        let message = format!("starting a thread for each of {} jobs", wave.len());
        JobError::caused(&wave[0].job.name, message, error)
    })?;
    let outcomes = outcomes(wave, ended, &sampling)?;
    let mut unlinked = wave.iter().filter(|copy| copy.job.unlink);
    unlinked.try_for_each(|copy| remove_files(&copy.job, copy.paths()))?;
    Ok((outcomes, !sampling.ends_all))
}

/// The results of the jobs of a wave; writes their logs.
fn outcomes(
    wave: &[Copy],
    ended: Vec<Option<Ended>>,
    sampling: &Sampling,
) -> Result<Vec<JobOutcome>, JobError> {
    let mut outcomes = Vec::new();
    let mut written = BTreeSet::new();
    for (index, ended) in ended.into_iter().enumerate() {
        let copy = &wave[index];
        let Some(ended) = ended else {
            return Err(JobError::target(&copy.job.name, "its thread panicked"));
        };
        let mut done = match ended.done {
            Ok(done) => done,
            Err(error) => {
                outcomes.push(JobOutcome::failed(&copy.job, copy.group, &error));
                continue;
            }
        };
        sampling.give(index, &mut done.tally);
        if let Some(logs) = &mut done.logs {
            write_logs(copy, logs, &mut written)?;
        }
        outcomes.push(JobOutcome {
            job: copy.job.clone(),
            group: copy.group,
            jobs: 1,
            tally: done.tally,
            trouble: done.trouble,
            begun_unix_ms: ended.begun_unix_ms,
            ended_unix_s: ended.ended_unix_s,
            pid: ended.pid,
            steady: sampling.steady(index),
        });
    }
    Ok(outcomes)
}

/// The progress of the jobs of a wave. Those that do not answer soon, as while they wait for a
/// device, are reported as they were before.
fn status(wave: &[Copy], lives: &[Live], sampling: &Sampling) -> Vec<JobOutcome> {
    let running = lives.iter().filter(|live| live.phase() == Phase::Running);
    running.clone().for_each(Live::ask);
    let asked = Instant::now();
    let waits = |live: &Live| live.is_asked() && live.phase() == Phase::Running;
    while running.clone().any(waits) && asked.elapsed() < ANSWER_MAX {
        std::thread::sleep(Duration::from_millis(1));
    }
    let now = since_1970();
    let outcome = |(index, copy): (usize, &Copy)| {
        let mut tally = lives[index].published();
        sampling.give(index, &mut tally);
        JobOutcome {
            job: copy.job.clone(),
            group: copy.group,
            jobs: 1,
            tally,
            trouble: None,
            begun_unix_ms: now.saturating_sub(sampling.elapsed()).as_millis() as u64,
            ended_unix_s: now.as_secs(),
            pid: std::process::id(),
            steady: sampling.steady(index),
        }
    };
    wave.iter().enumerate().map(outcome).collect()
}

/// Passes on the messages of threads.
fn tell(notes: &Mutex<Vec<String>>, watcher: &mut dyn Watcher) {
    notes.lock().drain(..).for_each(|note| watcher.note(&note));
}

/// The files that jobs of a wave lock.
fn locks(wave: &[Copy]) -> FileLocks {
    let mut locks = FileLocks::default();
    for copy in wave {
        locks.add(&copy.job, &copy.regions);
    }
    locks
}

/// The flows of a wave, which its jobs have joined.
fn flows(wave: &[Copy]) -> BTreeMap<u32, Flow> {
    let mut flows: BTreeMap<u32, Flow> = BTreeMap::new();
    for copy in wave.iter().filter(|copy| copy.job.flow > 0) {
        flows.entry(copy.job.flow_id).or_default().join(&copy.job);
    }
    flows
}

/// Ends the phase of a worker however its thread ends.
struct EndsPhase<'a>(&'a Live);

impl Drop for EndsPhase<'_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Ended);
    }
}

/// A thread of a wave, from its beginning to its end.
fn work(shared: &Shared<'_>, copy: &Copy, live: &Live, stop: &AtomicBool) -> Ended {
    let _ends = EndsPhase(live);
    let pinned = thread::set_up(copy);
    let ready = pinned.and_then(|pinned| Ok((ready(copy)?, pinned)));
    shared.start.wait();
    wait_for_others(shared, copy, stop);
    let begun_unix_ms = since_1970().as_millis() as u64;
    let done = ready.and_then(|(ready, _pinned)| {
        wait_for_start(copy, stop);
        commands::before(&copy.job, shared.notes)?;
        let done = through_door(shared, copy, ready, live, stop);
        save_state(shared, copy, &done);
        note_idle(shared, copy, &done, stop);
        commands::after(&copy.job, shared.notes)?;
        done
    });
    if done.is_err() {
        live.fail();
    }
    Ended {
        done,
        begun_unix_ms,
        ended_unix_s: since_1970().as_secs(),
        pid: rustix::thread::gettid().as_raw_nonzero().get() as u32,
    }
}

/// Writes the file of `verify_state_save`; a failure becomes a note.
fn save_state(shared: &Shared<'_>, copy: &Copy, done: &Result<Done, JobError>) {
    let state = done.as_ref().ok().and_then(|done| done.state.as_ref());
    let warning = state.and_then(|state| states::save(&copy.job, copy.number, state));
    shared.notes.lock().extend(warning);
}

/// Says that a job has ended by itself without a request, which its exit code does not show.
fn note_idle(shared: &Shared<'_>, copy: &Copy, done: &Result<Done, JobError>, stop: &AtomicBool) {
    let job = &copy.job;
    let idle = |done: &Done| {
        let issued = |side: &RequestCounts| side.requests > 0 || side.failed > 0;
        done.trouble.is_none() && !done.tally.sides.iter().any(issued)
    };
    if job.makes_requests() && !stop.load(Relaxed) && done.as_ref().is_ok_and(idle) {
        let note = format!("{}: the job made no requests", job.name);
        shared.notes.lock().push(note);
    }
}

/// `wait_for`: until all copies of that job have ended. Those of earlier waves have.
fn wait_for_others(shared: &Shared<'_>, copy: &Copy, stop: &AtomicBool) {
    let Some(name) = &copy.job.wait_for else {
        return;
    };
    let others = shared.copies.iter().zip(shared.lives);
    let waits =
        |(other, live): (&Copy, &Live)| other.job.name == *name && live.phase() != Phase::Ended;
    while !stop.load(Relaxed) && others.clone().any(waits) {
        std::thread::sleep(Duration::from_millis(TICK_MS));
    }
}

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn ready(copy: &Copy) -> Result<Ready, JobError> {
    let job = &copy.job;
    match (&copy.target, &copy.stack) {
        (Meaning::Paths(_), _) if job.file_operation().is_some() => Ok(Ready::Nothing),
        (Meaning::Paths(paths), _) => open_files(job, paths).map(Ready::Files),
        (_, Some(stack)) => Ok(Ready::Stack(Arc::clone(stack))),
        _ => Ok(Ready::Nothing),
    }
}

fn wait_for_start(copy: &Copy, stop: &AtomicBool) {
    let (low, high) = copy.job.startdelay_ns;
    let delay_ns = copy.seeds.draws(Purpose::StartDelay).below(high - low + 1) + low;
    let until = Instant::now() + Duration::from_nanos(delay_ns);
    while !stop.load(Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(TICK_MS)));
    }
}

fn through_door(
    shared: &Shared<'_>,
    copy: &Copy,
    ready: Ready,
    live: &Live,
    stop: &AtomicBool,
) -> Result<Done, JobError> {
    let job = &copy.job;
    if !job.makes_requests() {
        let are_done = || shared.are_others_done();
        return Ok(burn::run(job, live, stop, &are_done));
    }
    let state = states::load(job, copy.number)?;
    let task = Task {
        job,
        regions: &copy.regions,
        paths: copy.paths(),
        number: copy.number,
        seeds: copy.seeds,
        blocking: job.is_sync(),
        live,
        stop,
        locks: shared.locks,
        state: state.as_ref(),
        flow: shared.flows.get(&job.flow_id).filter(|_| job.flow > 0),
    };
    let (slots, bytes) = (slots(job), job.largest_bytes() as usize);
    let traces = Traces {
        replay: Replay::open(job)?,
        log: begin_log(copy)?,
    };
    match ready {
        Ready::Nothing => {
            Ok(Worker::new(&task, traces, NullDoor::new(slots, bytes))?.run_directly())
        }
        Ready::Files(files) if let Some(call) = job.range_call() => {
            let door = RangeDoor::new(call, files, slots, bytes);
            Ok(Worker::new(&task, traces, door)?.run())
        }
        Ready::Files(files) => {
            let choice = choice_of(&job.ioengine).map_err(|error| {
                JobError::language(job.origin_of("ioengine"), error.to_string())
            })?;
            let options = EngineOptions {
                depth: slots,
                guasi: threads_of(job, files.len()),
                order: order_of(job),
                // As in fio: a job makes its files as long as it needs them before it begins.
                settled: true,
            };
            let opened = EngineDoor::open(choice, options, bytes, files).map_err(|error| {
                JobError::caused(&job.name, format!("the engine {}", job.ioengine), error)
            })?;
            if job.ioengine == "auto" {
                let note = format!("{}: {}", job.name, opened.1);
                shared.notes.lock().push(note);
            }
            Ok(Worker::new(&task, traces, opened.0)?.run())
        }
        Ready::Stack(target) => {
            let delta = Delta::of_user(job.changes_data());
            let refused =
                |error| JobError::caused(&job.name, format!("the provider {}", target.name), error);
            let opened = target.stack.open(target.top, delta).map_err(refused)?;
            let channel = target.stack.channel(slots as usize + 1).map_err(refused)?;
            let door = StackDoor::new(channel, Arc::new(opened), slots, bytes);
            Ok(Worker::new(&task, traces, door)?.run_directly())
        }
    }
}

/// The engine that is meant by fio's name of it.
///
/// # Errors
/// The engine's own, when there is none of that name.
fn choice_of(name: &str) -> Result<Choice, EngineError> {
    match name {
        "sync" => Ok(Choice::Seek),
        "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(Choice::Sync),
        // The C library makes POSIX's asynchronous I/O by threads, too.
        "posixaio" => Ok(Choice::Guasi),
        other => other.parse(),
    }
}

/// The threads of an engine that has some. The C library makes POSIX's asynchronous requests of one
/// file one at a time and in their order, in at most 20 threads (glibc: aio_init(3)).
fn threads_of(job: &Job, files: usize) -> GuasiOptions {
    const THREADS_MAX: usize = 20;
    match job.ioengine.as_str() {
        "posixaio" => GuasiOptions {
            workers: Some(Workers {
                min: 1,
                max: files.clamp(1, THREADS_MAX) as u32,
            }),
            ..GuasiOptions::default()
        },
        _ => job.guasi,
    }
}

/// Begins the log of `write_iolog`; each copy of a job has its own file.
fn begin_log(copy: &Copy) -> Result<Option<Iolog>, JobError> {
    let Some(path) = &copy.job.write_iolog else {
        return Ok(None);
    };
    let path = match copy.clone {
        0 => path.clone(),
        clone => format!("{path}.{clone}"),
    };
    Iolog::create(&path, &copy.regions)
        .map(Some)
        .map_err(|error| JobError::caused(&copy.job.name, format!("{path}: writing"), error))
}

fn write_logs(
    copy: &Copy,
    logs: &mut Logs,
    written: &mut BTreeSet<String>,
) -> Result<(), JobError> {
    let job = &copy.job;
    let histograms = logs.histograms.take();
    let texts = logs.each().map(|(part, log)| match job.log_packed {
        true => (part, log.packed()),
        false => (part, log.text().into_bytes()),
    });
    let histograms = histograms.map(|log| ("clat_hist", log.text().into()));
    for (part, text) in texts.chain(histograms) {
        let prefix = match part {
            "slat" if job.unmeasured.slat => continue,
            "clat" if job.unmeasured.clat => continue,
            "lat" if job.unmeasured.lat => continue,
            "bw" => &job.bw_log,
            "iops" => &job.iops_log,
            "clat_hist" => &job.hist_log,
            _ => &job.lat_log,
        };
        let Some(prefix) = prefix else { continue };
        // As by fio, whose log of bandwidths is there without a line.
        let text = match part {
            "bw" if job.unmeasured.bw => Vec::new(),
            _ => text,
        };
        // fio's compressed logs of histograms are empty: they stay text.
        let end = match job.log_packed && part != "clat_hist" {
            true => "log.fz",
            false => "log",
        };
        let prefix = if prefix.is_empty() { &job.name } else { prefix };
        let name = match job.per_job_logs {
            true => format!("{prefix}_{part}.{}.{end}", copy.number + 1),
            false => format!("{prefix}_{part}.{end}"),
        };
        // The first job that writes to a common log begins it.
        let begins = job.per_job_logs || written.insert(name.clone());
        let mut options = std::fs::OpenOptions::new();
        options
            .create(true)
            .write(true)
            .truncate(begins)
            .append(!begins);
        refuse_carrying(Path::new(&name), |_| false)
            .and_then(|()| options.open(&name))
            .and_then(|mut file| file.write_all(&text))
            .map_err(|error| JobError::caused(&job.name, format!("{name}: writing"), error))?;
    }
    Ok(())
}
