//! `cargo xtask fuzz [SECONDS]`: every fuzz target for a while.
//!
//! With a nightly toolchain the address sanitizer runs along; without it the targets still run, as
//! the formats hold no unsafe code and a panic is what they look for.

use crate::{Outcome, run};
use anyhow::{Context, Result, ensure};

pub fn run(seconds: u64) -> Result<Outcome> {
    let targets = targets()?;
    ensure!(!targets.is_empty(), "fuzz/fuzz_targets holds no target");
    if !run::succeeds(run::cargo().args(["fuzz", "--version"])) {
        println!("SKIP fuzz: cargo-fuzz is not installed; cargo install --locked cargo-fuzz");
        return Ok(Outcome::Skipped);
    }
    // Small disks made by our own writers, so that no run has to find a valid table by chance.
    let seeds = run::watch(
        run::cargo()
            .args(["run", "--quiet", "--bin", "seeds"])
            .current_dir(run::root().join("fuzz")),
    )?;
    ensure!(seeds.success, "writing the first corpus failed");
    let nightly = run::succeeds(run::nightly_cargo().arg("--version"));
    if !nightly {
        println!("no nightly toolchain: fuzzing without the address sanitizer");
    }
    let mut failed = Vec::new();
    for target in &targets {
        let mut cargo = if nightly {
            run::nightly_cargo()
        } else {
            run::cargo()
        };
        cargo.args(["fuzz", "run", target]);
        if !nightly {
            cargo.args(["--sanitizer", "none"]);
        }
        cargo.args(["--", &format!("-max_total_time={seconds}")]);
        if !run::watch(&mut cargo)?.success {
            failed.push(target.as_str());
        }
    }
    println!(
        "{} targets, {} s each; failed: {}",
        targets.len(),
        seconds,
        failed.len()
    );
    for target in &failed {
        println!("failed: {target}");
    }
    Ok(Outcome::of(failed.is_empty()))
}

fn targets() -> Result<Vec<String>> {
    let dir = run::root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}
