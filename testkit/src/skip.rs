//! Tests that cannot run here say so, and are counted as skipped rather than as passed.
//!
//! `cargo xtask test` sets `UGEOM_SKIP_LOG` to a file; every skip is appended to it, and listed at
//! the end of the run with its reason.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line a program: `PROGRAM PACKAGE`. `cargo:` marks a crate, `python3:` a module of Python.
const PROGRAMS: &str = include_str!("../programs.txt");

/// Reports that the calling test (or a part of it) did not run, and why: one line
/// `SKIP name: reason` on stderr, and one in the file named by `UGEOM_SKIP_LOG`.
pub fn skip(reason: &str) {
    let name = test_name();
    eprintln!("SKIP {name}: {reason}");
    if let Some(log) = std::env::var_os("UGEOM_SKIP_LOG") {
        // Without the log the line on stderr stands alone; that is no reason to fail the test.
        let _ = append(Path::new(&log), &log_line(&name, reason));
    }
}

/// The new resource; where it could not be made, nothing, and the reason is reported by [`skip`].
pub fn or_skip<T>(made: Result<T, impl Display>) -> Option<T> {
    made.inspect_err(|error| skip(&error.to_string())).ok()
}

/// The name of the calling test: the harness runs each in a thread that it names after it.
pub fn test_name() -> String {
    let thread = std::thread::current();
    thread.name().unwrap_or("a thread of a test").to_owned()
}

/// The path of `program`, or `None` after reporting that the test is skipped, with the
/// package to install. `/usr/sbin` is searched as well: the partitioning tools live there and
/// Debian leaves it out of the `PATH` of most users. So is the place where `cargo xtask test` puts
/// programs that are crates.
pub fn program(program: &str) -> Option<PathBuf> {
    let found = search(program);
    if found.is_none() {
        skip(&missing(program));
    }
    found
}

/// A Python that can import `module`, or `None` after reporting that the test is skipped. A
/// module that is a Debian package belongs to Debian's Python, which need not be first in `PATH`.
pub fn python(module: &str) -> Option<PathBuf> {
    let imports = |python: &PathBuf| {
        let script = format!("import {module}");
        let asked = Command::new(python).args(["-c", &script]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    let candidates = [search("python3"), Some("/usr/bin/python3".into())];
    let found = candidates.into_iter().flatten().find(imports);
    if found.is_none() {
        skip(&missing(&format!("python3:{module}")));
    }
    found
}

/// The path of `file` in the directory of shared test material (`UGEOM_SHARED`, or `shared` beside
/// the repository), or `None` after reporting that the test is skipped.
pub fn shared(file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("UGEOM_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")),
        PathBuf::from,
    );
    let path = root.join(file);
    if path.exists() {
        return Some(path);
    }
    let path = path.display();
    skip(&format!(
        "{path} is not there (UGEOM_SHARED names its directory)"
    ));
    None
}

fn search(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/programs/bin");
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin", crates].map(PathBuf::from);
    let dirs = std::env::split_paths(&path).chain(more);
    dirs.map(|dir| dir.join(OsString::from(program)))
        .find(|file| file.is_file())
}

fn missing(program: &str) -> String {
    let shown = match program.strip_prefix("python3:") {
        Some(module) => format!("Python module {module}"),
        None => format!("program {program}"),
    };
    let package = PROGRAMS.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(program))
            .then(|| words.next())
            .flatten()
    });
    let Some(package) = package else {
        return format!("no {shown}");
    };
    match package.strip_prefix("cargo:") {
        Some(krate) => format!("no {shown} (cargo install {krate})"),
        None => format!("no {shown} (Debian package {package})"),
    }
}

/// `PROCESS<tab>NAME<tab>REASON`: process and name tell tests apart when one skips several parts.
fn log_line(name: &str, reason: &str) -> String {
    let reason = reason.replace(['\n', '\t'], " ");
    format!("{}\t{name}\t{reason}\n", std::process::id())
}

/// One write in append mode, so that lines of tests that run together do not mix.
fn append(log: &Path, line: &str) -> std::io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)?
        .write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        assert_eq!(
            missing("sgdisk"),
            "no program sgdisk (Debian package gdisk)"
        );
        let fsx = missing("fsx");
        assert!(fsx.starts_with("no program fsx (cargo install fsx@"));
        assert_eq!(missing("no-such"), "no program no-such");
        assert_eq!(
            missing("python3:lmdb"),
            "no Python module lmdb (Debian package python3-lmdb)"
        );
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(search("sh").is_some());
        assert_eq!(search("no-such-program-anywhere"), None);
    }

    #[test]
    fn the_log_holds_one_line_a_skip() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let log = dir.path().join("log");
        append(&log, &log_line("a", "b\nc\td"))?;
        append(&log, &log_line("e", "f"))?;
        let text = std::fs::read_to_string(&log)?;
        let fields: Vec<Vec<&str>> = text.lines().map(|l| l.split('\t').collect()).collect();
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[0][1..], ["a", "b c d"]);
        assert_eq!(fields[1][1..], ["e", "f"]);
        assert_eq!(fields[0][0], fields[1][0]);
        Ok(())
    }
}
