//! `cargo xtask tsan [ARGS]` and `cargo xtask asan [ARGS]`: tests under ThreadSanitizer, which
//! finds data races, and under AddressSanitizer, which finds accesses to memory that is not there,
//! in what really runs, signals and system calls included. Without arguments:
//! [`THREAD_DEFAULT`] and [`ADDRESS_DEFAULT`].
//!
//! The stable compiler has the sanitizers behind a switch (`RUSTC_BOOTSTRAP`), and the toolchain
//! their runtimes. ThreadSanitizer must see the locks of the standard library, or it reports every
//! hand-over through one as a race: the library is built along, from the component `rust-src`. To
//! AddressSanitizer that makes no difference but that it checks less. ThreadSanitizer does not
//! follow fences; no data depends on one in these crates.

use crate::{Outcome, run};
use anyhow::Result;
use std::path::PathBuf;

/// The default crates under AddressSanitizer: those with unsafe code that need no other program.
pub const ADDRESS_DEFAULT: [&str; 10] = [
    "-p",
    "ugeom-machine",
    "-p",
    "ugeom-guasi",
    "-p",
    "ugeom-engine",
    "-p",
    "ugeom-stack",
    "--lib",
    "--tests",
];

/// The default crates under ThreadSanitizer: the same.
pub const THREAD_DEFAULT: [&str; 10] = ADDRESS_DEFAULT;

/// One of the sanitizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    Thread,
    Address,
}

impl Sanitizer {
    /// The name of the command, which is that of the runtime and of the directory of its builds.
    fn name(self) -> &'static str {
        match self {
            Self::Thread => "tsan",
            Self::Address => "asan",
        }
    }

    fn rustflags(self) -> &'static str {
        match self {
            Self::Thread => "-Zsanitizer=thread --cfg tsan",
            Self::Address => "-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer",
        }
    }

    /// The variable that sets it up, and its value.
    fn options(self) -> (&'static str, &'static str) {
        match self {
            // Tests run in the folders of their crates, so the path is absolute.
            Self::Thread => (
                "TSAN_OPTIONS",
                concat!(
                    "halt_on_error=0 exitcode=66 suppressions='",
                    env!("CARGO_MANIFEST_DIR"),
                    "/src/tsan.suppressions'"
                ),
            ),
            // Engines that are forgotten keep their memory, as they must; faults of the tests'
            // own making end their processes by the signals that the tests wait for.
            Self::Address => (
                "ASAN_OPTIONS",
                "detect_leaks=0 handle_sigbus=0 handle_segv=0 exitcode=66",
            ),
        }
    }
}

pub fn run(sanitizer: Sanitizer, args: &[&str]) -> Result<Outcome> {
    let name = sanitizer.name();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    if !has_runtime(sanitizer, &target) {
        println!("SKIP {name}: this toolchain has no runtime of it for {target}");
        return Ok(Outcome::Skipped);
    }
    if sanitizer == Sanitizer::Thread && !has_std_sources() {
        println!("SKIP {name}: no sources of the standard library; rustup component add rust-src");
        return Ok(Outcome::Skipped);
    }
    let (variable, options) = sanitizer.options();
    let mut cargo = run::cargo();
    cargo.args(["test", "--no-fail-fast", "--target", &target]);
    if sanitizer == Sanitizer::Thread {
        cargo.arg("-Zbuild-std");
    }
    cargo
        .args(args)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", sanitizer.rustflags())
        .env(variable, options)
        .env("CARGO_TARGET_DIR", run::target_dir().join(name));
    let watched = run::watch(&mut cargo)?;
    Ok(if watched.success {
        Outcome::Passed
    } else {
        Outcome::Failed
    })
}

/// Whether the standard library can be built along.
fn has_std_sources() -> bool {
    let mut rustc = run::command("rustc");
    rustc.args(["--print", "sysroot"]);
    rustc.output().is_ok_and(|output| {
        let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        sysroot
            .join("lib/rustlib/src/rust/library/Cargo.lock")
            .is_file()
    })
}

/// Whether the toolchain can link what it builds with the sanitizer.
fn has_runtime(sanitizer: Sanitizer, target: &str) -> bool {
    let mut rustc = run::command("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]);
    let Ok(output) = rustc.output() else { return false };
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let Ok(entries) = libraries.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let runtime = format!("_rt.{}.a", sanitizer.name());
        name.to_string_lossy().ends_with(&runtime)
    })
}
