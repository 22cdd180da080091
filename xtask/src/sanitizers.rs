//! `cargo xtask tsan [ARGS]` and `cargo xtask asan [ARGS]`: tests under ThreadSanitizer, which
//! finds data races, and under AddressSanitizer, which finds accesses to memory that is not there,
//! in what really runs, signals and system calls included. Without arguments:
//! [`THREAD_DEFAULT`] and [`ADDRESS_DEFAULT`].
//!
//! The stable compiler has the sanitizers behind a switch (`RUSTC_BOOTSTRAP`), and the toolchain
//! their runtimes. The standard library is not built along, as its sources are seldom installed. To
//! AddressSanitizer that makes no difference but that it checks less. ThreadSanitizer is told of
//! locks by `--cfg tsan` (`guasi/src/sync.rs`), and what it cannot see besides is listed with
//! reasons in `xtask/tsan-suppressions.txt`. It does not follow fences; no data depends on one in
//! these crates.

use crate::{Outcome, run};
use anyhow::Result;
use std::path::PathBuf;

/// What runs under AddressSanitizer by default: the crates with unsafe code that need no other
/// program.
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

/// What runs under ThreadSanitizer by default: the same without `stack`, whose tests hand bios from
/// thread to thread through locks and channels of the standard library. The sanitizer does not see
/// those and reports each hand-over as a race; loom checks the stack's own.
pub const THREAD_DEFAULT: [&str; 8] = [
    "-p",
    "ugeom-machine",
    "-p",
    "ugeom-guasi",
    "-p",
    "ugeom-engine",
    "--lib",
    "--tests",
];

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
            Self::Thread => "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tsan",
            Self::Address => "-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer",
        }
    }

    /// The variable that sets it up, and its value; `None` when it cannot be had here.
    fn options(self) -> Option<(&'static str, String)> {
        match self {
            Self::Thread => {
                let suppressions = run::root().join("xtask/tsan-suppressions.txt");
                let path = suppressions.to_str().filter(|path| !path.contains(' '))?;
                let options = format!("suppressions={path} halt_on_error=0 exitcode=66");
                Some(("TSAN_OPTIONS", options))
            }
            // Engines that are forgotten keep their memory, as they must; faults of the tests'
            // own making end their processes by the signals that the tests wait for.
            Self::Address => {
                let options = "detect_leaks=0 handle_sigbus=0 handle_segv=0 exitcode=66";
                Some(("ASAN_OPTIONS", options.to_owned()))
            }
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
    let Some((variable, options)) = sanitizer.options() else {
        println!("SKIP {name}: its options cannot name a path with a space, as the repository's");
        return Ok(Outcome::Skipped);
    };
    let mut cargo = run::cargo();
    cargo
        .args(["test", "--no-fail-fast", "--target", &target])
        .args(args)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", sanitizer.rustflags())
        .env(variable, options)
        .env("CARGO_TARGET_DIR", run::target_dir().join(name));
    if sanitizer == Sanitizer::Thread {
        // One test after the other: what the harness does with several is not seen either.
        cargo.env("RUST_TEST_THREADS", "1");
    }
    let watched = run::watch(&mut cargo)?;
    Ok(if watched.success {
        Outcome::Passed
    } else {
        Outcome::Failed
    })
}

/// Whether the toolchain can link what it builds with the sanitizer.
fn has_runtime(sanitizer: Sanitizer, target: &str) -> bool {
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
        let runtime = format!("_rt.{}.a", sanitizer.name());
        name.to_string_lossy().ends_with(&runtime)
    })
}
