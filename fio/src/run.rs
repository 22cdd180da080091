//! Running jobs: waves of them, one thread each, watched by the thread that asked.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ugeom_classes::Target;
use ugeom_engine::EngineOptions;
use ugeom_format::diskstats::{Stat, parse_stat};
use ugeom_machine::cpu::Affinity;
use ugeom_measure::units::Size;
use ugeom_stack::{Delta, LostAtTheEnd};

use ugeom_harness::crew;

use super::door::{EngineDoor, NullDoor, StackDoor, choice_of};
use super::error::JobError;
use super::outcome::{DiskOutcome, JobOutcome, Outcome};
use super::places::Region;
use super::settings::Job;
use super::steady::Watch;
use super::tally::{Live, Phase};
use super::target::{
    Layout, Meaning, Ready, file_regions, lay_out, meaning, open_files, open_stack, stack_region,
};
use super::worker::{Done, Logs, Task, Worker, slots};

/// How often the watching thread looks, ms.
const TICK_MS: u64 = 20;
/// How often bandwidth and requests are sampled (fio's `bwavgtime` and `iopsavgtime`), ns.
const SAMPLE_NS: u64 = 500_000_000;
/// Where `randrepeat` begins.
const REPEATED_SEED: u64 = 0x0075_6765_6f6d;

/// What the caller wants to be told, and may want to stop.
pub trait Watcher {
    /// Something to say, once.
    fn note(&mut self, text: &str);
    /// Files are made.
    fn laying_out(&mut self, job: &str, files: usize, bytes: u64);
    /// How it goes; called several times a second.
    fn progress(&mut self, progress: &Progress<'_>);
    /// True when everything should end soon.
    fn cancelled(&self) -> bool;
    /// Asked before a job writes to a target: an error forbids it.
    ///
    /// # Errors
    /// Why it must not be written.
    fn may_write(&mut self, target: &Meaning) -> Result<(), String>;
}

/// How it goes.
pub struct Progress<'a> {
    /// The jobs of this wave, with where each is.
    pub jobs: &'a [(&'a Job, Phase)],
    /// Bytes and requests a second now: reads, writes, trims.
    pub rates: [(f64, f64); 3],
    /// The share that is done, from 0 to 1, as far as is known.
    pub done: Option<f64>,
    /// The time that is left, s.
    pub left_s: Option<u64>,
}

/// One copy of a job.
struct Copy {
    job: Job,
    number: u32,
    group: u32,
    target: Meaning,
    regions: Vec<Region>,
    stack: Option<Arc<Target>>,
    seed: u64,
}

impl Copy {
    fn paths(&self) -> &[PathBuf] {
        match &self.target {
            Meaning::Paths(paths) => paths,
            _ => &[],
        }
    }
}

/// Runs jobs, wave after wave: a job with `stonewall` waits for all before it.
///
/// # Errors
/// A job that cannot be run at all. What goes wrong while one runs is in its outcome, and so is
/// data that a stack loses at the end.
pub fn run(jobs: &[Job], watcher: &mut dyn Watcher) -> Result<Outcome, JobError> {
    let mut stacks = BTreeMap::new();
    let outcome = run_waves(jobs, &mut stacks, watcher);
    // All handles are closed: layers that keep writes have written them, or have lost them.
    let lost = stacks.values().filter_map(|one| one.stack.finish().err());
    let lost: Vec<LostAtTheEnd> = lost.collect();
    match outcome {
        Ok(outcome) => Ok(Outcome { lost, ..outcome }),
        Err(error) => match lost.into_iter().next() {
            None => Err(error),
            Some(lost) => {
                watcher.note(&error.to_string());
                Err(lost.into())
            }
        },
    }
}

/// The targets of all jobs that are stacks, by their text.
type Stacks = BTreeMap<String, Arc<Target>>;

fn run_waves(
    jobs: &[Job],
    stacks: &mut Stacks,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, JobError> {
    let copies = prepare(jobs, stacks, watcher)?;
    let disks = Disks::below(&copies);
    let mut outcome = Outcome::default();
    let mut wave: Vec<Copy> = Vec::new();
    for copy in copies {
        let first = outcome.jobs.is_empty() && wave.is_empty();
        let is_wall =
            copy.job.stonewall && !first && wave.last().is_none_or(|last| last.group != copy.group);
        if is_wall {
            outcome.jobs.extend(run_wave(&wave, watcher)?);
            wave.clear();
            if watcher.cancelled() {
                // What waited for others does not begin any more.
                break;
            }
        }
        wave.push(copy);
    }
    outcome.jobs.extend(run_wave(&wave, watcher)?);
    outcome.disks = disks.since();
    Ok(outcome)
}

/// Finds every target, measures it, and makes the files that are missing.
fn prepare(
    jobs: &[Job],
    stacks: &mut Stacks,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Copy>, JobError> {
    let mut copies = Vec::new();
    let mut group = 0;
    let writes = |text: &str| {
        let of = |job: &&Job| job.filename.as_deref() == Some(text);
        jobs.iter().filter(of).find(|job| job.changes_data())
    };
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 && (job.stonewall || job.new_group) {
            group += 1;
        }
        for clone in 0..job.numjobs {
            let number = copies.len() as u32;
            let target = meaning(job, clone);
            if job.changes_data() {
                let allowed = watcher.may_write(&target);
                allowed.map_err(|message| JobError::target(&job.name, message))?;
            }
            let base = if job.was_set("randseed") {
                job.randseed
            } else {
                REPEATED_SEED
            };
            let seed = match job.randrepeat {
                true => base.wrapping_add(u64::from(number)),
                false => fastrand::u64(..),
            };
            let mut stack = None;
            let regions = match &target {
                Meaning::Nothing => vec![nothing_region(job)?],
                Meaning::Stack(text) => {
                    if clone == 0 {
                        say_options_of_files(job, text, watcher);
                    }
                    if !stacks.contains_key(text) {
                        let opener = writes(text).unwrap_or(job);
                        stacks.insert(text.clone(), open_stack(opener, text)?);
                    }
                    let Some(open) = stacks.get(text) else {
                        continue;
                    };
                    stack = Some(Arc::clone(open));
                    vec![stack_region(job, clone, open)?]
                }
                Meaning::Paths(paths) => {
                    let (regions, layouts) = file_regions(job, clone, paths, seed)?;
                    make_files(job, &layouts, seed, watcher)?;
                    regions
                }
            };
            fits(job, &regions)?;
            copies.push(Copy {
                job: job.clone(),
                number,
                group,
                target,
                regions,
                stack,
                seed,
            });
        }
    }
    Ok(copies)
}

/// Says which settings hold for files and block devices alone.
fn say_options_of_files(job: &Job, target: &str, watcher: &mut dyn Watcher) {
    for option in ["sync", "overwrite", "fadvise_hint"] {
        if job.was_set(option) {
            let origin = job.origin_of(option);
            watcher.note(&format!(
                "{origin}{option} has no effect: `{target}` is a stack"
            ));
        }
    }
}

fn nothing_region(job: &Job) -> Result<Region, JobError> {
    let Some(Size::Bytes(length)) = job.size else {
        let message = "the null engine needs size=SIZE";
        return Err(JobError::language(job.origin_of("ioengine"), message));
    };
    Ok(Region {
        name: "null".to_owned(),
        start: 0,
        length,
    })
}

fn fits(job: &Job, regions: &[Region]) -> Result<(), JobError> {
    let unit = job.smallest_bytes();
    match regions.iter().find(|region| region.length < unit) {
        None => Ok(()),
        Some(Region { name, length, .. }) => {
            let message =
                format!("requests of {unit} bytes do not fit into {name}: {length} bytes");
            Err(JobError::language(job.origin_of("bs"), message))
        }
    }
}

fn make_files(
    job: &Job,
    layouts: &[Layout],
    seed: u64,
    watcher: &mut dyn Watcher,
) -> Result<(), JobError> {
    let bytes = layouts.iter().map(|layout| layout.bytes).sum();
    if !layouts.is_empty() {
        watcher.laying_out(&job.name, layouts.len(), bytes);
    }
    layouts
        .iter()
        .try_for_each(|layout| lay_out(job, layout, seed))
}

/// What a thread of a wave leaves behind.
struct Ended {
    done: Result<Done, JobError>,
    begun_unix_ms: u64,
    ended_unix_s: u64,
    pid: u32,
}

fn run_wave(wave: &[Copy], watcher: &mut dyn Watcher) -> Result<Vec<JobOutcome>, JobError> {
    if wave.is_empty() {
        return Ok(Vec::new());
    }
    let lives: Vec<Live> = wave.iter().map(|_| Live::default()).collect();
    let stops: Vec<AtomicBool> = wave.iter().map(|_| AtomicBool::new(false)).collect();
    let start = Barrier::new(wave.len() + 1);
    let notes = Mutex::new(Vec::new());
    let mut sampling = Sampling::new(wave);
    let ended = std::thread::scope(|scope| {
        let (lives, stops, start, notes) = (&lives, &stops, &start, &notes);
        let one = |(index, copy)| work(copy, &lives[index], &stops[index], start, notes);
        let crew = crew::start(scope, wave.iter().enumerate(), one)?;
        start.wait();
        for note in notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            watcher.note(&note);
        }
        while lives.iter().any(|live| live.phase() != Phase::Ended) {
            std::thread::sleep(Duration::from_millis(TICK_MS));
            sampling.look(wave, lives, stops, watcher);
        }
        Ok(crew.join())
    });
    let ended = ended.map_err(|error: io::Error| {
        let message = format!("starting a thread for each of {} jobs", wave.len());
        JobError::caused(&wave[0].job.name, message, error)
    })?;
    let mut outcomes = Vec::new();
    for (index, ended) in ended.into_iter().enumerate() {
        let copy = &wave[index];
        let Some(ended) = ended else {
            return Err(JobError::target(&copy.job.name, "its thread panicked"));
        };
        let mut done = ended.done?;
        sampling.give(index, &mut done);
        if let Some(logs) = &mut done.logs {
            write_logs(copy, logs)?;
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
    remove_files(wave)?;
    Ok(outcomes)
}

/// Ends the phase of a worker however its thread ends.
struct EndsPhase<'a>(&'a Live);

impl Drop for EndsPhase<'_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Ended);
    }
}

/// A thread of a wave, from its beginning to its end.
fn work(
    copy: &Copy,
    live: &Live,
    stop: &AtomicBool,
    start: &Barrier,
    notes: &Mutex<Vec<String>>,
) -> Ended {
    let _ends = EndsPhase(live);
    let ready = ready(copy);
    start.wait();
    let begun_unix_ms = since_1970().as_millis() as u64;
    let done = ready.and_then(|ready| {
        wait_for_start(copy, stop);
        through_door(copy, ready, live, stop, notes)
    });
    Ended {
        done,
        begun_unix_ms,
        ended_unix_s: since_1970().as_secs(),
        pid: rustix::thread::gettid().as_raw_nonzero().get() as u32,
    }
}

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn ready(copy: &Copy) -> Result<Ready, JobError> {
    let job = &copy.job;
    if !job.cpus_allowed.is_empty() {
        let cores = match job.cpus_split {
            true => {
                let index = copy.number as usize % job.cpus_allowed.len();
                vec![job.cpus_allowed[index]]
            }
            false => job.cpus_allowed.clone(),
        };
        let pinned = Affinity::of(&cores).and_then(|affinity| affinity.apply());
        pinned.map_err(|error| JobError::caused(&job.name, "cpus_allowed", error))?;
    }
    match (&copy.target, &copy.stack) {
        (Meaning::Paths(paths), _) => open_files(job, paths).map(Ready::Files),
        (_, Some(stack)) => Ok(Ready::Stack(Arc::clone(stack))),
        _ => Ok(Ready::Nothing),
    }
}

fn wait_for_start(copy: &Copy, stop: &AtomicBool) {
    let (low, high) = copy.job.startdelay_ns;
    let delay_ns = fastrand::Rng::with_seed(copy.seed).u64(low..=high);
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
    copy: &Copy,
    ready: Ready,
    live: &Live,
    stop: &AtomicBool,
    notes: &Mutex<Vec<String>>,
) -> Result<Done, JobError> {
    let job = &copy.job;
    let task = Task {
        job,
        regions: &copy.regions,
        number: copy.number,
        seed: copy.seed,
        blocking: job.is_sync(),
        live,
        stop,
    };
    let (slots, bytes) = (slots(job), job.largest_bytes() as usize);
    match ready {
        Ready::Nothing => Ok(Worker::new(&task, NullDoor::new(slots, bytes)).run()),
        Ready::Files(files) => {
            let choice = choice_of(&job.ioengine).map_err(|error| {
                JobError::language(job.origin_of("ioengine"), error.to_string())
            })?;
            let options = EngineOptions {
                depth: slots,
                guasi: job.guasi,
            };
            let opened = EngineDoor::open(choice, options, bytes, files).map_err(|error| {
                JobError::caused(&job.name, format!("the engine {}", job.ioengine), error)
            })?;
            if job.ioengine == "auto" {
                let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                notes.push(format!("{}: {}", job.name, opened.1));
            }
            Ok(Worker::new(&task, opened.0).run())
        }
        Ready::Stack(target) => {
            let delta = if job.changes_data() {
                Delta::READ_WRITE
            } else {
                Delta::READ
            };
            let refused =
                |error| JobError::caused(&job.name, format!("the provider {}", target.name), error);
            let opened = target.stack.open(target.top, delta).map_err(refused)?;
            let channel = target.stack.channel(slots as usize + 1).map_err(refused)?;
            Ok(Worker::new(&task, StackDoor::new(channel, opened, slots, bytes)).run())
        }
    }
}

fn write_logs(copy: &Copy, logs: &mut Logs) -> Result<(), JobError> {
    let job = &copy.job;
    for (part, log) in logs.each() {
        let prefix = match part {
            "bw" if job.unmeasured.bw => continue,
            "bw" => &job.bw_log,
            "iops" => &job.iops_log,
            _ => &job.lat_log,
        };
        let Some(prefix) = prefix else { continue };
        let name = format!("{prefix}_{part}.{}.log", copy.number + 1);
        std::fs::write(&name, log.text())
            .map_err(|error| JobError::caused(&job.name, format!("writing {name}"), error))?;
    }
    Ok(())
}

fn remove_files(wave: &[Copy]) -> Result<(), JobError> {
    for copy in wave.iter().filter(|copy| copy.job.unlink) {
        for path in copy.paths().iter().filter(|path| path.is_file()) {
            std::fs::remove_file(path).map_err(|error| {
                let doing = format!("removing {}", path.display());
                JobError::caused(&copy.job.name, doing, error)
            })?;
        }
    }
    Ok(())
}

/// What the watching thread remembers of each job of a wave.
struct Sampling {
    begun: Instant,
    jobs: Vec<Sampled>,
    rates_at: (Instant, [(u64, u64); 3]),
    rates: [(f64, f64); 3],
}

#[derive(Default)]
struct Sampled {
    /// Since when it has been counted, and what it had done at the last sample.
    since: Option<Instant>,
    last: Option<(Instant, [(u64, u64); 3])>,
    values: [(Vec<f64>, Vec<f64>); 3],
    watch: Option<Watch>,
    base: (u64, u64),
    steady: bool,
}

impl Sampling {
    fn new(wave: &[Copy]) -> Self {
        let now = Instant::now();
        let jobs = wave.iter().map(|copy| Sampled {
            watch: Watch::of(&copy.job),
            ..Sampled::default()
        });
        Self {
            begun: now,
            jobs: jobs.collect(),
            rates_at: (now, [(0, 0); 3]),
            rates: [(0.0, 0.0); 3],
        }
    }

    fn look(
        &mut self,
        wave: &[Copy],
        lives: &[Live],
        stops: &[AtomicBool],
        watcher: &mut dyn Watcher,
    ) {
        let now = Instant::now();
        let ends_all =
            |(copy, live): (&Copy, &Live)| copy.job.exitall && live.phase() == Phase::Ended;
        let cancelled = watcher.cancelled() || wave.iter().zip(lives).any(ends_all);
        for (index, live) in lives.iter().enumerate() {
            let steady = self.jobs[index].look(now, live);
            if cancelled || steady {
                stops[index].store(true, Relaxed);
            }
        }
        self.update_rates(now, lives);
        let jobs: Vec<(&Job, Phase)> = wave
            .iter()
            .zip(lives)
            .map(|(copy, live)| (&copy.job, live.phase()))
            .collect();
        let done = self.done(wave, lives);
        let elapsed = now.duration_since(self.begun).as_secs_f64();
        let left_s = done
            .filter(|done| *done > 0.01)
            .map(|done| (elapsed / done - elapsed) as u64);
        watcher.progress(&Progress {
            jobs: &jobs,
            rates: self.rates,
            done,
            left_s,
        });
    }

    fn update_rates(&mut self, now: Instant, lives: &[Live]) {
        let elapsed = now.duration_since(self.rates_at.0);
        if elapsed.as_nanos() < u128::from(SAMPLE_NS) {
            return;
        }
        let mut totals = [(0, 0); 3];
        for live in lives {
            for (total, more) in totals.iter_mut().zip(live.totals()) {
                *total = (total.0 + more.0, total.1 + more.1);
            }
        }
        let seconds = elapsed.as_secs_f64();
        for (kind, rate) in self.rates.iter_mut().enumerate() {
            let (before, after) = (self.rates_at.1[kind], totals[kind]);
            *rate = (
                after.0.saturating_sub(before.0) as f64 / seconds,
                after.1.saturating_sub(before.1) as f64 / seconds,
            );
        }
        self.rates_at = (now, totals);
    }

    /// The share of the work that is done: by bytes, or by time where that ends a job.
    fn done(&self, wave: &[Copy], lives: &[Live]) -> Option<f64> {
        let share = |(copy, live): (&Copy, &Live)| {
            if live.phase() == Phase::Ended {
                return Some(1.0);
            }
            let goal = live.goal_bytes.load(Relaxed);
            let bytes: u64 = live.totals().iter().map(|(bytes, _)| bytes).sum();
            let by_bytes = (goal != u64::MAX).then(|| bytes as f64 / goal.max(1) as f64);
            let (ramp, runtime) = (copy.job.ramp_time_ns, copy.job.runtime_ns);
            let elapsed_ns = self.begun.elapsed().as_nanos() as f64;
            let by_time = (runtime > 0).then(|| elapsed_ns / (ramp + runtime) as f64);
            by_bytes
                .into_iter()
                .chain(by_time)
                .reduce(f64::max)
                .map(|done| done.min(1.0))
        };
        let shares: Option<Vec<f64>> = wave.iter().zip(lives).map(share).collect();
        shares.and_then(|shares| shares.into_iter().reduce(f64::min))
    }

    /// Puts the samples of a job into its counts.
    fn give(&mut self, index: usize, done: &mut Done) {
        let values = std::mem::take(&mut self.jobs[index].values);
        for (side, (bw, iops)) in done.tally.sides.iter_mut().zip(values) {
            side.bw.values = bw;
            side.iops.values = iops;
        }
    }

    fn steady(&self, index: usize) -> Option<super::steady::SteadyState> {
        let job = &self.jobs[index];
        job.watch.as_ref().map(|watch| watch.state(job.steady))
    }
}

impl Sampled {
    /// Takes a sample when it is time for one; true when the job has become steady.
    fn look(&mut self, now: Instant, live: &Live) -> bool {
        if live.phase() != Phase::Running {
            return false;
        }
        let totals = live.totals();
        let since = *self.since.get_or_insert_with(|| {
            self.base = sum(&totals);
            now
        });
        let (at, before) = *self.last.get_or_insert((now, totals));
        let elapsed = now.duration_since(at);
        if elapsed.as_nanos() >= u128::from(SAMPLE_NS) {
            let seconds = elapsed.as_secs_f64();
            for kind in 0..3 {
                if totals[kind].1 == 0 {
                    continue;
                }
                let (bytes, requests) = &mut self.values[kind];
                bytes.push((totals[kind].0 - before[kind].0) as f64 / seconds / 1024.0);
                requests.push((totals[kind].1 - before[kind].1) as f64 / seconds);
            }
            self.last = Some((now, totals));
        }
        let (bytes, requests) = sum(&totals);
        let at_ns = now.duration_since(since).as_nanos() as u64;
        let base = self.base;
        let steady = |watch: &mut Watch| watch.look(at_ns, bytes - base.0, requests - base.1);
        self.steady |= self.watch.as_mut().is_some_and(steady);
        self.steady
    }
}

fn sum(totals: &[(u64, u64); 3]) -> (u64, u64) {
    totals
        .iter()
        .fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1))
}

/// The block devices below all jobs, and their counters when they were looked at first.
struct Disks {
    begun: Instant,
    before: BTreeMap<String, Stat>,
}

impl Disks {
    fn below(copies: &[Copy]) -> Self {
        let paths = copies.iter().flat_map(Copy::paths);
        let names = paths.filter_map(|path| ugeom_harness::host::device_below(path));
        let counted = names.filter_map(|name| {
            let stat = stat_of(&name)?;
            Some((name, stat))
        });
        Self {
            begun: Instant::now(),
            before: counted.collect(),
        }
    }

    fn since(self) -> Vec<DiskOutcome> {
        let elapsed_ms = self.begun.elapsed().as_millis() as u64;
        let outcome = |(name, before): (String, Stat)| {
            let after = stat_of(&name)?;
            Some(DiskOutcome {
                name,
                before,
                after,
                elapsed_ms,
            })
        };
        self.before.into_iter().filter_map(outcome).collect()
    }
}

fn stat_of(name: &str) -> Option<Stat> {
    let path = Path::new("/sys/class/block").join(name).join("stat");
    parse_stat(&std::fs::read_to_string(path).ok()?).ok()
}
