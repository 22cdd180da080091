//! `cargo xtask test`: the one command that sets up a machine and runs every test.
//!
//! It runs the tests of the workspace (with cargo-nextest where that is installed), the examples in
//! the documentation, and the loom models of the concurrent parts; then it lists what was skipped
//! and why, and ends with the totals.

use crate::totals::{Skip, Totals, flaky, skips};
use crate::{Outcome, packages, run};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

pub fn run() -> Result<Outcome> {
    packages::ensure();
    let log = run::target_dir().join("skipped-tests.txt");
    std::fs::create_dir_all(run::target_dir()).context("creating the target directory")?;
    std::fs::write(&log, "").with_context(|| format!("emptying {}", log.display()))?;

    let mut totals = Totals::default();
    let mut repeated = Vec::new();
    for mut command in commands() {
        let watched = run::watch(command.env("UGEOM_SKIP_LOG", &log))?;
        totals += Totals::of_run(&watched.lines, watched.success);
        repeated.extend(flaky(&watched.lines).map(str::to_owned));
    }
    let skips = read_skips(&log)?;
    totals.take_skips(&skips);
    print_skips(&skips);
    for line in repeated {
        println!("{line}");
    }
    println!("{totals}");
    Ok(Outcome::of(totals.failed == 0))
}

fn commands() -> Vec<Command> {
    let mut tests = run::cargo();
    if run::succeeds(run::cargo().args(["nextest", "--version"])) {
        tests.args([
            "nextest",
            "run",
            "--status-level=fail",
            "--final-status-level=slow",
        ]);
        tests.arg(format!("--test-threads={}", 2 * processors()));
    } else {
        tests.args(["test", "--lib", "--bins", "--tests"]);
    }
    tests.args(["--workspace", "--no-fail-fast"]);
    let mut docs = run::cargo();
    docs.args(["test", "--workspace", "--no-fail-fast", "--doc"]);
    vec![tests, docs, loom()]
}

/// Many tests wait for other programs and for disks: with two for each processor none is idle.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The models explore every interleaving that loom can make, so they run optimised; link-time
/// optimisation would cost more than it gives. `--cfg loom` changes every crate: a directory of its
/// own keeps it from throwing away the other builds.
///
/// Models that set no bound of their own get three preemptions, as loom advises (two or three):
/// unbounded, a model of three threads took seven minutes. `LOOM_MAX_PREEMPTIONS` overrides it.
fn loom() -> Command {
    let mut loom = run::cargo();
    if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        loom.env("LOOM_MAX_PREEMPTIONS", "3");
    }
    let packages = ["-pugeom-machine", "-pugeom-guasi", "-pugeom-stack"];
    loom.args(["test", "--release", "--no-fail-fast"])
        .args(packages)
        .args(["--lib", "loom"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_TARGET_DIR", run::target_dir().join("loom"));
    loom
}

fn read_skips(log: &Path) -> Result<Vec<Skip>> {
    let bytes = std::fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    Ok(skips(&String::from_utf8_lossy(&bytes)))
}

fn print_skips(skips: &[Skip]) {
    let mut last = None;
    for skip in skips {
        let line = format!("SKIP {}: {}", skip.name, skip.reason);
        if last.as_ref() != Some(&line) {
            println!("{line}");
        }
        last = Some(line);
    }
}
