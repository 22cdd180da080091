//! The job against a real file, the figures against samples of known ratio, and the report.

use super::cases::again;
use super::published::{PUBLISHED, REQUESTS};
use super::*;
use std::sync::atomic::AtomicBool;
use ugeom_experiment::run_here;
use ugeom_harness::host::Host;
use ugeom_harness::scratch::Scratch;
use ugeom_harness::{Machine, Measured, Round, Sample};

static GO_ON: AtomicBool = AtomicBool::new(false);

#[test]
fn a_small_job_measures_every_engine_and_writes_inside_the_file_only() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let scratch = Scratch::new(Some(folder.path()), 4 << 20, 7, &GO_ON).unwrap();
    let options = EnginesOptions {
        target: Some(scratch.path().to_owned()),
        depths: vec![8, 32],
        size_bytes: Some(2 << 20),
        common: Common {
            seed: Some(1),
            budget_ns: Some(1),
            ..Common::default()
        },
        ..EnginesOptions::default()
    };
    let before = std::fs::read(scratch.path()).unwrap();
    let mut control = Control::silent();
    let document = match run_here::<Engines>(&options, &Machine, &mut control) {
        Ok(document) => document,
        // Some file systems have no O_DIRECT.
        Err(HarnessError::Os(error)) if error.to_string().contains("O_DIRECT") => return,
        Err(error) => panic!("{error}"),
    };
    let after = std::fs::read(scratch.path()).unwrap();
    assert_eq!(before.len(), after.len());
    assert_eq!(
        before[..1 << 20],
        after[..1 << 20],
        "what is read from the cache"
    );
    assert_ne!(before[1 << 20..3 << 20], after[1 << 20..3 << 20]);
    assert_eq!(before[3 << 20..], after[3 << 20..], "past the size");
    for detail in &document.subject.jobs {
        let requests = detail.reads.requests + detail.writes.requests;
        let at = document
            .subject
            .depths
            .iter()
            .position(|depth| *depth == detail.depth);
        let asked = document.subject.requests[at.unwrap()];
        assert_eq!(requests, asked * document.rounds());
        assert!(detail.reads.requests > 0 && detail.writes.requests > 0);
        let [submitting, completing, sum] = detail.means_ns();
        assert!((submitting + completing - sum).abs() <= sum * 0.01 + 1.0);
    }
    let text = page(&document).to_text(100);
    for heading in [
        "THE JOB",
        "ENGINES AGAINST LIBAIO",
        "WHAT AN ENGINE COSTS BY ITSELF",
        "ANY CALL",
        "CHECKS",
        "THEN",
        "Its conclusion",
    ] {
        assert!(text.contains(heading), "{text}");
    }
}

/// A document whose cases take exactly so long a request, ns, give or take a little.
fn document(times_ns: &[(String, f64)]) -> Document {
    let cases: Vec<String> = times_ns.iter().map(|(name, _)| name.clone()).collect();
    let round = |number: u64| Round {
        order: (0..cases.len()).collect(),
        samples: times_ns
            .iter()
            .zip(1..)
            .map(|((_, ns), case)| Sample {
                iterations: 1000,
                wall_ns: (ns * 1000.0) as u64 + (number * 37 * case) % 101,
                ..Sample::default()
            })
            .collect(),
        null_floor: None,
    };
    let measured = Measured::of(cases.clone(), (0..10).map(round).collect());
    let subject = Subject {
        target: None,
        depths: vec![100],
        size_bytes: SIZE_BYTES,
        requests: vec![1000],
        schedulers: Vec::new(),
        jobs: Vec::new(),
        left_out: Vec::new(),
    };
    let mut document = Document::new(
        EXPERIMENT,
        Host::now(),
        Settings::default(),
        subject,
        measured,
    );
    compute(&mut document);
    document
}

fn judged(threads_ns: f64) -> String {
    let job_name = |method, depth| super::cases::job_name(method, depth, None);
    let cases = [
        (job_name("libaio", 100), 10_000.0),
        (job_name("io_uring", 100), 8_000.0),
        (job_name("guasi-workers", 100), threads_ns),
        (again(100), 10_000.0),
    ];
    let document = document(&cases);
    let ratio = document.figure("iops.io_uring.100").unwrap();
    assert!((ratio.interval.estimate - 1.25).abs() < 0.01);
    assert_eq!(ratio.significant, Some(true));
    page(&document).answer
}

#[test]
fn an_interrupted_measurement_shows_what_finished() {
    let mut document = document(&[(super::cases::job_name("libaio", 100, None), 10_000.0)]);
    document.processes[0].rounds.truncate(2);
    compute(&mut document);
    let summary = page(&document).summary.unwrap();
    let texts: Vec<&str> = summary.rows[0].iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts[..2], ["libaio", "100.0 k"]);
}

#[test]
fn the_conclusion_of_2007_is_confirmed_or_refuted_by_the_whole_interval() {
    assert!(
        judged(10_300.0).contains("Threads are as fast as libaio within 10 %: "),
        "{}",
        judged(10_300.0)
    );
    assert!(judged(20_000.0).starts_with("Threads are slower than libaio: "));
    assert!(judged(20_000.0).contains("0.50 x"), "{}", judged(20_000.0));
    assert!(judged(5_000.0).starts_with("Threads are faster than libaio: "));
}

#[test]
fn the_published_runs_hid_their_time_in_different_places() {
    // libaio at depth 10,000 submitted for 49 s what GUASI completed in 30 s; six context switches
    // a request for GUASI, one for libaio.
    let [guasi, libaio] = [PUBLISHED[4], PUBLISHED[5]];
    assert!(libaio.submitting_ms[0] > 49_000.0 && guasi.submitting_ms[0] < 20.0);
    let switches = |run: super::published::Published| run.switches as f64 / REQUESTS as f64;
    assert!((5.9..6.1).contains(&switches(PUBLISHED[0])));
    assert!((1.1..1.3).contains(&switches(PUBLISHED[1])));
}

#[test]
fn a_target_that_is_too_small_or_missing_is_refused_by_name() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let small = folder.path().join("small");
    std::fs::write(&small, [0; 4096]).unwrap();
    for (path, problem) in [
        (small, "has 4096 bytes"),
        (folder.path().join("none"), "No such"),
    ] {
        let options = EnginesOptions {
            target: Some(path),
            ..EnginesOptions::default()
        };
        let mut control = Control::silent();
        let error = run_here::<Engines>(&options, &Machine, &mut control)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(problem) || error.contains("O_DIRECT"),
            "{error}"
        );
    }
}
