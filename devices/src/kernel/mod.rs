//! The experiment of 2002 on the kernel's own layers: every provider of a chain (`loop1`, `loop0`,
//! its file, `vda`) is read in the same rounds, past the page cache, the same blocks in random
//! order; the cost of a layer is the difference to the one below within rounds.
//!
//! All cases are measured in turn, and that nine times over with files and buffers opened anew, and
//! with loop devices made anew where they are ours. An effect that lasts for a second, or for as
//! long as a buffer or a device, would otherwise be in all rounds of a case, and no interval of its
//! rounds would cover it. An observation is the median of a pass.
//!
//! Wall time depends on where the workers of a layer wake up: on a processor that sleeps, a wake-up
//! costs tens of microseconds in a virtual machine. So each case is measured twice: with the
//! processors as they are, and kept awake by threads of the idle class.

mod chain;
mod faithful;
mod memory;
mod page;
mod passes;
mod reading;
#[cfg(test)]
mod tests;
mod traced;

use chain::Chain;
use memory::InMemory;
pub use memory::Made;
use passes::{CaseSamples, Pass};
use reading::{Reader, Slice};
use serde::{Deserialize, Serialize};
use std::path::Path;
use ugeom_harness::host::Host;
use ugeom_harness::{Control, HarnessError, Phase, Progress};
use ugeom_machine::awake::Awake;
use ugeom_machine::clock;
use ugeom_measure::{Blocks, Interval};
use ugeom_trace::session::Scope;
use ugeom_trace::tree::KernelTree;

pub use faithful::Faithful;
pub use page::page;
pub use traced::TracedReads;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "kernel";

/// Bytes of a read.
const SIZES_BYTES: [u64; 2] = [512, 4096];
/// Queue depths, requests in flight.
const DEPTHS: [usize; 2] = [1, 32];
/// The wall time of a slice, ns.
const SLICE_NS: u64 = 10_000_000;
/// Reads that find the length of slices, and warm up; the first few tell whether the others are too
/// slow for the budget.
const TRIAL_READS: (usize, usize) = (4, 64);
/// Reads of a slice, at most and at least; at least as many as are in flight.
const READS: (usize, usize) = (20_000, 4);
/// Passes over all cases: the second smallest and the second largest median of nine are the ends
/// of an interval of 96 %.
const PASSES: usize = 9;
/// Passes of a device that is too slow for more: an interval needs so many.
const PASSES_MIN: usize = 6;
/// Rounds of a pass.
const ROUNDS_MIN: usize = 3;
const ROUNDS_MAX: usize = 50;
/// The part of the budget that is for passes; the rest is for traced reads.
const PASSES_SHARE: f64 = 0.85;

/// The bottom of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bottom {
    /// The device below the named target.
    Device,
    /// A file in memory: the loop devices of the target's chain and the partitions on them are
    /// made over it.
    Memory {
        /// The created layers, the lowest first.
        layers: Vec<Made>,
    },
}

/// The target of `lab layers --kernel` and how long it is measured.
#[derive(Clone, Debug)]
pub struct KernelLayersOptions {
    /// A device, or a file on one.
    pub target: String,
    /// The bottom of its chain during the measurement.
    pub bottom: Bottom,
    /// How long it may take, ns.
    pub budget_ns: u64,
    /// The seed of the order of blocks and slices.
    pub seed: u64,
    /// The program of 2002 on each layer instead.
    pub faithful: bool,
}

/// The time of a read, ns: the median of the passes' medians with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Wall time of a read, nanoseconds.
    pub wall_ns: Option<Interval>,
    /// CPU time of the thread that reads.
    pub caller_ns: Option<Interval>,
    /// CPU time of the whole machine.
    pub machine_ns: Option<Interval>,
}

/// A layer in a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowFigures {
    /// Name of the layer's device.
    pub name: String,
    /// The kind of layer.
    pub class: String,
    /// The cost of a read of it.
    pub read: Costs,
    /// The cost added to the layer below; none for the lowest.
    pub added: Option<Costs>,
    /// Its added wall time as a share of the time of the lowest layer, per cent.
    pub share_percent: Option<f64>,
}

/// Reads of one size and queue depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Bytes of a read.
    pub bytes: u64,
    /// Queue depth: requests in flight.
    pub depth: usize,
    /// The processors were kept awake.
    pub awake: bool,
    /// Rounds of all passes together.
    pub rounds: usize,
    /// Passes, each with files and buffers opened anew.
    #[serde(default)]
    pub passes: usize,
    /// The layers from the top.
    pub rows: Vec<RowFigures>,
    /// The same reads of the uppermost layer, traced; at queue depth 1 only.
    #[serde(default)]
    pub traced: Option<TracedReads>,
}

/// The result of `lab layers --kernel`, as `--json` and `--save` write it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelLayers {
    /// The version of the schema.
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// [`EXPERIMENT`], by which readers know the result.
    pub experiment: String,
    /// The machine that measured.
    pub host: Host,
    /// The target, as it was named.
    pub target: String,
    /// The device that the user named, if `target` is a copy of its chain in memory.
    #[serde(default)]
    pub in_memory_of: Option<String>,
    /// Seed of all that was drawn at random.
    pub seed: u64,
    /// How long it took, ns.
    #[serde(default)]
    pub took_ns: u64,
    /// How long it was to take, ns; without the program of 2002, which has no limit.
    #[serde(default)]
    pub budget_ns: Option<u64>,
    /// One for each size and queue depth of the reads.
    pub cases: Vec<Case>,
    /// The program of 2002 on each layer.
    #[serde(default)]
    pub faithful: Option<Faithful>,
    /// The layers left out, with reasons.
    pub left_out: Vec<String>,
}

/// Measures each layer of the chain: times in passes, then a trace at queue depth 1.
///
/// # Errors
/// When the target is no chain of at least one layer that can be read, or a read fails.
pub fn run(
    options: &KernelLayersOptions,
    control: &mut Control<'_>,
) -> Result<KernelLayers, HarnessError> {
    let (host, start_ns) = (Host::now(), clock::now_ns());
    let mut place = ChainPlace::new(options)?;
    let (mut chain, _) = readable(place.top())?;
    let mut left_out = std::mem::take(&mut chain.left_out);
    let mut faithful = None;
    let plan = match options.faithful {
        true => {
            faithful = Some(faithful::run(&chain, options.seed, control)?);
            Vec::new()
        }
        false => plan(&chain, &mut left_out),
    };
    // An open device cannot be removed.
    drop(chain);
    let target = place.top().to_owned();
    let mut cases = match plan.is_empty() {
        true => Vec::new(),
        false => passes(options, (&mut place, &plan), start_ns, control)?,
    };
    if control.is_cancelled() {
        left_out.push("interrupted: everything after the last complete pass".to_owned());
    }
    let budget_ns = options.budget_ns as f64 * (1.0 - PASSES_SHARE) / plan.len().max(1) as f64;
    let mut random = fastrand::Rng::with_seed(options.seed);
    let (chain, scope) = readable(place.top())?;
    for case in cases.iter_mut().filter(|case| case.depth == 1) {
        if control.is_cancelled() {
            break;
        }
        let _keep = kept_awake(&target, case.awake)?;
        match traced::trace(&chain, &scope, (case.bytes, budget_ns as u64), &mut random) {
            Ok(traced) => case.traced = Some(traced),
            Err(why) => {
                left_out.push(format!("exclusive times: {why}"));
                break;
            }
        }
    }
    Ok(KernelLayers {
        schema: 1,
        program: concat!("ugeom ", env!("CARGO_PKG_VERSION")).to_owned(),
        experiment: EXPERIMENT.to_owned(),
        host,
        target,
        in_memory_of: place.in_memory().then(|| options.target.clone()),
        seed: options.seed,
        took_ns: clock::now_ns() - start_ns,
        budget_ns: (!options.faithful).then_some(options.budget_ns),
        cases,
        faithful,
        left_out,
    })
}

/// Where the chain is.
enum ChainPlace<'a> {
    Device(&'a str),
    Memory(InMemory),
}

impl<'a> ChainPlace<'a> {
    fn new(options: &'a KernelLayersOptions) -> Result<Self, HarnessError> {
        Ok(match &options.bottom {
            Bottom::Device => Self::Device(&options.target),
            Bottom::Memory { layers } => Self::Memory(InMemory::new(layers.clone())?),
        })
    }

    fn top(&self) -> &str {
        match self {
            Self::Device(target) => target,
            Self::Memory(chain) => chain.top(),
        }
    }

    fn in_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Makes our devices anew.
    fn renew(&mut self) -> Result<(), HarnessError> {
        match self {
            Self::Device(_) => Ok(()),
            Self::Memory(chain) => chain.renew(),
        }
    }
}

/// The layers of a target that can be read, at least one; and the cost of tracing it.
fn readable(target: &str) -> Result<(Chain, Scope), HarnessError> {
    let os = || HarnessError::os(target, "finding its layers");
    let tree = KernelTree::now().map_err(os())?;
    let at = match tree.named(target) {
        Some(at) => Some(at),
        None => tree.at(Path::new(target)).map_err(os())?,
    };
    let unreadable = |problem: String| HarnessError::Load {
        job: target.to_owned(),
        problem,
    };
    let at = at.ok_or_else(|| unreadable("no layer of it can be read".to_owned()))?;
    let chain = Chain::of(&tree, at, Path::new(target));
    match chain.rows.is_empty() {
        true => Err(unreadable(chain.left_out.join("; "))),
        false => Ok((chain, Scope::of(&tree, &[at]))),
    }
}

/// Sizes, depths and conditions that all layers of the chain accept.
fn plan(chain: &Chain, left_out: &mut Vec<String>) -> Vec<(u64, usize, bool)> {
    let mut plan = Vec::new();
    for bytes in SIZES_BYTES {
        let coarse = chain
            .rows
            .iter()
            .find(|row| u64::from(row.sector_bytes) > bytes);
        if let Some(row) = coarse {
            let (name, sector) = (&row.name, row.sector_bytes);
            left_out.push(format!(
                "reads of {bytes} bytes: {name} has sectors of {sector}"
            ));
            continue;
        }
        for depth in DEPTHS {
            plan.extend([false, true].map(|awake| (bytes, depth, awake)));
        }
    }
    plan
}

/// Measures all cases in turn, again and again.
fn passes(
    options: &KernelLayersOptions,
    (place, plan): (&mut ChainPlace<'_>, &[(u64, usize, bool)]),
    start_ns: u64,
    control: &mut Control<'_>,
) -> Result<Vec<Case>, HarnessError> {
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut samples: Vec<CaseSamples> = plan.iter().map(|_| CaseSamples::default()).collect();
    let budget_ns = (options.budget_ns as f64 * PASSES_SHARE) as u64;
    let total = (PASSES * plan.len()) as u64;
    let mut done = 0;
    let mut names = Vec::new();
    for pass in 0..PASSES {
        let is_late = clock::now_ns() - start_ns > budget_ns;
        if control.is_cancelled() || (is_late && pass >= PASSES_MIN) {
            break;
        }
        if pass > 0 {
            place.renew()?;
        }
        let target = place.top();
        let (chain, _) = readable(target)?;
        let found = layers(&chain);
        if pass == 0 {
            names = found;
        } else if !same(&names, &found, place.in_memory()) {
            return Err(HarnessError::Load {
                job: target.to_owned(),
                problem: "its layers changed while they were measured".to_owned(),
            });
        }
        for (samples, (bytes, depth, awake)) in samples.iter_mut().zip(plan) {
            if control.is_cancelled() {
                break;
            }
            (control.progress)(&Progress {
                phase: Phase::Measuring,
                case: &format!("reads of {bytes} bytes at queue depth {depth}"),
                done,
                total,
            });
            let _keep = kept_awake(target, *awake)?;
            // A slow step leaves less time for the others.
            let left_ns = budget_ns.saturating_sub(clock::now_ns() - start_ns);
            let left_ns = left_ns / (total - done);
            let pass = measure(&chain, (*bytes, *depth), left_ns, &mut random);
            samples.push(pass.map_err(HarnessError::os(target, "reading"))?);
            done += 1;
        }
    }
    let cases = plan.iter().zip(&samples);
    Ok(cases
        .map(|(&(bytes, depth, awake), samples)| Case {
            bytes,
            depth,
            awake,
            rounds: samples.rounds(),
            passes: samples.passes(),
            rows: samples.rows(&names),
            traced: None,
        })
        .collect())
}

/// The name and the class of each layer.
type Names = Vec<(String, &'static str)>;

fn layers(chain: &Chain) -> Names {
    let rows = chain.rows.iter();
    rows.map(|row| (row.name.clone(), row.class)).collect()
}

/// Whether a chain is the one before. Devices that were made anew may have other numbers.
fn same(before: &Names, now: &Names, made_anew: bool) -> bool {
    let classes = |names: &Names| names.iter().map(|(_, class)| *class).collect::<Vec<_>>();
    before == now || (made_anew && classes(before) == classes(now))
}

/// Keeps the processors awake for as long as it lives, if it is to.
fn kept_awake(target: &str, awake: bool) -> Result<Option<Awake>, HarnessError> {
    let keep = || Awake::all().map_err(HarnessError::os(target, "keeping CPUs awake"));
    awake.then(keep).transpose()
}

/// Measures all layers in rounds.
fn measure(
    chain: &Chain,
    (bytes, depth): (u64, usize),
    budget_ns: u64,
    random: &mut fastrand::Rng,
) -> std::io::Result<Pass> {
    let start_ns = clock::now_ns();
    let blocks = (chain.region_bytes / bytes).max(1);
    let readers = chain.rows.iter().map(|row| Reader::new(row, bytes, depth));
    let mut readers = readers.collect::<std::io::Result<Vec<Reader>>>()?;
    let slice_ns = SLICE_NS.min(budget_ns / (2 * ROUNDS_MIN * readers.len()).max(1) as u64);
    let mut counts = Vec::new();
    for reader in &mut readers {
        let mut trial = |count| {
            let blocks: Vec<u64> = (0..count).map(|_| random.u64(..blocks)).collect();
            reader.slice(&blocks).map(|slice| slice.wall_ns)
        };
        let mut each_ns = trial(TRIAL_READS.0.max(depth))?;
        if each_ns * (TRIAL_READS.1 as f64) < slice_ns as f64 {
            each_ns = trial(TRIAL_READS.1)?;
        }
        let count = (slice_ns as f64 / each_ns.max(1.0)) as usize;
        counts.push(count.clamp(READS.1.max(depth), READS.0));
    }
    let names = || chain.rows.iter().map(|row| row.name.clone());
    let mut tables = [(); 3].map(|()| Blocks::new(names()));
    let mut rounds = 0;
    while rounds < ROUNDS_MAX {
        if rounds >= ROUNDS_MIN && clock::now_ns() - start_ns > budget_ns {
            break;
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        let order: Vec<u64> = (0..most).map(|_| random.u64(..blocks)).collect();
        let mut turns: Vec<usize> = (0..readers.len()).collect();
        random.shuffle(&mut turns);
        let mut slices = vec![Slice::default(); readers.len()];
        for at in turns {
            slices[at] = readers[at].slice(&order[..counts[at]])?;
        }
        let values = [
            slices.iter().map(|slice| slice.wall_ns).collect(),
            slices.iter().map(|slice| slice.caller_ns).collect(),
            slices
                .iter()
                .map(|slice| slice.machine_ns)
                .collect::<Vec<f64>>(),
        ];
        for (table, row) in tables.iter_mut().zip(values) {
            table.push_round(row).map_err(std::io::Error::other)?;
        }
        rounds += 1;
    }
    Ok(Pass::of(&tables))
}
