//! A document about layers with known costs, for tests: no machine was measured for it.

use super::names;
use super::subject::{Disk, Document, EXPERIMENT, Link, Subject};
use ugeom_harness::document::SCHEMA;
use ugeom_harness::host::Host;
use ugeom_harness::{CpuTimes, Ended, Measured, Round, Sample, Settings, Shortened};

/// The cases and the cost of one iteration, ns.
pub fn cases() -> Vec<(String, f64)> {
    let mut cases = vec![
        (names::ZERO.to_owned(), 235.0),
        (names::ZERO_AGAIN.to_owned(), 235.2),
        (names::plain("md0"), 9.0),
        (names::plain("md0s1"), 9.0),
        (names::plain("md0s1c"), 9.0),
        (names::direct("md0"), 30.0),
        (names::direct_again("md0"), 30.0),
        (names::direct("md0s1"), 33.0),
        (names::direct("md0s1c"), 36.0),
        (names::queued("md0"), 4_000.0),
        (names::queued("md0s1c"), 9_000.0),
        (names::queued_two("md0s1c"), 6_000.0),
        (names::STATISTICS_OFF.to_owned(), 26.0),
        (names::STATISTICS_TIME.to_owned(), 38.0),
        (names::NULL_ONE.to_owned(), 12.0),
        (names::NULL_TWO.to_owned(), 6.2),
        (names::DELAY.to_owned(), 1_060_000.0),
        (names::LOOP.to_owned(), 0.3),
        (names::CLOCK.to_owned(), 18.0),
        (names::TICKS.to_owned(), 8.0),
    ];
    for size in [4096, 65_536] {
        let copy = size as f64 / 50.0;
        cases.push((names::sized("md0", size), 21.0 + copy));
        cases.push((names::sized("md0s1c", size), 27.0 + copy));
    }
    for depth in [0, 1, 2, 4, 8] {
        let layers = f64::from(depth);
        let depth = depth as usize;
        cases.push((names::layered("slicers", "off", depth), 24.0 + 1.5 * layers));
        cases.push((
            names::layered("slicers", "counts", depth),
            30.0 + 3.0 * layers,
        ));
        cases.push((
            names::layered("fused", "counts", depth),
            30.0 + 0.8 * layers,
        ));
        cases.push((names::layered("nops", "off", depth), 24.0 + 1.4 * layers));
        cases.push((names::layered("hooks", "off", depth), 24.0 + 6.5 * layers));
        cases.push((names::calls(depth), 0.5 + 0.9 * layers));
    }
    cases
}

/// Twelve rounds of these cases, each round faster or slower as a whole by up to 4 per cent, and
/// each sample off by up to half a per cent.
pub fn measured(cases: &[(String, f64)], rounds: usize, seed: u64) -> Measured {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut one_round = || {
        let drift = 1.0 + 0.04 * random.f64();
        let mut sample = |name: &str, cost_ns: f64| {
            let iterations = ((2e6 / cost_ns) as u64).max(1) * 1000;
            let off = 1.0 + 0.01 * (random.f64() - 0.5);
            let wall_ns = (iterations as f64 * cost_ns * drift * off) as u64;
            let queued = name.starts_with("queued/");
            let thread_ns = if queued { wall_ns / 2 } else { wall_ns };
            let process_ns = match (queued, name.ends_with("2 threads")) {
                (true, _) => wall_ns * 3 / 2,
                (false, true) => wall_ns * 2,
                (false, false) => wall_ns,
            };
            let machine_ns = process_ns * 11 / 10;
            let cpu = CpuTimes {
                thread_ns,
                process_ns,
                machine_ns,
                ..CpuTimes::default()
            };
            Sample {
                iterations,
                wall_ns,
                cpu,
                ..Sample::default()
            }
        };
        let samples: Vec<Sample> = cases
            .iter()
            .map(|(name, cost_ns)| sample(name, *cost_ns))
            .collect();
        Round {
            order: (0..cases.len()).collect(),
            samples,
            null_floor: None,
        }
    };
    Measured {
        ended: Ended::Budget,
        shortened: Shortened {
            run_ns_wanted: 50_000_000,
            run_ns: 24_000_000,
            rounds: true,
        },
        elapsed_ns: 14_200_000_000,
        ..Measured::of(
            cases.iter().map(|(name, _)| name.clone()).collect(),
            (0..rounds).map(|_| one_round()).collect(),
        )
    }
}

/// The whole document, without figures.
pub fn document(rounds: usize) -> Document {
    let link = |provider: &str, class: &str, layers: &str| Link {
        provider: provider.to_owned(),
        class: class.to_owned(),
        layers: layers.to_owned(),
        plain: true,
    };
    Document {
        schema: SCHEMA,
        program: "ugeom 0.1.0".to_owned(),
        experiment: EXPERIMENT.to_owned(),
        host: Host {
            cores: 2,
            cores_allowed: 2,
            cores_whole: None,
            cpu_model: "Example CPU @ 2.80GHz".to_owned(),
            virtual_machine: true,
            kernel: "6.1.0".to_owned(),
            load: [0.4, 0.3, 0.2],
            governor: None,
            clock_source: Some("tsc".to_owned()),
            ticks_are_tsc: true,
            started_unix_s: 1_033_936_107,
            memory_bytes: 4 << 30,
            memory_available_bytes: 3 << 30,
            steal_percent: 0.0,
            on_battery: false,
            cpu_limit: None,
            wakeups: None,
        },
        settings: Settings {
            seed: 42,
            budget_ns: Some(15_000_000_000),
            ..Settings::default()
        },
        target: None,
        subject: Subject {
            target: None,
            chain: vec![
                link("md0", "MD", "dev, disk"),
                link("md0s1", "MBR", "dev, mbr, disk"),
                link("md0s1c", "BSD", "dev, bsd, mbr, disk"),
            ],
            read_bytes: 512,
            sizes_bytes: vec![4096, 65_536],
            depths: vec![0, 1, 2, 4, 8],
            faithful: false,
            all: false,
            disk: Disk::assumed(),
            through: Vec::new(),
            left_out: Vec::new(),
        },
        processes: vec![measured(&cases(), rounds, 1)],
        took_ns: None,
        noise: None,
        figures: Vec::new(),
    }
}
