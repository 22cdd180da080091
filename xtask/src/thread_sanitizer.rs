//! `cargo xtask thread-sanitizer`: the tests of `guasi` under ThreadSanitizer, which finds data
//! races in what really runs, signals and system calls included.
//!
//! The standard library is built along with it (`-Zbuild-std`), so that its locks and threads are
//! seen, too. ThreadSanitizer does not follow fences; `guasi` has none that data depends on.

use crate::{Outcome, run};
use anyhow::Result;

pub fn run() -> Result<Outcome> {
    let sources = "rustlib/src/rust/library/Cargo.lock";
    let sysroot = run::nightly_sysroot();
    if !sysroot.is_some_and(|root| root.join("lib").join(sources).is_file()) {
        println!(
            "SKIP thread-sanitizer: no nightly with its sources; \
             rustup toolchain install nightly --component rust-src"
        );
        return Ok(Outcome::Skipped);
    }
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let watched = run::watch(
        run::nightly_cargo()
            .args(["test", "-p", "ugeom-guasi", "--lib", "--tests"])
            .args(["-Zbuild-std", "--no-fail-fast", "--target", &target])
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("TSAN_OPTIONS", "halt_on_error=0 exitcode=66")
            .env("CARGO_TARGET_DIR", run::target_dir().join("tsan")),
    )?;
    Ok(if watched.success {
        Outcome::Passed
    } else {
        Outcome::Failed
    })
}
