//! `cargo xtask tsan [ARGS]`: tests under ThreadSanitizer, which finds data races in what
//! really runs, signals and system calls included. Without arguments: [`DEFAULT`].
//!
//! The stable compiler has the sanitizer behind a switch (`RUSTC_BOOTSTRAP`), and the toolchain its
//! runtime. The standard library is not built along, as its sources are seldom installed: locks are
//! told to the sanitizer by `--cfg tsan` (`guasi/src/sync.rs`), and what it cannot see besides is
//! listed with reasons in `xtask/tsan-suppressions.txt`. It does not follow fences; no data depends
//! on one in these crates.

use crate::{Outcome, run};
use anyhow::Result;
use std::path::PathBuf;

/// What runs when nothing is asked for: the crate whose threads share memory without locks.
pub const DEFAULT: [&str; 4] = ["-p", "ugeom-guasi", "--lib", "--tests"];

pub fn run(args: &[&str]) -> Result<Outcome> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    if !has_runtime(&target) {
        println!("SKIP tsan: this toolchain has no runtime of ThreadSanitizer for {target}");
        return Ok(Outcome::Skipped);
    }
    let suppressions = run::root().join("xtask/tsan-suppressions.txt");
    let Some(suppressions) = suppressions.to_str().filter(|path| !path.contains(' ')) else {
        println!("SKIP tsan: TSAN_OPTIONS cannot name a path with a space, as the repository's");
        return Ok(Outcome::Skipped);
    };
    let options = format!("suppressions={suppressions} halt_on_error=0 exitcode=66");
    let watched = run::watch(
        run::cargo()
            .args(["test", "--no-fail-fast", "--target", &target])
            .args(args)
            .env("RUSTC_BOOTSTRAP", "1")
            .env(
                "RUSTFLAGS",
                "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tsan",
            )
            // One test after the other: what the harness does with several is not seen either.
            .env("RUST_TEST_THREADS", "1")
            .env("TSAN_OPTIONS", options)
            .env("CARGO_TARGET_DIR", run::target_dir().join("tsan")),
    )?;
    Ok(if watched.success {
        Outcome::Passed
    } else {
        Outcome::Failed
    })
}

/// Whether the toolchain can link what it builds with the sanitizer.
fn has_runtime(target: &str) -> bool {
    let mut rustc = run::command("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]);
    let Ok(output) = rustc.output() else {
        return false;
    };
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let Ok(entries) = libraries.read_dir() else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().ends_with("_rt.tsan.a")
    })
}
