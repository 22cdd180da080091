//! `cargo xtask miri [ARGS]`: tests under Miri, which finds undefined behaviour that tests on the
//! real processor pass over. Without arguments: [`DEFAULT`].
//!
//! Tests that Miri cannot run (system calls it does not know) carry `#[cfg_attr(miri, ignore)]`,
//! and long ones do less when `cfg!(miri)`: what takes a second takes minutes here.

use crate::{Outcome, run};
use anyhow::{Result, bail};

/// The default tests: the unit tests of the crates with unsafe code below the engines, and the
/// tests of the life of a bio. Miri has one thread, so the two parts, about as long as each other,
/// run side by side.
const DEFAULT: [&[&str]; 2] = [
    &["-p", "ugeom-machine", "--lib"],
    &[
        "-p",
        "ugeom-guasi",
        "-p",
        "ugeom-stack",
        "--lib",
        "--test",
        "path",
    ],
];

/// Runs the tests that `args` name, or [`DEFAULT`].
pub fn run(args: &[&str]) -> Result<Outcome> {
    if !run::succeeds(run::nightly_cargo().args(["miri", "--version"])) {
        println!("SKIP miri: not installed; rustup toolchain install nightly --component miri");
        return Ok(Outcome::Skipped);
    }
    if !args.is_empty() {
        return test(args);
    }
    // Compiled first: cargo compiles for one of them at a time.
    for part in DEFAULT {
        if test(&[part, &["--no-run"]].concat())? == Outcome::Failed {
            return Ok(Outcome::Failed);
        }
    }
    let outcomes = std::thread::scope(|scope| {
        let started = DEFAULT.map(|part| scope.spawn(|| test(part)));
        started.map(|part| {
            part.join()
                .unwrap_or_else(|_| bail!("a part of Miri panicked"))
        })
    });
    for outcome in outcomes {
        if outcome? == Outcome::Failed {
            return Ok(Outcome::Failed);
        }
    }
    Ok(Outcome::Passed)
}

fn test(args: &[&str]) -> Result<Outcome> {
    let mut flags = std::env::var("MIRIFLAGS").unwrap_or_default();
    // The clock and the number of processors of the machine are read by the code under test.
    // Pointers are not made of numbers in these crates.
    flags.push_str(" -Zmiri-disable-isolation -Zmiri-strict-provenance");
    let watched = run::watch(
        run::nightly_cargo()
            .args(["miri", "test", "--no-fail-fast"])
            .args(args)
            .env("MIRIFLAGS", flags.trim())
            .env("CARGO_TARGET_DIR", run::target_dir().join("miri")),
    )?;
    Ok(Outcome::of(watched.success))
}
