//! The findings of a document: sums of each case, the limits of each way to each target, the
//! effects of queue depth and of the device.

use super::subject::{CacheMode, CaseFacts, Document, Role};
use ugeom_harness::figure::{CONFIDENCE, Figure, Unit};
use ugeom_harness::observed::Observed;
use ugeom_harness::{DeviceCounts, Sample, total};
use ugeom_measure::limits::Fitted;
use ugeom_measure::{Interval, Noise, Spread};

/// The sums of the runs of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Number of runs that were added.
    pub runs: u64,
    /// Sum of their wall times, nanoseconds.
    pub wall_ns: u64,
    /// Bytes that the runs have transferred.
    pub bytes: u64,
    /// Blocks that the runs have transferred.
    pub transactions: u64,
    /// CPU time in user space, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// Context switches during the runs.
    pub switches: u64,
    /// The busy time of the busiest core, ns.
    pub busiest_core_ns: u64,
    /// The time of all cores of the machine, ns: user, nice, system, interrupts, idle.
    pub machine_ns: [u64; 5],
    /// The counters of the device, if it has any.
    pub device: Option<DeviceCounts>,
}

impl Sums {
    fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Self> {
        let mut sums = Self::default();
        for sample in samples {
            let (cpu, shares) = (&sample.cpu, &sample.cpu.shares);
            sums.runs += 1;
            add(&mut sums.wall_ns, sample.wall_ns);
            add(&mut sums.bytes, sample.work.bytes);
            add(&mut sums.transactions, sample.work.transactions);
            add(&mut sums.user_ns, cpu.user_ns);
            add(&mut sums.system_ns, cpu.system_ns);
            add(&mut sums.switches, cpu.switches());
            add(&mut sums.busiest_core_ns, cpu.busiest_core_ns);
            let machine = [
                shares.user_ns,
                shares.nice_ns,
                shares.system_ns,
                shares.interrupt_ns,
                shares.idle_ns,
            ];
            for (sum, ns) in sums.machine_ns.iter_mut().zip(machine) {
                add(sum, ns);
            }
            if let Some(device) = &sample.device {
                add_device(sums.device.get_or_insert_default(), device);
            }
        }
        (sums.runs > 0).then_some(sums)
    }

    /// A sum over the number of runs.
    pub fn each(&self, sum: u64) -> f64 {
        sum as f64 / self.runs.max(1) as f64
    }

    /// A sum for each second of wall time.
    pub fn per_second(&self, sum: u64) -> f64 {
        sum as f64 * 1e9 / self.wall_ns.max(1) as f64
    }

    /// The share of one core that the program used: 1.5 for one and a half.
    pub fn cpu_share(&self) -> f64 {
        total([self.user_ns, self.system_ns]) as f64 / self.wall_ns.max(1) as f64
    }

    /// CPU time in the kernel for each MiB that was moved, ns.
    pub fn system_ns_per_mib(&self) -> f64 {
        self.system_ns as f64 * 1_048_576.0 / self.bytes.max(1) as f64
    }
}

fn add(sum: &mut u64, number: u64) {
    *sum = total([*sum, number]);
}

fn add_device(sum: &mut DeviceCounts, device: &DeviceCounts) {
    add(&mut sum.reads, device.reads);
    add(&mut sum.read_bytes, device.read_bytes);
    add(&mut sum.read_merges, device.read_merges);
    add(&mut sum.writes, device.writes);
    add(&mut sum.write_bytes, device.write_bytes);
    add(&mut sum.write_merges, device.write_merges);
    add(&mut sum.deletes, device.deletes);
    add(&mut sum.delete_bytes, device.delete_bytes);
    add(&mut sum.flushes, device.flushes);
    add(&mut sum.busy_ns, device.busy_ns);
}

/// Limits that were fitted to the times of each process.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The fit to the typical times of all processes.
    pub fitted: Fitted,
    /// Limit of transactions, per ns.
    pub transactions: Spread,
    /// Limit of the bandwidth, bytes per ns.
    pub bandwidth: Spread,
    /// Where both limits meet, bytes.
    pub knee: Spread,
}

impl Limits {
    /// The most transactions, a second.
    pub fn transaction_rate(&self) -> Interval {
        self.transactions.interval().scaled(1e9)
    }

    /// The bandwidth, bytes a second.
    pub fn bandwidth(&self) -> Interval {
        self.bandwidth.interval().scaled(1e9)
    }

    /// Where both limits meet, bytes.
    pub fn knee(&self) -> Interval {
        self.knee.interval()
    }
}

/// The limits of a way to a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Limited {
    /// With their spread over processes.
    Processes(Box<Limits>),
    /// From too few rounds for a spread.
    Once(Fitted),
    /// Not known, and why.
    Unknown(String),
}

impl Limited {
    /// The fit, where there is one.
    pub fn fitted(&self) -> Option<&Fitted> {
        match self {
            Self::Processes(limits) => Some(&limits.fitted),
            Self::Once(fitted) => Some(fitted),
            Self::Unknown(_) => None,
        }
    }
}

/// A way to a target, with everything that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct WayFindings {
    /// The index of the target.
    pub part: usize,
    /// How the device was accessed: by system calls or through a stack.
    pub way: CacheMode,
    /// The cases of its steps, in the order of their blocks, with the measurements of each.
    pub steps: Vec<(u64, Sums)>,
    /// For each step the interval of the time of one block, ns; none with too few rounds.
    pub times: Vec<Option<Interval>>,
    /// The limits that were fitted to the steps.
    pub limits: Limited,
    /// The rate at each depth over the rate at depth 1, with the depth.
    pub depths: Vec<(u64, Interval)>,
}

/// Everything that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    sums: Vec<Option<Sums>>,
    /// The ways to the targets, in the order in which they were planned.
    pub ways: Vec<WayFindings>,
}

impl Findings {
    /// Computes the findings from the samples of all processes.
    pub fn of(document: &Document) -> Self {
        let subject = &document.subject;
        let sums = (0..subject.cases.len()).map(|case| Sums::of(samples(document, case)));
        let sums: Vec<Option<Sums>> = sums.collect();
        let mut ways: Vec<(usize, CacheMode)> = Vec::new();
        for case in &subject.cases {
            if !ways.contains(&(case.part, case.way)) {
                ways.push((case.part, case.way));
            }
        }
        let table = Observed::times(document);
        let way =
            |(part, way): (usize, CacheMode)| way_findings(document, &sums, &table, part, way);
        let ways = ways.into_iter().map(way).collect();
        Self { sums, ways }
    }

    /// The sums of the runs of a case; none without runs.
    pub fn sums(&self, case: usize) -> Option<&Sums> {
        self.sums.get(case)?.as_ref()
    }
}

/// The runs of a case: those of whole rounds, or else all.
fn samples(document: &Document, case: usize) -> Box<dyn Iterator<Item = &Sample> + '_> {
    if document.rounds() > 0 {
        let rounds = document
            .processes
            .iter()
            .flat_map(|process| &process.rounds);
        return Box::new(rounds.filter_map(move |round| round.samples.get(case)));
    }
    let unfinished = document
        .processes
        .iter()
        .filter_map(|one| one.unfinished.as_ref());
    let samples = unfinished.flat_map(|one| &one.samples);
    Box::new(samples.filter(move |one| one.0 == case).map(|one| &one.1))
}

fn way_findings(
    document: &Document,
    sums: &[Option<Sums>],
    table: &Observed,
    part: usize,
    way: CacheMode,
) -> WayFindings {
    let cases = document.subject.cases.iter().enumerate();
    let of_way = cases.filter(|(_, facts)| facts.part == part && facts.way == way);
    let of_way: Vec<(usize, &CaseFacts)> = of_way.collect();
    let steps: Vec<(usize, u64, Sums)> = of_way
        .iter()
        .filter(|(_, facts)| facts.role == Role::Step)
        .filter_map(|(case, facts)| {
            let sums = sums.get(*case)?.clone()?;
            Some((*case, facts.block_bytes, sums))
        })
        .collect();
    let name = |case: usize| table.cases().get(case).map(String::as_str);
    let time = |case: usize| Some(table.typical(name(case)?)?.interval());
    let depth = |wanted: u64| {
        let found = of_way
            .iter()
            .find(|(_, facts)| facts.role == Role::Depth(wanted));
        found.map(|(case, _)| *case)
    };
    let depths = super::cases::DEPTHS.iter().skip(1).filter_map(|&wanted| {
        // The ratio of the times, base over changed, is that of the rates.
        let ratio = table.ratio(name(depth(1)?)?, name(depth(wanted)?)?)?;
        Some((wanted, ratio.at(CONFIDENCE).ok()?))
    });
    WayFindings {
        part,
        way,
        times: steps.iter().map(|(case, ..)| time(*case)).collect(),
        limits: limits(table, &steps),
        depths: depths.collect(),
        steps: steps
            .into_iter()
            .map(|(_, block, sums)| (block, sums))
            .collect(),
    }
}

/// Fits the limits to each process, and takes the middle of the fits.
fn limits(table: &Observed, steps: &[(usize, u64, Sums)]) -> Limited {
    let sizes: Vec<f64> = steps.iter().map(|(_, block, _)| *block as f64).collect();
    let cases: Vec<usize> = steps.iter().map(|step| step.0).collect();
    let of_processes = |of: fn(&Fitted) -> f64| {
        let values = table.values(&cases, |times| Some(of(&Fitted::of(&sizes, times).ok()?)));
        Spread::of(&values).ok()
    };
    let found = || {
        let typical = steps.iter().map(|step| {
            let name = table.cases().get(step.0)?;
            Some(table.typical(name)?.estimate())
        });
        let typical: Option<Vec<f64>> = typical.collect();
        Some(Limits {
            fitted: Fitted::of(&sizes, &typical?).ok()?,
            transactions: of_processes(|fitted| fitted.limits.transaction_rate())?,
            bandwidth: of_processes(|fitted| fitted.limits.bandwidth())?,
            knee: of_processes(|fitted| fitted.limits.knee())?,
        })
    };
    if let Some(limits) = found() {
        return Limited::Processes(Box::new(limits));
    }
    let time = |sums: &Sums| sums.wall_ns as f64 / sums.transactions.max(1) as f64;
    let times: Vec<f64> = steps.iter().map(|(.., sums)| time(sums)).collect();
    match Fitted::of(&sizes, &times) {
        Ok(fitted) => Limited::Once(fitted),
        Err(error) => Limited::Unknown(error.to_string()),
    }
}

/// Computes the noise and the figures of a document from its samples.
pub fn compute(document: &mut Document) {
    let table = Observed::times(document);
    document.noise = noise(document, &table);
    let findings = Findings::of(document);
    let mut figures = Vec::new();
    for found in &findings.ways {
        let part = document
            .subject
            .parts
            .get(found.part)
            .map_or("", |part| &part.name);
        let (name, way) = (format!("{part}.{}", found.way.word()), found.way.word());
        if let Limited::Processes(limits) = &found.limits {
            let mut add = |id: &str, what: &str, unit, (spread, factor): (&Spread, f64)| {
                let (id, what) = (format!("{name}.{id}"), format!("{what} of {part}, {way}"));
                let figure = Figure::absolute(&id, &what, unit, spread);
                figures.push(Figure {
                    interval: figure.interval.scaled(factor),
                    values: figure.values.iter().map(|value| value * factor).collect(),
                    ..figure
                });
            };
            let (rate, bytes) = ((&limits.transactions, 1e9), (&limits.bandwidth, 1e9));
            add("transactions", "the limit of IOPS", Unit::PerSecond, rate);
            add("bandwidth", "the bandwidth", Unit::BytesPerSecond, bytes);
            add(
                "knee",
                "the crossover of both limits",
                Unit::Bytes,
                (&limits.knee, 1.0),
            );
        }
        for (depth, ratio) in &found.depths {
            let what = format!("throughput at queue depth {depth} relative to depth 1, {part}");
            let id = format!("{name}.depth{depth}");
            figures.push(Figure::plain(&id, &what, Unit::Times, *ratio));
        }
    }
    document.figures = figures;
}

/// The first case that was measured twice.
fn noise(document: &Document, table: &Observed) -> Option<Noise> {
    let cases = &document.subject.cases;
    let again = cases.iter().position(|case| case.role == Role::Again)?;
    let step = CaseFacts {
        role: Role::Step,
        ..cases[again]
    };
    let first = cases.iter().position(|case| *case == step)?;
    let name = |case: usize| table.cases().get(case).map(String::as_str);
    table.noise(name(first)?, name(again)?)
}
