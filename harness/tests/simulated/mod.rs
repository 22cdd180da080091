//! A simulated machine with known truth, modelled on a real one: times vary by process, by copy of
//! the work within a process, by round and by run, runs are skewed, source and destination of a
//! copy collide in one place of 256, and there are phases in which the core is slower.

use ugeom_harness::document::Document;
use ugeom_harness::figure::{Figure, Unit};
use ugeom_harness::host::Host;
use ugeom_harness::observed::Observed;
use ugeom_harness::{Measured, Round, Sample, Settings};
use ugeom_measure::interval::student_of;

/// The cases: a plain copy, a read with GEOM, the same of another size with both, and a second
/// stack of the same. In truth size changes nothing.
pub const CASES: [(&str, f64); 6] = [
    ("plain", 7.9),
    ("direct", 20.8),
    ("plain 4k", 50.0),
    ("direct 4k", 62.9),
    ("plain 64k", 1650.0),
    ("direct 64k", 1662.9),
];

/// Deviations of logarithms: of processes, of copies within a process, of rounds, of runs.
const PROCESS_SD: f64 = 0.03;
const COPY_SD: f64 = 0.02;
const ROUND_SD: f64 = 0.01;
const RUN_SD: f64 = 0.09;

/// A pair of places in so many collides, and is this much slower.
const COLLISIONS: u32 = 256;
const COLLISION_FACTOR: f64 = 1.7;

/// In one experiment of so many the trials of the first process were interrupted, so that runs of
/// every case are short beside the start of their threads, and this much slower.
const INTERRUPTED: u32 = 4;
const SHORT_FACTOR: f64 = 1.5;

/// A process in so many begins in a slow phase.
const PHASES: u32 = 12;

/// How the machine is measured.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    pub processes: usize,
    pub rounds: usize,
    /// Buffers lie elsewhere in each run.
    pub moving: bool,
    /// The core has slow phases.
    pub phases: bool,
    /// The treatment of runs that are too short.
    pub lengths: Lengths,
}

/// Lengths of runs where the calibration may be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// No trial is interrupted: all lengths are right.
    Right,
    /// They are mended after the first process.
    Mended,
    /// All processes have those of the first.
    Shared,
}

/// As this program measures.
pub const OURS: Method = Method {
    processes: 12,
    rounds: 5,
    moving: true,
    phases: true,
    lengths: Lengths::Right,
};

/// One process, ten rounds, buffers that stay: as it measured before.
pub const OLD: Method = Method {
    processes: 1,
    rounds: 10,
    moving: false,
    phases: true,
    lengths: Lengths::Right,
};

/// A standard normal number, nearly: the sum of twelve uniform ones.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Above 0, skewed to the right, with a median of 1.
fn skewed(random: &mut fastrand::Rng, sd: f64) -> f64 {
    let tail = if random.u8(0..10) == 0 {
        random.f64() * 2.0 * sd
    } else {
        0.0
    };
    (sd * normal(random) * 0.5).exp() * (1.0 + tail)
}

/// A measurement of the simulated machine.
pub fn measured(method: Method, seed: u64) -> Document<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let interrupted = method.lengths != Lengths::Right && random.u32(0..INTERRUPTED) == 0;
    let processes: Vec<Measured> = (0..method.processes)
        .map(|number| {
            let short = interrupted && (number == 0 || method.lengths == Lengths::Shared);
            process(method, if short { SHORT_FACTOR } else { 1.0 }, &mut random)
        })
        .collect();
    let (host, settings) = (Host::now(), Settings::default());
    let mut document = Document::new("simulated", host, settings, (), processes[0].clone());
    document.processes = processes;
    document
}

fn process(method: Method, slower: f64, random: &mut fastrand::Rng) -> Measured {
    let of_process = (PROCESS_SD * normal(random)).exp() * slower;
    let copies: Vec<f64> = CASES
        .iter()
        .map(|_| (COPY_SD * normal(random)).exp())
        .collect();
    let stuck: Vec<bool> = CASES
        .iter()
        .map(|_| random.u32(0..COLLISIONS) == 0)
        .collect();
    // A slow phase ends somewhere in the process.
    let slow_until = match random.u32(0..PHASES) {
        0 if method.phases => random.usize(0..=method.rounds),
        _ => 0,
    };
    let rounds = (0..method.rounds).map(|round| {
        let of_round = (ROUND_SD * normal(random)).exp();
        let phase = if round < slow_until { 1.4 } else { 1.0 };
        let samples = CASES.iter().enumerate().map(|(case, (_, ns))| {
            let collides = match method.moving {
                true => random.u32(0..COLLISIONS) == 0,
                false => stuck[case],
            };
            let place = if collides { COLLISION_FACTOR } else { 1.0 };
            let run = skewed(random, RUN_SD);
            let ns = ns * of_process * copies[case] * of_round * phase * place * run;
            let reference = |random: &mut fastrand::Rng| {
                (60_000.0 * phase * (1.0 + 0.005 * normal(random).abs())) as u64
            };
            Sample {
                iterations: 1_000_000,
                wall_ns: (ns * 1e6) as u64,
                reference_ns: Some([reference(random), reference(random)]),
                ..Sample::default()
            }
        });
        let samples = samples.collect();
        Round {
            order: (0..CASES.len()).collect(),
            samples,
            null_floor: None,
        }
    });
    let rounds = rounds.collect();
    Measured::of(
        CASES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rounds,
    )
}

/// The contrasts whose coverage counts: a difference, a case alone, a difference at another size.
pub const CONTRASTS: [(&str, &[(&str, f64)]); 3] = [
    ("GEOM's cost", &[("direct", 1.0), ("plain", -1.0)]),
    ("a read", &[("direct", 1.0)]),
    (
        "GEOM's cost at 4 KiB",
        &[("direct 4k", 1.0), ("plain 4k", -1.0)],
    ),
];

/// The figure of a contrast.
pub fn figure(document: &Document<()>, weights: &[(&str, f64)], family: usize) -> Figure {
    let center = Observed::times(document)
        .contrast(weights)
        .expect("observations");
    Figure::judged("x", "x", Unit::Ns, &center, family).expect("a figure")
}

/// The true value of a contrast: the median over very many processes in which the core is fast.
pub fn truth(weights: &[(&str, f64)]) -> f64 {
    let many = Method {
        processes: 8000,
        ..OURS
    };
    figure(&measured(many, 99), weights, 1).interval.estimate
}

/// Whether the interval that the old method gave holds the truth: Student's, of rounds.
pub fn old_holds(document: &Document<()>, weights: &[(&str, f64)], truth: f64) -> bool {
    let blocks = document.processes[0].blocks();
    let places: Vec<(usize, f64)> = weights
        .iter()
        .map(|(name, weight)| (blocks.position(name).expect("a case"), *weight))
        .collect();
    let values: Vec<f64> = blocks
        .rounds()
        .iter()
        .map(|round| {
            places
                .iter()
                .map(|(case, weight)| round[*case] * weight)
                .sum()
        })
        .collect();
    student_of(&values, 0.95)
        .expect("an interval")
        .interval
        .contains(truth)
}

/// How often each contrast's interval holds its truth, per cent: ours, and the old one.
pub fn coverage(experiments: u64) -> Vec<(&'static str, f64, f64)> {
    let percent = |held: usize| held as f64 * 100.0 / experiments as f64;
    let of_contrast = |(what, weights): &(&'static str, &[(&str, f64)])| {
        let truth = truth(weights);
        let held = |one: &dyn Fn(u64) -> bool| (0..experiments).filter(|seed| one(*seed)).count();
        let ours = held(&|seed| {
            figure(&measured(OURS, seed), weights, 1)
                .interval
                .contains(truth)
        });
        let old = held(&|seed| old_holds(&measured(OLD, seed), weights, truth));
        (*what, percent(ours), percent(old))
    };
    CONTRASTS.iter().map(of_contrast).collect()
}

/// How often the interval of a read holds its truth where calibrations are interrupted, per cent.
pub fn coverage_of_lengths(lengths: Lengths, experiments: u64) -> f64 {
    let (_, weights) = CONTRASTS[1];
    let truth = truth(weights);
    let method = Method { lengths, ..OURS };
    let held = |seed: &u64| {
        let interval = figure(&measured(method, *seed), weights, 1).interval;
        interval.contains(truth)
    };
    (0..experiments).filter(held).count() as f64 * 100.0 / experiments as f64
}

/// The share of experiments that claim an effect of size where there is none, per cent.
pub fn false_claims(experiments: u64) -> f64 {
    let sizes: [&[(&str, f64)]; 2] = [
        &[
            ("direct 4k", 1.0),
            ("plain 4k", -1.0),
            ("direct", -1.0),
            ("plain", 1.0),
        ],
        &[
            ("direct 64k", 1.0),
            ("plain 64k", -1.0),
            ("direct", -1.0),
            ("plain", 1.0),
        ],
    ];
    let claims = |seed: &u64| {
        let document = measured(OURS, *seed);
        let claims = |weights: &&[(&str, f64)]| {
            figure(&document, weights, sizes.len()).significant == Some(true)
        };
        sizes.iter().any(claims)
    };
    (0..experiments).filter(claims).count() as f64 * 100.0 / experiments as f64
}
