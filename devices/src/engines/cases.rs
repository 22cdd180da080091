//! The cases of the job: each method at each depth, with each scheduler if that was asked for.

use super::EnginesOptions;
use super::account::Account;
use super::cost;
use super::job::{BLOCK_BYTES, EngineJob, FilePart};
use super::methods::Method;
use super::plan::{self, Depth, EnginesPlan};
use super::schedulers::Schedulers;
use super::subject::{JobDetail, Subject};
use super::threads::by_threads;
use rustix::fs::{Mode, OFlags};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use ugeom_harness::HarnessError;
use ugeom_harness::baseline;
use ugeom_harness::{Case, Counters, Length, RunResult};
use ugeom_load::devices::KernelDevice;
use ugeom_machine::file_error::FileError;

/// Requests of the run that measures the rate of a method: fewest, and most when time is short.
const TRIAL_REQUESTS: u64 = 2000;
const TRIAL_REQUESTS_SHORT: u64 = 1000;

/// The fewest blocks that are worth it: 256 KiB.
const BLOCKS_MIN: u64 = 64;

/// The operation that makes a file known to an engine, for errors.
const GIVING: &str = "giving the file to the engine";

/// The names of the cases that measure the bench itself.
const LOOP: &str = "floor/loop";
const CLOCK: &str = "floor/clock";

/// The name of a case of the job. `scheduler` is one that the device did not have before.
pub(super) fn job_name(method: &str, depth: u32, scheduler: Option<&str>) -> String {
    match scheduler {
        None => format!("job/{method} {depth}"),
        Some(scheduler) => format!("job/{method} {depth} with {scheduler}"),
    }
}

/// The second measurement of libaio, for the noise.
pub(super) fn again(depth: u32) -> String {
    job_name(Method::Libaio.name(), depth, None) + " again"
}

/// The work of a run of a case of the job.
type Work = Box<dyn FnMut(u64, &mut Account) -> Result<RunResult, HarnessError>>;

/// A method at a depth. Cases with different schedulers share it.
struct Doing {
    method: Method,
    depth: u32,
    work: Rc<RefCell<Work>>,
}

/// A case of the job, and the sum of its runs.
struct Noted {
    case: String,
    method: Method,
    depth: u32,
    scheduler: Option<String>,
    account: Rc<RefCell<Account>>,
}

/// All cases, and their notes.
pub(super) struct Matrix {
    pub cases: Vec<Case<'static>>,
    /// Set while runs count.
    pub measuring: Rc<std::cell::Cell<bool>>,
    direct: Arc<File>,
    cached: Arc<File>,
    part: FilePart,
    device: Option<Arc<dyn Counters>>,
    doing: Vec<Doing>,
    notes: Vec<Noted>,
    subject: Subject,
}

impl Matrix {
    /// Opens the target twice: direct and buffered.
    ///
    /// # Errors
    /// When that fails, or it is too small.
    pub fn open(path: &Path, options: &EnginesOptions) -> Result<Self, HarnessError> {
        let direct = Arc::new(open(path, OFlags::DIRECT)?);
        let cached = Arc::new(open(path, OFlags::empty())?);
        let length = rustix::fs::seek(&*cached, rustix::fs::SeekFrom::End(0))
            .map_err(|errno| HarnessError::os(shown(path), "asking its size")(errno.into()))?;
        // The job leaves the file alone, so that its data stays in the page cache.
        let first = cost::BLOCKS;
        let blocks = (length / BLOCK_BYTES).saturating_sub(first);
        let blocks = blocks.min(options.size() / BLOCK_BYTES);
        if blocks < BLOCKS_MIN {
            let needed = (first + BLOCKS_MIN) * BLOCK_BYTES;
            let problem = format!("has {length} bytes, less than the {needed} needed");
            let source = io::Error::new(io::ErrorKind::InvalidInput, problem);
            return Err(HarnessError::os(shown(path), "asking its size")(source));
        }
        Ok(Self {
            cases: Vec::new(),
            measuring: Rc::default(),
            direct,
            cached,
            part: FilePart { first, blocks },
            device: KernelDevice::below(path).map(|device| Arc::new(device) as Arc<dyn Counters>),
            doing: Vec::new(),
            notes: Vec::new(),
            subject: Subject {
                target: options.target.as_ref().map(|path| shown(path)),
                depths: Vec::new(),
                size_bytes: blocks * BLOCK_BYTES,
                requests: Vec::new(),
                schedulers: Vec::new(),
                jobs: Vec::new(),
                left_out: Vec::new(),
            },
        })
    }

    /// Makes every method ready at every depth, if the system has it, and measures the time of a
    /// request there.
    ///
    /// # Errors
    /// When a run fails.
    pub fn try_ways(&mut self, options: &EnginesOptions) -> Result<Vec<Depth>, HarnessError> {
        let mut tried: Vec<Depth> = Vec::new();
        for &depth in &options.depths {
            let mut request_ns = Vec::new();
            for method in Method::ALL {
                if !self.make_ready(method, depth)? {
                    continue;
                }
                let short = options.common.limit_ns().is_some();
                let count = match short {
                    true => u64::from(depth).min(TRIAL_REQUESTS_SHORT),
                    false => (2 * u64::from(depth)).max(TRIAL_REQUESTS),
                };
                // In a hurry, a greater depth is taken to be as fast as the one before.
                let known = tried.last().and_then(|before| before.of(method));
                let ns = match known {
                    Some(known) if short && count < u64::from(depth) => known,
                    _ => self.trial_ns(count)? / count as f64,
                };
                request_ns.push((method, ns));
            }
            tried.push(Depth { depth, request_ns });
        }
        Ok(tried)
    }

    /// Makes ready every method at the depths of a plan.
    ///
    /// # Errors
    /// When an engine does not take the file.
    pub fn ready_ways(&mut self, plan: &EnginesPlan) -> Result<(), HarnessError> {
        for (depth, _) in &plan.runs {
            for method in Method::ALL {
                self.make_ready(method, *depth)?;
            }
        }
        // The plan says what is left out already.
        self.subject.left_out.clear();
        Ok(())
    }

    /// The cases left out so far, with reasons.
    pub fn left_out(self) -> Vec<String> {
        self.subject.left_out
    }

    /// How long the method that was made ready last takes for so many requests, ns.
    fn trial_ns(&self, count: u64) -> Result<f64, HarnessError> {
        let Some(doing) = self.doing.last() else {
            return Ok(0.0);
        };
        let mut work = doing.work.borrow_mut();
        Ok(work(count, &mut Account::default())?.ns_total as f64)
    }

    /// Makes a method ready. False, with a warning, if the system does not have it or if it would
    /// be the same as at another depth.
    fn make_ready(&mut self, method: Method, depth: u32) -> Result<bool, HarnessError> {
        let name = job_name(method.name(), depth, None);
        let (file, part) = (Arc::clone(&self.direct), self.part);
        let work: Work = if method == Method::Threads {
            let threads = method.threads(depth);
            if threads < depth {
                let text =
                    format!("plain threads at queue depth {depth} (more than {threads} threads)");
                self.subject.left_out.push(text);
                return Ok(false);
            }
            let mut seed = 0;
            Box::new(move |count, account| {
                seed += 1;
                by_threads(&name, &file, (threads, part, seed), count, account)
            })
        } else {
            let engine = match method.open(depth) {
                Ok(Some(engine)) => engine,
                Ok(None) => return Ok(false),
                Err(error) => {
                    let text = format!("{} at queue depth {depth}: {error}", method.name());
                    self.subject.left_out.push(text);
                    return Ok(false);
                }
            };
            let mut job = EngineJob::new(engine, &file, depth, part, 1)
                .map_err(|errno| HarnessError::os(&name, GIVING)(errno.into()))?;
            Box::new(move |count, account| {
                let run = job.run(count, account);
                run.map_err(|failure| failure.in_case(&name))
            })
        };
        let work = Rc::new(RefCell::new(work));
        self.doing.push(Doing {
            method,
            depth,
            work,
        });
        Ok(true)
    }

    /// Adds the cases of the job. With schedulers, each is there once for each of them.
    pub fn jobs(&mut self, plan: &EnginesPlan, schedulers: Option<&Rc<Schedulers>>) {
        for &(depth, requests) in &plan.runs {
            self.subject.depths.push(depth);
            self.subject.requests.push(requests);
        }
        self.subject.left_out.extend_from_slice(&plan.left_out);
        self.doing
            .retain(|doing| plan.runs.iter().any(|run| run.0 == doing.depth));
        let all = match schedulers {
            Some(schedulers) => schedulers.all.iter().map(|one| Some(one.clone())).collect(),
            None => vec![None],
        };
        for index in 0..self.doing.len() {
            for (number, scheduler) in all.iter().enumerate() {
                let others = scheduler.clone().filter(|_| number > 0);
                let Doing { method, depth, .. } = self.doing[index];
                let name = job_name(method.name(), depth, others.as_deref());
                self.job(name, index, (plan, scheduler.clone()), schedulers);
            }
        }
        if let Some(first) = self.doing.first() {
            // libaio, at the first depth: see `Method::ALL`.
            let name = again(first.depth);
            let scheduler = all.first().cloned().flatten();
            self.job(name, 0, (plan, scheduler), schedulers);
        }
        self.subject.schedulers = all.into_iter().flatten().collect();
    }

    fn job(
        &mut self,
        name: String,
        index: usize,
        (plan, scheduler): (&EnginesPlan, Option<String>),
        schedulers: Option<&Rc<Schedulers>>,
    ) {
        let Doing {
            method,
            depth,
            work,
        } = &self.doing[index];
        let (method, depth, work) = (*method, *depth, Rc::clone(work));
        let run = plan.runs.iter().find(|run| run.0 == depth);
        let length = Length::Exactly {
            warm_up: 0,
            iterations: run.map_or(u64::from(depth), |run| run.1),
        };
        let account = Rc::new(RefCell::new(Account::default()));
        let (noted, measuring) = (Rc::clone(&account), Rc::clone(&self.measuring));
        let doing = Rc::clone(&work);
        let mut case = Case::new(&name, move |count| {
            let mut work = doing.borrow_mut();
            // Trials do not count.
            if measuring.get() {
                work(count, &mut noted.borrow_mut())
            } else {
                work(count, &mut Account::default())
            }
        });
        let set = schedulers.cloned().zip(scheduler.clone());
        // The library's threads are there before the run, as the plain ones are.
        let threads = match method {
            Method::Workers => u64::from(method.threads(depth)),
            Method::Libaio | Method::IoUring | Method::Ring | Method::Threads => 0,
        };
        if set.is_some() || threads > 0 {
            case = case.preparing(move || {
                if let Some((schedulers, scheduler)) = &set {
                    schedulers.set(scheduler)?;
                }
                if threads > 0 {
                    (work.borrow_mut())(threads, &mut Account::default())?;
                }
                Ok(())
            });
        }
        let mut case = case.with_length(length);
        if let Some(device) = &self.device {
            case = case.observing(Arc::clone(device));
        }
        self.cases.push(case);
        self.notes.push(Noted {
            case: name,
            method,
            depth,
            scheduler,
            account,
        });
    }

    /// Adds the cases for the cost of engines, and of the bench.
    ///
    /// # Errors
    /// When an engine cannot take the file.
    pub fn costs(&mut self, seed: u64) -> Result<(), HarnessError> {
        let costs = cost::cases(&self.cached, seed, &mut self.subject.left_out)?;
        self.cases.extend(costs);
        self.cases.push(baseline::empty_loop(LOOP));
        self.cases.push(baseline::clock_reading(CLOCK));
        Ok(())
    }

    /// The plan for the job.
    pub fn plan(&self, tried: &[Depth], budget_ns: Option<u64>, rounds: u64) -> EnginesPlan {
        match budget_ns {
            None => plan::whole(tried, self.part.blocks),
            Some(budget_ns) => plan::within(tried, self.part.blocks, budget_ns, rounds),
        }
    }

    /// The description of the measurement, once the cases have run.
    pub fn subject(self) -> Subject {
        let Self {
            cases,
            notes,
            mut subject,
            ..
        } = self;
        drop(cases);
        for noted in notes {
            let account = noted.account.borrow();
            let (reads, writes) = account.sides();
            subject.jobs.push(JobDetail {
                case: noted.case,
                engine: noted.method.name().to_owned(),
                depth: noted.depth,
                threads: Some(noted.method.threads(noted.depth)).filter(|threads| *threads > 0),
                scheduler: noted.scheduler,
                reads,
                writes,
                steady_per_second: account.steady_per_second(),
                in_flight: account.in_flight(),
                in_flight_by_law: account.in_flight_by_law(),
            });
        }
        subject
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Opens for reading and writing; a block device exclusively, so that one that is
/// mounted is refused.
fn open(path: &Path, more: OFlags) -> Result<File, HarnessError> {
    let device = std::fs::metadata(path)
        .is_ok_and(|about| std::os::unix::fs::FileTypeExt::is_block_device(&about.file_type()));
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC | more;
    // The second descriptor of the same program would be refused, too.
    flags.set(OFlags::EXCL, device && more.contains(OFlags::DIRECT));
    let opened = rustix::fs::open(path, flags, Mode::empty());
    opened.map(File::from).map_err(|errno| {
        let refused = match more.contains(OFlags::DIRECT) {
            true => FileError::at(shown(path), "opening with O_DIRECT")(errno),
            false => FileError::open(shown(path))(errno),
        };
        refused.into()
    })
}
