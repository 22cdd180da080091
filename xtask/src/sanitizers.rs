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
use std::process::Command;

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
            // Engines that are forgotten keep their workers and their memory, as they must.
            Self::Thread => (
                "TSAN_OPTIONS",
                "halt_on_error=0 exitcode=66 report_thread_leaks=0",
            ),
            // Faults of the tests' own making end their processes by the signals that the tests
            // wait for.
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
    let watched = run::watch(&mut command(sanitizer, &target, args))?;
    if watched.success {
        return Ok(Outcome::Passed);
    }
    // A report is a finding however rarely it comes; a test that fails without one may have run out
    // of its time, since everything takes 5 to 20 times as long.
    let failed = failed_targets(&watched.lines);
    if watched.lines.iter().any(|line| is_report(line)) || failed.is_empty() {
        return Ok(Outcome::Failed);
    }
    for target_args in failed {
        let again: Vec<&str> = target_args.split_whitespace().collect();
        let watched = run::watch(&mut command(sanitizer, &target, &again))?;
        if !watched.success {
            return Ok(Outcome::Failed);
        }
        println!("FLAKY {name}: {target_args} failed, and passed when repeated");
    }
    Ok(Outcome::Passed)
}

fn command(sanitizer: Sanitizer, target: &str, args: &[&str]) -> Command {
    let (variable, options) = sanitizer.options();
    let mut cargo = run::cargo();
    cargo.args(["test", "--no-fail-fast", "--target", target]);
    if sanitizer == Sanitizer::Thread {
        cargo.arg("-Zbuild-std");
    }
    cargo
        .args(args)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", sanitizer.rustflags())
        .env(variable, options)
        .env("CARGO_TARGET_DIR", run::target_dir().join(sanitizer.name()));
    cargo
}

/// Whether a sanitizer begins a report in this line.
fn is_report(line: &str) -> bool {
    let after = |tool| line.split_once(tool).map(|(level, _)| level);
    let level = after(": ThreadSanitizer").or_else(|| after(": AddressSanitizer"));
    level.is_some_and(|level| {
        ["WARNING", "ERROR", "FATAL"]
            .iter()
            .any(|l| level.ends_with(l))
    })
}

/// The arguments by which cargo names the targets that failed, in its last lines: each between
/// backticks, after `error: 2 targets failed:`.
fn failed_targets(lines: &[String]) -> Vec<&str> {
    let list = lines
        .iter()
        .rposition(|line| line.ends_with("failed:") && line.starts_with("error: "));
    let lines = list.map_or(&[][..], |heading| &lines[heading + 1..]);
    lines
        .iter()
        .map_while(|line| line.trim().strip_prefix('`')?.strip_suffix('`'))
        .collect()
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

#[cfg(test)]
mod tests {
    use super::{failed_targets, is_report};

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn failed_targets_are_named_by_their_arguments() {
        let log = lines(
            "test x ... FAILED\nerror: test failed, to rerun pass `-p engine --lib`\n\
             error: 2 targets failed:\n    `-p engine --lib`\n    `-p guasi --test path`\n",
        );
        assert_eq!(
            failed_targets(&log),
            ["-p engine --lib", "-p guasi --test path"]
        );
        assert_eq!(
            failed_targets(&lines("error: could not compile `x`")),
            [""; 0]
        );
    }

    #[test]
    fn reports_of_sanitizers_are_told_from_failed_tests() {
        assert!(is_report("WARNING: ThreadSanitizer: data race (pid=10176)"));
        assert!(is_report(
            "==12==ERROR: AddressSanitizer: heap-use-after-free"
        ));
        assert!(is_report(
            "FATAL: ThreadSanitizer: unexpected memory mapping"
        ));
        assert!(!is_report("warning: unused variable"));
    }
}
