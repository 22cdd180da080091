//! `cargo xtask miri [ARGS]`: tests under Miri, which finds undefined behaviour that tests on the
//! real processor pass over. Without arguments: [`DEFAULT`].
//!
//! Tests that Miri cannot run (system calls it does not know) carry `#[cfg_attr(miri, ignore)]`,
//! and long ones do less when `cfg!(miri)`: what takes a second takes minutes here.

use crate::{Outcome, run};
use anyhow::Result;

/// What runs when nothing is asked for: the unit tests of the crates with unsafe code below the
/// engines, and the tests of the life of a bio.
pub const DEFAULT: [&str; 9] = [
    "-p",
    "ugeom-machine",
    "-p",
    "ugeom-guasi",
    "-p",
    "ugeom-stack",
    "--lib",
    "--test",
    "path",
];

pub fn run(args: &[&str]) -> Result<Outcome> {
    if !run::succeeds(run::nightly_cargo().args(["miri", "--version"])) {
        println!("SKIP miri: not installed; rustup toolchain install nightly --component miri");
        return Ok(Outcome::Skipped);
    }
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
    Ok(if watched.success {
        Outcome::Passed
    } else {
        Outcome::Failed
    })
}
