//! The cells: the job on each engine at each depth, and what an engine costs by itself.

use super::Options;
use super::job::{Account, BLOCK_BYTES, Job, Memory, by_threads};
use super::subject::{JobDetail, Subject};
use crate::BenchError;
use crate::devices::KernelDevice;
use crate::harness::{Cell, Counters, Length, Settings};
use rustix::fs::{Mode, OFlags};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use ugeom_engine::{Choice, Engine, open_engine};

/// The engines that are compared, and the plain threads.
pub(super) const ENGINES: [&str; 3] = ["libaio", "io_uring", THREADS];

/// One thread for each request.
pub(super) const THREADS: &str = "threads";

/// More threads are not started: their requests wait in the program and not in the kernel.
const THREADS_MAX: u32 = 1000;

/// A run on a fast device lasts so long at least where there is time, ns.
const RUN_NS: u64 = 2_000_000_000;

/// Requests of the run that finds out how fast the device is.
const TRIAL_REQUESTS: u64 = 4096;

/// Depths at which the cost of an engine is measured, and the part of the file for that, blocks.
const COST_DEPTHS: [u32; 3] = [1, 100, 1000];
const COST_BLOCKS: u64 = 256;

/// The name of a cell of the job.
pub(super) fn job_name(engine: &str, depth: u32) -> String {
    format!("job/{engine} {depth}")
}

/// The name of a cell of the cost.
pub(super) fn cost_name(engine: &str, depth: u32) -> String {
    format!("cached/{engine} {depth}")
}

/// The second measurement of libaio, for the noise.
pub(super) fn again(depth: u32) -> String {
    job_name("libaio", depth) + " again"
}

/// All cells, and what they note.
pub(super) struct Matrix {
    pub cells: Vec<Cell<'static>>,
    device: Option<Arc<dyn Counters>>,
    /// Set while runs count.
    pub measuring: Rc<std::cell::Cell<bool>>,
    notes: Vec<(String, &'static str, u32, Rc<RefCell<Account>>)>,
    subject: Subject,
}

impl Matrix {
    pub fn new(path: &Path, options: &Options, settings: &Settings) -> Result<Self, BenchError> {
        let direct = Arc::new(open(path, OFlags::DIRECT)?);
        let cached = Arc::new(open(path, OFlags::empty())?);
        let length = rustix::fs::seek(&*cached, rustix::fs::SeekFrom::End(0))
            .map_err(|errno| BenchError::os(shown(path), "asking its size")(errno.into()))?;
        let blocks = length.min(options.size_bytes) / BLOCK_BYTES;
        if blocks < COST_BLOCKS {
            let problem = format!("has {length} bytes, less than the {} needed", 1 << 20);
            let source = io::Error::new(io::ErrorKind::InvalidInput, problem);
            return Err(BenchError::os(shown(path), "asking its size")(source));
        }
        let mut matrix = Self {
            cells: Vec::new(),
            device: KernelDevice::below(path).map(|device| Arc::new(device) as Arc<dyn Counters>),
            measuring: Rc::default(),
            notes: Vec::new(),
            subject: Subject {
                target: options.target.as_ref().map(|path| shown(path)),
                depths: options.depths.clone(),
                size_bytes: blocks * BLOCK_BYTES,
                requests: Vec::new(),
                jobs: Vec::new(),
                left_out: Vec::new(),
            },
        };
        let requests = matrix.requests(&direct, blocks, options, settings)?;
        for (&depth, &count) in options.depths.iter().zip(&requests) {
            for engine in ENGINES {
                let name = job_name(engine, depth);
                matrix.job(name, engine, depth, &direct, (blocks, count))?;
            }
        }
        if let (Some(&depth), Some(&count)) = (options.depths.first(), requests.first()) {
            matrix.job(again(depth), "libaio", depth, &direct, (blocks, count))?;
        }
        for depth in COST_DEPTHS {
            matrix.cost(depth, &cached, settings)?;
        }
        Ok(matrix)
    }

    /// What was measured, once the cells have run.
    pub fn subject(self) -> Subject {
        let Self {
            cells,
            notes,
            mut subject,
            ..
        } = self;
        drop(cells);
        for (cell, engine, depth, account) in notes {
            let account = account.borrow();
            let (reads, writes) = account.sides();
            subject.jobs.push(JobDetail {
                cell,
                engine: engine.to_owned(),
                depth,
                reads,
                writes,
                steady_per_second: account.steady_per_second(),
                in_flight: account.in_flight(),
                in_flight_by_law: account.in_flight_by_law(),
            });
        }
        subject
    }

    /// How many requests a run has at each depth: the whole size, more where that is over at once,
    /// fewer where the budget would not do for ten rounds; never fewer than there are at a time.
    fn requests(
        &mut self,
        file: &Arc<File>,
        blocks: u64,
        options: &Options,
        settings: &Settings,
    ) -> Result<Vec<u64>, BenchError> {
        let mut account = Account::default();
        let trial = by_threads("trial", file, (16, blocks, 1), TRIAL_REQUESTS, &mut account)?;
        let request_ns = (trial.ns_total / TRIAL_REQUESTS).max(1);
        let whole = blocks.max(RUN_NS / request_ns);
        let requests = match settings.budget_ns {
            None => vec![whole; options.depths.len()],
            Some(budget_ns) => {
                // Half for the job; the rest is the cost of engines and the ends of runs.
                let round_ns = budget_ns / 2 / settings.rounds_min;
                shares(
                    round_ns / (request_ns * ENGINES.len() as u64),
                    &options.depths,
                )
            }
        };
        let requests: Vec<u64> = requests
            .iter()
            .zip(&options.depths)
            .map(|(&fit, &depth)| fit.min(whole).max(u64::from(depth)))
            .collect();
        for (count, depth) in requests.iter().zip(&options.depths) {
            if *count < blocks {
                self.subject.left_out.push(format!(
                    "a run with {depth} requests at a time has {count} instead of the {blocks} of \
                     the whole size, to fit the time (--full measures all)"
                ));
            }
        }
        self.subject.requests.clone_from(&requests);
        Ok(requests)
    }

    /// Adds a cell of the job, or says why it is left out.
    fn job(
        &mut self,
        name: String,
        engine: &'static str,
        depth: u32,
        file: &Arc<File>,
        (blocks, requests): (u64, u64),
    ) -> Result<(), BenchError> {
        let account = Rc::new(RefCell::new(Account::default()));
        let length = Length::Exactly {
            warm_up: 0,
            iterations: requests,
        };
        let noted = Rc::clone(&account);
        let measuring = Rc::clone(&self.measuring);
        let cell = if engine == THREADS {
            let threads = depth.min(THREADS_MAX);
            if threads < depth {
                let text = format!("{depth} requests at a time are made by {threads} threads");
                self.subject.left_out.push(text);
            }
            let (file, cell, mut seed) = (Arc::clone(file), name.clone(), 0);
            Cell::new(&name, move |count| {
                seed += 1;
                let what = (threads, blocks, seed);
                noting(&measuring, &noted, |account| {
                    by_threads(&cell, &file, what, count, account)
                })
            })
        } else {
            let Some(opened) = self.open_engine(engine, depth) else {
                return Ok(());
            };
            let cell = name.clone();
            let mut job = Job::new(opened, file, depth, blocks, 1)
                .map_err(BenchError::os(&name, "giving the file to the engine"))?;
            Cell::new(&name, move |count| {
                let run = noting(&measuring, &noted, |account| job.run(count, true, account));
                run.map_err(|errno| BenchError::os(&cell, "random reads and writes")(errno.into()))
            })
        };
        let cell = cell.with_length(length);
        self.cells.push(match &self.device {
            Some(device) => cell.observing(Arc::clone(device)),
            None => cell,
        });
        self.notes.push((name, engine, depth, account));
        Ok(())
    }

    /// Adds the cells of what engines cost: reads of what lies in the system's cache.
    fn cost(
        &mut self,
        depth: u32,
        file: &Arc<File>,
        settings: &Settings,
    ) -> Result<(), BenchError> {
        for engine in ["sync", "libaio", "io_uring"] {
            let Some(opened) = self.open_engine(engine, depth) else {
                continue;
            };
            let name = cost_name(engine, depth);
            let cell = name.clone();
            let mut job = Job::new(opened, file, depth, COST_BLOCKS, settings.seed)
                .map_err(BenchError::os(&name, "giving the file to the engine"))?;
            self.cells.push(Cell::new(&name, move |count| {
                let run = job.run(count, false, &mut Account::default());
                run.map_err(|errno| BenchError::os(&cell, "cached reads")(errno.into()))
            }));
        }
        Ok(())
    }

    fn open_engine(&mut self, engine: &str, depth: u32) -> Option<Box<dyn Engine<Memory>>> {
        let choice = engine.parse::<Choice>().ok()?;
        match open_engine(choice, depth) {
            Ok((engine, _)) => Some(engine),
            Err(error) => {
                let text = format!("{engine} with {depth} requests at a time: {error}");
                self.subject.left_out.push(text);
                None
            }
        }
    }
}

/// Shares out `all` requests: a depth gets at least as many as it has at a time, and the depths
/// for which that is little share the rest.
fn shares(all: u64, depths: &[u32]) -> Vec<u64> {
    let mut deep_first: Vec<usize> = (0..depths.len()).collect();
    deep_first.sort_by_key(|&at| std::cmp::Reverse(depths[at]));
    let (mut left, mut others) = (all, depths.len() as u64);
    let mut shares = vec![0; depths.len()];
    for at in deep_first {
        shares[at] = u64::from(depths[at]).max(left / others);
        left = left.saturating_sub(shares[at]);
        others -= 1;
    }
    shares
}

/// Does the work of a run, and notes it if it is a measured one: trials do not count.
fn noting<T>(
    measuring: &std::cell::Cell<bool>,
    noted: &RefCell<Account>,
    work: impl FnOnce(&mut Account) -> T,
) -> T {
    if measuring.get() {
        work(&mut noted.borrow_mut())
    } else {
        work(&mut Account::default())
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Opens for reading and writing; a block device for nobody else meanwhile, so that one that is
/// mounted is refused.
fn open(path: &Path, more: OFlags) -> Result<File, BenchError> {
    let device = std::fs::metadata(path)
        .is_ok_and(|about| std::os::unix::fs::FileTypeExt::is_block_device(&about.file_type()));
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC | more;
    // The second descriptor of the same program would be refused, too.
    flags.set(OFlags::EXCL, device && more.contains(OFlags::DIRECT));
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let operation = if more.contains(OFlags::DIRECT) {
        "opening it past the system's cache (O_DIRECT)"
    } else {
        "opening it"
    };
    opened
        .map(File::from)
        .map_err(|errno| BenchError::os(shown(path), operation)(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn a_depth_has_at_least_as_many_requests_as_it_has_at_a_time() {
        assert_eq!(shares(30_000, &[100, 1000, 10_000]), [10_000; 3]);
        assert_eq!(shares(14_000, &[100, 1000, 10_000]), [2000, 2000, 10_000]);
        assert_eq!(shares(0, &[10_000, 1]), [10_000, 1]);
    }
}
